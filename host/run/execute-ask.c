/* SPDX-License-Identifier: Apache-2.0 */
/* execute-ask.c: what one command asks the gate, and how its asks are answered. */
#include "run/execute-private.h"

#include "governance/requests.h"

static char *answer_ask(void *user, const PolicyRequest *request, const PolicyDecision *decision) {
  Run *run = ((Call *)user)->run;
  if (!run->hooks.answer) {
    return NULL;
  }
  pthread_mutex_lock(&run->answering);
  char *approver = run->hooks.answer(run->hooks.user, request, decision);
  pthread_mutex_unlock(&run->answering);
  return approver;
}

static gboolean has_id(GPtrArray *ids, const char *id) {
  return g_ptr_array_find_with_equal_func(ids, id, g_str_equal, NULL);
}

/* An answer holds for the whole call, so for a second sandbox of it too; it is used once, with the command. */
static GateAnswer recall_answer(void *user, const PolicyRequest *request,
                                const PolicyDecision *decision) {
  Call *call = user;
  GateAnswer answer = pause_recall(call->run, call->id, call->args, request, decision);
  if (answer.verdict == GATE_APPROVED && !has_id(call->approvals, answer.approval_id)) {
    g_ptr_array_add(call->approvals, g_strdup(answer.approval_id));
  }
  return answer;
}

static gboolean suspend_asks(void *user, GPtrArray *requests, GPtrArray *decisions,
                             GError **error) {
  Call *call = user;
  call->waits = pause_suspend(call->run, call->id, call->args, requests, decisions, error);
  return call->waits;
}

Gate *call_gate(Call *call) {
  const Harness *harness = call->run->harness;
  const GateHooks hooks = {
      .user = call,
      .record = call_record_decision,
      .answer = call->run->pauses && !call->run->hooks.answer ? NULL : answer_ask,
      .recall = recall_answer,
      .suspend = call->run->pauses ? suspend_asks : NULL,
  };
  return gate_new(harness->policy, &hooks, provider_instance_isolates(harness->instance),
                  harness->config->approval_fails);
}

gboolean call_authorize(Call *call, PolicyRequest *take_request, PolicyDecision **ret_decision,
                        GError **error) {
  g_autoptr(GPtrArray) requests =
      g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  g_ptr_array_add(requests, take_request);
  g_autoptr(GPtrArray) decisions = NULL;
  if (!gate_authorize(call->gate, requests, &decisions, error)) {
    return FALSE;
  }
  if (ret_decision) {
    *ret_decision = g_ptr_array_steal_index(decisions, 0);
  }
  return TRUE;
}

gboolean call_authorize_manifest(Call *call, GError **error) {
  g_autoptr(GPtrArray) requests = request_manifest(call->run->harness->config->manifest);
  return requests->len == 0 || gate_authorize(call->gate, requests, NULL, error);
}

gboolean call_authorize_command(Call *call, GError **error) {
  const char *const argv[] = {"sh", "-c", call->script, NULL};
  gboolean isolated = provider_instance_isolates(call->run->harness->instance);
  return call_authorize(call, request_command(argv, isolated), &call->decision, error);
}
