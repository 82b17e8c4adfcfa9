/* SPDX-License-Identifier: Apache-2.0 */
/* start.h: makes a process of a program, with nothing of ours in it but what it is given. */
#ifndef SANDHOST_GUEST_START_H
#define SANDHOST_GUEST_START_H

#include <stdint.h>
#include <sys/types.h>

struct start {
  int fds[3];          /* for 0, 1 and 2 */
  int folder;          /* its working directory */
  const char *program; /* relative to folder */
  char **argv;
  char **environment;
  uint64_t mark; /* see mark.h */
  int extra;     /* goes to extra_at; -1: none */
  int extra_at;
  /* Called in the new process before it is the program; may only make system calls. */
  void (*tell)(void *user, pid_t pid);
  void *user;
  int *ret_told; /* set once tell was called */
};

/* In a session of its own, all signals at their defaults and none blocked. 0; or errno, then the
 * process has ended (tell may have been called). Needs a caller with one thread. */
int start_program(const struct start *start, pid_t *ret_pid);

#endif
