/* SPDX-License-Identifier: Apache-2.0 */
/* trajectory-private.h: a trajectory while it is put together: trajectory.c has the frame,
 * trajectory-call.c the calls. */
#ifndef SANDHOST_RECORD_TRAJECTORY_PRIVATE_H
#define SANDHOST_RECORD_TRAJECTORY_PRIVATE_H

#include "record/trajectory.h"

/* All JSON is borrowed from the trajectory or the run. */
typedef struct {
  JsonObject *calls;      /* array: the step's tool_calls */
  JsonObject *step_other; /* array */
  JsonObject *gaps;       /* array: capture_gaps */
  GHashTable *open_calls; /* tool_call_id to OpenCall, owned */
  GHashTable *executions; /* execution_id to OpenExecution, owned */
  GHashTable *providers;  /* sandbox_session_id to the name of its provider, both owned */
  const char *provider;   /* of the run; NULL: unknown */
  gint64 sessions;
} Build;

void build_clear_calls(Build *build);

/* Places the event in a call, or returns FALSE when it belongs to none. */
gboolean build_add_to_call(Build *build, JsonObject *event);
/* After the last event: what is still open becomes a gap, undecided requests go to the step's
 * other_events. */
void build_close_calls(Build *build);

/* "event_{seq}". Returns owned. */
char *build_event_id(JsonObject *event);
/* {event_id, at, type, metadata, payload}. Returns owned. */
JsonObject *build_other_event(JsonObject *event);
void build_add_gap(Build *build, const char *type, const char *id, const char *state);

/* object[key] = from[key], or null; shared. */
void build_copy(JsonObject *object, JsonObject *from, const char *key);
/* The members of from that object does not have yet. */
void build_copy_rest(JsonObject *object, JsonObject *from);
void build_append_event_id(JsonObject *object, JsonObject *event);

/* What became of the event's payload: "available", "offloaded", "redacted", "truncated", "missing" (damaged),
 * "not_recorded". */
const char *build_capture(JsonObject *event);
/* The worse one of two such states (NULL: "available"). */
const char *build_worse(const char *a, const char *b);

/* trajectory-budgets.c: [{request_id, status, at, scope, meter, window, key, limit, used, needed, shortfall, approver, note,
 * amount}]. Returns owned. */
JsonObject *build_budget_requests(JsonObject *events);

#endif
