/* SPDX-License-Identifier: Apache-2.0 */
/* policy-decide.c: deny before ask before allow before the mode (behaviour 4.2 and 4.5). */
#include <string.h>

#include "base/glob.h"
#include "base/ids.h"
#include "governance/policy-private.h"

static gboolean equal_or_any(const char *wanted, const char *text) {
  return !wanted || g_strcmp0(wanted, text) == 0;
}

static gboolean names_target(const PolicyRule *rule) {
  return rule->path.glob || rule->resource.glob || rule->tool_name.glob;
}

static gboolean target_matches(const PolicyRule *rule, const PolicyRequest *request) {
  if (names_target(rule) && !request->has_target) {
    return FALSE;
  }
  const char *host = request->host ? request->host : request->target_host;
  const char *server = request->mcp_server ? request->mcp_server : request->target_mcp_server;
  return pattern_matches(&rule->path, request->target_path) &&
         pattern_matches(&rule->resource, request->target_resource) &&
         pattern_matches(&rule->tool_name, request->target_tool_name) &&
         pattern_matches(&rule->target_host, host) &&
         pattern_matches(&rule->target_mcp_server, server);
}

/* Deny and ask: any class in common. Allow: every class of the request is listed. */
static gboolean classes_match(const PolicyRule *rule, const PolicyRequest *request) {
  if (!rule->data_classes) {
    return TRUE;
  }
  gboolean all = TRUE;
  gboolean any = FALSE;
  for (char **class = request->data_classes; class && *class; class ++) {
    gboolean listed = g_strv_contains((const char *const *)rule->data_classes, *class);
    all = all && listed;
    any = any || listed;
  }
  return rule->effect == EFFECT_ALLOW ? all : any;
}

static gboolean conditions_match(const PolicyRule *rule, const PolicyRequest *request) {
  const char *host = request->host ? request->host : request->target_host;
  if (rule->risks && !(rule->risks & 1u << request->risk)) {
    return FALSE;
  }
  if (rule->method &&
      (!request->method || g_ascii_strcasecmp(rule->method, request->method) != 0)) {
    return FALSE;
  }
  if (rule->exclude_surfaces && request->execution_surface &&
      g_strv_contains((const char *const *)rule->exclude_surfaces, request->execution_surface)) {
    return FALSE;
  }
  if (glob_match_any((const char *const *)rule->exclude_capabilities, request->capability)) {
    return FALSE;
  }
  return equal_or_any(rule->provider, request->provider) &&
         equal_or_any(rule->execution_surface, request->execution_surface) &&
         equal_or_any(rule->mcp_server, request->mcp_server) &&
         pattern_matches(&rule->host, host) && classes_match(rule, request);
}

gboolean policy_rule_matches(const PolicyRule *rule, const PolicyRequest *request) {
  return pattern_matches(&rule->capability, request->capability) && target_matches(rule, request) &&
         conditions_match(rule, request);
}

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
  const GPtrArray *rules = policy->rules[effect];
  PolicyDecision *decision = NULL;
  g_autoptr(GPtrArray) ids = g_ptr_array_new();
  for (guint i = 0; i < rules->len; i++) {
    const PolicyRule *rule = g_ptr_array_index(rules, i);
    if (!policy_rule_matches(rule, request)) {
      continue;
    }
    if (!decision) {
      decision = decision_new(policy, request, effect, CODES[effect]);
    }
    if (!decision->reason && rule->reason) {
      decision->reason = g_strdup(rule->reason);
    }
    g_ptr_array_add(ids, g_strdup(rule->rule_id));
    merge_constraints(decision, rule);
  }
  if (decision) {
    g_ptr_array_add(ids, NULL);
    decision->matched_rule_ids = (char **)g_ptr_array_free(g_steal_pointer(&ids), FALSE);
    if (!decision->reason) {
      decision->reason = g_strdup_printf("Matched %s policy rule.", effect_name(effect));
    }
  }
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
  static const Effect ORDER[] = {EFFECT_DENY, EFFECT_ASK, EFFECT_ALLOW};
  for (gsize i = 0; i < G_N_ELEMENTS(ORDER); i++) {
    PolicyDecision *decision = decide_by(policy, ORDER[i], request);
    if (decision) {
      return decision;
    }
  }
  return decide_by_mode(policy, request);
}

gboolean policy_names(const Policy *policy, const PolicyRequest *request) {
  if (undecidable(request)) {
    return FALSE;
  }
  for (gsize list = 0; list < G_N_ELEMENTS(policy->rules); list++) {
    for (guint i = 0; i < policy->rules[list]->len; i++) {
      if (policy_rule_matches(g_ptr_array_index(policy->rules[list], i), request)) {
        return TRUE;
      }
    }
  }
  return FALSE;
}
