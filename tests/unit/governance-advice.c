/* SPDX-License-Identifier: Apache-2.0 */
/* policy-advice.c: rules that apply to nothing, and rules about commands that other programs go round. */
#include "governance-fixture.h"
#include "governance/capabilities.h"

/* "code: message" of each, one a line. */
static void check(const char *text, const char *wanted) {
  g_autoptr(Policy) policy = fixture_policy(text);
  g_autoptr(JsonObject) advice = policy_advice(policy);
  g_autoptr(GString) lines = g_string_new(NULL);
  for (gsize i = 0; i < json_object_array_length(advice); i++) {
    JsonObject *one = json_object_array_get_idx(advice, i);
    g_string_append_printf(lines, "%s: %s\n", json_get_text(one, "code"),
                           json_get_text(one, "message"));
  }
  g_assert_cmpstr(lines->str, ==, wanted);
}

static void test_names(void) {
  static const char *const KNOWN[] = {"process.exec",
                                      "*",
                                      "sandbox.*",
                                      "?rocess.exec",
                                      "[pq]rocess.exec",
                                      "memory.store",
                                      "telemetry.a.b",
                                      "memor*",
                                      "m*",
                                      "mem[o]ry.x",
                                      "background.x",
                                      "workspace.*.read",
                                      "skill.*",
                                      "code.run"};
  static const char *const UNKNOWN[] = {"proces.exec", "Process.Exec", " process.exec",
                                        "memory",      "memories.*",   "process.exec.*",
                                        "x*"};
  for (gsize i = 0; i < G_N_ELEMENTS(KNOWN); i++) {
    g_test_message("%s", KNOWN[i]);
    g_assert_true(capability_is_known(KNOWN[i], NULL));
  }
  for (gsize i = 0; i < G_N_ELEMENTS(UNKNOWN); i++) {
    g_test_message("%s", UNKNOWN[i]);
    g_assert_false(capability_is_known(UNKNOWN[i], NULL));
  }
  g_assert_cmpstr(capability_near(" process.exec"), ==, "process.exec");
  g_assert_null(capability_near("qqq"));
}

static void test_profiles(void) {
  static const char *const PROFILES[] = {"permissive-dev", "interactive-dev", "strict-production"};
  for (gsize i = 0; i < G_N_ELEMENTS(PROFILES); i++) {
    g_autoptr(Policy) policy = policy_new_profile(PROFILES[i]);
    g_autoptr(JsonObject) advice = policy_advice(policy);
    g_assert_cmpuint(json_object_array_length(advice), ==, 0);
  }
}

static void test_unknown(void) {
  check("{'rules': {'deny': [{'rule_id': 'd', 'capability': 'proces.*'}],"
        " 'allow': [{'rule_id': 'a', 'capability': '*', 'conditions':"
        "  {'exclude_capability': ['skil.script.run', 'memory.*']}}]}}",
        "unknown_capability: rule d: capability 'proces.*' matches no known capability; did you "
        "mean 'process.exec'?\n"
        "unknown_capability: rule a: conditions.exclude_capability 'skil.script.run' matches no "
        "known capability; did you mean 'skill.script.run'?\n");
}

static void test_target(void) {
  check("{'rules': {'deny': ["
        " {'rule_id': 'path', 'capability': 'process.exec', 'target': {'path': '/etc/*'}},"
        " {'rule_id': 'empty', 'capability': 'process.exec', 'target': {'path': '*'}},"
        " {'rule_id': 'set', 'capability': 'sandbox.environment.set', 'target': {'resource': 'x'}},"
        " {'rule_id': 'some', 'capability': '*', 'target': {'path': '/etc/*'}},"
        " {'rule_id': 'own', 'capability': 'memory.*', 'target': {'path': '/etc/*'}}]}}",
        "target_never_matches: rule path: target.path never matches process.exec, whose target has "
        "resource\n"
        "target_never_matches: rule set: target.resource never matches sandbox.environment.set, "
        "whose target has no part\n");
}

#define NO_RM                                                                                      \
  "'deny': [{'rule_id': 'd', 'capability': 'process.exec', 'command': {'program': 'rm'}}]"

/* Only what the policy really allows goes round its rules. */
static void test_wrappers(void) {
  check("{'mode': 'interactive', 'rules': {" NO_RM "}}", "");
  check("{'mode': 'strict', 'rules': {" NO_RM ", 'allow': [{'rule_id': 'a', 'capability': "
        "'process.exec', 'command': {'program': ['ls', 'env', 'find']}}]}}",
        "command_wrappers: rules about commands look at the program that a line names, and this "
        "policy allows programs that run others (env, find): they go round its deny and ask rules; "
        "allow only the commands that are meant, or deny or ask about these too\n");
  check("{'mode': 'permissive', 'rules': {'deny': [{'rule_id': 'd', 'capability': 'process.exec'}]"
        "}}",
        "");
  check("{'mode': 'permissive', 'rules': {'allow': [{'rule_id': 'a', 'capability': 'process.exec', "
        "'command': {'program': 'ls'}}]}}",
        "");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/advice/" name, function)
  ADD("names", test_names);
  ADD("profiles", test_profiles);
  ADD("unknown", test_unknown);
  ADD("target", test_target);
  ADD("wrappers", test_wrappers);
#undef ADD
  return g_test_run();
}
