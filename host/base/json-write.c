/* SPDX-License-Identifier: Apache-2.0 */
/* json-write.c: a value as text in pieces, so that a large one is never there twice. The text is that of json_text. */
#include <string.h>

#include "base/json.h"

/* What is put at once. A control character takes six times its room. */
#define PIECE_BYTES ((size_t)32 << 10)

typedef struct {
  gboolean (*put)(void *user, const void *data, size_t length);
  void *user;
  GString *piece;
  gboolean ok;
} Writer;

static void flush(Writer *writer) {
  if (writer->ok && writer->piece->len > 0) {
    writer->ok = writer->put(writer->user, writer->piece->str, writer->piece->len);
  }
  g_string_truncate(writer->piece, 0);
}

static void add(Writer *writer, const char *text, size_t length) {
  if (writer->piece->len + length > PIECE_BYTES) {
    flush(writer);
  }
  g_string_append_len(writer->piece, text, (gssize)length);
}

/* The letter behind the backslash; 0: there is none. */
static char short_escape(char c) {
  static const char ESCAPED[] = "\b\n\r\t\f\"\\";
  static const char LETTERS[] = "bnrtf\"\\";
  const char *at = c ? strchr(ESCAPED, c) : NULL;
  return (char)(at ? LETTERS[at - ESCAPED] : 0);
}

static void add_escaped(Writer *writer, char c) {
  static const char HEX[] = "0123456789abcdef";
  char letter = short_escape(c);
  if (letter) {
    const char text[] = {'\\', letter};
    add(writer, text, sizeof text);
  } else {
    const char text[] = {'\\', 'u', '0', '0', HEX[(c >> 4) & 15], HEX[c & 15]};
    add(writer, text, sizeof text);
  }
}

static gboolean is_plain(char c) {
  return (guchar)c >= ' ' && c != '"' && c != '\\';
}

static void add_string(Writer *writer, const char *text, size_t length) {
  add(writer, "\"", 1);
  for (size_t at = 0; writer->ok && at < length;) {
    size_t run = 0;
    while (at + run < length && run < PIECE_BYTES && is_plain(text[at + run])) {
      run++;
    }
    add(writer, text + at, run);
    at += run;
    if (at < length && run < PIECE_BYTES) {
      add_escaped(writer, text[at++]);
    }
  }
  add(writer, "\"", 1);
}

static void add_value(Writer *writer, JsonObject *value);

static void add_object(Writer *writer, JsonObject *object) {
  const char *before = "{";
  json_object_object_foreach(object, key, value) {
    add(writer, before, 1);
    add_string(writer, key, strlen(key));
    add(writer, ":", 1);
    add_value(writer, value);
    before = ",";
  }
  add(writer, *before == '{' ? "{}" : "}", *before == '{' ? 2 : 1);
}

static void add_array(Writer *writer, JsonObject *array) {
  add(writer, "[", 1);
  for (size_t i = 0; writer->ok && i < json_object_array_length(array); i++) {
    if (i > 0) {
      add(writer, ",", 1);
    }
    add_value(writer, json_object_array_get_idx(array, i));
  }
  add(writer, "]", 1);
}

static void add_value(Writer *writer, JsonObject *value) {
  const char *text = "null";
  switch (json_object_get_type(value)) {
  case json_type_object:
    add_object(writer, value);
    return;
  case json_type_array:
    add_array(writer, value);
    return;
  case json_type_string:
    add_string(writer, json_object_get_string(value), (size_t)json_object_get_string_len(value));
    return;
  default:
    text = value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : text;
    add(writer, text, strlen(text));
  }
}

gboolean json_write_line(JsonObject *value,
                         gboolean (*put)(void *user, const void *data, size_t length), void *user) {
  Writer writer = {.put = put, .user = user, .piece = g_string_new(NULL), .ok = TRUE};
  add_value(&writer, value);
  add(&writer, "\n", 1);
  flush(&writer);
  g_string_free(writer.piece, TRUE);
  return writer.ok;
}
