/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.c: openat2 where there is one, else a walk that follows no link. */
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -1 with ENOSYS where the kernel, or a filter in front of it, does not have it. */
static int try_openat2(int folder, const char *path, int flags, unsigned long long resolve) {
  struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .resolve = resolve};
  int fd = -1;
  for (int tries = 0; tries < 16; tries++) {
    fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) { /* EAGAIN: something on the way was renamed meanwhile */
      break;
    }
  }
  if (fd < 0 && errno == EPERM) {
    errno = ENOSYS;
  }
  return fd;
}

static int close_with(int fd, int number) {
  close(fd);
  errno = number;
  return -1;
}

int beneath_root(const char *root) {
  return open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int beneath_is_plain(const char *path) {
  if (*path == '\0') {
    return 0;
  }
  for (;;) {
    size_t length = strcspn(path, "/");
    if (length == 0 || (length == 1 && path[0] == '.') ||
        (length == 2 && path[0] == '.' && path[1] == '.')) {
      return 0;
    }
    if (path[length] == '\0') {
      return 1;
    }
    path += length + 1;
  }
}

/* One folder deeper, by no link. ELOOP: it is one. Takes the descriptor. */
static int step(int folder, const char *name, int make) {
  struct stat facts;
  if (make && mkdirat(folder, name, 0755) < 0 && errno != EEXIST) {
    return close_with(folder, errno);
  }
  int next = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int number = errno;
  if (next < 0 && number == ENOTDIR && fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISLNK(facts.st_mode)) {
    number = ELOOP;
  }
  if (next < 0) {
    return close_with(folder, number);
  }
  close(folder);
  return next;
}

/* The folder of the last component, which is *ret_last; every other one is stepped into. */
static int walk(int root, const char *path, int make, const char **ret_last) {
  char name[NAME_MAX + 1];
  int folder = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  while (folder >= 0) {
    size_t length = strcspn(path, "/");
    if (path[length] == '\0') {
      break;
    }
    if (length > NAME_MAX) {
      return close_with(folder, ENAMETOOLONG);
    }
    memcpy(name, path, length);
    name[length] = '\0';
    folder = step(folder, name, make);
    path += length + 1;
  }
  *ret_last = path;
  return folder;
}

int beneath_open(int root, const char *path, int flags) {
  const char *last = NULL;
  const unsigned long long links = flags & O_NOFOLLOW ? RESOLVE_NO_SYMLINKS : RESOLVE_NO_MAGICLINKS;
  int fd = try_openat2(root, path, flags, RESOLVE_BENEATH | links);
  if (fd >= 0 || errno != ENOSYS) {
    return fd;
  }
  if (!beneath_is_plain(path)) {
    errno = EXDEV;
    return -1;
  }
  int folder = walk(root, path, 0, &last);
  if (folder < 0) {
    return -1;
  }
  fd = openat(folder, last, flags | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    return close_with(folder, errno);
  }
  close(folder);
  return fd;
}

int beneath_make_folder(int root, const char *path) {
  const char *last = NULL;
  if (*path == '\0') {
    return openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  int fd = try_openat2(root, path, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
  if (fd >= 0 || (errno != ENOSYS && errno != ENOENT)) {
    return fd;
  }
  int folder = walk(root, path, 1, &last);
  return folder < 0 ? -1 : step(folder, last, 1);
}
