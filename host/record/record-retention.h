/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-retention.h: runs that are old enough go by themselves (run_retention_days), at most once a day for each
 * record, whoever comes first after the end of a run.
 */
#ifndef SANDHOST_RECORD_RECORD_RETENTION_H
#define SANDHOST_RECORD_RECORD_RETENTION_H

#include "record/record.h"

typedef struct {
  gint64 days; /* for how long whoever asks keeps a run */
  gint64 now;  /* nanoseconds since 1970 */
  gint64
      most; /* time that this may take, in nanoseconds; it may be over by one piece of work (record-remove.h) */
} RetentionRequest;

typedef enum {
  RETENTION_NOT_DUE, /* it was done today */
  RETENTION_DONE,    /* nothing is left to do before tomorrow */
  RETENTION_UNFINISHED, /* the time was over, or the record in use: who asks ten seconds later goes on */
} RetentionEnd;

/* Removes runs that have ended, and are older than both what their own configuration says (RecordLife.keep_days) and
 * request->days, in short transactions. What they took in the file is given back. Never a run that is running or waits.
 * Of several that ask at once one does it. Cannot fail: what could not be done now is left to a later day. ret_removed
 * (may be NULL): number of runs. */
RetentionEnd record_retain(Record *record, const RetentionRequest *request, guint *ret_removed);

typedef struct {
  gint64 removed;    /* runs that went like this so far */
  gint64 removed_at; /* when the last one did; 0: never */
} RetentionFacts;

gboolean record_retention_facts(Record *record, RetentionFacts *ret_facts, GError **error);

#endif
