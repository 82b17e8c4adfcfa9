/* SPDX-License-Identifier: Apache-2.0 */
/* files.c: one file in, one file out. No path leads out of the working directory, neither by .. nor by a link. */
#include "example.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Paths ---------------------------------------------------------------------------------------------------- */

/* The part of a path below the working directory, of plain components only; NULL for any other path. */
static const char *path_below(const struct sandhost_sandbox *sandbox, struct sandhost_path path) {
  size_t length = strcmp(sandbox->working_dir, "/") == 0 ? 0 : strlen(sandbox->working_dir);
  if (path.length <= length + 1 || memcmp(path.data, sandbox->working_dir, length) != 0 ||
      path.data[length] != '/') {
    return NULL;
  }
  const char *below = path.data + length + 1; /* a NUL follows every path */
  for (const char *part = below;; part++) {
    size_t size = strcspn(part, "/");
    if (size == 0 || size > NAME_MAX || (size == 1 && part[0] == '.') ||
        (size == 2 && memcmp(part, "..", 2) == 0)) {
      return NULL;
    }
    part += size;
    if (*part == '\0') {
      return below;
    }
  }
}

/* Opens the folder that holds a file, one component at a time and without following links. make: missing folders are
 * made. Returns -1 with errno; name gets the last component. */
static int open_parent(const struct sandhost_sandbox *sandbox, const char *below, int make,
                       char name[NAME_MAX + 1]) {
  int dir = open(sandbox->working_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (dir >= 0) {
    size_t length = strcspn(below, "/");
    memcpy(name, below, length);
    name[length] = '\0';
    if (below[length] == '\0') {
      return dir;
    }
    if (make) {
      mkdirat(dir, name, 0755); /* if that fails so does openat */
    }
    int next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(dir);
    errno = error;
    dir = next;
    below += length + 1;
  }
  return -1;
}

/* ---- Reading -------------------------------------------------------------------------------------------------- */

/* Returns a descriptor of the regular file, or -1 with errno: EINVAL when it is something else. */
static int open_file(const struct sandhost_sandbox *sandbox, const char *below) {
  char name[NAME_MAX + 1];
  struct stat status;
  int dir = open_parent(sandbox, below, 0, name);
  if (dir < 0) {
    return -1;
  }
  /* O_NONBLOCK: a FIFO must not hold the call up before it is refused. */
  int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  int error = errno;
  close(dir);
  if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
    error = EINVAL;
    close(fd);
    fd = -1;
  }
  errno = error;
  return fd;
}

int32_t example_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                          struct sandhost_path path, const struct sandhost_sink *sink) {
  const char *below = path_below(sandbox, path);
  int32_t answer = check_alive(call, sandbox);
  if (answer != SANDHOST_OK) {
    return answer;
  }
  if (!below) {
    return fail(call, SANDHOST_INVALID, "the path is outside the working directory", 0);
  }
  int fd = open_file(sandbox, below);
  if (fd < 0) {
    return fail(call, status_of(errno), "could not open the file", errno);
  }
  char buffer[65536];
  ssize_t count = 0;
  while (answer == SANDHOST_OK && (count = read(fd, buffer, sizeof buffer)) != 0) {
    if (count < 0) {
      answer = fail(call, SANDHOST_INTERNAL, "could not read the file", errno);
    } else if (sink->write(sink->user, buffer, (size_t)count) != SANDHOST_OK) {
      answer = fail(call, SANDHOST_CANCELLED, "stopped while reading", 0);
    } else {
      answer = check_call(call); /* the sink may have stood still for long */
    }
  }
  close(fd);
  return answer;
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

/* All that the source gives, as long as the call is not over. Returns a status. */
static int32_t copy_from(struct sandhost_call *call, const struct sandhost_source *source, int fd) {
  char buffer[65536];
  int64_t count = 0;
  while ((count = source->read(source->user, buffer, sizeof buffer)) > 0) {
    for (int64_t done = 0; done < count;) {
      ssize_t written = write(fd, buffer + done, (size_t)(count - done));
      if (written < 0 && errno != EINTR) {
        return fail(call, status_of(errno), "could not write the file", errno);
      }
      done += written > 0 ? written : 0;
    }
    int32_t status = check_call(call);
    if (status != SANDHOST_OK) {
      return status;
    }
  }
  return count < 0 ? fail(call, SANDHOST_CANCELLED, "stopped while writing", 0) : SANDHOST_OK;
}

/* Readers see the old content or the new: the file gets its name when it is whole. */
static int32_t replace(struct sandhost_call *call, int dir, const char *name, uint32_t mode,
                       const struct sandhost_source *source) {
  struct stat old;
  char temporary[64];
  if (fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(old.st_mode)) {
    /* a link is not followed, and not written over either */
    return fail(call, SANDHOST_INVALID, "there is something else than a file", 0);
  }
  snprintf(temporary, sizeof temporary, ".example-%lld", (long long)now());
  int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return fail(call, status_of(errno), "could not make the file", errno);
  }
  int32_t status = copy_from(call, source, fd);
  if (status == SANDHOST_OK &&
      (fchmod(fd, mode & 0777) != 0 || renameat(dir, temporary, dir, name) != 0)) {
    status = fail(call, status_of(errno), "could not put the file into its place", errno);
  }
  close(fd);
  if (status != SANDHOST_OK) {
    unlinkat(dir, temporary, 0);
  }
  return status;
}

int32_t example_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                           struct sandhost_path path, uint32_t mode,
                           const struct sandhost_source *source) {
  const char *below = path_below(sandbox, path);
  int32_t answer = check_alive(call, sandbox);
  if (answer != SANDHOST_OK) {
    return answer;
  }
  if (!below) {
    return fail(call, SANDHOST_INVALID, "the path is outside the working directory", 0);
  }
  char name[NAME_MAX + 1];
  int dir = open_parent(sandbox, below, 1, name);
  if (dir < 0) {
    return fail(call, status_of(errno), "could not open the folder", errno);
  }
  answer = replace(call, dir, name, mode, source);
  close(dir);
  return answer;
}
