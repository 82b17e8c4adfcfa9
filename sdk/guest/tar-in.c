/* SPDX-License-Identifier: Apache-2.0 */
/* tar-in.c: unpacks a tar stream below a folder, and remembers the hash of every file that it
 * wrote. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "hashes.h"
#include "temporary.h"
#include "worker.h"

#define PIECE (128u * 1024u)
#define MOST_HASHES 200000u
/* What a header, with all that extends it, may take of the stream: the map of a sparse member costs a dozen times its
 * length in memory, and has no end of its own. */
#define MOST_HEADER (128u * 1024u)

struct written { /* a file whose hash is remembered at the end, when its clock tick is over */
  struct stat facts;
  uint8_t sha256[32];
};

struct unpack {
  struct worker *worker;
  struct archive *tar;
  unsigned char *bytes; /* of the stream, for libarchive */
  size_t header_bytes;  /* given to it since the header began */
  int in_header;
  int root;
  char parent[PATH_MAX]; /* of the folder that is open; members mostly come folder by folder */
  int folder;
  struct written *files;
  size_t file_count;
  size_t file_room;
  int quiet;         /* no command was running when it began, */
  uint64_t commands; /* and so many had been until then */
};

static la_ssize_t read_stream(struct archive *tar, void *user, const void **ret_bytes) {
  struct unpack *unpack = user;
  if (unpack->in_header && unpack->header_bytes > MOST_HEADER) {
    archive_set_error(tar, EINVAL, "a member's header is too long");
    return ARCHIVE_FATAL;
  }
  ssize_t count = worker_read(unpack->worker, unpack->bytes, PIECE);
  unpack->header_bytes += count > 0 ? (size_t)count : 0;
  *ret_bytes = unpack->bytes;
  return count < 0 ? ARCHIVE_FATAL : count;
}

static int enter(struct unpack *unpack, const char *parent) {
  if (unpack->folder >= 0 && strcmp(unpack->parent, parent) == 0) {
    return 0;
  }
  if (unpack->folder >= 0) {
    close(unpack->folder);
  }
  unpack->folder = beneath_make_folder(unpack->root, parent);
  snprintf(unpack->parent, sizeof unpack->parent, "%s", parent);
  return unpack->folder < 0 ? -1 : 0;
}

static void remember(struct unpack *unpack, const struct written *file) {
  if (unpack->file_count == MOST_HASHES) {
    return;
  }
  if (unpack->file_count == unpack->file_room) {
    size_t room = unpack->file_room ? 2 * unpack->file_room : 256;
    struct written *grown = realloc(unpack->files, room * sizeof *grown);
    if (!grown) {
      return; /* it is read again, that is all */
    }
    unpack->files = grown;
    unpack->file_room = room;
  }
  unpack->files[unpack->file_count++] = *file;
}

/* The member's content into the temporary file, hashed on the way. A sparse member is refused, wherever its holes are: no
 * host of ours sends one, and its size may be any number. */
static int write_content(struct unpack *unpack, int fd, la_int64_t size, uint8_t ret_sha256[32]) {
  struct sha256_ctx sha;
  const void *block = NULL;
  size_t length = 0;
  la_int64_t offset = 0;
  la_int64_t at = 0;
  int result = ARCHIVE_OK;
  sha256_init(&sha);
  while ((result = archive_read_data_block(unpack->tar, &block, &length, &offset)) == ARCHIVE_OK) {
    if (offset != at) {
      errno = EINVAL;
      return -1;
    }
    sha256_update(&sha, length, block);
    if (temporary_write(fd, block, length) < 0) {
      return -1;
    }
    at += (la_int64_t)length;
  }
  sha256_digest(&sha, 32, ret_sha256);
  if (result != ARCHIVE_EOF) {
    errno = EBADMSG;
    return -1;
  }
  if (at != size) {
    errno = EINVAL;
    return -1;
  }
  return 0;
}

static int write_file(struct unpack *unpack, const char *name, struct archive_entry *entry) {
  mode_t mode = archive_entry_perm(entry) & 0777;
  struct temporary temporary;
  struct written file;
  if (temporary_make(&temporary, unpack->folder) < 0) {
    return -1;
  }
  if (write_content(unpack, temporary.fd, archive_entry_size(entry), file.sha256) < 0) {
    int saved = errno;
    temporary_drop(&temporary);
    errno = saved;
    return -1;
  }
  if (mode != 0644) {
    fchmod(temporary.fd, mode);
  }
  int failed = renameat(unpack->folder, temporary.name, unpack->folder, name) < 0 ? errno : 0;
  if (failed) {
    temporary_drop(&temporary);
    errno = failed;
    return -1;
  }
  if (fstat(temporary.fd, &file.facts) == 0) { /* after the rename, which changes ctime */
    remember(unpack, &file);
  }
  close(temporary.fd);
  return 0;
}

/* 0, or -1 with the worker failed. */
static int unpack_member(struct unpack *unpack, struct archive_entry *entry) {
  const char *name = archive_entry_pathname(entry);
  mode_t kind = archive_entry_filetype(entry);
  char path[PATH_MAX];
  while (name && strncmp(name, "./", 2) == 0) { /* as "tar c ." has them */
    name += 2;
  }
  size_t length = name ? strlen(name) : 0;
  if (kind == AE_IFDIR && name && (length == 0 || strcmp(name, ".") == 0)) {
    return 0; /* the folder itself */
  }
  if (length == 0 || length >= sizeof path) {
    worker_fail(unpack->worker, SANDHOST_INVALID, "a member of the tar stream has no usable name");
    return -1;
  }
  memcpy(path, name, length + 1);
  if (kind == AE_IFDIR && path[length - 1] == '/') {
    path[length - 1] = '\0';
  }
  if ((kind != AE_IFREG && kind != AE_IFDIR) || archive_entry_hardlink(entry) ||
      !beneath_is_plain(path)) {
    worker_fail(unpack->worker, SANDHOST_INVALID,
                "'%s' in the tar stream is no file or folder below the working directory", path);
    return -1;
  }
  char *slash = strrchr(path, '/');
  const char *last = slash ? slash + 1 : path;
  int failed = 0;
  if (kind == AE_IFDIR) {
    failed = enter(unpack, path) < 0;
  } else {
    if (slash) {
      *slash = '\0';
    }
    failed = enter(unpack, slash ? path : "") < 0 || write_file(unpack, last, entry) < 0;
    if (slash) {
      *slash = '/';
    }
  }
  if (failed) {
    int number = errno;
    worker_fail(unpack->worker,
                number == ENOSPC || number == EDQUOT                     ? SANDHOST_LIMIT
                : number == EACCES || number == EPERM || number == EROFS ? SANDHOST_DENIED
                                                                         : SANDHOST_INVALID,
                "could not write '%s': %s", path, strerror(number));
  }
  return failed ? -1 : 0;
}

static void note_commands(struct unpack *unpack) {
  pthread_mutex_lock(&guest_lock);
  unpack->quiet = !command_any_alive();
  unpack->commands = command_count();
  pthread_mutex_unlock(&guest_lock);
}

/* While no command runs, what was written is what is there. Files of the last clock tick are not
 * kept. */
static void keep_hashes(const struct unpack *unpack) {
  struct timespec tick = hashes_tick();
  pthread_mutex_lock(&guest_lock);
  int quiet = unpack->quiet && command_count() == unpack->commands;
  pthread_mutex_unlock(&guest_lock);
  for (size_t i = 0; quiet && i < unpack->file_count; i++) {
    hashes_keep(&unpack->files[i].facts, tick, unpack->files[i].sha256);
  }
}

/* A member's content is read before the next header, so all that is given is that one's, or read ahead of it. */
static int next_header(struct unpack *unpack, struct archive_entry **ret_entry) {
  unpack->header_bytes = 0;
  unpack->in_header = 1;
  int result = archive_read_next_header(unpack->tar, ret_entry);
  unpack->in_header = 0;
  return result;
}

static void unpack_all(struct unpack *unpack) {
  struct archive_entry *entry = NULL;
  int result = ARCHIVE_OK;
  note_commands(unpack);
  if (archive_read_open(unpack->tar, unpack, NULL, read_stream, NULL) == ARCHIVE_OK) {
    while ((result = next_header(unpack, &entry)) == ARCHIVE_OK || result == ARCHIVE_WARN) {
      if (unpack_member(unpack, entry) < 0) {
        return;
      }
    }
  } else {
    result = ARCHIVE_FATAL;
  }
  if (result != ARCHIVE_EOF) {
    worker_fail(unpack->worker, SANDHOST_INVALID, "the tar stream cannot be read: %s",
                archive_error_string(unpack->tar) ? archive_error_string(unpack->tar)
                                                  : "it ends too early");
    return;
  }
  while (worker_read(unpack->worker, unpack->bytes, PIECE) > 0) { /* padding behind the end */
  }
  keep_hashes(unpack);
  worker_done(unpack->worker, SANDHOST_OK, NULL);
}

void tar_in(struct worker *worker, struct guest_reader *parameters) {
  size_t length = 0;
  const char *bytes = guest_read_bytes(parameters, &length);
  char *root = strndup(bytes, length);
  struct unpack *unpack = calloc(1, sizeof *unpack);
  if (root && unpack) {
    *unpack = (struct unpack){.worker = worker, .folder = -1};
    unpack->root = beneath_root(root);
    unpack->bytes = malloc(PIECE);
    unpack->tar = archive_read_new();
    archive_read_support_format_tar(unpack->tar);
    if (parameters->bad || memchr(bytes, '\0', length)) {
      worker_fail(worker, SANDHOST_INVALID, "the request makes no sense");
    } else if (unpack->root < 0) {
      worker_fail(worker, SANDHOST_NOT_FOUND, "%s: %s", root, strerror(errno));
    } else if (unpack->bytes) {
      unpack_all(unpack);
    }
    archive_read_free(unpack->tar);
    free(unpack->bytes);
    free(unpack->files);
    if (unpack->folder >= 0) {
      close(unpack->folder);
    }
    if (unpack->root >= 0) {
      close(unpack->root);
    }
  }
  free(unpack);
  free(root);
  worker_fail(worker, SANDHOST_NO_MEMORY,
              "the guest has no memory left"); /* only where nothing was told yet */
}
