/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-remove.h: taking one run out of the record. A run may be gigabytes, and whoever else writes must not wait for
 * all of that: at once goes what makes it a run; its events and outputs are swept piece by piece, by whoever prunes next
 * where this process dies meanwhile. All functions under the lock.
 */
#ifndef SANDHOST_RECORD_RECORD_REMOVE_H
#define SANDHOST_RECORD_RECORD_REMOVE_H

#include "record/record-private.h"

/* Around both of the others, and outside of a transaction: events outlive the row that they refer to. */
void record_removal_begin(Record *record);
void record_removal_end(Record *record);

/* Within a transaction: takes the run out, but for what the chains need of it. *ret_gone is FALSE when it is one that
 * stays. */
int record_remove_run(Record *record, gint64 number, gboolean *ret_gone);

/* Within a transaction: removes one piece (some hundredths of a second) of what removed runs left. *ret_more: perhaps
 * there is more. */
int record_sweep(Record *record, gboolean *ret_more);

#endif
