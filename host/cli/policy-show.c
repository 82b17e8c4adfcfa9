/* SPDX-License-Identifier: Apache-2.0 */
/* policy-show.c: sandhost policy show, the rules that are in force, whoever wrote them. */
#include <string.h>

#include "cli/policy.h"
#include "cli/recorded.h"

/* A list of texts, or any other value, on one line. Owned. */
static char *value_text(JsonObject *value) {
  if (json_object_is_type(value, json_type_string)) {
    return g_strdup(json_object_get_string(value));
  }
  if (!json_object_is_type(value, json_type_array)) {
    return json_text(value);
  }
  GString *text = g_string_new(NULL);
  for (gsize i = 0; i < json_object_array_length(value); i++) {
    JsonObject *one = json_object_array_get_idx(value, i);
    g_autofree char *word = value_text(one);
    gboolean nested = json_object_is_type(one, json_type_array);
    g_string_append_printf(text, "%s%s%s%s", i ? ", " : "", nested ? "one of (" : "", word,
                           nested ? ")" : "");
  }
  return g_string_free(text, FALSE);
}

static void say_part(JsonObject *rule, const char *name) {
  JsonObject *part = json_get(rule, name);
  if (!json_object_is_type(part, json_type_object)) {
    return;
  }
  json_object_object_foreach(part, key, value) {
    g_autofree char *text = value_text(value);
    policy_say("    %s.%s: %s", name, key, text);
  }
}

static void say_list(JsonObject *rules, Effect effect) {
  static const char *const PARTS[] = {"target", "conditions", "command", "constraints"};
  JsonObject *list = json_get(rules, effect_name(effect));
  for (gsize i = 0; list && i < json_object_array_length(list); i++) {
    JsonObject *rule = json_object_array_get_idx(list, i);
    const char *reason = json_get_text(rule, "reason");
    policy_say("  %s %s: %s", effect_name(effect), json_get_text(rule, "rule_id"),
               json_get_text(rule, "capability"));
    for (gsize at = 0; at < G_N_ELEMENTS(PARTS); at++) {
      say_part(rule, PARTS[at]);
    }
    if (reason && *reason) {
      policy_say("    reason: %s", reason);
    }
  }
}

static void say(const Policy *policy, JsonObject *whole) {
  JsonObject *rules = json_get(whole, "rules");
  policy_subject_say(policy);
  if (policy_file(policy)) {
    policy_say("file: %s", policy_file(policy));
  }
  policy_say("rules, in the order in which they are considered:");
  for (Effect effect = EFFECT_DENY; effect <= EFFECT_ALLOW; effect++) {
    say_list(rules, effect);
  }
  policy_say("  no rule matches: %s", policy_mode(policy) == MODE_PERMISSIVE    ? "allow"
                                      : policy_mode(policy) == MODE_INTERACTIVE ? "ask"
                                                                                : "deny");
}

static int show(const char *path, const char *profile, gboolean json) {
  g_auto(PolicySubject) subject = {0};
  g_autoptr(GError) error = NULL;
  if (profile) {
    subject.policy = policy_new_profile(profile);
    if (!subject.policy) {
      cli_complain("--profile must be one of: permissive-dev, interactive-dev, strict-production");
      return EXIT_USAGE;
    }
  } else if (!policy_subject_open(&subject, path, NULL, &error)) {
    return cli_fail(error);
  }
  g_autoptr(JsonObject) whole = policy_json(subject.policy);
  if (json) {
    json_add_text(whole, "hash", policy_hash(subject.policy));
    json_add_text(whole, "file", policy_file(subject.policy));
    recorded_print_json(whole);
  } else {
    say(subject.policy, whole);
  }
  policy_subject_advise(&subject);
  return 0;
}

int cli_policy_show(int argc, char **argv) {
  g_autofree char *config = NULL;
  g_autofree char *profile = NULL;
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"config", 'c', 0, G_OPTION_ARG_FILENAME, &config, "Configuration file, or a policy file",
       "F"},
      {"profile", 'p', 0, G_OPTION_ARG_STRING, &profile,
       "permissive-dev, interactive-dev or strict-production", "NAME"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "Print one JSON object", NULL},
      {0},
  };
  if (!cli_parse_mixed(&argc, &argv, "",
                       "Prints the rules in force: a profile's own, those of a configuration with "
                       "what narrows them, or those of a policy.",
                       entries)) {
    return EXIT_USAGE;
  }
  if (argc > 1 || (config && profile)) {
    cli_complain("policy show takes --config or --profile, and no words");
    return EXIT_USAGE;
  }
  return show(config, profile, json);
}
