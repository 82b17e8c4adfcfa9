/* SPDX-License-Identifier: Apache-2.0 */
/* changes.c: walks a folder and lists what the host does not know. Files whose stat is remembered
 * are not read. */
#include <dirent.h>
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
#include "worker.h"

#define PIECE (64u * 1024u)
#define BATCH (64u * 1024u)     /* entries are sent together */
#define MOST_KNOWN (256u << 20) /* bytes of the list of known files */
#define MOST_DEPTH 256

struct known {
  const unsigned char *path; /* into the received bytes */
  uint32_t length;
  const unsigned char *sha256; /* NULL: an empty place */
};

struct listing {
  struct worker *worker;
  uint64_t max_hash;
  uint64_t max_entries;
  uint64_t entries;
  unsigned char *received;
  struct known *known; /* open-addressed */
  size_t known_room;
  unsigned char *batch;
  size_t batched;
  unsigned char *piece;
  char path[PATH_MAX]; /* of what is looked at, below the root */
};

/* ---- What the host knows --------------------------------------------------------------------- */

static size_t hash_path(const unsigned char *path, size_t length) {
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ path[i]) * 1099511628211u;
  }
  return (size_t)(hash ^ hash >> 29);
}

static const struct known *known_find(const struct listing *listing, const char *path,
                                      size_t length) {
  size_t at = hash_path((const unsigned char *)path, length);
  for (size_t i = 0; i < listing->known_room; i++, at++) {
    const struct known *place = &listing->known[at & (listing->known_room - 1)];
    if (!place->sha256) {
      return NULL;
    }
    if (place->length == length && memcmp(place->path, path, length) == 0) {
      return place;
    }
  }
  return NULL;
}

static int known_index(struct listing *listing, size_t length) {
  size_t count = 0;
  struct guest_reader reader = {.data = listing->received, .left = length};
  while (reader.left > 0 && !reader.bad) {
    size_t ignored = 0;
    guest_read_bytes(&reader, &ignored);
    guest_read_raw(&reader, 32);
    count++;
  }
  if (reader.bad) {
    return -1;
  }
  for (listing->known_room = 16; listing->known_room < 2 * count; listing->known_room *= 2) {
  }
  listing->known = calloc(listing->known_room, sizeof *listing->known);
  reader = (struct guest_reader){.data = listing->received, .left = length};
  while (listing->known && reader.left > 0) {
    size_t path_length = 0;
    const unsigned char *path = (const unsigned char *)guest_read_bytes(&reader, &path_length);
    const unsigned char *sha256 = guest_read_raw(&reader, 32);
    size_t at = hash_path(path, path_length) & (listing->known_room - 1);
    while (listing->known[at].sha256) {
      at = (at + 1) & (listing->known_room - 1);
    }
    listing->known[at] =
        (struct known){.path = path, .length = (uint32_t)path_length, .sha256 = sha256};
  }
  return listing->known ? 0 : -1;
}

static int receive_known(struct listing *listing) {
  size_t length = 0;
  size_t room = 0;
  for (;;) {
    if (room - length < PIECE) {
      room = room ? 2 * room : 4 * PIECE;
      unsigned char *grown = room <= MOST_KNOWN ? realloc(listing->received, room) : NULL;
      if (!grown) {
        return -1;
      }
      listing->received = grown;
    }
    ssize_t count = worker_read(listing->worker, listing->received + length, room - length);
    if (count < 0) {
      return -1;
    }
    if (count == 0) {
      return known_index(listing, length);
    }
    length += (size_t)count;
  }
}

/* ---- Telling --------------------------------------------------------------------------------- */

static int send_batch(struct listing *listing) {
  int result = worker_write(listing->worker, listing->batch, listing->batched);
  listing->batched = 0;
  return result;
}

/* A command can give a file any time: what nanoseconds cannot hold is the nearest that they can. */
static int64_t nanoseconds(struct timespec time) {
  int64_t result = 0;
  if (__builtin_mul_overflow((int64_t)time.tv_sec, INT64_C(1000000000), &result) ||
      __builtin_add_overflow(result, (int64_t)time.tv_nsec, &result)) {
    return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
  }
  return result;
}

/* -1: stop. */
static int tell_entry(struct listing *listing, uint32_t kind, uint32_t flags,
                      const struct stat *facts, const uint8_t *sha256) {
  static const uint8_t NONE[32];
  size_t length = strlen(listing->path);
  if (listing->max_entries && listing->entries == listing->max_entries) {
    send_batch(listing);
    worker_fail(listing->worker, SANDHOST_LIMIT, "more than %llu files changed",
                (unsigned long long)listing->max_entries);
    return -1;
  }
  listing->entries++;
  if (listing->batched + 64 + length > BATCH && send_batch(listing) < 0) {
    return -1;
  }
  unsigned char *at = listing->batch + listing->batched;
  guest_put_u32(at, kind);
  guest_put_u32(at + 4, flags);
  guest_put_u64(at + 8, facts ? (uint64_t)facts->st_size : 0);
  guest_put_u64(at + 16, facts ? (uint64_t)nanoseconds(facts->st_mtim) : 0);
  guest_put_u32(at + 24, facts ? facts->st_mode & 0777 : 0);
  memcpy(at + 28, sha256 ? sha256 : NONE, 32);
  guest_put_u32(at + 60, (uint32_t)length);
  memcpy(at + 64, listing->path, length);
  listing->batched += 64 + length;
  return 0;
}

static int tell(struct listing *listing, uint32_t kind, const struct stat *facts,
                const uint8_t *sha256) {
  return tell_entry(listing, kind, sha256 ? SANDHOST_ENTRY_SHA256 : 0, facts, sha256);
}

/* The folder at listing->path: what it holds is not listed, or not all of it. facts may be NULL. */
static int tell_unread(struct listing *listing, const struct stat *facts) {
  struct stat folder = {0};
  if (facts) {
    folder = *facts;
  }
  folder.st_size = 0;
  return tell_entry(listing, SANDHOST_KIND_FILE, SANDHOST_ENTRY_UNREAD_FOLDER, &folder, NULL);
}

/* ---- Looking --------------------------------------------------------------------------------- */

static int same_file(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
         memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) == 0 &&
         memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim) == 0;
}

/* Reads the file; facts become those of what was read. 0, or -1 when it cannot be read. */
static int hash_file(struct listing *listing, int folder, const char *name, struct stat *facts,
                     uint8_t ret_sha256[32]) {
  struct stat after;
  struct sha256_ctx sha;
  struct timespec tick = hashes_tick();
  /* Who has mapped the file already may change it later without a trace: then nothing is kept. */
  int alone = worker_is_alone();
  int fd = hashes_open(folder, name);
  if (fd < 0 || fstat(fd, facts) < 0 || !S_ISREG(facts->st_mode)) {
    if (fd >= 0) {
      close(fd);
    }
    return -1;
  }
  ssize_t count = 0;
  off_t total = 0;
  sha256_init(&sha);
  while ((count = read(fd, listing->piece, PIECE)) > 0 && !worker_is_cancelled(listing->worker)) {
    sha256_update(&sha, (size_t)count, listing->piece);
    total += count;
    if (listing->max_hash && (uint64_t)total > listing->max_hash) {
      break;
    }
  }
  sha256_digest(&sha, 32, ret_sha256);
  if (alone && count == 0 && fstat(fd, &after) == 0 && same_file(facts, &after)) {
    hashes_keep(facts, tick, ret_sha256);
  }
  close(fd);
  return count == 0 ? 0 : -1;
}

static int look_at_file(struct listing *listing, int folder, enum hashes_trust trust,
                        const char *name, struct stat *facts) {
  uint8_t sha256[32];
  if (listing->max_hash && (uint64_t)facts->st_size > listing->max_hash) {
    return tell(listing, SANDHOST_KIND_FILE, facts, NULL);
  }
  if (!hashes_find(facts, trust, sha256) && hash_file(listing, folder, name, facts, sha256) < 0) {
    return worker_is_cancelled(listing->worker) ? -1
                                                : tell(listing, SANDHOST_KIND_FILE, facts, NULL);
  }
  const struct known *known = known_find(listing, listing->path, strlen(listing->path));
  if (known && memcmp(known->sha256, sha256, 32) == 0) {
    return 0;
  }
  return tell(listing, SANDHOST_KIND_FILE, facts, sha256);
}

/* Whether what a name stood for has gone, or become something else. */
static int is_gone(int number) {
  return number == ENOENT || number == ENOTDIR || number == ELOOP;
}

static int walk(struct listing *listing, int folder, int depth);

static int enter(struct listing *listing, int folder, const char *name, int depth) {
  struct stat facts;
  int inner = -1;
  if (depth < MOST_DEPTH) {
    inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0 && is_gone(errno)) {
      return 0;
    }
  }
  if (inner < 0) {
    int known = fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    return tell_unread(listing, known ? &facts : NULL);
  }
  if (fstatat(inner, ".git", &facts, AT_SYMLINK_NOFOLLOW) == 0) {
    close(inner);
    return tell(listing, SANDHOST_KIND_CHECKOUT, NULL, NULL);
  }
  return walk(listing, inner, depth + 1);
}

static int look_at(struct listing *listing, int folder, enum hashes_trust trust,
                   const struct dirent *entry, int depth) {
  struct stat facts;
  unsigned char type = entry->d_type;
  if (type != DT_REG && type != DT_DIR && type != DT_UNKNOWN) {
    return 0;
  }
  if (type != DT_DIR) {
    if (fstatat(folder, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) < 0) {
      return is_gone(errno) ? 0 : tell(listing, SANDHOST_KIND_FILE, NULL, NULL);
    }
    type = S_ISREG(facts.st_mode) ? DT_REG : S_ISDIR(facts.st_mode) ? DT_DIR : DT_LNK;
  }
  if (type == DT_REG) {
    return look_at_file(listing, folder, trust, entry->d_name, &facts);
  }
  return type == DT_DIR ? enter(listing, folder, entry->d_name, depth) : 0;
}

/* -1: stop. *ret_whole: every name was looked at. */
static int walk_entries(struct listing *listing, DIR *folder, int depth, int *ret_whole) {
  size_t before = strlen(listing->path);
  enum hashes_trust trust = hashes_trust_of(dirfd(folder));
  int result = worker_is_cancelled(listing->worker) ? -1 : 0;
  *ret_whole = 1;
  while (result == 0) {
    errno = 0;
    const struct dirent *entry = readdir(folder);
    if (!entry) {
      *ret_whole &= errno == 0 || is_gone(errno);
      break;
    }
    size_t length = strlen(entry->d_name);
    if (entry->d_name[0] == '.') {
      continue;
    }
    if (before + 1 + length >= sizeof listing->path) {
      *ret_whole = 0;
      continue;
    }
    if (before > 0) {
      listing->path[before] = '/';
    }
    memcpy(listing->path + before + (before > 0), entry->d_name, length + 1);
    result = look_at(listing, dirfd(folder), trust, entry, depth);
    listing->path[before] = '\0';
  }
  return result;
}

/* Takes the folder's descriptor. */
static int walk(struct listing *listing, int folder, int depth) {
  DIR *open_folder = fdopendir(folder);
  struct stat facts;
  int whole = 0;
  int result = open_folder ? walk_entries(listing, open_folder, depth, &whole) : 0;
  int number = errno;
  if (result == 0 && !whole && depth > 0) {
    result = tell_unread(listing, fstat(folder, &facts) == 0 ? &facts : NULL);
  } else if (result == 0 && !whole) { /* the root has no name to be told by */
    worker_fail(listing->worker, SANDHOST_INTERNAL, "%s", strerror(number));
    result = -1;
  }
  if (open_folder) {
    closedir(open_folder);
  } else {
    close(folder);
  }
  return result;
}

static void list_all(struct listing *listing, const char *root_path) {
  int top = beneath_root(root_path);
  int root = top < 0 ? -1 : openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int number = errno;
  if (top >= 0) {
    close(top);
  }
  if (root < 0) {
    worker_fail(listing->worker, SANDHOST_NOT_FOUND, "%s: %s", root_path, strerror(number));
    return;
  }
  if (walk(listing, root, 0) == 0 && send_batch(listing) == 0) {
    worker_done(listing->worker, SANDHOST_OK, NULL);
  } else {
    worker_done(listing->worker, SANDHOST_CANCELLED,
                "cancelled"); /* unless told otherwise before */
  }
}

void changes_list(struct worker *worker, struct guest_reader *parameters) {
  struct listing *listing = calloc(1, sizeof *listing);
  size_t length = 0;
  const char *bytes = guest_read_bytes(parameters, &length);
  char *root = strndup(bytes, length);
  if (listing && root) {
    listing->worker = worker;
    listing->max_hash = guest_read_u64(parameters);
    listing->max_entries = guest_read_u64(parameters);
    listing->batch = malloc(BATCH + PATH_MAX);
    listing->piece = malloc(PIECE);
    if (parameters->bad || memchr(bytes, '\0', length)) {
      worker_fail(worker, SANDHOST_INVALID, "the request makes no sense");
    } else if (!listing->batch || !listing->piece) {
      worker_fail(worker, SANDHOST_NO_MEMORY, "the guest has no memory left");
    } else if (receive_known(listing) < 0) {
      worker_fail(worker, SANDHOST_INVALID, "the list of known files makes no sense");
    } else {
      list_all(listing, root);
    }
    free(listing->batch);
    free(listing->piece);
    free(listing->received);
    free(listing->known);
  }
  free(listing);
  free(root);
  worker_fail(worker, SANDHOST_NO_MEMORY,
              "the guest has no memory left"); /* only where nothing was told yet */
}
