/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-policy.c: any bytes as {"policy": ..., "request": ..., "recorded": ...}. A policy is refused with a reason, or it
 * decides every request, the same way each time, and for a reason that its rules bear out. */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "governance/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static PolicyRequest *make_request(JsonObject *object) {
  const char *capability = json_get_text(object, "capability");
  gint64 risk = json_get_int(object, "risk", RISK_MEDIUM);
  PolicyRequest *request = policy_request_new(capability ? capability : "process.exec",
                                              (Risk)CLAMP(risk, RISK_LOW, RISK_CRITICAL));
  request->has_target = json_get_bool(object, "target", TRUE);
  if (request->has_target) {
    request->target_path = g_strdup(json_get_text(object, "path"));
    request->target_host = g_strdup(json_get_text(object, "target_host"));
    request->target_resource = g_strdup(json_get_text(object, "resource"));
    request->target_tool_name = g_strdup(json_get_text(object, "tool_name"));
    request->target_mcp_server = g_strdup(json_get_text(object, "target_mcp_server"));
  }
  request->provider = g_strdup(json_get_text(object, "provider"));
  request->execution_surface = g_strdup(json_get_text(object, "execution_surface"));
  request->method = g_strdup(json_get_text(object, "method"));
  request->host = g_strdup(json_get_text(object, "host"));
  request->mcp_server = g_strdup(json_get_text(object, "mcp_server"));
  const char *classes = json_get_text(object, "data_classes");
  request->data_classes = classes ? g_strsplit(classes, ",", -1) : NULL;
  const char *line = json_get_text(object, "line");
  request->command = line ? command_read_script(line) : NULL;
  return request;
}

/* What is explained is what was decided: every rule that matched, and only those. */
static void check_verdicts(const Policy *policy, const PolicyRequest *request,
                           const PolicyDecision *decision) {
  g_autoptr(GPtrArray) verdicts = policy_explain(policy, request);
  guint next = 0;
  for (guint i = 0; i < verdicts->len; i++) {
    const PolicyVerdict *verdict = g_ptr_array_index(verdicts, i);
    g_assert_true(verdict->matched == !verdict->why_not);
    if (verdict->matched && verdict->effect == decision->effect && decision->matched_rule_ids[0]) {
      g_assert_cmpstr(decision->matched_rule_ids[next], ==, verdict->rule_id);
      next++;
    }
  }
  g_assert_null(decision->matched_rule_ids[next]);
}

static void check_decision(const Policy *policy, const PolicyRequest *request,
                           const PolicyDecision *decision) {
  g_assert_nonnull(decision);
  g_assert_nonnull(effect_name(decision->effect));
  g_assert_nonnull(decision->reason_code);
  g_assert_nonnull(decision->reason);
  g_assert_nonnull(decision->matched_rule_ids);
  g_assert_cmpstr(decision->request_id, ==, request->request_id);
  g_assert_cmpstr(decision->policy_hash, ==, policy_hash(policy));
  /* Only the mode decides without a rule, and only where none of any effect matches; but for a command
   * that cannot be read, which is kept from the allow rules. */
  gboolean matched = g_strv_length(decision->matched_rule_ids) > 0;
  gboolean opaque = strcmp(decision->reason_code, "command_opaque") == 0;
  g_assert_true(matched == policy_names(policy, request) || (opaque && !matched));
  g_assert_true(!opaque || decision->effect != EFFECT_ALLOW);
  check_verdicts(policy, request, decision);
  g_assert_true(matched == g_str_has_prefix(decision->reason_code, "matched_"));
  g_assert_true(matched || decision->effect != EFFECT_ALLOW ||
                policy_mode(policy) == MODE_PERMISSIVE);
  g_autoptr(JsonObject) json = policy_decision_json(decision);
  g_autofree char *text = json_canonical(json);
  g_assert_nonnull(text);
}

/* The same source has the same hash. What is recorded of a policy makes a policy that says the same; its
 * hash may be another, since the id that was made for it now counts as the author's, but only once. */
static void check_again(const Policy *policy, JsonObject *source, const PolicyRequest *request,
                        Effect effect) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Policy) same = policy_new(source, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(policy_hash(same), ==, policy_hash(policy));
  g_autoptr(JsonObject) recorded = policy_json(policy);
  g_autoptr(Policy) again = policy_new(recorded, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(policy_id(again), ==, policy_id(policy));
  g_assert_cmpint(policy_mode(again), ==, policy_mode(policy));
  g_autoptr(PolicyDecision) decision = policy_decide(again, request);
  g_assert_cmpint(decision->effect, ==, effect);
  g_autoptr(JsonObject) recorded_again = policy_json(again);
  g_autoptr(Policy) third = policy_new(recorded_again, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(policy_hash(third), ==, policy_hash(again));
}

/* A request comes back out of the record as it was, and anything else is refused with a reason. */
static void check_recorded(const PolicyRequest *request, JsonObject *hostile) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GError) refusal = NULL;
  g_autoptr(JsonObject) recorded = policy_request_json(request);
  g_autoptr(PolicyRequest) read = policy_request_from_json(recorded, &error);
  g_assert_true(!read == !*request->capability);
  if (read) {
    g_autoptr(JsonObject) again = policy_request_json(read);
    g_autofree char *one = json_text(recorded);
    g_autofree char *other = json_text(again);
    g_assert_cmpstr(one, ==, other);
  }
  g_autoptr(PolicyRequest) any = policy_request_from_json(hostile, &refusal);
  g_assert_true(!any == (refusal != NULL));
  g_assert_true(!refusal || g_utf8_validate(refusal->message, -1, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = json_parse("fuzz", (const char *)data, size, &error);
  if (error || !json_object_is_type(object, json_type_object)) {
    return 0;
  }
  g_autoptr(PolicyRequest) request = make_request(json_get(object, "request"));
  g_autoptr(JsonObject) told = policy_request_json(request);
  g_autofree char *text = json_text(told);
  g_assert_nonnull(text);
  check_recorded(request, json_get(object, "recorded"));
  JsonObject *source = json_get(object, "policy");
  g_autoptr(Policy) policy = policy_new(source, &error);
  if (!policy) {
    g_assert_nonnull(error);
    g_assert_true(error->domain == SANDHOST_ERROR);
    g_assert_true(g_utf8_validate(error->message, -1, NULL));
    return 0;
  }
  g_assert_no_error(error);
  g_assert_cmpuint(strlen(policy_hash(policy)), ==, 64);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  check_decision(policy, request, decision);
  check_again(policy, source, request, decision->effect);
  return 0;
}
