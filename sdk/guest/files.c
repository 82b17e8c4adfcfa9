/* SPDX-License-Identifier: Apache-2.0 */
/* files.c: reading and writing one file below a folder. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "temporary.h"
#include "worker.h"

#define PIECE (128u * 1024u)

struct place {
  char root[PATH_MAX];
  char path[PATH_MAX];     /* below root, plain */
  char full[2 * PATH_MAX]; /* as it was asked for */
};

static int copy_field(struct guest_reader *parameters, char to[PATH_MAX]) {
  size_t length = 0;
  const char *bytes = guest_read_bytes(parameters, &length);
  if (parameters->bad || length >= PATH_MAX || memchr(bytes, '\0', length)) {
    return -1;
  }
  memcpy(to, bytes, length);
  to[length] = '\0';
  return 0;
}

/* One status and text for whatever keeps a file from being opened. */
static void refuse(struct worker *worker, const struct place *place, int number) {
  const char *full = place->full;
  switch (number) {
  case EXDEV:
  case ELOOP:
    worker_fail(worker, SANDHOST_INVALID, "Path %s is outside the sandbox working directory", full);
    break;
  case ENOENT:
  case ENOTDIR:
    worker_fail(worker, SANDHOST_NOT_FOUND, "%s: %s", full, strerror(number));
    break;
  case EACCES:
  case EPERM:
    worker_fail(worker, SANDHOST_DENIED, "%s: %s", full, strerror(number));
    break;
  case ENOSPC:
  case EDQUOT:
    worker_fail(worker, SANDHOST_LIMIT, "%s: %s", full, strerror(number));
    break;
  case ENOMEM:
    worker_fail(worker, SANDHOST_NO_MEMORY, "%s: %s", full, strerror(number));
    break;
  case EBADFD:
    worker_fail(worker, SANDHOST_INVALID, "%s is not a regular file", full);
    break;
  default:
    worker_fail(worker, SANDHOST_INVALID, "%s: %s", full, strerror(number));
  }
}

/* Takes . and .. and empty components out of a path. -1: it leads out, or to the root itself. */
static int normalise(char *path) {
  char *to = path;
  for (const char *at = path; *at;) {
    size_t length = strcspn(at, "/");
    if (length == 2 && at[0] == '.' && at[1] == '.') {
      if (to == path) {
        return -1;
      }
      do {
        to--;
      } while (to > path && *to != '/');
    } else if (length > 0 && !(length == 1 && at[0] == '.')) {
      if (to > path) {
        *to++ = '/';
      }
      memmove(to, at, length);
      to += length;
    }
    at += length + (at[length] == '/');
  }
  *to = '\0';
  return to == path ? -1 : 0;
}

/* 0; -1 with the worker failed. */
static int read_place(struct worker *worker, struct guest_reader *parameters,
                      struct place *ret_place) {
  if (copy_field(parameters, ret_place->root) < 0 || copy_field(parameters, ret_place->path) < 0) {
    worker_fail(worker, SANDHOST_INVALID, "the request makes no sense");
    return -1;
  }
  size_t slashes = strspn(ret_place->path, "/");
  snprintf(ret_place->full, sizeof ret_place->full, "%s/%s", ret_place->root,
           ret_place->path + slashes);
  if (normalise(ret_place->path) < 0) {
    refuse(worker, ret_place, EXDEV);
    return -1;
  }
  return 0;
}

static int is_regular(int fd, int *ret_number) {
  struct stat facts;
  if (fstat(fd, &facts) < 0) {
    *ret_number = errno;
    return 0;
  }
  *ret_number = S_ISDIR(facts.st_mode) ? EISDIR : EBADFD;
  return S_ISREG(facts.st_mode);
}

/* The regular file at a place, open for reading; -1 with errno, EBADFD for what is none. */
static int open_regular(const struct place *place) {
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC; /* no FIFO holds us up */
  int number = 0;
  int root = beneath_root(place->root);
  if (root < 0) {
    return -1;
  }
  /* Without a root, any link may lead anywhere. */
  int fd = *place->root ? beneath_open(root, place->path, flags) : openat(root, place->path, flags);
  number = fd < 0 ? errno : 0;
  close(root);
  if (fd >= 0 && !is_regular(fd, &number)) {
    close(fd);
    fd = -1;
  }
  errno = number == ENXIO ? EBADFD : number; /* a socket */
  return fd;
}

void file_read(struct worker *worker, struct guest_reader *parameters) {
  struct place place;
  if (read_place(worker, parameters, &place) < 0) {
    return;
  }
  int fd = open_regular(&place);
  if (fd < 0) {
    refuse(worker, &place, errno);
    return;
  }
  unsigned char *bytes = malloc(PIECE);
  ssize_t count = bytes ? 1 : -1;
  while (count > 0) {
    count = read(fd, bytes, PIECE);
    if (count > 0 && worker_write(worker, bytes, (size_t)count) < 0) {
      break;
    }
  }
  if (count == 0) {
    worker_done(worker, SANDHOST_OK, NULL);
  } else if (count > 0) {
    worker_done(worker, SANDHOST_CANCELLED, "cancelled");
  } else {
    refuse(worker, &place, errno);
  }
  free(bytes);
  close(fd);
}

/* Takes the whole content into a temporary file. 0; -1 with errno, ECANCELED when there was no end.
 * */
static int receive_into(struct worker *worker, int fd) {
  unsigned char *bytes = malloc(PIECE);
  ssize_t count = 0;
  if (!bytes) {
    return -1;
  }
  while ((count = worker_read(worker, bytes, PIECE)) > 0) {
    if (temporary_write(fd, bytes, (size_t)count) < 0) {
      int saved = errno;
      free(bytes);
      errno = saved;
      return -1;
    }
  }
  free(bytes);
  if (count < 0) {
    errno = ECANCELED;
  }
  return count < 0 ? -1 : 0;
}

static int write_below(struct worker *worker, int folder, const char *name, mode_t mode) {
  struct temporary temporary;
  struct stat facts;
  if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(facts.st_mode)) {
    errno = S_ISLNK(facts.st_mode) ? ELOOP : S_ISDIR(facts.st_mode) ? EISDIR : EBADFD;
    return -1;
  }
  if (temporary_make(&temporary, folder) < 0) {
    return -1;
  }
  if (receive_into(worker, temporary.fd) < 0 || temporary_place(&temporary, name, mode) < 0) {
    int saved = errno;
    temporary_drop(&temporary);
    errno = saved;
    return -1;
  }
  return 0;
}

/* The folder that a file is to be in: by links where they stay below root, made where it is
 * missing. */
static int open_parent(int root, const char *parent) {
  int found = *parent ? beneath_open(root, parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  return found >= 0 ? found : beneath_make_folder(root, parent);
}

/* 0, or -1 with errno. Cuts the path apart. */
static int write_at(struct worker *worker, struct place *place, mode_t mode) {
  char *slash = strrchr(place->path, '/');
  const char *name = slash ? slash + 1 : place->path;
  if (slash) {
    *slash = '\0';
  }
  int root = beneath_root(place->root);
  int folder = root < 0 ? -1 : open_parent(root, slash ? place->path : "");
  int failed = folder < 0 || write_below(worker, folder, name, mode) < 0;
  int number = errno;
  if (folder >= 0) {
    close(folder);
  }
  if (root >= 0) {
    close(root);
  }
  errno = number;
  return failed ? -1 : 0;
}

void file_write(struct worker *worker, struct guest_reader *parameters) {
  struct place place;
  if (read_place(worker, parameters, &place) < 0) {
    return;
  }
  mode_t mode = (mode_t)(guest_read_u32(parameters) & 0777);
  if (parameters->bad) {
    worker_fail(worker, SANDHOST_INVALID, "the request makes no sense");
  } else if (write_at(worker, &place, mode) == 0) {
    worker_done(worker, SANDHOST_OK, NULL);
  } else if (errno == ECANCELED) {
    worker_done(worker, SANDHOST_CANCELLED, "cancelled");
  } else {
    refuse(worker, &place, errno);
  }
}
