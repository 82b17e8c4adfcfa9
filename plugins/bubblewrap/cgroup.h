/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h: a control group for each sandbox, sandhost/KEY, where this process may make one.
 *
 * Both versions of control groups are known. With version 2 a group is made beside this process's own
 * (a group with processes in it cannot have limited ones below), with version 1 below its own in each
 * hierarchy. Limits that hold for this process so hold for the sandbox too, wherever that can be.
 *
 * A group that is made and not yet joined is guarded by a shared flock on its parent; who removes what
 * a killed process left behind takes that lock alone.
 */
#ifndef SANDHOST_BUBBLEWRAP_CGROUP_H
#define SANDHOST_BUBBLEWRAP_CGROUP_H

#include <glib.h>
#include <stdint.h>

enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_CONTROLLERS };

/* Where groups can be made. Constant once made; may be used by any thread. */
typedef struct CgroupPlace CgroupPlace;

/* root is where control groups are mounted (/sys/fs/cgroup), self names the file that says where this
 * process is in them (/proc/self/cgroup). Changes nothing. Returns owned, also when there is nowhere. */
CgroupPlace *cgroup_place_new(const char *root, const char *self);
void cgroup_place_free(CgroupPlace *place);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CgroupPlace, cgroup_place_free)

/* Whether limits of this kind can be set. */
gboolean cgroup_place_has(const CgroupPlace *place, enum cgroup_controller controller);

/* Removes groups without processes that nobody is about to join. */
void cgroup_place_sweep(const CgroupPlace *place);

struct cgroup_limits { /* 0: none */
  uint64_t memory_bytes;
  uint64_t cpu_millis;
  uint64_t pids;
};

typedef struct Cgroup Cgroup;

/* Makes the groups that the limits need. name is one path component. Returns 0, or a negative errno and
 * in *ret_what the file or folder concerned (owned by the caller); then nothing is left behind. -EEXIST:
 * a group of that name has processes. */
int cgroup_new(const CgroupPlace *place, const char *name, const struct cgroup_limits *limits,
               Cgroup **ret_group, char **ret_what);

/* The cgroup.procs files to join, borrowed until cgroup_joined. */
const int *cgroup_procs_fds(const Cgroup *group, size_t *ret_count);

/* Closes them: the first process is in, or never will be. */
void cgroup_joined(Cgroup *group);

/* How many processes the kernel has killed in the group since memory was used up. */
uint64_t cgroup_oom_kills(const Cgroup *group);

/* Removes the group, once its processes are gone. May be called again. Returns 0 or a negative errno;
 * -EBUSY: there are processes still after patience (nanoseconds). */
int cgroup_remove(Cgroup *group, int64_t patience);

/* Frees what is known of the group; it stays unless it was removed. NULL is allowed. */
void cgroup_free(Cgroup *group);

#endif
