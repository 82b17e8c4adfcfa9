/* SPDX-License-Identifier: Apache-2.0 */
/* policy-explain.c: sandhost policy explain, what a policy makes of a request or of a command, and why. */
#include <string.h>

#include "base/error.h"
#include "cli/command-line.h"
#include "cli/policy.h"
#include "cli/recorded.h"
#include "governance/command-tell.h"
#include "governance/gate.h"
#include "governance/requests.h"

typedef struct {
  char *config;
  gboolean json;
  char *texts[11]; /* in the order of KEYS */
  char **data_classes;
} ExplainOptions;

/* What request_told calls the options. */
static const char *const KEYS[] = {"capability", "command",   "path",       "host",
                                   "resource",   "tool_name", "mcp_server", "provider",
                                   "surface",    "method",    "risk"};

/* One request and what is made of it. */
typedef struct {
  PolicyRequest *request;
  PolicyDecision *decision;
  GPtrArray *verdicts;
} Explained;

static void explained_free(Explained *explained) {
  policy_request_free(explained->request);
  policy_decision_free(explained->decision);
  g_clear_pointer(&explained->verdicts, g_ptr_array_unref);
  g_free(explained);
}

static Explained *explain(const Policy *policy, PolicyRequest *take_request, gboolean isolated) {
  Explained *explained = g_new0(Explained, 1);
  explained->request = take_request;
  explained->decision = gate_preview(policy, take_request, isolated);
  explained->verdicts = policy_explain(policy, take_request);
  return explained;
}

/* ---- For people -------------------------------------------------------------------------------------------------- */

static void say_request(const PolicyRequest *request) {
  g_autoptr(GString) line = g_string_new(NULL);
  const struct {
    const char *name;
    const char *value;
  } PARTS[] = {{"provider", request->provider},
               {"surface", request->execution_surface},
               {"method", request->method},
               {"mcp server", request->mcp_server}};
  g_string_append_printf(line, "%s, risk %s", request->actor, risk_name(request->risk));
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    if (PARTS[i].value) {
      g_string_append_printf(line, ", %s %s", PARTS[i].name, PARTS[i].value);
    }
  }
  g_autofree char *classes = request->data_classes ? g_strjoinv(", ", request->data_classes) : NULL;
  policy_say("  asked by: %s%s%s", line->str, classes ? ", data of " : "", classes ? classes : "");
}

static void say_command(const CommandLine *line) {
  if (line->reason) {
    policy_say("  not readable: %s", line->reason);
  }
  for (guint i = 0; i < line->count; i++) {
    g_autofree char *text = command_line_of(&line->commands[i]);
    policy_say("  runs: %s%s%s", i ? command_join_name(line->commands[i].join) : "", i ? " " : "",
               text);
  }
}

static void say_constraints(const PolicyDecision *decision) {
  if (decision->sandbox_required) {
    policy_say("  constraint: sandbox_required");
  }
  if (decision->strict_telemetry) {
    policy_say("  constraint: strict_telemetry");
  }
  if (decision->approval_expires_seconds) {
    policy_say("  constraint: approval_expires_seconds %" G_GINT64_FORMAT,
               decision->approval_expires_seconds);
  }
}

static void say_rules(const GPtrArray *verdicts) {
  for (guint i = 0; i < verdicts->len; i++) {
    const PolicyVerdict *verdict = g_ptr_array_index(verdicts, i);
    policy_say("    %s %s: %s", effect_name(verdict->effect), verdict->rule_id,
               verdict->matched ? "matches" : verdict->why_not);
  }
  if (verdicts->len == 0) {
    policy_say("    the policy has no rules");
  }
}

static void say(const Explained *explained) {
  const PolicyDecision *decision = explained->decision;
  g_autofree char *asked = policy_asked(explained->request);
  g_autofree char *effect =
      policy_effect_by(decision->effect, decision->reason_code, decision->matched_rule_ids);
  policy_say("%s: %s", asked, effect);
  policy_say("  %s: %s", decision->reason_code, decision->reason);
  say_request(explained->request);
  if (explained->request->command) {
    say_command(explained->request->command);
  }
  say_constraints(decision);
  policy_say("  rules, in the order in which they are considered:");
  say_rules(explained->verdicts);
}

/* ---- For programs ------------------------------------------------------------------------------------------------ */

static JsonObject *rules_json(const GPtrArray *verdicts) {
  JsonObject *rules = json_object_new_array();
  for (guint i = 0; i < verdicts->len; i++) {
    const PolicyVerdict *verdict = g_ptr_array_index(verdicts, i);
    JsonObject *rule = json_object_new_object();
    json_add_text(rule, "rule_id", verdict->rule_id);
    json_add_text(rule, "effect", effect_name(verdict->effect));
    json_add_bool(rule, "matched", verdict->matched);
    json_add_text(rule, "why_not", verdict->why_not);
    json_object_array_add(rules, rule);
  }
  return rules;
}

static JsonObject *explained_json(const Explained *explained) {
  const CommandLine *line = explained->request->command;
  JsonObject *object = json_object_new_object();
  json_add_take(object, "request", policy_request_json(explained->request));
  json_add_take(object, "decision", policy_decision_json(explained->decision));
  json_add_take(object, "command", line ? command_reading(line) : NULL);
  json_add_take(object, "rules", rules_json(explained->verdicts));
  return object;
}

static void print_json(const Policy *policy, const GPtrArray *all, Effect effect) {
  g_autoptr(JsonObject) object = json_object_new_object();
  JsonObject *decisions = json_object_new_array();
  for (guint i = 0; i < all->len; i++) {
    json_object_array_add(decisions, explained_json(g_ptr_array_index(all, i)));
  }
  json_add_text(object, "effect", effect_name(effect));
  json_add_take(object, "policy", policy_subject_json(policy));
  json_add_take(object, "decisions", decisions);
  recorded_print_json(object);
}

/* ---- What is asked ----------------------------------------------------------------------------------------------- */

/* The strictest of all: one that is denied keeps everything from happening. */
static Effect effect_of(const GPtrArray *all) {
  Effect effect = EFFECT_ALLOW;
  for (guint i = 0; i < all->len; i++) {
    const Explained *explained = g_ptr_array_index(all, i);
    effect = MIN(effect, explained->decision->effect);
  }
  return effect;
}

static int tell(const Policy *policy, const GPtrArray *all, gboolean json) {
  Effect effect = effect_of(all);
  if (json) {
    print_json(policy, all, effect);
  } else {
    for (guint i = 0; i < all->len; i++) {
      say(g_ptr_array_index(all, i));
    }
    policy_subject_say(policy);
  }
  return effect == EFFECT_ALLOW ? 0 : effect == EFFECT_ASK ? EXIT_WAITING : EXIT_DENIED;
}

static GPtrArray *explained_new(void) {
  return g_ptr_array_new_with_free_func((GDestroyNotify)explained_free);
}

/* The options in the words of request_told. Owned. */
static JsonObject *told_of(const ExplainOptions *options, const char *capability) {
  JsonObject *told = json_object_new_object();
  json_add_text(told, KEYS[0], capability);
  for (gsize i = 1; i < G_N_ELEMENTS(KEYS); i++) {
    if (options->texts[i]) {
      json_add_text(told, KEYS[i], options->texts[i]);
    }
  }
  if (options->data_classes) {
    json_add_take(told, "data_classes", json_from_strv((const char *const *)options->data_classes));
  }
  return told;
}

static gboolean check_command(const Policy *policy, const PolicyRequest *request, GError **error) {
  if (!policy_lacks_command(policy, request)) {
    return TRUE;
  }
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                      "the policy has rules about what a command runs; --command TEXT gives one");
  return FALSE;
}

static int explain_request(const ExplainOptions *options, const char *capability) {
  g_auto(PolicySubject) subject = {0};
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) told = told_of(options, capability);
  g_autoptr(PolicyRequest) request = request_told(told, "request", &error);
  if (!request || !policy_subject_open(&subject, options->config, NULL, &error) ||
      !check_command(subject.policy, request, &error)) {
    return cli_fail(error);
  }
  gboolean isolated = g_strcmp0(request->execution_surface, "host") != 0;
  policy_subject_advise(&subject);
  g_autoptr(GPtrArray) all = explained_new();
  g_ptr_array_add(all, explain(subject.policy, g_steal_pointer(&request), isolated));
  return tell(subject.policy, all, options->json);
}

/* What sandhost exec asks, in its order. */
static GPtrArray *explain_exec(const Policy *policy, const Manifest *manifest, gboolean isolated,
                               const char *const *words) {
  GPtrArray *all = explained_new();
  g_autofree char *command = command_line_join(words);
  g_autofree char *script = request_script(command);
  const char *const argv[] = {"sh", "-c", script, NULL};
  g_autoptr(GPtrArray) asked = manifest ? request_manifest(manifest) : NULL;
  g_ptr_array_add(all, explain(policy, request_execute(), isolated));
  while (asked && asked->len > 0) {
    g_ptr_array_add(all, explain(policy, g_ptr_array_steal_index(asked, 0), isolated));
  }
  g_ptr_array_add(all, explain(policy, request_command(argv, isolated), isolated));
  return all;
}

/* A policy alone is taken for that of a sandbox whose manifest asks for nothing. */
static int explain_command(const ExplainOptions *options, const char *const *words) {
  g_auto(PolicySubject) subject = {0};
  g_autoptr(GError) error = NULL;
  g_autoptr(ProviderRegistry) registry = NULL;
  g_autoptr(Harness) harness = NULL;
  if (!policy_subject_open(&subject, options->config, NULL, &error)) {
    return cli_fail(error);
  }
  if (subject.config) {
    const CliRunOptions run = {.config = options->config};
    harness = cli_harness(&run, &registry, &error);
    if (!harness || !harness_executes(harness, &error)) {
      return cli_fail(error);
    }
  }
  policy_subject_advise(&subject);
  g_autoptr(GPtrArray) all =
      harness ? explain_exec(harness->policy, harness->config->manifest,
                             provider_instance_isolates(harness->instance), words)
              : explain_exec(subject.policy, NULL, TRUE, words);
  return tell(harness ? harness->policy : subject.policy, all, options->json);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

/* words: what stood behind "--"; NULL: nothing. */
static int run_explain(int argc, char **argv, const ExplainOptions *options,
                       const char *const *words) {
  gboolean told = options->data_classes != NULL;
  for (gsize i = 1; i < G_N_ELEMENTS(KEYS); i++) {
    told = told || options->texts[i];
  }
  if (argc > 2) {
    cli_complain("policy explain takes one capability, got '%s' too", argv[2]);
    return EXIT_USAGE;
  }
  if (words && (argc > 1 || told)) {
    cli_complain(
        "policy explain takes a capability with its options, or -- and a command, not both");
    return EXIT_USAGE;
  }
  if ((words && !words[0]) || (!words && argc < 2)) {
    cli_complain("nothing to explain; usage: sandhost policy explain [OPTIONS] CAPABILITY, or -- "
                 "COMMAND [ARG ...]");
    return EXIT_USAGE;
  }
  return words ? explain_command(options, words) : explain_request(options, argv[1]);
}

static void options_clear(ExplainOptions *options) {
  g_free(options->config);
  g_strfreev(options->data_classes);
  for (gsize i = 0; i < G_N_ELEMENTS(options->texts); i++) {
    g_free(options->texts[i]);
  }
}

int cli_policy_explain(int argc, char **argv) {
  ExplainOptions options = {0};
  char **texts = options.texts;
#define TEXT(at, name, help, value)                                                                \
  { name, 0, 0, G_OPTION_ARG_STRING, &texts[at], help, value }
  const GOptionEntry entries[] = {
      {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options.config,
       "Configuration file, or a policy file", "F"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "Print one JSON object", NULL},
      TEXT(1, "command", "A line for sh; with process.exec", "TEXT"),
      TEXT(2, "path", "Target: a file", "PATH"),
      TEXT(3, "host", "Target: a host", "HOST"),
      TEXT(4, "resource", "Target: an image, a secret, a program", "TEXT"),
      TEXT(5, "tool-name", "Target: a tool", "NAME"),
      TEXT(6, "mcp-server", "Target: an MCP server", "NAME"),
      TEXT(7, "provider", "Who does it", "NAME"),
      TEXT(8, "surface", "Where it happens (sandbox, host, workspace, ...)", "NAME"),
      TEXT(9, "method", "HTTP method", "NAME"),
      TEXT(10, "risk", "low, medium, high or critical", "LEVEL"),
      {"data-class", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.data_classes,
       "Class of the data in it (may be repeated)", "NAME"},
      {0},
  };
#undef TEXT
  const char *const *words = NULL;
  for (int i = 1; i < argc && !words; i++) {
    if (strcmp(argv[i], "--") == 0) {
      words = (const char *const *)argv + i + 1;
      argv[i] = NULL;
      argc = i;
    }
  }
  int code = EXIT_USAGE;
  if (cli_parse_mixed(
          &argc, &argv, "CAPABILITY | -- COMMAND [ARG ...]",
          "Tells what a policy makes of a request and why, rule by rule; of a command, of all that "
          "sandhost exec would ask for it. Exit 0: allowed; 123: asked about; 126: denied.",
          entries)) {
    code = run_explain(argc, argv, &options, words);
  }
  options_clear(&options);
  return code;
}
