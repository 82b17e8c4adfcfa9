/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: building and reading JSON values, on json-c. Parsing is in json-parse.c. */
#include "base/json.h"

#include <math.h>
#include <string.h>

char *json_text(JsonObject *value) {
  return g_strdup(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                            JSON_C_TO_STRING_NOSLASHESCAPE));
}

void json_add_take(JsonObject *object, const char *key, JsonObject *take_value) {
  json_object_object_add(object, key, take_value);
}

void json_add_text(JsonObject *object, const char *key, const char *value) {
  json_add_take(object, key, value ? json_from_bytes(value, strlen(value)) : NULL);
}

void json_add_int(JsonObject *object, const char *key, gint64 value) {
  json_add_take(object, key, json_object_new_int64(value));
}

void json_add_double(JsonObject *object, const char *key, double value) {
  char digits[G_ASCII_DTOSTR_BUF_SIZE + 320]; /* %.3f of the largest double has 313 characters */
  if (!isfinite(value)) {
    json_add_take(object, key, NULL); /* JSON has no word for it */
    return;
  }
  g_ascii_formatd(digits, sizeof digits, "%.3f", value);
  json_add_take(object, key, json_object_new_double_s(value, digits));
}

void json_add_bool(JsonObject *object, const char *key, gboolean value) {
  json_add_take(object, key, json_object_new_boolean(value));
}

JsonObject *json_from_bytes(const char *data, size_t length) {
  if (length == 0) {
    return json_object_new_string("");
  }
  const char *end = data + length;
  if (g_utf8_validate_len(data, length, NULL)) {
    return json_object_new_string_len(data, (int)MIN(length, (gsize)G_MAXINT));
  }
  GString *text = g_string_sized_new(length);
  const char *at = data;
  while (at < end) {
    const char *bad = NULL;
    if (g_utf8_validate_len(at, (gsize)(end - at), &bad)) {
      bad = end;
    }
    g_string_append_len(text, at, bad - at);
    at = bad;
    if (at < end) {
      /* g_utf8_validate_len stops at NUL too, which is valid here. */
      if (*at == '\0') {
        g_string_append_c(text, '\0');
      } else {
        g_string_append(text, "\xef\xbf\xbd");
      }
      at++;
    }
  }
  JsonObject *value = json_object_new_string_len(text->str, (int)MIN(text->len, (gsize)G_MAXINT));
  g_string_free(text, TRUE);
  return value;
}

/* The length without an incomplete UTF-8 sequence at the end. */
static size_t whole_characters(const guint8 *data, size_t length) {
  size_t back = 0;
  while (back < 3 && back < length && (data[length - 1 - back] & 0xc0) == 0x80) {
    back++;
  }
  if (back == length) {
    return length;
  }
  guint8 lead = data[length - 1 - back];
  size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return wanted > back + 1 ? length - 1 - back : length;
}

JsonObject *json_from_cut_bytes(const char *data, size_t length) {
  return json_from_bytes(data, whole_characters((const guint8 *)data, length));
}

JsonObject *json_get(JsonObject *object, const char *key) {
  JsonObject *value = NULL;
  if (object && json_object_is_type(object, json_type_object)) {
    json_object_object_get_ex(object, key, &value);
  }
  return value;
}

const char *json_get_text(JsonObject *object, const char *key) {
  JsonObject *value = json_get(object, key);
  return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

gint64 json_get_int(JsonObject *object, const char *key, gint64 fallback) {
  JsonObject *value = json_get(object, key);
  return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : fallback;
}

gboolean json_get_bool(JsonObject *object, const char *key, gboolean fallback) {
  JsonObject *value = json_get(object, key);
  return json_object_is_type(value, json_type_boolean) ? json_object_get_boolean(value) : fallback;
}

char **json_get_strv(JsonObject *array) {
  GPtrArray *strings = g_ptr_array_new();
  gsize count = json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
  for (gsize i = 0; i < count; i++) {
    JsonObject *item = json_object_array_get_idx(array, i);
    if (json_object_is_type(item, json_type_string)) {
      g_ptr_array_add(strings, g_strdup(json_object_get_string(item)));
    }
  }
  g_ptr_array_add(strings, NULL);
  return (char **)g_ptr_array_free(strings, FALSE);
}

JsonObject *json_from_strv(const char *const *strings) {
  JsonObject *array = json_object_new_array();
  for (gsize i = 0; strings && strings[i]; i++) {
    json_object_array_add(array, json_from_bytes(strings[i], strlen(strings[i])));
  }
  return array;
}

/* ---- Canonical text ------------------------------------------------------------------------- */

static void append_canonical(GString *out, JsonObject *value);

static void append_escaped(GString *out, gunichar c) {
  if (c < 0x10000) {
    g_string_append_printf(out, "\\u%04x", c);
  } else {
    g_string_append_printf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                           0xdc00 + ((c - 0x10000) & 0x3ff));
  }
}

static void append_string(GString *out, const char *text, gsize length) {
  g_string_append_c(out, '"');
  for (const char *at = text; at < text + length;) {
    gunichar c = g_utf8_get_char_validated(at, (gssize)(text + length - at));
    if (c == (gunichar)-1 || c == (gunichar)-2) {
      c = (guchar)*at; /* values hold UTF-8 or a NUL, as the parser and json_from_bytes make them */
      at++;
    } else {
      at += g_unichar_to_utf8(c, NULL);
    }
    if (c == '"' || c == '\\') {
      g_string_append_printf(out, "\\%c", (char)c);
    } else if (c >= 0x20 && c < 0x7f) {
      g_string_append_c(out, (char)c);
    } else {
      append_escaped(out, c);
    }
  }
  g_string_append_c(out, '"');
}

static int compare_keys(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void append_object(GString *out, JsonObject *object) {
  g_autoptr(GPtrArray) keys = g_ptr_array_new();
  json_object_object_foreach(object, key, value) {
    (void)value;
    g_ptr_array_add(keys, key);
  }
  g_ptr_array_sort(keys, compare_keys);
  g_string_append_c(out, '{');
  for (guint i = 0; i < keys->len; i++) {
    const char *name = g_ptr_array_index(keys, i);
    if (i) {
      g_string_append_c(out, ',');
    }
    append_string(out, name, strlen(name));
    g_string_append_c(out, ':');
    append_canonical(out, json_get(object, name));
  }
  g_string_append_c(out, '}');
}

static void append_canonical(GString *out, JsonObject *value) {
  switch (json_object_get_type(value)) {
  case json_type_object:
    append_object(out, value);
    break;
  case json_type_array:
    g_string_append_c(out, '[');
    for (gsize i = 0; i < json_object_array_length(value); i++) {
      if (i) {
        g_string_append_c(out, ',');
      }
      append_canonical(out, json_object_array_get_idx(value, i));
    }
    g_string_append_c(out, ']');
    break;
  case json_type_string:
    append_string(out, json_object_get_string(value), (gsize)json_object_get_string_len(value));
    break;
  default:
    g_string_append(out,
                    value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : "null");
  }
}

char *json_canonical(JsonObject *value) {
  GString *out = g_string_new(NULL);
  append_canonical(out, value);
  return g_string_free(out, FALSE);
}
