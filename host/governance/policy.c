/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c: policies, requests and decisions as objects. */
#include "governance/policy.h"

#include "base/ids.h"
#include "governance/policy-private.h"

const char *effect_name(Effect effect) {
  static const char *const NAMES[] = {
      [EFFECT_DENY] = "deny", [EFFECT_ASK] = "ask", [EFFECT_ALLOW] = "allow"};
  return NAMES[effect];
}

const char *risk_name(Risk risk) {
  static const char *const NAMES[] = {[RISK_LOW] = "low",
                                      [RISK_MEDIUM] = "medium",
                                      [RISK_HIGH] = "high",
                                      [RISK_CRITICAL] = "critical"};
  return NAMES[risk];
}

JsonObject *policy_copy_json(JsonObject *value) {
  JsonObject *copy = NULL;
  if (value && json_object_deep_copy(value, &copy, NULL) != 0) {
    g_error("out of memory");
  }
  return copy;
}

/* ---- Requests -------------------------------------------------------------------------------- */

PolicyRequest *policy_request_new(const char *capability, Risk risk) {
  PolicyRequest *request = g_new0(PolicyRequest, 1);
  request->request_id = id_new("authreq");
  request->capability = g_strdup(capability);
  request->actor = "agent";
  request->risk = risk;
  return request;
}

void policy_request_free(PolicyRequest *request) {
  if (!request) {
    return;
  }
  g_free(request->request_id);
  g_free(request->capability);
  g_free(request->target_path);
  g_free(request->target_host);
  g_free(request->target_resource);
  g_free(request->target_tool_name);
  g_free(request->target_mcp_server);
  g_free(request->provider);
  g_free(request->execution_surface);
  g_strfreev(request->data_classes);
  g_free(request->method);
  g_free(request->host);
  g_free(request->mcp_server);
  json_object_put(request->metadata);
  command_line_free(request->command);
  g_free(request);
}

JsonObject *policy_request_json(const PolicyRequest *request) {
  JsonObject *object = json_object_new_object();
  json_add_text(object, "request_id", request->request_id);
  json_add_text(object, "capability", request->capability);
  json_add_text(object, "actor", request->actor);
  JsonObject *target = NULL;
  if (request->has_target) {
    target = json_object_new_object();
    json_add_text(target, "path", request->target_path);
    json_add_text(target, "host", request->target_host);
    json_add_text(target, "resource", request->target_resource);
    json_add_text(target, "tool_name", request->target_tool_name);
    json_add_text(target, "mcp_server", request->target_mcp_server);
  }
  json_add_take(object, "target", target);
  json_add_text(object, "provider", request->provider);
  json_add_text(object, "execution_surface", request->execution_surface);
  json_add_text(object, "risk_level", risk_name(request->risk));
  json_add_take(object, "data_classes", json_from_strv((const char *const *)request->data_classes));
  json_add_text(object, "method", request->method);
  json_add_text(object, "host", request->host);
  json_add_text(object, "mcp_server", request->mcp_server);
  json_add_take(object, "metadata", policy_copy_json(request->metadata));
  return object;
}

/* ---- Decisions ------------------------------------------------------------------------------- */

void policy_decision_free(PolicyDecision *decision) {
  if (!decision) {
    return;
  }
  g_free(decision->decision_id);
  g_free(decision->request_id);
  g_free(decision->policy_id);
  g_free(decision->policy_hash);
  g_free(decision->reason);
  g_strfreev(decision->matched_rule_ids);
  g_free(decision->approved_by);
  g_free(decision->denied_by);
  g_free(decision->approval_id);
  g_free(decision);
}

JsonObject *policy_decision_json(const PolicyDecision *decision) {
  JsonObject *object = json_object_new_object();
  json_add_text(object, "decision_id", decision->decision_id);
  json_add_text(object, "request_id", decision->request_id);
  json_add_text(object, "policy_id", decision->policy_id);
  json_add_text(object, "policy_hash", decision->policy_hash);
  json_add_text(object, "effect", effect_name(decision->effect));
  json_add_text(object, "reason_code", decision->reason_code);
  json_add_text(object, "reason", decision->reason);
  json_add_take(object, "matched_rule_ids",
                json_from_strv((const char *const *)decision->matched_rule_ids));
  JsonObject *constraints = json_object_new_object();
  if (decision->sandbox_required) {
    json_add_bool(constraints, "sandbox_required", TRUE);
  }
  if (decision->strict_telemetry) {
    json_add_bool(constraints, "strict_telemetry", TRUE);
  }
  if (decision->approval_expires_seconds) {
    json_add_int(constraints, "approval_expires_seconds", decision->approval_expires_seconds);
  }
  json_add_take(object, "constraints", constraints);
  json_add_text(object, "approval_id", decision->approval_id);
  return object;
}

/* ---- Policies -------------------------------------------------------------------------------- */

PolicyRule *policy_rule_new(const char *rule_id, Effect effect, const char *capability) {
  PolicyRule *rule = g_new0(PolicyRule, 1);
  rule->rule_id = g_strdup(rule_id);
  rule->effect = effect;
  pattern_set(&rule->capability, g_strdup(capability));
  return rule;
}

void policy_rule_free(PolicyRule *rule) {
  if (!rule) {
    return;
  }
  g_free(rule->rule_id);
  pattern_clear(&rule->capability);
  g_free(rule->reason);
  pattern_clear(&rule->path);
  pattern_clear(&rule->target_host);
  pattern_clear(&rule->resource);
  pattern_clear(&rule->tool_name);
  pattern_clear(&rule->target_mcp_server);
  g_free(rule->provider);
  g_free(rule->execution_surface);
  g_free(rule->mcp_server);
  g_free(rule->method);
  pattern_clear(&rule->host);
  g_strfreev(rule->data_classes);
  g_strfreev(rule->exclude_surfaces);
  g_strfreev(rule->exclude_capabilities);
  command_matcher_free(rule->command);
  g_free(rule);
}

Policy *policy_ref(Policy *policy) {
  g_atomic_int_inc(&policy->references);
  return policy;
}

void policy_unref(Policy *policy) {
  if (!policy || !g_atomic_int_dec_and_test(&policy->references)) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(policy->rules); i++) {
    policy_index_free(policy->index[i]);
    g_ptr_array_unref(policy->rules[i]);
  }
  g_free(policy->id);
  g_free(policy->name);
  g_free(policy->profile);
  g_free(policy->file);
  g_free(policy->hash);
  budgets_free(policy->budgets);
  json_object_put(policy->source);
  g_free(policy);
}

const char *policy_hash(const Policy *policy) {
  return policy->hash;
}

const char *policy_id(const Policy *policy) {
  return policy->id;
}

const char *policy_profile(const Policy *policy) {
  return policy->profile;
}

PolicyMode policy_mode(const Policy *policy) {
  return policy->mode;
}

JsonObject *policy_json(const Policy *policy) {
  JsonObject *object = policy_copy_json(policy->source);
  json_add_text(object, "policy_id", policy->id);
  return object;
}
