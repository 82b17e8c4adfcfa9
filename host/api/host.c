/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: the host behind its handle: opened cheaply, given providers, then checked once and used from then on. */
#include <string.h>

#include "api/api-private.h"
#include "base/error.h"
#include "base/forked.h"
#include "config/check.h"
#include "run/execute.h"
#include "run/story.h"
#include "run/typed.h"

/* ---- Life ------------------------------------------------------------------------------------------------------- */

static gboolean take_config(sandhost *host, const char *text, GError **error) {
  g_autoptr(GError) failure = NULL;
  host->config = json_parse("the configuration", text, strlen(text), &failure);
  if (failure) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  if (!json_object_is_type(host->config, json_type_object)) {
    return check_refuse(error, "the configuration must be an object");
  }
  return TRUE;
}

/* What is relative now must not mean another place when it is used. */
static char *absolute(const char *path) {
  return path ? g_canonicalize_filename(path, NULL) : NULL;
}

static sandhost *host_new(const struct sandhost_settings *settings) {
  sandhost *host = g_new0(sandhost, 1);
  forked_watch();
  host->generation = forked_generation();
  host->references = 1;
  pthread_mutex_init(&host->lock, NULL);
  host->workspace = absolute(settings->workspace);
  host->provider = g_strdup(settings->provider);
  host->record_path = absolute(settings->record);
  host->check_approver = settings->check_approver;
  host->user = settings->user;
  host->registry = provider_registry_new();
  return host;
}

/* A member that was meant to be set, and is not; NULL: none. */
static const char *empty_member(const struct sandhost_settings *settings) {
  return settings->workspace && !*settings->workspace ? "workspace"
         : settings->provider && !*settings->provider ? "provider"
         : settings->record && !*settings->record     ? "record"
                                                      : NULL;
}

int sandhost_open(const char *config_json, const struct sandhost_settings *settings,
                  sandhost **ret_host, char **ret_error) {
  struct sandhost_settings own = {.size = sizeof own};
  if (!ret_host) {
    return api_refuse(SANDHOST_STATUS_INVALID, "ret_host must not be NULL", ret_error);
  }
  if (settings &&
      !api_take_sized(settings, API_SIZE_TO(struct sandhost_settings, record), &own, sizeof own)) {
    return api_refuse(SANDHOST_STATUS_INVALID,
                      "settings->size is not one that this libsandhost knows", ret_error);
  }
  const char *empty = empty_member(&own);
  if (empty) {
    g_autofree char *text = g_strdup_printf("settings->%s must not be empty", empty);
    return api_refuse(SANDHOST_STATUS_INVALID, text, ret_error);
  }
  if (forked_is_spoilt()) {
    return api_refuse(SANDHOST_STATUS_STATE, RECORD_FORKED_TEXT, ret_error);
  }
  g_autoptr(GError) error = NULL;
  sandhost *host = host_new(&own);
  if (config_json && !take_config(host, config_json, &error)) {
    host_unref(host);
    return api_fail(error, ret_error);
  }
  *ret_host = host;
  return SANDHOST_STATUS_OK;
}

void sandhost_close(sandhost *host) {
  if (host && !api_is_inherited(host->generation)) {
    host_unref(host);
  }
}

sandhost *host_ref(sandhost *host) {
  g_atomic_int_inc(&host->references);
  return host;
}

void host_unref(sandhost *host) {
  if (!g_atomic_int_dec_and_test(&host->references)) {
    return;
  }
  forked_hold();
  g_clear_pointer(&host->record, record_close);
  g_clear_pointer(&host->harness, harness_free);
  g_clear_pointer(&host->privacy, privacy_free);
  provider_registry_free(host->registry);
  forked_release();
  json_object_put(host->config);
  g_free(host->workspace);
  g_free(host->provider);
  g_free(host->record_path);
  pthread_mutex_destroy(&host->lock);
  g_free(host);
}

/* ---- The check -------------------------------------------------------------------------------------------------- */

static gboolean choose_provider(Config *config, const char *name, const char *const *known,
                                GError **error) {
  if (!g_strv_contains(known, name) && !g_hash_table_contains(config->registered, name)) {
    g_autofree char *list = check_join(known, ", ");
    return check_refuse(error, "settings->provider must be a registered sandbox provider: %s",
                        list);
  }
  if (config->provider && config->provider_options && strcmp(config->provider, name) != 0) {
    return check_refuse(error,
                        "settings->provider %s cannot be used with the options of %s in "
                        "governance_config.sandbox_config.options",
                        name, config->provider);
  }
  g_free(config->provider);
  config->provider = g_strdup(name);
  return TRUE;
}

static gboolean choose_workspace(Config *config, const char *folder, GError **error) {
  if (!g_file_test(folder, G_FILE_TEST_IS_DIR)) {
    return check_refuse(error, "settings->workspace %s is not a folder", folder);
  }
  g_free(config->files_dir);
  config->files_dir = g_strdup(folder);
  return TRUE;
}

static Harness *make_harness(sandhost *host, GError **error) {
  g_auto(GStrv) names = provider_registry_names(host->registry);
  const char *const *known = (const char *const *)names;
  g_autoptr(Config) config =
      host->config ? config_new(host->config, known, error) : config_new_default();
  if (!config) {
    return NULL;
  }
  const char *provider = host->provider;
  if (!provider && !host->config) {
    provider = "bubblewrap";
  }
  if ((provider && !choose_provider(config, provider, known, error)) ||
      (host->workspace && !choose_workspace(config, host->workspace, error))) {
    return NULL;
  }
  return harness_new(g_steal_pointer(&config), host->registry, error);
}

const Harness *host_harness(sandhost *host, GError **error) {
  forked_hold();
  pthread_mutex_lock(&host->lock);
  if (!host->harness) {
    host->harness = make_harness(host, error);
  }
  const Harness *harness = host->harness;
  pthread_mutex_unlock(&host->lock);
  forked_release();
  return harness;
}

const Privacy *host_privacy(sandhost *host) {
  pthread_mutex_lock(&host->lock);
  if (!host->harness && !host->privacy) {
    host->privacy = typed_known(host->config);
  }
  const Privacy *privacy = host->harness ? host->harness->privacy : host->privacy;
  pthread_mutex_unlock(&host->lock);
  return privacy;
}

int sandhost_check(sandhost *host, char **ret_warnings, char **ret_error) {
  g_autoptr(GError) error = NULL;
  if (!host) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host must not be NULL", ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  const Harness *harness = host_harness(host, &error);
  if (!harness) {
    return api_fail(error, ret_error);
  }
  g_autoptr(JsonObject) warnings = harness_warnings(harness);
  api_give(warnings, ret_warnings);
  return SANDHOST_STATUS_OK;
}

char *sandhost_tool(sandhost *host, char **ret_error) {
  g_autoptr(GError) error = NULL;
  if (!host) {
    api_refuse(SANDHOST_STATUS_INVALID, "host must not be NULL", ret_error);
    return NULL;
  }
  if (api_is_inherited(host->generation)) {
    api_refuse_inherited(ret_error);
    return NULL;
  }
  const Harness *harness = host_harness(host, &error);
  if (!harness || !harness_executes(harness, &error)) {
    api_fail(error, ret_error);
    return NULL;
  }
  g_autoptr(JsonObject) declaration = execute_declaration(harness);
  return json_text(declaration);
}

/* ---- Providers -------------------------------------------------------------------------------------------------- */

typedef gboolean (*Registration)(sandhost *host, const char *name, const void *what,
                                 GError **error);

static gboolean add_entry(sandhost *host, const char *name, const void *what, GError **error) {
  const sandhost_provider_entry *entry = what;
  return provider_registry_add_entry(host->registry, name, *entry, error);
}

static gboolean add_file(sandhost *host, const char *name, const void *what, GError **error) {
  return provider_registry_add_file(host->registry, name, what, error);
}

/* Under the lock, so that no harness is made meanwhile: what comes after it would have no effect. */
static int add_provider(sandhost *host, const char *name, Registration registration,
                        const void *what, char **ret_error) {
  g_autoptr(GError) error = NULL;
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  forked_hold();
  pthread_mutex_lock(&host->lock);
  gboolean late = host->harness != NULL;
  gboolean ok = !late && registration(host, name, what, &error);
  pthread_mutex_unlock(&host->lock);
  forked_release();
  if (late) {
    return api_refuse(SANDHOST_STATUS_STATE,
                      "a provider must be registered before the host is checked or used",
                      ret_error);
  }
  return ok ? SANDHOST_STATUS_OK : api_fail(error, ret_error);
}

int register_sandbox_provider(sandhost *host, const char *name, sandhost_provider_entry entry,
                              char **ret_error) {
  if (!host || !name || !entry) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host, name and entry must not be NULL", ret_error);
  }
  return add_provider(host, name, add_entry, &entry, ret_error);
}

int register_sandbox_provider_file(sandhost *host, const char *name, const char *path,
                                   char **ret_error) {
  if (!host || !name || !path) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host, name and path must not be NULL", ret_error);
  }
  return add_provider(host, name, add_file, path, ret_error);
}

int sandhost_add_test_command(sandhost *host, const char *name, sandhost_test_handler handler,
                              void *user, char **ret_error) {
  if (!host || !name || !handler) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host, name and handler must not be NULL",
                      ret_error);
  }
  if (!*name || !g_utf8_validate(name, -1, NULL)) {
    return api_refuse(SANDHOST_STATUS_INVALID, "name must be valid UTF-8, and not empty",
                      ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  provider_registry_add_test_command(host->registry, name, handler, user);
  return SANDHOST_STATUS_OK;
}

/* ---- The record ------------------------------------------------------------------------------------------------- */

/* As the command line chooses it. Only what the configuration may say needs the configuration checked. */
static gboolean choose_record(sandhost *host, char **ret_path, GError **error) {
  const char *path = host->record_path;
  if (!path && host->config) {
    const Harness *harness = host_harness(host, error);
    if (!harness) {
      return FALSE;
    }
    path = harness->config->record_path;
  }
  *ret_path = path ? g_strdup(path) : record_default_path();
  return TRUE;
}

Record *host_record(sandhost *host, GError **error) {
  g_autofree char *path = NULL;
  if (!choose_record(host, &path, error)) {
    return NULL;
  }
  pthread_mutex_lock(&host->lock);
  if (!host->record) {
    host->record = record_open(path, error);
  }
  Record *record = host->record;
  pthread_mutex_unlock(&host->lock);
  return record;
}

char *host_find_run(sandhost *host, const char *wanted, Record **ret_record, GError **error) {
  Record *record = host_record(host, error);
  char *id = record ? story_find(record, wanted, error) : NULL;
  if (id) {
    *ret_record = record;
  }
  return id;
}

Record *host_record_for(sandhost *host, const char *wanted, char **ret_id, GError **error) {
  Record *record = NULL;
  if (!wanted) {
    return host_record(host, error);
  }
  *ret_id = host_find_run(host, wanted, &record, error);
  return record;
}
