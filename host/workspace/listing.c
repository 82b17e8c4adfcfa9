/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c: the walk costs what a bare walk with stat costs: one open descriptor, one path buffer,
 * no allocation for a file. */
#include "workspace/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Where folders cannot be locked: a temporary file lives for milliseconds, so one as old as this belongs to nobody.
 * Nanoseconds. */
#define TEMPORARY_AGE (G_GINT64_CONSTANT(600) * 1000000000)

typedef struct {
  int root;
  gint64 tick;
  const ListingVisitor *visitor;
  GPtrArray *folders; /* char *, still to be walked */
  GString *path;      /* of the name that is looked at */
} Walk;

static gboolean is_temporary(const char *name) {
  const gsize prefix = strlen(LISTING_TEMPORARY_PREFIX);
  return g_str_has_prefix(name, LISTING_TEMPORARY_PREFIX) &&
         strspn(name + prefix, "0123456789abcdef") == LISTING_TEMPORARY_DIGITS &&
         name[prefix + LISTING_TEMPORARY_DIGITS] == '\0';
}

/* A lock ends with the process that had it. */
static void remove_if_left_over(const Walk *walk, int folder, const char *name) {
  struct stat status;
  if (!is_temporary(name)) {
    return;
  }
  gboolean locked = flock(folder, LOCK_EX | LOCK_NB) == 0;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
      (locked || file_identity_of(&status).mtime < walk->tick - TEMPORARY_AGE)) {
    unlinkat(folder, name, 0);
  }
  if (locked) {
    flock(folder, LOCK_UN);
  }
}

/* NULL: it can be copied. */
static const char *trouble_with(const GString *path, gsize name_at) {
  if (path->len >= PATH_MAX) {
    return "its path is too long";
  }
  if (!g_utf8_validate_len(path->str + name_at, path->len - name_at, NULL)) {
    return "name is not UTF-8";
  }
  return NULL;
}

/* walk->path ends with name. */
static void look_at(Walk *walk, int folder, gsize name_at, unsigned char type) {
  const char *name = walk->path->str + name_at;
  if (type != DT_REG && type != DT_DIR && type != DT_UNKNOWN) {
    return;
  }
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0 ||
      (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))) {
    return;
  }
  const ListingVisitor *visitor = walk->visitor;
  const FileIdentity identity = file_identity_of(&status);
  const char *reason = trouble_with(walk->path, name_at);
  if (reason) {
    visitor->trouble(visitor->user, walk->path->str, &identity, reason);
  } else if (S_ISDIR(status.st_mode)) {
    g_ptr_array_add(walk->folders, g_strndup(walk->path->str, walk->path->len));
  } else {
    visitor->file(visitor->user, walk->path->str, &identity);
  }
}

static void walk_entries(Walk *walk, DIR *entries, gsize base) {
  int folder = dirfd(entries);
  const struct dirent *entry;
  while ((entry = readdir(entries))) {
    if (entry->d_name[0] == '.') {
      remove_if_left_over(walk, folder, entry->d_name);
      continue;
    }
    g_string_truncate(walk->path, base);
    g_string_append(walk->path, entry->d_name);
    look_at(walk, folder, base, entry->d_type);
  }
}

static void report_unreadable(const Walk *walk, const char *folder, int error) {
  /* A folder that went away, or became something else, since it was listed is no trouble. */
  if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
    return;
  }
  g_autofree char *reason = g_strdup_printf("could not be read (%s)", g_strerror(error));
  const FileIdentity none = {0};
  walk->visitor->trouble(walk->visitor->user, folder, &none, reason);
}

/* path is empty for the top folder. */
static void walk_folder(Walk *walk, const char *path) {
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int fd = *path ? beneath_open(walk->root, path, flags) : openat(walk->root, ".", flags);
  DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
  if (!entries) {
    int error = errno;
    if (fd >= 0) {
      close(fd);
    }
    report_unreadable(walk, *path ? path : ".", error);
    return;
  }
  g_string_assign(walk->path, path);
  if (*path) {
    g_string_append_c(walk->path, '/');
  }
  walk_entries(walk, entries, walk->path->len);
  closedir(entries);
}

void listing_walk(int root, const ListingVisitor *visitor) {
  Walk walk = {
      .root = root,
      .tick = file_tick(),
      .visitor = visitor,
      .folders = g_ptr_array_new(),
      .path = g_string_sized_new(256),
  };
  g_ptr_array_add(walk.folders, g_strdup(""));
  while (walk.folders->len > 0) {
    g_autofree char *path = g_ptr_array_steal_index(walk.folders, walk.folders->len - 1);
    walk_folder(&walk, path);
  }
  g_ptr_array_unref(walk.folders);
  g_string_free(walk.path, TRUE);
}
