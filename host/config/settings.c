/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c: a table of all settings, and one walk over it. A setting is checked even where
 * this program does not use it, so that a mistake is found in whichever program reads the file. */
#include "config/settings.h"

#include <string.h>

#include "base/repr.h"
#include "config/check.h"

#define AGENT "agent_config"
#define MAX_COUNT G_MAXINT32
#define MAX_DAYS 36500
#define MAX_KEPT_OUTPUT (G_GINT64_CONSTANT(1) << 30)
#define MIN_RETAINED 1000000 /* an empty record, with room for a run or two */

typedef enum {
  SETTING_OTHER, /* whoever reads it checks it */
  SETTING_BOOLEAN,
  SETTING_INTEGER,
  SETTING_INTEGER_OR_NULL,
  SETTING_CHOICE,
  SETTING_TEXT,
  SETTING_NAMES,   /* a list of strings */
  SETTING_CHOICES, /* a list of choices, with a text of its own */
  SETTING_OBJECT,
} SettingType;

typedef struct Setting Setting;
struct Setting {
  const char *name;
  SettingType type;
  gint64 least;
  gint64 most;
  const char *choices; /* separated by ", " */
  const char *text;    /* how a wrong choice is told; NULL: the usual way */
  const Setting
      *members; /* of an object, sorted by name and ended by one without a name; NULL: any */
};

static const Setting OFFLOAD[] = {
    {.name = "enabled", .type = SETTING_BOOLEAN},
    {.name = "max_preview_lines", .type = SETTING_INTEGER, .least = 0, .most = MAX_COUNT},
    {.name = "max_preview_tokens", .type = SETTING_INTEGER, .least = 0, .most = MAX_COUNT},
    {.name = "threshold_bytes", .type = SETTING_INTEGER, .least = 0, .most = MAX_COUNT},
    {.name = "threshold_tokens", .type = SETTING_INTEGER, .least = 0, .most = MAX_COUNT},
    {.name = NULL},
};

static const Setting PRIVACY[] = {
    {.name = "categories", .type = SETTING_CHOICES, .choices = "credit_card, email, phone, ssn"},
    {.name = "enabled", .type = SETTING_BOOLEAN},
    {.name = "redact_memory", .type = SETTING_BOOLEAN},
    {.name = "redact_model_io", .type = SETTING_BOOLEAN},
    {.name = "redact_public", .type = SETTING_BOOLEAN},
    {.name = "redact_stream", .type = SETTING_BOOLEAN},
    {.name = "redact_telemetry", .type = SETTING_BOOLEAN},
    {.name = "redact_workspace", .type = SETTING_BOOLEAN},
    {.name = NULL},
};

static const Setting TELEMETRY[] = {
    {.name = "capture",
     .type = SETTING_CHOICE,
     .choices = "default, full",
     .text = "telemetry capture must be one of: default, full"},
    {.name = "keep_output_bytes", .type = SETTING_INTEGER, .least = 0, .most = MAX_KEPT_OUTPUT},
    {.name = "max_payload_bytes", .type = SETTING_INTEGER, .least = 1, .most = MAX_COUNT},
    {.name = "payload_retention_days", .type = SETTING_INTEGER, .least = 1, .most = MAX_DAYS},
    {.name = "record_inputs", .type = SETTING_BOOLEAN},
    {.name = "record_model_prompts", .type = SETTING_BOOLEAN},
    {.name = "record_model_responses", .type = SETTING_BOOLEAN},
    {.name = "record_outputs", .type = SETTING_BOOLEAN},
    {.name = "record_token_details", .type = SETTING_BOOLEAN},
    {.name = "record_tool_results", .type = SETTING_BOOLEAN},
    {.name = "redact_keys", .type = SETTING_NAMES},
    {.name = "retention_days", .type = SETTING_INTEGER, .least = 1, .most = MAX_DAYS},
    {.name = "retention_max_bytes",
     .type = SETTING_INTEGER,
     .least = MIN_RETAINED,
     .most = G_MAXINT64},
    {.name = "storage", .type = SETTING_CHOICE, .choices = "auto, jsonl, memory"},
    {.name = "storage_path", .type = SETTING_TEXT},
    {.name = "strict", .type = SETTING_BOOLEAN},
    {.name = NULL},
};

static const Setting WORKSPACE[] = {
    {.name = "files_dir", .type = SETTING_TEXT},
    {.name = "workspace_dir", .type = SETTING_TEXT},
    {.name = NULL},
};

static const Setting SETTINGS[] = {
    {.name = "enable_workspace_files", .type = SETTING_BOOLEAN},
    {.name = "governance_config", .type = SETTING_OTHER},
    {.name = "guardrail_mode", .type = SETTING_CHOICE, .choices = "full, input_only, off"},
    {.name = "max_steps", .type = SETTING_INTEGER, .least = 1, .most = 1000},
    {.name = "privacy_config", .type = SETTING_OBJECT, .members = PRIVACY},
    {.name = "request_limit", .type = SETTING_INTEGER, .least = 0, .most = MAX_COUNT},
    {.name = "run_lease_seconds", .type = SETTING_INTEGER, .least = 1, .most = 86400},
    {.name = "run_retention_days", .type = SETTING_INTEGER_OR_NULL, .least = 1, .most = MAX_DAYS},
    {.name = "telemetry_config", .type = SETTING_OBJECT, .members = TELEMETRY},
    {.name = "tool_call_timeout", .type = SETTING_INTEGER, .least = 2, .most = 1000},
    {.name = "tool_offload", .type = SETTING_OBJECT, .members = OFFLOAD},
    {.name = "total_tokens_limit", .type = SETTING_INTEGER, .least = 0, .most = G_MAXINT64},
    {.name = "workspace_config", .type = SETTING_OBJECT, .members = WORKSPACE},
    {.name = NULL},
};

/* The most that a table holds. */
#define MAX_SETTINGS 16
G_STATIC_ASSERT(G_N_ELEMENTS(SETTINGS) <= MAX_SETTINGS + 1);
G_STATIC_ASSERT(G_N_ELEMENTS(TELEMETRY) <= MAX_SETTINGS + 1);

/* The names of a table, borrowed, ended by NULL. */
static void list_names(const Setting *settings, const char *ret_names[MAX_SETTINGS + 1]) {
  gsize count = 0;
  for (; settings[count].name; count++) {
    ret_names[count] = settings[count].name;
  }
  ret_names[count] = NULL;
}

static gboolean refuse_unknown(const char *key, const char *const *names, GError **error) {
  g_autofree char *list = check_join(names, ", ");
  g_autofree char *shown = repr_text(key);
  const char *near = check_near(key, names);
  g_autofree char *meant = near ? repr_text(near) : NULL;
  g_autofree char *hint = near ? g_strdup_printf(" Did you mean %s?", meant) : g_strdup("");
  return check_refuse(error, "Unknown agent_config setting %s.%s Settings: %s", shown, hint, list);
}

static gboolean check_integer(JsonObject *object, const char *where, const Setting *setting,
                              GError **error) {
  JsonObject *value = json_get(object, setting->name);
  if (!value && setting->type == SETTING_INTEGER_OR_NULL) {
    return TRUE;
  }
  if (!json_object_is_type(value, json_type_int)) {
    const char *wanted =
        setting->type == SETTING_INTEGER_OR_NULL ? "an integer or null" : "an integer";
    return check_refuse_type(where, setting->name, wanted, value, error);
  }
  gint64 number = json_object_get_int64(value);
  if (number >= setting->least && number <= setting->most) {
    return TRUE;
  }
  /* The settings of agent_config are named without their path, as the reference does. */
  gboolean outer = strcmp(where, AGENT) == 0;
  return check_refuse(
      error,
      "%s%s%s must be between %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT ", got %" G_GINT64_FORMAT,
      outer ? "" : where, outer ? "" : ".", setting->name, setting->least, setting->most, number);
}

static gboolean check_one_choice(JsonObject *object, const char *where, const Setting *setting,
                                 GError **error) {
  g_auto(GStrv) choices = g_strsplit(setting->choices, ", ", -1);
  const char *text = json_get_text(object, setting->name);
  if (text && g_strv_contains((const char *const *)choices, text)) {
    return TRUE;
  }
  if (setting->text) {
    return check_refuse(error, "%s", setting->text);
  }
  g_autofree char *wanted = g_strconcat("one of: ", setting->choices, NULL);
  return check_refuse_type(where, setting->name, wanted, json_get(object, setting->name), error);
}

static gboolean check_choices(JsonObject *object, const char *where, const Setting *setting,
                              GError **error) {
  g_auto(GStrv) given = NULL;
  g_auto(GStrv) choices = g_strsplit(setting->choices, ", ", -1);
  if (!check_strv(object, where, setting->name, &given, error)) {
    return FALSE;
  }
  for (gsize i = 0; given[i]; i++) {
    if (!g_strv_contains((const char *const *)choices, given[i])) {
      return check_refuse(error, "%s[%" G_GSIZE_FORMAT "] must be one of: %s", setting->name, i,
                          setting->choices);
    }
  }
  return TRUE;
}

static gboolean check_setting(JsonObject *object, const char *where, const Setting *setting,
                              GError **error);

static gboolean check_members(JsonObject *object, const char *where, const Setting *setting,
                              GError **error) {
  JsonObject *inner = NULL;
  if (!check_object(object, where, setting->name, &inner, error)) {
    return FALSE;
  }
  const char *names[MAX_SETTINGS + 1];
  list_names(setting->members, names);
  g_autofree char *path = g_strconcat(where, ".", setting->name, NULL);
  if (inner && !check_keys(inner, path, names, error)) {
    return FALSE;
  }
  for (const Setting *member = setting->members; inner && member->name; member++) {
    if (!check_setting(inner, path, member, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

/* A setting that is not given is right. Recurses as deep as the tables, not as the input. */
static gboolean check_names(JsonObject *object, const char *where, const char *key,
                            GError **error) {
  g_auto(GStrv) list = NULL;
  if (!check_strv(object, where, key, &list, error)) {
    return FALSE;
  }
  for (gsize i = 0; list && list[i]; i++) {
    if (!*list[i]) {
      return check_refuse(error, "%s.%s must be a list of non-empty strings", where, key);
    }
  }
  return TRUE;
}

static gboolean check_setting(JsonObject *object, const char *where, const Setting *setting,
                              GError **error) {
  g_autofree char *text = NULL;
  gboolean flag = FALSE;
  if (!json_object_object_get_ex(object, setting->name, NULL)) {
    return TRUE;
  }
  switch (setting->type) {
  case SETTING_BOOLEAN:
    return check_bool(object, where, setting->name, &flag, error);
  case SETTING_INTEGER:
  case SETTING_INTEGER_OR_NULL:
    return check_integer(object, where, setting, error);
  case SETTING_CHOICE:
    return check_one_choice(object, where, setting, error);
  case SETTING_TEXT:
    return check_full_text(object, where, setting->name, &text, error);
  case SETTING_NAMES:
    return check_names(object, where, setting->name, error);
  case SETTING_CHOICES:
    return check_choices(object, where, setting, error);
  case SETTING_OBJECT:
    return check_members(object, where, setting, error);
  case SETTING_OTHER:
    break;
  }
  return TRUE;
}

gboolean settings_check(JsonObject *agent_config, GError **error) {
  const char *names[MAX_SETTINGS + 1];
  list_names(SETTINGS, names);
  json_object_object_foreach(agent_config, key, value) {
    (void)value;
    if (!g_strv_contains(names, key)) {
      return refuse_unknown(key, names, error);
    }
  }
  for (const Setting *setting = SETTINGS; setting->name; setting++) {
    if (!check_setting(agent_config, AGENT, setting, error)) {
      return FALSE;
    }
  }
  return TRUE;
}
