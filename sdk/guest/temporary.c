/* SPDX-License-Identifier: Apache-2.0 */
/* temporary.c: written, then renamed: a reader sees the old file or the new one. */
#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int temporary_make(struct temporary *ret_temporary, int folder) {
  static atomic_uint number;
  for (int tries = 0; tries < 1000; tries++) {
    ret_temporary->folder = folder;
    snprintf(ret_temporary->name, sizeof ret_temporary->name, ".sandhost-%d-%u", (int)getpid(),
             atomic_fetch_add(&number, 1));
    ret_temporary->fd = openat(folder, ret_temporary->name,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (ret_temporary->fd >= 0 || errno != EEXIST) {
      break;
    }
  }
  return ret_temporary->fd < 0 ? -1 : 0;
}

int temporary_write(int fd, const void *bytes, size_t length) {
  const char *at = bytes;
  while (length > 0) {
    ssize_t count = write(fd, at, length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return -1;
    }
    at += count;
    length -= (size_t)count;
  }
  return 0;
}

int temporary_place(struct temporary *temporary, const char *name, mode_t mode) {
  if ((mode != 0644 && fchmod(temporary->fd, mode) < 0) ||
      renameat(temporary->folder, temporary->name, temporary->folder, name) < 0) {
    return -1;
  }
  close(temporary->fd);
  temporary->fd = -1;
  return 0;
}

void temporary_drop(struct temporary *temporary) {
  if (temporary->fd >= 0) {
    close(temporary->fd);
    temporary->fd = -1;
  }
  unlinkat(temporary->folder, temporary->name, 0);
}
