/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h: ends everything that stands below a process. */
#ifndef SANDHOST_GUEST_TREE_H
#define SANDHOST_GUEST_TREE_H

#include <stdint.h>
#include <sys/types.h>

struct tree_process {
  pid_t pid;
  pid_t parent;
  uint64_t mark; /* its limit on the resident set; see mark.h */
};

/* What becomes of a process, and of what stands below it. */
enum tree_place { TREE_AS_PARENT, TREE_SPARED, TREE_KILLED };
typedef enum tree_place (*tree_judge)(const struct tree_process *process);

/* Freezes, then kills everything below root, which itself is left alone, but what judge, which may be NULL, spares. Waits
 * until nothing is left, for some hundreds of milliseconds at most. 0, or -1: there is no /proc, and nothing was done. */
int tree_kill(pid_t root, tree_judge judge);
/* Stops one process, a child of either parent, so that it no longer ends by itself. 0, or -1: it has ended. Waits for
 * that as long as tree_kill does; one that the kernel holds for longer counts as stopped. */
int tree_hold(pid_t pid, pid_t parent, pid_t other);

#endif
