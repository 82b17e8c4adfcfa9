/* SPDX-License-Identifier: Apache-2.0 */
/* trajectory-run.c: all segments of a run as one object, in which each step and each call counts once, by how it finally
 * ended. */
#include <string.h>

#include "base/digest.h"
#include "record/trajectory-private.h"
#include "record/trajectory-segments.h"

/* What the segments come to. */
typedef struct {
  GHashTable *calls;      /* tool_call_id, borrowed, to its entry in tool_calls, borrowed */
  GHashTable *steps;      /* their numbers */
  JsonObject *tool_calls; /* array */
  JsonObject *totals;     /* NULL before the first segment */
  gint64 begun;           /* calls that the policy let run */
  double sandbox_ms;
} Sum;

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static JsonObject *arguments_digest(JsonObject *arguments) {
  if (!arguments) {
    return NULL;
  }
  g_autofree char *text = json_canonical(arguments);
  g_autofree char *digest = digest_hex(text, strlen(text));
  return json_object_new_string(digest);
}

static const char *state_of(const char *outcome) {
  if (!outcome) {
    return "started";
  }
  return g_str_has_prefix(outcome, "awaiting_") ? outcome : "completed";
}

static void copy(JsonObject *object, JsonObject *from, const char *key) {
  json_add_take(object, key, json_object_get(json_get(from, key)));
}

static void tell_call(Sum *sum, JsonObject *step, JsonObject *call) {
  const char *id = json_get_text(call, "tool_call_id");
  JsonObject *entry = id ? g_hash_table_lookup(sum->calls, id) : NULL;
  if (!entry) {
    entry = json_object_new_object();
    json_object_array_add(sum->tool_calls, entry);
    copy(entry, call, "tool_call_id");
    copy(entry, call, "tool_name");
    copy(entry, call, "provider");
    json_add_bool(entry, "idempotent", FALSE);
    copy(entry, step, "step");
    copy(entry, call, "started_at");
    if (id) {
      g_hash_table_insert(sum->calls, (void *)(gsize)id, entry);
    }
  }
  json_add_take(entry, "arguments_digest", arguments_digest(json_get(call, "arguments")));
  json_add_text(entry, "state", state_of(json_get_text(call, "outcome")));
  copy(entry, call, "outcome");
  copy(entry, call, "ended_at");
  if (json_object_array_length(json_get(call, "executions")) > 0 &&
      !json_get_bool(entry, "began", FALSE)) {
    json_add_bool(entry, "began", TRUE);
    sum->begun++;
  }
}

static void tell_steps(Sum *sum, JsonObject *trajectory) {
  JsonObject *steps = json_get(trajectory, "steps");
  for (gsize i = 0; i < json_object_array_length(steps); i++) {
    JsonObject *step = json_object_array_get_idx(steps, i);
    JsonObject *calls = json_get(step, "tool_calls");
    g_hash_table_add(sum->steps, GINT_TO_POINTER((gint)json_get_int(step, "step", 0)));
    for (gsize c = 0; c < json_object_array_length(calls); c++) {
      tell_call(sum, step, json_object_array_get_idx(calls, c));
    }
  }
}

/* ---- Totals ------------------------------------------------------------------------------------------------------ */

static JsonObject *add(JsonObject *a, JsonObject *b);

/* sum[key] = a + b. What is unknown in one segment is what is known in the others. */
static void add_member(JsonObject *sum, const char *key, JsonObject *a, JsonObject *b) {
  if (!a || !b) {
    json_add_take(sum, key, json_object_get(a ? a : b));
  } else if (json_object_is_type(a, json_type_object)) {
    json_add_take(sum, key, add(a, b));
  } else if (json_object_is_type(a, json_type_int) && json_object_is_type(b, json_type_int)) {
    json_add_int(sum, key, json_object_get_int64(a) + json_object_get_int64(b));
  } else {
    json_add_double(sum, key, json_object_get_double(a) + json_object_get_double(b));
  }
}

/* a and b are totals, or a part of them. */
static JsonObject *add(JsonObject *a, JsonObject *b) {
  JsonObject *sum = json_object_new_object();
  json_object_object_foreach(a, key, value) {
    add_member(sum, key, value, json_get(b, key));
  }
  return sum;
}

/* Calls and steps go through several segments, so they are not added up. */
static void settle_totals(const Sum *sum) {
  JsonObject *outcomes = json_object_new_object();
  gsize count = json_object_array_length(sum->tool_calls);
  for (gsize i = 0; i < count; i++) {
    JsonObject *call = json_object_array_get_idx(sum->tool_calls, i);
    const char *outcome = json_get_text(call, "outcome");
    outcome = outcome ? outcome : "unknown";
    json_add_int(outcomes, outcome, json_get_int(outcomes, outcome, 0) + 1);
    json_object_object_del(call, "began");
  }
  JsonObject *calls = json_object_new_object();
  json_add_int(calls, "total", (gint64)count);
  json_add_take(calls, "by_outcome", outcomes);
  json_add_int(sum->totals, "steps", g_hash_table_size(sum->steps));
  json_add_take(sum->totals, "tool_calls", calls);
}

static void add_sandbox_time(Sum *sum, JsonObject *segment) {
  JsonObject *events = json_get(segment, "events");
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    JsonObject *duration = json_get(json_get(event, "metadata"), "duration_ms");
    if (duration && g_strcmp0(json_get_text(event, "type"), "sandbox_session_closed") == 0) {
      sum->sandbox_ms += json_object_get_double(duration);
    }
  }
}

/* In the meters that a budget has: a call counts once it was allowed to run. */
static JsonObject *usage_of(const Sum *sum) {
  JsonObject *usage = json_object_new_object();
  copy(usage, sum->totals, "model_calls");
  copy(usage, sum->totals, "tokens");
  copy(usage, sum->totals, "estimated_cost_usd");
  json_add_int(usage, "tool_calls", sum->begun);
  json_add_double(usage, "sandbox_seconds", sum->sandbox_ms / 1000.0);
  return usage;
}

/* ---- The run ----------------------------------------------------------------------------------------------------- */

static JsonObject *tell_segment(Sum *sum, JsonObject *segment) {
  JsonObject *trajectory = trajectory_new(segment);
  JsonObject *told = json_object_new_object();
  copy(told, segment, "trace_id");
  copy(told, trajectory, "status");
  json_add_take(told, "trajectory", trajectory);
  json_add_bool(told, "trace_kept", TRUE);
  tell_steps(sum, trajectory);
  add_sandbox_time(sum, segment);
  JsonObject *totals = add(json_get(trajectory, "totals"), sum->totals);
  json_object_put(sum->totals);
  sum->totals = totals;
  return told;
}

/* Each segment but the last, as the attempt that it was. */
static JsonObject *previous_attempts(JsonObject *segments) {
  JsonObject *attempts = json_object_new_array();
  for (gsize i = 0; i + 1 < json_object_array_length(segments); i++) {
    JsonObject *segment = json_object_array_get_idx(segments, i);
    JsonObject *attempt = json_object_new_object();
    json_add_int(attempt, "attempt", (gint64)i + 1);
    copy(attempt, segment, "trace_id");
    copy(attempt, segment, "status");
    json_add_take(attempt, "started_at", json_object_get(json_get(segment, "created_at")));
    copy(attempt, segment, "ended_at");
    json_object_array_add(attempts, attempt);
  }
  return attempts;
}

JsonObject *trajectory_of_run(JsonObject *run, JsonObject *life) {
  g_autoptr(JsonObject) segments = trajectory_segments(run);
  gsize count = json_object_array_length(segments);
  JsonObject *header = json_get(run, "header");
  JsonObject *approvals = json_get(life, "approvals");
  Sum sum = {.calls = g_hash_table_new(g_str_hash, g_str_equal),
             .steps = g_hash_table_new(NULL, NULL),
             .tool_calls = json_object_new_array()};
  JsonObject *told = json_object_new_array();
  for (gsize i = 0; i < count; i++) {
    json_object_array_add(told, tell_segment(&sum, json_object_array_get_idx(segments, i)));
  }
  settle_totals(&sum);

  JsonObject *story = json_object_new_object();
  copy(story, run, "run_id");
  copy(story, header, "session_id");
  copy(story, header, "agent_name");
  copy(story, run, "status");
  json_add_int(story, "attempt", MAX(json_get_int(life, "attempt", 0), (gint64)count));
  json_add_take(story, "previous_attempts", previous_attempts(segments));
  json_add_take(story, "segments", told);
  json_add_take(story, "traces_missing", json_object_new_array());
  json_add_take(story, "totals", sum.totals);
  json_add_take(story, "tool_calls", sum.tool_calls);
  json_add_take(story, "approvals",
                approvals ? json_object_get(approvals) : json_object_new_array());
  json_add_take(story, "budget_requests", build_budget_requests(json_get(run, "events")));
  json_add_take(story, "usage", usage_of(&sum));
  g_hash_table_unref(sum.calls);
  g_hash_table_unref(sum.steps);
  return story;
}
