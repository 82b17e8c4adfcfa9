/* SPDX-License-Identifier: Apache-2.0 */
/* governance-command-rules.c: rules about what a command runs: how they are loaded, what they match, and
 * what they decide together (behaviour 4.2, 4.12, 5.1). */
#include "governance-fixture.h"

#include "governance/requests.h"

static PolicyRequest *request_line(const char *script) {
  const char *const argv[] = {"sh", "-c", script, NULL};
  return request_command(argv, TRUE);
}

static void decides(const Policy *policy, const char *script, const char *wanted) {
  g_autoptr(PolicyRequest) request = request_line(script);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_autofree char *line = fixture_line(decision);
  if (strcmp(line, wanted) != 0) {
    g_error("%s\n  is decided as %s\n  instead of %s", script, line, wanted);
  }
  /* A line that cannot be read is kept from the allow rules that match it. */
  gboolean matched = decision->matched_rule_ids[0] != NULL;
  g_assert_true(policy_names(policy, request) == matched ||
                strcmp(decision->reason_code, "command_opaque") == 0);
}

/* ---- Loading --------------------------------------------------------------------------------- */

typedef struct {
  const char *part; /* of a rule */
  const char *text;
} Refusal;

static void refused(const char *list, const Refusal *cases, gsize count) {
  for (gsize i = 0; i < count; i++) {
    g_autofree char *text =
        g_strdup_printf("{'rules': {'%s': [{'rule_id': 'a', 'capability': 'process.exec', %s}]}}",
                        list, cases[i].part);
    g_autoptr(JsonObject) source = fixture_json(text);
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = policy_new(source, &error);
    if (policy) {
      g_error("%s is not refused", cases[i].part);
    }
    g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
    g_assert_cmpstr(error->message, ==, cases[i].text);
  }
}

static void test_refused_matchers(void) {
  static const Refusal CASES[] = {
      {"'command': 'rm'", "rule a: command must be an object"},
      {"'command': {}", "rule a: command takes a prefix, or a program"},
      {"'command': {'program': null}", "rule a: command takes a prefix, or a program"},
      {"'command': {'prefix': ['rm'], 'program': 'rm'}",
       "rule a: command takes a prefix, or a program, not both"},
      {"'command': {'programm': 'rm', 'args': []}",
       "rule a: command has unknown key(s) args, programm"},
      {"'command': {'program': 'rm', 'args_any': ['-rf']}",
       "rule a: command.args_any was removed: a command is matched by its first words, with a "
       "prefix, "
       "or a program"},
      {"'command': {'redirect': true}", "rule a: command.redirect was removed: a command is "
                                        "matched by its first words, with a prefix, "
                                        "or a program"},
      {"'command': {'env': []}", "rule a: command.env was removed: a command is matched by its "
                                 "first words, with a prefix, or a "
                                 "program"},
      {"'command': {'prefix': []}",
       "rule a: command.prefix must be a non-empty list of literal words"},
      {"'command': {'prefix': 'git push'}",
       "rule a: command.prefix must be a non-empty list of literal words"},
      {"'command': {'prefix': ['git', '']}",
       "rule a: command.prefix[1] must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'prefix': ['git', []]}",
       "rule a: command.prefix[1] must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'prefix': ['git', ['push', 7]]}",
       "rule a: command.prefix[1] must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'prefix': ['git', [['push']]]}",
       "rule a: command.prefix[1] must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'prefix': [null]}",
       "rule a: command.prefix[0] must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'prefix': ['git', 'pu*']}",
       "rule a: command.prefix[1]: 'pu*' must be a literal word, not a glob"},
      {"'command': {'prefix': ['git', ['push', 'p?ll']]}",
       "rule a: command.prefix[1]: 'p?ll' must be a literal word, not a glob"},
      {"'command': {'program': '[rm]'}",
       "rule a: command.program: '[rm]' must be a literal word, not a glob"},
      {"'command': {'program': ''}",
       "rule a: command.program must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'program': []}",
       "rule a: command.program must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'program': 1}",
       "rule a: command.program must be a non-empty literal word or a non-empty list of them"},
      {"'command': {'program': '/bin/rm'}",
       "rule a: command.program: '/bin/rm' must be the name of a program, without a / or a blank"},
      {"'command': {'prefix': ['git push']}", "rule a: command.prefix[0]: 'git push' must be the "
                                              "name of a program, without a / or a blank"},
  };
  static const char *const LISTS[] = {"deny", "ask", "allow"};
  for (gsize i = 0; i < G_N_ELEMENTS(LISTS); i++) {
    refused(LISTS[i], CASES, G_N_ELEMENTS(CASES));
  }
}

#define RM "'command': {'program': 'rm'}, "

static void test_refused_examples(void) {
  static const Refusal CASES[] = {
      {"'examples': {'match': ['rm']}", "rule a: examples need a command matcher"},
      {RM "'examples': []", "rule a: examples takes match and not_match lists"},
      {RM "'examples': 'rm'", "rule a: examples takes match and not_match lists"},
      {RM "'examples': {'matches': ['rm']}", "rule a: examples takes match and not_match lists"},
      {RM "'examples': {'match': 'rm'}", "rule a: examples takes match and not_match lists"},
      {RM "'examples': {'not_match': [1]}", "rule a: examples takes match and not_match lists"},
      {RM "'examples': {'match': ['rm', 'ls']}", "rule a does not match its example 'ls'"},
      {RM "'examples': {'match': ['rm *']}", "rule a does not match its example 'rm *'"},
      {RM "'examples': {'match': ['']}", "rule a does not match its example ''"},
      {RM "'examples': {'not_match': ['ls', 'ls; rm x\\n']}",
       "rule a matches 'ls; rm x\\n', listed as not_match"},
  };
  refused("deny", CASES, G_N_ELEMENTS(CASES));
}

static void test_examples_of_an_allow_rule_are_allowed_in_full(void) {
  static const Refusal CASES[] = {
      {RM "'examples': {'match': ['rm x; ls']}", "rule a does not match its example 'rm x; ls'"},
      {RM "'examples': {'match': ['/bin/rm x']}", "rule a does not match its example '/bin/rm x'"},
      {RM "'examples': {'not_match': ['rm x; rm y']}",
       "rule a matches 'rm x; rm y', listed as not_match"},
  };
  refused("allow", CASES, G_N_ELEMENTS(CASES));
}

static void test_examples_that_hold(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'rules': {'deny': [{'rule_id': 'a', 'capability': 'process.exec', 'command': {'program': "
      "'rm'},"
      " 'examples': {'match': ['rm', 'ls; /bin/rm x'], 'not_match': ['ls', 'rm *', 'sudo rm x']}}],"
      " 'allow': [{'rule_id': 'b', 'capability': 'process.exec', 'command': {'prefix': ['git', "
      "['log',"
      " 'status']]}, 'examples': {'match': ['git log; git status -s'], 'not_match': ['git',"
      " 'git push', 'git log; ls', './git log']}}, {'rule_id': 'c',"
      " 'capability': 'process.exec', 'command': {'program': 'ls'}, 'examples': {}}]}}");
  g_assert_nonnull(policy);
}

/* ---- Matching -------------------------------------------------------------------------------- */

typedef struct {
  const char *script;
  gboolean matches;
} Line;

/* Whether the only rule of the policy matches each line. */
static void matches_all(const char *list, const char *command, const Line *lines, gsize count) {
  g_autofree char *rule =
      g_strdup_printf("{'rule_id': 'r', 'capability': 'process.exec', 'command': %s}", command);
  g_autoptr(Policy) policy = fixture_rules("interactive", list, rule);
  for (gsize i = 0; i < count; i++) {
    g_autoptr(PolicyRequest) request = request_line(lines[i].script);
    if (fixture_matches(policy, request) != lines[i].matches) {
      g_error("%s rule %s: %s", list, command, lines[i].script);
    }
  }
}

static void test_restraining_rules_match_any_command(void) {
  static const Line LINES[] = {
      {"rm", TRUE},       {"rm -rf x", TRUE},      {"ls && rm x", TRUE}, {"rm x; ls", TRUE},
      {"ls | rm", TRUE},  {"/bin/rm x", TRUE},     {"./rm", TRUE},       {"'rm' x", TRUE},
      {"r\"m\" x", TRUE}, {"ls || /x/y/rm", TRUE}, {"ls", FALSE},        {"rmdir x", FALSE},
      {"echo rm", FALSE}, {"sudo rm x", FALSE},    {"RM x", FALSE},      {"rm/ls", FALSE},
      {"rm *", FALSE},    {"eval rm", FALSE},      {"ls # rm", FALSE},
  };
  matches_all("deny", "{'program': 'rm'}", LINES, G_N_ELEMENTS(LINES));
  matches_all("ask", "{'prefix': ['rm']}", LINES, G_N_ELEMENTS(LINES));
}

static void test_allowing_rules_match_every_command(void) {
  static const Line LINES[] = {
      {"ls", TRUE},        {"ls -l x", TRUE},  {"ls; ls x | ls", TRUE}, {"ls; rm x", FALSE},
      {"rm x; ls", FALSE}, {"/bin/ls", FALSE}, {"./ls", FALSE},         {"ls; /bin/ls", FALSE},
      {"ls > f", FALSE},   {"ls *", FALSE},
  };
  matches_all("allow", "{'program': ['ls', 'dir']}", LINES, G_N_ELEMENTS(LINES));
}

static void test_prefix(void) {
  static const Line LINES[] = {
      {"git push", TRUE},       {"git push origin x", TRUE},  {"hub push", TRUE},
      {"git pull --all", TRUE}, {"git 'push'", TRUE},         {"git", FALSE},
      {"git log push", FALSE},  {"git -C x push", FALSE},     {"git pushed", FALSE},
      {"git Push", FALSE},      {"git 'push origin'", FALSE}, {"push git", FALSE},
  };
  matches_all("deny", "{'prefix': [['git', 'hub'], ['push', 'pull']]}", LINES, G_N_ELEMENTS(LINES));
}

/* ---- Deciding -------------------------------------------------------------------------------- */

#define EXEC(id, command)                                                                          \
  "{'rule_id': '" id "', 'capability': 'process.exec', 'command': " command "}"

/* deny rm, ask before git push, allow git status, git log and ls. */
static Policy *documented(const char *mode) {
  static const char RULES[] = "'deny': [" EXEC(
      "no_rm",
      "{'program': 'rm'}") "],"
                           "'ask': [" EXEC(
                               "push",
                               "{'prefix': ['git', 'push']}") "],"
                                                              "'allow': [" EXEC(
                                                                  "look",
                                                                  "{'prefix': ['git', ['status', "
                                                                  "'log']]}") "," EXEC("list",
                                                                                       "{'program':"
                                                                                       " 'ls'}") "]";
  g_autofree char *text = g_strdup_printf("{'mode': '%s', 'rules': {%s}}", mode, RULES);
  return fixture_policy(text);
}

static void test_order(void) {
  g_autoptr(Policy) policy = documented("strict");
  decides(policy, "git push; rm x", "deny matched_deny no_rm");
  decides(policy, "git status && /bin/rm x", "deny matched_deny no_rm");
  decides(policy, "git status; git push", "ask matched_ask push");
  decides(policy, "git status", "allow matched_allow look");
}

static void test_rules_cover_a_line_together(void) {
  g_autoptr(Policy) policy = documented("strict");
  decides(policy, "git status; ls | ls", "allow matched_allow look,list");
  decides(policy, "ls; git log", "allow matched_allow look,list");
  decides(policy, "git status; make", "deny unknown_capability ");
  decides(policy, "make; git status", "deny unknown_capability ");
  decides(policy, "git status; /bin/ls", "deny unknown_capability ");
}

static void test_mode_decides_what_is_not_covered(void) {
  g_autoptr(Policy) permissive = documented("permissive");
  g_autoptr(Policy) interactive = documented("interactive");
  decides(permissive, "make", "allow unknown_capability ");
  decides(interactive, "ls; make", "ask unknown_capability ");
}

static void test_unreadable_passes_no_command_rule(void) {
  static const char *const MODES[][2] = {{"permissive", "ask command_opaque "},
                                         {"interactive", "ask command_opaque "},
                                         {"strict", "deny command_opaque "}};
  for (gsize i = 0; i < G_N_ELEMENTS(MODES); i++) {
    g_autoptr(Policy) policy = documented(MODES[i][0]);
    decides(policy, "eval \"rm -rf ~\"", MODES[i][1]);
    decides(policy, "ls > f", MODES[i][1]);
    decides(policy, "rm *", MODES[i][1]);
    decides(policy, "", MODES[i][1]);
  }
}

static void test_unreadable_says_why(void) {
  g_autoptr(Policy) policy = documented("strict");
  g_autoptr(PolicyRequest) request = request_line("ls > f");
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_assert_cmpstr(
      decision->reason, ==,
      "The command rules cannot read this command (a redirect), so it is not run without "
      "a person's approval.");
}

/* One rule of any effect is enough. */
static void test_any_effect_makes_unreadable_asked(void) {
  static const char *const LISTS[] = {"deny", "ask", "allow"};
  for (gsize i = 0; i < G_N_ELEMENTS(LISTS); i++) {
    g_autoptr(Policy) policy =
        fixture_rules("permissive", LISTS[i], EXEC("r", "{'program': 'rm'}"));
    decides(policy, "a > b", "ask command_opaque ");
  }
}

static void test_a_broad_allow_allows_only_what_can_be_read(void) {
  g_autoptr(Policy) policy = fixture_policy("{'mode': 'strict', 'rules': {'deny': [" EXEC(
      "no_rm", "{'program': 'rm'}") "], 'allow': ["
                                    "{'rule_id': 'all', 'capability': 'process.exec'}, " EXEC(
                                        "ls", "{'program': 'ls'}") "]}}");
  decides(policy, "make; /x/y", "allow matched_allow all");
  decides(policy, "ls; make", "allow matched_allow all");
  decides(policy, "ls; ls", "allow matched_allow all,ls");
  decides(policy, "make; rm x", "deny matched_deny no_rm");
  decides(policy, "make > x", "deny command_opaque ");
}

static void test_without_a_matcher_nothing_is_read(void) {
  g_autoptr(Policy) policy =
      fixture_rules("strict", "allow", "{'rule_id': 'all', 'capability': 'process.exec'}");
  decides(policy, "eval x > y", "allow matched_allow all");
  decides(policy, "", "allow matched_allow all");
}

/* A rule about other commands, such as those on the host, does not make these asked. */
static void test_rule_must_otherwise_match(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'mode': 'strict', 'rules': {'deny': [{'rule_id': 'r', 'capability': 'process.exec',"
      " 'conditions': {'execution_surface': 'host'}, 'command': {'program': 'rm'}}],"
      " 'allow': [{'rule_id': 'all', 'capability': 'process.exec'}]}}");
  decides(policy, "a > b", "allow matched_allow all");
  decides(policy, "rm x", "allow matched_allow all");
  static const char *const ARGV[] = {"sh", "-c", "rm x", NULL};
  static const char *const OPAQUE[] = {"sh", "-c", "rm > x", NULL};
  g_autoptr(PolicyRequest) host = request_command(ARGV, FALSE);
  g_autoptr(PolicyRequest) opaque = request_command(OPAQUE, FALSE);
  fixture_decides(policy, host, "deny matched_deny r");
  fixture_decides(policy, opaque, "deny command_opaque ");
}

static void test_a_plain_rule_comes_before_unreadable(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'mode': 'strict', 'rules': {'ask': [{'rule_id': 'each', 'capability': 'process.*'}],"
      " 'deny': [" EXEC("no_rm", "{'program': 'rm'}") "]}}");
  decides(policy, "a > b", "ask matched_ask each");
}

static void test_other_capabilities_are_not_commands(void) {
  g_autoptr(Policy) policy = documented("permissive");
  g_autoptr(PolicyRequest) sync = request_sync();
  fixture_decides(policy, sync, "allow unknown_capability ");
}

/* A process.exec that nobody has read is as good as unreadable. */
static void test_unread_is_unreadable(void) {
  g_autoptr(Policy) policy = documented("strict");
  g_autoptr(PolicyRequest) request = policy_request_new("process.exec", RISK_HIGH);
  fixture_decides(policy, request, "deny command_opaque ");
}

static void test_reason_and_constraints_of_command_rules(void) {
  g_autoptr(Policy) policy =
      fixture_policy("{'rules': {'ask': [{'rule_id': 'a', 'capability': 'process.exec', 'command': "
                     "{'program': 'x'},"
                     " 'constraints': {'approval_expires_seconds': 5}},"
                     " {'rule_id': 'b', 'capability': 'process.exec', 'command': {'program': 'y'},"
                     " 'reason': 'Ask first.', 'constraints': {'sandbox_required': true}},"
                     " {'rule_id': 'c', 'capability': 'process.exec', 'command': {'program': 'z'},"
                     " 'reason': 'Never.', 'constraints': {'strict_telemetry': true}}]}}");
  g_autoptr(PolicyRequest) request = request_line("y; x");
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_autofree char *line = fixture_line(decision);
  g_assert_cmpstr(line, ==, "ask matched_ask a,b");
  g_assert_cmpstr(decision->reason, ==, "Ask first.");
  g_assert_cmpint(decision->approval_expires_seconds, ==, 5);
  g_assert_true(decision->sandbox_required);
  g_assert_false(decision->strict_telemetry);
}

static void test_long_lines(void) {
  g_autoptr(Policy) policy = documented("strict");
  GString *script = g_string_new("ls");
  for (guint i = 0; i < 1500; i++) {
    g_string_append(script, ";git log");
  }
  decides(policy, script->str, "deny command_opaque ");
  g_string_truncate(script, 9002);
  g_assert_true(g_str_has_suffix(script->str, ";git log"));
  decides(policy, script->str, "allow matched_allow look,list");
  g_string_append(script, ";rm");
  decides(policy, script->str, "deny matched_deny no_rm");
  g_string_free(script, TRUE);
}

static void test_matchers_are_part_of_the_hash(void) {
  g_autoptr(Policy) one = fixture_rules("strict", "deny", EXEC("r", "{'program': 'rm'}"));
  g_autoptr(Policy) same = fixture_rules("strict", "deny", EXEC("r", "{'program': 'rm'}"));
  g_autoptr(Policy) other = fixture_rules("strict", "deny", EXEC("r", "{'program': 'ls'}"));
  g_assert_cmpstr(policy_hash(one), ==, policy_hash(same));
  g_assert_cmpstr(policy_hash(one), !=, policy_hash(other));
}

/* ---- Trying examples ------------------------------------------------------------------------- */

/* Told one by one, in the order of the rules, and none of them refuses the policy. */
static void test_trying_examples(void) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) tried = g_ptr_array_new_with_free_func((GDestroyNotify)command_example_free);
  g_autoptr(JsonObject) source = fixture_json(
      "{'rules': {'allow': [{'rule_id': 'b', 'capability': 'process.exec', 'command': {'program':"
      " 'ls'}, 'examples': {'match': ['ls && rm x', 'ls > f']}}], 'deny': [{'rule_id': 'a',"
      " 'capability': 'process.exec', 'command': {'program': 'rm'}, 'examples': {'match': ['rm x'],"
      " 'not_match': ['ls', '/bin/rm x']}}]}}");
  g_autoptr(Policy) policy = policy_new_trying(source, tried, &error);
  g_assert_no_error(error);
  g_assert_nonnull(policy);
  g_autoptr(GString) out = g_string_new(NULL);
  for (guint i = 0; i < tried->len; i++) {
    const CommandExample *example = g_ptr_array_index(tried, i);
    g_autofree char *fault = command_example_fault(example);
    g_string_append_printf(out, "%s %s: %s\n", example->rule_id, example->text,
                           example->passed ? "passed" : fault);
  }
  g_assert_cmpstr(out->str, ==,
                  "a rm x: passed\n"
                  "a ls: passed\n"
                  "a /bin/rm x: rule a matches '/bin/rm x', listed as not_match\n"
                  "b ls && rm x: rule b does not match its example 'ls && rm x'\n"
                  "b ls > f: rule b does not match its example 'ls > f'\n");
  g_assert_null(policy_new(source, &error));
  g_assert_cmpstr(error->message, ==, "rule a matches '/bin/rm x', listed as not_match");
  g_autoptr(GError) worse = NULL;
  json_add_text(source, "mode", "lax");
  g_assert_null(policy_new_trying(source, tried, &worse));
  g_assert_cmpstr(worse->message, ==, "'lax' is not a valid PolicyMode");
}

/* ---- Explaining ------------------------------------------------------------------------------ */

static void explains(const Policy *policy, const PolicyRequest *request, const char *wanted) {
  g_autoptr(GPtrArray) verdicts = policy_explain(policy, request);
  g_autoptr(GString) out = g_string_new(NULL);
  for (guint i = 0; i < verdicts->len; i++) {
    const PolicyVerdict *verdict = g_ptr_array_index(verdicts, i);
    g_assert_true(verdict->matched == !verdict->why_not);
    g_string_append_printf(out, "%s%s %s: %s", i ? "\n" : "", effect_name(verdict->effect),
                           verdict->rule_id, verdict->matched ? "yes" : verdict->why_not);
  }
  g_assert_cmpstr(out->str, ==, wanted);
}

static void test_explain_command(void) {
  g_autoptr(Policy) policy = documented("strict");
  g_autoptr(PolicyRequest) request = request_line("git status; git push; ls");
  explains(policy, request,
           "deny no_rm: no command of the line begins with its words\n"
           "ask push: yes\n"
           "allow look: the rules that allow commands do not cover the whole line\n"
           "allow list: the rules that allow commands do not cover the whole line");
  g_autoptr(PolicyRequest) allowed = request_line("git status; ls");
  explains(policy, allowed,
           "deny no_rm: no command of the line begins with its words\n"
           "ask push: no command of the line begins with its words\n"
           "allow look: yes\nallow list: yes");
  g_autoptr(PolicyRequest) opaque = request_line("rm > x");
  explains(policy, opaque,
           "deny no_rm: the command cannot be read: a redirect\n"
           "ask push: the command cannot be read: a redirect\n"
           "allow look: the command cannot be read: a redirect\n"
           "allow list: the command cannot be read: a redirect");
}

static void test_explain_every_part(void) {
  g_autoptr(Policy) policy = fixture_policy(
      "{'rules': {'deny': [{'rule_id': 'a', 'capability': 'y'},"
      " {'rule_id': 'b', 'capability': 'x', 'target': {'path': 'p'}},"
      " {'rule_id': 'c', 'capability': 'x', 'target': {'host': 'p'}},"
      " {'rule_id': 'd', 'capability': '*', 'conditions': {'risk_level': ['high']}},"
      " {'rule_id': 'e', 'capability': '*', 'conditions': {'provider': 'p'}},"
      " {'rule_id': 'f', 'capability': '*', 'conditions': {'execution_surface': 'host'}},"
      " {'rule_id': 'g', 'capability': '*', 'conditions': {'method': 'GET'}},"
      " {'rule_id': 'h', 'capability': '*', 'conditions': {'exclude_capability': ['?']}},"
      " {'rule_id': 'i', 'capability': '*', 'conditions': {'data_classes': ['credential']}},"
      " {'rule_id': 'j', 'capability': '*'}]}}");
  g_autoptr(PolicyRequest) request = policy_request_new("x", RISK_LOW);
  explains(policy, request,
           "deny a: capability does not match ('x' against 'y')\n"
           "deny b: target does not match\n"
           "deny c: target.host does not match (nothing against 'p')\n"
           "deny d: conditions.risk_level does not match ('low')\n"
           "deny e: conditions.provider does not match (nothing against 'p')\n"
           "deny f: conditions.execution_surface does not match (nothing against 'host')\n"
           "deny g: conditions.method does not match (nothing against 'GET')\n"
           "deny h: conditions.exclude_capability does not match ('x')\n"
           "deny i: conditions.data_classes does not match\n"
           "deny j: yes");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/command-rules/" name, function)
  ADD("load/matcher", test_refused_matchers);
  ADD("load/examples", test_refused_examples);
  ADD("load/trying", test_trying_examples);
  ADD("load/examples/allow", test_examples_of_an_allow_rule_are_allowed_in_full);
  ADD("load/examples/hold", test_examples_that_hold);
  ADD("match/restrain", test_restraining_rules_match_any_command);
  ADD("match/allow", test_allowing_rules_match_every_command);
  ADD("match/prefix", test_prefix);
  ADD("decide/order", test_order);
  ADD("decide/together", test_rules_cover_a_line_together);
  ADD("decide/mode", test_mode_decides_what_is_not_covered);
  ADD("decide/opaque", test_unreadable_passes_no_command_rule);
  ADD("decide/opaque/reason", test_unreadable_says_why);
  ADD("decide/opaque/any-effect", test_any_effect_makes_unreadable_asked);
  ADD("decide/broad", test_a_broad_allow_allows_only_what_can_be_read);
  ADD("decide/no-matcher", test_without_a_matcher_nothing_is_read);
  ADD("decide/otherwise", test_rule_must_otherwise_match);
  ADD("decide/plain-first", test_a_plain_rule_comes_before_unreadable);
  ADD("decide/other-capability", test_other_capabilities_are_not_commands);
  ADD("decide/unread", test_unread_is_unreadable);
  ADD("decide/reason", test_reason_and_constraints_of_command_rules);
  ADD("decide/long", test_long_lines);
  ADD("hash", test_matchers_are_part_of_the_hash);
  ADD("explain/command", test_explain_command);
  ADD("explain/parts", test_explain_every_part);
#undef ADD
  return g_test_run();
}
