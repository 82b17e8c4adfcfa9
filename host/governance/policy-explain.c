/* SPDX-License-Identifier: Apache-2.0 */
/* policy-explain.c: what every rule makes of a request, for somebody who asks why. */
#include <string.h>

#include "governance/policy-private.h"

static void verdict_free(PolicyVerdict *verdict) {
  g_free(verdict->why_not);
  g_free(verdict);
}

/* Why a rule that meets the request otherwise is kept from matching by its command matcher. */
static char *why_command(const PolicyRule *rule, const PolicyRequest *request) {
  const char *opaque = policy_request_opaque(request);
  if (opaque) {
    return g_strdup_printf("the command cannot be read: %s", opaque);
  }
  gboolean allows = rule->effect == EFFECT_ALLOW;
  const CommandLine *line = request->command;
  for (guint i = 0; i < line->count; i++) {
    if (command_matcher_matches(rule->command, &line->commands[i], allows)) {
      return g_strdup("the rules that allow commands do not cover the whole line");
    }
  }
  return g_strdup("no command of the line begins with its words");
}

static char *why_not(const PolicyRule *rule, const PolicyRequest *request) {
  const char *missed = policy_rule_misses(rule, request);
  return missed ? g_strdup_printf("%s does not match", missed) : why_command(rule, request);
}

static void explain_list(GPtrArray *verdicts, const Policy *policy, Effect effect,
                         const PolicyRequest *request) {
  const GPtrArray *rules = policy->rules[effect];
  g_autoptr(GArray) places = policy_match(policy, effect, request);
  guint next = 0;
  for (guint i = 0; i < rules->len; i++) {
    const PolicyRule *rule = g_ptr_array_index(rules, i);
    PolicyVerdict *verdict = g_new0(PolicyVerdict, 1);
    verdict->rule_id = rule->rule_id;
    verdict->effect = effect;
    verdict->matched = places && next < places->len && g_array_index(places, guint, next) == i;
    next += verdict->matched ? 1 : 0;
    verdict->why_not = verdict->matched ? NULL : why_not(rule, request);
    g_ptr_array_add(verdicts, verdict);
  }
}

GPtrArray *policy_explain(const Policy *policy, const PolicyRequest *request) {
  GPtrArray *verdicts = g_ptr_array_new_with_free_func((GDestroyNotify)verdict_free);
  explain_list(verdicts, policy, EFFECT_DENY, request);
  explain_list(verdicts, policy, EFFECT_ASK, request);
  explain_list(verdicts, policy, EFFECT_ALLOW, request);
  return verdicts;
}
