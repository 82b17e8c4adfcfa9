/* SPDX-License-Identifier: Apache-2.0 */
/* config.c: the configuration's outer shape, and what this program takes from agent_config
 * (behaviour 1.1). */
#include "config/config.h"

#include <string.h>

#include "base/repr.h"
#include "config/check.h"
#include "config/config-private.h"
#include "config/credentials.h"
#include "config/settings.h"

#define REGISTER "register_sandbox_provider"

/* The types of all settings are checked before this. */
static gboolean read_workspace(Config *config, JsonObject *agent, GError **error) {
  JsonObject *workspace = json_get(agent, "workspace_config");
  const char *folder = json_get_text(workspace, "workspace_dir");
  const char *files = json_get_text(workspace, "files_dir");
  if (files && !g_file_test(files, G_FILE_TEST_IS_DIR)) {
    g_autofree char *shown = repr_text(files);
    return check_refuse(
        error, "agent_config.workspace_config.files_dir must be a folder that exists, got %s",
        shown);
  }
  if (folder) {
    g_free(config->workspace_dir);
    config->workspace_dir = g_canonicalize_filename(folder, NULL);
  }
  g_free(config->files_dir);
  config->files_dir = files ? g_canonicalize_filename(files, NULL)
                            : g_build_filename(config->workspace_dir, "files", NULL);
  return TRUE;
}

static gboolean read_telemetry(Config *config, JsonObject *agent, GError **error) {
  JsonObject *telemetry = json_get(agent, "telemetry_config");
  const char *path = json_get_text(telemetry, "storage_path");
  if (path && g_str_has_suffix(path, "/")) {
    g_autofree char *shown = repr_text(path);
    return check_refuse(error, "agent_config.telemetry_config.storage_path must be a file, got %s",
                        shown);
  }
  if (path) {
    g_free(config->record_path);
    config->record_path = g_canonicalize_filename(path, NULL);
  }
  config->keep_output_bytes =
      (guint64)json_get_int(telemetry, "keep_output_bytes", (gint64)config->keep_output_bytes);
  config->retention_days = json_get_int(telemetry, "retention_days", 0);
  config->retention_max_bytes = json_get_int(telemetry, "retention_max_bytes", 0);
  config->record_in_memory = g_strcmp0(json_get_text(telemetry, "storage"), "memory") == 0;
  privacy_config_read(&config->privacy, &config->capture, agent);
  return TRUE;
}

static gboolean read_agent(Config *config, JsonObject *agent, const char *const *provider_names,
                           GError **error) {
  if (!settings_check(agent, error) || !read_workspace(config, agent, error) ||
      !read_telemetry(config, agent, error)) {
    return FALSE;
  }
  config->tool_call_timeout = json_get_int(agent, "tool_call_timeout", config->tool_call_timeout);
  config->enable_workspace_files =
      json_get_bool(agent, "enable_workspace_files", config->enable_workspace_files);
  config->agent_config = json_object_get(agent);
  JsonObject *governance = json_get(agent, "governance_config");
  return !governance || config_read_governance(config, governance, provider_names, error);
}

static gboolean is_name(const char *name) {
  gsize length = strlen(name);
  return g_ascii_islower(*name) && length <= 32 &&
         strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

/* base is the folder that relative files are in; NULL: there is none. */
static gboolean read_file_name(Config *config, const char *name, JsonObject *value,
                               const char *base, GError **error) {
  const char *file =
      json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
  if (!file || !g_str_has_suffix(file, ".so")) {
    return check_refuse(error, REGISTER ".%s must be the path of a .so file", name);
  }
  if (!base && !g_path_is_absolute(file)) {
    g_autofree char *shown = repr_text(file);
    return check_refuse(error, REGISTER ".%s must be an absolute path, got %s", name, shown);
  }
  g_hash_table_insert(config->registered, g_strdup(name), g_canonicalize_filename(file, base));
  return TRUE;
}

static gboolean read_registered(Config *config, JsonObject *registered, const char *base,
                                GError **error) {
  if (!json_object_is_type(registered, json_type_object)) {
    return check_refuse(error, REGISTER " must be an object of names and .so files");
  }
  json_object_object_foreach(registered, name, value) {
    if (!is_name(name)) {
      g_autofree char *shown = repr_text(name);
      return check_refuse(error,
                          REGISTER " has the name %s; a name is a lower-case letter and up to 31 "
                                   "lower-case letters, digits, - or _",
                          shown);
    }
    if (strcmp(name, "none") == 0 || strcmp(name, "local_test") == 0) {
      return check_refuse(error, REGISTER ".%s is built in and cannot be replaced", name);
    }
    if (!read_file_name(config, name, value, base, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

Config *config_new_default(void) {
  Config *config = g_new0(Config, 1);
  config->tool_call_timeout = 180;
  config->enable_workspace_files = TRUE;
  config->workspace_dir = g_canonicalize_filename("workspace", NULL);
  config->files_dir = g_build_filename(config->workspace_dir, "files", NULL);
  config->agent_name = g_strdup("sandhost");
  config->governed = TRUE;
  config->profile = g_strdup("permissive-dev");
  config->project_root = g_get_current_dir();
  config->manifest = manifest_new(NULL, NULL);
  config->include = g_new0(char *, 1);
  config->exclude = g_new0(char *, 1);
  config->max_files = 500;
  config->max_file_bytes = 2000000;
  config->max_copy_bytes = 20000000;
  config->keep_output_bytes = 16u << 20;
  config->registered = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  privacy_config_init(&config->privacy, &config->capture);
  config->credentials = g_new0(char *, 1);
  return config;
}

void config_free(Config *config) {
  if (!config) {
    return;
  }
  g_free(config->workspace_dir);
  g_free(config->files_dir);
  g_free(config->agent_name);
  g_free(config->session_id);
  json_object_put(config->agent_config);
  g_free(config->profile);
  json_object_put(config->policy);
  g_free(config->policy_path);
  g_free(config->file);
  g_free(config->project_root);
  g_strfreev(config->approver_check);
  json_object_put(config->budgets);
  g_free(config->provider);
  json_object_put(config->provider_options);
  manifest_free(config->manifest);
  g_strfreev(config->include);
  g_strfreev(config->exclude);
  g_hash_table_unref(config->registered);
  g_free(config->record_path);
  privacy_config_clear(&config->privacy);
  g_strfreev(config->credentials);
  g_free(config);
}

/* The settings stand in agent_config, or at the top beside the keys that are ours. */
static JsonObject *settings_of(JsonObject *object) {
  static const char *const OURS[] = {"model_config", "name", REGISTER, "session_id", NULL};
  JsonObject *agent = json_object_new_object();
  json_object_object_foreach(object, key, value) {
    if (!g_strv_contains(OURS, key)) {
      json_add_take(agent, key, json_object_get(value));
    }
  }
  return agent;
}

/* Finds agent_config, owned, in either shape of the file. */
static JsonObject *find_agent(JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"agent_config", "model_config", "name",
                                     REGISTER,       "session_id",   NULL};
  JsonObject *agent = NULL;
  if (!json_object_is_type(object, json_type_object)) {
    check_refuse(error, "the configuration must be an object");
    return NULL;
  }
  if (!json_object_object_get_ex(object, "agent_config", &agent)) {
    return settings_of(object);
  }
  if (!json_object_is_type(agent, json_type_object)) {
    check_refuse(error, "agent_config must be a dict or AgentConfig");
    return NULL;
  }
  return check_keys(object, "the configuration", KEYS, error) ? json_object_get(agent) : NULL;
}

/* Of the whole file: whatever it is that holds one, it is never shown. */
static void read_credentials(Config *config, JsonObject *object) {
  GPtrArray *found = g_ptr_array_new();
  credentials_collect(object, found);
  g_ptr_array_add(found, NULL);
  g_strfreev(config->credentials);
  config->credentials = (char **)g_ptr_array_free(found, FALSE);
}

gboolean config_name_is_good(const char *name) {
  gsize length = strnlen(name, CONFIG_MAX_NAME + 1);
  return length <= CONFIG_MAX_NAME && name[strspn(name, " \t\r\n\v\f")] &&
         g_utf8_validate(name, (gssize)length, NULL);
}

static gboolean refuse_name(const char *key, GError **error) {
  return check_refuse(error, "%s must be at most %u bytes long, and not blank", key,
                      CONFIG_MAX_NAME);
}

/* What may stand beside agent_config. Of model_config nothing is used but its key, to be taken out of what
 * others see. */
static gboolean read_beside(Config *config, JsonObject *object, const char *base, GError **error) {
  JsonObject *model = json_get(object, "model_config");
  JsonObject *name = json_get(object, "name");
  JsonObject *registered = json_get(object, REGISTER);
  if (model && !json_object_is_type(model, json_type_object)) {
    return check_refuse(error, "model_config must be an object");
  }
  if (name) {
    const char *text = json_get_text(object, "name");
    if (!text || !*text) {
      return check_refuse(error, "name must be a non-empty string");
    }
    if (!config_name_is_good(text)) {
      return refuse_name("name", error);
    }
    g_free(config->agent_name);
    config->agent_name = g_strdup(text);
  }
  if (!check_full_text(object, "the configuration", "session_id", &config->session_id, error)) {
    return FALSE;
  }
  if (config->session_id && !config_name_is_good(config->session_id)) {
    return refuse_name("session_id", error);
  }
  return !registered || read_registered(config, registered, base, error);
}

static Config *read_config(JsonObject *object, const char *base, const char *const *provider_names,
                           GError **error) {
  g_autoptr(JsonObject) agent = find_agent(object, error);
  if (!agent) {
    return NULL;
  }
  Config *config = config_new_default();
  read_credentials(config, object);
  if (!read_beside(config, object, base, error) ||
      !read_agent(config, agent, provider_names, error)) {
    config_free(config);
    return NULL;
  }
  return config;
}

Config *config_new(JsonObject *object, const char *const *provider_names, GError **error) {
  return read_config(object, NULL, provider_names, error);
}

Config *config_load(const char *path, const char *const *provider_names, GError **error) {
  g_autoptr(GError) failure = NULL;
  g_autoptr(JsonObject) object = json_parse_file(path, &failure);
  if (failure) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
  }
  g_autofree char *absolute = g_canonicalize_filename(path, NULL);
  g_autofree char *base = g_path_get_dirname(absolute);
  Config *config = read_config(object, base, provider_names, error);
  if (config) {
    config->file = g_steal_pointer(&absolute);
  }
  return config;
}
