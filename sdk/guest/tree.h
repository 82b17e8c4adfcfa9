/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h: ends everything that stands below a process. */
#ifndef SANDHOST_GUEST_TREE_H
#define SANDHOST_GUEST_TREE_H

#include <sys/types.h>

/* Whether a process, and what stands below it, is left alone. */
typedef int (*tree_spares)(pid_t pid);

/* Freezes, then kills everything below root, which itself is left alone; spares may be NULL. Needs
 * /proc. Waits until nothing is left, for some hundreds of milliseconds at most. */
void tree_kill(pid_t root, tree_spares spares);

#endif
