/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c: groups made, limited, joined and removed. Where they can be made is in cgroup-place.c. */
#include "cgroup-private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND ((int64_t)1000000)
#define CPU_PERIOD 100000u /* microseconds, the kernel's own default */
#define CPU_LEAST 1000u    /* the smallest quota that the kernel takes */
#define MAKE_ATTEMPTS 5    /* against others who remove the empty parent meanwhile */

struct one { /* a group in one hierarchy */
  char *parent;
  char *path;
  int lock_fd;
};

struct Cgroup {
  struct one ones[CGROUP_CONTROLLERS];
  size_t count;
  int procs_fds[CGROUP_CONTROLLERS];
  size_t procs_count;
  char *oom_file; /* NULL: no memory limit */
};

/* ---- Files ------------------------------------------------------------------------------------ */

int cgroup_write(const char *folder, const char *file, const char *value) {
  g_autofree char *path = g_build_filename(folder, file, NULL);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  ssize_t count = write(fd, value, strlen(value));
  int error = count < 0 ? -errno : 0;
  close(fd);
  return error;
}

/* Writes a limit. A file that may be missing, because the kernel does not account for swap, is no error
 * then. */
static int set_limit(const char *folder, const char *file, gboolean may_miss, const char *format,
                     ...) G_GNUC_PRINTF(4, 5);

static int set_limit(const char *folder, const char *file, gboolean may_miss, const char *format,
                     ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *value = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  int error = cgroup_write(folder, file, value);
  return may_miss && error == -ENOENT ? 0 : error;
}

static int limit_memory(int version, const char *folder, uint64_t bytes) {
  if (version == 2) {
    int error = set_limit(folder, "memory.max", FALSE, "%" PRIu64, bytes);
    return error ? error : set_limit(folder, "memory.swap.max", TRUE, "0");
  }
  int error = set_limit(folder, "memory.limit_in_bytes", FALSE, "%" PRIu64, bytes);
  /* Memory and swap together: no more than the memory alone. */
  return error ? error : set_limit(folder, "memory.memsw.limit_in_bytes", TRUE, "%" PRIu64, bytes);
}

static int limit_cpu(int version, const char *folder, uint64_t millis) {
  uint64_t quota = MIN(millis, (uint64_t)1 << 32) * (CPU_PERIOD / 1000);
  quota = MAX(quota, CPU_LEAST);
  if (version == 2) {
    return set_limit(folder, "cpu.max", FALSE, "%" PRIu64 " %u", quota, CPU_PERIOD);
  }
  int error = set_limit(folder, "cpu.cfs_period_us", FALSE, "%u", CPU_PERIOD);
  return error ? error : set_limit(folder, "cpu.cfs_quota_us", FALSE, "%" PRIu64, quota);
}

static int limit_pids(const char *folder, uint64_t pids) {
  return set_limit(folder, "pids.max", FALSE, "%" PRIu64, pids);
}

/* ---- Making ----------------------------------------------------------------------------------- */

/* Opens the folder that the groups are in, made where it is missing, locked. */
static int open_parent(const char *parent) {
  if (mkdir(parent, 0755) < 0 && errno != EEXIST) {
    return -errno;
  }
  int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return -errno;
  }
  if (flock(fd, LOCK_SH) < 0) {
    int error = -errno;
    close(fd);
    return error;
  }
  return fd;
}

/* A group left over is replaced; one with processes in it is another sandbox's. */
static int make_folder(const char *path) {
  if (mkdir(path, 0755) == 0) {
    return 0;
  }
  if (errno != EEXIST) {
    return -errno;
  }
  if (rmdir(path) < 0) {
    return -EEXIST;
  }
  return mkdir(path, 0755) < 0 ? -errno : 0;
}

/* Gives groups below folder the controllers that folder has. Which of them are missing shows when a
 * limit is set. */
static void enable_below(const char *folder) {
  static const char *const all[] = {"+memory", "+cpu", "+pids"};
  for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
    (void)cgroup_write(folder, "cgroup.subtree_control", all[i]);
  }
}

static int make_one(const CgroupPlace *place, const char *parent, const char *name, Cgroup *group) {
  struct one *one = &group->ones[group->count];
  g_autofree char *path = g_build_filename(parent, name, NULL);
  int error = -ENOENT;
  int lock_fd = -1;
  for (int i = 0; i < MAKE_ATTEMPTS && error == -ENOENT; i++) {
    lock_fd = open_parent(parent);
    if (lock_fd < 0) {
      error = lock_fd;
      continue;
    }
    if (place->version == 2) {
      if (place->enable) {
        g_autofree char *above = g_path_get_dirname(parent);
        enable_below(above);
      }
      enable_below(parent);
    }
    error = make_folder(path);
    if (error < 0) {
      close(lock_fd);
    }
  }
  if (error < 0) {
    return error;
  }
  *one =
      (struct one){.parent = g_strdup(parent), .path = g_steal_pointer(&path), .lock_fd = lock_fd};
  group->count++;
  return 0;
}

/* The group of a controller, made at need. */
static int group_for(const CgroupPlace *place, enum cgroup_controller controller, const char *name,
                     Cgroup *group, const char **ret_path) {
  const char *parent = place->parents[controller];
  if (!parent) {
    return -EOPNOTSUPP;
  }
  for (size_t i = 0; i < group->count; i++) {
    if (strcmp(group->ones[i].parent, parent) == 0) {
      *ret_path = group->ones[i].path;
      return 0;
    }
  }
  int error = make_one(place, parent, name, group);
  if (error == 0) {
    *ret_path = group->ones[group->count - 1].path;
  }
  return error;
}

static int limit_all(const CgroupPlace *place, const char *name, const struct cgroup_limits *limits,
                     Cgroup *group) {
  const char *path = NULL;
  int error = 0;
  if (limits->memory_bytes > 0) {
    error = group_for(place, CGROUP_MEMORY, name, group, &path);
    error = error ? error : limit_memory(place->version, path, limits->memory_bytes);
    if (error == 0) {
      group->oom_file = g_build_filename(
          path, place->version == 2 ? "memory.events" : "memory.oom_control", NULL);
    }
  }
  if (error == 0 && limits->cpu_millis > 0) {
    error = group_for(place, CGROUP_CPU, name, group, &path);
    error = error ? error : limit_cpu(place->version, path, limits->cpu_millis);
  }
  if (error == 0 && limits->pids > 0) {
    error = group_for(place, CGROUP_PIDS, name, group, &path);
    error = error ? error : limit_pids(path, limits->pids);
  }
  return error;
}

static int open_procs(Cgroup *group) {
  for (size_t i = 0; i < group->count; i++) {
    g_autofree char *path = g_build_filename(group->ones[i].path, "cgroup.procs", NULL);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
      return -errno;
    }
    group->procs_fds[group->procs_count++] = fd;
  }
  return 0;
}

int cgroup_new(const CgroupPlace *place, const char *name, const struct cgroup_limits *limits,
               Cgroup **ret_group, char **ret_what) {
  Cgroup *group = g_new0(Cgroup, 1);
  int error = limit_all(place, name, limits, group);
  error = error ? error : open_procs(group);
  if (error < 0) {
    *ret_what = g_strdup(group->count > 0 ? group->ones[group->count - 1].path : name);
    (void)cgroup_remove(group, 0);
    cgroup_free(group);
    return error;
  }
  *ret_group = group;
  return 0;
}

const int *cgroup_procs_fds(const Cgroup *group, size_t *ret_count) {
  *ret_count = group->procs_count;
  return group->procs_fds;
}

void cgroup_joined(Cgroup *group) {
  for (size_t i = 0; i < group->procs_count; i++) {
    close(group->procs_fds[i]);
  }
  group->procs_count = 0;
  for (size_t i = 0; i < group->count; i++) {
    if (group->ones[i].lock_fd >= 0) {
      close(group->ones[i].lock_fd);
      group->ones[i].lock_fd = -1;
    }
  }
}

uint64_t cgroup_oom_kills(const Cgroup *group) {
  if (!group->oom_file) {
    return 0;
  }
  char text[512];
  int fd = open(group->oom_file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  text[MAX(count, 0)] = '\0';
  const char *line = text;
  while (line) {
    if (g_str_has_prefix(line, "oom_kill ")) {
      return g_ascii_strtoull(line + strlen("oom_kill "), NULL, 10);
    }
    line = strchr(line, '\n');
    line = line ? line + 1 : NULL;
  }
  return 0;
}

/* ---- Removing --------------------------------------------------------------------------------- */

/* Removes the parent when it is empty and nobody is about to make a group in it. */
static void remove_parent(const char *parent) {
  int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
    (void)rmdir(parent);
  }
  close(fd);
}

static int remove_folder(const char *path, int64_t patience) {
  for (;;) {
    if (rmdir(path) == 0 || errno == ENOENT) {
      return 0;
    }
    if (errno != EBUSY || patience <= 0) {
      return -errno;
    }
    (void)nanosleep(&(struct timespec){.tv_nsec = MILLISECOND}, NULL);
    patience -= MILLISECOND;
  }
}

int cgroup_remove(Cgroup *group, int64_t patience) {
  int first_error = 0;
  cgroup_joined(group);
  for (size_t i = 0; i < group->count; i++) {
    int error = remove_folder(group->ones[i].path, patience);
    first_error = first_error ? first_error : error;
    remove_parent(group->ones[i].parent);
  }
  return first_error;
}

void cgroup_free(Cgroup *group) {
  if (!group) {
    return;
  }
  cgroup_joined(group);
  for (size_t i = 0; i < group->count; i++) {
    g_free(group->ones[i].path);
    g_free(group->ones[i].parent);
  }
  g_free(group->oom_file);
  g_free(group);
}

static void sweep_parent(const char *parent) {
  DIR *folder = opendir(parent);
  if (!folder) {
    return;
  }
  if (flock(dirfd(folder), LOCK_EX | LOCK_NB) == 0) {
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
        /* Refused where there are processes. */
        (void)unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
      }
    }
  }
  closedir(folder);
}

void cgroup_place_sweep(const CgroupPlace *place) {
  for (size_t i = 0; i < CGROUP_CONTROLLERS; i++) {
    if (place->parents[i] && (i == 0 || g_strcmp0(place->parents[i], place->parents[i - 1]) != 0)) {
      sweep_parent(place->parents[i]);
    }
  }
}
