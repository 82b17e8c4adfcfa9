/* SPDX-License-Identifier: Apache-2.0 */
/* ask-digest.c: the digest of an ask, which must never change: approvals that wait bear it. */
#include "base/ask-digest.h"

#include <string.h>

#include "base/digest.h"

char *ask_digest_json(JsonObject *value) {
  g_autofree char *text = json_canonical(value);
  return digest_hex(text, strlen(text));
}

char *ask_digest(JsonObject *asked, JsonObject *arguments, const char *argv_digest) {
  g_autoptr(JsonObject) whole = json_object_new_object();
  g_autofree char *digest = ask_digest_json(arguments);
  json_add_take(whole, "asked", json_object_get(asked));
  json_add_text(whole, "arguments_digest", digest);
  json_add_text(whole, "argv_digest", argv_digest);
  return ask_digest_json(whole);
}
