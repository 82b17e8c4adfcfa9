/* SPDX-License-Identifier: Apache-2.0 */
/* trusted-place.h: whether a file that governs an agent lies where the agent may write (behaviour 4.12). */
#ifndef SANDHOST_GOVERNANCE_TRUSTED_PLACE_H
#define SANDHOST_GOVERNANCE_TRUSTED_PLACE_H

#include <glib.h>

/* Both absolute, without . and .. and repeated slashes. */
gboolean place_is_below(const char *path, const char *folder);

/* The folder with every link in it resolved; made absolute where it does not exist. Owned. */
char *place_resolve(const char *folder);

/* Where an open file is, as the kernel knows it. Owned, or NULL. */
char *place_of(int fd);

/* Whether the file may be the agent's: it, or the link that leads to it, is below one of the agent's folders, or, within
 * project_root, below a folder with such a name (workspace, artifacts, output, tmp, ...). real: with every link resolved;
 * lexical: made absolute alone. */
gboolean place_is_agents(const char *real, const char *lexical, const char *project_root,
                         const char *const *agent_dirs);

#endif
