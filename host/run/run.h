/* SPDX-License-Identifier: Apache-2.0 */
/* run.h: one run: its ids, its record, its one sandbox. Commands are executed in it (execute.h). */
#ifndef SANDHOST_RUN_RUN_H
#define SANDHOST_RUN_RUN_H

#include "base/cancel.h"
#include "governance/budgets.h"
#include "governance/gate.h"
#include "run/harness.h"
#include "run/journal.h"

typedef struct Run Run;

typedef struct {
  /* Answers an ask at once: the approver's name to allow it (owned by the caller), or NULL. May be NULL: nobody
   * answers. command is the whole text of the call that the ask is part of, without credentials. Whoever answers is
   * checked as those who decide later are (approver.h). From any thread, one at a time. */
  char *(*answer)(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                  const char *command);
  /* One line about something that takes long (an image being pulled). May be NULL. */
  void (*progress)(void *user, const char *line);
  /* One line: the end of a sandbox takes long; a sandbox did not end, and may live on, or a command gets less time than it
   * was given (once for a run). May be NULL. Any thread. */
  void (*slow)(void *user, const char *line);
  void (*warn)(void *user, const char *line);
  void *user;
  Cancel
      *cancel; /* ends the run; a reference is taken; NULL: it cannot be cancelled from outside */
  /* What begins this run again in another process, as resume.h says; borrowed while run_start runs. Then a run whose
   * answer is NULL pauses at an ask, to be decided and resumed later. NULL: an ask that nobody answers is refused. */
  JsonObject *request;
  /* What budgets count the run for in the place of the configuration's; borrowed; NULL: that one. Both are a matter of the
   * door at run_resume too. */
  const char *session_id;
  const char *agent_name;
  /* Nobody is told of the run before its first step: its begin reaches the disk with what is written before that step. */
  gboolean unannounced;
  /* Of a run that goes on: cancelled while none of its commands has begun, it can be resumed again. */
  gboolean keeps;
} RunHooks;

/* Begins a run and its row in the record (NULL: nothing is recorded). harness and record must outlive it; hooks is
 * copied. Fails when there is no execute tool or the record cannot be written. */
Run *run_start(const Harness *harness, Record *record, const RunHooks *hooks, GError **error);

/* Goes on with a waiting or stopped run in a segment of its own, after winning it from whoever else tries, and after
 * what its last process left behind is removed. hooks->request is ignored: the stored one stays. CONFLICT with the
 * texts of behaviour 6.6. */
Run *run_resume(const Harness *harness, Record *record, const char *run_id, const RunHooks *hooks,
                GError **error);

/* Whether a call met an ask that nobody answered, or a budget that is used up: no more calls are begun, and the run is
 * to be ended with "awaiting_approval" (run_end makes it "awaiting_budget" where only a budget is waited for). */
gboolean run_is_paused(Run *run);
/* Whether a call was kept from beginning by a cancel, and is to be begun when the run is resumed (RunHooks.keeps). */
gboolean run_is_interrupted(Run *run);
/* What the run waits for: [behaviour 6.1's approvals]. Returns owned. */
JsonObject *run_waiting(Run *run);
/* [{scope, meter, window, limit, used, needed, shortfall, request_id}]. Returns owned. */
JsonObject *run_waiting_budgets(Run *run);
/* Why a budget has ended the run: no more calls are begun, and it ends as failed, whatever run_end is told. NULL: none
 * has. Owned. */
char *run_exhausted(Run *run);
/* Whether the run was ended, or taken over, from outside, as far as it has been noticed; with look, the record is asked. */
gboolean run_is_lost(Run *run, gboolean look);

/* After the end of a run, when nothing else waits: what is old enough goes (record-retention.h). Takes about a
 * twentieth of a second, once a day, and every ten seconds as long as there is more to do. */
void run_retain(const Harness *harness, Record *record);

/* Charging the run's budgets for what the run room does not do itself (model calls, workers). Amounts are millionths of
 * the meter's unit. Every limit that covers the run is charged; one without room refuses all of it. */
typedef enum {
  RUN_LOOK,  /* is there room for the amount? nothing is taken */
  RUN_SPEND, /* spent, before the work */
  RUN_HOLD,  /* held, before the work, until run_settle: ret_hold (owned) is its name */
  RUN_OWE,   /* for work that is done: never refused */
} RunCharge;
/* BUDGET_EXCEEDED: nothing is taken, and run_is_paused or run_exhausted tells what it means for the run. ret_hold may
 * be NULL but for RUN_HOLD. Any thread. */
gboolean run_charge(Run *run, RunCharge how, BudgetMeter meter, gint64 amount, char **ret_hold,
                    GError **error);
/* The end of a hold: amount was used in its place. What fails is tried again with whatever is written next. */
gboolean run_settle(Run *run, const char *hold, BudgetMeter meter, gint64 amount, GError **error);

const char *run_id(const Run *run);
/* What several runs belong to; NULL: nothing. */
const char *run_session_id(const Run *run);
const char *run_trace_id(const Run *run);

/* Ends the sandbox, writes the end (status of behaviour 6.4: "completed", "failed", "cancelled", "awaiting_approval",
 * which a run that waits for budgets alone makes "awaiting_budget") and frees. No command may be running. FALSE when
 * the record could not be written or the sandbox not ended; the run is gone all the same. */
gboolean run_end(Run *take_run, const char *status, const char *reason, GError **error);

/* Removes what an earlier process left of a run that this process has won in the record: every sandbox of that run,
 * however young. Only then, or the winner's sandbox would be removed. ret_removed may be NULL. FALSE when one could not
 * be removed. A provider without a sweep leaves nothing. */
gboolean run_sweep_leftovers(const Harness *harness, const char *run_id, Cancel *cancel,
                             guint *ret_removed, GError **error);

#endif
