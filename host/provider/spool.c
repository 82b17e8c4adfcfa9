/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c: most files are small and never touch a disk; a large one is bounded and has no name to leave behind. */
#include "provider/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_IN_MEMORY (1u << 20)
#define MAX_BYTES (G_GUINT64_CONSTANT(4) << 30)
#define PIECE (64u << 10)

struct Spool {
  GByteArray *memory; /* everything, as long as fd is -1 */
  int fd;
  guint64 size;
  const char *failure;
};

Spool *spool_new(void) {
  Spool *spool = g_new0(Spool, 1);
  spool->memory = g_byte_array_new();
  spool->fd = -1;
  return spool;
}

void spool_free(Spool *spool) {
  if (!spool) {
    return;
  }
  g_byte_array_unref(spool->memory);
  if (spool->fd >= 0) {
    close(spool->fd);
  }
  g_free(spool);
}

static int open_nameless(void) {
  const char *dir = g_get_tmp_dir();
  int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) {
    return fd;
  }
  g_autofree char *name = g_build_filename(dir, "sandhost-XXXXXX", NULL);
  fd = mkostemp(name, O_CLOEXEC);
  if (fd >= 0) {
    unlink(name);
  }
  return fd;
}

static gboolean write_all(int fd, const guint8 *data, gsize length) {
  while (length > 0) {
    ssize_t count = write(fd, data, length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return FALSE;
    }
    data += count;
    length -= (gsize)count;
  }
  return TRUE;
}

static gboolean add(Spool *spool, const void *data, gsize length) {
  if (spool->fd < 0 && spool->memory->len + length <= MAX_IN_MEMORY) {
    g_byte_array_append(spool->memory, data, (guint)length);
    return TRUE;
  }
  if (spool->fd < 0) {
    spool->fd = open_nameless();
    if (spool->fd < 0 || !write_all(spool->fd, spool->memory->data, spool->memory->len)) {
      return FALSE;
    }
    g_byte_array_set_size(spool->memory, 0);
  }
  return write_all(spool->fd, data, length);
}

static int32_t take(void *user, const void *data, size_t length) {
  Spool *spool = user;
  if (length > MAX_BYTES - spool->size) {
    spool->failure = "a file is too large";
  } else if (!add(spool, data, length)) {
    spool->failure = "no room for a temporary file";
  } else {
    spool->size += length;
  }
  return spool->failure ? SANDHOST_LIMIT : SANDHOST_OK;
}

struct sandhost_sink spool_sink(Spool *spool) {
  return (struct sandhost_sink){.size = sizeof(struct sandhost_sink), .user = spool, .write = take};
}

guint64 spool_size(const Spool *spool) {
  return spool->size;
}

const char *spool_failure(const Spool *spool) {
  return spool->failure;
}

gboolean spool_read_back(Spool *spool, gboolean (*put)(void *user, const void *data, gsize length),
                         void *user) {
  if (spool->fd < 0) {
    return spool->memory->len == 0 || put(user, spool->memory->data, spool->memory->len);
  }
  guint8 piece[PIECE];
  for (guint64 at = 0; at < spool->size;) {
    gsize want = (gsize)MIN(spool->size - at, sizeof piece);
    ssize_t count = pread(spool->fd, piece, want, (off_t)at);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0 || !put(user, piece, (gsize)count)) {
      return FALSE;
    }
    at += (guint64)count;
  }
  return TRUE;
}
