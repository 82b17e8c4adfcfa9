/* SPDX-License-Identifier: Apache-2.0 */
/* harness.c: builds what a configuration describes, in the order in which behaviour 2.4 refuses. */
#include "run/harness.h"

#include <unistd.h>

#include "base/build.h"
#include "base/error.h"
#include "run/approver.h"
#include "run/guarded.h"

gboolean harness_register(const Config *config, ProviderRegistry *registry, GError **error) {
  GHashTableIter iter;
  gpointer name = NULL;
  gpointer file = NULL;
  g_hash_table_iter_init(&iter, config->registered);
  while (g_hash_table_iter_next(&iter, &name, &file)) {
    if (!provider_registry_add_file(registry, name, file, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

static Policy *choose_policy(const Config *config, GPtrArray *examples, GError **error) {
  const char *const agent_dirs[] = {config->workspace_dir, config->files_dir, NULL};
  if (config->policy_path) {
    return policy_load_trying(config->policy_path, config->project_root, agent_dirs, examples,
                              error);
  }
  return config->policy
             ? policy_new_trying(config->policy, examples, error)
             : policy_discover(config->profile, config->project_root, agent_dirs, examples, error);
}

Policy *harness_policy(const Config *config, GPtrArray *examples, GError **error) {
  g_autoptr(Policy) policy = choose_policy(config, examples, error);
  if (policy && config->budgets && !policy_set_budgets(policy, config->budgets, error)) {
    return NULL;
  }
  return g_steal_pointer(&policy);
}

static gboolean load_policy(Harness *harness, GError **error) {
  if (harness->config->governed) {
    harness->policy = harness_policy(harness->config, NULL, error);
    return harness->policy != NULL;
  }
  /* Also where nothing is governed their shape has to be right. */
  JsonObject *object = harness->config->budgets;
  g_autoptr(Budgets) budgets = object ? budgets_new(object, error) : NULL;
  return budgets || !object;
}

ProviderInstance *harness_provider(const Config *config, ProviderRegistry *registry,
                                   GError **error) {
  Provider *provider =
      config->provider ? provider_registry_load(registry, config->provider, error) : NULL;
  return provider ? provider_instance_open(registry, provider, config->provider_options, error)
                  : NULL;
}

static gboolean open_provider(Harness *harness, GError **error) {
  const Config *config = harness->config;
  if (!config->provider) {
    return TRUE;
  }
  harness->instance = harness_provider(config, harness->registry, error);
  return harness->instance && provider_instance_check(harness->instance, config->manifest, error);
}

static gboolean check_approver(const Config *config, GError **error) {
  g_autoptr(JsonObject) stored = approver_stored(config);
  return !stored || approver_check_place(stored, error);
}

static void know_credentials(Harness *harness) {
  const Config *config = harness->config;
  g_autoptr(GPtrArray) declared = g_ptr_array_new_with_free_func(g_free);
  for (char **value = config->credentials; *value; value++) {
    g_ptr_array_add(declared, g_strdup(*value));
  }
  if (harness->instance) {
    provider_instance_secrets(harness->instance, declared);
  }
  g_ptr_array_add(declared, NULL);
  harness->privacy = privacy_new(&config->privacy, (const char *const *)declared->pdata,
                                 (const char *const *)environ);
}

Harness *harness_new(Config *take_config, ProviderRegistry *registry, GError **error) {
  g_autoptr(Harness) harness = g_new0(Harness, 1);
  harness->config = take_config;
  harness->registry = registry;
  if (!harness_register(harness->config, registry, error) || !load_policy(harness, error) ||
      !check_approver(harness->config, error) || !open_provider(harness, error)) {
    return NULL;
  }
  harness->files_dir = guarded_resolve(harness->config->files_dir);
  harness->guarded = guarded_places(harness->config, harness->policy);
  if (!guarded_check_mount(harness, error)) {
    return NULL; /* before a person is asked about it */
  }
  know_credentials(harness);
  return g_steal_pointer(&harness);
}

void harness_free(Harness *harness) {
  if (!harness) {
    return;
  }
  g_clear_pointer(&harness->instance, provider_instance_close);
  g_clear_pointer(&harness->policy, policy_unref);
  g_free(harness->files_dir);
  g_clear_pointer(&harness->guarded, g_ptr_array_unref);
  g_clear_pointer(&harness->config, config_free);
  g_clear_pointer(&harness->privacy, privacy_free);
  g_free(harness);
}

gboolean harness_executes(const Harness *harness, GError **error) {
  const char *why = NULL;
  if (!harness->config->governed) {
    why = "governance is off (governance_config.enabled is false), so there is no execute tool; "
          "remove that setting";
  } else if (!harness->instance) {
    why = "no sandbox is configured; name a provider in governance_config.sandbox_config.provider";
  } else if (!provider_instance_executes(harness->instance)) {
    why = "the provider none runs no commands; choose another one";
  } else if (provider_instance_is_test(harness->instance) && !harness->config->allow_test_runtime) {
    why = "a test runtime stands in for a sandbox only with "
          "governance_config.allow_test_sandbox_runtime set to true";
  } else {
    return TRUE;
  }
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, why);
  return FALSE;
}

static void warn(JsonObject *warnings, const char *code, const char *message) {
  JsonObject *warning = json_object_new_object();
  json_add_text(warning, "code", code);
  json_add_text(warning, "message", message);
  json_object_array_add(warnings, warning);
}

/* What weakens every run. Owned. */
static JsonObject *security_warnings(const Harness *harness) {
  JsonObject *warnings = json_object_new_array();
  if (!harness->config->governed && harness->config->provider &&
      g_strcmp0(harness->config->provider, "none") != 0) {
    warn(warnings, "sandbox_unused_without_governance",
         "A sandbox is configured but governance is off, so nothing runs in it; enable governance "
         "to "
         "use it.");
  }
  if (harness->config->record_in_memory) {
    warn(
        warnings, "storage_not_applied",
        "telemetry_config.storage \"memory\" is not applied by this version: the record is a file; "
        "storage_path or --record says which.");
  }
  if (harness->instance && !provider_instance_isolates(harness->instance)) {
    warn(warnings, "host_execution_not_contained",
         "Commands run directly on this machine, not in a sandbox.");
  }
  return warnings;
}

JsonObject *harness_warnings(const Harness *harness) {
  JsonObject *warnings = security_warnings(harness);
  g_autoptr(JsonObject) advice = harness->policy ? policy_advice(harness->policy) : NULL;
  for (gsize i = 0; advice && i < json_object_array_length(advice); i++) {
    json_object_array_add(warnings, json_object_get(json_object_array_get_idx(advice, i)));
  }
  return warnings;
}

JsonObject *harness_header(const Harness *harness) {
  JsonObject *header = json_object_new_object();
  json_add_text(header, "agent_name", harness->config->agent_name);
  json_add_text(header, "session_id", harness->config->session_id);
  json_add_text(header, "sandhost_version", SANDHOST_VERSION);
  json_add_text(header, "provider", harness->config->provider);
  json_add_bool(header, "isolated",
                harness->instance && provider_instance_isolates(harness->instance));

  JsonObject *governance = json_object_new_object();
  json_add_bool(governance, "enabled", harness->config->governed);
  json_add_text(governance, "profile", harness->policy ? policy_profile(harness->policy) : NULL);
  json_add_text(governance, "policy_hash", harness->policy ? policy_hash(harness->policy) : NULL);
  const Budgets *budgets = harness->policy ? policy_budgets(harness->policy) : NULL;
  if (budgets && budgets->application_id) {
    json_add_text(header, "application_id", budgets->application_id);
  }
  json_add_take(header, "governance", governance);

  JsonObject *limits = json_object_new_object();
  json_add_int(limits, "tool_call_timeout", harness->config->tool_call_timeout);
  json_add_take(header, "limits", limits);
  json_add_take(header, "privacy", privacy_config_json(&harness->config->privacy));
  json_add_take(header, "security_warnings", security_warnings(harness));
  return header;
}
