/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside.h: which provider this thread is in, for whoever has to say so when the process ends there. Asking is safe in a
 * signal handler and in an exit handler.
 */
#ifndef SANDHOST_PROVIDER_INSIDE_H
#define SANDHOST_PROVIDER_INSIDE_H

#include <glib.h>
#include <signal.h>

typedef struct {
  const char *provider; /* NULL: in none */
  const char *operation;
} Inside;

/* What a provider must leave as it was, and is the thread's: taken before a call, put back after it. */
typedef struct {
  Inside before;
  sigset_t mask;
} InsideVisit;

/* provider and operation are borrowed until the leave. */
void inside_enter(InsideVisit *visit, const char *provider, const char *operation);
void inside_leave(const InsideVisit *visit);

Inside inside_now(void);

#endif
