/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h: the events of one run on their way to the record. Events are kept in order and become durable together
 * at journal_flush, which stands before each step that has an effect: one commit for what was decided, not one for
 * each decision. Thread-safe. */
#ifndef SANDHOST_RUN_JOURNAL_H
#define SANDHOST_RUN_JOURNAL_H

#include "record/approvals.h"
#include "run/capture.h"
#include "run/metering.h"

typedef struct Journal Journal;

/* Borrows record (NULL: nothing is recorded); copies run_id. Returns owned. */
Journal *journal_new(Record *record, const char *run_id);
void journal_free(Journal *journal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Journal, journal_free)

/* Takes both objects and keeps copies, so parts of them may be shared with the caller; either may be NULL. Cannot fail: flush tells. */
void journal_add(Journal *journal, const char *type, JsonObject *take_metadata,
                 JsonObject *take_payload);

/* From here on what is written is this owner's (record/approvals.h), and refused once another one holds the run. Copied;
 * before the journal is used. */
void journal_set_owner(Journal *journal, const char *owner);

/* From here on every event passes capture_event. Copied; before the journal is used. */
void journal_set_capture(Journal *journal, const Capture *capture);
/* An event as journal_add makes one, to be part of a step. Takes both objects. Returns owned. */
JsonObject *journal_event(const Journal *journal, const char *type, JsonObject *take_metadata,
                          JsonObject *take_payload);

/* The limits that what is owed here is charged to; borrowed; before the journal is used. NULL: none. */
void journal_set_metering(Journal *journal, const Metering *metering);
/* For work that is done: charged with whatever is written next, and never refused. */
void journal_owe(Journal *journal, BudgetMeter meter, gint64 amount);
/* The end of a hold, in the same way: amount was used in its place. */
void journal_settle(Journal *journal, const char *hold, gint64 amount);

/* Everything added so far is durable, or *error says why not: then the step must not happen. */
gboolean journal_flush(Journal *journal, GError **error);

/* What else is part of a commit, for the step that follows it. Everything may be NULL. With an owner only. */
typedef struct {
  const GPtrArray *approval_ids; /* used by the step: none of them again */
  const char *again;             /* as in RecordStep */
  GArray *charges;               /* RecordCharge */
  JsonObject
      *take_event; /* the step's own: written with all this, or never. Also taken on failure */
} JournalStep;
/* The same with a step. Where a budget has no room *ret_shortage is set, and all that was added before waits on. */
gboolean journal_step(Journal *journal, const JournalStep *step, RecordShortage *ret_shortage,
                      GError **error);
/* The same, and the run waits for more of a budget (record_ask_budget); answered may be NULL. */
gboolean journal_ask_budget(Journal *journal, const RecordShortage *shortage,
                            const RecordWaiting *waiting, const GPtrArray *answered,
                            JsonObject **ret_request, GError **error);

/* The same, and these approvals (JsonObject *) wait, in place of the superseded (ids). With an owner only. */
gboolean journal_suspend(Journal *journal, const GPtrArray *approvals, const GPtrArray *superseded,
                         GError **error);

/* The same, and the run ends. Where what was added cannot be written, the end alone is tried. With a record and an owner
 * only. */
gboolean journal_end(Journal *journal, const RecordEnd *end, GError **error);

#endif
