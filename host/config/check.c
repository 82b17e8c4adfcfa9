/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: type and key checks with one set of texts. */
#include "config/check.h"

#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "base/repr.h"

/* Characters of a value that an error shows. */
#define MAX_SHOWN 60

gboolean check_refuse(GError **error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, text);
  return FALSE;
}

char *check_join(const char *const *names, const char *separator) {
  GString *list = g_string_new(NULL);
  for (gsize i = 0; names[i]; i++) {
    g_string_append_printf(list, "%s%s", i ? separator : "", names[i]);
  }
  return g_string_free(list, FALSE);
}

static int compare_texts(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

gboolean check_keys(JsonObject *object, const char *where, const char *const *allowed,
                    GError **error) {
  g_autoptr(GPtrArray) unknown = g_ptr_array_new();
  json_object_object_foreach(object, key, value) {
    (void)value;
    if (!g_strv_contains(allowed, key)) {
      g_ptr_array_add(unknown, key);
    }
  }
  if (unknown->len == 0) {
    return TRUE;
  }
  g_ptr_array_sort(unknown, compare_texts);
  g_ptr_array_add(unknown, NULL);
  g_autofree char *found = check_join((const char *const *)unknown->pdata, ", ");
  g_autofree char *known = check_join(allowed, ", ");
  return check_refuse(error, "%s has unknown keys: %s. Allowed keys: %s", where, found, known);
}

/* What an error shows of a value. Returns owned. */
static char *show(JsonObject *value) {
  switch (json_object_get_type(value)) {
  case json_type_array:
    return g_strdup("a list");
  case json_type_object:
    return g_strdup("an object");
  default:
    break;
  }
  char *shown = repr_json(value);
  if (g_utf8_strlen(shown, -1) > MAX_SHOWN) {
    g_autofree char *whole = shown;
    g_autofree char *cut = g_utf8_substring(whole, 0, MAX_SHOWN);
    shown = g_strconcat(cut, "...", NULL);
  }
  return shown;
}

gboolean check_refuse_type(const char *where, const char *key, const char *wanted,
                           JsonObject *value, GError **error) {
  g_autofree char *shown = show(value);
  return check_refuse(error, "%s.%s must be %s, got %s", where, key, wanted, shown);
}

static gboolean is_given(JsonObject *object, const char *key, JsonObject **ret_value) {
  return json_object_object_get_ex(object, key, ret_value);
}

gboolean check_text(JsonObject *object, const char *where, const char *key, char **ret_text,
                    GError **error) {
  JsonObject *value = json_get(object, key);
  if (!value) {
    return TRUE;
  }
  if (!json_object_is_type(value, json_type_string)) {
    return check_refuse_type(where, key, "a string", value, error);
  }
  g_free(*ret_text);
  *ret_text = g_strdup(json_object_get_string(value));
  return TRUE;
}

gboolean check_full_text(JsonObject *object, const char *where, const char *key, char **ret_text,
                         GError **error) {
  JsonObject *value = json_get(object, key);
  const char *text = json_get_text(object, key);
  if (value && (!text || !text[strspn(text, " \t\r\n\v\f")])) {
    return check_refuse_type(where, key, "a non-empty string", value, error);
  }
  return check_text(object, where, key, ret_text, error);
}

gboolean check_choice(JsonObject *object, const char *where, const char *key,
                      const char *const *choices, char **ret_choice, GError **error) {
  JsonObject *value = json_get(object, key);
  const char *text = json_get_text(object, key);
  if (value && (!text || !g_strv_contains(choices, text))) {
    g_autofree char *list = check_join(choices, ", ");
    g_autofree char *wanted = g_strconcat("one of: ", list, NULL);
    return check_refuse_type(where, key, wanted, value, error);
  }
  return check_text(object, where, key, ret_choice, error);
}

gboolean check_bool(JsonObject *object, const char *where, const char *key, gboolean *ret_value,
                    GError **error) {
  JsonObject *value = NULL;
  if (!is_given(object, key, &value)) {
    return TRUE;
  }
  if (!json_object_is_type(value, json_type_boolean)) {
    return check_refuse(error, "%s.%s must be a boolean", where, key);
  }
  *ret_value = json_object_get_boolean(value);
  return TRUE;
}

gboolean check_int(JsonObject *object, const char *where, const char *key, gint64 least,
                   gint64 most, gint64 *ret_value, GError **error) {
  JsonObject *value = NULL;
  if (!is_given(object, key, &value)) {
    return TRUE;
  }
  if (!json_object_is_type(value, json_type_int)) {
    return check_refuse_type(where, key, "an integer", value, error);
  }
  gint64 number = json_object_get_int64(value);
  if (number < least || number > most) {
    return check_refuse(error,
                        "%s.%s must be between %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT
                        ", got %" G_GINT64_FORMAT,
                        where, key, least, most, number);
  }
  *ret_value = number;
  return TRUE;
}

gboolean check_object(JsonObject *object, const char *where, const char *key,
                      JsonObject **ret_object, GError **error) {
  JsonObject *value = json_get(object, key);
  if (!value) {
    return TRUE;
  }
  if (!json_object_is_type(value, json_type_object)) {
    /* The value is not shown: a secret may stand where an object belongs. */
    return check_refuse(error, "%s.%s must be an object", where, key);
  }
  *ret_object = value;
  return TRUE;
}

gboolean check_strv(JsonObject *object, const char *where, const char *key, char ***ret_strings,
                    GError **error) {
  JsonObject *value = NULL;
  if (!is_given(object, key, &value)) {
    return TRUE;
  }
  gboolean ok = json_object_is_type(value, json_type_array);
  for (gsize i = 0; ok && i < json_object_array_length(value); i++) {
    ok = json_object_is_type(json_object_array_get_idx(value, i), json_type_string);
  }
  if (!ok) {
    return check_refuse(error, "%s.%s must be a list of strings", where, key);
  }
  g_strfreev(*ret_strings);
  *ret_strings = json_get_strv(value);
  return TRUE;
}
