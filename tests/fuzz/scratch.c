/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.c: the world is made once, in memory where there is such a file system; only /work is made anew. */
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKER 32u
#define MOST_FDS 8

static char base[64]; /* the world's folder */
static int world = -1;
static int work = -1;
static int trash = -1;
static int old_root = -1;
static int old_folder = -1;
static int inside;
static int free_before[MOST_FDS];
static unsigned long thrown_away;
static unsigned char marker[MARKER];

/* ---- Outside of /work -------------------------------------------------------------------------- */

static const char *const WATCHED[] = {".", "canary", "canary/file", "canary/folder",
                                      "canary/folder/inner"};
#define WATCHED_COUNT (sizeof WATCHED / sizeof WATCHED[0])
static struct stat before[WATCHED_COUNT];

static int is_same(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_mode == b->st_mode && a->st_nlink == b->st_nlink &&
         a->st_size == b->st_size && a->st_uid == b->st_uid &&
         memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) == 0 &&
         memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim) == 0;
}

/* By hand and unobserved: libFuzzer takes what is compared for hints, and would write the marker itself. */
__attribute__((no_sanitize("coverage"))) int scratch_is_told(const void *data, size_t length) {
  const unsigned char *bytes = data;
  for (size_t at = 0; at + MARKER <= length; at++) {
    size_t same = 0;
    while (same < MARKER && bytes[at + same] == marker[same]) {
      same++;
    }
    if (same == MARKER) {
      return 1;
    }
  }
  return 0;
}

/* ---- The root ---------------------------------------------------------------------------------- */

void scratch_leave(void) {
  if (inside) {
    inside = 0;
    if (fchdir(old_root) < 0 || chroot(".") < 0 || fchdir(old_folder) < 0) {
      _exit(1);
    }
  }
}

/* The sanitizers call these before they end the process. */
void __asan_on_error(void);
void __asan_on_error(void) {
  scratch_leave();
}

void __ubsan_on_report(void);
void __ubsan_on_report(void) {
  scratch_leave();
}

static void write_text(int folder, const char *name, const void *text, size_t length) {
  int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd >= 0) {
    (void)!write(fd, text, length);
    close(fd);
  }
}

/* Whoever is not root becomes one in a user namespace, where that is allowed. */
static int become_able(void) {
  char text[64];
  unsigned user = (unsigned)geteuid();
  unsigned group = (unsigned)getegid();
  if (user == 0) {
    return 0;
  }
  if (unshare(CLONE_NEWUSER) < 0) {
    return -1;
  }
  write_text(AT_FDCWD, "/proc/self/setgroups", "deny", 4);
  int length = snprintf(text, sizeof text, "0 %u 1", user);
  write_text(AT_FDCWD, "/proc/self/uid_map", text, (size_t)length);
  length = snprintf(text, sizeof text, "0 %u 1", group);
  write_text(AT_FDCWD, "/proc/self/gid_map", text, (size_t)length);
  return geteuid() == 0 ? 0 : -1;
}

static void remove_world(void) {
  static const char *const FOLDERS[] = {"canary/folder", "canary", "trash", "work"};
  scratch_leave();
  unlinkat(world, "canary/file", 0);
  unlinkat(world, "canary/folder/inner", 0);
  for (size_t i = 0; i < sizeof FOLDERS / sizeof FOLDERS[0]; i++) {
    unlinkat(world, FOLDERS[i], AT_REMOVEDIR);
  }
  rmdir(base);
}

static int open_folder(int in, const char *name) {
  return openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void make_world(void) {
  unsigned char text[2 * MARKER] = {0};
  check(getrandom(marker, MARKER, 0) == MARKER);
  memcpy(text, marker, MARKER);
  snprintf(base, sizeof base, "/dev/shm/sandhost-fuzz-XXXXXX");
  if (!mkdtemp(base)) {
    snprintf(base, sizeof base, "/tmp/sandhost-fuzz-XXXXXX");
    check(mkdtemp(base));
  }
  world = open_folder(AT_FDCWD, base);
  atexit(remove_world);
  check(mkdirat(world, "work", 0755) == 0 && mkdirat(world, "trash", 0755) == 0 &&
        mkdirat(world, "canary", 0755) == 0 && mkdirat(world, "canary/folder", 0755) == 0);
  write_text(world, "canary/file", text, sizeof text);
  write_text(world, "canary/folder/inner", text, sizeof text);
  work = open_folder(world, "work");
  trash = open_folder(world, "trash");
  check(work >= 0 && trash >= 0);
}

void scratch_make(void) {
  if (become_able() < 0) {
    puts("skipped: only root, or who may make user namespaces, can change the root folder");
    exit(77);
  }
  umask(022);
  old_root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  old_folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  make_world();
  if (fchdir(world) < 0 || chroot(".") < 0) {
    puts("skipped: the root folder cannot be changed here");
    exit(77);
  }
  inside = 1;
  scratch_leave();
  for (size_t i = 0; i < WATCHED_COUNT; i++) {
    check(fstatat(world, WATCHED[i], &before[i], AT_SYMLINK_NOFOLLOW) == 0);
  }
}

/* ---- /work ------------------------------------------------------------------------------------- */

int scratch_folder(void) {
  return work;
}

static void populate(void) {
  static const char *const FOLDERS[] = {"dir", "dir/deep", "repo", "repo/.git"};
  static const char *const FILES[] = {"a", "dir/b", "dir/deep/c", "repo/d", ".hidden"};
  static const char *const LINKS[][2] = {
      {"out", "../canary"},  {"abs", "/canary/file"}, {"dir/up", "../../canary"}, {"in", "dir"},
      {"two", "out/folder"}, {"self", "self"},        {"file", "dir/b"},
  };
  for (size_t i = 0; i < sizeof FOLDERS / sizeof FOLDERS[0]; i++) {
    check(mkdirat(work, FOLDERS[i], 0755) == 0);
  }
  for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
    write_text(work, FILES[i], FILES[i], strlen(FILES[i]));
  }
  for (size_t i = 0; i < sizeof LINKS / sizeof LINKS[0]; i++) {
    check(symlinkat(LINKS[i][1], work, LINKS[i][0]) == 0);
  }
  check(mkfifoat(work, "pipe", 0644) == 0);
}

/* The lowest free descriptors: one that is left open is missing among them. */
static void note_free(int ret_free[MOST_FDS]) {
  for (int i = 0; i < MOST_FDS; i++) {
    ret_free[i] = fcntl(world, F_DUPFD_CLOEXEC, 0);
    check(ret_free[i] >= 0);
  }
  for (int i = 0; i < MOST_FDS; i++) {
    close(ret_free[i]);
  }
}

void scratch_enter(void) {
  populate();
  check(fchdir(world) == 0 && chroot(".") == 0);
  inside = 1;
  note_free(free_before);
}

/* Takes the folder's descriptor. A folder that is not empty is moved to the trash: however deep a tree is, nothing here
 * goes down into it. */
static void empty(int folder) {
  DIR *list = fdopendir(folder);
  struct dirent *entry = NULL;
  char name[32];
  check(list);
  while ((entry = readdir(list)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
        unlinkat(folder, entry->d_name, 0) == 0 ||
        unlinkat(folder, entry->d_name, AT_REMOVEDIR) == 0) {
      continue;
    }
    snprintf(name, sizeof name, "%lu", thrown_away++);
    check(renameat(folder, entry->d_name, trash, name) == 0);
  }
  closedir(list);
}

static void empty_all(void) {
  static unsigned long first;
  char name[32];
  empty(open_folder(work, "."));
  for (; first < thrown_away; first++) {
    snprintf(name, sizeof name, "%lu", first);
    empty(open_folder(trash, name));
    check(unlinkat(trash, name, AT_REMOVEDIR) == 0);
  }
}

void scratch_end(void) {
  struct stat now;
  int free_now[MOST_FDS];
  note_free(free_now);
  check(memcmp(free_before, free_now, sizeof free_now) == 0);
  for (size_t i = 0; i < WATCHED_COUNT; i++) {
    check(fstatat(world, WATCHED[i], &now, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&before[i], &now));
  }
  empty_all();
  scratch_leave();
}

/* ---- What a command does ----------------------------------------------------------------------- */

/* By no link, so that what is done here stays below /work. */
static const char *go_to(const char *path, int *ret_folder) {
  const char *slash = strchr(path, '/');
  char parent[16];
  if (!slash) {
    *ret_folder = open_folder(work, ".");
    return path;
  }
  snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
  *ret_folder = open_folder(work, parent);
  return slash + 1;
}

static void act_at(uint8_t kind, int folder, const char *name, int other, const char *other_name,
                   const char *target) {
  switch (kind % 8) {
  case 0:
  case 1:
    (void)!symlinkat(target, folder, name);
    break;
  case 2:
    (void)!renameat(folder, name, other, other_name);
    break;
  case 3:
    (void)!(unlinkat(folder, name, 0) < 0 && unlinkat(folder, name, AT_REMOVEDIR) < 0);
    break;
  case 4:
    (void)!mkdirat(folder, name, 0755);
    break;
  case 5:
    (void)!mkfifoat(folder, name, 0644);
    break;
  case 6:
    write_text(folder, name, other_name, strlen(other_name));
    break;
  default:
    (void)!linkat(folder, name, other, other_name, 0);
  }
}

void scratch_act(uint8_t kind, uint8_t first, uint8_t second) {
  static const char *const TARGETS[] = {
      "../canary", "/canary", "/canary/file", "dir",       "..", ".",   "../canary/folder", "out",
      "a",         "in/b",    "../../canary", "/work/dir", "/",  "two", "new/../../canary", "repo"};
  static const char *const NAMES[] = {"a",       "dir",      "out",  "in",        "new",  "dir/b",
                                      "dir/new", "dir/deep", "repo", "repo/.git", "pipe", "new/a",
                                      "new/b",   "x",        "file", "two"};
  int folder = -1;
  int other = -1;
  const char *name = go_to(NAMES[first % 16], &folder);
  const char *other_name = go_to(NAMES[second % 16], &other);
  if (folder >= 0 && other >= 0) {
    act_at(kind, folder, name, other, other_name, TARGETS[second % 16]);
  }
  if (folder >= 0) {
    close(folder);
  }
  if (other >= 0) {
    close(other);
  }
}
