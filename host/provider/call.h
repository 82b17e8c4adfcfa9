/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h: the host's side of a call: what a plugin asks (deadline, cancel) and tells (failure, facts) through
 * the host's table.
 *
 * Locks: lock guards what the plugin told; gate is held while something of the caller runs. A thread that has
 * the gate may take the lock, never the other way round.
 */
#ifndef SANDHOST_PROVIDER_CALL_H
#define SANDHOST_PROVIDER_CALL_H

#include <pthread.h>

#include "provider/sandbox.h"

/* Handlers of local_test, by command. Reference counted, thread-safe. */
typedef struct TestCommands TestCommands;

struct sandhost_call {
  pthread_mutex_t lock;
  pthread_mutex_t gate;
  gint64 deadline;     /* does not change while the call runs */
  Cancel *cancel;      /* owned reference; NULL: cannot be cancelled */
  TestCommands *tests; /* borrowed; of the registry that the call comes from; NULL */

  gboolean over; /* lock: the operation has returned; what comes late has no effect */

  void (*progress)(void *user, const char *line); /* gate */
  void *user;                                     /* gate */
  gboolean left;                                  /* gate: the caller waits no more */

  gboolean failed; /* lock, as all that follows */
  char *message;   /* owned; clean text */
  char *service_code;
  gint64 retry_after;
  gboolean may_have_happened;
  gboolean did_not_happen; /* said, not merely left out */
  GHashTable *reports;     /* kind -> owned clean text */
};

/* The table that every plugin gets. Constant. */
extern const struct sandhost_host call_host_table;

/* Once per memory; then begin and end in turn. */
void call_init(struct sandhost_call *call);
void call_begin(struct sandhost_call *call, const CallScope *scope, TestCommands *tests);
/* The operation has returned: from here on the host's functions do nothing for this call. */
void call_finish(struct sandhost_call *call);
/* Forgets everything. */
void call_end(struct sandhost_call *call);

/* Cancelled, or past its deadline. Takes no lock. */
gboolean call_is_over(const struct sandhost_call *call);

/* What was reported; NULL. Borrowed until call_end; for a finished call only. */
const char *call_reported(const struct sandhost_call *call, guint32 kind);

/* Of an error of this domain (NULL: of none): nobody knows what the call did. */
void provider_error_set_abandoned(GError *error);
/* The same: it did nothing; or that is not so, whatever the provider says. */
void provider_error_set_not_happened(GError *error, gboolean certain);

/* A finished call's status as an error: the message of fail, else one made of the names. TRUE for
 * SANDHOST_OK, whatever fail said. */
gboolean call_settle(const struct sandhost_call *call, gint32 status, const char *provider,
                     const char *operation, GError **error);

/* "not found" for SANDHOST_NOT_FOUND; NULL for a number that is no status. Constant. */
const char *call_status_name(gint32 status);

#endif
