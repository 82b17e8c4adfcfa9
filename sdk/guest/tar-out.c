/* SPDX-License-Identifier: Apache-2.0 */
/* tar-out.c: packs the named regular files below a folder into a tar stream. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "worker.h"

#define PIECE (128u * 1024u)
#define BLOCK (64 * 1024)
#define MOST_NAMES (16u << 20) /* bytes of names together */

static la_ssize_t write_stream(struct archive *tar, void *user, const void *bytes, size_t length) {
  (void)tar;
  return worker_write(user, bytes, length) < 0 ? -1 : (la_ssize_t)length;
}

/* All names, each ended by NUL. NULL: cancelled, or too much. */
static char *receive_names(struct worker *worker, size_t *ret_length) {
  char *names = NULL;
  size_t length = 0;
  size_t room = 0;
  for (;;) {
    if (room - length < PIECE) {
      char *grown = length < MOST_NAMES ? realloc(names, room + PIECE + length) : NULL;
      if (!grown) {
        free(names);
        return NULL;
      }
      names = grown;
      room += PIECE + length;
    }
    ssize_t count = worker_read(worker, names + length, room - length);
    if (count < 0) {
      free(names);
      return NULL;
    }
    if (count == 0) {
      *ret_length = length;
      return names;
    }
    length += (size_t)count;
  }
}

/* A file that shrinks under us is filled up with zeros: the stream stays well formed, and the host
 * compares hashes. */
static int pack_content(struct archive *tar, int fd, off_t left, unsigned char *bytes) {
  while (left > 0) {
    size_t want = left < (off_t)PIECE ? (size_t)left : PIECE;
    ssize_t count = read(fd, bytes, want);
    if (count <= 0) {
      memset(bytes, 0, want);
      count = (ssize_t)want;
    }
    if (archive_write_data(tar, bytes, (size_t)count) < 0) {
      return -1;
    }
    left -= count;
  }
  return 0;
}

/* 0 also for a file that is left out; -1: the stream is broken or cancelled. */
static int pack(struct archive *tar, struct archive_entry *entry, int root, const char *name,
                unsigned char *bytes) {
  struct stat facts;
  int result = 0;
  if (!beneath_is_plain(name)) {
    return 0;
  }
  const int flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY;
  int fd = beneath_open(root, name, flags | O_NOATIME); /* see hashes.h */
  if (fd < 0) {
    fd = beneath_open(root, name, flags);
  }
  if (fd < 0) {
    return 0;
  }
  if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode)) {
    archive_entry_clear(entry);
    archive_entry_copy_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, facts.st_mode & 0777);
    archive_entry_set_size(entry, facts.st_size);
    archive_entry_set_mtime(entry, facts.st_mtim.tv_sec, 0);
    result = archive_write_header(tar, entry) < ARCHIVE_WARN
                 ? -1
                 : pack_content(tar, fd, facts.st_size, bytes);
  }
  close(fd);
  return result;
}

static void pack_all(struct worker *worker, int root, const char *names, size_t length,
                     unsigned char *bytes) {
  struct archive *tar = archive_write_new();
  struct archive_entry *entry = archive_entry_new();
  int failed = 0;
  archive_write_set_format_pax_restricted(tar);
  archive_write_set_options(tar, "hdrcharset=BINARY"); /* a name is bytes */
  archive_write_set_bytes_per_block(tar, BLOCK);
  archive_write_set_bytes_in_last_block(tar, 1);
  if (archive_write_open(tar, worker, NULL, write_stream, NULL) != ARCHIVE_OK) {
    failed = 1;
  }
  for (size_t at = 0; !failed && at < length;) {
    size_t one = strnlen(names + at, length - at);
    if (one < length - at && one < PATH_MAX) {
      failed = pack(tar, entry, root, names + at, bytes) < 0;
    }
    at += one + 1;
  }
  /* Where writing failed, libarchive frees its buffer here and nowhere else. */
  int closed = archive_write_close(tar) == ARCHIVE_OK;
  if (!failed && closed) {
    worker_done(worker, SANDHOST_OK, NULL);
  } else if (worker_is_cancelled(worker)) {
    worker_done(worker, SANDHOST_CANCELLED, "cancelled");
  } else {
    worker_fail(worker, SANDHOST_INTERNAL, "the files cannot be packed: %s",
                archive_error_string(tar) ? archive_error_string(tar) : "unknown");
  }
  archive_entry_free(entry);
  archive_write_free(tar);
}

void tar_out(struct worker *worker, struct guest_reader *parameters) {
  size_t length = 0;
  size_t names_length = 0;
  const char *bytes = guest_read_bytes(parameters, &length);
  char *root_path = strndup(bytes, length);
  char *names = receive_names(worker, &names_length);
  unsigned char *piece = malloc(PIECE);
  int root = root_path ? beneath_root(root_path) : -1;
  if (parameters->bad || memchr(bytes, '\0', length)) {
    worker_fail(worker, SANDHOST_INVALID, "the request makes no sense");
  } else if (!names) {
    worker_fail(worker, SANDHOST_LIMIT, "the names are more than %u bytes", MOST_NAMES);
  } else if (root < 0) {
    worker_fail(worker, SANDHOST_NOT_FOUND, "%s: %s", root_path ? root_path : "", strerror(errno));
  } else if (piece) {
    pack_all(worker, root, names, names_length, piece);
  } else {
    worker_fail(worker, SANDHOST_NO_MEMORY, "the guest has no memory left");
  }
  if (root >= 0) {
    close(root);
  }
  free(piece);
  free(names);
  free(root_path);
}
