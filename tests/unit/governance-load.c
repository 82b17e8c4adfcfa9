/* SPDX-License-Identifier: Apache-2.0 */
/* governance-load.c: policies that are refused, with the words that refuse them (behaviour
 * 4.12). */
#include "governance-fixture.h"

#include "base/ids.h"

typedef struct {
  const char *text;
  const char *wanted;
} Refusal;

static void refused(const char *before, const char *after, const Refusal *cases, gsize count) {
  for (gsize i = 0; i < count; i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *whole = g_strconcat(before, cases[i].text, after, NULL);
    g_autoptr(JsonObject) source = fixture_json(whole);
    g_autoptr(Policy) policy = policy_new(source, &error);
    g_test_message("%s", whole);
    g_assert_null(policy);
    g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
    g_assert_cmpstr(error->message, ==, cases[i].wanted);
  }
}

/* ---- The policy ----------------------------------------------------------------------------- */

static void test_policy_keys(void) {
  static const Refusal CASES[] = {
      {"{'Mode': 'strict'}", "policy has unknown key(s) Mode"},
      {"{'rule': {}, 'allow': []}", "policy has unknown key(s) allow, rule"},
      {"{'mode': 'lax'}", "'lax' is not a valid PolicyMode"},
      {"{'mode': ''}", "'' is not a valid PolicyMode"},
      {"{'mode': 3}", "'3' is not a valid PolicyMode"},
      {"{'name': ''}", "name must be a non-empty string"},
      {"{'policy_id': 7}", "policy_id must be a non-empty string"},
      {"{'profile': []}", "profile must be a non-empty string"},
      {"{'metadata': 'x'}", "metadata must be an object"},
      {"{'provenance': []}", "provenance must be an object"},
      {"{'version': '2'}", "policy version must be '1', got '2'"},
      {"{'version': 1}", "policy version must be '1', got 1"},
      {"{'rules': []}", "rules must be an object with the lists deny, ask and allow"},
      {"{'rules': {'denied': []}}", "rules has unknown key(s) denied"},
      {"{'rules': {'deny': {}}}", "deny rules must be a list"},
      {"{'rules': {'ask': 'x'}}", "ask rules must be a list"},
      {"{'rules': {'allow': true}}", "allow rules must be a list"},
      {"[]", "Policy file must contain an object at the top level."},
      {"'x'", "Policy file must contain an object at the top level."},
  };
  refused("", "", CASES, G_N_ELEMENTS(CASES));
}

static void test_budgets(void) {
  static const Refusal CASES[] = {
      {"'budgets': {'tokens': 5}",
       "budgets has unknown keys: tokens. Allowed keys: agent, application, application_id, "
       "request, session"},
      {"'budgets': []", "budgets must be an object"},
      {"'budget': []", "budget must be an object"},
      {"'budget': {'max': 1}",
       "budget has unknown keys: max. Allowed keys: max_cost, max_requests"},
      {"'budget': {'max_requests': -1}", "budget.max_requests must be a whole number of 0 or more"},
      {"'budget': {'max_requests': 1.5}",
       "budget.max_requests must be a whole number of 0 or more"},
      {"'budget': {'max_cost': '1'}", "budget.max_cost must be a number of 0 or more"},
  };
  refused("{", "}", CASES, G_N_ELEMENTS(CASES));
  g_autoptr(Policy) policy = fixture_policy("{'budget': null, 'budgets': {}}");
  g_assert_nonnull(policy);
}

/* ---- Rules ---------------------------------------------------------------------------------- */

static void test_rule_keys(void) {
  static const Refusal CASES[] = {
      {"'x'", "rules.allow[0] must be an object"},
      {"null", "rules.allow[0] must be an object"},
      {"{'rule_id': 'a', 'capability': 'x'}, 1", "rules.allow[1] must be an object"},
      {"{'capability': 'x'}", "rules.allow[0].rule_id must be a non-empty string"},
      {"{'rule_id': '', 'capability': 'x'}", "rules.allow[0].rule_id must be a non-empty string"},
      {"{'rule_id': 5, 'capability': 'x'}", "rules.allow[0].rule_id must be a non-empty string"},
      {"{'rule_id': 'a'}", "rule a: capability must be a non-empty string"},
      {"{'rule_id': 'a', 'capability': ''}", "rule a: capability must be a non-empty string"},
      {"{'rule_id': 'a', 'capability': ['x']}", "rule a: capability must be a non-empty string"},
      {"{'rule_id': 'a', 'capability': 'x', 'condition': {}, 'Target': {}}",
       "rule a: has unknown key(s) Target, condition"},
      {"{'rule_id': 'a', 'capability': 'x', 'reason': 4}", "rule a: reason must be a string"},
      {"{'rule_id': 'a', 'capability': 'x', 'metadata': 4}", "rule a: metadata must be an object"},
      {"{'rule_id': 'a', 'capability': 'x', 'effect': 'deny'}",
       "Rule 'a' declares effect 'deny' but is stored in the allow bucket"},
      {"{'rule_id': 'a', 'capability': 'x', 'effect': ''}",
       "rule a: effect must be a non-empty string"},
      {"{'rule_id': 'a', 'capability': 'x'}, {'rule_id': 'a', 'capability': 'y'}",
       "Duplicate policy rule_id: a"},
  };
  refused("{'rules': {'allow': [", "]}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_rule_id_is_unique_across_lists(void) {
  static const Refusal CASES[] = {
      {"{'rules': {'allow': [{'rule_id': 'a', 'capability': 'x'}],"
       " 'deny': [{'rule_id': 'a', 'capability': 'y'}]}}",
       "Duplicate policy rule_id: a"},
  };
  refused("", "", CASES, G_N_ELEMENTS(CASES));
}

static void test_rule_parts(void) {
  static const Refusal CASES[] = {
      {"'target': []", "rule a: target must be an object"},
      {"'target': {'paths': 'x', 'Host': 'y'}", "rule a: target has unknown key(s) Host, paths"},
      {"'target': {'path': ''}", "rule a: target.path must be a non-empty string"},
      {"'target': {'host': ['x']}", "rule a: target.host must be a non-empty string"},
      {"'target': {'resource': 1}", "rule a: target.resource must be a non-empty string"},
      {"'target': {'tool_name': {}}", "rule a: target.tool_name must be a non-empty string"},
      {"'target': {'mcp_server': ''}", "rule a: target.mcp_server must be a non-empty string"},
      {"'conditions': 'x'", "rule a: conditions must be an object"},
      {"'conditions': {'risk': ['low']}", "rule a: conditions has unknown key(s) risk"},
      {"'conditions': {'provider': ''}", "rule a: conditions.provider must be a non-empty string"},
      {"'conditions': {'method': 1}", "rule a: conditions.method must be a non-empty string"},
      {"'conditions': {'host': []}", "rule a: conditions.host must be a non-empty string"},
      {"'conditions': {'mcp_server': 1}",
       "rule a: conditions.mcp_server must be a non-empty string"},
      {"'conditions': {'execution_surface': ['sandbox']}",
       "rule a: conditions.execution_surface must be a non-empty string"},
      {"'constraints': 1", "rule a: constraints must be an object"},
      {"'constraints': {'sandbox': true}", "rule a: constraints has unknown key(s) sandbox"},
      {"'constraints': {'sandbox_required': 'yes'}",
       "rule a: constraints.sandbox_required must be a boolean"},
      {"'constraints': {'strict_telemetry': 1}",
       "rule a: constraints.strict_telemetry must be a boolean"},
      {"'constraints': {'audit_required': []}",
       "rule a: constraints.audit_required must be a boolean"},
      {"'constraints': {'approval_expires_seconds': 1.5}",
       "rule a: constraints.approval_expires_seconds must be an integer"},
      {"'constraints': {'approval_expires_seconds': true}",
       "rule a: constraints.approval_expires_seconds must be an integer"},
      {"'constraints': {'approval_expires_seconds': 0}",
       "rule a: constraints.approval_expires_seconds must be positive"},
      {"'constraints': {'approval_expires_seconds': -3}",
       "rule a: constraints.approval_expires_seconds must be positive"},
  };
  refused("{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x', ", "}]}}", CASES,
          G_N_ELEMENTS(CASES));
}

static void test_condition_lists(void) {
  static const Refusal CASES[] = {
      {"'risk_level': []", "rule a: conditions.risk_level must not be empty"},
      {"'data_classes': []", "rule a: conditions.data_classes must not be empty"},
      {"'exclude_execution_surface': []",
       "rule a: conditions.exclude_execution_surface must not be empty"},
      {"'exclude_capability': []", "rule a: conditions.exclude_capability must not be empty"},
      {"'risk_level': 'high'", "rule a: conditions.risk_level must be a list of non-empty strings"},
      {"'data_classes': [1]",
       "rule a: conditions.data_classes must be a list of non-empty strings"},
      {"'exclude_capability': ['']",
       "rule a: conditions.exclude_capability must be a list of non-empty strings"},
      {"'exclude_execution_surface': {}",
       "rule a: conditions.exclude_execution_surface must be a list of non-empty strings"},
      {"'risk_level': ['low', 'severe']",
       "rule a: conditions.risk_level[] must be one of: critical, high, low, medium"},
      {"'risk_level': ['High']",
       "rule a: conditions.risk_level[] must be one of: critical, high, low, medium"},
      {"'execution_surface': 'sandbx'",
       "rule a: conditions.execution_surface: 'sandbx' is no execution surface. Surfaces: "
       "artifact, "
       "background, code, filesystem, host, mcp, memory, network, sandbox, secret, secret_broker, "
       "serve, subagent, telemetry, tool, workspace"},
      {"'exclude_execution_surface': ['sandbox', 'all']",
       "rule a: conditions.exclude_execution_surface: 'all' is no execution surface. Surfaces: "
       "artifact, background, code, filesystem, host, mcp, memory, network, sandbox, secret, "
       "secret_broker, serve, subagent, telemetry, tool, workspace"},
  };
  refused("{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x', 'conditions': {", "}}]}}", CASES,
          G_N_ELEMENTS(CASES));
}

static void test_every_surface_is_known(void) {
  static const char *const SURFACES[] = {"artifact", "background", "code",          "filesystem",
                                         "host",     "mcp",        "memory",        "network",
                                         "sandbox",  "secret",     "secret_broker", "serve",
                                         "subagent", "telemetry",  "tool",          "workspace"};
  for (gsize i = 0; i < G_N_ELEMENTS(SURFACES); i++) {
    g_autofree char *rule = g_strdup_printf(
        "{'rule_id': 'r', 'capability': '*', 'conditions': {'execution_surface': '%s'}}",
        SURFACES[i]);
    g_autoptr(Policy) policy = fixture_rules("strict", "allow", rule);
    g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
    request->execution_surface = g_strdup(SURFACES[i]);
    g_assert_true(fixture_matches(policy, request));
  }
}

static void test_command_matchers(void) {
  static const Refusal CASES[] = {
      {"'capability': 'process.*', 'command': {'program': 'rm'}",
       "rule a: a command matcher applies only to process.exec, not process.*"},
      {"'capability': 'workspace.files.read', 'command': {}",
       "rule a: a command matcher applies only to process.exec, not workspace.files.read"},
  };
  refused("{'rules': {'deny': [{'rule_id': 'a', ", "}]}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_null_is_as_good_as_missing(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'version': null, 'name': null, 'mode': null, 'policy_id': null, 'profile': null,"
      " 'provenance': null, 'metadata': null, 'rules': {'deny': null, 'allow': [{'rule_id': 'a',"
      " 'capability': 'x', 'effect': null, 'target': null, 'conditions': {'risk_level': null,"
      " 'host': null}, 'constraints': {'sandbox_required': null,"
      " 'approval_expires_seconds': null}, 'reason': null, 'metadata': null, 'command': null,"
      " 'examples': null}]}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  fixture_decides(policy, request, "allow matched_allow a");
}

static void test_stated_effect_of_the_right_list(void) {
  g_autoptr(Policy) policy =
      fixture_rules("strict", "ask", "{'rule_id': 'a', 'capability': 'x', 'effect': 'ask'}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  fixture_decides(policy, request, "ask matched_ask a");
}

/* Who gave the object may go on changing it. */
static void test_policy_is_a_copy(void) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) source = fixture_json("{'mode': 'strict', 'rules': {'deny': []}}");
  g_autoptr(Policy) policy = policy_new(source, &error);
  g_assert_no_error(error);
  json_add_text(source, "mode", "permissive");
  json_object_object_del(source, "rules");
  g_autoptr(JsonObject) shown = policy_json(policy);
  g_assert_cmpstr(json_get_text(shown, "mode"), ==, "strict");
  g_assert_nonnull(json_get(shown, "rules"));
  json_add_text(shown, "mode", "permissive");
  g_autoptr(JsonObject) again = policy_json(policy);
  g_assert_cmpstr(json_get_text(again, "mode"), ==, "strict");
}

static void test_json_is_whole(void) {
  g_autoptr(Policy) policy = fixture_policy("{'metadata': {'owner': 'me'}}");
  g_autoptr(JsonObject) shown = policy_json(policy);
  g_assert_cmpstr(json_get_text(shown, "version"), ==, "1");
  g_assert_cmpstr(json_get_text(shown, "name"), ==, "default-policy");
  g_assert_cmpstr(json_get_text(shown, "mode"), ==, "interactive");
  g_assert_cmpstr(json_get_text(shown, "policy_id"), ==, policy_id(policy));
  g_assert_cmpstr(json_get_text(json_get(shown, "metadata"), "owner"), ==, "me");
  g_assert_true(id_is(policy_id(policy), "policy"));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/load/" name, function)
  ADD("policy", test_policy_keys);
  ADD("budgets", test_budgets);
  ADD("rule", test_rule_keys);
  ADD("rule/unique", test_rule_id_is_unique_across_lists);
  ADD("rule/parts", test_rule_parts);
  ADD("rule/lists", test_condition_lists);
  ADD("rule/surfaces", test_every_surface_is_known);
  ADD("rule/command", test_command_matchers);
  ADD("rule/effect", test_stated_effect_of_the_right_list);
  ADD("null", test_null_is_as_good_as_missing);
  ADD("copy", test_policy_is_a_copy);
  ADD("whole", test_json_is_whole);
#undef ADD
  return g_test_run();
}
