/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-seal.h: what a command had printed when its host was killed is in the record, and no event says so, since the
 * command's last one never came. Whoever finds the run so, ends it or goes on with it writes that event:
 * sandbox_output_sealed, for each such command, with stdout_kept and stderr_kept {bytes, chunks, sha256, complete: false},
 * so that the run's chain covers what there is.
 */
#ifndef SANDHOST_RECORD_RECORD_SEAL_H
#define SANDHOST_RECORD_RECORD_SEAL_H

#include "record/record-private.h"

/* Under the lock. The events that a run lacks, as record_insert_events takes them; NULL: none. Reads all that is kept, so
 * it comes before the transaction that writes. What cannot be read is told in the event (damaged), or, where that may
 * pass, left to the next who looks: this cannot fail. Returns owned. */
JsonObject *record_seals(Record *record, const char *run_id);

/* Within a transaction: inserts what record_seals found, but for what another process has written since. seals may be
 * NULL. */
int record_insert_seals(Record *record, const char *run_id, JsonObject *seals);

#endif
