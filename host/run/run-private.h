/* SPDX-License-Identifier: Apache-2.0 */
/* run-private.h: what execute.c and run.c share. */
#ifndef SANDHOST_RUN_RUN_PRIVATE_H
#define SANDHOST_RUN_RUN_PRIVATE_H

#include <pthread.h>

#include "run/run.h"
#include "run/session.h"

/* Lock order: opening, then copying. Neither is held while a command runs. The locks of this room are pthread's own,
 * which the thread sanitizer sees; it does not see GLib's. */
struct Run {
  char *id;
  char *trace_id;
  const Harness *harness;
  Record *record;
  Journal *journal;
  RunHooks hooks;

  pthread_mutex_t answering; /* one question at a time */
  pthread_mutex_t opening; /* guards session, and is held while a sandbox is asked about and made */
  Session *session;        /* current one, or NULL */
  pthread_mutex_t copying; /* one copy at a time, so that every command sees a complete one */
};

#endif
