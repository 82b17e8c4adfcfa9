/* SPDX-License-Identifier: Apache-2.0 */
/* trajectory.c: the frame of a trajectory: run, step, totals, and the events that belong to no
 * call. */
#include <string.h>

#include "record/trajectory-private.h"

#define VERSION "omnicoreagent.trajectory/v1"

/* ---- What both parts use --------------------------------------------------------------------- */

char *build_event_id(JsonObject *event) {
  return g_strdup_printf("event_%" G_GINT64_FORMAT, json_get_int(event, "seq", 0));
}

void build_copy(JsonObject *object, JsonObject *from, const char *key) {
  json_add_take(object, key, json_object_get(json_get(from, key)));
}

void build_copy_rest(JsonObject *object, JsonObject *from) {
  if (!json_object_is_type(from, json_type_object)) {
    return;
  }
  json_object_object_foreach(from, key, value) {
    if (!json_object_object_get_ex(object, key, NULL)) {
      json_add_take(object, key, json_object_get(value));
    }
  }
}

void build_append_event_id(JsonObject *object, JsonObject *event) {
  JsonObject *ids = json_get(object, "event_ids");
  if (!ids) {
    ids = json_object_new_array();
    json_add_take(object, "event_ids", ids);
  }
  g_autofree char *id = build_event_id(event);
  json_object_array_add(ids, json_object_new_string(id));
}

JsonObject *build_other_event(JsonObject *event) {
  JsonObject *other = json_object_new_object();
  g_autofree char *id = build_event_id(event);
  json_add_text(other, "event_id", id);
  build_copy(other, event, "at");
  build_copy(other, event, "type");
  build_copy(other, event, "metadata");
  build_copy(other, event, "payload");
  return other;
}

void build_add_gap(Build *build, const char *type, const char *id, const char *state) {
  JsonObject *gap = json_object_new_object();
  json_add_text(gap, "type", type);
  json_add_text(gap, "id", id);
  json_add_text(gap, "state", state);
  json_object_array_add(build->gaps, gap);
}

static const char *const STATES[] = {"available",    "inferred",  "offloaded", "redacted",
                                     "not_recorded", "truncated", "missing"};

const char *build_capture(JsonObject *event) {
  if (json_get_bool(event, "damaged", FALSE)) {
    return "missing";
  }
  JsonObject *payload = json_get(event, "payload");
  if (!payload) {
    return "not_recorded";
  }
  /* Worst last, as build_worse compares them. */
  const char *told = json_get_text(payload, "capture");
  for (gsize i = 0; told && i < G_N_ELEMENTS(STATES); i++) {
    if (strcmp(STATES[i], told) == 0) {
      return STATES[i];
    }
  }
  return "available";
}

static gsize rank_of(const char *state) {
  gsize rank = 0;
  state = state ? state : STATES[0];
  while (rank < G_N_ELEMENTS(STATES) - 1 && g_strcmp0(STATES[rank], state) != 0) {
    rank++;
  }
  return rank;
}

const char *build_worse(const char *a, const char *b) {
  return rank_of(b) > rank_of(a) ? STATES[rank_of(b)] : STATES[rank_of(a)];
}

/* ---- Statuses -------------------------------------------------------------------------------- */

typedef struct {
  const char *record;     /* behaviour 6.4, what the record says */
  const char *trajectory; /* 9.2 */
  const char *final;      /* what run() returns; NULL: there is no end */
} Status;

static const Status STATUSES[] = {
    {"completed", "completed", "success"},
    {"failed", "failed", "error"},
    {"blocked", "failed", "error"},
    {"cancelled", "cancelled", "cancelled"},
    {"abandoned", "cancelled", "cancelled"},
    {"timeout", "timeout", "error"},
    {"awaiting_approval", "suspended", "awaiting_approval"},
    {"awaiting_budget", "suspended", "awaiting_budget"},
    {"interrupted", "interrupted", NULL},
    {"running", "running", NULL},
};

/* A status that nobody knows counts as a failure: it is an end that was not good. */
static const Status *status_of(JsonObject *run) {
  const char *name = json_get_text(run, "status");
  for (gsize i = 0; i < G_N_ELEMENTS(STATUSES); i++) {
    if (g_strcmp0(STATUSES[i].record, name) == 0) {
      return &STATUSES[i];
    }
  }
  return &STATUSES[1];
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* From the text that clock_format makes. FALSE where there is none. */
static gboolean read_time(const char *text, gint64 *ret_microseconds) {
  g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, NULL) : NULL;
  if (!time) {
    return FALSE;
  }
  *ret_microseconds =
      g_date_time_to_unix(time) * G_USEC_PER_SEC + g_date_time_get_microsecond(time);
  return TRUE;
}

static void add_duration(JsonObject *object, const char *from, const char *to) {
  gint64 start = 0;
  gint64 end = 0;
  if (read_time(from, &start) && read_time(to, &end)) {
    json_add_double(object, "duration_ms", (double)(end - start) / 1000.0);
  } else {
    json_add_take(object, "duration_ms", NULL);
  }
}

static gboolean belongs_to_run(const char *type) {
  return type && (g_str_has_prefix(type, "run_") || g_str_has_prefix(type, "budget_"));
}

static void note_session(Build *build, JsonObject *event) {
  JsonObject *facts = json_get(event, "metadata");
  const char *id = json_get_text(facts, "sandbox_session_id");
  const char *provider = json_get_text(facts, "sandbox_provider");
  build->sessions++;
  if (id && provider) {
    g_hash_table_replace(build->providers, g_strdup(id), g_strdup(provider));
  }
}

/* One gap for each hole in the numbers. */
static void check_number(Build *build, JsonObject *event, gint64 *expected) {
  gint64 seq = json_get_int(event, "seq", 0);
  if (seq > *expected) {
    g_autofree char *id =
        seq - *expected == 1
            ? g_strdup_printf("event_%" G_GINT64_FORMAT, *expected)
            : g_strdup_printf("event_%" G_GINT64_FORMAT " to event_%" G_GINT64_FORMAT, *expected,
                              seq - 1);
    build_add_gap(build, "event", id, "missing");
  }
  *expected = seq < G_MAXINT64 ? seq + 1 : seq;
}

static void check_payload(Build *build, JsonObject *event) {
  const char *capture = build_capture(event);
  /* What never had a payload lacks none, and what is offloaded is in the record all the same. */
  gboolean lacks = strcmp(capture, "not_recorded") != 0 || json_get(event, "payload");
  if (lacks && rank_of(capture) >= rank_of("redacted")) {
    g_autofree char *id = build_event_id(event);
    build_add_gap(build, json_get_text(event, "type"), id, capture);
  }
}

/* ---- The step -------------------------------------------------------------------------------- */

typedef struct {
  JsonObject *step; /* owned; NULL: nothing happened in one */
  JsonObject *other;
  const char *first; /* times */
  const char *last;
  gboolean ended;
} Told;

static void tell_event(Build *build, Told *told, JsonObject *event) {
  const char *type = json_get_text(event, "type");
  if (belongs_to_run(type)) {
    told->ended = told->ended || strcmp(type, "run_ended") == 0;
    json_object_array_add(told->other, build_other_event(event));
    return;
  }
  if (told->ended) { /* what others do to a run that waits, such as a decision */
    json_object_array_add(told->other, build_other_event(event));
    return;
  }
  const char *at = json_get_text(event, "at");
  told->first = told->first ? told->first : at;
  told->last = at;
  if (g_strcmp0(type, "sandbox_session_created") == 0) {
    note_session(build, event);
  }
  if (!build_add_to_call(build, event)) {
    json_object_array_add(build->step_other, build_other_event(event));
  }
}

static JsonObject *step_new(Build *build, const Told *told, const Status *status,
                            gboolean resumed) {
  JsonObject *step = json_object_new_object();
  json_add_int(step, "step", 1);
  json_add_bool(step, "resumed", resumed);
  json_add_text(step, "status", status->trajectory);
  json_add_text(step, "started_at", told->first);
  json_add_text(step, "ended_at", told->last);
  add_duration(step, told->first, told->last);
  json_add_take(step, "context", json_object_new_array());
  json_add_take(step, "model_calls", json_object_new_array());
  json_add_take(step, "tool_calls", json_object_get(build->calls));
  json_add_take(step, "runtime_messages", json_object_new_array());
  json_add_take(step, "other_events", json_object_get(build->step_other));
  return step;
}

static void tell_events(Build *build, Told *told, JsonObject *run, const Status *status) {
  JsonObject *events = json_get(run, "events");
  gsize count = json_object_is_type(events, json_type_array) ? json_object_array_length(events) : 0;
  gint64 expected = json_get_int(run, "first_seq", 1);
  for (gsize i = 0; i < count; i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    check_number(build, event, &expected);
    check_payload(build, event);
    tell_event(build, told, event);
  }
  build_close_calls(build);
  if (json_object_array_length(build->calls) > 0 ||
      json_object_array_length(build->step_other) > 0) {
    told->step = step_new(build, told, status, json_get_bool(run, "resumed", FALSE));
  }
}

/* ---- Totals ---------------------------------------------------------------------------------- */

static JsonObject *zeros(const char *const *keys) {
  JsonObject *object = json_object_new_object();
  for (gsize i = 0; keys[i]; i++) {
    json_add_int(object, keys[i], 0);
  }
  return object;
}

static void increase(JsonObject *object, const char *key, gint64 by) {
  json_add_int(object, key, json_get_int(object, key, 0) + by);
}

static void count_executions(JsonObject *counts, JsonObject *executions) {
  for (gsize i = 0; i < json_object_array_length(executions); i++) {
    JsonObject *execution = json_object_array_get_idx(executions, i);
    JsonObject *succeeded = json_get(execution, "succeeded");
    increase(counts, "commands", 1);
    increase(counts, "failed", succeeded && !json_object_get_boolean(succeeded) ? 1 : 0);
    increase(counts, "timed_out", json_get_bool(execution, "timed_out", FALSE) ? 1 : 0);
  }
}

static JsonObject *totals_new(const Build *build, const Told *told, JsonObject *run) {
  static const char *const MODEL_CALLS[] = {"total", "agent_turn", "context_summary", "failed",
                                            NULL};
  static const char *const TOKENS[] = {"input", "output", "total", NULL};
  static const char *const EXECUTIONS[] = {"sessions", "commands", "failed", "timed_out", NULL};
  JsonObject *executions = zeros(EXECUTIONS);
  JsonObject *outcomes = json_object_new_object();
  gint64 changes = 0;
  json_add_int(executions, "sessions", build->sessions);
  for (gsize i = 0; i < json_object_array_length(build->calls); i++) {
    JsonObject *call = json_object_array_get_idx(build->calls, i);
    const char *outcome = json_get_text(call, "outcome");
    JsonObject *written = json_get(json_get(call, "workspace_sync"), "written");
    increase(outcomes, outcome ? outcome : "unknown", 1);
    changes += written ? (gint64)json_object_array_length(written) : 0;
    count_executions(executions, json_get(call, "executions"));
  }

  JsonObject *calls = json_object_new_object();
  json_add_int(calls, "total", (gint64)json_object_array_length(build->calls));
  json_add_take(calls, "by_outcome", outcomes);
  JsonObject *totals = json_object_new_object();
  json_add_int(totals, "steps", told->step ? 1 : 0);
  json_add_take(totals, "model_calls", zeros(MODEL_CALLS));
  json_add_take(totals, "tokens", zeros(TOKENS));
  json_add_take(totals, "estimated_cost_usd", NULL);
  json_add_take(totals, "cost_complete", NULL);
  json_add_take(totals, "tool_calls", calls);
  json_add_take(totals, "executions", executions);
  json_add_int(totals, "workspace_changes", changes);
  add_duration(totals, json_get_text(run, "created_at"), json_get_text(run, "ended_at"));
  json_add_take(totals, "including_subagents", NULL);
  return totals;
}

/* ---- The frame ------------------------------------------------------------------------------- */

static JsonObject *harness_of(JsonObject *header) {
  static const char *const KEYS[] = {"model",      "limits",  "features",          "tools",
                                     "governance", "privacy", "security_warnings", "fingerprints"};
  JsonObject *harness = json_object_new_object();
  build_copy(harness, header, "agent");
  if (!json_get(harness, "agent")) {
    json_add_text(harness, "agent", json_get_text(header, "agent_name"));
  }
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    build_copy(harness, header, KEYS[i]);
  }
  build_copy_rest(harness, header);
  return harness;
}

static JsonObject *request_of(JsonObject *header) {
  JsonObject *request = json_object_get(json_get(header, "request"));
  if (!request) {
    request = json_object_new_object();
    json_add_text(request, "message", NULL);
    json_add_text(request, "capture", "not_recorded");
  }
  return request;
}

/* NULL while there is no end. */
static JsonObject *final_of(const Told *told, const Status *status) {
  if (!status->final || !told->ended) {
    return NULL;
  }
  JsonObject *final = json_object_new_object();
  const char *reason = NULL;
  const char *termination = NULL;
  for (gsize i = 0; i < json_object_array_length(told->other); i++) {
    JsonObject *event = json_object_array_get_idx(told->other, i);
    if (g_strcmp0(json_get_text(event, "type"), "run_ended") == 0) {
      reason = json_get_text(json_get(event, "metadata"), "reason");
      termination = json_get_text(json_get(event, "metadata"), "termination_reason");
    }
  }
  json_add_text(final, "type", status->final);
  json_add_text(final, "output", NULL);
  json_add_text(final, "error", reason);
  if (termination) {
    json_add_text(final, "termination_reason", termination);
  }
  return final;
}

static void add_identity(JsonObject *trajectory, JsonObject *run, JsonObject *header) {
  json_add_text(trajectory, "trajectory_version", VERSION);
  build_copy(trajectory, run, "trace_id");
  build_copy(trajectory, run, "run_id");
  build_copy(trajectory, header, "session_id");
  json_add_text(trajectory, "agent_id", json_get_text(header, "agent_name"));
  build_copy(trajectory, header, "parent_trace_id");
}

static void add_circumstances(JsonObject *trajectory, JsonObject *run, JsonObject *header) {
  const char *surface = json_get_text(header, "execution_surface");
  json_add_text(trajectory, "execution_surface", surface ? surface : "headless");
  json_add_take(trajectory, "started_at", json_object_get(json_get(run, "created_at")));
  build_copy(trajectory, run, "ended_at");
  JsonObject *versions = json_object_new_object();
  json_add_text(versions, "sandhost", json_get_text(header, "sandhost_version"));
  json_add_take(trajectory, "versions", versions);
  JsonObject *tags = json_object_get(json_get(header, "tags"));
  json_add_take(trajectory, "tags", tags ? tags : json_object_new_array());
  build_copy(trajectory, header, "provenance");
  json_add_take(trajectory, "request", request_of(header));
  json_add_take(trajectory, "harness", harness_of(header));
}

static const char *evidence_of(const Build *build, const Told *told, const Status *status,
                               JsonObject *run) {
  JsonObject *events = json_get(run, "events");
  if (!json_object_is_type(events, json_type_array) || json_object_array_length(events) == 0) {
    return "unknown";
  }
  gboolean whole = told->ended && status->final && json_object_array_length(build->gaps) == 0;
  return whole ? "complete" : "partial";
}

static JsonObject *frame_new(const Build *build, const Told *told, const Status *status,
                             JsonObject *run) {
  JsonObject *header = json_get(run, "header");
  JsonObject *trajectory = json_object_new_object();
  const char *evidence = evidence_of(build, told, status, run);
  add_identity(trajectory, run, header);
  json_add_text(trajectory, "status", status->trajectory);
  json_add_text(trajectory, "evidence_status", evidence);
  json_add_bool(trajectory, "incomplete", strcmp(evidence, "complete") != 0);
  add_circumstances(trajectory, run, header);

  JsonObject *steps = json_object_new_array();
  if (told->step) {
    json_object_array_add(steps, json_object_get(told->step));
  }
  json_add_take(trajectory, "steps", steps);
  json_add_take(trajectory, "final", final_of(told, status));
  json_add_take(trajectory, "totals", totals_new(build, told, run));
  json_add_take(trajectory, "runtime_messages", json_object_new_array());
  json_add_take(trajectory, "other_events", json_object_get(told->other));
  json_add_take(trajectory, "budget_requests", build_budget_requests(json_get(run, "events")));
  json_add_take(trajectory, "tool_calls_outside_steps", json_object_new_array());
  json_add_take(trajectory, "capture_gaps", json_object_get(build->gaps));
  JsonObject *traces = json_object_get(json_get(run, "other_trace_ids"));
  json_add_take(trajectory, "other_trace_ids_for_run", traces ? traces : json_object_new_array());
  return trajectory;
}

JsonObject *trajectory_new(JsonObject *run) {
  const Status *status = status_of(run);
  Told told = {.other = json_object_new_array()};
  Build build = {
      .calls = json_object_new_array(),
      .step_other = json_object_new_array(),
      .gaps = json_object_new_array(),
      .providers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
      .provider = json_get_text(json_get(run, "header"), "provider"),
  };
  tell_events(&build, &told, run, status);
  JsonObject *trajectory = frame_new(&build, &told, status, run);

  build_clear_calls(&build);
  g_hash_table_unref(build.providers);
  json_object_put(build.calls);
  json_object_put(build.step_other);
  json_object_put(build.gaps);
  json_object_put(told.other);
  json_object_put(told.step);
  return trajectory;
}
