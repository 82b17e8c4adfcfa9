/* SPDX-License-Identifier: Apache-2.0 */
/* last-words.h: a provider that takes the program along is named, and its exit is not taken for a success. */
#ifndef SANDHOST_CLI_LAST_WORDS_H
#define SANDHOST_CLI_LAST_WORDS_H

#include "base/clock.h"
#include "provider/registry.h"

/* Loading does next to nothing in a sound plugin. */
#define LAST_WORDS_LOAD_PATIENCE (20 * CLOCK_SECOND)

/* From here on a crash says where it was before it ends the program, and an exit that nobody here asked for is
 * EXIT_SANDHOST. */
void last_words_begin(void);

/* Ends the program where a plugin's loading takes longer than that, and names it. One load at a time. */
extern const LoadWatch last_words_of_loads;

/* An ordinary end comes, or a child whose parent tells what became of it. */
void last_words_end(void);

#endif
