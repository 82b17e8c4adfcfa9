/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.c: the filter as bwrap takes it. Its rules are in filter/make-filter.c, which runs when this is built. */
#include "seccomp.h"

#include "bubblewrap-filter.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

int seccomp_filter_new(void) {
  int fd = memfd_create("sandhost-seccomp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return -errno;
  }
  ssize_t written = write(fd, filter_program, sizeof filter_program);
  int error = written < 0 ? -errno : written < (ssize_t)sizeof filter_program ? -ENOSPC : 0;
  if (error == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0) {
    error = -errno;
  }
  if (error < 0) {
    close(fd);
    return error;
  }
  return fd;
}

int seccomp_filter_open(int filter_fd) {
  char path[32];
  g_snprintf(path, sizeof path, "/proc/self/fd/%d", filter_fd);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  return fd;
}
