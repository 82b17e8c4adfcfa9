/* SPDX-License-Identifier: Apache-2.0 */
/* record-verify.h: whether the record still is what was written. */
#ifndef SANDHOST_RECORD_RECORD_VERIFY_H
#define SANDHOST_RECORD_RECORD_VERIFY_H

#include "record/record.h"

/* {run_id, state, events, head, faults [{event, what, detail}]}. state: "whole", "damaged",
 * "not_chained" (begun by a sandhost that did not chain). what: "altered", "missing", "out_of_order", "added"; event
 * is the number of the event, null where it is not an event that is wrong: then detail says what. Returns owned;
 * NOT_FOUND for a run that is not there. */
JsonObject *record_verify_run(Record *record, const char *run_id, GError **error);

/* The runs' own chain: {head, runs [run_id], pruned (number of runs), faults [{run, what, detail}]}; run is its number
 * in the record. The runs themselves are not looked into. Returns owned. */
JsonObject *record_verify_runs(Record *record, GError **error);

#endif
