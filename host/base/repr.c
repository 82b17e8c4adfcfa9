/* SPDX-License-Identifier: Apache-2.0 */
/* repr.c: values as the source documents print them. */
#include "base/repr.h"

#include <string.h>

#include "base/shown.h"

/* What stands as it is: anything to see, but of the spaces only the common one. */
static gboolean is_shown(gunichar c) {
  return c == ' ' || (g_unichar_isprint(c) && !g_unichar_isspace(c) &&
                      g_unichar_type(c) != G_UNICODE_PRIVATE_USE);
}

static void append_text(GString *out, const char *text) {
  char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
  g_string_append_c(out, quote);
  for (const char *at = text; *at;) {
    gunichar c = g_utf8_get_char_validated(at, -1);
    if (c == (gunichar)-1 || c == (gunichar)-2) {
      g_string_append_printf(out, "\\x%02x", (guchar)*at++);
      continue;
    }
    at += g_unichar_to_utf8(c, NULL);
    if (c == '\\' || c == (gunichar)quote) {
      g_string_append_printf(out, "\\%c", (char)c);
    } else if (c == '\n') {
      g_string_append(out, "\\n");
    } else if (c == '\t') {
      g_string_append(out, "\\t");
    } else if (c == '\r') {
      g_string_append(out, "\\r");
    } else if (is_shown(c)) {
      g_string_append_unichar(out, c);
    } else if (c < 0x100) {
      g_string_append_printf(out, "\\x%02x", c);
    } else {
      g_string_append_printf(out, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    }
  }
  g_string_append_c(out, quote);
}

void repr_line(char *text) {
  for (char *at = text; at && *at;) {
    gunichar c = g_utf8_get_char_validated(at, -1);
    gboolean valid = c != (gunichar)-1 && c != (gunichar)-2;
    gsize length = valid ? (gsize)g_unichar_to_utf8(c, NULL) : 1;
    if (valid && shown_is_hidden(c)) {
      memset(at, ' ', length);
    }
    at += length;
  }
}

static void append_json(GString *out, JsonObject *value) {
  gboolean first = TRUE;
  switch (json_object_get_type(value)) {
  case json_type_null:
    g_string_append(out, "None");
    break;
  case json_type_boolean:
    g_string_append(out, json_object_get_boolean(value) ? "True" : "False");
    break;
  case json_type_string:
    append_text(out, json_object_get_string(value));
    break;
  case json_type_array:
    g_string_append_c(out, '[');
    for (gsize i = 0; i < json_object_array_length(value); i++) {
      g_string_append(out, i ? ", " : "");
      append_json(out, json_object_array_get_idx(value, i));
    }
    g_string_append_c(out, ']');
    break;
  case json_type_object:
    g_string_append_c(out, '{');
    json_object_object_foreach(value, key, member) {
      g_string_append(out, first ? "" : ", ");
      first = FALSE;
      append_text(out, key);
      g_string_append(out, ": ");
      append_json(out, member);
    }
    g_string_append_c(out, '}');
    break;
  default:
    g_string_append(out, json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
  }
}

char *repr_text(const char *text) {
  GString *out = g_string_new(NULL);
  append_text(out, text);
  return g_string_free(out, FALSE);
}

char *repr_json(JsonObject *value) {
  GString *out = g_string_new(NULL);
  append_json(out, value);
  return g_string_free(out, FALSE);
}
