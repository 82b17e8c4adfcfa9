/* SPDX-License-Identifier: Apache-2.0 */
/* run-private.h: what execute.c and run.c share. */
#ifndef SANDHOST_RUN_RUN_PRIVATE_H
#define SANDHOST_RUN_RUN_PRIVATE_H

#include "run/run.h"
#include "run/session.h"

/* Lock order: opening, then copying. Neither is held while a command runs. */
struct Run {
  char *id;
  char *trace_id;
  const Harness *harness;
  Record *record;
  Journal *journal;
  RunHooks hooks;

  GMutex answering; /* one question at a time */
  GMutex opening;   /* guards session, and is held while a sandbox is asked about and made */
  Session *session; /* current one, or NULL */
  GMutex copying;   /* one copy at a time, so that every command sees a complete one */
};

#endif
