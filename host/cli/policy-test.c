/* SPDX-License-Identifier: Apache-2.0 */
/* policy-test.c: sandhost policy test, whether a policy decides as its author says: the examples of its rules,
 * and cases out of a file beside it. */
#include <string.h>

#include "base/error.h"
#include "base/repr.h"
#include "cli/policy.h"
#include "cli/recorded.h"
#include "config/check.h"
#include "governance/gate.h"
#include "governance/requests.h"

/* What a case has beside the words of request_told. */
static const char *const OURS[] = {"expect", "name", "reason_code", "rule", NULL};

typedef struct {
  char *name; /* how it is told: "case 2: command 'ls'" */
  PolicyRequest *request;
  char *expect;      /* an effect */
  char *rule;        /* NULL: any */
  char *reason_code; /* NULL: any */
} Case;

static void case_free(Case *one) {
  g_free(one->name);
  policy_request_free(one->request);
  g_free(one->expect);
  g_free(one->rule);
  g_free(one->reason_code);
  g_free(one);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Case, case_free)

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static JsonObject *without_ours(JsonObject *object) {
  JsonObject *rest = json_object_new_object();
  json_object_object_foreach(object, key, value) {
    if (!g_strv_contains(OURS, key)) {
      json_add_take(rest, key, json_object_get(value));
    }
  }
  return rest;
}

static char *name_of(gsize number, const char *given, JsonObject *told,
                     const PolicyRequest *request) {
  const char *command = json_get_text(told, "command");
  g_autofree char *text = command ? repr_text(command) : NULL;
  g_autofree char *asked = policy_asked(request);
  return g_strdup_printf("case %zu%s%s%s: %s%s", number, given ? " (" : "", given ? given : "",
                         given ? ")" : "", command ? "command " : "", command ? text : asked);
}

static Case *case_new(JsonObject *object, gsize at, GError **error) {
  static const char *const EFFECTS[] = {"allow", "ask", "deny", NULL};
  g_autofree char *where = g_strdup_printf("cases[%zu]", at);
  g_autofree char *given = NULL;
  g_autoptr(Case) one = g_new0(Case, 1);
  if (!json_object_is_type(object, json_type_object)) {
    check_refuse(error, "%s must be an object", where);
    return NULL;
  }
  g_autoptr(JsonObject) told = without_ours(object);
  if (!check_full_text(object, where, "name", &given, error) ||
      !check_choice(object, where, "expect", EFFECTS, &one->expect, error) ||
      !check_full_text(object, where, "rule", &one->rule, error) ||
      !check_full_text(object, where, "reason_code", &one->reason_code, error)) {
    return NULL;
  }
  if (!one->expect) {
    check_refuse(error, "%s.expect must be one of: allow, ask, deny", where);
    return NULL;
  }
  one->request = request_told(told, where, error);
  if (!one->request) {
    return NULL;
  }
  one->name = name_of(at + 1, given, told, one->request);
  return g_steal_pointer(&one);
}

/* All of them, or none: a case with a misspelt word would prove nothing. */
static GPtrArray *read_cases(const char *path, GError **error) {
  g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func((GDestroyNotify)case_free);
  if (!path) {
    return g_steal_pointer(&cases);
  }
  g_autoptr(GError) failure = NULL;
  g_autoptr(JsonObject) list = json_parse_file(path, &failure);
  if (failure) {
    check_refuse(error, "%s", failure->message);
    return NULL;
  }
  if (!json_object_is_type(list, json_type_array)) {
    check_refuse(error, "%s must hold a list of cases", path);
    return NULL;
  }
  for (gsize i = 0; i < json_object_array_length(list); i++) {
    Case *one = case_new(json_object_array_get_idx(list, i), i, &failure);
    if (!one) {
      check_refuse(error, "%s: %s", path, failure->message);
      return NULL;
    }
    g_ptr_array_add(cases, one);
  }
  return g_steal_pointer(&cases);
}

/* ---- Trying ------------------------------------------------------------------------------------------------------ */

typedef struct {
  gboolean json;
  gsize passed;
  gsize failed;
  JsonObject *results;
} Tally;

static void tell_text(Tally *tally, gboolean passed, const char *text) {
  tally->passed += passed ? 1 : 0;
  tally->failed += passed ? 0 : 1;
  if (!tally->json) {
    policy_say("%s: %s", passed ? "passed" : "FAILED", text);
  }
}

static void try_example(Tally *tally, const CommandExample *example) {
  g_autofree char *fault = command_example_fault(example);
  g_autofree char *shown = repr_text(example->text);
  g_autofree char *good = g_strdup_printf("rule %s %s %s", example->rule_id,
                                          example->wanted ? "matches" : "does not match", shown);
  JsonObject *result = json_object_new_object();
  json_add_text(result, "kind", "example");
  json_add_bool(result, "passed", example->passed);
  json_add_text(result, "rule_id", example->rule_id);
  json_add_text(result, "text", example->text);
  json_add_bool(result, "expected_match", example->wanted);
  json_object_array_add(tally->results, result);
  tell_text(tally, example->passed, example->passed ? good : fault);
}

static gboolean is_as_expected(const Case *one, const PolicyDecision *decision) {
  return strcmp(one->expect, effect_name(decision->effect)) == 0 &&
         (!one->reason_code || strcmp(one->reason_code, decision->reason_code) == 0) &&
         (!one->rule ||
          g_strv_contains((const char *const *)decision->matched_rule_ids, one->rule));
}

static char *expected_of(const Case *one) {
  return g_strconcat(one->expect, one->rule ? " by " : "", one->rule ? one->rule : "",
                     one->reason_code ? " with " : "", one->reason_code, NULL);
}

static void try_case(Tally *tally, const Policy *policy, const Case *one) {
  gboolean isolated = g_strcmp0(one->request->execution_surface, "host") != 0;
  g_autoptr(PolicyDecision) decision = gate_preview(policy, one->request, isolated);
  gboolean passed = is_as_expected(one, decision);
  g_autofree char *expected = expected_of(one);
  g_autofree char *got =
      policy_effect_by(decision->effect, decision->reason_code, decision->matched_rule_ids);
  /* The code says more than the rule that is missing, or is the wrong one. */
  gboolean coded = !passed && decision->matched_rule_ids[0];
  g_autofree char *text =
      passed ? g_strdup_printf("%s: %s", one->name, got)
             : g_strdup_printf("%s: expected %s, got %s%s%s%s", one->name, expected, got,
                               coded ? " (" : "", coded ? decision->reason_code : "",
                               coded ? ")" : "");
  JsonObject *result = json_object_new_object();
  json_add_text(result, "kind", "case");
  json_add_bool(result, "passed", passed);
  json_add_text(result, "name", one->name);
  json_add_text(result, "expect", one->expect);
  json_add_text(result, "rule", one->rule);
  json_add_text(result, "reason_code", one->reason_code);
  json_add_take(result, "decision", policy_decision_json(decision));
  json_object_array_add(tally->results, result);
  tell_text(tally, passed, text);
}

static void print_json(const Tally *tally, const Policy *policy) {
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_take(object, "policy", policy_subject_json(policy));
  json_add_int(object, "passed", (gint64)tally->passed);
  json_add_int(object, "failed", (gint64)tally->failed);
  json_add_take(object, "results", json_object_get(tally->results));
  recorded_print_json(object);
}

static gboolean check_commands(const Policy *policy, const GPtrArray *cases, GError **error) {
  for (guint i = 0; i < cases->len; i++) {
    const Case *one = g_ptr_array_index(cases, i);
    if (policy_lacks_command(policy, one->request)) {
      return check_refuse(error,
                          "%s: the policy has rules about what a command runs; the case needs a "
                          "command",
                          one->name);
    }
  }
  return TRUE;
}

static int test(const char *path, const char *cases_path, gboolean json) {
  g_auto(PolicySubject) subject = {0};
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) examples =
      g_ptr_array_new_with_free_func((GDestroyNotify)command_example_free);
  g_autoptr(GPtrArray) cases = read_cases(cases_path, &error);
  if (!cases || !policy_subject_open(&subject, path, examples, &error) ||
      !check_commands(subject.policy, cases, &error)) {
    return cli_fail(error);
  }
  policy_subject_advise(&subject);
  Tally tally = {.json = json, .results = json_object_new_array()};
  for (guint i = 0; i < examples->len; i++) {
    try_example(&tally, g_ptr_array_index(examples, i));
  }
  for (guint i = 0; i < cases->len; i++) {
    try_case(&tally, subject.policy, g_ptr_array_index(cases, i));
  }
  if (json) {
    print_json(&tally, subject.policy);
  } else {
    policy_say("%zu passed, %zu failed", tally.passed, tally.failed);
  }
  if (tally.passed + tally.failed == 0) {
    cli_complain("nothing was tested: no rule has examples; --cases CASES.json gives cases");
  }
  json_object_put(tally.results);
  return tally.failed > 0 ? 1 : 0;
}

int cli_policy_test(int argc, char **argv) {
  g_autofree char *cases = NULL;
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"cases", 0, 0, G_OPTION_ARG_FILENAME, &cases,
       "File with requests and what is expected of each", "CASES.json"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "Print one JSON object", NULL},
      {0},
  };
  if (!cli_parse_mixed(
          &argc, &argv, "FILE",
          "Tries the examples of a policy's rules, and cases out of a file. FILE is a policy, or a "
          "configuration. Exit 0: all are as expected; 1: not all.",
          entries)) {
    return EXIT_USAGE;
  }
  if (argc != 2) {
    cli_complain("policy test takes one file: a policy, or a configuration");
    return EXIT_USAGE;
  }
  return test(argv[1], cases, json);
}
