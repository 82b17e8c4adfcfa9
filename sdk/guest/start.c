/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c: vfork and exec. Not posix_spawn, since whoever kills this process must not keep the
 * guest from knowing what it had started: the new process tells its number before it runs anything.
 */
#include "start.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* What the new process does; returns only when that fails. */
static void become(const struct start *start) {
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
  start->tell(start->user, getpid());
  execve(start->program, start->argv, start->environment);
}

int start_program(const struct start *start, pid_t *ret_pid) {
  volatile int failed = 0;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the new process */
  pid_t pid = vfork();
  if (pid == 0) {
    become(start);
    failed = errno ? errno : EINVAL;
    _exit(127);
  }
  int number = pid < 0 ? errno : failed;
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (number == 0) {
    *ret_pid = pid;
    return 0;
  }
  while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
  }
  return number;
}
