/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c: sandhost policy, a policy looked at without running anything: show, explain, test and replay. */
#include "cli/policy.h"

#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/repr.h"
#include "cli/recorded.h"

/* ---- Which policy ------------------------------------------------------------------------------------------------ */

/* A configuration has neither key; a file that is neither is taken for one, and refused as such. */
static gboolean is_policy(JsonObject *object) {
  return (json_get(object, "rules") || json_get(object, "mode")) &&
         !json_get(object, "agent_config") && !json_get(object, "governance_config");
}

/* Nobody runs anything under this one: it only has to be a policy, wherever it lies. */
static Policy *load_alone(const char *path, GPtrArray *examples, GError **error) {
  g_autofree char *whole = g_canonicalize_filename(path, NULL);
  g_autofree char *folder = g_path_get_dirname(whole);
  return policy_load_trying(path, folder, NULL, examples, error);
}

gboolean policy_subject_open(PolicySubject *subject, const char *path, GPtrArray *examples,
                             GError **error) {
  const CliRunOptions options = {.config = (char *)(gsize)path};
  g_autoptr(GError) unreadable = NULL;
  g_autoptr(JsonObject) object = path ? json_parse_file(path, &unreadable) : NULL;
  if (is_policy(object)) {
    subject->policy = load_alone(path, examples, error);
    return subject->policy != NULL;
  }
  subject->registry = cli_registry();
  subject->config = cli_config(&options, subject->registry, error);
  if (!subject->config) {
    return FALSE;
  }
  if (!subject->config->governed) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                        "governance is off (governance_config.enabled is false), so no policy "
                        "decides anything; remove that setting");
    return FALSE;
  }
  subject->policy = harness_policy(subject->config, examples, error);
  return subject->policy != NULL;
}

void policy_subject_clear(PolicySubject *subject) {
  g_clear_pointer(&subject->policy, policy_unref);
  g_clear_pointer(&subject->config, config_free);
  g_clear_pointer(&subject->registry, provider_registry_free);
}

JsonObject *policy_subject_json(const Policy *policy) {
  g_autoptr(JsonObject) whole = policy_json(policy);
  JsonObject *told = json_object_new_object();
  json_add_text(told, "name", json_get_text(whole, "name"));
  json_add_text(told, "mode", json_get_text(whole, "mode"));
  json_add_text(told, "profile", policy_profile(policy));
  json_add_text(told, "policy_id", policy_id(policy));
  json_add_text(told, "hash", policy_hash(policy));
  return told;
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

void policy_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_autofree char *line = cli_one_line(text);
  recorded_print(line);
}

static const char *target_of(const PolicyRequest *request) {
  const char *const TARGETS[] = {request->target_host, request->host, request->target_path,
                                 request->target_resource, request->target_tool_name};
  for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
    if (TARGETS[i]) {
      return TARGETS[i];
    }
  }
  return request->target_mcp_server;
}

char *policy_asked(const PolicyRequest *request) {
  const char *target = target_of(request);
  g_autofree char *shown = target ? repr_text(target) : NULL;
  return g_strdup_printf("%s%s%s", request->capability, shown ? " " : "", shown ? shown : "");
}

char *policy_effect_by(Effect effect, const char *reason_code, char **rule_ids) {
  if (!rule_ids || !rule_ids[0]) {
    return g_strdup_printf("%s (%s)", effect_name(effect), reason_code);
  }
  g_autofree char *rules = g_strjoinv(", ", rule_ids);
  return g_strdup_printf("%s by %s", effect_name(effect), rules);
}

void policy_subject_say(const Policy *policy) {
  g_autoptr(JsonObject) told = policy_subject_json(policy);
  const char *profile = policy_profile(policy);
  policy_say("policy: %s, %s, hash %s", profile ? profile : json_get_text(told, "name"),
             json_get_text(told, "mode"), policy_hash(policy));
}

void policy_subject_advise(const PolicySubject *subject) {
  g_autoptr(JsonObject) advice = policy_advice(subject->policy);
  for (gsize i = 0; i < json_object_array_length(advice); i++) {
    JsonObject *one = json_object_array_get_idx(advice, i);
    cli_complain("warning: %s: %s", json_get_text(one, "code"), json_get_text(one, "message"));
  }
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static const char HELP[] =
    "Usage: sandhost policy show [--config F | --profile P]\n"
    "       sandhost policy explain [--config F] CAPABILITY [OPTIONS]\n"
    "       sandhost policy explain [--config F] -- COMMAND [ARG ...]\n"
    "       sandhost policy test FILE [--cases CASES.json]\n"
    "       sandhost policy replay [--config F] [RUN ...]\n\n"
    "Looks at a policy without running anything: which rules it has, why it decides as it does, "
    "whether it decides as "
    "it\n"
    "should, and what it would have made of the runs on record.\n\n"
    "sandhost policy explain --help, and so on, tells the options; sandhost-policy(1) the rest.";

int cli_policy(int argc, char **argv) {
  static const struct {
    const char *name;
    const char *whole;
    int (*run)(int argc, char **argv);
  } COMMANDS[] = {
      {"show", "policy show", cli_policy_show},
      {"explain", "policy explain", cli_policy_explain},
      {"test", "policy test", cli_policy_test},
      {"replay", "policy replay", cli_policy_replay},
  };
  for (gsize i = 0; argc > 1 && i < G_N_ELEMENTS(COMMANDS); i++) {
    if (strcmp(argv[1], COMMANDS[i].name) == 0) {
      g_autofree char *name = g_strdup(COMMANDS[i].whole);
      argv[1] = name;
      return COMMANDS[i].run(argc - 1, argv + 1);
    }
  }
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    recorded_print(HELP);
    return 0;
  }
  cli_complain(
      "usage: sandhost policy show|explain|test|replay; sandhost policy --help tells more");
  return EXIT_USAGE;
}
