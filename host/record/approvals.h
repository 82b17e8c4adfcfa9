/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approvals.h: what outlives the process of a run: who holds it and since when, what it needs to go on, and the asks that
 * wait for a person (behaviour 6.2 to 6.7). It stands in the record's own file, so that a decision, its event and the
 * step that uses it are durable together or not at all.
 *
 * An owner is a name that one attempt of a run has for itself (owner_...). Whatever an attempt writes names it, and is
 * refused with CONFLICT "Run {id} was ended, or taken over, from outside" once another attempt holds the run. Approvals are
 * objects as governance/approvals.h makes them. Thread-safe, as all of the record.
 */
#ifndef SANDHOST_RECORD_APPROVALS_H
#define SANDHOST_RECORD_APPROVALS_H

#include "record/record.h"

/* The members of an approval that hold the call's arguments where "arguments", and where "edited_arguments", lack what
 * nobody is to read. They are never shown, and go when the approval is used or the run ends. */
#define APPROVAL_SEALED "sealed_arguments"
#define APPROVAL_SEALED_EDIT "sealed_edited_arguments"
/* Whether what the call runs is nobody's to read once the run has ended. */
#define APPROVAL_UNRECORDED "unrecorded"

/* What a run that can be found again holds beside its row. All borrowed. */
typedef struct {
  const char *owner;
  gint64 lease_seconds;
  gint64 keep_days;    /* after its end (record-retention.h); 0: for ever */
  JsonObject *request; /* what begins it again; NULL: it cannot go on in another process */
  /* The begin is on the disk with the next commit, and not before: one wait for the disk less. Every process sees it at
   * once. */
  gboolean lazy;
} RecordLife;

/* record_begin, and the run's life with it, in one commit. */
gboolean record_begin_life(Record *record, const char *run_id, const char *trace_id,
                           JsonObject *header, const RecordLife *life, GError **error);

/* record_append_many for the owner alone. approval_ids (NULL: none) are used by it: each was approved and becomes used,
 * in the same commit as the events; else CONFLICT "Approval {id} is already {status}". */
gboolean record_commit(Record *record, const char *run_id, const char *owner,
                       const GPtrArray *approval_ids, JsonObject *events, GError **error);

/* Writes pending approvals (JsonObject *) down together with the events. An earlier approval of the same call that no
 * longer fits becomes expired: superseded are their ids. */
gboolean record_suspend(Record *record, const char *run_id, const char *owner,
                        const GPtrArray *approvals, const GPtrArray *superseded, JsonObject *events,
                        GError **error);

/* record_end for the owner alone. What was kept to run the run's calls again goes with an end that is one: the command
 * of its request, and of its approvals what is sealed or unrecorded. */
gboolean record_end_life(Record *record, const char *run_id, const char *owner, const char *status,
                         const char *reason, GError **error);

typedef struct {
  const char *status;
  const char *reason;      /* NULL: none, as the next */
  const char *termination; /* "budget_exhausted": a budget has ended it */
} RecordEnd;

/* The same, with events before it (NULL: none) in the same commit. With an end for good, what is sealed of the run's calls
 * goes too. */
gboolean record_end_life_after(Record *record, const char *run_id, const char *owner,
                               JsonObject *events, const RecordEnd *end, GError **error);

/* Whether the owner still holds the run; beat: the heartbeat is renewed then. */
gboolean record_heartbeat(Record *record, const char *run_id, const char *owner, gboolean beat,
                          gboolean *ret_held, GError **error);

/* {run_id, trace_id, status, attempt, lease_seconds, heartbeat_at, request, error, approvals,
 * budget_requests, privacy}. NOT_FOUND "No run {id}"; request is null where there is none; privacy are the settings that
 * were recorded with its begin. Returns owned. */
JsonObject *record_life(Record *record, const char *run_id, GError **error);

/* Takes a waiting or stopped run for owner: it is running then, with the event run_resumed; what expired undecided is
 * expired. limits: a GArray of RecordCharge (budgets.h), what the run needs of each limit that covers it now; a request
 * that they have room for is closed, with the event budget_request_closed. NULL: they are not known. One of several wins.
 * Errors: NOT_FOUND, CONFLICT with the texts of 6.6. */
gboolean record_take(Record *record, const char *run_id, const char *owner, const char *trace_id,
                     gint64 lease_seconds, const GArray *limits, GError **error);
/* The same checks without taking it, but that of the budgets. */
gboolean record_can_resume(Record *record, const char *run_id, GError **error);

/* All approvals, oldest first, each with run_id and run_status; run_id NULL: of every run; all FALSE: only those that wait
 * for a decision. Returns owned. */
JsonObject *record_approvals(Record *record, const char *run_id, gboolean all, GError **error);

/* A decision as it is to be stored. edit puts other arguments into an approval; NULL: none. */
typedef struct {
  gboolean approve;
  const char *approver;
  const char *note; /* NULL */
  void (*edit)(void *user, JsonObject *approval);
  void *user;
} RecordDecision;

/* Decides a pending approval, for good. Errors: NOT_FOUND and CONFLICT with the texts of 6.3. ret_approval (may be NULL)
 * is what it has become; owned. */
gboolean record_decide(Record *record, const char *run_id, const char *approval_id,
                       const RecordDecision *decision, JsonObject **ret_approval, GError **error);

/* Ends a run from outside, whoever holds it, with the error {RunEndedOutside, reason}. *ret_changed FALSE: it had ended
 * already and is as it was. */
gboolean record_abandon(Record *record, const char *run_id, const char *status, const char *reason,
                        gboolean *ret_changed, GError **error);

#endif
