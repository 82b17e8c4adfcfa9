/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: the beginning and the end of a run, and of each of its segments. */
#include "run/run.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "run/approver.h"
#include "run/run-private.h"

#define DEFAULT_LEASE_SECONDS 60

static gint64 lease_of(const Harness *harness) {
  return json_get_int(harness->config->agent_config, "run_lease_seconds", DEFAULT_LEASE_SECONDS);
}

static const char *session_of(const Harness *harness, const RunHooks *hooks) {
  return hooks->session_id ? hooks->session_id : harness->config->session_id;
}

static const char *agent_of(const Harness *harness, const RunHooks *hooks) {
  return hooks->agent_name ? hooks->agent_name : harness->config->agent_name;
}

/* Owned. */
static Metering *metering_of(const Harness *harness, const char *id, const char *session_id,
                             const char *agent_name) {
  const MeteringKeys keys = {.run_id = id, .session_id = session_id, .agent_name = agent_name};
  return metering_new(harness->policy ? policy_budgets(harness->policy) : NULL, &keys);
}

/* A run that is in the record already. Takes the ids. */
static Run *run_new(const Harness *harness, Record *record, const RunHooks *hooks, char *take_id,
                    char *take_trace_id, char *take_owner) {
  Run *run = g_new0(Run, 1);
  run->id = take_id;
  run->trace_id = take_trace_id;
  run->owner = take_owner;
  run->harness = harness;
  run->folder = workspace_folder_new(harness->config->files_dir);
  run->record = record;
  run->journal = journal_new(record, run->id);
  const Capture capture = {.privacy = harness->privacy, .config = &harness->config->capture};
  journal_set_capture(run->journal, &capture);
  run->hooks = *hooks;
  run->hooks.request = NULL;
  run->hooks.session_id = NULL; /* borrowed for now, as the next */
  run->hooks.agent_name = NULL;
  run->session_id = g_strdup(session_of(harness, hooks));
  run->agent_name = g_strdup(agent_of(harness, hooks));
  if (hooks->cancel) {
    cancel_ref(hooks->cancel);
  }
  pthread_mutex_init(&run->answering, NULL);
  pthread_mutex_init(&run->opening, NULL);
  pthread_mutex_init(&run->copying, NULL);
  pthread_mutex_init(&run->pausing, NULL);
  run->manifest_digest = pause_manifest_digest(harness->config);
  run->waiting = json_object_new_array();
  run->waiting_budgets = json_object_new_array();
  run->metering = metering_of(harness, run->id, run->session_id, run->agent_name);
  journal_set_metering(run->journal, run->metering);
  run->outputs = output_watch_new();
  if (record) {
    journal_set_owner(run->journal, run->owner);
    run->heartbeat = heartbeat_start(record, run->id, run->owner, lease_of(harness), &run->lost,
                                     run->hooks.cancel, run->outputs);
  }
  return run;
}

/* Owned; NULL: nobody is asked. */
static JsonObject *check_of(const Harness *harness) {
  JsonObject *stored = approver_stored(harness->config);
  JsonObject *check = stored ? json_object_new_object() : NULL;
  if (stored) {
    json_add_take(check, "approver_check", stored);
  }
  return check;
}

/* Who was asked when the run began is asked to its end. */
static gboolean recall_check(Run *run, GError **error) {
  g_autoptr(JsonObject) life = record_life(run->record, run->id, error);
  JsonObject *stored = json_get(json_get(life, "request"), "approver_check");
  if (stored) {
    run->check = json_object_new_object();
    json_add_take(run->check, "approver_check", json_object_get(stored));
  } else if (life) {
    run->check = check_of(run->harness);
  }
  return life != NULL;
}

static JsonObject *header_of(const Harness *harness, const RunHooks *hooks) {
  g_autoptr(JsonObject) header = harness_header(harness);
  if (hooks->session_id) {
    json_add_text(header, "session_id", hooks->session_id);
  }
  if (hooks->agent_name) {
    json_add_text(header, "agent_name", hooks->agent_name);
  }
  return privacy_json(harness->privacy, PRIVACY_TELEMETRY, header, TRUE, NULL);
}

/* The door's request, and who is asked about an approver. NULL where the run cannot wait. Owned. */
static JsonObject *request_of(const Harness *harness, JsonObject *request) {
  const Capture capture = {.privacy = harness->privacy, .config = &harness->config->capture};
  if (!request) {
    return NULL;
  }
  g_autoptr(JsonObject) whole = json_object_new_object();
  json_object_object_foreach(request, key, value) {
    json_add_take(whole, key, json_object_get(value));
  }
  JsonObject *check = approver_stored(harness->config);
  if (check) {
    json_add_take(whole, "approver_check", check);
  }
  return capture_request(&capture, whole);
}

Run *run_start(const Harness *harness, Record *record, const RunHooks *hooks, GError **error) {
  if (!harness_executes(harness, error)) {
    return NULL;
  }
  if (!record && harness->policy && policy_budgets(harness->policy)) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                        "budgets are counted in the record, and this run has none");
    return NULL;
  }
  g_autofree char *id = id_new("run");
  g_autofree char *trace_id = id_new("trace");
  g_autofree char *owner = id_new("owner");
  if (record) {
    g_autoptr(JsonObject) header = header_of(harness, hooks);
    g_autoptr(JsonObject) request = request_of(harness, hooks->request);
    const RecordLife life = {.owner = owner,
                             .lease_seconds = lease_of(harness),
                             .keep_days = retention_days(harness->config),
                             .request = request,
                             .lazy = hooks->unannounced};
    if (!record_begin_life(record, id, trace_id, header, &life, error)) {
      return NULL;
    }
  }
  Run *run = run_new(harness, record, hooks, g_steal_pointer(&id), g_steal_pointer(&trace_id),
                     g_steal_pointer(&owner));
  run->pauses = record && hooks->request;
  run->check = check_of(harness);
  return run;
}

/* Under the limits of now, which may have room for what the run waits for. */
static gboolean take(const Harness *harness, Record *record, const RunHooks *hooks,
                     const char *run_id, const char *owner, const char *trace_id, GError **error) {
  Metering *metering =
      metering_of(harness, run_id, session_of(harness, hooks), agent_of(harness, hooks));
  g_autoptr(GArray) limits = g_array_new(FALSE, FALSE, sizeof(RecordCharge));
  metering_look(metering, limits);
  gboolean ok = record_take(record, run_id, owner, trace_id, lease_of(harness), limits, error);
  metering_free(metering);
  return ok;
}

Run *run_resume(const Harness *harness, Record *record, const char *run_id, const RunHooks *hooks,
                GError **error) {
  if (!harness_executes(harness, error)) {
    return NULL;
  }
  g_autofree char *trace_id = id_new("trace");
  g_autofree char *owner = id_new("owner");
  if (!take(harness, record, hooks, run_id, owner, trace_id, error)) {
    return NULL;
  }
  /* From here on the run is ours: whatever fails ends it as something that can be resumed. */
  g_autofree char *id = g_strdup(run_id);
  Run *run = run_new(harness, record, hooks, g_steal_pointer(&id), g_steal_pointer(&trace_id),
                     g_steal_pointer(&owner));
  run->pauses = TRUE;
  run->decided = record_approvals(record, run->id, TRUE, error);
  if (!run->decided || !recall_check(run, error) || !budget_recall(run, error) ||
      !run_sweep_leftovers(harness, run->id, hooks->cancel, NULL, error)) {
    run_end(run, "interrupted", error && *error ? (*error)->message : NULL, NULL);
    return NULL;
  }
  return run;
}

const char *run_id(const Run *run) {
  return run->id;
}

const char *run_session_id(const Run *run) {
  return run->session_id;
}

const char *run_trace_id(const Run *run) {
  return run->trace_id;
}

gboolean run_is_lost(Run *run, gboolean look) {
  gboolean held = TRUE;
  if (g_atomic_int_get(&run->lost) != 0) {
    return TRUE;
  }
  return look && run->record &&
         record_heartbeat(run->record, run->id, run->owner, FALSE, &held, NULL) && !held;
}

/* The ids (at key) of what waits. Owned. */
static JsonObject *ids_of(JsonObject *waiting, const char *key) {
  JsonObject *ids = json_object_new_array();
  for (gsize i = 0; i < json_object_array_length(waiting); i++) {
    json_object_array_add(ids,
                          json_object_get(json_get(json_object_array_get_idx(waiting, i), key)));
  }
  return ids;
}

static void record_suspended(Run *run) {
  g_autoptr(JsonObject) approvals = run_waiting(run);
  g_autoptr(JsonObject) budgets = run_waiting_budgets(run);
  JsonObject *facts = json_object_new_object();
  gboolean asks = json_object_array_length(approvals) > 0;
  json_add_text(facts, "cause", asks ? "approval" : "budget");
  if (asks) {
    json_add_take(facts, "approval_ids", ids_of(approvals, "approval_id"));
  }
  if (json_object_array_length(budgets) > 0) {
    json_add_take(facts, "budget_request_ids", ids_of(budgets, "request_id"));
  }
  journal_add(run->journal, "run_suspended", facts, NULL);
}

static void run_free(Run *run) {
  journal_free(run->journal);
  workspace_folder_free(run->folder);
  output_watch_free(run->outputs);
  g_clear_pointer(&run->hooks.cancel, cancel_unref);
  pthread_mutex_destroy(&run->answering);
  pthread_mutex_destroy(&run->opening);
  pthread_mutex_destroy(&run->copying);
  pthread_mutex_destroy(&run->pausing);
  json_object_put(run->waiting);
  json_object_put(run->waiting_budgets);
  metering_free(run->metering);
  g_free(run->exhausted);
  json_object_put(run->decided);
  json_object_put(run->check);
  g_free(run->manifest_digest);
  g_free(run->session_id);
  g_free(run->agent_name);
  g_free(run->owner);
  g_free(run->trace_id);
  g_free(run->id);
  g_free(run);
}

gboolean run_is_interrupted(Run *run) {
  return g_atomic_int_get(&run->interrupted) != 0;
}

/* What a budget, or a call that is still to be begun, makes of the status that a door gives. Constant, or status. */
static const char *end_status(Run *run, const char *status) {
  if (strcmp(status, "cancelled") == 0 && run_is_interrupted(run)) {
    return "interrupted";
  }
  if (strcmp(status, "awaiting_approval") != 0 && strcmp(status, "completed") != 0) {
    return status;
  }
  g_autoptr(JsonObject) approvals = run_waiting(run);
  g_autoptr(JsonObject) budgets = run_waiting_budgets(run);
  return json_object_array_length(budgets) > 0 && json_object_array_length(approvals) == 0
             ? "awaiting_budget"
             : status;
}

static gboolean end_in_record(Run *run, const char *status, const char *reason, GError **error) {
  g_autofree char *exhausted = run_exhausted(run);
  GString *clean =
      reason ? privacy_text(run->harness->privacy, PRIVACY_TELEMETRY, reason, strlen(reason))
             : NULL;
  g_autofree char *told = clean ? g_string_free(clean, FALSE) : g_strdup(reason);
  gboolean fails =
      exhausted && strcmp(status, "cancelled") != 0 && strcmp(status, "interrupted") != 0;
  const RecordEnd end = {.status = fails ? "failed" : end_status(run, status),
                         .reason = fails ? exhausted : told,
                         .termination = fails ? "budget_exhausted" : NULL};
  return journal_end(run->journal, &end, error);
}

gboolean run_end(Run *take_run, const char *status, const char *reason, GError **error) {
  Run *run = take_run;
  g_clear_pointer(&run->session, session_unref);
  if (run_is_paused(run)) {
    record_suspended(run);
  }
  gboolean ok = !run->record || end_in_record(run, status, reason, error);
  heartbeat_stop(g_steal_pointer(&run->heartbeat));
  run_free(run);
  return ok;
}
