/* SPDX-License-Identifier: Apache-2.0 */
/* typed.c: two looks at each text: what the door knows of, then what this process and the run's settings do. */
#include "run/typed.h"

#include <unistd.h>

#include "config/credentials.h"
#include "run/capture.h"

struct Typed {
  const Privacy *known; /* NULL: nothing */
  Privacy *own;
};

Privacy *typed_known(JsonObject *config) {
  PrivacyConfig defaults;
  CaptureConfig unused;
  g_autoptr(GPtrArray) declared = g_ptr_array_new_with_free_func(g_free);
  credentials_collect(config, declared);
  g_ptr_array_add(declared, NULL);
  privacy_config_init(&defaults, &unused);
  Privacy *privacy = privacy_new(&defaults, (const char *const *)declared->pdata, NULL);
  privacy_config_clear(&defaults);
  return privacy;
}

Typed *typed_new(JsonObject *life, const Privacy *known) {
  PrivacyConfig config;
  privacy_config_restore(&config, json_get(life, "privacy"));
  Typed *typed = g_new0(Typed, 1);
  typed->known = known;
  typed->own = privacy_new(&config, NULL, (const char *const *)environ);
  privacy_config_clear(&config);
  return typed;
}

void typed_free(Typed *typed) {
  if (typed) {
    privacy_free(typed->own);
    g_free(typed);
  }
}

/* As a command line: people quote those. */
char *typed_text(const Typed *typed, const char *text) {
  if (!text) {
    return NULL;
  }
  g_autofree char *first =
      typed->known ? privacy_command(typed->known, PRIVACY_NOWHERE, text) : NULL;
  char *second = privacy_command(typed->own, PRIVACY_TELEMETRY, first ? first : text);
  return second ? second : first ? g_steal_pointer(&first) : g_strdup(text);
}

JsonObject *typed_arguments(const Typed *typed, JsonObject *arguments) {
  gboolean changed = FALSE;
  g_autoptr(JsonObject) first =
      typed->known ? capture_arguments(typed->known, PRIVACY_NOWHERE, arguments, &changed)
                   : json_object_get(arguments);
  g_autoptr(JsonObject) second = capture_arguments(typed->own, PRIVACY_TELEMETRY, first, &changed);
  return changed ? g_steal_pointer(&second) : NULL;
}
