/* SPDX-License-Identifier: Apache-2.0 */
/* check.h: the questions that every part of the configuration asks of its JSON, with their
 * texts. All errors are CONFIG. where is the full path of the object that holds the key;
 * borrowed. */
#ifndef SANDHOST_CONFIG_CHECK_H
#define SANDHOST_CONFIG_CHECK_H

#include "base/json.h"

/* Sets a CONFIG error and returns FALSE. */
gboolean check_refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* "{where}.{key} must be {wanted}, got {value}". Shows a scalar, cut when long, and of a list or
 * an object only that it is one: what stands inside may be a secret. Returns FALSE. */
gboolean check_refuse_type(const char *where, const char *key, const char *wanted,
                           JsonObject *value, GError **error);

/* "{where} has unknown keys: {found}. Allowed keys: {allowed}", found sorted. allowed is
 * NULL-terminated and sorted. */
gboolean check_keys(JsonObject *object, const char *where, const char *const *allowed,
                    GError **error);

/* Each writes its output only when the key is there, and fails when it is of another type. An
 * owned output replaces (and frees) what is there. null is as good as a missing key for texts
 * and objects; as a boolean, a number or a list it is of another type. */
gboolean check_text(JsonObject *object, const char *where, const char *key, char **ret_text,
                    GError **error); /* may be empty */
gboolean check_full_text(JsonObject *object, const char *where, const char *key, char **ret_text,
                         GError **error); /* more than white space */
gboolean check_choice(JsonObject *object, const char *where, const char *key,
                      const char *const *choices, char **ret_choice, GError **error);
gboolean check_bool(JsonObject *object, const char *where, const char *key, gboolean *ret_value,
                    GError **error);
gboolean check_int(JsonObject *object, const char *where, const char *key, gint64 least,
                   gint64 most, gint64 *ret_value, GError **error);
/* *ret_object is borrowed from object. */
gboolean check_object(JsonObject *object, const char *where, const char *key,
                      JsonObject **ret_object, GError **error);
/* A list of strings, which may be empty; owned. */
gboolean check_strv(JsonObject *object, const char *where, const char *key, char ***ret_strings,
                    GError **error);

/* The names with a separator between them; owned. */
char *check_join(const char *const *names, const char *separator);

/* The one of names (NULL-terminated) that is most like word, or NULL when none is near.
 * Borrowed. */
const char *check_near(const char *word, const char *const *names);

#endif
