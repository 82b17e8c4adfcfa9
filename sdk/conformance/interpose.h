/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpose.h: functions of libc that everybody in this process calls through here: beginning a thread, detaching it, leaving
 * something to be done at an exit or a fork. What is called from within a provider is remembered.
 */
#ifndef SANDHOST_CONFORMANCE_INTERPOSE_H
#define SANDHOST_CONFORMANCE_INTERPOSE_H

#include <glib.h>

/* FALSE: this build does not see threads and handlers. */
gboolean interpose_sees(void);

/* A call into the provider, while its thread is in it. */
typedef struct InterposeCall {
  const char *operation;
  guint64 number;
  struct InterposeCall *outer;
} InterposeCall;

void interpose_enter(InterposeCall *call, const char *operation);
void interpose_leave(InterposeCall *call);

/* Threads that were begun in that call and are there still; detached: only those that nobody can wait for. */
guint interpose_threads_of(const InterposeCall *call, gboolean detached);
/* Threads that were begun in any call of that operation, or, but for it, of any other. *ret_operation: of one of them. */
guint interpose_threads_in(const char *operation, gboolean others, const char **ret_operation);

/* What was left to be done by the file that has this address in it. Each time once: what, and in which operation. */
typedef void (*InterposeTell)(const char *what, const char *operation);
void interpose_handlers(const void *address, InterposeTell tell);

/* Begins a thread of the suite's own, also where a provider has called the suite. */
GThread *suite_thread_new(const char *name, GThreadFunc function, gpointer data);

#endif
