/* SPDX-License-Identifier: Apache-2.0 */
/* policy-load.c: a policy's JSON, checked rule by rule with the texts of behaviour 4.12. */
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/repr.h"
#include "config/check.h"
#include "governance/capabilities.h"
#include "governance/policy-private.h"

#define MOST_EXPIRES_SECONDS G_GINT64_CONSTANT(3153600000) /* a hundred years */

/* Every key of a part, sorted as they are told. */
static const char *const RULE_KEYS[] = {"capability", "command",  "conditions", "constraints",
                                        "effect",     "examples", "metadata",   "reason",
                                        "rule_id",    "target",   NULL};
static const char *const TARGET_KEYS[] = {"host",     "mcp_server", "path",
                                          "resource", "tool_name",  NULL};
static const char *const CONDITION_KEYS[] = {"data_classes",
                                             "exclude_capability",
                                             "exclude_execution_surface",
                                             "execution_surface",
                                             "host",
                                             "mcp_server",
                                             "method",
                                             "provider",
                                             "risk_level",
                                             NULL};
static const char *const CONSTRAINT_KEYS[] = {"approval_expires_seconds", "audit_required",
                                              "sandbox_required", "strict_telemetry", NULL};
static const char *const POLICY_KEYS[] = {"budget", "budgets",   "metadata", "mode",
                                          "name",   "policy_id", "profile",  "provenance",
                                          "rules",  "version",   NULL};
static const char *const MODES[] = {
    [MODE_PERMISSIVE] = "permissive", [MODE_INTERACTIVE] = "interactive", [MODE_STRICT] = "strict"};

static gboolean refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean refuse(GError **error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, text);
  return FALSE;
}

static int compare_texts(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of object that are not allowed, sorted and joined; NULL when there are none. Owned. */
static char *unknown_keys(JsonObject *object, const char *const *allowed) {
  g_autoptr(GPtrArray) unknown = g_ptr_array_new();
  json_object_object_foreach(object, key, value) {
    (void)value;
    if (!g_strv_contains(allowed, key)) {
      g_ptr_array_add(unknown, key);
    }
  }
  if (unknown->len == 0) {
    return NULL;
  }
  g_ptr_array_sort(unknown, compare_texts);
  g_ptr_array_add(unknown, NULL);
  return g_strjoinv(", ", (char **)unknown->pdata);
}

static gboolean is_text(JsonObject *value) {
  return json_object_is_type(value, json_type_string) && json_object_get_string_len(value) > 0;
}

/* Texts of the policy itself, which has no rule to name. */
static gboolean read_text(JsonObject *object, const char *key, char **ret_text, GError **error) {
  JsonObject *value = json_get(object, key);
  if (!value) {
    return TRUE;
  }
  if (!is_text(value)) {
    return refuse(error, "%s must be a non-empty string", key);
  }
  g_free(*ret_text);
  *ret_text = g_strdup(json_object_get_string(value));
  return TRUE;
}

static gboolean read_part_text(const PolicyRule *rule, const char *part, JsonObject *object,
                               const char *key, char **ret_text, GError **error) {
  JsonObject *value = json_get(object, key);
  if (value && !is_text(value)) {
    return refuse(error, "rule %s: %s.%s must be a non-empty string", rule->rule_id, part, key);
  }
  *ret_text = value ? g_strdup(json_object_get_string(value)) : NULL;
  return TRUE;
}

static gboolean read_pattern(const PolicyRule *rule, const char *part, JsonObject *object,
                             const char *key, Pattern *ret_pattern, GError **error) {
  char *glob = NULL;
  if (!read_part_text(rule, part, object, key, &glob, error)) {
    return FALSE;
  }
  pattern_set(ret_pattern, glob);
  return TRUE;
}

static gboolean read_list(const PolicyRule *rule, JsonObject *object, const char *key,
                          char ***ret_list, GError **error) {
  JsonObject *value = json_get(object, key);
  if (!value) {
    return TRUE;
  }
  gboolean ok = json_object_is_type(value, json_type_array);
  for (gsize i = 0; ok && i < json_object_array_length(value); i++) {
    ok = is_text(json_object_array_get_idx(value, i));
  }
  if (!ok) {
    return refuse(error, "rule %s: conditions.%s must be a list of non-empty strings",
                  rule->rule_id, key);
  }
  if (json_object_array_length(value) == 0) {
    /* Taken as no condition, the rule would match more than its author meant. */
    return refuse(error, "rule %s: conditions.%s must not be empty", rule->rule_id, key);
  }
  *ret_list = json_get_strv(value);
  return TRUE;
}

static gboolean read_bool(const PolicyRule *rule, JsonObject *object, const char *key,
                          gboolean *ret_value, GError **error) {
  JsonObject *value = json_get(object, key);
  if (value && !json_object_is_type(value, json_type_boolean)) {
    return refuse(error, "rule %s: constraints.%s must be a boolean", rule->rule_id, key);
  }
  *ret_value = value && json_object_get_boolean(value);
  return TRUE;
}

/* The object at key, checked for its keys; *ret_part is NULL when there is none. */
static gboolean read_part(const PolicyRule *rule, JsonObject *object, const char *key,
                          const char *const *allowed, JsonObject **ret_part, GError **error) {
  JsonObject *part = json_get(object, key);
  if (part && !json_object_is_type(part, json_type_object)) {
    return refuse(error, "rule %s: %s must be an object", rule->rule_id, key);
  }
  g_autofree char *unknown = part ? unknown_keys(part, allowed) : NULL;
  if (unknown) {
    return refuse(error, "rule %s: %s has unknown key(s) %s", rule->rule_id, key, unknown);
  }
  *ret_part = part;
  return TRUE;
}

static gboolean read_target(PolicyRule *rule, JsonObject *object, GError **error) {
  JsonObject *target = NULL;
  return read_part(rule, object, "target", TARGET_KEYS, &target, error) &&
         read_pattern(rule, "target", target, "path", &rule->path, error) &&
         read_pattern(rule, "target", target, "host", &rule->target_host, error) &&
         read_pattern(rule, "target", target, "resource", &rule->resource, error) &&
         read_pattern(rule, "target", target, "tool_name", &rule->tool_name, error) &&
         read_pattern(rule, "target", target, "mcp_server", &rule->target_mcp_server, error);
}

static gboolean read_risks(PolicyRule *rule, JsonObject *conditions, GError **error) {
  g_auto(GStrv) names = NULL;
  if (!read_list(rule, conditions, "risk_level", &names, error)) {
    return FALSE;
  }
  for (char **name = names; name && *name; name++) {
    gboolean known = FALSE;
    for (Risk risk = RISK_LOW; risk <= RISK_CRITICAL; risk++) {
      if (strcmp(*name, risk_name(risk)) == 0) {
        rule->risks |= 1u << risk;
        known = TRUE;
      }
    }
    if (!known) {
      return refuse(error,
                    "rule %s: conditions.risk_level[] must be one of: critical, high, low, medium",
                    rule->rule_id);
    }
  }
  return TRUE;
}

static gboolean check_surface(const PolicyRule *rule, const char *key, const char *surface,
                              GError **error) {
  if (!surface || g_strv_contains(CAPABILITY_SURFACES, surface)) {
    return TRUE;
  }
  g_autofree char *shown = repr_text(surface);
  g_autofree char *known = check_join(CAPABILITY_SURFACES, ", ");
  return refuse(error, "rule %s: conditions.%s: %s is no execution surface. Surfaces: %s",
                rule->rule_id, key, shown, known);
}

static gboolean read_equals(PolicyRule *rule, JsonObject *conditions, GError **error) {
  static const char PART[] = "conditions";
  return read_part_text(rule, PART, conditions, "provider", &rule->provider, error) &&
         read_part_text(rule, PART, conditions, "execution_surface", &rule->execution_surface,
                        error) &&
         read_part_text(rule, PART, conditions, "mcp_server", &rule->mcp_server, error) &&
         read_part_text(rule, PART, conditions, "method", &rule->method, error) &&
         read_pattern(rule, PART, conditions, "host", &rule->host, error);
}

static gboolean read_conditions(PolicyRule *rule, JsonObject *object, GError **error) {
  JsonObject *conditions = NULL;
  if (!read_part(rule, object, "conditions", CONDITION_KEYS, &conditions, error) ||
      !read_risks(rule, conditions, error) || !read_equals(rule, conditions, error) ||
      !read_list(rule, conditions, "data_classes", &rule->data_classes, error) ||
      !read_list(rule, conditions, "exclude_execution_surface", &rule->exclude_surfaces, error) ||
      !read_list(rule, conditions, "exclude_capability", &rule->exclude_capabilities, error) ||
      !check_surface(rule, "execution_surface", rule->execution_surface, error)) {
    return FALSE;
  }
  for (char **surface = rule->exclude_surfaces; surface && *surface; surface++) {
    if (!check_surface(rule, "exclude_execution_surface", *surface, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean read_constraints(PolicyRule *rule, JsonObject *object, GError **error) {
  JsonObject *constraints = NULL;
  gboolean audited = FALSE;
  if (!read_part(rule, object, "constraints", CONSTRAINT_KEYS, &constraints, error) ||
      !read_bool(rule, constraints, "sandbox_required", &rule->sandbox_required, error) ||
      !read_bool(rule, constraints, "strict_telemetry", &rule->strict_telemetry, error) ||
      !read_bool(rule, constraints, "audit_required", &audited, error)) {
    return FALSE;
  }
  rule->strict_telemetry = rule->strict_telemetry || audited; /* an audit that may fail is none */
  JsonObject *expires = json_get(constraints, "approval_expires_seconds");
  if (expires && !json_object_is_type(expires, json_type_int)) {
    return refuse(error, "rule %s: constraints.approval_expires_seconds must be an integer",
                  rule->rule_id);
  }
  if (expires && json_object_get_int64(expires) < 1) {
    return refuse(error, "rule %s: constraints.approval_expires_seconds must be positive",
                  rule->rule_id);
  }
  if (expires && json_object_get_int64(expires) > MOST_EXPIRES_SECONDS) {
    return refuse(error,
                  "rule %s: constraints.approval_expires_seconds must be at most %" G_GINT64_FORMAT
                  " (100 years)",
                  rule->rule_id, MOST_EXPIRES_SECONDS);
  }
  rule->approval_expires_seconds = expires ? json_object_get_int64(expires) : 0;
  return TRUE;
}

/* What the command has to begin with; the rule's own examples prove that it says what was meant. */
static gboolean read_command(PolicyRule *rule, JsonObject *object, GPtrArray *tried,
                             GError **error) {
  JsonObject *command = json_get(object, "command");
  JsonObject *examples = json_get(object, "examples");
  if (command && strcmp(rule->capability.glob, "process.exec") != 0) {
    return refuse(error, "rule %s: a command matcher applies only to process.exec, not %s",
                  rule->rule_id, rule->capability.glob);
  }
  rule->command = command ? command_matcher_new(rule->rule_id, command, error) : NULL;
  if (command && !rule->command) {
    return FALSE;
  }
  return !examples || command_matcher_try(rule->command, rule->rule_id,
                                          rule->effect == EFFECT_ALLOW, examples, tried, error);
}

/* An empty reason is as good as none: the decision then takes the next one. */
static gboolean read_reason(PolicyRule *rule, JsonObject *object, GError **error) {
  JsonObject *reason = json_get(object, "reason");
  if (reason && !json_object_is_type(reason, json_type_string)) {
    return refuse(error, "rule %s: reason must be a string", rule->rule_id);
  }
  rule->reason = is_text(reason) ? g_strdup(json_object_get_string(reason)) : NULL;
  return TRUE;
}

static gboolean check_rule(const PolicyRule *rule, JsonObject *object, GError **error) {
  JsonObject *stated = json_get(object, "effect");
  JsonObject *metadata = json_get(object, "metadata");
  const char *list = effect_name(rule->effect);
  g_autofree char *unknown = unknown_keys(object, RULE_KEYS);
  if (unknown) {
    return refuse(error, "rule %s: has unknown key(s) %s", rule->rule_id, unknown);
  }
  if (stated && !is_text(stated)) {
    return refuse(error, "rule %s: effect must be a non-empty string", rule->rule_id);
  }
  if (stated && strcmp(json_object_get_string(stated), list) != 0) {
    return refuse(error, "Rule '%s' declares effect '%s' but is stored in the %s bucket",
                  rule->rule_id, json_object_get_string(stated), list);
  }
  return !metadata || json_object_is_type(metadata, json_type_object) ||
         refuse(error, "rule %s: metadata must be an object", rule->rule_id);
}

/* The rule at place at of its list. Returns owned, or NULL. */
static PolicyRule *read_rule(JsonObject *object, Effect effect, gsize at, GPtrArray *tried,
                             GError **error) {
  const char *list = effect_name(effect);
  if (!json_object_is_type(object, json_type_object)) {
    refuse(error, "rules.%s[%zu] must be an object", list, at);
    return NULL;
  }
  JsonObject *id = json_get(object, "rule_id");
  JsonObject *capability = json_get(object, "capability");
  if (!is_text(id)) {
    refuse(error, "rules.%s[%zu].rule_id must be a non-empty string", list, at);
    return NULL;
  }
  if (!is_text(capability)) {
    refuse(error, "rule %s: capability must be a non-empty string", json_object_get_string(id));
    return NULL;
  }
  g_autoptr(PolicyRule) rule =
      policy_rule_new(json_object_get_string(id), effect, json_object_get_string(capability));
  if (!check_rule(rule, object, error) || !read_command(rule, object, tried, error) ||
      !read_reason(rule, object, error) || !read_target(rule, object, error) ||
      !read_conditions(rule, object, error) || !read_constraints(rule, object, error)) {
    return NULL;
  }
  return g_steal_pointer(&rule);
}

static gboolean read_rules(Policy *policy, JsonObject *lists, GPtrArray *tried, GError **error) {
  static const char *const LISTS[] = {"allow", "ask", "deny", NULL};
  g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
  if (lists && !json_object_is_type(lists, json_type_object)) {
    return refuse(error, "rules must be an object with the lists deny, ask and allow");
  }
  g_autofree char *unknown = lists ? unknown_keys(lists, LISTS) : NULL;
  if (unknown) {
    return refuse(error, "rules has unknown key(s) %s", unknown);
  }
  for (Effect effect = EFFECT_DENY; effect <= EFFECT_ALLOW; effect++) {
    JsonObject *list = json_get(lists, effect_name(effect));
    if (list && !json_object_is_type(list, json_type_array)) {
      return refuse(error, "%s rules must be a list", effect_name(effect));
    }
    for (gsize i = 0; list && i < json_object_array_length(list); i++) {
      PolicyRule *rule = read_rule(json_object_array_get_idx(list, i), effect, i, tried, error);
      if (!rule) {
        return FALSE;
      }
      g_ptr_array_add(policy->rules[effect], rule);
      if (!g_hash_table_add(seen, rule->rule_id)) {
        return refuse(error, "Duplicate policy rule_id: %s", rule->rule_id);
      }
    }
  }
  return TRUE;
}

static gboolean read_mode(Policy *policy, JsonObject *source, GError **error) {
  JsonObject *value = json_get(source, "mode");
  policy->mode = MODE_INTERACTIVE;
  if (!value) {
    return TRUE;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(MODES); i++) {
    if (json_object_is_type(value, json_type_string) &&
        strcmp(json_object_get_string(value), MODES[i]) == 0) {
      policy->mode = (PolicyMode)i;
      return TRUE;
    }
  }
  const char *shown = json_object_is_type(value, json_type_string)
                          ? json_object_get_string(value)
                          : json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
  return refuse(error, "'%s' is not a valid PolicyMode", shown);
}

/* A rule of a later version could mean something else here. */
static gboolean check_version(JsonObject *source, GError **error) {
  JsonObject *version = json_get(source, "version");
  if (!version || g_strcmp0(json_get_text(source, "version"), "1") == 0) {
    return TRUE;
  }
  g_autofree char *shown = repr_json(version);
  return refuse(error, "policy version must be '1', got %s", shown);
}

/* What nothing here reads still has to be of its type. */
static gboolean check_extras(JsonObject *source, GError **error) {
  static const char *const OBJECTS[] = {"metadata", "provenance"};
  JsonObject *profile = json_get(source, "profile");
  for (gsize i = 0; i < G_N_ELEMENTS(OBJECTS); i++) {
    JsonObject *value = json_get(source, OBJECTS[i]);
    if (value && !json_object_is_type(value, json_type_object)) {
      return refuse(error, "%s must be an object", OBJECTS[i]);
    }
  }
  return !profile || is_text(profile) || refuse(error, "profile must be a non-empty string");
}

/* The source as it is kept and hashed: what was left out stands in it. Owned. */
static JsonObject *with_defaults(const Policy *policy, JsonObject *source) {
  JsonObject *kept = policy_copy_json(source);
  json_add_text(kept, "version", "1");
  json_add_text(kept, "name", policy->name);
  json_add_text(kept, "mode", MODES[policy->mode]);
  return kept;
}

Policy *policy_read(JsonObject *source, const char *profile, GPtrArray *tried, GError **error) {
  g_autofree char *unknown = unknown_keys(source, POLICY_KEYS);
  if (unknown) {
    refuse(error, "policy has unknown key(s) %s", unknown);
    return NULL;
  }
  g_autoptr(Policy) policy = g_new0(Policy, 1);
  policy->references = 1;
  policy->name = g_strdup("default-policy");
  policy->profile = g_strdup(profile);
  for (gsize i = 0; i < G_N_ELEMENTS(policy->rules); i++) {
    policy->rules[i] = g_ptr_array_new_with_free_func((GDestroyNotify)policy_rule_free);
  }
  if (!check_version(source, error) || !read_text(source, "name", &policy->name, error) ||
      !read_text(source, "policy_id", &policy->id, error) || !read_mode(policy, source, error) ||
      !policy_read_budgets(policy, source, error) || !check_extras(source, error) ||
      !read_rules(policy, json_get(source, "rules"), tried, error)) {
    return NULL;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(policy->rules); i++) {
    policy->index[i] = policy_index_new(policy->rules[i]);
  }
  policy->source = with_defaults(policy, source);
  policy->hash = policy_compute_hash(policy->source);
  policy->id = policy->id ? policy->id : id_new("policy");
  return g_steal_pointer(&policy);
}

Policy *policy_new_profile(const char *name) {
  g_autoptr(JsonObject) source = policy_profile_source(name);
  return source ? policy_read(source, name, NULL, NULL) : NULL;
}

Policy *policy_new(JsonObject *object, GError **error) {
  return policy_new_trying(object, NULL, error);
}

Policy *policy_new_trying(JsonObject *object, GPtrArray *examples, GError **error) {
  if (!json_object_is_type(object, json_type_object)) {
    refuse(error, POLICY_NO_OBJECT);
    return NULL;
  }
  return policy_read(object, NULL, examples, error);
}
