/* SPDX-License-Identifier: Apache-2.0 */
/* governance-config.c: governance_config, key by key, with the texts of behaviour 1.2. */
#include <string.h>

#include "config/check.h"
#include "config/config-private.h"

#define WHERE "governance_config"
#define MOST_WORDS 64 /* of a command line */

static const char *const KEYS[] = {"allow_static_high_risk_approvals",
                                   "allow_test_sandbox_runtime",
                                   "approval_mode",
                                   "approval_resolver",
                                   "approver_check",
                                   "budgets",
                                   "enabled",
                                   "policy",
                                   "policy_path",
                                   "profile",
                                   "project_root",
                                   "sandbox_config",
                                   "sandbox_manifest",
                                   "sandbox_runtime",
                                   "workspace_bridge",
                                   NULL};

static gboolean is_type(JsonObject *value, json_type type) {
  return value && json_object_is_type(value, type);
}

static gboolean read_modes(Config *config, JsonObject *object, GError **error) {
  gboolean unused = FALSE;
  config->enabled_was_given = json_object_object_get_ex(object, "enabled", NULL);
  if (!check_bool(object, WHERE, "enabled", &config->governed, error) ||
      !check_bool(object, WHERE, "allow_static_high_risk_approvals", &unused, error) ||
      !check_bool(object, WHERE, "allow_test_sandbox_runtime", &config->allow_test_runtime,
                  error)) {
    return FALSE;
  }
  const char *text = json_get_text(object, "approval_mode");
  if (json_object_object_get_ex(object, "approval_mode", NULL) && g_strcmp0(text, "suspend") != 0 &&
      g_strcmp0(text, "fail") != 0) {
    return check_refuse(error, WHERE ".approval_mode must be 'suspend' or 'fail'");
  }
  config->approval_fails = g_strcmp0(text, "fail") == 0;
  if (json_get(object, "approval_resolver")) {
    return check_refuse(error, WHERE
                        ".approval_resolver: a resolver can only be given by a program; remove it");
  }
  return TRUE;
}

static gboolean read_path(JsonObject *object, const char *key, char **ret_path, GError **error) {
  JsonObject *value = json_get(object, key);
  if (!value) {
    return TRUE;
  }
  if (!is_type(value, json_type_string) || !*json_object_get_string(value)) {
    return check_refuse(error, WHERE ".%s must be a string or path-like", key);
  }
  g_free(*ret_path);
  *ret_path = g_canonicalize_filename(json_object_get_string(value), NULL);
  return TRUE;
}

/* A program, its path made absolute, and its arguments. */
static gboolean read_approver_check(Config *config, JsonObject *object, GError **error) {
  if (!json_get(object, "approver_check")) {
    return TRUE;
  }
  gboolean ok = check_strv(object, WHERE, "approver_check", &config->approver_check, NULL) &&
                config->approver_check[0] && strchr(config->approver_check[0], '/') &&
                g_strv_length(config->approver_check) <= MOST_WORDS;
  if (!ok) {
    return check_refuse(error, WHERE ".approver_check must be a list of strings: the path of a "
                                     "program, with a / in it, and its arguments");
  }
  char *path = g_canonicalize_filename(config->approver_check[0], NULL);
  g_free(config->approver_check[0]);
  config->approver_check[0] = path;
  return TRUE;
}

/* Which policy is in force: behaviour 1.2's truth table. */
static gboolean read_policy(Config *config, JsonObject *object, GError **error) {
  static const char *const PROFILES[] = {"permissive-dev", "interactive-dev", "strict-production",
                                         NULL};
  JsonObject *profile = json_get(object, "profile");
  JsonObject *policy = json_get(object, "policy");
  if (profile && (!is_type(profile, json_type_string) ||
                  !g_strv_contains(PROFILES, json_object_get_string(profile)))) {
    return check_refuse(
        error,
        WHERE ".profile must be one of {'permissive-dev', 'interactive-dev', 'strict-production'}");
  }
  if (policy && json_get(object, "policy_path")) {
    return check_refuse(error, WHERE " cannot set both policy and policy_path");
  }
  if (policy && !is_type(policy, json_type_object)) {
    return check_refuse(error, WHERE ".policy must be a dict or PolicyEnvelope");
  }
  if (!read_path(object, "policy_path", &config->policy_path, error) ||
      !read_path(object, "project_root", &config->project_root, error)) {
    return FALSE;
  }
  config->policy = json_object_get(policy);
  g_clear_pointer(&config->profile, g_free);
  if (config->governed && !policy && !config->policy_path) {
    const char *fallback = config->enabled_was_given ? "interactive-dev" : "permissive-dev";
    config->profile = g_strdup(profile ? json_object_get_string(profile) : fallback);
  }
  return TRUE;
}

static gboolean read_budgets(Config *config, JsonObject *object, GError **error) {
  JsonObject *budgets = json_get(object, "budgets");
  if (budgets && !is_type(budgets, json_type_object)) {
    return check_refuse(error, WHERE ".budgets must be a dict");
  }
  config->budgets = json_object_get(budgets);
  return TRUE;
}

static int compare_names(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static gboolean check_provider(const Config *config, const char *name, const char *const *known,
                               GError **error) {
  static const char *const NOBODY[] = {NULL};
  known = known ? known : NOBODY;
  if (g_strv_contains(known, name) || g_hash_table_contains(config->registered, name)) {
    return TRUE;
  }
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  for (gsize i = 0; known[i]; i++) {
    g_ptr_array_add(names, g_strdup(known[i]));
  }
  GHashTableIter iter;
  gpointer registered = NULL;
  g_hash_table_iter_init(&iter, config->registered);
  while (g_hash_table_iter_next(&iter, &registered, NULL)) {
    if (!g_strv_contains(known, registered)) {
      g_ptr_array_add(names, g_strdup(registered));
    }
  }
  g_ptr_array_sort(names, compare_names);
  g_ptr_array_add(names, NULL);
  g_autofree char *list = check_join((const char *const *)names->pdata, ", ");
  return check_refuse(
      error, WHERE ".sandbox_config.provider must be a registered sandbox provider: %s", list);
}

static gboolean read_sandbox(Config *config, JsonObject *object, const char *const *known,
                             GError **error) {
  static const char *const SANDBOX_KEYS[] = {"options", "provider", NULL};
  JsonObject *sandbox = json_get(object, "sandbox_config");
  JsonObject *runtime = json_get(object, "sandbox_runtime");
  if (sandbox && runtime) {
    return check_refuse(error, WHERE " cannot set both sandbox_runtime and sandbox_config");
  }
  if (runtime) {
    return check_refuse(error, WHERE
                        ".sandbox_runtime: a runtime object can only be given by a program, see "
                        "sandhost.h; name a provider in " WHERE ".sandbox_config");
  }
  if (!sandbox) {
    return TRUE;
  }
  if (is_type(sandbox, json_type_string)) {
    config->provider = g_strdup(json_object_get_string(sandbox));
    return check_provider(config, config->provider, known, error);
  }
  if (!is_type(sandbox, json_type_object)) {
    return check_refuse(error, WHERE ".sandbox_config must be a dict or string");
  }
  if (!check_keys(sandbox, WHERE ".sandbox_config", SANDBOX_KEYS, error)) {
    return FALSE;
  }
  JsonObject *options = NULL;
  const char *name = json_get_text(sandbox, "provider");
  if (!check_provider(config, name ? name : "", known, error) ||
      !check_object(sandbox, WHERE ".sandbox_config", "options", &options, error)) {
    return FALSE;
  }
  config->provider = g_strdup(name);
  config->provider_options = json_object_get(options);
  return TRUE;
}

static gboolean read_manifest(Config *config, JsonObject *object, GError **error) {
  JsonObject *manifest = json_get(object, "sandbox_manifest");
  config->manifest_was_given = manifest != NULL;
  Manifest *read = manifest_new(manifest, error);
  if (read) {
    manifest_free(config->manifest);
    config->manifest = read;
  }
  return read != NULL;
}

static gboolean read_globs(JsonObject *bridge, const char *key, char ***ret_globs, GError **error) {
  gboolean ok = check_strv(bridge, WHERE ".workspace_bridge", key, ret_globs, NULL);
  for (gsize i = 0; ok && (*ret_globs)[i]; i++) {
    ok = *(*ret_globs)[i] != '\0';
  }
  if (!ok) {
    return check_refuse(error, WHERE ".workspace_bridge.%s must be a list of glob strings", key);
  }
  return TRUE;
}

static gboolean read_limit(JsonObject *bridge, const char *key, gint64 most, guint64 *ret_limit,
                           GError **error) {
  gint64 limit = (gint64)*ret_limit;
  if (!check_int(bridge, WHERE ".workspace_bridge", key, 1, most, &limit, error)) {
    return FALSE;
  }
  *ret_limit = (guint64)limit;
  return TRUE;
}

static gboolean read_bridge(Config *config, JsonObject *object, GError **error) {
  static const char *const BRIDGE_KEYS[] = {"exclude",        "include",   "max_copy_bytes",
                                            "max_file_bytes", "max_files", NULL};
  JsonObject *bridge = json_get(object, "workspace_bridge");
  if (!bridge) {
    return TRUE;
  }
  if (!is_type(bridge, json_type_object)) {
    return check_refuse(
        error,
        WHERE ".workspace_bridge must be a dict with 'include' and/or 'exclude' lists of glob "
              "patterns");
  }
  return check_keys(bridge, WHERE ".workspace_bridge", BRIDGE_KEYS, error) &&
         read_globs(bridge, "include", &config->include, error) &&
         read_globs(bridge, "exclude", &config->exclude, error) &&
         read_limit(bridge, "max_files", 100000, &config->max_files, error) &&
         read_limit(bridge, "max_file_bytes", G_GINT64_CONSTANT(1) << 30, &config->max_file_bytes,
                    error) &&
         read_limit(bridge, "max_copy_bytes", G_GINT64_CONSTANT(1) << 32, &config->max_copy_bytes,
                    error);
}

gboolean config_read_governance(Config *config, JsonObject *object,
                                const char *const *provider_names, GError **error) {
  if (!is_type(object, json_type_object)) {
    return check_refuse(error, WHERE " must be a dict");
  }
  return check_keys(object, WHERE, KEYS, error) && read_modes(config, object, error) &&
         read_approver_check(config, object, error) && read_policy(config, object, error) &&
         read_budgets(config, object, error) &&
         read_sandbox(config, object, provider_names, error) &&
         read_manifest(config, object, error) && read_bridge(config, object, error);
}
