/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nproc.h: a limit on processes without a control group: RLIMIT_NPROC in the sandbox's user namespace,
 * where the kernel counts per namespace (since 5.14).
 *
 * It costs a few microseconds. Joining a control group of version 1 costs ten milliseconds, since the
 * kernel first waits for every process to pass a point of rest.
 */
#ifndef SANDHOST_BUBBLEWRAP_NPROC_H
#define SANDHOST_BUBBLEWRAP_NPROC_H

#include <glib.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether this kernel counts per namespace, and tells of the children of a process. */
gboolean nproc_works(void);

/* The child of bwrap that becomes the guest; 0: there is none yet. */
pid_t nproc_child(pid_t bwrap);

/* Sets the limit for a process, and for what that will start. uid and gid are its own, as the machine has
 * them; root has to take them on for the time of the call, since a capability that would spare it this is
 * missing in many containers. Returns 0 or a negative errno. */
int nproc_limit(pid_t pid, uint64_t limit, uid_t uid, gid_t gid);

#endif
