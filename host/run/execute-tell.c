/* SPDX-License-Identifier: Apache-2.0 */
/* execute-tell.c: what the door is told of a call. */
#include "run/execute-private.h"

#include "base/descriptors.h"
#include "base/error.h"
#include "run/observation.h"

gboolean call_is_cancel(const GError *error) {
  return provider_error_is(error, SANDHOST_CANCELLED);
}

char *execute_shortened(gint64 timeout, gint64 most) {
  return timeout > most
             ? g_strdup_printf("the timeout of %" G_GINT64_FORMAT
                               " seconds is more than the configuration's tool_call_timeout; the "
                               "command may take %" G_GINT64_FORMAT,
                               timeout, most)
             : NULL;
}

void call_tell_shortened(const Call *call) {
  Run *run = call->run;
  g_autofree char *line =
      execute_shortened(call->request->timeout, run->harness->config->tool_call_timeout);
  if (line && run->hooks.warn && g_atomic_int_compare_and_exchange(&run->shortened, 0, 1)) {
    run->hooks.warn(run->hooks.user, line);
  }
}

static ExecuteEnd end_of_error(const Call *call, const GError *error) {
  if (call->stopped || call_is_cancel(error) || cancel_raised(call->run->hooks.cancel)) {
    return EXECUTE_CANCELLED;
  }
  if (g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_APPROVAL_REQUIRED)) {
    return call->run->harness->config->approval_fails ? EXECUTE_DENIED : EXECUTE_WAITING;
  }
  return sandhost_error_governance_code(error) ? EXECUTE_DENIED : EXECUTE_FAILED;
}

/* Only what this call has put down: another one may have, at the same time. */
static void tell_waiting(const Call *call, const GError *error, ExecuteOutcome *ret_outcome) {
  g_autoptr(JsonObject) waiting = run_waiting(call->run);
  JsonObject *own = json_object_new_array();
  for (gsize i = 0; i < json_object_array_length(waiting); i++) {
    JsonObject *approval = json_object_array_get_idx(waiting, i);
    if (g_strcmp0(json_get_text(approval, "tool_call_id"), call->id) == 0) {
      json_object_array_add(own, json_object_get(approval));
    }
  }
  ret_outcome->end = EXECUTE_WAITING;
  ret_outcome->exit_code = -1;
  ret_outcome->observation = observation_error(call->args, error->message, NULL);
  json_add_text(ret_outcome->observation, "status", "awaiting_approval");
  json_add_take(ret_outcome->observation, "approvals", own);
}

static void tell_budget(const Call *call, const GError *error, ExecuteOutcome *ret_outcome) {
  ret_outcome->end = EXECUTE_WAITING;
  ret_outcome->exit_code = -1;
  ret_outcome->observation = observation_error(call->args, error->message, NULL);
  json_add_text(ret_outcome->observation, "status", "awaiting_budget");
  json_add_take(ret_outcome->observation, "budget_request", json_object_get(call->budget_request));
}

void call_tell_error(const Call *call, const GError *error, ExecuteOutcome *ret_outcome) {
  if (call->waits) {
    tell_waiting(call, error, ret_outcome);
    return;
  }
  if (call->budget_request) {
    tell_budget(call, error, ret_outcome);
    return;
  }
  ret_outcome->end = end_of_error(call, error);
  ret_outcome->exit_code = -1;
  g_autofree char *explained = descriptors_explain(error->message);
  ret_outcome->observation =
      observation_error(call->args,
                        ret_outcome->end == EXECUTE_CANCELLED ? "Tool execution cancelled"
                        : ret_outcome->end == EXECUTE_FAILED  ? explained
                                                              : error->message,
                        sandhost_error_governance_code(error));
  if (ret_outcome->end == EXECUTE_CANCELLED) {
    json_add_text(ret_outcome->observation, "error_type", "cancelled");
    return;
  }
  if (call->not_started) {
    json_add_text(ret_outcome->observation, "error_type", "not_started");
  }
  g_autofree char *exhausted = run_exhausted(call->run);
  if (g_strcmp0(exhausted, error->message) == 0) {
    json_add_text(ret_outcome->observation, "termination_reason", "budget_exhausted");
  }
}

void call_tell_result(const Call *call, ExecuteOutcome *ret_outcome) {
  const ObservationFacts facts = {
      .result = &call->result,
      .stdout_text = call->stdout_text,
      .stderr_text = call->stderr_text,
      .stdout_cut = call->stdout_cut,
      .stderr_cut = call->stderr_cut,
      .limit = call->limit,
      .isolated = provider_instance_isolates(call->run->harness->instance),
      .lost = call->lost ? session_lost_reason(call->session) : NULL,
      .timed_out = call->timed_out,
      .report = call->report,
  };
  ret_outcome->end = call->lost        ? EXECUTE_LOST
                     : call->timed_out ? EXECUTE_TIMED_OUT
                                       : EXECUTE_FINISHED;
  ret_outcome->exit_code = call->result.exit_code;
  ret_outcome->observation = observation_result(call->args, &facts);
}
