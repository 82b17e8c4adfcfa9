/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h: the events of one run on their way to the record. Events are kept in order and become durable together
 * at journal_flush, which stands before each step that has an effect: one commit for what was decided, not one for
 * each decision. Thread-safe. */
#ifndef SANDHOST_RUN_JOURNAL_H
#define SANDHOST_RUN_JOURNAL_H

#include "record/approvals.h"

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

/* Everything added so far is durable, or *error says why not: then the step must not happen. */
gboolean journal_flush(Journal *journal, GError **error);

/* The same, and these approvals (ids; NULL: none) are used by the step that follows: none of them again. With an owner
 * only. */
gboolean journal_commit(Journal *journal, const GPtrArray *approval_ids, GError **error);

/* The same, and these approvals (JsonObject *) wait, in place of the superseded (ids). With an owner only. */
gboolean journal_suspend(Journal *journal, const GPtrArray *approvals, const GPtrArray *superseded,
                         GError **error);

#endif
