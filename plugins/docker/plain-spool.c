/* SPDX-License-Identifier: Apache-2.0 */
/* plain-spool.c: a nameless file for content that is on its way. */
#include "plain.h"

#include "failure.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECE ((size_t)128 * 1024)

void spool_clear(struct spool *spool) {
  if (spool->fd >= 0) {
    close(spool->fd);
  }
  *spool = (struct spool)SPOOL_NONE;
}

static int open_spool(void) {
  int fd = open(g_get_tmp_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  /* cppcheck-suppress resourceLeak; it is the caller's */
  return fd >= 0 ? fd : memfd_create("sandhost-spool", MFD_CLOEXEC);
}

int spool_append(struct spool *spool, const void *data, size_t length) {
  const char *at = data;
  if (spool->fd < 0 && (spool->fd = open_spool()) < 0) {
    return -1;
  }
  while (length > 0) {
    ssize_t count = pwrite(spool->fd, at, length, (off_t)spool->length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return -1;
    }
    at += count;
    length -= (size_t)count;
    spool->length += (uint64_t)count;
  }
  return 0;
}

int32_t spool_fill(struct spool *spool, struct sandhost_sandbox *sandbox,
                   struct sandhost_call *call, const struct sandhost_source *source) {
  g_autofree char *piece = g_malloc(PIECE);
  for (;;) {
    int64_t count = source->read(source->user, piece, PIECE);
    if (count == 0) {
      return SANDHOST_OK;
    }
    if (count < 0 || count > (int64_t)PIECE) {
      return fail_call(sandbox->host, call, SANDHOST_CANCELLED, "the source of the file stopped");
    }
    if (spool_append(spool, piece, (size_t)count) < 0) {
      return fail_call_errno(sandbox->host, call, SANDHOST_LIMIT, errno,
                             "cannot keep a file for the engine in %s", g_get_tmp_dir());
    }
    if (contract_now() >= sandbox->host->deadline(call)) {
      return fail_call(sandbox->host, call, SANDHOST_TIMEOUT, "the deadline passed");
    }
    if (sandbox->host->cancelled(call)) {
      return fail_call(sandbox->host, call, SANDHOST_CANCELLED, "cancelled");
    }
  }
}

ssize_t spool_read(const struct spool *spool, uint64_t offset, void *buffer, size_t length) {
  ssize_t count = 0;
  if (spool->fd < 0 || offset >= spool->length) {
    return 0;
  }
  do {
    count = pread(spool->fd, buffer, (size_t)MIN((uint64_t)length, spool->length - offset),
                  (off_t)offset);
  } while (count < 0 && errno == EINTR);
  return count;
}
