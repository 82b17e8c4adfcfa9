/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-json.c: a deep copy, member by member, of which every text was looked at. */
#include <string.h>

#include "privacy/privacy-private.h"

#define KEY_MARKER "[REDACTED]"

typedef struct {
  const Privacy *privacy;
  guint categories;
  gboolean keys; /* redact_keys count here */
  gboolean changed;
} Copy;

char *privacy_fold_key(const char *key) {
  char *folded = g_ascii_strdown(key, -1);
  for (char *at = folded; *at; at++) {
    *at = *at == '-' ? '_' : *at;
  }
  return folded;
}

static gboolean is_hidden(const Copy *copy, const char *key) {
  if (!copy->keys || g_hash_table_size(copy->privacy->keys) == 0) {
    return FALSE;
  }
  g_autofree char *folded = privacy_fold_key(key);
  return g_hash_table_contains(copy->privacy->keys, folded);
}

/* What such a member holds is made by a machine, and is no number of a person. */
static gboolean is_identifier(const char *key) {
  static const char *const ENDS[] = {"_id", "_ids", "_at", "_digest", "_hash", "sha256"};
  for (gsize i = 0; i < G_N_ELEMENTS(ENDS); i++) {
    if (g_str_has_suffix(key, ENDS[i])) {
      return TRUE;
    }
  }
  return FALSE;
}

static JsonObject *copy_text(Copy *copy, guint categories, JsonObject *value) {
  const char *text = json_object_get_string(value);
  gsize length = (gsize)json_object_get_string_len(value);
  GString *other = privacy_text_of(copy->privacy, categories, text, length);
  if (!other) {
    return json_object_new_string_len(text, (int)length);
  }
  JsonObject *redacted = json_from_bytes(other->str, other->len);
  g_string_free(other, TRUE);
  copy->changed = TRUE;
  return redacted;
}

static JsonObject *copy_value(Copy *copy, guint categories, JsonObject *value, gboolean keep_names);

static void copy_member(Copy *copy, guint categories, const char *key, JsonObject *value,
                        gboolean keep, JsonObject *object) {
  GString *other = privacy_text_of(copy->privacy, 0, key, strlen(key));
  if (value && !keep && is_hidden(copy, key)) {
    json_add_text(object, other ? other->str : key, KEY_MARKER);
    copy->changed = TRUE;
  } else {
    guint own = is_identifier(key) ? 0 : categories;
    json_add_take(object, other ? other->str : key, copy_value(copy, own, value, FALSE));
  }
  if (other) {
    g_string_free(other, TRUE);
    copy->changed = TRUE;
  }
}

/* Recurses as deep as JSON is read, or as this program nests it. */
static JsonObject *copy_value(Copy *copy, guint categories, JsonObject *value,
                              gboolean keep_names) {
  JsonObject *made = NULL;
  switch (json_object_get_type(value)) {
  case json_type_object:
    made = json_object_new_object();
    json_object_object_foreach(value, key, member) {
      copy_member(copy, categories, key, member, keep_names, made);
    }
    return made;
  case json_type_array:
    made = json_object_new_array();
    for (gsize i = 0; i < json_object_array_length(value); i++) {
      JsonObject *item = json_object_array_get_idx(value, i);
      json_object_array_add(made, copy_value(copy, categories, item, FALSE));
    }
    return made;
  case json_type_string:
    return copy_text(copy, categories, value);
  default: /* numbers keep the digits that they are written with */
    if (value) {
      json_object_deep_copy(value, &made, NULL);
    }
    return made;
  }
}

JsonObject *privacy_json(const Privacy *privacy, PrivacyBorder border, JsonObject *value,
                         gboolean keep_names, gboolean *ret_changed) {
  Copy copy = {
      .privacy = privacy,
      .keys = border == PRIVACY_TELEMETRY,
  };
  JsonObject *made = copy_value(&copy, privacy->categories[border], value, keep_names);
  if (ret_changed && copy.changed) {
    *ret_changed = TRUE;
  }
  return made;
}
