/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c: decides a batch as a whole, and has everything recorded before anybody acts on it
 * (behaviour 4.3). A gate is never changed after it is made and takes no lock, so any number of
 * threads may use it; the hooks are then called from all of them at once. */
#include "governance/gate.h"

#include <string.h>

#include "base/error.h"
#include "base/ids.h"

struct Gate {
  Policy *policy; /* NULL: not governed */
  GateHooks hooks;
  gboolean isolated;
  gboolean approval_fails;
};

Gate *gate_new(Policy *policy, const GateHooks *hooks, gboolean isolated, gboolean approval_fails) {
  Gate *gate = g_new0(Gate, 1);
  gate->policy = policy ? policy_ref(policy) : NULL;
  gate->hooks = *hooks;
  gate->isolated = isolated;
  gate->approval_fails = approval_fails;
  return gate;
}

void gate_free(Gate *gate) {
  if (gate) {
    policy_unref(gate->policy);
    g_free(gate);
  }
}

const Policy *gate_policy(const Gate *gate) {
  return gate->policy;
}

static gboolean refuse(GError **error, SandhostError code, const char *text) {
  g_set_error_literal(error, SANDHOST_ERROR, (gint)code, text);
  return FALSE;
}

/* An action that must be on record does not happen when the record fails. */
static gboolean record(const Gate *gate, const PolicyRequest *request,
                       const PolicyDecision *decision, GError **error) {
  g_autoptr(GError) failure = NULL;
  if (!gate->hooks.record || gate->hooks.record(gate->hooks.user, request, decision, &failure) ||
      !decision->strict_telemetry) {
    return TRUE;
  }
  if (!failure) {
    return refuse(error, SANDHOST_ERROR_RECORD, "the decision could not be recorded");
  }
  g_propagate_error(error, g_steal_pointer(&failure));
  return FALSE;
}

/* Whether an ask is put down to be decided later. */
static gboolean waits(const Gate *gate) {
  return !gate->approval_fails && !gate->hooks.answer && gate->hooks.suspend;
}

/* Of an ask that was put down before, that one's; else a new one. Owned. */
static char *approval_id_for(const Gate *gate, const PolicyRequest *request,
                             const PolicyDecision *decision) {
  if (!gate->hooks.recall) {
    return id_new("approval");
  }
  GateAnswer known = gate->hooks.recall(gate->hooks.user, request, decision);
  g_free(known.by);
  g_free(known.text);
  return known.approval_id ? known.approval_id : id_new("approval");
}

/* As the rules say it. Owned. */
static PolicyDecision *decide(const Gate *gate, const PolicyRequest *request) {
  PolicyDecision *decision = policy_decide_by_budget(gate->policy, request);
  return decision ? decision : policy_decide(gate->policy, request);
}

/* Every request is decided and recorded, also behind one that is denied or could not be recorded.
 * *ret_failure is the first record that failed where it must not. Returns owned. */
static GPtrArray *decide_all(const Gate *gate, const GPtrArray *requests, GError **ret_failure) {
  GPtrArray *decisions = g_ptr_array_new_with_free_func((GDestroyNotify)policy_decision_free);
  for (guint i = 0; i < requests->len; i++) {
    const PolicyRequest *request = g_ptr_array_index(requests, i);
    PolicyDecision *decision = decide(gate, request);
    g_ptr_array_add(decisions, decision);
    if (decision->effect == EFFECT_ASK && waits(gate)) {
      decision->approval_id = approval_id_for(gate, request, decision);
    }
    record(gate, request, decision, *ret_failure ? NULL : ret_failure);
  }
  return decisions;
}

static SandhostError code_of_denial(const PolicyDecision *decision) {
  if (strcmp(decision->reason_code, "unknown_capability") == 0) {
    return SANDHOST_ERROR_UNKNOWN_CAPABILITY;
  }
  if (strcmp(decision->reason_code, "budget_exceeded") == 0) {
    return SANDHOST_ERROR_BUDGET_EXCEEDED;
  }
  return strcmp(decision->reason_code, "policy_error") == 0 ? SANDHOST_ERROR_POLICY_EVALUATION
                                                            : SANDHOST_ERROR_POLICY_DENIED;
}

/* A decision that something after the rules has turned into another one, with an id of its own. */
static void become(PolicyDecision *decision, Effect effect, const char *code, char *take_reason) {
  g_free(decision->decision_id);
  g_free(decision->reason);
  decision->decision_id = id_new("decision");
  decision->effect = effect;
  decision->reason_code = code;
  decision->reason = take_reason;
}

/* The rule wants a sandbox where there is none: the decision becomes a deny. */
static gboolean needs_sandbox(gboolean isolated, PolicyDecision *decision) {
  if (!decision->sandbox_required || isolated || decision->effect == EFFECT_DENY) {
    return FALSE;
  }
  become(decision, EFFECT_DENY, "sandbox_required",
         g_strdup("Policy requires routing through the sandbox execution boundary."));
  return TRUE;
}

static gboolean check_denials(const GPtrArray *decisions, GError **error) {
  for (guint i = 0; i < decisions->len; i++) {
    const PolicyDecision *decision = g_ptr_array_index(decisions, i);
    if (decision->effect == EFFECT_DENY) {
      return refuse(error, code_of_denial(decision), decision->reason);
    }
  }
  return TRUE;
}

static gboolean check_sandbox(const Gate *gate, const GPtrArray *requests, GPtrArray *decisions,
                              GError **error) {
  for (guint i = 0; i < decisions->len; i++) {
    PolicyDecision *decision = g_ptr_array_index(decisions, i);
    if (needs_sandbox(gate->isolated, decision)) {
      record(gate, g_ptr_array_index(requests, i), decision, NULL);
      return refuse(error, SANDHOST_ERROR_SANDBOX_REQUIRED, decision->reason);
    }
  }
  return TRUE;
}

static char *said(const char *what, const char *by, const char *note) {
  return note && *note ? g_strdup_printf("%s by %s: %s", what, by, note)
                       : g_strdup_printf("%s by %s", what, by);
}

/* The ask becomes what a person has made of it earlier. FALSE: nothing is known of it. */
static gboolean recall(const Gate *gate, const PolicyRequest *request, PolicyDecision *decision) {
  if (gate->approval_fails || !gate->hooks.recall) {
    return FALSE;
  }
  GateAnswer answer = gate->hooks.recall(gate->hooks.user, request, decision);
  switch (answer.verdict) {
  case GATE_NOTHING:
    return FALSE;
  case GATE_APPROVED:
    become(decision, EFFECT_ALLOW, "approved", said("Approved", answer.by, answer.text));
    decision->approved_by = g_steal_pointer(&answer.by);
    break;
  case GATE_DENIED:
    become(decision, EFFECT_DENY, "denied", said("Denied", answer.by, answer.text));
    decision->denied_by = g_steal_pointer(&answer.by);
    break;
  case GATE_EXPIRED:
    become(decision, EFFECT_DENY, "expired_policy",
           g_strdup_printf("The approval expired at %s before anybody decided.", answer.text));
    decision->denied_by = g_strdup("system");
    break;
  }
  g_free(decision->approval_id);
  decision->approval_id = g_steal_pointer(&answer.approval_id);
  g_free(answer.by);
  g_free(answer.text);
  return TRUE;
}

/* Asks who can answer now. */
static gboolean answer(const Gate *gate, const PolicyRequest *request, PolicyDecision *decision) {
  char *approver = NULL;
  char *refusal = NULL;
  if (!gate->approval_fails && gate->hooks.answer) {
    approver = gate->hooks.answer(gate->hooks.user, request, decision, &refusal);
  }
  if (refusal) {
    g_free(approver);
    decision->denied_by = g_strdup("approver_check");
    become(decision, EFFECT_DENY, "denied", refusal);
    return TRUE;
  }
  if (!approver) {
    return FALSE;
  }
  decision->approved_by = approver;
  become(decision, EFFECT_ALLOW, "approved", said("Approved", approver, NULL));
  return TRUE;
}

/* What an ask has become is recorded again. FALSE where it is refused. */
static gboolean settle(const Gate *gate, const PolicyRequest *request,
                       const PolicyDecision *decision, GError **error) {
  gboolean allowed = decision->effect == EFFECT_ALLOW;
  gboolean recorded = record(gate, request, decision, allowed ? error : NULL);
  if (allowed) {
    return recorded;
  }
  return refuse(error,
                strcmp(decision->reason_code, "expired_policy") == 0
                    ? SANDHOST_ERROR_APPROVAL_EXPIRED
                    : SANDHOST_ERROR_POLICY_DENIED,
                decision->reason);
}

/* What was said earlier comes first: where it is a no, nobody is asked about the rest. */
static gboolean recall_all(const Gate *gate, const GPtrArray *requests, GPtrArray *decisions,
                           GError **error) {
  for (guint i = 0; i < decisions->len; i++) {
    const PolicyRequest *request = g_ptr_array_index(requests, i);
    PolicyDecision *decision = g_ptr_array_index(decisions, i);
    if (decision->effect == EFFECT_ASK && recall(gate, request, decision) &&
        !settle(gate, request, decision, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

/* Answers one ask. *ret_open: it waits; one that cannot is refused at once. */
static gboolean resolve(const Gate *gate, const PolicyRequest *request, PolicyDecision *decision,
                        gboolean *ret_open, GError **error) {
  *ret_open = FALSE;
  if (answer(gate, request, decision)) {
    return settle(gate, request, decision, error);
  }
  *ret_open = waits(gate);
  return *ret_open || refuse(error, SANDHOST_ERROR_APPROVAL_REQUIRED, decision->reason);
}

/* Puts the open asks down and refuses with the first one's reason. */
static gboolean suspend(const Gate *gate, GPtrArray *requests, GPtrArray *decisions,
                        GError **error) {
  if (!gate->hooks.suspend(gate->hooks.user, requests, decisions, error)) {
    return FALSE;
  }
  const PolicyDecision *first = g_ptr_array_index(decisions, 0);
  return refuse(error, SANDHOST_ERROR_APPROVAL_REQUIRED, first->reason);
}

/* In order. What waits, waits together; what is refused is refused for the whole batch, and nothing waits then. */
static gboolean resolve_all(const Gate *gate, const GPtrArray *requests, GPtrArray *decisions,
                            GError **error) {
  g_autoptr(GPtrArray) open_requests = g_ptr_array_new();
  g_autoptr(GPtrArray) open_decisions = g_ptr_array_new();
  if (!recall_all(gate, requests, decisions, error)) {
    return FALSE;
  }
  for (guint i = 0; i < decisions->len; i++) {
    PolicyDecision *decision = g_ptr_array_index(decisions, i);
    gboolean open = FALSE;
    if (decision->effect != EFFECT_ASK) {
      continue;
    }
    if (!resolve(gate, g_ptr_array_index(requests, i), decision, &open, error)) {
      return FALSE;
    }
    if (open) {
      g_ptr_array_add(open_requests, g_ptr_array_index(requests, i));
      g_ptr_array_add(open_decisions, decision);
    }
  }
  return open_decisions->len == 0 || suspend(gate, open_requests, open_decisions, error);
}

static gboolean authorize(const Gate *gate, const GPtrArray *requests, GPtrArray **ret_decisions,
                          GError **error) {
  g_autoptr(GError) unrecorded = NULL;
  GPtrArray *decisions = decide_all(gate, requests, &unrecorded);
  *ret_decisions = decisions;
  if (!check_denials(decisions, error) || !check_sandbox(gate, requests, decisions, error)) {
    return FALSE;
  }
  if (unrecorded) {
    g_propagate_error(error, g_steal_pointer(&unrecorded));
    return FALSE;
  }
  return resolve_all(gate, requests, decisions, error);
}

/* What stands for a decision where nothing is governed. */
static PolicyDecision *ungoverned(const PolicyRequest *request) {
  PolicyDecision *decision = g_new0(PolicyDecision, 1);
  decision->request_id = g_strdup(request->request_id);
  decision->effect = EFFECT_ALLOW;
  decision->reason_code = "ungoverned";
  decision->reason = g_strdup("Governance is off.");
  decision->matched_rule_ids = g_new0(char *, 1);
  return decision;
}

gboolean gate_authorize(Gate *gate, GPtrArray *requests, GPtrArray **ret_decisions,
                        GError **error) {
  g_autoptr(GPtrArray) decisions = NULL;
  gboolean ok = TRUE;
  if (gate->policy) {
    ok = authorize(gate, requests, &decisions, error);
    if (ok) {
      policy_count(gate->policy, requests->len, 0);
    }
  } else {
    decisions = g_ptr_array_new_with_free_func((GDestroyNotify)policy_decision_free);
    for (guint i = 0; i < requests->len; i++) {
      g_ptr_array_add(decisions, ungoverned(g_ptr_array_index(requests, i)));
    }
  }
  if (ret_decisions) {
    *ret_decisions = g_steal_pointer(&decisions);
  }
  return ok;
}

Effect gate_outlook(const Gate *gate, const GPtrArray *requests) {
  Effect outlook = EFFECT_ALLOW;
  for (guint i = 0; gate->policy && outlook != EFFECT_DENY && i < requests->len; i++) {
    g_autoptr(PolicyDecision) decision = decide(gate, g_ptr_array_index(requests, i));
    needs_sandbox(gate->isolated, decision);
    if (decision->effect != EFFECT_ALLOW) {
      outlook = decision->effect;
    }
  }
  return outlook;
}

/* Decides the listing. Where no rule names it, it is part of the command and takes its effect. */
static PolicyDecision *decide_sync(const Gate *gate, const PolicyRequest *request,
                                   const PolicyDecision *command) {
  PolicyDecision *decision = policy_decide(gate->policy, request);
  if (strcmp(decision->reason_code, "unknown_capability") == 0) {
    become(decision, command->effect, "follows_command",
           g_strdup_printf("Follows the decision for the command (%s).", command->request_id));
  }
  return decision;
}

gboolean gate_authorize_sync(Gate *gate, PolicyRequest *request, const PolicyDecision *command,
                             PolicyDecision **ret_decision, GError **error) {
  g_autoptr(PolicyDecision) decision =
      gate->policy ? decide_sync(gate, request, command) : ungoverned(request);
  gboolean ok = TRUE;
  if (gate->policy && needs_sandbox(gate->isolated, decision)) {
    record(gate, request, decision, NULL);
    ok = refuse(error, SANDHOST_ERROR_SANDBOX_REQUIRED, decision->reason);
  } else if (gate->policy) {
    g_autoptr(GError) unrecorded = NULL;
    gboolean recorded = record(gate, request, decision, &unrecorded);
    if (decision->effect != EFFECT_ALLOW) {
      ok = refuse(error, SANDHOST_ERROR_POLICY_DENIED, decision->reason);
    } else if (!recorded) {
      g_propagate_error(error, g_steal_pointer(&unrecorded));
      ok = FALSE;
    }
  }
  if (ret_decision) {
    *ret_decision = g_steal_pointer(&decision);
  }
  return ok;
}

gboolean gate_permits(Gate *gate, const PolicyRequest *request, PolicyDecision **ret_decision) {
  g_autoptr(PolicyDecision) decision =
      gate->policy ? policy_decide(gate->policy, request) : ungoverned(request);
  gboolean permitted = !needs_sandbox(gate->isolated, decision) && decision->effect == EFFECT_ALLOW;
  if (ret_decision) {
    *ret_decision = g_steal_pointer(&decision);
  }
  return permitted;
}

PolicyDecision *gate_preview(const Policy *policy, const PolicyRequest *request,
                             gboolean isolated) {
  PolicyDecision *decision = policy_decide(policy, request);
  if (strcmp(request->capability, "sandbox.workspace.sync") == 0 &&
      strcmp(decision->reason_code, "unknown_capability") == 0) {
    become(decision, EFFECT_ALLOW, "follows_command",
           g_strdup("Follows the decision for the command, which was allowed."));
  }
  needs_sandbox(isolated, decision);
  return decision;
}
