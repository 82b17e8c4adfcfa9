/* SPDX-License-Identifier: Apache-2.0 */
/* execute-record.c: the events of one call, in the order in which they come about. */
#include "run/execute-private.h"

#include "base/clock.h"
#include "base/digest.h"
#include "governance/requests.h"
#include "run/observation.h"

static JsonObject *facts_of(const Call *call) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "tool_call_id", call->id);
  return facts;
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

void call_record_started(Run *run, const char *call_id, JsonObject *args, JsonObject *tag,
                         gboolean resumed) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "tool_call_id", call_id);
  json_add_text(facts, "tool_name", "execute");
  if (tag) {
    json_add_take(facts, "tag", json_object_get(tag));
  }
  if (resumed) {
    json_add_bool(facts, "resumed", TRUE);
  }
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "arguments", json_object_get(args));
  journal_add(run->journal, "tool_call_started", facts, payload);
}

static const char *outcome_name(ExecuteEnd end, int exit_code, const char *waits) {
  switch (end) {
  case EXECUTE_FINISHED:
    return exit_code == 0 ? "success" : "error";
  case EXECUTE_TIMED_OUT:
  case EXECUTE_LOST:
  case EXECUTE_FAILED:
    return "error";
  case EXECUTE_WAITING: /* denied where nothing is kept to be answered later */
    return waits ? waits : "denied";
  case EXECUTE_DENIED:
    return "denied";
  case EXECUTE_UNKNOWN:
    return "unknown";
  case EXECUTE_REJECTED:
    return "rejected";
  case EXECUTE_CANCELLED: /* something else where it can still be begun */
    return waits ? waits : "cancelled";
  }
  return "error";
}

static JsonObject *without(JsonObject *object, const char *const *keys) {
  JsonObject *copy = json_object_new_object();
  json_object_object_foreach(object, key, value) {
    if (!g_strv_contains(keys, key)) {
      json_add_take(copy, key, json_object_get(value));
    }
  }
  return copy;
}

/* What a command printed is on record with its execution already, and is not kept twice: the trajectory puts it back. */
static JsonObject *observation_for_record(JsonObject *observation) {
  static const char *const DATA[] = {"data", NULL};
  static const char *const STREAMS[] = {"stdout", "stderr", NULL};
  JsonObject *data = json_get(observation, "data");
  if (!json_get(data, "stdout")) {
    return json_object_get(observation);
  }
  JsonObject *copy = without(observation, DATA);
  json_add_take(copy, "data", without(data, STREAMS));
  return copy;
}

void call_record_ended(Run *run, const char *call_id, const ExecuteOutcome *outcome,
                       const char *waits) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "tool_call_id", call_id);
  json_add_text(facts, "tool_name", "execute");
  json_add_text(facts, "outcome", outcome_name(outcome->end, outcome->exit_code, waits));
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "observation", observation_for_record(outcome->observation));
  journal_add(run->journal, "tool_call_completed", facts, payload);
}

/* ---- Decisions and copies ---------------------------------------------------------------------------------------- */

gboolean call_record_decision(void *user, const PolicyRequest *request,
                              const PolicyDecision *decision, GError **error) {
  Call *call = user;
  (void)error; /* cannot fail here: the flush before the next step tells */

  JsonObject *asked = facts_of(call);
  json_add_text(asked, "capability", request->capability);
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "request", policy_request_json(request));
  journal_add(call->run->journal, "policy_request_created", asked, payload);

  JsonObject *facts = facts_of(call);
  json_add_text(facts, "effect", effect_name(decision->effect));
  json_add_text(facts, "capability", request->capability);
  json_add_text(facts, "reason_code", decision->reason_code);
  json_add_take(facts, "matched_rule_ids",
                json_from_strv((const char *const *)decision->matched_rule_ids));
  json_add_text(facts, "approval_id", decision->approval_id);
  json_add_text(facts, "approved_by", decision->approved_by);
  json_add_text(facts, "denied_by", decision->denied_by);
  JsonObject *output = json_object_new_object();
  json_add_take(output, "decision", policy_decision_json(decision));
  g_autofree char *type = g_strdup_printf("policy_decision_%s", effect_name(decision->effect));
  journal_add(call->run->journal, type, facts, output);
  return TRUE;
}

void call_record_sync(Call *call) {
  JsonObject *facts = observation_sync(call->report);
  json_add_text(facts, "tool_call_id", call->id);
  json_add_text(facts, "sandbox_session_id", call->session ? call->session->id : NULL);
  json_add_int(facts, "reads_allowed", call->files_allowed[0]);
  json_add_int(facts, "writes_allowed", call->files_allowed[1]);
  json_add_take(facts, "denied", json_object_get(call->files_denied));
  journal_add(call->run->journal, "sandbox_workspace_sync", facts, NULL);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static JsonObject *execution_facts(const Call *call) {
  JsonObject *facts = facts_of(call);
  json_add_text(facts, "sandbox_session_id", call->session->id);
  json_add_text(facts, "execution_id", call->execution_id);
  json_add_text(facts, "sandbox_provider", provider_instance_name(call->run->harness->instance));
  json_add_text(facts, "command_name", "sh");
  json_add_int(facts, "argc", 3);
  json_add_int(facts, "timeout_seconds", call->limit);
  json_add_text(facts, "purpose", "command");
  json_add_text(facts, "decision_id", call->decision->decision_id);
  json_add_take(facts, "matched_rule_ids",
                json_from_strv((const char *const *)call->decision->matched_rule_ids));
  return facts;
}

static JsonObject *argv_json(const Call *call) {
  const char *const argv[] = {"sh", "-c", call->script, NULL};
  return json_from_strv(argv);
}

JsonObject *call_command_event(Call *call) {
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "command", argv_json(call));
  return journal_event(call->run->journal, "sandbox_exec_started", execution_facts(call), payload);
}

/* null for a command of which nobody knows how it ended. */
static JsonObject *exit_code_json(const Call *call, const GError *failure) {
  return failure && !call->lost ? NULL : json_object_new_int(call->result.exit_code);
}

/* All that is left of a text for which there is no room, and which is kept nowhere. Owned. */
static JsonObject *truncated_marker(JsonObject *text) {
  gsize length = (gsize)json_object_get_string_len(text);
  g_autofree char *digest = digest_hex(json_object_get_string(text), length);
  JsonObject *marker = json_object_new_object();
  json_add_text(marker, "capture", "truncated");
  json_add_int(marker, "bytes", (gint64)length);
  json_add_text(marker, "sha256", digest);
  return marker;
}

/* A long text is left to where all of it is kept; where it is not, and payloads have a limit, its size is told. */
static void add_stream(const Call *call, JsonObject *payload, const char *name, JsonObject *text,
                       JsonObject *offloaded) {
  guint64 most = call->run->harness->config->capture.max_payload_bytes;
  gboolean too_long = most > 0 && text && (guint64)json_object_get_string_len(text) > most;
  if (!offloaded && !too_long) {
    json_add_take(payload, name, json_object_get(text));
    return;
  }
  JsonObject *marker = offloaded ? json_object_get(offloaded) : truncated_marker(text);
  g_autofree char *key = g_strconcat(name, "_capture", NULL);
  json_add_take(payload, name, NULL);
  json_add_take(payload, key, marker);
  if (!offloaded || !json_get(payload, "capture")) {
    json_add_text(payload, "capture", json_get_text(marker, "capture"));
  }
}

void call_record_command_ended(Call *call, gint64 duration, const GError *failure) {
  JsonObject *facts = execution_facts(call);
  json_add_take(facts, "exit_code", exit_code_json(call, failure));
  json_add_bool(facts, "timed_out", call->timed_out);
  json_add_double(facts, "duration_ms", (double)duration / (double)CLOCK_MILLISECOND);
  json_add_int(facts, "stdout_bytes", (gint64)MAX(call->out.total, call->result.stdout_bytes));
  json_add_int(facts, "stderr_bytes", (gint64)MAX(call->err.total, call->result.stderr_bytes));
  json_add_bool(facts, "stdout_truncated", call->stdout_cut);
  json_add_bool(facts, "stderr_truncated", call->stderr_cut);
  if (call->stdout_kept) {
    json_add_take(facts, "stdout_kept", json_object_get(call->stdout_kept));
  }
  if (call->stderr_kept) {
    json_add_take(facts, "stderr_kept", json_object_get(call->stderr_kept));
  }
  json_add_bool(facts, "session_terminated", call->lost);
  json_add_int(facts, "signal", call->result.signal);
  json_add_text(facts, "error", failure ? failure->message : NULL);
  json_add_double(facts, "user_ms", (double)call->result.user_time / (double)CLOCK_MILLISECOND);
  json_add_double(facts, "system_ms", (double)call->result.system_time / (double)CLOCK_MILLISECOND);
  json_add_int(facts, "max_rss_bytes", (gint64)call->result.max_rss);

  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "command", argv_json(call));
  json_add_take(payload, "exit_code", exit_code_json(call, failure));
  if (call->redacted) {
    json_add_text(payload, "capture", "redacted");
  }
  add_stream(call, payload, "stdout", call->stdout_text, call->stdout_offloaded);
  add_stream(call, payload, "stderr", call->stderr_text, call->stderr_offloaded);
  gboolean good =
      !failure && call->result.ended == SANDHOST_ENDED_EXIT && call->result.exit_code == 0;
  journal_add(call->run->journal, good ? "sandbox_exec_completed" : "sandbox_exec_failed", facts,
              payload);
}
