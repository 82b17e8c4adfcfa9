/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor-provider.c: whether a provider works here, found out by making a sandbox, running nothing in it but the empty
 * command, and ending it. Nothing is pulled for that: an image that is missing is told.
 */
#include <string.h>

#include "base/clock.h"
#include "base/ids.h"
#include "cli/apart.h"
#include "cli/doctor.h"
#include "cli/enforcement.h"

#define TRY_SECONDS 20
#define COMMAND_SECONDS 10
#define TRY_RUN "doctor" /* on the label of the sandbox, where the provider has labels */

typedef struct {
  char *version;
  gboolean selected;
  gboolean usable;
  gboolean tried;
  gboolean isolates;
  gboolean trusted; /* declares nothing */
  char *remark;
  JsonObject *missing;
  JsonObject *enforces;
  JsonObject *lowered;
} Diagnosis;

static void remark(Diagnosis *diagnosis, const char *text) {
  g_free(diagnosis->remark);
  diagnosis->remark = g_strdup(text);
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

static gboolean is_set(const struct sandhost_option *option, JsonObject *options) {
  const char *variable = option->environment ? g_getenv(option->environment) : NULL;
  return json_get(options, option->name) || option->fallback || (variable && *variable);
}

/* A secret that is looked for in the environment is the key of a service, without which there is nothing to try; of
 * the configured provider only what it calls required counts, since the try tells the rest. */
static gboolean must_be_set(const struct sandhost_option *option, gboolean selected) {
  return (option->flags & SANDHOST_OPTION_REQUIRED) ||
         (!selected && (option->flags & SANDHOST_OPTION_SECRET) && option->environment);
}

static gboolean lacks_options(Diagnosis *diagnosis, const struct sandhost_provider *table,
                              JsonObject *options) {
  g_autoptr(GString) text = g_string_new("needs the option");
  for (gsize i = 0; i < table->option_count; i++) {
    const struct sandhost_option *option = &table->options[i];
    if (!must_be_set(option, diagnosis->selected) || is_set(option, options)) {
      continue;
    }
    gsize count = json_object_array_length(diagnosis->missing);
    g_string_append_printf(text, "%s %s", count == 0 ? "" : ",", option->name);
    if (option->environment) {
      g_string_append_printf(text, " (%s)", option->environment);
    }
    JsonObject *entry = json_object_new_object();
    json_add_text(entry, "option", option->name);
    json_add_text(entry, "environment", option->environment);
    json_object_array_add(diagnosis->missing, entry);
  }
  if (json_object_array_length(diagnosis->missing) == 0) {
    return FALSE;
  }
  remark(diagnosis, text->str);
  return TRUE;
}

/* Whether the provider can be told not to pull an image, and is not told already. */
static gboolean may_pull(const struct sandhost_provider *table, JsonObject *options) {
  if (g_strcmp0(json_get_text(options, "pull"), "never") == 0) {
    return FALSE;
  }
  for (gsize i = 0; i < table->option_count; i++) {
    const struct sandhost_option *option = &table->options[i];
    if (strcmp(option->name, "pull") == 0 && option->type == SANDHOST_OPTION_TEXT &&
        option->choices) {
      g_auto(GStrv) choices = g_strsplit(option->choices, "|", -1);
      return g_strv_contains((const char *const *)choices, "never");
    }
  }
  return FALSE;
}

/* Owned. */
static JsonObject *options_for_try(JsonObject *options, gboolean pulls) {
  JsonObject *copy = json_object_new_object();
  if (options) {
    json_object_object_foreach(options, key, value) {
      json_add_take(copy, key, json_object_get(value));
    }
  }
  if (pulls) {
    json_add_text(copy, "pull", "never");
  }
  return copy;
}

/* ---- What it keeps here ---------------------------------------------------------------------------------------- */

static void take_levels(Diagnosis *diagnosis, const ProviderInstance *instance) {
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    guint32 setting = ENFORCEMENT[i].setting;
    const char *why = provider_instance_lowered(instance, setting);
    json_add_text(diagnosis->enforces, ENFORCEMENT[i].name,
                  enforcement_word(provider_instance_level(instance, setting)));
    if (why) {
      json_add_text(diagnosis->lowered, ENFORCEMENT[i].name, why);
    }
  }
}

/* ---- The try ------------------------------------------------------------------------------------------------- */

static int32_t ignore_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  return SANDHOST_OK;
}

/* What is wrong with a sandbox that was made; NULL: a command ends in it as it should. Owned. */
static char *command_fault(Sandbox *sandbox, const CallScope *scope) {
  const struct sandhost_text argv[] = {
      {.data = "sh", .length = 2}, {.data = "-c", .length = 2}, {.data = ":", .length = 1}};
  const struct sandhost_execute request = {.size = sizeof request,
                                           .argv = argv,
                                           .argc = G_N_ELEMENTS(argv),
                                           .limit = COMMAND_SECONDS * CLOCK_SECOND};
  const struct sandhost_observer observer = {.size = sizeof observer, .output = ignore_output};
  struct sandhost_result result = {.size = sizeof result};
  g_autoptr(GError) error = NULL;
  if (!sandbox_execute(sandbox, scope, &request, &observer, &result, &error)) {
    return g_strdup(error->message);
  }
  return result.ended == SANDHOST_ENDED_EXIT && result.exit_code == 0
             ? NULL
             : g_strdup_printf("sh -c : ends with %d in a sandbox of it", result.exit_code);
}

/* The configured provider is tried with the manifest that it is to keep, any other without a network if it can.
 * Owned. */
static Manifest *manifest_for_try(const ProviderInstance *instance) {
  static const char OPEN[] = "{\"network_policy\":{\"default\":\"allow\"}}";
  gboolean cuts =
      provider_instance_level(instance, SANDHOST_SETTING_NETWORK_OFF) != SANDHOST_LEVEL_NONE;
  g_autoptr(JsonObject) object = cuts ? NULL : json_parse("manifest", OPEN, strlen(OPEN), NULL);
  return manifest_new(object, NULL);
}

static void try_sandbox(Diagnosis *diagnosis, const DoctorSettings *settings,
                        ProviderInstance *instance, gboolean pulls) {
  g_autoptr(Manifest) own = diagnosis->selected ? NULL : manifest_for_try(instance);
  const Manifest *manifest = own ? own : settings->config->manifest;
  g_autofree char *key = id_new("sandbox");
  const CallScope scope = {.deadline = clock_deadline(TRY_SECONDS * CLOCK_SECOND),
                           .cancel = settings->cancel};
  g_autoptr(GError) error = NULL;
  diagnosis->tried = TRUE;
  Sandbox *sandbox = sandbox_create(instance, manifest, key, TRY_RUN, &scope, &error);
  if (!sandbox) {
    gboolean unpulled = pulls && provider_error_is(error, SANDHOST_NOT_FOUND);
    diagnosis->usable = unpulled;
    g_autofree char *text =
        unpulled ? g_strdup_printf("an image is pulled at the first use: %s", error->message)
                 : g_strdup(error->message);
    remark(diagnosis, text);
    return;
  }
  g_autofree char *fault = command_fault(sandbox, &scope);
  gboolean ended = sandbox_end(sandbox, &error);
  diagnosis->usable = !fault && ended;
  if (!diagnosis->usable) {
    remark(diagnosis, fault ? fault : error->message);
  }
}

/* A provider that runs commands on this machine itself would look for the working directory here. */
static gboolean is_to_be_tried(const Diagnosis *diagnosis, const DoctorSettings *settings,
                               const ProviderInstance *instance) {
  return settings->tries && (diagnosis->selected || diagnosis->isolates) &&
         !provider_instance_is_test(instance);
}

static void examine(Diagnosis *diagnosis, const DoctorSettings *settings, Provider *provider) {
  const struct sandhost_provider *table = provider_table(provider);
  JsonObject *options = diagnosis->selected ? settings->config->provider_options : NULL;
  g_autoptr(GError) error = NULL;
  diagnosis->version = g_strdup(table->version);
  diagnosis->trusted = table->enforces_count == 0;
  diagnosis->isolates = !(table->flags & SANDHOST_PROVIDER_HOST_SURFACE);
  if (lacks_options(diagnosis, table, options)) {
    return;
  }
  gboolean pulls = may_pull(table, options);
  g_autoptr(JsonObject) given = options_for_try(options, pulls);
  g_autoptr(ProviderInstance) instance =
      provider_instance_open(settings->registry, provider, given, &error);
  if (!instance) {
    remark(diagnosis, error->message);
    return;
  }
  take_levels(diagnosis, instance);
  if (!provider_instance_executes(instance)) {
    remark(diagnosis, "it runs no commands; choose another one");
  } else if (diagnosis->selected &&
             !provider_instance_check(instance, settings->config->manifest, &error)) {
    remark(diagnosis, error->message);
  } else if (is_to_be_tried(diagnosis, settings, instance)) {
    try_sandbox(diagnosis, settings, instance, pulls);
  } else {
    diagnosis->usable = TRUE;
  }
}

/* Takes apart what diagnosis holds. */
static JsonObject *to_json(Diagnosis *diagnosis, const char *name, const char *file) {
  JsonObject *object = json_object_new_object();
  json_add_text(object, "name", name);
  json_add_text(object, "version", diagnosis->version);
  json_add_text(object, "file", file);
  json_add_bool(object, "selected", diagnosis->selected);
  json_add_bool(object, "usable", diagnosis->usable);
  json_add_bool(object, "tried", diagnosis->tried);
  json_add_bool(object, "isolated", diagnosis->isolates);
  json_add_bool(object, "trusted", diagnosis->trusted);
  json_add_text(object, "remark", diagnosis->remark);
  json_add_take(object, "missing", diagnosis->missing);
  json_add_take(object, "enforces", diagnosis->enforces);
  json_add_take(object, "lowered", diagnosis->lowered);
  g_free(diagnosis->version);
  g_free(diagnosis->remark);
  return object;
}

JsonObject *diagnose(const DoctorSettings *settings, const char *name, const char *file) {
  g_autoptr(GError) error = NULL;
  Diagnosis diagnosis = {
      .selected = g_strcmp0(settings->config->provider, name) == 0,
      .isolates = TRUE,
      .missing = json_object_new_array(),
      .enforces = json_object_new_object(),
      .lowered = json_object_new_object(),
  };
  Provider *provider = provider_registry_load(settings->registry, name, &error);
  apart_loaded();
  if (provider) {
    examine(&diagnosis, settings, provider);
  } else {
    remark(&diagnosis, error->message);
  }
  return to_json(&diagnosis, name, file);
}
