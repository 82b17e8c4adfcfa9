/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-config.c: from checked settings to what is taken out where, and what is recorded at all. */
#include "config/privacy-config.h"

#include <stddef.h>
#include <string.h>

/* Of a stream in its event, unless max_payload_bytes says more or less. */
#define OFFLOAD_BYTES 64000u
/* Two streams, the command and what JSON adds to them are to fit into a payload that has a limit. */
#define PAYLOAD_PARTS 8u

static const char *const CATEGORIES[] = {"email", "phone", "ssn", "credit_card", NULL};
static const char *const KEYS[] = {"access_token",  "api_key",    "apikey",   "authorization",
                                   "client_secret", "cookie",     "password", "refresh_token",
                                   "secret",        "set-cookie", "token",    NULL};

static const struct {
  const char *name;
  size_t offset;
} BORDERS[] = {
    {"redact_telemetry", offsetof(PrivacyConfig, telemetry)},
    {"redact_memory", offsetof(PrivacyConfig, memory)},
    {"redact_workspace", offsetof(PrivacyConfig, workspace)},
    {"redact_stream", offsetof(PrivacyConfig, stream)},
    {"redact_public", offsetof(PrivacyConfig, public_io)},
    {"redact_model_io", offsetof(PrivacyConfig, model_io)},
};

static gboolean *border_of(PrivacyConfig *config, gsize i) {
  return (gboolean *)(void *)((char *)config + BORDERS[i].offset);
}

void privacy_config_init(PrivacyConfig *config, CaptureConfig *capture) {
  *config = (PrivacyConfig){
      .enabled = TRUE,
      .telemetry = TRUE,
      .categories = g_strdupv((char **)(gsize)CATEGORIES),
      .redact_keys = g_strdupv((char **)(gsize)KEYS),
  };
  *capture = (CaptureConfig){.inputs = TRUE, .results = TRUE, .offload_bytes = OFFLOAD_BYTES};
}

void privacy_config_clear(PrivacyConfig *config) {
  g_clear_pointer(&config->categories, g_strfreev);
  g_clear_pointer(&config->redact_keys, g_strfreev);
}

static void read_list(JsonObject *object, const char *key, char ***ret_list) {
  JsonObject *list = json_get(object, key);
  if (list) {
    g_strfreev(*ret_list);
    *ret_list = json_get_strv(list);
  }
}

static void read_capture(CaptureConfig *capture, JsonObject *telemetry) {
  const char *preset = json_get_text(telemetry, "capture");
  gboolean outputs = json_get_bool(telemetry, "record_outputs", TRUE);
  capture->inputs = json_get_bool(telemetry, "record_inputs", g_strcmp0(preset, "default") != 0);
  capture->results = outputs && json_get_bool(telemetry, "record_tool_results", TRUE);
  capture->max_payload_bytes = (guint64)json_get_int(telemetry, "max_payload_bytes", 0);
  if (capture->max_payload_bytes > 0) {
    capture->offload_bytes = capture->max_payload_bytes / PAYLOAD_PARTS;
  }
}

void privacy_config_read(PrivacyConfig *config, CaptureConfig *capture, JsonObject *agent) {
  JsonObject *privacy = json_get(agent, "privacy_config");
  JsonObject *telemetry = json_get(agent, "telemetry_config");
  config->enabled = json_get_bool(privacy, "enabled", config->enabled);
  for (gsize i = 0; i < G_N_ELEMENTS(BORDERS); i++) {
    gboolean *border = border_of(config, i);
    *border = json_get_bool(privacy, BORDERS[i].name, *border);
  }
  read_list(privacy, "categories", &config->categories);
  read_list(telemetry, "redact_keys", &config->redact_keys);
  read_capture(capture, telemetry);
}

JsonObject *privacy_config_json(const PrivacyConfig *config) {
  PrivacyConfig copy = *config;
  JsonObject *object = json_object_new_object();
  JsonObject *redacted = json_object_new_array();
  for (gsize i = 0; config->enabled && i < G_N_ELEMENTS(BORDERS); i++) {
    if (*border_of(&copy, i)) {
      const char *name = BORDERS[i].name + strlen("redact_");
      json_object_array_add(redacted, json_object_new_string(name));
    }
  }
  json_add_bool(object, "enabled", config->enabled);
  json_add_take(object, "redacted", redacted);
  json_add_take(object, "categories", json_from_strv((const char *const *)config->categories));
  return object;
}

void privacy_config_restore(PrivacyConfig *config, JsonObject *recorded) {
  CaptureConfig unused;
  privacy_config_init(config, &unused);
  if (!json_object_is_type(json_get(recorded, "redacted"), json_type_array)) {
    return;
  }
  g_auto(GStrv) borders = json_get_strv(json_get(recorded, "redacted"));
  config->enabled = json_get_bool(recorded, "enabled", config->enabled);
  for (gsize i = 0; i < G_N_ELEMENTS(BORDERS); i++) {
    const char *name = BORDERS[i].name + strlen("redact_");
    *border_of(config, i) = borders && g_strv_contains((const char *const *)borders, name);
  }
  read_list(recorded, "categories", &config->categories);
}
