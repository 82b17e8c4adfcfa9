/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h: a small process between the guest and one command.
 *
 * It is a child subreaper, so everything that the command starts stays below it, whatever session
 * or group it goes to: that is how a limit finds the whole tree. It starts the command, waits for
 * it, tells how it ended, and goes on reaping until nothing is left below it; then it is free for
 * the next command. Keepers are forked ahead of time.
 */
#ifndef SANDHOST_GUEST_KEEPER_H
#define SANDHOST_GUEST_KEEPER_H

#include "guest.h"

/* What a keeper says. */
struct keeper_message {
  uint32_t kind;   /* KEEPER_* */
  int32_t pid;     /* STARTED */
  int32_t status;  /* ENDED: as wait4 gives it */
  uint32_t idle;   /* ENDED: nothing is left below it */
  int64_t started; /* CLOCK_MONOTONIC */
  int64_t ended;
  int64_t user_time;
  int64_t system_time;
  uint64_t max_rss;
};
enum { KEEPER_STARTED = 1, KEEPER_ENDED = 2, KEEPER_IDLE = 3 };

static inline int64_t keeper_nanoseconds(struct timeval time) {
  return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

static inline void keeper_message_usage(struct keeper_message *message,
                                        const struct rusage *usage) {
  message->user_time = keeper_nanoseconds(usage->ru_utime);
  message->system_time = keeper_nanoseconds(usage->ru_stime);
  message->max_rss = (uint64_t)usage->ru_maxrss * 1024;
}

struct keeper {
  struct source source; /* its socket */
  pid_t pid;
  struct keeper *next;
  int busy;      /* it has a command, or children of one */
  int reaped;    /* its process is gone; a command that it began may still be telling so */
  int closed;    /* all that was said is heard */
  int unbegun;   /* it died before it took its command */
  void *command; /* whose messages they are; NULL: nobody listens any more */
};

/* Hands a command with its mark to a keeper that is free, or to a new one: parameters as keeper-main.c reads
 * them, descriptors for 0, 1 and 2, which stay the caller's. NULL with errno. */
struct keeper *keeper_start(void *command, uint64_t mark, const unsigned char *parameters,
                            size_t length, const int fds[3]);
/* Ends the tree below it; it itself goes on. As tree_kill. */
int keeper_kill_tree(struct keeper *keeper);
/* Forks one for the next command when none is free. */
void keeper_prepare(void);
/* Whether any keeper has something alive below it, or one with something below it was ever lost. */
int keeper_any_busy(void);

/* command.c: what a keeper said, and that it is gone. */
void command_told(void *command, const struct keeper_message *message);
void command_keeper_gone(void *command, int unbegun);
/* Whether the guest itself waits for this process, since its keeper is gone. */
int command_is_adopted(pid_t pid);

#endif
