/* SPDX-License-Identifier: Apache-2.0 */
/* budgets-private.h: budgets within the transactions of the other files of this room. Functions return an SQLite code. */
#ifndef SANDHOST_RECORD_BUDGETS_PRIVATE_H
#define SANDHOST_RECORD_BUDGETS_PRIVATE_H

#include "record/budgets.h"
#include "record/lives-private.h"

/* A counter's row. */
typedef struct {
  gint64 number; /* 0: there is none yet */
  gint64 granted;
  gint64 spent;
  gint64 reserved;
  gboolean warned;
} BudgetCounter;

/* budgets.c. Settles, then charges. *refusal and *ret_shortage are set where there is no room; then nothing may be kept.
 * Events that come of it are added to warnings. */
int budgets_charge(Record *record, const char *run_id, const RecordStep *step, JsonObject *warnings,
                   RecordShortage *ret_shortage, GError **refusal);
/* Makes the counter's row where there is none, and reads it. */
int budgets_counter(Record *record, const char *run_id, const RecordLimit *limit,
                    BudgetCounter *ret_counter);
/* A counter as it is in the window of now: another row, or none yet (number 0), where its own window is over. limit is
 * as it was seen last; its texts are owned. */
typedef struct {
  RecordLimit limit;
  BudgetCounter counter;
} BudgetNow;
void budget_now_clear(BudgetNow *now);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BudgetNow, budget_now_clear)
int budgets_now(Record *record, gint64 counter, BudgetNow *ret_now);
/* The same for a charge: *ret_room, whether there is room for it. */
int budgets_room(Record *record, const RecordCharge *charge, gboolean *ret_room);
/* The end of whatever a run holds. */
int budgets_release(Record *record, const char *run_id);

/* budget-requests.c. Of one run (number) or, with 0, of all; each with run_id and run_status. */
int budget_requests_read(Record *record, gint64 number, gboolean all, JsonObject *array);
/* What is sealed of this call; NULL: of every call of the run. */
int budget_requests_forget(Record *record, const char *run_id, const char *tool_call_id);
/* Of the run's requests, as budget_requests_read has told them, those that wait and that the limits of now (charges,
 * NULL: they are not known) have room for become BUDGET_UNNEEDED; *ret_some: there are such. Nothing is written. */
#define BUDGET_UNNEEDED "unneeded"
int budget_requests_reconsider(Record *record, const GArray *limits, JsonObject *requests,
                               gboolean *ret_some);
/* Writes that down, with an event each. */
int budget_requests_close(Record *record, const char *run_id, JsonObject *requests);

#endif
