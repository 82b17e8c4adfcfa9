/* SPDX-License-Identifier: Apache-2.0 */
/* option.c: text from the command line gets the type that the provider declares. */
#include "cli/option.h"

#include <string.h>

#include "base/error.h"

static guint32 type_of(const struct sandhost_provider *table, const char *name) {
  for (gsize i = 0; table && i < table->option_count; i++) {
    if (strcmp(table->options[i].name, name) == 0) {
      return table->options[i].type;
    }
  }
  return SANDHOST_OPTION_TEXT;
}

static void add_to_list(JsonObject *options, const char *name, const char *value) {
  JsonObject *list = json_get(options, name);
  if (!list) {
    list = json_object_new_array();
    json_add_take(options, name, list);
  }
  json_object_array_add(list, json_object_new_string(value));
}

static void add_to_map(JsonObject *options, const char *name, const char *value) {
  const char *equals = strchr(value, '=');
  if (!equals) {
    json_add_text(options, name, value);
    return;
  }
  JsonObject *map = json_get(options, name);
  if (!map) {
    map = json_object_new_object();
    json_add_take(options, name, map);
  }
  g_autofree char *key = g_strndup(value, (gsize)(equals - value));
  json_add_text(map, key, equals + 1);
}

gboolean option_add(JsonObject *options, const struct sandhost_provider *table, const char *text,
                    GError **error) {
  const char *equals = strchr(text, '=');
  gint64 number = 0;
  if (!equals || equals == text) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "--option takes NAME=VALUE, got '%s'",
                text);
    return FALSE;
  }
  g_autofree char *name = g_strndup(text, (gsize)(equals - text));
  const char *value = equals + 1;
  guint32 type = type_of(table, name);
  gboolean yes = strcmp(value, "true") == 0;
  if (type == SANDHOST_OPTION_BOOLEAN && (yes || strcmp(value, "false") == 0)) {
    json_add_bool(options, name, yes);
  } else if (type == SANDHOST_OPTION_INTEGER &&
             g_ascii_string_to_signed(value, 10, G_MININT64, G_MAXINT64, &number, NULL)) {
    json_add_int(options, name, number);
  } else if (type == SANDHOST_OPTION_LIST) {
    add_to_list(options, name, value);
  } else if (type == SANDHOST_OPTION_MAP) {
    add_to_map(options, name, value);
  } else {
    json_add_text(options, name, value);
  }
  return TRUE;
}
