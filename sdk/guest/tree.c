/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.c: finds processes by their parents and kills them so that none gets away: all are stopped
 * first, until a look finds nobody new, and only then killed.
 *
 * Who was seen may have ended since, and its number may be somebody else's by now. So whoever gets a signal is held by a
 * descriptor and looked at again, parents before their children: it gets the signal if it still stands below the root.
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCESSES 65536u
#define LOOKS 200          /* a tree that is not dead by then is held by the kernel */
#define UNSETTLED_LOOKS 10 /* a way up that is broken for longer is hidden from us, not changing */

enum belongs { UNKNOWN, INSIDE, OUTSIDE, BROKEN };

/* Of /proc/PID/stat. */
#define STATE_FIELD 3
#define THREADS_FIELD 20
#define MARK_FIELD 25

struct process {
  struct tree_process facts;
  int ended; /* a zombie: no member, but a link on the way up */
  int stopped;
  int judged; /* it got its signal, or turned out to be no member */
  enum belongs belongs;
};

struct snapshot {
  struct process *processes; /* by pid */
  size_t count;
  size_t room;
  size_t members;
  int settled; /* every process could be followed up to the top */
};

/* A number, from the state on. */
static uint64_t read_field(const char *text, int wanted) {
  for (int field = STATE_FIELD; text && field < wanted; field++) {
    text = strchr(text + 1, ' ');
  }
  return text ? strtoull(text, NULL, 10) : 0;
}

/* The state is that of the first thread: when only that one has ended, the process goes on. */
static int has_ended(const char *state) {
  return (state[0] == 'Z' && read_field(state, THREADS_FIELD) <= 1) || state[0] == 'X';
}

static int read_stat(const char *name, struct process *ret_process) {
  char path[64];
  char text[512];
  size_t length = strlen(name);
  if (length > 20) {
    return -1;
  }
  memcpy(path, "/proc/", 6);
  memcpy(path + 6, name, length);
  memcpy(path + 6 + length, "/stat", 6);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return -1;
  }
  ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  if (got <= 0) {
    return -1;
  }
  text[got] = '\0';
  /* pid (name) state parent: the name may hold anything, so look from its last parenthesis on. */
  const char *behind = strrchr(text, ')');
  if (!behind || strlen(behind) < 5) {
    return -1;
  }
  *ret_process = (struct process){.facts = {.pid = (pid_t)strtol(name, NULL, 10),
                                            .parent = (pid_t)strtol(behind + 4, NULL, 10),
                                            .mark = read_field(behind + 2, MARK_FIELD)},
                                  .ended = has_ended(behind + 2),
                                  .stopped = behind[2] == 'T' || behind[2] == 't'};
  return 0;
}

static int by_pid(const void *a, const void *b) {
  pid_t left = ((const struct process *)a)->facts.pid;
  pid_t right = ((const struct process *)b)->facts.pid;
  return (left > right) - (left < right);
}

static struct process *find(const struct snapshot *snapshot, pid_t pid) {
  const struct process key = {.facts.pid = pid};
  return snapshot->count > 0 ? bsearch(&key, snapshot->processes, snapshot->count,
                                       sizeof *snapshot->processes, by_pid)
                             : NULL;
}

static int add(struct snapshot *snapshot, const struct process *process) {
  if (snapshot->count == snapshot->room) {
    size_t room = snapshot->room ? 2 * snapshot->room : 256;
    struct process *grown = realloc(snapshot->processes, room * sizeof *grown);
    if (!grown) {
      return -1;
    }
    snapshot->processes = grown;
    snapshot->room = room;
  }
  snapshot->processes[snapshot->count++] = *process;
  return 0;
}

static void take(struct snapshot *snapshot) {
  DIR *folder = opendir("/proc");
  struct dirent *entry = NULL;
  snapshot->count = 0;
  while (folder && (entry = readdir(folder)) != NULL && snapshot->count < MAX_PROCESSES) {
    struct process process;
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
        read_stat(entry->d_name, &process) == 0 && add(snapshot, &process) < 0) {
      break;
    }
  }
  if (folder) {
    closedir(folder);
  }
  if (snapshot->count > 0) {
    qsort(snapshot->processes, snapshot->count, sizeof *snapshot->processes, by_pid);
  }
}

/* What one process is, as far as it can be told without its parent. */
static enum belongs place(const struct process *process, pid_t root, tree_judge judge) {
  pid_t parent = process->facts.parent;
  if (process->facts.pid == root) {
    return OUTSIDE;
  }
  enum tree_place judged = judge ? judge(&process->facts) : TREE_AS_PARENT;
  if (judged != TREE_AS_PARENT) {
    return judged == TREE_KILLED ? INSIDE : OUTSIDE;
  }
  if (process->belongs != UNKNOWN) {
    return process->belongs;
  }
  return parent == root ? INSIDE : parent == 0 ? OUTSIDE : UNKNOWN;
}

/* Follows the parents up to one that is known, and writes the answer to all on the way. */
static void classify(struct snapshot *snapshot, struct process *process, pid_t root,
                     tree_judge judge) {
  enum belongs answer = UNKNOWN;
  struct process *at = process;
  for (size_t steps = 0; answer == UNKNOWN; steps++) {
    if (!at || steps > snapshot->count) {
      answer = BROKEN; /* a parent that ended while we looked: its child has another one by now */
      break;
    }
    answer = place(at, root, judge);
    at = answer == UNKNOWN ? find(snapshot, at->facts.parent) : at;
  }
  for (struct process *way = process; way && way->belongs == UNKNOWN;) {
    way->belongs = answer;
    way = way == at ? NULL : find(snapshot, way->facts.parent);
  }
}

static int is_member(const struct process *process) {
  return process->belongs == INSIDE && !process->ended;
}

static void look(struct snapshot *snapshot, pid_t root, tree_judge judge) {
  take(snapshot);
  snapshot->members = 0;
  snapshot->settled = 1;
  for (size_t i = 0; i < snapshot->count; i++) {
    struct process *process = &snapshot->processes[i];
    classify(snapshot, process, root, judge);
    snapshot->members += (size_t)is_member(process);
    snapshot->settled = snapshot->settled && process->belongs != BROKEN;
  }
}

/* Sends it to whom the descriptor holds; where there are none of those, to whoever has the number. */
static void send_signal(int held, pid_t pid, int number) {
  if (held < 0 || (syscall(SYS_pidfd_send_signal, held, number, NULL, 0) < 0 && errno != ESRCH)) {
    kill(pid, number);
  }
}

/* Whether one that has the number of a member is one. Its parents have been judged. */
static int is_still_below(const struct snapshot *snapshot, const struct process *now, pid_t root,
                          tree_judge judge) {
  enum belongs belongs = place(now, root, judge);
  const struct process *parent = belongs == UNKNOWN ? find(snapshot, now->facts.parent) : NULL;
  return belongs == INSIDE || (parent && is_member(parent) && parent->judged);
}

static int read_stat_of(pid_t pid, struct process *ret_process) {
  char name[16];
  snprintf(name, sizeof name, "%d", (int)pid);
  return read_stat(name, ret_process);
}

static void signal_member(const struct snapshot *snapshot, struct process *member, pid_t root,
                          tree_judge judge, int number) {
  struct process now;
  pid_t pid = member->facts.pid;
  int held = (int)syscall(SYS_pidfd_open, pid, 0);
  if (read_stat_of(pid, &now) == 0 && is_still_below(snapshot, &now, root, judge)) {
    send_signal(held, pid, number);
  } else {
    member->belongs = BROKEN; /* the next look tells what it is */
  }
  member->judged = 1;
  if (held >= 0) {
    close(held);
  }
}

/* Parents mostly have the lower number, so that one pass is nearly always enough. */
static void signal_members(struct snapshot *snapshot, pid_t root, tree_judge judge, int number) {
  for (int more = 1; more;) {
    more = 0;
    for (size_t i = 0; i < snapshot->count; i++) {
      struct process *process = &snapshot->processes[i];
      const struct process *parent = find(snapshot, process->facts.parent);
      if (is_member(process) && !process->judged &&
          (!parent || !is_member(parent) || parent->judged)) {
        signal_member(snapshot, process, root, judge, number);
        more = 1;
      }
    }
  }
}

/* Whether every member of one look was a member of the look before it, and so is stopped. */
static int nobody_new(const struct snapshot *now, const struct snapshot *before) {
  for (size_t i = 0; i < now->count; i++) {
    const struct process *process = &now->processes[i];
    if (is_member(process)) {
      const struct process *seen = find(before, process->facts.pid);
      if (!seen || seen->belongs != INSIDE) {
        return 0;
      }
    }
  }
  return 1;
}

static void rest(void) {
  const struct timespec millisecond = {.tv_nsec = 1000000};
  nanosleep(&millisecond, NULL);
}

/* 0, or -1: it has ended, or its number is somebody else's by now. */
static int find_child(pid_t pid, pid_t parent, pid_t other, struct process *ret_process) {
  if (read_stat_of(pid, ret_process) < 0) {
    ret_process->stopped = 1; /* as far as can be told without a /proc */
    return kill(pid, 0) < 0 && errno == ESRCH ? -1 : 0;
  }
  pid_t now = ret_process->facts.parent;
  return ret_process->ended || (now != parent && now != other) ? -1 : 0;
}

int tree_hold(pid_t pid, pid_t parent, pid_t other) {
  struct process process;
  int held = (int)syscall(SYS_pidfd_open, pid, 0);
  int found = find_child(pid, parent, other, &process);
  if (found == 0) {
    send_signal(held, pid, SIGSTOP);
    found = find_child(pid, parent, other, &process);
  }
  /* It is on its way: to its stop, or to an end that had begun. */
  for (int i = 0; i < LOOKS && found == 0 && !process.stopped; i++) {
    rest();
    found = find_child(pid, parent, other, &process);
  }
  if (held >= 0) {
    close(held);
  }
  return found;
}

int tree_kill(pid_t root, tree_judge judge) {
  struct snapshot now = {.processes = NULL};
  struct snapshot before = {.processes = NULL};
  look(&now, root, judge);
  int looked = now.count > 0 ? 0 : -1;
  for (int i = 0; i < LOOKS; i++) {
    signal_members(&now, root, judge, SIGSTOP);
    struct snapshot swap = before;
    before = now;
    now = swap;
    look(&now, root, judge);
    if (nobody_new(&now, &before) && (now.settled || i >= UNSETTLED_LOOKS)) {
      break;
    }
  }
  for (int i = 0; i < LOOKS; i++) {
    if (now.members == 0 && (now.settled || i >= UNSETTLED_LOOKS)) {
      break;
    }
    signal_members(&now, root, judge, SIGKILL);
    look(&now, root, judge);
    if (now.members > 0) {
      rest();
      look(&now, root, judge);
    }
  }
  free(now.processes);
  free(before.processes);
  return looked;
}
