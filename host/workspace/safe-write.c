/* SPDX-License-Identifier: Apache-2.0 */
/* safe-write.c: a file without a name or with a temporary one, then one step that gives it its own and fails when the
 * target is not what was looked at. */
#include "workspace/safe-write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "workspace/listing.h"

#define TEMPORARY_SIZE (sizeof LISTING_TEMPORARY_PREFIX + LISTING_TEMPORARY_DIGITS)
G_STATIC_ASSERT(LISTING_TEMPORARY_DIGITS == 2 * sizeof(guint64));
#define NAMELESS_FAILED (-1) /* neither done nor an error: it needs a name from the beginning */

SafeWriter safe_writer_for(int root) {
  return (SafeWriter){.root = root, .folder_fd = -1};
}

static void forget_folder(SafeWriter *writer) {
  if (writer->folder_fd >= 0 && writer->folder_fd != writer->root) {
    close(writer->folder_fd);
  } else if (writer->locked) {
    flock(writer->root, LOCK_UN);
  }
  writer->folder_fd = -1;
  writer->locked = FALSE;
  g_clear_pointer(&writer->folder, g_free);
}

void safe_writer_clear(SafeWriter *writer) {
  forget_folder(writer);
}

static char *reason_of(int error) {
  switch (error) {
  case ELOOP:
  case EXDEV:
    return g_strdup(SAFE_WRITE_LINK);
  case ENOTDIR:
    return g_strdup("a file of the workspace is where its folder would be; not written");
  case EISDIR:
    return g_strdup("a folder of the workspace has this name; not written");
  default:
    return g_strdup_printf("could not be written (%s)", g_strerror(error));
  }
}

/* ---- What stands there ----------------------------------------------------------------------- */

char *safe_target_look(int root, const char *path, SafeTarget *ret_target) {
  int fd = beneath_open(root, path, O_PATH | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) {
    *ret_target = (SafeTarget){0};
    return NULL;
  }
  if (fd < 0) {
    return reason_of(errno);
  }
  struct stat status;
  int error = fstat(fd, &status) == 0 ? 0 : errno;
  close(fd);
  if (error) {
    return reason_of(error);
  }
  if (S_ISLNK(status.st_mode)) {
    return reason_of(ELOOP);
  }
  if (S_ISDIR(status.st_mode)) {
    return reason_of(EISDIR);
  }
  if (!S_ISREG(status.st_mode)) {
    return g_strdup("not a regular file in the workspace; not written");
  }
  *ret_target = (SafeTarget){
      .exists = TRUE,
      .identity = file_identity_of(&status),
      .mode = status.st_mode & 0777,
      .owner = status.st_uid,
      .group = status.st_gid,
  };
  return NULL;
}

/* ---- The folder ------------------------------------------------------------------------------ */

/* Opens every component of folder, making the missing ones. A descriptor, or -1 with errno. */
static int make_folders(int root, const char *folder) {
  int at = root;
  g_auto(GStrv) names = g_strsplit(folder, "/", -1);
  for (gsize i = 0; names[i]; i++) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    int next = beneath_open(at, names[i], flags);
    if (next < 0 && errno == ENOENT && (mkdirat(at, names[i], 0755) == 0 || errno == EEXIST)) {
      next = beneath_open(at, names[i], flags);
    }
    int error = errno;
    if (at != root) {
      close(at);
    }
    if (next < 0) {
      errno = error;
      return -1;
    }
    at = next;
  }
  return at;
}

/* Makes writer->folder_fd the folder of path. 0 or an errno. */
static int enter_folder(SafeWriter *writer, const char *path, const char **ret_name) {
  const char *slash = strrchr(path, '/');
  g_autofree char *folder = g_strndup(path, slash ? (gsize)(slash - path) : 0);
  if (writer->folder_fd < 0 || strcmp(writer->folder, folder) != 0) {
    forget_folder(writer);
    int fd = slash ? make_folders(writer->root, folder) : writer->root;
    if (fd < 0) {
      return errno;
    }
    writer->folder_fd = fd;
    writer->folder = g_steal_pointer(&folder);
  }
  /* Who removes what was left over may have it for a moment: asked again with the next file. */
  writer->locked = writer->locked || flock(writer->folder_fd, LOCK_SH | LOCK_NB) == 0;
  *ret_name = slash ? slash + 1 : path;
  return 0;
}

/* ---- The file -------------------------------------------------------------------------------- */

static int write_all(int fd, const void *data, gsize length) {
  const char *at = data;
  while (length > 0) {
    ssize_t count = write(fd, at, length);
    if (count < 0 && errno != EINTR) {
      return errno;
    }
    if (count > 0) {
      at += count;
      length -= (gsize)count;
    }
  }
  return 0;
}

/* A file in the making. */
typedef struct {
  int folder; /* borrowed */
  int fd;
  char name[TEMPORARY_SIZE]; /* empty: it has none */
} Fresh;

/* Tries fresh hidden names until one is free. 0 or an errno. */
static int give_name(Fresh *fresh, int (*take)(Fresh *fresh)) {
  int error = EEXIST;
  for (guint attempt = 0; attempt < 100 && error == EEXIST; attempt++) {
    guint64 number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
      return EAGAIN;
    }
    g_snprintf(fresh->name, TEMPORARY_SIZE, LISTING_TEMPORARY_PREFIX "%016" G_GINT64_MODIFIER "x",
               number);
    error = take(fresh);
  }
  if (error) {
    fresh->name[0] = '\0';
  }
  return error;
}

static int create_named(Fresh *fresh) {
  fresh->fd = openat(fresh->folder, fresh->name,
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  return fresh->fd >= 0 ? 0 : errno;
}

static int link_as(const Fresh *fresh, const char *name) {
  char self[sizeof "/proc/self/fd/" + 11];
  g_snprintf(self, sizeof self, "/proc/self/fd/%d", fresh->fd);
  return linkat(AT_FDCWD, self, fresh->folder, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

static int link_named(Fresh *fresh) {
  return link_as(fresh, fresh->name);
}

static int fill(int fd, const void *data, gsize length, const SafeTarget *target) {
  int error = write_all(fd, data, length);
  if (error) {
    return error;
  }
  if (target->exists && (target->owner != geteuid() || target->group != getegid()) &&
      fchown(fd, target->owner, target->group) != 0 && errno != EPERM) {
    return errno;
  }
  return fchmod(fd, target->exists ? target->mode : 0644) == 0 ? 0 : errno;
}

/* Times of a renamed file change on some file systems, so the time of the content decides. */
static gboolean stands(int folder, const char *name, const SafeTarget *target) {
  struct stat status;
  if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return !target->exists && errno == ENOENT;
  }
  FileIdentity now = file_identity_of(&status);
  const FileIdentity *then = &target->identity;
  return target->exists && S_ISREG(status.st_mode) && now.device == then->device &&
         now.inode == then->inode && now.bytes == then->bytes && now.mtime == then->mtime;
}

/* For file systems without the flags of renameat2: a short moment is left between the look and the
 * rename. */
static int replace_plainly(int folder, const char *temporary, const char *name,
                           const SafeTarget *target) {
  if (!stands(folder, name, target)) {
    return EEXIST;
  }
  return renameat(folder, temporary, folder, name) == 0 ? 0 : errno;
}

static gboolean without_flags(int error) {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP;
}

/* Undoes an exchange: name gets back what temporary holds now. The one file that is ours is
 * removed. */
static void give_back(int folder, const char *temporary, const char *name) {
  if (renameat2(folder, temporary, folder, name, RENAME_EXCHANGE) == 0) {
    unlinkat(folder, temporary, 0);
  } else {
    /* Ours was removed already. */
    renameat2(folder, temporary, folder, name, RENAME_NOREPLACE);
  }
}

/* What stood there is looked at after it was taken away, so nothing can slip in between. 0, EEXIST
 * when it is not the target, or another errno. *ret_temporary: whether temporary is still to be
 * removed. */
static int exchange(int folder, const char *temporary, const char *name, const SafeTarget *target,
                    gboolean *ret_temporary) {
  if (renameat2(folder, temporary, folder, name, RENAME_EXCHANGE) != 0) {
    int error = errno;
    if (without_flags(error)) {
      error = replace_plainly(folder, temporary, name, target);
    }
    *ret_temporary = error != 0;
    return error == ENOENT ? EEXIST : error; /* ENOENT: it was removed meanwhile */
  }
  *ret_temporary = FALSE;
  if (!stands(folder, temporary, target)) {
    give_back(folder, temporary, name);
    return EEXIST;
  }
  unlinkat(folder, temporary, 0);
  return 0;
}

/* Leaves no temporary name, whatever happens. 0 or an errno; EEXIST: target does not stand there any more. */
static int rename_to(const Fresh *fresh, const char *name, const SafeTarget *target) {
  gboolean left = TRUE;
  int error = 0;
  if (target->exists) {
    error = exchange(fresh->folder, fresh->name, name, target, &left);
  } else if (renameat2(fresh->folder, fresh->name, fresh->folder, name, RENAME_NOREPLACE) != 0) {
    error = errno;
    if (without_flags(error)) {
      error = replace_plainly(fresh->folder, fresh->name, name, target);
    }
  }
  if (error && left) {
    unlinkat(fresh->folder, fresh->name, 0);
  }
  return error;
}

/* The same, or NAMELESS_FAILED. A file that is to stand in another's place needs a name to change with it. */
static int put_in_place(Fresh *fresh, const char *name, const SafeTarget *target) {
  if (fresh->name[0]) {
    return rename_to(fresh, name, target);
  }
  int error = target->exists ? give_name(fresh, link_named) : link_as(fresh, name);
  if (error) {
    return error == EEXIST ? error : NAMELESS_FAILED;
  }
  return target->exists ? rename_to(fresh, name, target) : 0;
}

/* 0, an errno or NAMELESS_FAILED. */
static int write_fresh(Fresh *fresh, const char *name, const void *data, gsize length,
                       const SafeTarget *target, struct stat *ret_status) {
  int error = fill(fresh->fd, data, length, target);
  if (!error) {
    error = put_in_place(fresh, name, target);
    fstat(fresh->fd, ret_status); /* after it has its name, which changes its ctime */
  } else if (fresh->name[0]) {
    unlinkat(fresh->folder, fresh->name, 0);
  }
  close(fresh->fd);
  return error;
}

static int write_nameless(const SafeWriter *writer, const char *name, const void *data,
                          gsize length, const SafeTarget *target, struct stat *ret_status) {
  Fresh fresh = {.folder = writer->folder_fd};
  fresh.fd =
      writer->named ? -1 : openat(writer->folder_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  return fresh.fd >= 0 ? write_fresh(&fresh, name, data, length, target, ret_status)
                       : NAMELESS_FAILED;
}

static int write_named(SafeWriter *writer, const char *name, const void *data, gsize length,
                       const SafeTarget *target, struct stat *ret_status) {
  Fresh fresh = {.folder = writer->folder_fd};
  int error = give_name(&fresh, create_named);
  if (error) {
    forget_folder(writer);
    return error;
  }
  writer->named = TRUE;
  return write_fresh(&fresh, name, data, length, target, ret_status);
}

char *safe_writer_write(SafeWriter *writer, const char *path, const void *data, gsize length,
                        const SafeTarget *target, FileIdentity *ret_identity) {
  const char *name = path;
  struct stat status = {0};
  int error = enter_folder(writer, path, &name);
  if (error) {
    return reason_of(error);
  }
  error = write_nameless(writer, name, data, length, target, &status);
  if (error == NAMELESS_FAILED) {
    error = write_named(writer, name, data, length, target, &status);
  }
  if (error) {
    return error == EEXIST ? g_strdup(SAFE_WRITE_CONFLICT) : reason_of(error);
  }
  *ret_identity = file_identity_of(&status);
  return NULL;
}
