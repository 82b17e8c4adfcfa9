/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h: the workspace folder of a run, which stays the one that it was when the run began.
 *
 * Somebody may rename it while a command runs, put a link in its place, or make another one of its name. What a
 * command made must not follow: it goes to the folder that was opened, wherever that is now.
 */
#ifndef SANDHOST_WORKSPACE_FOLDER_H
#define SANDHOST_WORKSPACE_FOLDER_H

#include <glib.h>

typedef struct WorkspaceFolder WorkspaceFolder;

/* Opens the folder at path where there is one; else that is left to the first copy that finds or makes one. Never fails:
 * why a folder cannot be opened is told by the first copy. Returns owned. */
WorkspaceFolder *workspace_folder_new(const char *path);
void workspace_folder_free(WorkspaceFolder *folder);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(WorkspaceFolder, workspace_folder_free)

/* A descriptor of the folder, for one copy; the caller closes it. *ret_fd is -1 where there is no folder, or it was
 * deleted, and make is FALSE; with make, one that was never there is made, and one that was deleted is an error. One copy
 * at a time. */
gboolean workspace_folder_open(WorkspaceFolder *folder, gboolean make, int *ret_fd, GError **error);

#endif
