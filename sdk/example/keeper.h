/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h: a command runs below a process of its own, its keeper. Whatever the command starts, in whatever group or
 * session, stays below the keeper, which can therefore end all of it; and it does so by itself when we are gone.
 */
#ifndef EXAMPLE_KEEPER_H
#define EXAMPLE_KEEPER_H

#include <stdint.h>
#include <sys/types.h>

struct keeper {
  struct keeper *next;
  pid_t pid;
  int control; /* poll it for words. When our side of it closes, the keeper ends everything */
};

/* What a keeper starts. Descriptors are borrowed and may be any number; -1: none. */
struct plan {
  const char *folder;
  char **argv;
  char **environment; /* argv[0] is looked up in its PATH */
  int fds[4];         /* stdin, stdout, stderr, and what the command gets as EXTRA_FD */
};

#define EXTRA_FD 9 /* one digit: the largest that every shell can redirect */

/* What a keeper says, in this order: one of the first three, ENDED after STARTED. */
enum word_kind {
  WORD_STARTED,    /* number: the command's pid */
  WORD_NO_FOLDER,  /* number: errno */
  WORD_NO_PROGRAM, /* number: errno */
  WORD_ENDED,      /* number: as waitpid tells it */
};

struct word {
  int32_t kind;
  int32_t number;
};

/* Owned; NULL with errno. */
struct keeper *keeper_start(const struct plan *plan);
/* 1: *ret_word is filled. 0: it has nothing to say now. -1: it is gone, and nothing is left below it. */
int keeper_hear(const struct keeper *keeper, struct word *ret_word);
/* Asks it to end everything, now. Does not wait. */
void keeper_end(const struct keeper *keeper);
/* Forgets the keepers that are gone, and waits until then (CLOCK_MONOTONIC ns; 0: not at all) for the others. */
void keepers_collect(struct keeper **keepers, int64_t until);
/* Frees what is left of the list. Those keepers end everything too, unobserved. */
void keepers_release(struct keeper *take_keepers);

#endif
