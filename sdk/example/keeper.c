/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.c: starts keepers, listens to them; and what a keeper does.
 *
 * A keeper is a child subreaper: a process below it that loses its parent becomes the keeper's own child. So it is
 * enough to kill one's children, again and again until there are none. A pid is safe to kill because only the keeper
 * reaps it.
 *
 * A keeper is a fork without exec of a process with threads, where another thread may have held any lock: it makes
 * system calls, and takes no memory.
 */
#include "example.h"

#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- The keeper's own process ----------------------------------------------------------------------------- */

/* Where a keeper has its descriptors: those of the plan, then its end of the control. */
enum { SLOT_EXTRA = 3, SLOT_CONTROL, SLOTS };

struct start { /* what is made before the fork, since it takes memory */
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

/* Moves them to their slots and closes everything else that the host has open. */
static int take_slots(const struct plan *plan, int control) {
  int moved[SLOTS];
  for (int i = 0; i < SLOTS; i++) { /* away first: one may lie where another belongs */
    int fd = i == SLOT_CONTROL ? control : plan->fds[i];
    moved[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD, SLOTS);
    if (fd >= 0 && moved[i] < 0) {
      return -1;
    }
  }
  for (int i = 0; i < SLOTS; i++) {
    if (moved[i] < 0) {
      close(i);
    } else if (dup3(moved[i], i, O_CLOEXEC) < 0) {
      return -1;
    }
  }
  return close_range(SLOTS, ~0u, 0);
}

static void tell(enum word_kind kind, int number) {
  const struct word word = {(int32_t)kind, number};
  send(SLOT_CONTROL, &word, sizeof word, MSG_NOSIGNAL);
}

/* Kills the keeper's children. The file holds "pid pid pid "; one number may come in two reads. */
static void kill_children(void) {
  char text[4096];
  ssize_t length = 0;
  pid_t pid = 0;
  int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return; /* create has looked whether it is there */
  }
  while ((length = read(fd, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < length; i++) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = 10 * pid + (text[i] - '0');
      } else if (pid > 0) {
        kill(pid, SIGKILL);
        pid = 0;
      }
    }
  }
  close(fd);
}

/* Reaps what has ended and tells of the command; flags 0: waits for the first one. Returns 0 when nothing is left. */
static int reap(pid_t *command, int flags) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(-1, &status, flags)) > 0) {
    if (ended == *command) {
      tell(WORD_ENDED, status);
      *command = 0; /* another process may get its number now */
    }
    flags = WNOHANG;
  }
  return ended == 0;
}

/* Until nothing is left. All signals are blocked: an end that nobody waits for yet stays pending. */
static void tend(pid_t command) {
  sigset_t ends;
  struct signalfd_siginfo info;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  struct pollfd fds[] = {{.fd = SLOT_CONTROL, .events = POLLIN},
                         {.fd = signalfd(-1, &ends, SFD_CLOEXEC), .events = POLLIN}};
  while (reap(&command, WNOHANG)) {
    poll(fds, 2, -1);
    if (fds[0].revents != 0 || fds[1].fd < 0) { /* asked to end it, or nobody is there to ask */
      do {
        kill_children();
      } while (reap(&command, 0));
      return;
    }
    if (read(fds[1].fd, &info, sizeof info) < 0) {
      continue;
    }
  }
}

static _Noreturn void keep(const struct plan *plan, int control, const struct start *start) {
  pid_t command = 0;
  if (take_slots(plan, control) < 0) {
    _exit(1);
  }
  setsid(); /* what a terminal sends to the host is not for it */
  signal(SIGCHLD, SIG_DFL);
  prctl(PR_SET_NAME, "example-keeper");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  umask(022);
  environ = plan->environment; /* this is where posix_spawnp finds PATH */
  if (chdir(plan->folder) < 0) {
    tell(WORD_NO_FOLDER, errno);
    _exit(0);
  }
  int error = posix_spawnp(&command, plan->argv[0], &start->actions, &start->attributes, plan->argv,
                           plan->environment);
  for (int i = 0; i <= SLOT_EXTRA; i++) {
    close(i); /* or its output would never end */
  }
  tell(error ? WORD_NO_PROGRAM : WORD_STARTED, error ? error : command);
  tend(command);
  _exit(0);
}

/* ---- The host's process --------------------------------------------------------------------------------------- */

static int start_init(struct start *start, const struct plan *plan) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  if (posix_spawn_file_actions_init(&start->actions) != 0) {
    return -1;
  }
  posix_spawnattr_init(&start->attributes);
  posix_spawnattr_setflags(&start->attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setsigmask(&start->attributes, &none);
  posix_spawnattr_setsigdefault(&start->attributes, &all);
  int failed = 0;
  for (int i = 0; i < SLOT_EXTRA; i++) { /* to itself: it survives the exec */
    failed = failed || posix_spawn_file_actions_adddup2(&start->actions, i, i) != 0;
  }
  if (plan->fds[SLOT_EXTRA] >= 0) {
    failed = failed || posix_spawn_file_actions_adddup2(&start->actions, SLOT_EXTRA, EXTRA_FD) != 0;
  }
  return failed ? -1 : 0;
}

static void start_clear(struct start *start) {
  posix_spawnattr_destroy(&start->attributes);
  posix_spawn_file_actions_destroy(&start->actions);
}

/* Returns the keeper's pid, or -1 with errno. */
static pid_t fork_keeper(const struct plan *plan, int control, const struct start *start) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of the host runs in the keeper */
  pid_t pid = fork();
  if (pid == 0) {
    keep(plan, control, start);
  }
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return pid;
}

struct keeper *keeper_start(const struct plan *plan) {
  struct start start;
  int ends[2];
  struct keeper *keeper = calloc(1, sizeof *keeper);
  if (!keeper || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
    free(keeper);
    return NULL;
  }
  int error = ENOMEM;
  keeper->pid = -1;
  keeper->control = ends[0];
  if (start_init(&start, plan) == 0) {
    keeper->pid = fork_keeper(plan, ends[1], &start);
    error = errno;
    start_clear(&start);
  }
  close(ends[1]);
  if (keeper->pid < 0) {
    close(ends[0]);
    free(keeper);
    errno = error;
    return NULL;
  }
  return keeper;
}

int keeper_hear(const struct keeper *keeper, struct word *ret_word) {
  ssize_t length = recv(keeper->control, ret_word, sizeof *ret_word, MSG_DONTWAIT);
  if (length == (ssize_t)sizeof *ret_word) {
    return 1;
  }
  return length < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

void keeper_end(const struct keeper *keeper) {
  shutdown(keeper->control, SHUT_WR);
}

static int is_gone(const struct keeper *keeper) {
  struct word word;
  int heard = 0;
  while ((heard = keeper_hear(keeper, &word)) > 0) {
  }
  return heard < 0;
}

static void forget(struct keeper *take_keeper) {
  while (waitpid(take_keeper->pid, NULL, 0) < 0 && errno == EINTR) {
  }
  close(take_keeper->control);
  free(take_keeper);
}

void keepers_collect(struct keeper **keepers, int64_t until) {
  while (*keepers) {
    struct keeper *keeper = *keepers;
    int64_t left = until - now();
    if (is_gone(keeper)) {
      *keepers = keeper->next;
      forget(keeper);
    } else if (left > 0) {
      struct pollfd news = {.fd = keeper->control, .events = POLLIN};
      poll(&news, 1, left < SECOND ? (int)(left / 1000000) + 1 : 1000);
    } else {
      keepers = &keeper->next;
    }
  }
}

void keepers_release(struct keeper *take_keepers) {
  while (take_keepers) {
    struct keeper *next = take_keepers->next;
    close(take_keepers->control);
    free(take_keepers);
    take_keepers = next;
  }
}
