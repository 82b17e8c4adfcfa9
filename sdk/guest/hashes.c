/* SPDX-License-Identifier: Apache-2.0 */
/* hashes.c: an open-addressed table by inode. A full table is emptied: it is a cache. */
#include "hashes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>

#define MOST 200000u

struct entry {
  dev_t device;
  ino_t inode;
  off_t size;
  struct timespec mtime;
  struct timespec ctime;
  struct timespec atime;
  uint8_t sha256[32];
  int used;
  int by_atime; /* an access since would show in atime */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *table;
static size_t room; /* a power of two */
static size_t used;

struct timespec hashes_tick(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}

static int same_time(struct timespec a, struct timespec b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int before(struct timespec a, struct timespec b) {
  return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

static struct entry *place(const struct stat *facts) {
  uint64_t hash = ((uint64_t)facts->st_ino ^ (uint64_t)facts->st_dev << 40) * 0x9e3779b97f4a7c15u;
  size_t at = (size_t)(hash >> 20) & (room - 1);
  while (table[at].used &&
         (table[at].inode != facts->st_ino || table[at].device != facts->st_dev)) {
    at = (at + 1) & (room - 1);
  }
  return &table[at];
}

/* Room for one more: doubles while that is allowed, else starts anew. */
static int make_room(void) {
  if (used >= MOST) {
    memset(table, 0, room * sizeof *table);
    used = 0;
  }
  if (room && used < room / 2) {
    return 1;
  }
  struct entry *old = table;
  size_t old_room = room;
  struct entry *grown = calloc(room ? 2 * room : 1024, sizeof *grown);
  if (!grown) {
    return 0;
  }
  table = grown;
  room = room ? 2 * room : 1024;
  for (size_t i = 0; i < old_room; i++) {
    if (old[i].used) {
      const struct stat key = {.st_dev = old[i].device, .st_ino = old[i].inode};
      *place(&key) = old[i];
    }
  }
  free(old);
  return 1;
}

enum hashes_trust hashes_trust_of(int folder) {
  struct statfs system;
  if (fstatfs(folder, &system) < 0) {
    return HASHES_NEVER;
  }
  if (system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC) {
    return HASHES_BY_CTIME;
  }
  return system.f_flags & ST_NOATIME ? HASHES_NEVER : HASHES_BY_ATIME;
}

int hashes_open(int folder, const char *name) {
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int fd = openat(folder, name, flags | O_NOATIME);
  if (fd < 0 && errno == EPERM) {
    fd = openat(folder, name, flags);
  }
  return fd;
}

static int trusted(const struct entry *entry, const struct stat *facts, enum hashes_trust trust) {
  return trust == HASHES_BY_CTIME ||
         (trust == HASHES_BY_ATIME && entry->by_atime && same_time(entry->atime, facts->st_atim));
}

int hashes_find(const struct stat *facts, enum hashes_trust trust, uint8_t ret_sha256[32]) {
  int found = 0;
  pthread_mutex_lock(&lock);
  if (room) {
    const struct entry *entry = place(facts);
    found = entry->used && entry->size == facts->st_size &&
            same_time(entry->mtime, facts->st_mtim) && same_time(entry->ctime, facts->st_ctim) &&
            trusted(entry, facts, trust);
    if (found) {
      memcpy(ret_sha256, entry->sha256, 32);
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}

void hashes_keep(const struct stat *facts, struct timespec tick, const uint8_t sha256[32]) {
  if (!before(facts->st_ctim, tick)) {
    return;
  }
  pthread_mutex_lock(&lock);
  if (make_room()) {
    struct entry *entry = place(facts);
    used += !entry->used;
    *entry = (struct entry){.device = facts->st_dev,
                            .inode = facts->st_ino,
                            .size = facts->st_size,
                            .mtime = facts->st_mtim,
                            .ctime = facts->st_ctim,
                            .atime = facts->st_atim,
                            .used = 1,
                            .by_atime = (!before(facts->st_mtim, facts->st_atim) ||
                                         !before(facts->st_ctim, facts->st_atim)) &&
                                        !same_time(facts->st_atim, tick)};
    memcpy(entry->sha256, sha256, 32);
  }
  pthread_mutex_unlock(&lock);
}
