/* SPDX-License-Identifier: Apache-2.0 */
/* json.h: JSON in and out, on json-c. Input is bounded, strict and UTF-8; a repeated key is refused. */
#ifndef SANDHOST_BASE_JSON_H
#define SANDHOST_BASE_JSON_H

#include <glib.h>
#include <json-c/json.h>

#define JSON_MAX_BYTES (16u << 20)
#define JSON_MAX_DEPTH 64

typedef struct json_object JsonObject;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonObject, json_object_put)

/* Parses one whole value. name goes into the error, which says what is wrong and on which line:
 * "{name} is not valid JSON: {what} (line {n})". A repeated key, a NUL in a string, more than the limits:
 * refused too. Returns owned; note that JSON null is a NULL pointer with *error unset. */
JsonObject *json_parse(const char *name, const char *text, size_t length, GError **error);

/* Reads and parses a file; "could not read {path}: {reason}". */
JsonObject *json_parse_file(const char *path, GError **error);

/* Compact, keys as inserted, non-ASCII as it is. Returns owned. */
char *json_text(JsonObject *value);

/* The same and a newline, given to put in pieces of at most 32 KiB; put returns FALSE to stop. Returns FALSE then. */
gboolean json_write_line(JsonObject *value,
                         gboolean (*put)(void *user, const void *data, size_t length), void *user);

/* Compact, keys sorted, non-ASCII as \uNNNN (surrogate pairs above U+FFFF); the input of hashes. */
char *json_canonical(JsonObject *value);

/* Adds to an object; copies the text; a NULL text becomes null. */
void json_add_text(JsonObject *object, const char *key, const char *value);
void json_add_int(JsonObject *object, const char *key, gint64 value);
void json_add_double(JsonObject *object, const char *key, double value);
void json_add_bool(JsonObject *object, const char *key, gboolean value);
/* Takes value (NULL: null). */
void json_add_take(JsonObject *object, const char *key, JsonObject *take_value);

/* Bytes as JSON text: bad UTF-8 becomes U+FFFD; NUL is kept (as \u0000). Returns owned. */
JsonObject *json_from_bytes(const char *data, size_t length);
/* The same of text that goes on behind data: an incomplete last character is dropped. Returns owned. */
JsonObject *json_from_cut_bytes(const char *data, size_t length);

/* Borrowed from object; NULL or 0 where the key is missing or of another type. */
const char *json_get_text(JsonObject *object, const char *key);
gint64 json_get_int(JsonObject *object, const char *key, gint64 fallback);
gboolean json_get_bool(JsonObject *object, const char *key, gboolean fallback);
JsonObject *json_get(JsonObject *object, const char *key);

/* A vector of the strings of an array. Returns owned. */
char **json_get_strv(JsonObject *array);
JsonObject *json_from_strv(const char *const *strings);

#endif
