/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h: a small world of files for each input: /work, where the code under test works, and beside it /canary, which
 * nobody may change or learn of.
 *
 * The process changes its root while an input runs, so that an escape that a fuzzer finds reaches nothing of value. It
 * leaves before anything is reported, so that the failing input is written where it is looked for.
 */
#ifndef SANDHOST_FUZZ_SCRATCH_H
#define SANDHOST_FUZZ_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What must hold: else out of the scratch root, and the end. */
#define check(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      scratch_leave();                                                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

/* Makes the world, once. Ends the process with 77 where the root cannot be changed. */
void scratch_make(void);
/* Into the root, with a fresh /work. */
void scratch_enter(void);
/* Checks that all outside /work is as it was and no descriptor is left open, empties /work, and goes back. */
void scratch_end(void);
/* Back out of the root at once; harmless outside. */
void scratch_leave(void);

/* Of /work. */
int scratch_folder(void);
/* What a command of the sandbox could do below /work: which is chosen by three bytes. */
void scratch_act(uint8_t kind, uint8_t first, uint8_t second);
/* Whether the bytes hold what only /canary/file says. */
int scratch_is_told(const void *data, size_t length);

#endif
