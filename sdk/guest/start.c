/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c: vfork and exec. Not posix_spawn, since whoever kills this process must not keep the
 * guest from knowing what it had started: the new process tells its number before it runs anything.
 */
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mark.h"

/* The kernel's own call, since the library's does not touch its two internal signals, which may
 * have been ignored by whoever started the guest. */
static void default_signals(void) {
  static const struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
  } DEFAULT = {.handler = SIG_DFL};
  sigset_t none;
  for (int number = 1; number < _NSIG; number++) {
    syscall(SYS_rt_sigaction, number, &DEFAULT, NULL, sizeof DEFAULT.mask);
  }
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* How the new process tells that it did not become the program. */
struct failure {
  int number;  /* errno; 0: it did */
  int told;    /* start->tell was called */
  int ends[2]; /* of a pipe; unused with a true vfork */
};

/* What the new process does; returns only when that fails. */
static void become(const struct start *start, volatile struct failure *failure) {
  setsid();
  for (int i = 0; i < 3; i++) {
    if (dup2(start->fds[i], i) < 0) {
      return;
    }
  }
  if (start->extra >= 0 && dup2(start->extra, start->extra_at) < 0) {
    return;
  }
  if (fchdir(start->folder) < 0) {
    return;
  }
  default_signals();
  mark_set(start->mark);
  failure->told = 1;
  start->tell(start->user, getpid());
  execve(start->program, start->argv, start->environment);
}

#if defined(__SANITIZE_THREAD__) || defined(GUEST_VFORK_IS_FORK)
/* The thread sanitizer and valgrind make vfork a fork: nobody waits, and what is written to memory is not seen. A pipe
 * that closes with exec does both. */
static int failure_begin(volatile struct failure *failure) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0) {
    return -1;
  }
  failure->ends[0] = ends[0];
  failure->ends[1] = ends[1];
  return 0;
}

static void failure_tell(volatile struct failure *failure) {
  const int words[2] = {failure->number, failure->told};
  while (write(failure->ends[1], words, sizeof words) < 0 && errno == EINTR) {
  }
}

static void failure_wait(volatile struct failure *failure) {
  int words[2] = {0, 1};
  close(failure->ends[1]);
  while (read(failure->ends[0], words, sizeof words) < 0 && errno == EINTR) {
  }
  close(failure->ends[0]);
  failure->number = words[0];
  failure->told = words[1];
}
#else
/* vfork waits, and shares its memory: there is nothing to do. */
static int failure_begin(volatile struct failure *failure) {
  (void)failure;
  return 0;
}

static void failure_tell(volatile struct failure *failure) {
  (void)failure;
}

static void failure_wait(volatile struct failure *failure) {
  (void)failure;
}
#endif

int start_program(const struct start *start, pid_t *ret_pid) {
  volatile struct failure failure; /* written between the two returns of vfork */
  sigset_t all;
  sigset_t before;
  failure.number = 0;
  failure.told = 0;
  if (failure_begin(&failure) < 0) {
    return errno;
  }
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the new process */
  /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): see the top of this file */
  pid_t pid = vfork();
  if (pid == 0) {
    /* What is called makes system calls and writes to nothing but its own frame and failure. */
    become(start, &failure);                 // NOLINT(clang-analyzer-unix.Vfork)
    failure.number = errno ? errno : EINVAL; // NOLINT(clang-analyzer-unix.Vfork)
    failure_tell(&failure);                  // NOLINT(clang-analyzer-unix.Vfork)
    _exit(127);
  }
  int unstarted = errno;
  failure_wait(&failure);
  int number = pid < 0 ? unstarted : failure.number;
  *start->ret_told = pid > 0 && failure.told;
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (number == 0) {
    *ret_pid = pid;
    return 0;
  }
  while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
  }
  return number;
}
