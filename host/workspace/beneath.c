/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.c: openat2 where the kernel has it, one component after another where it has not. */
#include "workspace/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND G_GINT64_CONSTANT(1000000000)

/* ---- Identity -------------------------------------------------------------------------------- */

static gint64 nanoseconds(const struct timespec *time) {
  return (gint64)time->tv_sec * SECOND + time->tv_nsec;
}

FileIdentity file_identity_of(const struct stat *status) {
  return (FileIdentity){
      .device = (guint64)status->st_dev,
      .inode = (guint64)status->st_ino,
      .bytes = (guint64)status->st_size,
      .mtime = nanoseconds(&status->st_mtim),
      .ctime = nanoseconds(&status->st_ctim),
  };
}

gboolean file_identity_equal(const FileIdentity *a, const FileIdentity *b) {
  return a->mtime == b->mtime && a->ctime == b->ctime && a->bytes == b->bytes &&
         a->inode == b->inode && a->device == b->device;
}

gint64 file_tick(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return nanoseconds(&now);
}

gboolean file_identity_is_settled(const FileIdentity *identity, gint64 tick) {
  gint64 latest = MAX(identity->mtime, identity->ctime);
  /* Whole seconds in both come from a file system that keeps no more; the coarsest one keeps two
   * seconds. */
  gboolean coarse = identity->mtime % SECOND == 0 && identity->ctime % SECOND == 0;
  return latest < (coarse ? tick - 2 * SECOND : tick);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static gboolean is_link(int folder, const char *name) {
  struct stat status;
  return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

/* One component. O_DIRECTORY turns the ELOOP of a link into ENOTDIR, which is turned back. */
static int open_component(int folder, const char *name, int flags) {
  int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOTDIR && is_link(folder, name)) {
    errno = ELOOP;
  }
  return fd;
}

int beneath_open_by_hand(int root, const char *path, int flags) {
  char name[NAME_MAX + 1];
  int folder = root;
  for (;;) {
    const char *slash = strchr(path, '/');
    gsize length = slash ? (gsize)(slash - path) : strlen(path);
    int next = -1;
    if (length > NAME_MAX) {
      errno = ENAMETOOLONG;
    } else if (length == 0 || (path[0] == '.' && path[1] == '.' && length == 2)) {
      errno = EXDEV;
    } else {
      memcpy(name, path, length);
      name[length] = '\0';
      next = open_component(folder, name, slash ? O_PATH | O_DIRECTORY : flags);
    }
    if (folder != root) {
      int saved = errno;
      close(folder);
      errno = saved;
    }
    if (next < 0 || !slash) {
      return next;
    }
    folder = next;
    path = slash + 1;
  }
}

int beneath_open(int root, const char *path, int flags) {
  struct open_how how = {
      .flags = (guint)(flags | O_CLOEXEC),
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
  };
  long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
  if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN)) {
    /* EPERM comes from filters that do not know the call; EAGAIN from renames beside it. */
    return beneath_open_by_hand(root, path, flags);
  }
  return (int)fd;
}

/* ---- Reading --------------------------------------------------------------------------------- */

void file_content_clear(FileContent *content) {
  g_clear_pointer(&content->data, g_free);
  content->capacity = 0;
  content->length = 0;
}

static gboolean reserve(FileContent *content, gsize capacity) {
  if (capacity <= content->capacity) {
    return TRUE;
  }
  gpointer data = g_try_realloc(content->data, capacity);
  if (!data) {
    errno = ENOMEM;
    return FALSE;
  }
  content->data = data;
  content->capacity = capacity;
  return TRUE;
}

static FileRead failure_of_errno(void) {
  switch (errno) {
  case ENOENT:
  case ENOTDIR:
  case ENXIO: /* a socket or a pipe */
  case ENODEV:
    return FILE_READ_GONE;
  case ELOOP:
  case EXDEV:
    return FILE_READ_LINK;
  default:
    return FILE_READ_FAILED;
  }
}

/* Reads until length bytes or the end. */
static gboolean read_upto(int fd, FileContent *content, gsize length) {
  content->length = 0;
  while (content->length < length) {
    ssize_t count = read(fd, content->data + content->length, length - content->length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return FALSE;
    }
    if (count == 0) {
      break;
    }
    content->length += (gsize)count;
  }
  return TRUE;
}

static FileRead open_regular(int root, const char *path, int *ret_fd, FileIdentity *ret_identity) {
  /* O_NONBLOCK: a pipe that took the file's place must not block. */
  int fd = beneath_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (fd < 0) {
    return failure_of_errno();
  }
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return FILE_READ_GONE;
  }
  *ret_fd = fd;
  *ret_identity = file_identity_of(&status);
  return FILE_READ_DONE;
}

/* Reads what fd holds, whose identity is in content. */
static FileRead read_whole(int fd, guint64 max_bytes, FileContent *content) {
  if (content->identity.bytes > max_bytes || content->identity.bytes >= G_MAXSSIZE) {
    return FILE_READ_TOO_LARGE;
  }
  /* One byte more than there should be tells whether it has grown. */
  gsize wanted = (gsize)content->identity.bytes + 1;
  struct stat after;
  if (!reserve(content, wanted) || !read_upto(fd, content, wanted) || fstat(fd, &after) != 0) {
    return FILE_READ_FAILED;
  }
  FileIdentity identity = file_identity_of(&after);
  /* A change that left the size alone is taken as read: the older identity makes it looked at
   * again. */
  return content->length == content->identity.bytes && content->length == identity.bytes
             ? FILE_READ_DONE
             : FILE_READ_CHANGED;
}

static FileRead read_once(int root, const char *path, guint64 max_bytes, FileContent *content) {
  int fd = -1;
  FileRead outcome = open_regular(root, path, &fd, &content->identity);
  if (outcome != FILE_READ_DONE) {
    return outcome;
  }
  outcome = read_whole(fd, max_bytes, content);
  int saved = errno;
  close(fd);
  errno = saved;
  return outcome;
}

FileRead file_read(int root, const char *path, guint64 max_bytes, FileContent *content) {
  FileRead outcome = read_once(root, path, max_bytes, content);
  return outcome == FILE_READ_CHANGED ? read_once(root, path, max_bytes, content) : outcome;
}

FileRead file_read_beginning(int root, const char *path, gsize length, FileContent *content) {
  int fd = -1;
  FileRead outcome = open_regular(root, path, &fd, &content->identity);
  if (outcome != FILE_READ_DONE) {
    return outcome;
  }
  if (!reserve(content, length) || !read_upto(fd, content, length)) {
    outcome = FILE_READ_FAILED;
  }
  int saved = errno;
  close(fd);
  errno = saved;
  return outcome;
}
