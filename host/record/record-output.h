/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-output.h: everything that a command printed on one stream, compressed, up to a limit. A result
 * holds text up to a cap, and an event only short text; what the event does not hold whole is kept here. Written while
 * the command runs, in chunks that each are durable at once and can be read alone.
 */
#ifndef SANDHOST_RECORD_RECORD_OUTPUT_H
#define SANDHOST_RECORD_RECORD_OUTPUT_H

#include "record/record.h"

typedef struct RecordOutput RecordOutput;

/* stream is 1 (stdout) or 2 (stderr); most: bytes. Borrows record; copies the ids. Costs nothing
 * until something is added. One thread at a time. Returns owned. */
RecordOutput *record_output_new(Record *record, const char *run_id, const char *execution_id,
                                int stream, guint64 most);
void record_output_free(RecordOutput *output);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RecordOutput, record_output_free)

/* How much of it, from the beginning, is the text of the result. Before anything is added. */
void record_output_set_head(RecordOutput *output, guint64 bytes);
/* Keeps what fits in the limit. What cannot be written is told by record_output_finish. */
void record_output_add(RecordOutput *output, const void *data, gsize length);
/* Writes what was added, so that it outlives this process. */
void record_output_flush(RecordOutput *output);
/* Whether nothing that is added now is kept any more: the limit is reached, or it cannot be written. */
gboolean record_output_is_full(const RecordOutput *output);
/* Whether something of it is in the record already. */
gboolean record_output_is_stored(const RecordOutput *output);
/* Writes the rest. {bytes, sha256} of what is kept, with error where it could not be written to the end.
 * Belongs into the metadata of the execution's last event as stdout_kept or stderr_kept, so that the chain
 * of the events covers it. Returns owned. */
JsonObject *record_output_finish(RecordOutput *output);
/* After that: the part that is the text of the result, {capture "offloaded", bytes, sha256}; cut: the text ends at the
 * cap, else it is all there is. NULL: not so much is kept. It stands in the payload of the execution's last event as
 * stdout_capture or stderr_capture, in place of the text, and record_restore_outputs finds it again. Returns owned. */
JsonObject *record_output_head(const RecordOutput *output, gboolean cut);

/* Puts the texts that are kept here into the payloads of the run's events, where only a marker of them stands, as if they
 * had always been there. What is not there any more, or is not what was written, has capture "missing". run as
 * record_run returns it, or a segment of it; it is changed. Errors: RECORD. */
gboolean record_restore_outputs(Record *record, JsonObject *run, GError **error);
/* What is said in the place of such a text; NULL: the payload holds its own. Borrowed. */
JsonObject *record_offloaded(JsonObject *payload, int stream);

typedef struct {
  gboolean ended;  /* the command's end is on record */
  guint64 written; /* bytes that the command printed; 0 where it has not ended */
  guint64 kept;    /* of them in the record */
  guint64 given;   /* by this call */
} RecordOutputFacts;

/* Gives up to limit bytes from offset on to put, in pieces; put returns FALSE to stop. call is a
 * tool_call_id or an execution_id, a unique beginning of one (at least 8 characters), or the number
 * of the command within the run, from 1. Errors: NOT_FOUND, CONFIG (several), RECORD. */
gboolean record_output_read(Record *record, const char *run_id, const char *call, int stream,
                            guint64 offset, guint64 limit,
                            gboolean (*put)(void *user, const void *data, gsize length), void *user,
                            RecordOutputFacts *ret_facts, GError **error);

#endif
