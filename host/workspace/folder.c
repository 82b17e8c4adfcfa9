/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c: a descriptor that is held for the whole run. */
#include "workspace/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

struct WorkspaceFolder {
  char *path; /* by which it is opened, once */
  int fd;     /* -1: not yet */
};

/* A folder that cannot be read can be held, too. */
static int hold(const char *path) {
  return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

WorkspaceFolder *workspace_folder_new(const char *path) {
  WorkspaceFolder *folder = g_new0(WorkspaceFolder, 1);
  folder->path = g_strdup(path);
  folder->fd = hold(path);
  return folder;
}

void workspace_folder_free(WorkspaceFolder *folder) {
  if (!folder) {
    return;
  }
  if (folder->fd >= 0) {
    close(folder->fd);
  }
  g_free(folder->path);
  g_free(folder);
}

static gboolean fail(const WorkspaceFolder *folder, GError **error) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
              "could not open the workspace folder '%s': %s", folder->path, g_strerror(errno));
  return FALSE;
}

/* Nothing can be made in one that was deleted, and it has no name any more. */
static gboolean is_deleted(const WorkspaceFolder *folder) {
  struct stat status;
  return fstat(folder->fd, &status) == 0 && status.st_nlink == 0;
}

static gboolean find(WorkspaceFolder *folder, gboolean make, GError **error) {
  folder->fd = hold(folder->path);
  if (folder->fd < 0 && errno == ENOENT && make && g_mkdir_with_parents(folder->path, 0755) == 0) {
    folder->fd = hold(folder->path);
  }
  return folder->fd >= 0 || (errno == ENOENT && !make) || fail(folder, error);
}

gboolean workspace_folder_open(WorkspaceFolder *folder, gboolean make, int *ret_fd,
                               GError **error) {
  *ret_fd = -1;
  if (folder->fd < 0 && !find(folder, make, error)) {
    return FALSE;
  }
  if (folder->fd < 0) {
    return TRUE;
  }
  if (is_deleted(folder)) {
    if (make) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_WORKSPACE,
                  "the workspace folder '%s' was deleted during the run, so nothing can be copied "
                  "back; what is there now, if anything, is another folder: start a new run for it",
                  folder->path);
    }
    return !make;
  }
  /* A descriptor of its own: locks belong to what was opened together. */
  *ret_fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return *ret_fd >= 0 || fail(folder, error);
}
