/* SPDX-License-Identifier: Apache-2.0 */
/* policy-profiles.c: the three built-in policies (behaviour 4.10), as rows that become the JSON
 * that a user would write, and are read like it. */
#include "governance/policy-private.h"

typedef struct {
  Effect effect;
  const char *rule_id;
  const char *capability;
  const char *reason;
  const char *surface;     /* conditions.execution_surface */
  const char *not_surface; /* conditions.exclude_execution_surface */
  const char *not_capability;
  const char *classes; /* conditions.data_classes, separated by a space */
  const char *risks;   /* conditions.risk_level, separated by a space */
  gboolean sandbox_required;
} Row;

typedef struct {
  const char *name;
  const char *mode;
  const Row *rows;
  gsize count;
} Profile;

#define DENY_CREDENTIALS                                                                           \
  {                                                                                                \
    .effect = EFFECT_DENY, .rule_id = "deny_credential_or_system_prompt_flow", .capability = "*",  \
    .classes = "credential system_prompt",                                                         \
    .reason = "Credential and system prompt data require a brokered boundary."                     \
  }
#define DENY_RAW_SECRETS                                                                           \
  { .effect = EFFECT_DENY, .rule_id = "deny_raw_secret_read", .capability = "secret.read" }
#define ASK_SANDBOX_NETWORK                                                                        \
  {                                                                                                \
    .effect = EFFECT_ASK, .rule_id = "ask_sandbox_network",                                        \
    .capability = "sandbox.network.configure",                                                     \
    .reason = "Turning the sandbox network on needs approval."                                     \
  }
#define ASK_SANDBOX_MOUNT                                                                          \
  {                                                                                                \
    .effect = EFFECT_ASK, .rule_id = "ask_sandbox_host_mount",                                     \
    .capability = "sandbox.filesystem.mount",                                                      \
    .reason = "Mounting host files into the sandbox needs approval."                               \
  }
#define ALLOW_SANDBOXED                                                                            \
  {                                                                                                \
    .effect = EFFECT_ALLOW, .rule_id = "allow_sandboxed_execution", .capability = "process.exec",  \
    .surface = "sandbox", .sandbox_required = TRUE                                                 \
  }
#define ASK(id, what)                                                                              \
  { .effect = EFFECT_ASK, .rule_id = (id), .capability = (what) }
#define ALLOW(id, what)                                                                            \
  { .effect = EFFECT_ALLOW, .rule_id = (id), .capability = (what) }

static const Row PERMISSIVE[] = {
    DENY_CREDENTIALS,
    DENY_RAW_SECRETS,
    {.effect = EFFECT_DENY,
     .rule_id = "deny_unconfigured_secret_broker_use",
     .capability = "secret.use",
     .reason = "Brokered secret use needs explicit policy."},
    {.effect = EFFECT_DENY,
     .rule_id = "deny_unrestricted_process_exec",
     .capability = "process.exec",
     .not_surface = "sandbox",
     .reason = "Host process execution needs explicit policy."},
    {.effect = EFFECT_DENY,
     .rule_id = "deny_unrestricted_host_filesystem_access",
     .capability = "filesystem.*",
     .reason = "Host filesystem access needs explicit policy."},
    {.effect = EFFECT_DENY,
     .rule_id = "deny_unrestricted_network_egress",
     .capability = "network.*",
     .reason = "Network egress needs explicit policy."},
    {.effect = EFFECT_DENY,
     .rule_id = "deny_unrestricted_package_install",
     .capability = "package.install",
     .reason = "Package installation needs explicit policy."},
    ASK_SANDBOX_NETWORK,
    ASK_SANDBOX_MOUNT,
    ALLOW_SANDBOXED,
    ALLOW("allow_sandbox_setup", "sandbox.*"),
    ALLOW("allow_skill_scripts", "skill.*"),
    ALLOW("allow_code_mode", "code.*"),
    ALLOW("allow_local_dev_workspace", "workspace.*"),
    ALLOW("allow_local_tools", "tool.local.call"),
    ALLOW("allow_memory_and_telemetry", "memory.*"),
    ALLOW("allow_telemetry", "telemetry.*"),
    ALLOW("allow_subagent_spawn", "subagent.*"),
    ALLOW("allow_background_execution", "background.*"),
    ALLOW("allow_configured_mcp_servers", "mcp.server.*"),
    ALLOW("allow_configured_mcp_tools", "tool.mcp.call"),
};

static const Row INTERACTIVE[] = {
    DENY_CREDENTIALS,
    DENY_RAW_SECRETS,
    {.effect = EFFECT_ASK,
     .rule_id = "ask_process_exec",
     .capability = "process.*",
     .not_surface = "sandbox"},
    ASK_SANDBOX_NETWORK,
    ASK_SANDBOX_MOUNT,
    ASK("ask_network_egress", "network.*"),
    ASK("ask_package_install", "package.install"),
    ASK("ask_secret_broker_use", "secret.use"),
    ASK("ask_mcp_tool_call", "tool.mcp.call"),
    ASK("ask_mcp_server_start", "mcp.server.*"),
    ASK("ask_subagent_spawn", "subagent.*"),
    ASK("ask_background_execution", "background.*"),
    {.effect = EFFECT_ASK,
     .rule_id = "ask_high_risk",
     .capability = "*",
     .risks = "high critical",
     .not_surface = "sandbox",
     .not_capability = "skill.script.run"},
    ALLOW_SANDBOXED,
    ALLOW("allow_sandbox_setup", "sandbox.*"),
    ALLOW("allow_skill_scripts", "skill.*"),
    ALLOW("allow_code_mode", "code.*"),
    ALLOW("allow_local_tools", "tool.local.call"),
    ALLOW("allow_workspace", "workspace.*"),
    ALLOW("allow_memory", "memory.*"),
    ALLOW("allow_telemetry", "telemetry.*"),
};

static const Row STRICT[] = {
    DENY_CREDENTIALS,
    DENY_RAW_SECRETS,
    ALLOW("allow_governance_telemetry", "telemetry.governance.*"),
};

static const Profile PROFILES[] = {
    {.name = "permissive-dev",
     .mode = "permissive",
     .rows = PERMISSIVE,
     .count = G_N_ELEMENTS(PERMISSIVE)},
    {.name = "interactive-dev",
     .mode = "interactive",
     .rows = INTERACTIVE,
     .count = G_N_ELEMENTS(INTERACTIVE)},
    {.name = "strict-production", .mode = "strict", .rows = STRICT, .count = G_N_ELEMENTS(STRICT)},
};

static void add_words(JsonObject *object, const char *key, const char *words) {
  if (words) {
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    json_add_take(object, key, json_from_strv((const char *const *)list));
  }
}

static JsonObject *row_json(const Row *row) {
  JsonObject *rule = json_object_new_object();
  json_add_text(rule, "rule_id", row->rule_id);
  json_add_text(rule, "capability", row->capability);
  JsonObject *conditions = json_object_new_object();
  add_words(conditions, "data_classes", row->classes);
  add_words(conditions, "risk_level", row->risks);
  add_words(conditions, "exclude_execution_surface", row->not_surface);
  add_words(conditions, "exclude_capability", row->not_capability);
  if (row->surface) {
    json_add_text(conditions, "execution_surface", row->surface);
  }
  if (json_object_object_length(conditions) > 0) {
    json_add_take(rule, "conditions", conditions);
  } else {
    json_object_put(conditions);
  }
  if (row->sandbox_required) {
    JsonObject *constraints = json_object_new_object();
    json_add_bool(constraints, "sandbox_required", TRUE);
    json_add_take(rule, "constraints", constraints);
  }
  if (row->reason) {
    json_add_text(rule, "reason", row->reason);
  }
  return rule;
}

JsonObject *policy_profile_source(const char *name) {
  for (gsize i = 0; i < G_N_ELEMENTS(PROFILES); i++) {
    const Profile *profile = &PROFILES[i];
    if (g_strcmp0(profile->name, name) != 0) {
      continue;
    }
    JsonObject *lists[3] = {json_object_new_array(), json_object_new_array(),
                            json_object_new_array()};
    for (gsize at = 0; at < profile->count; at++) {
      json_object_array_add(lists[profile->rows[at].effect], row_json(&profile->rows[at]));
    }
    JsonObject *rules = json_object_new_object();
    for (Effect effect = EFFECT_DENY; effect <= EFFECT_ALLOW; effect++) {
      json_add_take(rules, effect_name(effect), lists[effect]);
    }
    JsonObject *source = json_object_new_object();
    json_add_text(source, "version", "1");
    json_add_text(source, "name", profile->name);
    json_add_text(source, "mode", profile->mode);
    json_add_text(source, "profile", profile->name);
    json_add_take(source, "rules", rules);
    return source;
  }
  return NULL;
}
