/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy-match.c: which rules of a list match a request (behaviour 4.5 and 5.1).
 *
 * Nearly every rule names one capability in full, and every rule about commands its programs, so a
 * decision looks at those that name what the request has, whatever else a long policy holds.
 */
#include <string.h>

#include "base/glob.h"
#include "governance/policy-private.h"

struct PolicyIndex {
  GHashTable *by_capability; /* literal -> Places of rules without a command matcher */
  GArray *globs;             /* Places of the others without one */
  GHashTable *by_program;    /* name -> Places of rules with a command matcher */
  GArray *commands;          /* Places of all of those */
};

/* ---- One rule -------------------------------------------------------------------------------- */

static gboolean names_target(const PolicyRule *rule) {
  return rule->path.glob || rule->resource.glob || rule->tool_name.glob;
}

static const char *misses_target(const PolicyRule *rule, const PolicyRequest *request) {
  const char *host = request->host ? request->host : request->target_host;
  const char *server = request->mcp_server ? request->mcp_server : request->target_mcp_server;
  if (names_target(rule) && !request->has_target) {
    return "target";
  }
  if (!pattern_matches(&rule->path, request->target_path)) {
    return "target.path";
  }
  if (!pattern_matches(&rule->resource, request->target_resource)) {
    return "target.resource";
  }
  if (!pattern_matches(&rule->tool_name, request->target_tool_name)) {
    return "target.tool_name";
  }
  if (!pattern_matches(&rule->target_host, host)) {
    return "target.host";
  }
  return pattern_matches(&rule->target_mcp_server, server) ? NULL : "target.mcp_server";
}

/* Deny and ask: any class in common. Allow: every class of the request is listed. */
static gboolean classes_match(const PolicyRule *rule, const PolicyRequest *request) {
  if (!rule->data_classes) {
    return TRUE;
  }
  gboolean all = TRUE;
  gboolean any = FALSE;
  for (char **class = request->data_classes; class && *class; class ++) {
    gboolean listed = g_strv_contains((const char *const *)rule->data_classes, *class);
    all = all && listed;
    any = any || listed;
  }
  return rule->effect == EFFECT_ALLOW ? all : any;
}

static gboolean excludes_surface(const PolicyRule *rule, const char *surface) {
  return rule->exclude_surfaces && surface &&
         g_strv_contains((const char *const *)rule->exclude_surfaces, surface);
}

static gboolean equal_or_any(const char *wanted, const char *text) {
  return !wanted || g_strcmp0(wanted, text) == 0;
}

static gboolean method_matches(const char *wanted, const char *method) {
  return !wanted || (method && g_ascii_strcasecmp(wanted, method) == 0);
}

static const char *misses_conditions(const PolicyRule *rule, const PolicyRequest *request) {
  const char *host = request->host ? request->host : request->target_host;
  if (rule->risks && !(rule->risks & 1u << request->risk)) {
    return "conditions.risk_level";
  }
  if (!method_matches(rule->method, request->method)) {
    return "conditions.method";
  }
  if (excludes_surface(rule, request->execution_surface)) {
    return "conditions.exclude_execution_surface";
  }
  if (glob_match_any((const char *const *)rule->exclude_capabilities, request->capability)) {
    return "conditions.exclude_capability";
  }
  if (!equal_or_any(rule->provider, request->provider)) {
    return "conditions.provider";
  }
  if (!equal_or_any(rule->execution_surface, request->execution_surface)) {
    return "conditions.execution_surface";
  }
  if (!equal_or_any(rule->mcp_server, request->mcp_server)) {
    return "conditions.mcp_server";
  }
  if (!pattern_matches(&rule->host, host)) {
    return "conditions.host";
  }
  return classes_match(rule, request) ? NULL : "conditions.data_classes";
}

const char *policy_rule_misses(const PolicyRule *rule, const PolicyRequest *request) {
  if (!pattern_matches(&rule->capability, request->capability)) {
    return "capability";
  }
  const char *missed = misses_target(rule, request);
  return missed ? missed : misses_conditions(rule, request);
}

/* ---- The index ------------------------------------------------------------------------------- */

static GArray *places_new(void) {
  return g_array_new(FALSE, FALSE, sizeof(guint));
}

/* Keys are the rules' own. */
static GHashTable *places_by_text(void) {
  return g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_array_unref);
}

static void add_place(GHashTable *table, char *key, guint place) {
  GArray *places = g_hash_table_lookup(table, key);
  if (!places) {
    places = places_new();
    g_hash_table_insert(table, key, places);
  }
  /* A program that the rule names twice. */
  if (places->len == 0 || g_array_index(places, guint, places->len - 1) != place) {
    g_array_append_val(places, place);
  }
}

PolicyIndex *policy_index_new(const GPtrArray *rules) {
  PolicyIndex *index = g_new0(PolicyIndex, 1);
  index->by_capability = places_by_text();
  index->globs = places_new();
  index->by_program = places_by_text();
  index->commands = places_new();
  for (guint place = 0; place < rules->len; place++) {
    const PolicyRule *rule = g_ptr_array_index(rules, place);
    if (rule->command) {
      g_array_append_val(index->commands, place);
      for (char **program = rule->command->words[0]; *program; program++) {
        add_place(index->by_program, *program, place);
      }
    } else if (rule->capability.kind == PATTERN_LITERAL) {
      add_place(index->by_capability, rule->capability.glob, place);
    } else {
      g_array_append_val(index->globs, place);
    }
  }
  return index;
}

void policy_index_free(PolicyIndex *index) {
  if (!index) {
    return;
  }
  g_hash_table_unref(index->by_capability);
  g_array_unref(index->globs);
  g_hash_table_unref(index->by_program);
  g_array_unref(index->commands);
  g_free(index);
}

/* ---- A list ---------------------------------------------------------------------------------- */

/* What is known of each rule of the list; zeroed. */
typedef enum { RULE_UNKNOWN, RULE_MISSES, RULE_MATCHES } RuleState;

typedef struct {
  const GPtrArray *rules;
  const PolicyRequest *request;
  guint8 *states; /* RuleState by place */
  guint matched;
} Matching;

static const PolicyRule *rule_at(const Matching *matching, const GArray *places, guint i,
                                 guint *ret_place) {
  *ret_place = g_array_index(places, guint, i);
  return g_ptr_array_index(matching->rules, *ret_place);
}

static void match_plain(Matching *matching, const GArray *places) {
  for (guint i = 0; places && i < places->len; i++) {
    guint place;
    if (!policy_rule_misses(rule_at(matching, places, i, &place), matching->request)) {
      matching->states[place] = RULE_MATCHES;
      matching->matched++;
    }
  }
}

/* Whether any rule among these that meets the request matches the command. */
static gboolean match_command(Matching *matching, const GArray *places,
                              const SimpleCommand *command, gboolean allows) {
  gboolean covered = FALSE;
  for (guint i = 0; places && i < places->len; i++) {
    guint place;
    const PolicyRule *rule = rule_at(matching, places, i, &place);
    guint8 *state = &matching->states[place];
    /* One match is enough for a rule that restrains, but not for one that has to cover the line. */
    if (*state == RULE_MISSES || (*state == RULE_MATCHES && !allows) ||
        !command_matcher_matches(rule->command, command, allows)) {
      continue;
    }
    if (*state == RULE_UNKNOWN && policy_rule_misses(rule, matching->request)) {
      *state = RULE_MISSES;
      continue;
    }
    matching->matched += *state == RULE_MATCHES ? 0 : 1;
    *state = RULE_MATCHES;
    covered = TRUE;
  }
  return covered;
}

static void match_commands(Matching *matching, const PolicyIndex *index, gboolean allows) {
  const CommandLine *line = matching->request->command;
  gboolean covered = TRUE;
  guint before = matching->matched;
  for (guint i = 0; i < line->count && (covered || !allows); i++) {
    const SimpleCommand *command = &line->commands[i];
    GArray *places = g_hash_table_lookup(index->by_program, command_base_name(command->words[0]));
    gboolean matched = match_command(matching, places, command, allows);
    covered = covered && matched;
  }
  if (allows && !covered) {
    for (guint i = 0; i < index->commands->len; i++) {
      matching->states[g_array_index(index->commands, guint, i)] = RULE_MISSES;
    }
    matching->matched = before;
  }
}

GArray *policy_match(const Policy *policy, Effect effect, const PolicyRequest *request) {
  const PolicyIndex *index = policy->index[effect];
  const GPtrArray *rules = policy->rules[effect];
  g_autofree guint8 *states = g_malloc0(rules->len);
  Matching matching = {.rules = rules, .request = request, .states = states};
  match_plain(&matching, g_hash_table_lookup(index->by_capability, request->capability));
  match_plain(&matching, index->globs);
  if (index->commands->len > 0 && !policy_request_opaque(request)) {
    match_commands(&matching, index, effect == EFFECT_ALLOW);
  }
  if (matching.matched == 0) {
    return NULL;
  }
  GArray *places = g_array_sized_new(FALSE, FALSE, sizeof(guint), matching.matched);
  for (guint place = 0; place < rules->len; place++) {
    if (states[place] == RULE_MATCHES) {
      g_array_append_val(places, place);
    }
  }
  return places;
}

gboolean policy_names_commands(const Policy *policy, const PolicyRequest *request) {
  for (gsize list = 0; list < G_N_ELEMENTS(policy->index); list++) {
    const GArray *places = policy->index[list]->commands;
    for (guint i = 0; i < places->len; i++) {
      guint place = g_array_index(places, guint, i);
      if (!policy_rule_misses(g_ptr_array_index(policy->rules[list], place), request)) {
        return TRUE;
      }
    }
  }
  return FALSE;
}

const char *policy_request_opaque(const PolicyRequest *request) {
  return request->command ? request->command->reason : "no command";
}
