/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.h: the files that say what a run may do: its configuration, its policy, and the program that is asked about
 * approvers. A command that could write one would choose the rules of the next run. */
#ifndef SANDHOST_RUN_GUARDED_H
#define SANDHOST_RUN_GUARDED_H

#include "run/harness.h"

/* The path with links resolved, as far as the file and its folders are there. Returns owned. */
char *guarded_resolve(const char *path);

/* Where they are, each as it is written and with its links resolved. policy may be NULL. An owned array of owned char *. */
GPtrArray *guarded_places(const Config *config, const Policy *policy);

/* Whether a workspace path (relative) is such a file, or a policy file that the next run would find. */
gboolean guarded_is(const Harness *harness, const char *path);

/* Whether it is one that this run goes by, and which may hold keys: no command is to read it. */
gboolean guarded_is_used(const Harness *harness, const char *path);

/* FALSE with a CONFIG error when the manifest mounts such a file read-write. */
gboolean guarded_check_mount(const Harness *harness, GError **error);

#endif
