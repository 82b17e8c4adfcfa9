/* SPDX-License-Identifier: Apache-2.0 */
/* policy-explain.c: what every rule makes of a request, for somebody who asks why. */
#include <string.h>

#include "base/repr.h"
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

/* The two texts that were compared, for a part of which each is one. Owned; NULL: there are none. */
static char *compared(const char *part, const PolicyRule *rule, const PolicyRequest *request) {
  const char *host = request->host ? request->host : request->target_host;
  const char *server = request->mcp_server ? request->mcp_server : request->target_mcp_server;
  const struct {
    const char *part;
    const char *asked;
    const char *wanted; /* NULL: a list */
  } PARTS[] = {
      {"capability", request->capability, rule->capability.glob},
      {"target.path", request->target_path, rule->path.glob},
      {"target.host", host, rule->target_host.glob},
      {"target.resource", request->target_resource, rule->resource.glob},
      {"target.tool_name", request->target_tool_name, rule->tool_name.glob},
      {"target.mcp_server", server, rule->target_mcp_server.glob},
      {"conditions.provider", request->provider, rule->provider},
      {"conditions.execution_surface", request->execution_surface, rule->execution_surface},
      {"conditions.mcp_server", request->mcp_server, rule->mcp_server},
      {"conditions.method", request->method, rule->method},
      {"conditions.host", host, rule->host.glob},
      {"conditions.risk_level", risk_name(request->risk), NULL},
      {"conditions.exclude_execution_surface", request->execution_surface, NULL},
      {"conditions.exclude_capability", request->capability, NULL},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    if (strcmp(part, PARTS[i].part) != 0) {
      continue;
    }
    g_autofree char *asked = PARTS[i].asked ? repr_text(PARTS[i].asked) : g_strdup("nothing");
    g_autofree char *wanted = PARTS[i].wanted ? repr_text(PARTS[i].wanted) : NULL;
    return g_strdup_printf("%s%s%s", asked, wanted ? " against " : "", wanted ? wanted : "");
  }
  return NULL;
}

static char *why_not(const PolicyRule *rule, const PolicyRequest *request) {
  const char *missed = policy_rule_misses(rule, request);
  if (!missed) {
    return why_command(rule, request);
  }
  g_autofree char *texts = compared(missed, rule, request);
  return texts ? g_strdup_printf("%s does not match (%s)", missed, texts)
               : g_strdup_printf("%s does not match", missed);
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
