/* SPDX-License-Identifier: Apache-2.0 */
/* governance-decide.c: which rule decides a request, and with what words (behaviour 4.2 to 4.6). */
#include "governance-fixture.h"

#include "base/ids.h"

typedef struct {
  const char *pattern;
  const char *value; /* NULL: null */
  gboolean matches;
} Case;

/* Whether a rule with this target or these conditions matches. */
static gboolean rule_matches(const char *list, const char *part, const PolicyRequest *request) {
  g_autofree char *rule = g_strdup_printf("{'rule_id': 'r', 'capability': '*', %s}", part);
  g_autoptr(Policy) policy = fixture_rules("interactive", list, rule);
  return fixture_matches(policy, request);
}

/* ---- The order ------------------------------------------------------------------------------ */

static void test_deny_before_ask_before_allow(void) {
  g_autoptr(Policy) policy =
      fixture_policy("{'rules': {'allow': [{'rule_id': 'a', 'capability': 'x.*'}],"
                     " 'ask': [{'rule_id': 'b', 'capability': 'x.y*'}],"
                     " 'deny': [{'rule_id': 'c', 'capability': 'x.yz'}]}}");
  g_autoptr(PolicyRequest) allowed = policy_request_new("x.a", RISK_LOW);
  g_autoptr(PolicyRequest) asked = policy_request_new("x.y", RISK_LOW);
  g_autoptr(PolicyRequest) denied = policy_request_new("x.yz", RISK_LOW);
  fixture_decides(policy, allowed, "allow matched_allow a");
  fixture_decides(policy, asked, "ask matched_ask b");
  fixture_decides(policy, denied, "deny matched_deny c");
}

static void test_every_rule_of_the_winning_list_in_file_order(void) {
  g_autoptr(Policy) policy =
      fixture_policy("{'rules': {'allow': [{'rule_id': 'z', 'capability': 'x'},"
                     " {'rule_id': 'no', 'capability': 'y'}, {'rule_id': 'a', 'capability': '*'},"
                     " {'rule_id': 'm', 'capability': '?'}]}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  fixture_decides(policy, request, "allow matched_allow z,a,m");
}

static void test_reason_is_the_first_that_says_something(void) {
  g_autoptr(Policy) policy =
      fixture_policy("{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x'},"
                     " {'rule_id': 'b', 'capability': 'x', 'reason': ''},"
                     " {'rule_id': 'c', 'capability': 'x', 'reason': 'Not here.'},"
                     " {'rule_id': 'd', 'capability': 'x', 'reason': 'Nor there.'}]}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_assert_cmpstr(decision->reason, ==, "Not here.");
}

static void test_reason_without_one(void) {
  static const char *const LISTS[][2] = {{"deny", "Matched deny policy rule."},
                                         {"ask", "Matched ask policy rule."},
                                         {"allow", "Matched allow policy rule."}};
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  for (gsize i = 0; i < G_N_ELEMENTS(LISTS); i++) {
    g_autoptr(Policy) policy =
        fixture_rules("strict", LISTS[i][0], "{'rule_id': 'r', 'capability': 'x'}");
    g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
    g_assert_cmpstr(decision->reason, ==, LISTS[i][1]);
  }
}

static void test_mode_decides_what_no_rule_names(void) {
  static const char *const MODES[][3] = {
      {"permissive", "allow unknown_capability ",
       "Allowed by the permissive mode: no rule matches this request."},
      {"interactive", "ask unknown_capability ", "Unknown capability requires approval."},
      {"strict", "deny unknown_capability ",
       "Denied by strict policy: no rule matches this some.thing request."}};
  g_autoptr(PolicyRequest) request = policy_request_new("some.thing", RISK_LOW);
  for (gsize i = 0; i < G_N_ELEMENTS(MODES); i++) {
    g_autoptr(Policy) policy =
        fixture_rules(MODES[i][0], "allow", "{'rule_id': 'r', 'capability': 'other'}");
    g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
    g_autofree char *line = fixture_line(decision);
    g_assert_cmpstr(line, ==, MODES[i][1]);
    g_assert_cmpstr(decision->reason, ==, MODES[i][2]);
    g_assert_false(policy_names(policy, request));
  }
}

static void test_no_mode_is_interactive(void) {
  g_autoptr(Policy) policy = fixture_policy("{}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_assert_cmpint(policy_mode(policy), ==, MODE_INTERACTIVE);
  fixture_decides(policy, request, "ask unknown_capability ");
}

static void test_undecidable_is_denied_in_every_mode(void) {
  g_autoptr(Policy) policy =
      fixture_rules("permissive", "allow", "{'rule_id': 'r', 'capability': '*'}");
  g_autoptr(PolicyRequest) nameless = policy_request_new("", RISK_LOW);
  g_autoptr(PolicyRequest) missing = policy_request_new(NULL, RISK_LOW);
  g_autoptr(PolicyRequest) risky = policy_request_new("x", (Risk)9);
  fixture_decides(policy, nameless, "deny policy_error ");
  fixture_decides(policy, missing, "deny policy_error ");
  fixture_decides(policy, risky, "deny policy_error ");
  g_assert_false(policy_names(policy, nameless));
}

static void test_decision_says_what_it_is_about(void) {
  g_autoptr(Policy) policy = fixture_policy("{'policy_id': 'house'}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_autoptr(PolicyDecision) one = policy_decide(policy, request);
  g_autoptr(PolicyDecision) two = policy_decide(policy, request);
  g_assert_true(id_is(request->request_id, "authreq"));
  g_assert_true(id_is(one->decision_id, "decision"));
  g_assert_cmpstr(one->decision_id, !=, two->decision_id);
  g_assert_cmpstr(one->request_id, ==, request->request_id);
  g_assert_cmpstr(one->policy_id, ==, "house");
  g_assert_cmpstr(one->policy_hash, ==, policy_hash(policy));
}

/* The policy of the first source document and the three decisions that it prints. */
static void test_strict_with_sandbox(void) {
  g_autoptr(Policy) policy =
      fixture_policy("{'name': 'strict-with-sandbox', 'mode': 'strict', 'rules': {'allow': ["
                     " {'rule_id': 'use_execute', 'capability': 'sandbox.execute'},"
                     " {'rule_id': 'sandbox_setup', 'capability': 'sandbox.*'},"
                     " {'rule_id': 'commands_in_the_sandbox', 'capability': 'process.exec',"
                     "  'conditions': {'execution_surface': 'sandbox'}}]}}");
  g_autoptr(PolicyRequest) execute = policy_request_new("sandbox.execute", RISK_LOW);
  g_autoptr(PolicyRequest) command = policy_request_new("process.exec", RISK_HIGH);
  g_autoptr(PolicyRequest) sync = policy_request_new("sandbox.workspace.sync", RISK_LOW);
  g_autoptr(PolicyRequest) file = policy_request_new("workspace.files.read", RISK_LOW);
  command->execution_surface = g_strdup("sandbox");
  fixture_decides(policy, execute, "allow matched_allow use_execute,sandbox_setup");
  fixture_decides(policy, command, "allow matched_allow commands_in_the_sandbox");
  fixture_decides(policy, sync, "allow matched_allow sandbox_setup");
  fixture_decides(policy, file, "deny unknown_capability ");
}

/* ---- Capability ----------------------------------------------------------------------------- */

static void test_capability_is_a_glob(void) {
  static const Case CASES[] = {
      {"process.exec", "process.exec", TRUE},
      {"process.exec", "process.execute", FALSE},
      {"process.exec", "process.exe", FALSE},
      {"process.exec", "Process.exec", FALSE},
      {"process.*", "process.exec", TRUE},
      {"process.*", "process.", TRUE},
      {"process.*", "process", FALSE},
      {"*.exec", "process.exec", TRUE},
      {"*", "anything at all", TRUE},
      {"process.exe?", "process.exec", TRUE},
      {"process.ex[ae]c", "process.exec", TRUE},
      {"process.ex[!ae]c", "process.exec", FALSE},
      {"a[*]b", "a*b", TRUE},
      {"a[*]b", "axb", FALSE},
      {"a[b", "a[b", TRUE},
      {"process.exec*", "process.exec", TRUE},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *rule =
        g_strdup_printf("{'rule_id': 'r', 'capability': '%s'}", CASES[i].pattern);
    g_autoptr(Policy) policy = fixture_rules("strict", "allow", rule);
    g_autoptr(PolicyRequest) request = policy_request_new(CASES[i].value, RISK_LOW);
    g_test_message("%s %s", CASES[i].pattern, CASES[i].value);
    g_assert_cmpint(fixture_matches(policy, request), ==, CASES[i].matches);
  }
}

/* ---- Target --------------------------------------------------------------------------------- */

static void test_target_globs(void) {
  static const Case CASES[] = {
      {"out/*", "out/a/b.txt", TRUE},
      {"out/?.txt", "out/a.txt", TRUE},
      {"out?a", "out/a", TRUE},
      {"out/*", "in/a", FALSE},
      {"OUT/*", "out/a", FALSE},
      {"*", NULL, TRUE},
      {"?*", NULL, FALSE},
      {"**", ".hidden", TRUE},
  };
  static const char *const KEYS[] = {"path", "resource", "tool_name"};
  for (gsize key = 0; key < G_N_ELEMENTS(KEYS); key++) {
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
      g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
      char **fields[] = {&request->target_path, &request->target_resource,
                         &request->target_tool_name};
      g_autofree char *part =
          g_strdup_printf("'target': {'%s': '%s'}", KEYS[key], CASES[i].pattern);
      request->has_target = TRUE;
      *fields[key] = g_strdup(CASES[i].value);
      g_test_message("%s %s", part, CASES[i].value ? CASES[i].value : "null");
      g_assert_cmpint(rule_matches("deny", part, request), ==, CASES[i].matches);
    }
  }
}

static void test_without_a_target_no_target_rule_matches(void) {
  static const char *const PARTS[] = {"'target': {'path': '*'}", "'target': {'resource': '*'}",
                                      "'target': {'tool_name': '*'}"};
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    g_assert_false(rule_matches("allow", PARTS[i], request));
  }
  g_assert_true(rule_matches("allow", "'target': {}", request));
}

static void test_every_part_of_a_target_must_match(void) {
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  request->has_target = TRUE;
  request->target_path = g_strdup("a");
  request->target_resource = g_strdup("b");
  g_assert_true(rule_matches("ask", "'target': {'path': 'a', 'resource': 'b'}", request));
  g_assert_false(rule_matches("ask", "'target': {'path': 'a', 'resource': 'c'}", request));
}

static void test_host_is_the_requests_before_the_targets(void) {
  static const char *const PARTS[] = {"'target': {'host': '%s'}", "'conditions': {'host': '%s'}"};
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    g_autoptr(GString) exact = g_string_new(PARTS[i]);
    g_autoptr(GString) empty = g_string_new(PARTS[i]);
    g_autoptr(GString) other = g_string_new(PARTS[i]);
    g_string_replace(exact, "%s", "*.example.org", 1);
    g_string_replace(empty, "%s", "*", 1);
    g_string_replace(other, "%s", "?*", 1);

    g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
    g_assert_true(rule_matches("deny", empty->str, request)); /* none is the empty string */
    g_assert_false(rule_matches("deny", other->str, request));
    request->has_target = TRUE;
    request->target_host = g_strdup("api.example.org");
    g_assert_true(rule_matches("deny", exact->str, request));
    request->host = g_strdup("api.example.com");
    g_assert_false(rule_matches("deny", exact->str, request));
  }
}

static void test_target_server_is_the_requests_before_the_targets(void) {
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_assert_true(rule_matches("deny", "'target': {'mcp_server': '*'}", request));
  g_assert_false(rule_matches("deny", "'target': {'mcp_server': 'git*'}", request));
  request->has_target = TRUE;
  request->target_mcp_server = g_strdup("github");
  g_assert_true(rule_matches("deny", "'target': {'mcp_server': 'git*'}", request));
  request->mcp_server = g_strdup("files");
  g_assert_false(rule_matches("deny", "'target': {'mcp_server': 'git*'}", request));
}

/* ---- Conditions ----------------------------------------------------------------------------- */

static void test_risk_level_is_one_of_the_list(void) {
  for (Risk risk = RISK_LOW; risk <= RISK_CRITICAL; risk++) {
    g_autoptr(PolicyRequest) request = policy_request_new("x", risk);
    gboolean wanted = risk == RISK_LOW || risk == RISK_CRITICAL;
    g_assert_cmpint(
        rule_matches("deny", "'conditions': {'risk_level': ['critical', 'low']}", request), ==,
        wanted);
  }
}

static void test_exact_conditions(void) {
  static const char *const KEYS[] = {"provider", "execution_surface", "mcp_server"};
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
    char **fields[] = {&request->provider, &request->execution_surface, &request->mcp_server};
    g_autofree char *part = g_strdup_printf("'conditions': {'%s': 'host'}", KEYS[i]);
    g_assert_false(rule_matches("allow", part, request));
    *fields[i] = g_strdup("host");
    g_assert_true(rule_matches("allow", part, request));
    g_free(*fields[i]);
    *fields[i] = g_strdup("Host");
    g_assert_false(rule_matches("allow", part, request));
  }
}

static void test_exact_conditions_are_no_globs(void) {
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  request->provider = g_strdup("docker");
  g_assert_false(rule_matches("allow", "'conditions': {'provider': '*'}", request));
}

static void test_method_ignores_case(void) {
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_assert_false(rule_matches("deny", "'conditions': {'method': 'post'}", request));
  request->method = g_strdup("POST");
  g_assert_true(rule_matches("deny", "'conditions': {'method': 'post'}", request));
  g_assert_false(rule_matches("deny", "'conditions': {'method': 'get'}", request));
}

static void test_excluded_surfaces(void) {
  static const char PART[] = "'conditions': {'exclude_execution_surface': ['sandbox', 'mcp']}";
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_assert_true(rule_matches("deny", PART, request));
  request->execution_surface = g_strdup("host");
  g_assert_true(rule_matches("deny", PART, request));
  g_free(request->execution_surface);
  request->execution_surface = g_strdup("mcp");
  g_assert_false(rule_matches("deny", PART, request));
}

static void test_excluded_capabilities_are_globs(void) {
  static const char PART[] = "'conditions': {'exclude_capability': ['skill.*', 'y']}";
  g_autoptr(PolicyRequest) other = policy_request_new("x", RISK_LOW);
  g_autoptr(PolicyRequest) exact = policy_request_new("y", RISK_LOW);
  g_autoptr(PolicyRequest) globbed = policy_request_new("skill.script.run", RISK_LOW);
  g_assert_true(rule_matches("ask", PART, other));
  g_assert_false(rule_matches("ask", PART, exact));
  g_assert_false(rule_matches("ask", PART, globbed));
}

static void test_data_classes(void) {
  static const struct {
    const char *request; /* separated by a space; NULL: none */
    gboolean deny;       /* also ask */
    gboolean allow;
  } CASES[] = {
      {NULL, FALSE, TRUE},
      {"credential", TRUE, TRUE},
      {"credential personal", TRUE, TRUE},
      {"credential other", TRUE, FALSE},
      {"other", FALSE, FALSE},
      {"Credential", FALSE, FALSE},
  };
  static const char PART[] = "'conditions': {'data_classes': ['credential', 'personal']}";
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
    request->data_classes = CASES[i].request ? g_strsplit(CASES[i].request, " ", -1) : NULL;
    g_test_message("%s", CASES[i].request ? CASES[i].request : "none");
    g_assert_cmpint(rule_matches("deny", PART, request), ==, CASES[i].deny);
    g_assert_cmpint(rule_matches("ask", PART, request), ==, CASES[i].deny);
    g_assert_cmpint(rule_matches("allow", PART, request), ==, CASES[i].allow);
  }
}

static void test_every_condition_must_match(void) {
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_HIGH);
  request->provider = g_strdup("docker");
  g_assert_true(rule_matches("deny", "'conditions': {'risk_level': ['high'], 'provider': 'docker'}",
                             request));
  g_assert_false(
      rule_matches("deny", "'conditions': {'risk_level': ['low'], 'provider': 'docker'}", request));
  g_assert_false(
      rule_matches("deny", "'conditions': {'risk_level': ['high'], 'provider': 'e2b'}", request));
}

/* ---- Constraints ---------------------------------------------------------------------------- */

static void test_constraints_merge(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'rules': {'ask': ["
      "{'rule_id': 'a', 'capability': 'x', 'constraints': {'approval_expires_seconds': 90}},"
      "{'rule_id': 'b', 'capability': 'x', 'constraints': {'approval_expires_seconds': 30,"
      " 'sandbox_required': true, 'strict_telemetry': false}},"
      "{'rule_id': 'c', 'capability': 'x', 'constraints': {'approval_expires_seconds': 60,"
      " 'sandbox_required': false}},"
      "{'rule_id': 'd', 'capability': 'y', 'constraints': {'approval_expires_seconds': 1,"
      " 'strict_telemetry': true}}]}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_assert_cmpint(decision->approval_expires_seconds, ==, 30);
  g_assert_true(decision->sandbox_required);
  g_assert_false(decision->strict_telemetry);
}

static void test_constraints_of_another_list_do_not_count(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'rules': {'ask': [{'rule_id': 'a', 'capability': 'x'}], 'allow': [{'rule_id': 'b',"
      " 'capability': 'x', 'constraints': {'sandbox_required': true}}]}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_assert_false(decision->sandbox_required);
  g_assert_cmpint(decision->approval_expires_seconds, ==, 0);
}

static void test_audit_is_strict_telemetry(void) {
  g_autoptr(Policy) policy =
      fixture_rules("strict", "allow",
                    "{'rule_id': 'a', 'capability': 'x', 'constraints': {'audit_required': true}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_assert_true(decision->strict_telemetry);
}

/* ---- As recorded ---------------------------------------------------------------------------- */

static void test_request_as_recorded(void) {
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_CRITICAL);
  g_free(request->request_id);
  request->request_id = g_strdup("authreq_1");
  g_autoptr(JsonObject) bare = policy_request_json(request);
  g_autofree char *bare_text = json_text(bare);
  g_assert_cmpstr(bare_text, ==,
                  "{\"request_id\":\"authreq_1\",\"capability\":\"x\",\"actor\":\"agent\","
                  "\"target\":null,\"provider\":null,\"execution_surface\":null,"
                  "\"risk_level\":\"critical\",\"data_classes\":[],\"method\":null,\"host\":null,"
                  "\"mcp_server\":null,\"metadata\":null}");

  request->has_target = TRUE;
  request->target_path = g_strdup("a/b");
  request->data_classes = g_strsplit("credential", " ", -1);
  request->metadata = fixture_json("{'mode': 'allow'}");
  g_autoptr(JsonObject) full = policy_request_json(request);
  g_autofree char *target = json_text(json_get(full, "target"));
  g_autofree char *classes = json_text(json_get(full, "data_classes"));
  g_autofree char *metadata = json_text(json_get(full, "metadata"));
  g_assert_cmpstr(target, ==,
                  "{\"path\":\"a/b\",\"host\":null,\"resource\":null,\"tool_name\":null,"
                  "\"mcp_server\":null}");
  g_assert_cmpstr(classes, ==, "[\"credential\"]");
  g_assert_cmpstr(metadata, ==, "{\"mode\":\"allow\"}");
}

static void test_decision_as_recorded(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'policy_id': 'p', 'rules': {'ask': [{'rule_id': 'a', 'capability': 'x', 'constraints':"
      " {'approval_expires_seconds': 5, 'sandbox_required': true, 'strict_telemetry': true}}]}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_autoptr(JsonObject) object = policy_decision_json(decision);
  g_assert_cmpstr(json_get_text(object, "decision_id"), ==, decision->decision_id);
  g_assert_cmpstr(json_get_text(object, "request_id"), ==, request->request_id);
  g_assert_cmpstr(json_get_text(object, "policy_id"), ==, "p");
  g_assert_cmpstr(json_get_text(object, "policy_hash"), ==, policy_hash(policy));
  g_assert_cmpstr(json_get_text(object, "effect"), ==, "ask");
  g_assert_cmpstr(json_get_text(object, "reason_code"), ==, "matched_ask");
  g_assert_cmpstr(json_get_text(object, "reason"), ==, "Matched ask policy rule.");
  g_assert_true(json_object_object_get_ex(object, "approval_id", NULL));
  g_autofree char *ids = json_text(json_get(object, "matched_rule_ids"));
  g_autofree char *constraints = json_text(json_get(object, "constraints"));
  g_assert_cmpstr(ids, ==, "[\"a\"]");
  g_assert_cmpstr(constraints, ==,
                  "{\"sandbox_required\":true,\"strict_telemetry\":true,"
                  "\"approval_expires_seconds\":5}");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/decide/" name, function)
  ADD("deny-ask-allow", test_deny_before_ask_before_allow);
  ADD("every-rule-in-file-order", test_every_rule_of_the_winning_list_in_file_order);
  ADD("reason/first", test_reason_is_the_first_that_says_something);
  ADD("reason/none", test_reason_without_one);
  ADD("mode", test_mode_decides_what_no_rule_names);
  ADD("mode/default", test_no_mode_is_interactive);
  ADD("undecidable", test_undecidable_is_denied_in_every_mode);
  ADD("identity", test_decision_says_what_it_is_about);
  ADD("strict-with-sandbox", test_strict_with_sandbox);
  ADD("capability", test_capability_is_a_glob);
  ADD("target/globs", test_target_globs);
  ADD("target/none", test_without_a_target_no_target_rule_matches);
  ADD("target/every-part", test_every_part_of_a_target_must_match);
  ADD("target/host", test_host_is_the_requests_before_the_targets);
  ADD("target/mcp-server", test_target_server_is_the_requests_before_the_targets);
  ADD("conditions/risk", test_risk_level_is_one_of_the_list);
  ADD("conditions/exact", test_exact_conditions);
  ADD("conditions/exact-no-glob", test_exact_conditions_are_no_globs);
  ADD("conditions/method", test_method_ignores_case);
  ADD("conditions/exclude-surface", test_excluded_surfaces);
  ADD("conditions/exclude-capability", test_excluded_capabilities_are_globs);
  ADD("conditions/data-classes", test_data_classes);
  ADD("conditions/every-one", test_every_condition_must_match);
  ADD("constraints/merge", test_constraints_merge);
  ADD("constraints/other-list", test_constraints_of_another_list_do_not_count);
  ADD("constraints/audit", test_audit_is_strict_telemetry);
  ADD("json/request", test_request_as_recorded);
  ADD("json/decision", test_decision_as_recorded);
#undef ADD
  return g_test_run();
}
