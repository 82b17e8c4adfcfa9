/* SPDX-License-Identifier: Apache-2.0 */
/* file-check.c: a plugin is code that runs as this user, so the way to it must be nobody else's. */
#include "provider/file-check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gboolean others_may_write(const struct stat *status) {
  if (status->st_mode & S_IWOTH) {
    return TRUE;
  }
  return (status->st_mode & S_IWGRP) && status->st_gid != 0 && status->st_gid != getegid();
}

/* what: "it", or "its folder /x". */
static char *check_status(const char *what, const struct stat *status, gboolean sticky_will_do) {
  if (status->st_uid != 0 && status->st_uid != geteuid()) {
    return g_strdup_printf("%s is owned by uid %u", what, status->st_uid);
  }
  if (others_may_write(status) && !(sticky_will_do && (status->st_mode & S_ISVTX))) {
    return g_strdup_printf("%s is writable by others (mode %04o)", what, status->st_mode & 07777);
  }
  return NULL;
}

static char *check_folders(const char *path) {
  g_autofree char *folder = g_path_get_dirname(path);
  gboolean holds_the_file = TRUE;
  for (;;) {
    struct stat status;
    if (lstat(folder, &status) != 0) {
      return g_strdup_printf("its folder %s: %s", folder, g_strerror(errno));
    }
    g_autofree char *what = g_strdup_printf("its folder %s", folder);
    char *reason = check_status(what, &status, !holds_the_file);
    if (reason || strcmp(folder, "/") == 0) {
      return reason;
    }
    holds_the_file = FALSE;
    char *above = g_path_get_dirname(folder);
    g_free(folder);
    folder = above;
  }
}

char *file_check(const char *file, char **ret_reason) {
  char resolved[PATH_MAX];
  struct stat status;
  if (!realpath(file, resolved) || lstat(resolved, &status) != 0) {
    *ret_reason = g_strdup(g_strerror(errno));
    return NULL;
  }
  char *reason = S_ISREG(status.st_mode) ? check_status("it", &status, FALSE)
                                         : g_strdup("it is not a regular file");
  if (!reason) {
    reason = check_folders(resolved);
  }
  if (reason) {
    *ret_reason = reason;
    return NULL;
  }
  return g_strdup(resolved);
}

gboolean file_may_load(const char *file) {
  static const char MAGIC[] = "\177ELF";
  g_autofree char *reason = NULL;
  g_autofree char *resolved = file_check(file, &reason);
  char head[sizeof MAGIC - 1] = "";
  int fd = resolved ? open(resolved, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) {
    return FALSE;
  }
  gboolean begins = read(fd, head, sizeof head) == (ssize_t)sizeof head;
  close(fd);
  return begins && memcmp(head, MAGIC, sizeof head) == 0;
}
