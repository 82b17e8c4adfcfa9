/* SPDX-License-Identifier: Apache-2.0 */
/* run-private.h: what the files of a run share. */
#ifndef SANDHOST_RUN_RUN_PRIVATE_H
#define SANDHOST_RUN_RUN_PRIVATE_H

#include <pthread.h>

#include "run/metering.h"
#include "run/output-watch.h"
#include "run/run.h"
#include "run/session.h"

typedef struct Heartbeat Heartbeat;

/* Lock order: opening, then copying. Neither is held while a command runs. The locks of this room are pthread's own,
 * which the thread sanitizer sees; it does not see GLib's. */
struct Run {
  char *id;
  char *trace_id;
  char *owner;      /* owner_...: this attempt's name in the record */
  char *session_id; /* NULL: it belongs to nothing */
  char *agent_name;
  const Harness *harness;
  Record *record;
  Journal *journal;
  RunHooks hooks;
  WorkspaceFolder *folder; /* opened when the run begins; used under copying */
  OutputWatch *outputs;    /* of the commands that run */
  Heartbeat *heartbeat;    /* NULL where nothing is recorded */
  gint lost;               /* atomic: somebody else holds the run */

  pthread_mutex_t answering; /* one question at a time */
  pthread_mutex_t opening; /* guards session, and is held while a sandbox is asked about and made */
  Session *session;        /* current one, or NULL */
  pthread_mutex_t copying; /* one copy at a time, so that every command sees a complete one */

  gboolean pauses;             /* an ask that nobody answers waits */
  JsonObject *check;           /* {approver_check}: who is asked about an approver; NULL: nobody */
  gint interrupted;            /* atomic: as run_is_interrupted */
  gint shortened;              /* atomic: that a command gets less time than asked for was told */
  char *manifest_digest;       /* what approvals are bound to */
  JsonObject *decided;         /* approvals of earlier segments; never changed; NULL: none */
  pthread_mutex_t pausing;     /* guards what follows */
  JsonObject *waiting;         /* array of the asks that this segment has put down */
  JsonObject *waiting_budgets; /* the same of budget requests */
  char *exhausted;             /* the text of a budget that has ended the run; NULL: none has */
  Metering *metering;          /* NULL: nothing is limited. Never changed */
};

/* heartbeat.c: tells the record every third of the lease that the run lives, and looks each second whether somebody
 * else holds it; then *lost is set and cancel (may be NULL) raised. Each second, outputs is looked at. All are borrowed
 * until the end. */
Heartbeat *heartbeat_start(Record *record, const char *run_id, const char *owner,
                           gint64 lease_seconds, gint *lost, Cancel *cancel, OutputWatch *outputs);
void heartbeat_stop(Heartbeat *take_heartbeat);

/* Bytes of a call's arguments that are kept to be run again: some are held more than once, and whoever decides reads them. */
#define PAUSE_MOST_ARGUMENTS (1u << 20)

/* retention.c: for how many days a run is kept after its end; 0: for ever. */
gint64 retention_days(const Config *config);

/* pause.c. Returns owned. */
char *pause_manifest_digest(const Config *config);
/* What was decided about just this ask of this call. */
GateAnswer pause_recall(const Run *run, const char *call_id, JsonObject *args,
                        const PolicyRequest *request, const PolicyDecision *decision);
/* Puts the asks down; the run is paused then. */
gboolean pause_suspend(Run *run, const char *call_id, JsonObject *args, GPtrArray *requests,
                       GPtrArray *decisions, GError **error);

/* An ask that was answered at once, as an approval that is decided. Returns owned. */
JsonObject *pause_answered(const Run *run, const char *call_id, JsonObject *args,
                           const PolicyRequest *request, const PolicyDecision *decision,
                           const char *approver);
/* Tells of it in the record's events. */
void pause_record_answered(Run *run, JsonObject *approval);

/* budget.c. Sets *error where a budget has ended the run. */
gboolean budget_refuse_exhausted(Run *run, GError **error);
/* What was decided about its earlier segments' budget requests. */
gboolean budget_recall(Run *run, GError **error);

#endif
