/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark.h: tells the processes of commands apart where keepers cannot.
 *
 * Some kernels (gVisor's) have no child subreapers: what loses its parent becomes the guest's own child, whichever
 * command it came from. There each command is marked by a limit on its resident set, which every child inherits, which
 * can be lowered but not raised again, which nothing heeds, and which /proc/PID/stat shows.
 */
#ifndef SANDHOST_GUEST_MARK_H
#define SANDHOST_GUEST_MARK_H

#include <stdint.h>

#define MARK_NONE UINT64_C(0)

/* Becomes a subreaper; where that cannot be, commands are marked from now on. */
void mark_init(void);
int mark_is_needed(void);
/* One that no command had before; MARK_NONE where none is needed. */
uint64_t mark_new(void);
/* Whether some command has it, or had. */
int mark_is_known(uint64_t mark);
/* Marks this process. Makes a system call, and nothing else. */
void mark_set(uint64_t mark);

#endif
