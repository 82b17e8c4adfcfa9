/* SPDX-License-Identifier: Apache-2.0 */
/* engine-json.c: what an engine says, read with the suspicion it deserves. */
#include "engine-private.h"

#include <string.h>

#define MAX_DEPTH 32

json_object *engine_parse(const char *text, size_t length) {
  if (length == 0 || length > G_MAXINT) {
    return NULL;
  }
  json_tokener *tokener = json_tokener_new_ex(MAX_DEPTH);
  if (!tokener) {
    return NULL;
  }
  json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
  json_object *json = json_tokener_parse_ex(tokener, text, (int)length);
  size_t end = json_tokener_get_parse_end(tokener);
  gboolean whole = json_tokener_get_error(tokener) == json_tokener_success;
  for (size_t i = end; whole && i < length; i++) {
    whole = g_ascii_isspace(text[i]);
  }
  json_tokener_free(tokener);
  if (!whole && json) {
    json_object_put(json);
    json = NULL;
  }
  return json;
}

/* The value at a path of keys; NULL where one is missing or not in an object. */
static json_object *find(json_object *json, const char *keys) {
  while (json && *keys) {
    size_t length = strcspn(keys, "/");
    g_autofree char *key = g_strndup(keys, length);
    json_object *value = NULL;
    if (!json_object_is_type(json, json_type_object) ||
        !json_object_object_get_ex(json, key, &value)) {
      return NULL;
    }
    json = value;
    keys += length + (keys[length] == '/' ? 1 : 0);
  }
  return json;
}

const char *engine_text(json_object *json, const char *keys) {
  json_object *value = find(json, keys);
  if (!json_object_is_type(value, json_type_string)) {
    return NULL;
  }
  const char *text = json_object_get_string(value);
  /* A text with a NUL in it means one thing here and another there. */
  return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

int64_t engine_integer(json_object *json, const char *keys, int64_t fallback) {
  json_object *value = find(json, keys);
  return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : fallback;
}

gboolean engine_boolean(json_object *json, const char *keys, gboolean fallback) {
  json_object *value = find(json, keys);
  return json_object_is_type(value, json_type_boolean) ? json_object_get_boolean(value) : fallback;
}

json_object *engine_object(json_object *json, const char *keys) {
  json_object *value = find(json, keys);
  return json_object_is_type(value, json_type_object) ? value : NULL;
}

json_object *engine_list(json_object *json, const char *keys) {
  json_object *value = find(json, keys);
  return json_object_is_type(value, json_type_array) ? value : NULL;
}

char *engine_escape(const char *text) {
  return g_uri_escape_string(text, NULL, FALSE);
}

/* Characters that move the cursor, turn the line around, or are no characters. */
static gboolean is_unfit(gunichar character) {
  switch (g_unichar_type(character)) {
  case G_UNICODE_CONTROL:
  case G_UNICODE_FORMAT:
  case G_UNICODE_LINE_SEPARATOR:
  case G_UNICODE_PARAGRAPH_SEPARATOR:
  case G_UNICODE_PRIVATE_USE:
  case G_UNICODE_SURROGATE:
  case G_UNICODE_UNASSIGNED:
    return TRUE;
  default:
    return FALSE;
  }
}

char *engine_clean(const char *text, size_t length) {
  /* Four times what is kept: whatever is made of it, the rest could not be seen. */
  g_autofree char *valid = g_utf8_make_valid(text, (gssize)MIN(length, 4 * ENGINE_MAX_MESSAGE));
  g_autoptr(GString) clean = g_string_new(NULL);
  for (char *at = valid; *at; at = g_utf8_next_char(at)) {
    gunichar character = g_utf8_get_char(at);
    gboolean is_space = is_unfit(character) || character == ' ';
    if (is_space && (clean->len == 0 || clean->str[clean->len - 1] == ' ')) {
      continue;
    }
    if (clean->len + 4 > ENGINE_MAX_MESSAGE) {
      break;
    }
    g_string_append_unichar(clean, is_space ? ' ' : character);
  }
  return g_strchomp(g_string_free(g_steal_pointer(&clean), FALSE));
}
