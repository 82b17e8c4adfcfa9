/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c: what became of a call, as one JSON object for programs. */
#include "run/execute.h"

JsonObject *execute_outcome_json(const Run *run, const ExecuteOutcome *outcome) {
  static const char *const ALWAYS[] = {"status", "data", "message"};
  static const char *const WHERE_THERE[] = {
      "governance_error_code", "error_type",         "record_error", "approvals",
      "budget_request",        "termination_reason", "notice"};
  JsonObject *object = json_object_new_object();
  json_add_text(object, "run_id", run_id(run));
  json_add_text(object, "trace_id", run_trace_id(run));
  for (gsize i = 0; i < G_N_ELEMENTS(ALWAYS); i++) {
    json_add_take(object, ALWAYS[i], json_object_get(json_get(outcome->observation, ALWAYS[i])));
  }
  for (gsize i = 0; i < G_N_ELEMENTS(WHERE_THERE); i++) {
    JsonObject *value = json_get(outcome->observation, WHERE_THERE[i]);
    if (value) {
      json_add_take(object, WHERE_THERE[i], json_object_get(value));
    }
  }
  json_add_take(object, "workspace_sync", json_object_get(outcome->sync));
  gboolean ended = json_get(outcome->observation, "termination_reason") != NULL;
  if (ended || json_get(outcome->observation, "approvals") ||
      json_get(outcome->observation, "budget_request")) { /* what a paused run returns, 6.1 */
    json_add_text(object, "session_id", run_session_id(run));
    json_add_text(object, "response",
                  ended ? json_get_text(outcome->observation, "message") : NULL);
  }
  return object;
}
