/* SPDX-License-Identifier: Apache-2.0 */
/* nproc.h: a limit on processes without a control group. */
#ifndef SANDHOST_BUBBLEWRAP_NPROC_H
#define SANDHOST_BUBBLEWRAP_NPROC_H

#include <glib.h>

/* Whether this kernel counts the processes of RLIMIT_NPROC per user namespace (since 5.14), so that a limit
 * within a sandbox is the sandbox's. */
gboolean nproc_works(void);

#endif
