/* SPDX-License-Identifier: Apache-2.0 */
/* record-prune.h: taking old runs out of the record. */
#ifndef SANDHOST_RECORD_RECORD_PRUNE_H
#define SANDHOST_RECORD_RECORD_PRUNE_H

#include "record/record.h"

/* What may go. A run that is running or waits for an answer never does, nor does one of the newest
 * `keep`. Of the others goes what ended (or began, where it never ended) before older_than; then the
 * oldest, until the rest takes no more than max_bytes. With neither, all others. */
typedef struct {
  gint64 older_than; /* nanoseconds since 1970; 0: not asked */
  gint64 max_bytes;  /* 0: not asked */
  gint64 keep;       /* 0: none */
  gboolean
      dry_run; /* nothing is changed, and nobody kept from writing; bytes_after is an estimate */
} PruneRequest;

/* {runs [{run_id, ended_at}], bytes_before, bytes_after, warning}: bytes of the file that are
 * in use; warning (else null) says why it could not be made smaller, where what was freed is used
 * again. What a pruned run leaves is its id and what the chains need of it. Returns owned. */
JsonObject *record_prune(Record *record, const PruneRequest *request, GError **error);

#endif
