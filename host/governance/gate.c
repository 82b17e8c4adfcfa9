/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c: decides a batch as a whole, and has everything recorded before anybody acts on it (behaviour 4.3). */
#include "governance/gate.h"

#include <string.h>

#include "base/error.h"

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
  g_set_error_literal(error, SANDHOST_ERROR, code, text);
  return FALSE;
}

/* An action that must be on record does not happen when the record fails. */
static gboolean record(Gate *gate, const PolicyRequest *request, const PolicyDecision *decision,
                       GError **error) {
  g_autoptr(GError) failure = NULL;
  if (!gate->hooks.record || gate->hooks.record(gate->hooks.user, request, decision, &failure) ||
      !decision->strict_telemetry) {
    return TRUE;
  }
  g_propagate_error(error, g_steal_pointer(&failure));
  return FALSE;
}

static GPtrArray *decide_all(Gate *gate, GPtrArray *requests, GError **error) {
  g_autoptr(GPtrArray) decisions =
      g_ptr_array_new_with_free_func((GDestroyNotify)policy_decision_free);
  for (guint i = 0; i < requests->len; i++) {
    const PolicyRequest *request = g_ptr_array_index(requests, i);
    PolicyDecision *decision = policy_decide(gate->policy, request);
    g_ptr_array_add(decisions, decision);
    if (!record(gate, request, decision, error)) {
      return NULL;
    }
  }
  return g_steal_pointer(&decisions);
}

static SandhostError code_of_denial(const PolicyDecision *decision) {
  if (strcmp(decision->reason_code, "unknown_capability") == 0) {
    return SANDHOST_ERROR_UNKNOWN_CAPABILITY;
  }
  return strcmp(decision->reason_code, "policy_error") == 0 ? SANDHOST_ERROR_POLICY_EVALUATION
                                                            : SANDHOST_ERROR_POLICY_DENIED;
}

static gboolean check_denials(const Gate *gate, const GPtrArray *decisions, GError **error) {
  for (guint i = 0; i < decisions->len; i++) {
    const PolicyDecision *decision = g_ptr_array_index(decisions, i);
    if (decision->effect == EFFECT_DENY) {
      return refuse(error, code_of_denial(decision), decision->reason);
    }
  }
  for (guint i = 0; i < decisions->len; i++) {
    const PolicyDecision *decision = g_ptr_array_index(decisions, i);
    if (decision->sandbox_required && !gate->isolated) {
      return refuse(error, SANDHOST_ERROR_SANDBOX_REQUIRED,
                    "Policy requires routing through the sandbox execution boundary.");
    }
  }
  return TRUE;
}

/* Answers one ask; an allowed one is recorded again as what it has become. */
static gboolean resolve(Gate *gate, const PolicyRequest *request, PolicyDecision *decision,
                        GError **error) {
  g_autofree char *approver = NULL;
  if (!gate->approval_fails && gate->hooks.answer) {
    approver = gate->hooks.answer(gate->hooks.user, request, decision);
  }
  if (!approver) {
    return refuse(error, SANDHOST_ERROR_APPROVAL_REQUIRED, decision->reason);
  }
  decision->effect = EFFECT_ALLOW;
  decision->reason_code = "approved";
  g_free(decision->reason);
  decision->reason = g_strdup_printf("Approved by %s", approver);
  decision->approved_by = g_steal_pointer(&approver);
  return record(gate, request, decision, error);
}

static gboolean authorize(Gate *gate, GPtrArray *requests, GPtrArray *decisions, GError **error) {
  if (!check_denials(gate, decisions, error)) {
    return FALSE;
  }
  for (guint i = 0; i < decisions->len; i++) {
    PolicyDecision *decision = g_ptr_array_index(decisions, i);
    if (decision->effect == EFFECT_ASK &&
        !resolve(gate, g_ptr_array_index(requests, i), decision, error)) {
      return FALSE;
    }
  }
  return TRUE;
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
    decisions = decide_all(gate, requests, error);
    ok = decisions && authorize(gate, requests, decisions, error);
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

/* No rule names the listing: it is part of the command, and takes its effect. */
static void follow_command(PolicyDecision *decision, const PolicyDecision *command) {
  decision->effect = EFFECT_ALLOW;
  decision->reason_code = "follows_command";
  g_free(decision->reason);
  decision->reason =
      g_strdup_printf("Follows the decision for the command (%s).", command->request_id);
}

gboolean gate_authorize_sync(Gate *gate, PolicyRequest *request, const PolicyDecision *command,
                             PolicyDecision **ret_decision, GError **error) {
  if (!gate->policy) {
    if (ret_decision) {
      *ret_decision = ungoverned(request);
    }
    return TRUE;
  }
  g_autoptr(PolicyDecision) decision = policy_decide(gate->policy, request);
  if (strcmp(decision->reason_code, "unknown_capability") == 0) {
    follow_command(decision, command);
  }
  gboolean ok = record(gate, request, decision, error);
  if (ok && decision->effect != EFFECT_ALLOW) {
    ok = refuse(error, SANDHOST_ERROR_POLICY_DENIED, decision->reason);
  }
  if (ret_decision) {
    *ret_decision = g_steal_pointer(&decision);
  }
  return ok;
}

gboolean gate_permits(Gate *gate, const PolicyRequest *request, PolicyDecision **ret_decision) {
  g_autoptr(PolicyDecision) decision =
      gate->policy ? policy_decide(gate->policy, request) : ungoverned(request);
  gboolean permitted = decision->effect == EFFECT_ALLOW;
  if (ret_decision) {
    *ret_decision = g_steal_pointer(&decision);
  }
  return permitted;
}
