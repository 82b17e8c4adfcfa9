/* SPDX-License-Identifier: Apache-2.0 */
/* policy-decide.c: deny before ask before allow before the mode (behaviour 4.2 and 4.6). */
#include "base/ids.h"
#include "governance/policy-private.h"

static PolicyDecision *decision_new(const Policy *policy, const PolicyRequest *request,
                                    Effect effect, const char *reason_code) {
  PolicyDecision *decision = g_new0(PolicyDecision, 1);
  decision->decision_id = id_new("decision");
  decision->request_id = g_strdup(request->request_id);
  decision->policy_id = g_strdup(policy->id);
  decision->policy_hash = g_strdup(policy->hash);
  decision->effect = effect;
  decision->reason_code = reason_code;
  return decision;
}

static void merge_constraints(PolicyDecision *decision, const PolicyRule *rule) {
  decision->sandbox_required = decision->sandbox_required || rule->sandbox_required;
  decision->strict_telemetry = decision->strict_telemetry || rule->strict_telemetry;
  if (rule->approval_expires_seconds &&
      (!decision->approval_expires_seconds ||
       rule->approval_expires_seconds < decision->approval_expires_seconds)) {
    decision->approval_expires_seconds = rule->approval_expires_seconds;
  }
}

/* The decision of one list, or NULL when none of its rules matches. */
static PolicyDecision *decide_by(const Policy *policy, Effect effect,
                                 const PolicyRequest *request) {
  static const char *const CODES[] = {[EFFECT_DENY] = "matched_deny",
                                      [EFFECT_ASK] = "matched_ask",
                                      [EFFECT_ALLOW] = "matched_allow"};
  g_autoptr(GArray) places = policy_match(policy, effect, request);
  if (!places) {
    return NULL;
  }
  PolicyDecision *decision = decision_new(policy, request, effect, CODES[effect]);
  decision->matched_rule_ids = g_new0(char *, places->len + 1);
  for (guint i = 0; i < places->len; i++) {
    const PolicyRule *rule =
        g_ptr_array_index(policy->rules[effect], g_array_index(places, guint, i));
    if (!decision->reason && rule->reason) {
      decision->reason = g_strdup(rule->reason);
    }
    decision->matched_rule_ids[i] = g_strdup(rule->rule_id);
    merge_constraints(decision, rule);
  }
  if (!decision->reason) {
    decision->reason = g_strdup_printf("Matched %s policy rule.", effect_name(effect));
  }
  return decision;
}

/* A command that cannot be read passes no rule about commands: neither one that would let it run, nor
 * one that would not. NULL: it can be read, or no such rule is about it. */
static PolicyDecision *decide_opaque(const Policy *policy, const PolicyRequest *request) {
  const char *reason = policy_request_opaque(request);
  if (!reason || !policy_names_commands(policy, request)) {
    return NULL;
  }
  Effect effect = policy->mode == MODE_STRICT ? EFFECT_DENY : EFFECT_ASK;
  PolicyDecision *decision = decision_new(policy, request, effect, "command_opaque");
  decision->matched_rule_ids = g_new0(char *, 1);
  decision->reason =
      g_strdup_printf("The command rules cannot read this command (%s), so it is not "
                      "run without a person's approval.",
                      reason);
  return decision;
}

static PolicyDecision *decide_by_mode(const Policy *policy, const PolicyRequest *request) {
  static const Effect EFFECTS[] = {[MODE_PERMISSIVE] = EFFECT_ALLOW,
                                   [MODE_INTERACTIVE] = EFFECT_ASK,
                                   [MODE_STRICT] = EFFECT_DENY};
  PolicyDecision *decision =
      decision_new(policy, request, EFFECTS[policy->mode], "unknown_capability");
  decision->matched_rule_ids = g_new0(char *, 1);
  switch (policy->mode) {
  case MODE_PERMISSIVE:
    decision->reason = g_strdup("Allowed by the permissive mode: no rule matches this request.");
    break;
  case MODE_INTERACTIVE:
    decision->reason = g_strdup("Unknown capability requires approval.");
    break;
  case MODE_STRICT:
    decision->reason = g_strdup_printf("Denied by strict policy: no rule matches this %s request.",
                                       request->capability);
    break;
  }
  return decision;
}

/* What is wrong with a request that no rule can be applied to, or NULL. */
static const char *undecidable(const PolicyRequest *request) {
  if (!request->capability || !*request->capability) {
    return "The request names no capability, so it cannot be decided.";
  }
  if ((guint)request->risk > RISK_CRITICAL) {
    return "The request has no known risk level, so it cannot be decided.";
  }
  return NULL;
}

static PolicyDecision *decide_error(const Policy *policy, const PolicyRequest *request,
                                    const char *reason) {
  PolicyDecision *decision = decision_new(policy, request, EFFECT_DENY, "policy_error");
  decision->matched_rule_ids = g_new0(char *, 1);
  decision->reason = g_strdup(reason);
  return decision;
}

PolicyDecision *policy_decide(const Policy *policy, const PolicyRequest *request) {
  const char *fault = undecidable(request);
  if (fault) {
    return decide_error(policy, request, fault);
  }
  PolicyDecision *decision = decide_by(policy, EFFECT_DENY, request);
  decision = decision ? decision : decide_by(policy, EFFECT_ASK, request);
  decision = decision ? decision : decide_opaque(policy, request);
  decision = decision ? decision : decide_by(policy, EFFECT_ALLOW, request);
  return decision ? decision : decide_by_mode(policy, request);
}

gboolean policy_lacks_command(const Policy *policy, const PolicyRequest *request) {
  return !request->command && !undecidable(request) && policy_names_commands(policy, request);
}

gboolean policy_names(const Policy *policy, const PolicyRequest *request) {
  gboolean named = FALSE;
  for (Effect effect = EFFECT_DENY; effect <= EFFECT_ALLOW && !undecidable(request) && !named;
       effect++) {
    g_autoptr(GArray) places = policy_match(policy, effect, request);
    named = places != NULL;
  }
  return named;
}
