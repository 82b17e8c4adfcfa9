/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h: what happened, in one SQLite file that several processes may use at once (WAL).
 *
 * A run is a row; everything that happens in it is an event, appended before and after each step
 * that has an effect, and durable when record_append returns. Nothing is ever changed but a run's
 * status. All functions may be called from any thread.
 */
#ifndef SANDHOST_RECORD_RECORD_H
#define SANDHOST_RECORD_RECORD_H

#include "base/json.h"

typedef struct Record Record;

/* $SANDHOST_STATE_DIR, else $XDG_STATE_HOME/sandhost, else ~/.local/state/sandhost, else (no home)
 * /var/lib/sandhost; with /record.db behind it. Returns owned. */
char *record_default_path(void);

/* Why a process has no record. */
#define RECORD_FORKED_TEXT                                                                         \
  "this process was forked from one whose host was in use: fork before the first host is "         \
  "opened, or execute a new program"

/* Opens or makes the file (mode 0600, folders 0700); brings an older layout up, refuses a newer
 * one: "{path} was written by a newer sandhost (layout {n}, this one knows {m})". A file that is
 * no database, or another program's: "{path} is not a record of sandhost: {why}". Anything else:
 * "could not open the record {path}: {reason}". Runs whose process is gone are marked
 * interrupted, with the event run_interrupted. A record does not survive a fork: a child opens
 * its own, if none was open in its parent then; else CONFLICT RECORD_FORKED_TEXT (base/forked.h). */
Record *record_open(const char *path, GError **error);

/* The same for whoever only reads: what cannot be written, as on a file system without writing, is opened as it stands;
 * then nothing is marked, and what writes fails. */
Record *record_open_to_read(const char *path, GError **error);
void record_close(Record *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Record, record_close)

/* Begins a run: its row (status running, owner: this process) and the event run_started. header
 * goes into the trajectory: {session_id, agent_name, governance {enabled, policy_hash, profile},
 * provider, harness...}; borrowed. */
gboolean record_begin(Record *record, const char *run_id, const char *trace_id, JsonObject *header,
                      GError **error);

/* Appends. type is one of behaviour 9.1, or tool_call_started / tool_call_completed. metadata
 * and payload are borrowed; either may be NULL. */
gboolean record_append(Record *record, const char *run_id, const char *type, JsonObject *metadata,
                       JsonObject *payload, GError **error);

/* Appends several events with one durable commit: all of them, in order, or none. events is an
 * array of {type, metadata, payload, at}; at is when it happened, in nanoseconds since 1970, and
 * is now where it is missing. Borrowed.
 *
 * In this function and record_append: text that is not UTF-8 is kept with U+FFFD in the place of
 * each bad byte; a payload whose text is longer than JSON_MAX_BYTES is kept as {capture:
 * "truncated", bytes, sha256}; metadata of that length is refused. A run that is not there:
 * NOT_FOUND "No run {id}". */
gboolean record_append_many(Record *record, const char *run_id, JsonObject *events, GError **error);

/* Ends a run: status as in behaviour 6.4 ("completed", "failed", "cancelled",
 * "awaiting_approval"), and the event run_ended. reason may be NULL. A run that has ended: "run
 * {id} has ended already ({status})". */
gboolean record_end(Record *record, const char *run_id, const char *status, const char *reason,
                    GError **error);

/* The newest run's id, or NULL when there is none. Returns owned. */
char *record_newest(Record *record, GError **error);

/* Whether there is such a run; a unique beginning of an id of at least 8 characters (run_
 * counted) is enough. Returns the whole id, owned; NOT_FOUND "No run {id}"; CONFIG "{id} is the
 * beginning of several runs: {id}, {id}". */
char *record_resolve(Record *record, const char *id, GError **error);

/* The run that has a segment with this trace, given as its whole id. NOT_FOUND "No trace {id}". Returns
 * owned. */
char *record_run_of_trace(Record *record, const char *trace_id, GError **error);

/* {run_id, trace_id, status, created_at, ended_at, header, events [{seq, at, type, metadata,
 * payload}]} of one run; events in order, seq from 1; times as clock_format gives them. An event
 * whose text cannot be read any more has damaged: true and null in its place. Returns owned. */
JsonObject *record_run(Record *record, const char *run_id, GError **error);
/* What run_started was given. NOT_FOUND "No run {id}". Returns owned. */
JsonObject *record_header(Record *record, const char *run_id, GError **error);

/* All statuses that a run can have; NULL-terminated. Constant. */
const char *const *record_status_names(void);

/* Which runs are meant. */
typedef struct {
  const char *status;   /* NULL: any */
  const char *provider; /* NULL: any */
  gint64 since;         /* began then or later; nanoseconds since 1970; 0: any time */
  guint limit;
} RecordFilter;

/* Newest first: [{run_id, trace_id, status, created_at, ended_at, agent_name, provider, commands}];
 * commands as totals count them. Returns owned. */
JsonObject *record_runs_matching(Record *record, const RecordFilter *filter, GError **error);
JsonObject *record_runs(Record *record, guint limit, GError **error);

#endif
