/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h: what belongs to the process of the host, looked at before and after each call into a provider, from the moment
 * before its file is mapped. What a call changed is put back, so that the next one that does it is seen as well.
 */
#ifndef SANDHOST_CONFORMANCE_GUARD_H
#define SANDHOST_CONFORMANCE_GUARD_H

#include <glib.h>
#include <signal.h>
#include <sys/types.h>

#include "interpose.h"

typedef enum {
  GUARD_STATE,    /* the working directory, the umask, the locale, the environment, signals */
  GUARD_HANDLERS, /* what is to run at an exit or a fork */
  GUARD_THREADS,
  GUARD_PRINTED,
  GUARD_STARTED, /* a process */
  GUARD_REAPED,  /* somebody else's child */
  GUARD_KINDS
} GuardKind;

typedef struct {
  char *folder;
  char *locale;
  char **environment;
  guint umask;
  sigset_t mask;    /* of the thread */
  void *own_locale; /* of the thread */
  struct sigaction actions[NSIG];
} GuardState;

typedef struct {
  const char *operation;
  GuardState before;
  guint children; /* where nothing may be started */
  InterposeCall calling;
} GuardStay;

/* Once, before anything of a provider is there. */
void guard_begin(void);
/* operation: static. Around each call, in the thread that makes it; calls may be nested. */
void guard_enter(GuardStay *stay, const char *operation);
void guard_leave(GuardStay *stay);

/* An address of the provider: what its own file has left to be done at an exit or a fork. */
void guard_judge_handlers(const void *address);
/* After close, and after stop: whose threads have to be over. */
void guard_judge_threads(gboolean stopped);

/* All that was found of a kind, as one line; NULL: nothing. Owned. */
char *guard_found(GuardKind kind);

/* Of this process, those that live and those that nobody has waited for. */
guint guard_count_children(void);

#endif
