/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy-advice.c: what a policy says and its author hardly means. None of it is wrong: a policy may be shared with an
 * agent that can do more, and who writes a rule about rm may know that env runs it too.
 */
#include <string.h>

#include "base/repr.h"
#include "governance/capabilities.h"
#include "governance/policy-private.h"
#include "governance/requests.h"

static void advise(JsonObject *advice, const char *code, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static void advise(JsonObject *advice, const char *code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  JsonObject *one = json_object_new_object();
  json_add_text(one, "code", code);
  json_add_text(one, "message", text);
  json_object_array_add(advice, one);
}

/* ---- Rules that apply to nothing --------------------------------------------------------------------------------- */

static void advise_unknown(const PolicyRule *rule, const char *key, const char *glob,
                           JsonObject *advice) {
  if (capability_is_known(glob, NULL)) {
    return;
  }
  g_autofree char *shown = repr_text(glob);
  const char *near = capability_near(glob);
  advise(advice, "unknown_capability", "rule %s: %s %s matches no known capability%s%s%s",
         rule->rule_id, key, shown, near ? "; did you mean '" : "", near ? near : "",
         near ? "'?" : "");
}

/* A part of a target that no request about these capabilities has: it counts as the empty text there. */
static void advise_target(const PolicyRule *rule, JsonObject *advice) {
  const struct {
    const char *name;
    TargetParts part;
    const Pattern *pattern;
  } PARTS[] = {{"path", TARGET_PATH, &rule->path},
               {"host", TARGET_HOST, &rule->target_host},
               {"resource", TARGET_RESOURCE, &rule->resource},
               {"tool_name", TARGET_TOOL, &rule->tool_name},
               {"mcp_server", TARGET_SERVER, &rule->target_mcp_server}};
  TargetParts parts = TARGET_NONE;
  if (!capability_is_known(rule->capability.glob, &parts)) {
    return;
  }
  g_autoptr(GString) has = g_string_new(NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    if (parts & PARTS[i].part) {
      g_string_append_printf(has, "%s%s", has->len ? ", " : "", PARTS[i].name);
    }
  }
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    if (PARTS[i].pattern->glob && !(parts & PARTS[i].part) &&
        !pattern_matches(PARTS[i].pattern, "")) {
      advise(advice, "target_never_matches",
             "rule %s: target.%s never matches %s, whose target has %s", rule->rule_id,
             PARTS[i].name, rule->capability.glob, has->len ? has->str : "no part");
    }
  }
}

/* ---- Commands that run other commands ---------------------------------------------------------------------------- */

/* Not all there are: interpreters and shells by other names go the same way. */
static const char *const WRAPPERS[] = {
    "env",   "timeout", "nice",  "ionice", "nohup", "setsid",  "stdbuf",  "chrt", "taskset",
    "xargs", "find",    "flock", "watch",  "sudo",  "busybox", "python3", "perl", "awk",
};

static gboolean restrains_commands(const Policy *policy) {
  for (Effect effect = EFFECT_DENY; effect <= EFFECT_ASK; effect++) {
    for (guint i = 0; i < policy->rules[effect]->len; i++) {
      const PolicyRule *rule = g_ptr_array_index(policy->rules[effect], i);
      if (rule->command) {
        return TRUE;
      }
    }
  }
  return FALSE;
}

/* Asked of what decides, so that every way to allow it counts. */
static gboolean allows(const Policy *policy, const char *program) {
  g_autofree char *script = g_strconcat(program, " x", NULL);
  const char *const argv[] = {"sh", "-c", script, NULL};
  g_autoptr(PolicyRequest) request = request_command(argv, TRUE);
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  return decision->effect == EFFECT_ALLOW;
}

static void advise_wrappers(const Policy *policy, JsonObject *advice) {
  if (!restrains_commands(policy)) {
    return;
  }
  g_autoptr(GString) open = g_string_new(NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(WRAPPERS); i++) {
    if (allows(policy, WRAPPERS[i])) {
      g_string_append_printf(open, "%s%s", open->len ? ", " : "", WRAPPERS[i]);
    }
  }
  if (open->len > 0) {
    advise(advice, "command_wrappers",
           "rules about commands look at the program that a line names, and this policy allows "
           "programs that run others (%s): they go round its deny and ask rules; allow only the "
           "commands that are meant, or deny or ask about these too",
           open->str);
  }
}

JsonObject *policy_advice(const Policy *policy) {
  JsonObject *advice = json_object_new_array();
  for (Effect effect = EFFECT_DENY; effect <= EFFECT_ALLOW; effect++) {
    for (guint i = 0; i < policy->rules[effect]->len; i++) {
      const PolicyRule *rule = g_ptr_array_index(policy->rules[effect], i);
      advise_unknown(rule, "capability", rule->capability.glob, advice);
      for (char **glob = rule->exclude_capabilities; glob && *glob; glob++) {
        advise_unknown(rule, "conditions.exclude_capability", *glob, advice);
      }
      advise_target(rule, advice);
    }
  }
  advise_wrappers(policy, advice);
  return advice;
}
