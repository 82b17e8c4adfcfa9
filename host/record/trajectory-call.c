/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trajectory-call.c: the events of one call, put together: what was asked and decided, the
 * commands, what was copied, the result. An event that finds no place, since it repeats another or
 * has lost its beginning, is refused and stands in other_events.
 */
#include <string.h>

#include "record/trajectory-private.h"

typedef struct {
  JsonObject *json;    /* borrowed from Build.calls */
  GPtrArray *requests; /* policy_request_created events without a decision; borrowed from the run */
  gboolean completed;
} OpenCall;

typedef struct {
  JsonObject *json; /* borrowed from its call */
  gboolean completed;
} OpenExecution;

static void open_call_free(OpenCall *call) {
  g_ptr_array_unref(call->requests);
  g_free(call);
}

void build_clear_calls(Build *build) {
  g_clear_pointer(&build->open_calls, g_hash_table_unref);
  g_clear_pointer(&build->executions, g_hash_table_unref);
}

static OpenCall *find_call(const Build *build, JsonObject *event) {
  const char *id = json_get_text(json_get(event, "metadata"), "tool_call_id");
  return id ? g_hash_table_lookup(build->open_calls, id) : NULL;
}

/* ---- The call itself ------------------------------------------------------------------------- */

static JsonObject *call_json_new(JsonObject *event) {
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *payload = json_get(event, "payload");
  JsonObject *call = json_object_new_object();
  build_copy(call, facts, "tool_call_id");
  build_copy(call, facts, "tool_name");
  build_copy(call, facts, "provider");
  build_copy(call, facts, "server");
  json_add_take(call, "outcome", NULL);
  json_add_take(call, "rejection_reason", NULL);
  build_copy(call, payload, "raw_arguments");
  build_copy(call, payload, "arguments");
  json_add_take(call, "result", NULL);
  json_add_text(call, "result_capture", "missing");
  json_add_take(call, "error", NULL);
  json_add_take(call, "observation", NULL);
  json_add_take(call, "governance", json_object_new_array());
  json_add_take(call, "executions", json_object_new_array());
  json_add_take(call, "workspace_sync", NULL);
  json_add_take(call, "subagent", NULL);
  json_add_take(call, "code_calls", NULL);
  json_add_take(call, "reconnects", NULL);
  json_add_take(call, "started_at", json_object_get(json_get(event, "at")));
  json_add_take(call, "ended_at", NULL);
  build_append_event_id(call, event);
  build_copy_rest(call, facts);
  return call;
}

static gboolean add_call(Build *build, JsonObject *event) {
  const char *id = json_get_text(json_get(event, "metadata"), "tool_call_id");
  OpenCall *known = id ? g_hash_table_lookup(build->open_calls, id) : NULL;
  if (!id || known) {
    return FALSE;
  }
  OpenCall *call = g_new0(OpenCall, 1);
  call->json = call_json_new(event);
  call->requests = g_ptr_array_new();
  json_object_array_add(build->calls, call->json);
  g_hash_table_insert(build->open_calls, g_strdup(id), call);
  return TRUE;
}

/* {type, message}; NULL for a call that went well. */
static JsonObject *error_of(JsonObject *facts, JsonObject *observation) {
  JsonObject *told = json_get(facts, "error");
  if (json_object_is_type(told, json_type_object)) {
    return json_object_get(told);
  }
  const char *message = json_get_text(facts, "error");
  const char *outcome = json_get_text(facts, "outcome");
  if (!message && outcome && strcmp(outcome, "success") != 0) {
    message = json_get_text(observation, "message");
  }
  const char *type = json_get_text(observation, "governance_error_code");
  type = type ? type : json_get_text(observation, "error_type");
  if (!message && !type) {
    return NULL;
  }
  JsonObject *error = json_object_new_object();
  json_add_text(error, "type", type);
  json_add_text(error, "message", message);
  return error;
}

/* The observation as the model got it. The run room leaves out of the event what the execution holds already: stdout and
 * stderr of a command are put back here, in their places. Returns owned. */
static JsonObject *restore_content(JsonObject *call, JsonObject *content) {
  JsonObject *executions = json_get(call, "executions");
  gsize count = executions ? json_object_array_length(executions) : 0;
  JsonObject *data = json_get(content, "data");
  if (count == 0 || !json_get(data, "exit_code") ||
      json_object_object_get_ex(data, "stdout", NULL)) {
    return json_object_get(content);
  }
  JsonObject *execution = json_object_array_get_idx(executions, count - 1);
  JsonObject *whole = json_object_new_object();
  json_object_object_foreach(data, key, value) {
    json_add_take(whole, key, json_object_get(value));
    if (strcmp(key, "exit_code") == 0) {
      build_copy(whole, execution, "stdout");
      build_copy(whole, execution, "stderr");
    }
  }
  JsonObject *copy = json_object_new_object();
  json_object_object_foreach(content, name, member) {
    json_add_take(copy, name,
                  strcmp(name, "data") == 0 ? json_object_get(whole) : json_object_get(member));
  }
  json_object_put(whole);
  return copy;
}

/* What became of the output that is put back. */
static const char *execution_capture(JsonObject *call) {
  JsonObject *executions = json_get(call, "executions");
  gsize count = executions ? json_object_array_length(executions) : 0;
  const char *told =
      count ? json_get_text(json_object_array_get_idx(executions, count - 1), "capture") : NULL;
  return told ? told : "available";
}

static void complete_call_json(JsonObject *call, JsonObject *event) {
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *payload = json_get(event, "payload");
  g_autoptr(JsonObject) content = restore_content(call, json_get(payload, "observation"));
  JsonObject *error = error_of(facts, content);
  const char *capture = build_capture(event);
  /* Of a command, the result is what its execution holds: a call's arguments that are not recorded leave it whole. */
  gboolean ran =
      json_get(json_get(content, "data"), "exit_code") && strcmp(capture, "redacted") == 0;
  const char *result_capture = build_worse(ran ? NULL : capture, execution_capture(call));
  capture = build_worse(capture, execution_capture(call));

  build_copy(call, facts, "outcome");
  build_copy(call, facts, "rejection_reason");
  if (!json_get(call, "rejection_reason") &&
      g_strcmp0(json_get_text(facts, "outcome"), "rejected") == 0) {
    json_add_take(call, "rejection_reason", json_object_get(json_get(error, "message")));
  }
  JsonObject *result = json_get(payload, "result");
  result = result ? result : json_get(content, "data");
  json_add_take(call, "result", json_object_get(result));
  json_add_text(call, "result_capture", result_capture);
  json_add_take(call, "error", error);
  JsonObject *observation = json_object_new_object();
  json_add_take(observation, "content", json_object_get(content));
  json_add_text(observation, "capture", capture);
  json_add_take(call, "observation", observation);
  json_add_take(call, "ended_at", json_object_get(json_get(event, "at")));
  build_append_event_id(call, event);
  build_copy_rest(call, facts);
}

static gboolean complete_call(Build *build, JsonObject *event) {
  OpenCall *call = find_call(build, event);
  if (!call || call->completed) {
    return FALSE;
  }
  call->completed = TRUE;
  complete_call_json(call->json, event);
  return TRUE;
}

/* ---- Governance ------------------------------------------------------------------------------ */

static gboolean add_request(Build *build, JsonObject *event) {
  OpenCall *call = find_call(build, event);
  if (!call) {
    return FALSE;
  }
  g_ptr_array_add(call->requests, event);
  return TRUE;
}

static gboolean same_text(JsonObject *a, const char *first, JsonObject *b, const char *second,
                          const char *key) {
  const char *left = json_get_text(first ? json_get(a, first) : a, key);
  const char *right = json_get_text(second ? json_get(b, second) : b, key);
  return left && right && strcmp(left, right) == 0;
}

/* The request that the decision is about, taken off the list; NULL when there is none. */
static JsonObject *take_request(OpenCall *call, JsonObject *decision) {
  for (guint i = 0; i < call->requests->len; i++) {
    JsonObject *request = g_ptr_array_index(call->requests, i);
    if (same_text(json_get(request, "payload"), "request", json_get(decision, "payload"),
                  "decision", "request_id")) {
      return g_ptr_array_remove_index(call->requests, i);
    }
  }
  for (guint i = 0; i < call->requests->len; i++) {
    JsonObject *request = g_ptr_array_index(call->requests, i);
    if (same_text(json_get(request, "metadata"), NULL, json_get(decision, "metadata"), NULL,
                  "capability")) {
      return g_ptr_array_remove_index(call->requests, i);
    }
  }
  return NULL;
}

static gboolean add_decision(Build *build, JsonObject *event) {
  static const char *const KEYS[] = {"effect",           "capability",  "reason_code",
                                     "matched_rule_ids", "approval_id", "approved_by",
                                     "denied_by"};
  OpenCall *call = find_call(build, event);
  if (!call) {
    return FALSE;
  }
  JsonObject *request = take_request(call, event);
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *entry = json_object_new_object();
  g_autofree char *id = build_event_id(event);
  g_autofree char *request_id = request ? build_event_id(request) : NULL;
  json_add_text(entry, "event_id", id);
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    build_copy(entry, facts, KEYS[i]);
  }
  json_add_text(entry, "request_event_id", request_id);
  build_copy(entry, event, "at");
  build_copy(entry, json_get(request, "payload"), "request");
  build_copy(entry, json_get(event, "payload"), "decision");
  build_copy_rest(entry, facts);
  build_copy_rest(entry, json_get(request, "metadata"));
  json_object_object_del(entry, "tool_call_id");
  json_object_array_add(json_get(call->json, "governance"), entry);
  return TRUE;
}

/* ---- Executions ------------------------------------------------------------------------------ */

static JsonObject *execution_json_new(const Build *build, JsonObject *event) {
  static const char *const UNKNOWN[] = {"exit_code", "timed_out", "duration_ms"};
  static const char *const OUTPUT[] = {"stdout",       "stderr",           "stdout_bytes",
                                       "stderr_bytes", "stdout_truncated", "stderr_truncated"};
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *execution = json_object_new_object();
  build_copy(execution, facts, "execution_id");
  build_copy(execution, json_get(event, "payload"), "command");
  for (gsize i = 0; i < G_N_ELEMENTS(UNKNOWN); i++) {
    json_add_take(execution, UNKNOWN[i], NULL);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(OUTPUT); i++) {
    json_add_take(execution, OUTPUT[i], NULL);
  }
  const char *session = json_get_text(facts, "sandbox_session_id");
  const char *provider = json_get_text(facts, "sandbox_provider");
  if (!provider && session) {
    provider = g_hash_table_lookup(build->providers, session);
  }
  json_add_text(execution, "sandbox_provider", provider ? provider : build->provider);
  json_add_text(execution, "sandbox_session_id", session);
  build_copy(execution, facts, "matched_rule_ids");
  /* Whether it went well: null while it is not known. */
  json_add_take(execution, "succeeded", NULL);
  json_add_take(execution, "started_at", json_object_get(json_get(event, "at")));
  json_add_take(execution, "ended_at", NULL);
  return execution;
}

static gboolean is_own_listing(JsonObject *facts) {
  return g_strcmp0(json_get_text(facts, "purpose"), "workspace_sync") == 0;
}

static OpenExecution *add_execution(Build *build, JsonObject *event) {
  OpenCall *call = find_call(build, event);
  const char *id = json_get_text(json_get(event, "metadata"), "execution_id");
  if (!call || !id || g_hash_table_contains(build->executions, id)) {
    return NULL;
  }
  OpenExecution *execution = g_new0(OpenExecution, 1);
  execution->json = execution_json_new(build, event);
  json_object_array_add(json_get(call->json, "executions"), execution->json);
  g_hash_table_insert(build->executions, g_strdup(id), execution);
  return execution;
}

static void add_execution_facts(JsonObject *execution, JsonObject *event) {
  build_append_event_id(execution, event);
  build_copy_rest(execution, json_get(event, "metadata"));
  json_object_object_del(execution, "tool_call_id");
}

static gboolean start_execution(Build *build, JsonObject *event) {
  if (is_own_listing(json_get(event, "metadata"))) {
    return FALSE;
  }
  OpenExecution *execution = add_execution(build, event);
  if (execution) {
    add_execution_facts(execution->json, event);
  }
  return execution != NULL;
}

static void complete_execution_json(JsonObject *execution, JsonObject *event) {
  static const char *const FACTS[] = {"exit_code",        "timed_out",       "duration_ms",
                                      "stdout_bytes",     "stderr_bytes",    "stdout_truncated",
                                      "stderr_truncated", "matched_rule_ids"};
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *payload = json_get(event, "payload");
  for (gsize i = 0; i < G_N_ELEMENTS(FACTS); i++) {
    if (json_get(facts, FACTS[i])) {
      build_copy(execution, facts, FACTS[i]);
    }
  }
  if (!json_get(execution, "command")) {
    build_copy(execution, payload, "command");
  }
  build_copy(execution, payload, "stdout");
  build_copy(execution, payload, "stderr");
  const char *capture = build_capture(event);
  if (payload && strcmp(capture, "available") != 0) {
    json_add_text(execution, "capture", capture);
    build_copy_rest(execution, payload);
  }
  gboolean good = g_strcmp0(json_get_text(event, "type"), "sandbox_exec_completed") == 0 &&
                  json_get_int(facts, "exit_code", 0) == 0 &&
                  !json_get_bool(facts, "timed_out", FALSE);
  json_add_bool(execution, "succeeded", good);
  json_add_take(execution, "ended_at", json_object_get(json_get(event, "at")));
}

static gboolean end_execution(Build *build, JsonObject *event) {
  JsonObject *facts = json_get(event, "metadata");
  const char *id = json_get_text(facts, "execution_id");
  if (!id || is_own_listing(facts)) {
    return FALSE;
  }
  OpenExecution *execution = g_hash_table_lookup(build->executions, id);
  execution = execution ? execution : add_execution(build, event);
  if (!execution || execution->completed) {
    return FALSE;
  }
  execution->completed = TRUE;
  complete_execution_json(execution->json, event);
  add_execution_facts(execution->json, event);
  return TRUE;
}

/* What it had printed when its host was killed; its end is still not on record. */
static gboolean add_seal(Build *build, JsonObject *event) {
  const char *id = json_get_text(json_get(event, "metadata"), "execution_id");
  OpenExecution *execution = id ? g_hash_table_lookup(build->executions, id) : NULL;
  if (execution) {
    add_execution_facts(execution->json, event);
  }
  return execution != NULL;
}

/* ---- The workspace --------------------------------------------------------------------------- */

static gboolean add_sync(Build *build, JsonObject *event) {
  static const char *const KEYS[] = {"copied_in", "written", "skipped"};
  OpenCall *call = find_call(build, event);
  if (!call || json_get(call->json, "workspace_sync")) {
    return FALSE;
  }
  JsonObject *facts = json_get(event, "metadata");
  JsonObject *sync = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    JsonObject *list = json_get(facts, KEYS[i]);
    json_add_take(sync, KEYS[i],
                  json_object_is_type(list, json_type_array) ? json_object_get(list)
                                                             : json_object_new_array());
  }
  build_append_event_id(sync, event);
  build_copy(sync, event, "at");
  build_copy_rest(sync, facts);
  json_object_object_del(sync, "tool_call_id");
  json_add_take(call->json, "workspace_sync", sync);
  return TRUE;
}

/* ---- Which event goes where ------------------------------------------------------------------ */

static const struct {
  const char *type;
  gboolean (*place)(Build *build, JsonObject *event);
} PLACES[] = {
    {"tool_call_started", add_call},           {"tool_call_completed", complete_call},
    {"policy_request_created", add_request},   {"policy_decision_allow", add_decision},
    {"policy_decision_ask", add_decision},     {"policy_decision_deny", add_decision},
    {"sandbox_exec_started", start_execution}, {"sandbox_exec_completed", end_execution},
    {"sandbox_exec_failed", end_execution},    {"sandbox_workspace_sync", add_sync},
    {"sandbox_output_sealed", add_seal},
};

gboolean build_add_to_call(Build *build, JsonObject *event) {
  if (!build->open_calls) {
    build->open_calls =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)open_call_free);
    build->executions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  }
  const char *type = json_get_text(event, "type");
  for (gsize i = 0; i < G_N_ELEMENTS(PLACES); i++) {
    if (g_strcmp0(PLACES[i].type, type) == 0) {
      return PLACES[i].place(build, event);
    }
  }
  return FALSE;
}

static void close_executions(Build *build, JsonObject *executions) {
  for (gsize i = 0; i < json_object_array_length(executions); i++) {
    JsonObject *execution = json_object_array_get_idx(executions, i);
    const char *id = json_get_text(execution, "execution_id");
    if (!json_get(execution, "succeeded")) {
      build_add_gap(build, "execution", id, "missing");
    }
  }
}

void build_close_calls(Build *build) {
  for (gsize i = 0; i < json_object_array_length(build->calls); i++) {
    JsonObject *json = json_object_array_get_idx(build->calls, i);
    const char *id = json_get_text(json, "tool_call_id");
    const OpenCall *call = g_hash_table_lookup(build->open_calls, id);
    close_executions(build, json_get(json, "executions"));
    if (!call->completed) {
      build_add_gap(build, "tool_call", id, "missing");
    }
    for (guint r = 0; r < call->requests->len; r++) {
      json_object_array_add(build->step_other,
                            build_other_event(g_ptr_array_index(call->requests, r)));
    }
  }
}
