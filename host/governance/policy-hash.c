/* SPDX-License-Identifier: Apache-2.0 */
/* policy-hash.c: one number for what a policy says, whatever the order of its keys (behaviour
 * 4.11). */
#include <string.h>

#include "base/digest.h"
#include "governance/policy-private.h"

static gboolean is_empty(JsonObject *value) {
  return !value ||
         (json_object_is_type(value, json_type_object) && json_object_object_length(value) == 0) ||
         (json_object_is_type(value, json_type_array) && json_object_array_length(value) == 0);
}

/* A copy in which no object has a member that says nothing: null, [] and {}. Owned. */
static JsonObject *without_empty(JsonObject *value) {
  if (json_object_is_type(value, json_type_array)) {
    JsonObject *array = json_object_new_array();
    for (gsize i = 0; i < json_object_array_length(value); i++) {
      json_object_array_add(array, without_empty(json_object_array_get_idx(value, i)));
    }
    return array;
  }
  if (!json_object_is_type(value, json_type_object)) {
    return json_object_get(value);
  }
  JsonObject *object = json_object_new_object();
  json_object_object_foreach(value, key, member) {
    JsonObject *kept = without_empty(member);
    if (is_empty(kept)) {
      json_object_put(kept);
    } else {
      json_add_take(object, key, kept);
    }
  }
  return object;
}

char *policy_compute_hash(JsonObject *source) {
  g_autoptr(JsonObject) kept = without_empty(source);
  g_autofree char *text = json_canonical(kept);
  return digest_hex(text, strlen(text));
}
