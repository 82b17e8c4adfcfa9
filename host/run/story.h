/* SPDX-License-Identifier: Apache-2.0 */
/* story.h: what the record tells of a run, for the doors: the whole of it (behaviour 9.3), or one segment (9.2). */
#ifndef SANDHOST_RUN_STORY_H
#define SANDHOST_RUN_STORY_H

#include "record/record.h"

/* What trajectory_of_run makes of the run, with its approvals as approvals_told tells them. NOT_FOUND "No run {id}".
 * Returns owned. */
JsonObject *story_of_run(Record *record, const char *run_id, GError **error);
/* The same without the long texts that are kept beside their events. */
JsonObject *story_outline(Record *record, const char *run_id, GError **error);

/* The trajectory of a segment; which as trajectory_segment has it. Returns owned. */
JsonObject *story_of_segment(Record *record, const char *run_id, const char *which, GError **error);

/* The run that wanted means, as record_resolve does; wanted may also be the whole id of a trace, of whose run that is.
 * Returns owned. */
char *story_find(Record *record, const char *wanted, GError **error);
/* Whether it is such an id. */
gboolean story_names_trace(const char *wanted);

#endif
