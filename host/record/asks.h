/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asks.h: what waits for a person, held against the events. An approval and a budget request each stand in a row beside the
 * events: its status as a column, all of it as content. Whatever they became has an event, which the chain covers; a row that
 * says anything else was not written by us, and nothing may be done because of it.
 */
#ifndef SANDHOST_RECORD_ASKS_H
#define SANDHOST_RECORD_ASKS_H

#include "record/record-private.h"

/* Within a transaction. Refuses with RECORD, naming the contradiction and the way out, where a row of the run says more than
 * its events; id: only of this approval or request, NULL: of all. shown: also what is no more than read, since somebody
 * decides by it. Returns an SQLite code. */
int asks_check(Record *record, const char *run_id, const char *id, gboolean shown,
               GError **refusal);

/* All that is not as the events say, as faults of the run, which has this status. An SQLite code. */
int asks_verify(Record *record, gint64 run, const char *status, JsonObject *faults);

#endif
