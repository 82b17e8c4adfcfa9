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

/* Whether this kernel counts per namespace. */
gboolean nproc_works(void);

/* Sets it for the process whose number bwrap writes to info_fd, and for what that will start. uid and gid
 * are those of bwrap, which root has to take on for the time of the call: a capability that would spare
 * it this is missing in many containers. Returns 0 or a negative errno; -ENODATA: bwrap has ended. */
int nproc_limit(int info_fd, uint64_t limit, uid_t uid, gid_t gid);

#endif
