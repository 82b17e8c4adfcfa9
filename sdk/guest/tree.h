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
/* Whether it has ended and nobody has waited for it yet. */
int tree_is_zombie(pid_t pid);

#endif
