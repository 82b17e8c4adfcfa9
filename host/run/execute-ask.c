/* SPDX-License-Identifier: Apache-2.0 */
/* execute-ask.c: what one command asks the gate, and how its asks are answered. */
#include "run/execute-private.h"

#include "governance/approvals.h"
#include "governance/requests.h"
#include "provider/mount-check.h"
#include "run/approver.h"

/* Whoever answers at once is asked about like whoever decides later. FALSE: *ret_refusal. */
static gboolean check_answer(const Call *call, JsonObject *approval, char **ret_refusal) {
  const ApproverHook hook = {.cancel = call->run->hooks.cancel};
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) question = json_object_new_object();
  g_autoptr(JsonObject) told = approval_told(approval);
  static const char *const LATER[] = {"approver", "decision", "decided_at"};
  json_add_text(told, "status", "pending");
  for (gsize i = 0; i < G_N_ELEMENTS(LATER); i++) {
    json_add_text(told, LATER[i], NULL);
  }
  json_add_text(question, "run_id", call->run->id);
  json_add_text(question, "approval_id", json_get_text(approval, "approval_id"));
  json_add_text(question, "decision", "approve");
  json_add_text(question, "approver", json_get_text(approval, "approver"));
  json_add_text(question, "note", NULL);
  json_add_text(question, "arguments", NULL);
  json_add_take(question, "approval", json_object_get(told));
  if (approver_allows(call->run->check, &hook, question, &error)) {
    return TRUE;
  }
  *ret_refusal = g_strdup(error->message);
  return FALSE;
}

/* The answer holds for the call, also where a budget makes it wait: then it is kept with it. */
static void keep_answer(Call *call, JsonObject *approval) {
  const char *digest = json_get_text(approval, "request_digest");
  for (guint i = 0; i < call->answered->len; i++) {
    JsonObject *other = g_ptr_array_index(call->answered, i);
    if (g_strcmp0(json_get_text(other, "request_digest"), digest) == 0) {
      return;
    }
  }
  g_ptr_array_add(call->answered, json_object_get(approval));
}

static char *answer_ask(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                        char **ret_refusal) {
  Call *call = user;
  Run *run = call->run;
  const char *command = call->request->command;
  if (!run->hooks.answer) {
    return NULL;
  }
  g_autofree char *other = privacy_command(run->harness->privacy, PRIVACY_NOWHERE, command);
  pthread_mutex_lock(&run->answering);
  g_autofree char *approver =
      run->hooks.answer(run->hooks.user, request, decision, other ? other : command);
  pthread_mutex_unlock(&run->answering);
  if (!approver) {
    return NULL;
  }
  g_autoptr(GError) unfit = NULL;
  if (!approver_check_name(approver, &unfit)) {
    *ret_refusal = g_strdup_printf("The answer does not count: %s", unfit->message);
    return NULL;
  }
  if (!run->check && !run->pauses) {
    return g_steal_pointer(&approver);
  }
  g_autoptr(JsonObject) approval =
      pause_answered(run, call->id, call->args, request, decision, approver);
  if (!check_answer(call, approval, ret_refusal)) {
    return NULL;
  }
  keep_answer(call, approval);
  return g_steal_pointer(&approver);
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

static GPtrArray *one(PolicyRequest *take_request) {
  GPtrArray *requests = g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  g_ptr_array_add(requests, take_request);
  return requests;
}

/* Read once: a long script takes its time. Borrowed from the call, in an array of its own. */
static GPtrArray *command_request(Call *call) {
  if (!call->command) {
    const char *const argv[] = {"sh", "-c", call->script, NULL};
    call->command = request_command(argv, provider_instance_isolates(call->run->harness->instance));
  }
  GPtrArray *requests = g_ptr_array_new();
  g_ptr_array_add(requests, call->command);
  return requests;
}

static gboolean authorize_one(Call *call, GPtrArray *requests, PolicyDecision **ret_decision,
                              GError **error) {
  g_autoptr(GPtrArray) decisions = NULL;
  if (!gate_authorize(call->gate, requests, &decisions, error)) {
    return FALSE;
  }
  if (ret_decision) {
    *ret_decision = g_ptr_array_steal_index(decisions, 0);
  }
  return TRUE;
}

gboolean call_authorize(Call *call, PolicyRequest *take_request, PolicyDecision **ret_decision,
                        GError **error) {
  g_autoptr(GPtrArray) requests = one(take_request);
  return authorize_one(call, requests, ret_decision, error);
}

/* ---- Before anybody is asked ------------------------------------------------------------------------------------- */

/* A mount that no sandbox gets is refused when the sandbox is made, which is after the answers. */
static gboolean check_mount(const Harness *harness, GError **error) {
  const ManifestMount *mount = harness->config->manifest->mount;
  const char *name = provider_instance_name(harness->instance);
  g_autofree char *resolved = mount ? mount_check(name, mount->source, error) : NULL;
  return !mount || resolved;
}

/* What comes before a certain refusal is decided together with it: all of that is on record, and none of it asked. */
gboolean call_look_ahead(Call *call, gboolean opens, GError **error) {
  const Harness *harness = call->run->harness;
  g_autoptr(GPtrArray) execute = one(request_execute());
  g_autoptr(GPtrArray) manifest = opens ? request_manifest(harness->config->manifest) : NULL;
  g_autoptr(GPtrArray) command = command_request(call);
  GPtrArray *const steps[] = {execute, manifest, command};
  g_autoptr(GPtrArray) ahead = g_ptr_array_new();
  gboolean asks = FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
    Effect outlook = steps[i] ? gate_outlook(call->gate, steps[i]) : EFFECT_ALLOW;
    if (steps[i]) {
      g_ptr_array_extend(ahead, steps[i], NULL, NULL);
    }
    if (outlook == EFFECT_DENY) {
      return !asks || gate_authorize(call->gate, ahead, NULL, error);
    }
    asks = asks || outlook == EFFECT_ASK;
  }
  return !asks || ((!opens || check_mount(harness, error)) && budget_look_ahead(call, error));
}

gboolean call_authorize_manifest(Call *call, GError **error) {
  g_autoptr(GPtrArray) requests = request_manifest(call->run->harness->config->manifest);
  return requests->len == 0 || gate_authorize(call->gate, requests, NULL, error);
}

gboolean call_authorize_command(Call *call, GError **error) {
  g_autoptr(GPtrArray) requests = command_request(call);
  return authorize_one(call, requests, &call->decision, error);
}
