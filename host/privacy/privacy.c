/* SPDX-License-Identifier: Apache-2.0 */
/* privacy.c: which parts of the room a text passes on its way to a border. JSON is in privacy-json.c. */
#include "privacy/privacy-private.h"

#include <string.h>

#include "privacy/command-forms.h"
#include "privacy/credentials.h"

Privacy *privacy_new(const PrivacyConfig *config, const char *const *declared,
                     const char *const *environment) {
  Privacy *privacy = g_new0(Privacy, 1);
  guint categories = 0;
  for (char **name = config->categories; config->enabled && *name; name++) {
    categories |= personal_category(*name);
  }
  privacy->categories[PRIVACY_TELEMETRY] = config->telemetry ? categories : 0;
  privacy->categories[PRIVACY_WORKSPACE] = config->workspace ? categories : 0;
  privacy->categories[PRIVACY_STREAM] = config->stream ? categories : 0;
  privacy->categories[PRIVACY_RESULT] = config->model_io || config->public_io ? categories : 0;
  privacy->needles = credentials_new(declared, environment);
  privacy->keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (char **key = config->redact_keys; *key; key++) {
    g_hash_table_add(privacy->keys, privacy_fold_key(*key));
  }
  return privacy;
}

void privacy_free(Privacy *privacy) {
  if (privacy) {
    needles_free(privacy->needles);
    g_hash_table_unref(privacy->keys);
    g_free(privacy);
  }
}

guint privacy_categories(const Privacy *privacy, PrivacyBorder border) {
  return privacy->categories[border];
}

const Needles *privacy_needles(const Privacy *privacy) {
  return privacy->needles;
}

gboolean privacy_is_idle(const Privacy *privacy, PrivacyBorder border) {
  return !privacy->needles && privacy->categories[border] == 0;
}

static GString *without_credentials(const Needles *needles, const void *data, gsize length) {
  if (!needles || length == 0 || !needles_any(needles, data, length)) {
    return NULL;
  }
  GString *out = g_string_sized_new(length);
  const TextSink sink = {.put = text_sink_append, .user = out};
  g_autoptr(CredentialStream) stream = credential_stream_new(needles, sink);
  credential_stream_add(stream, data, length);
  credential_stream_finish(stream, FALSE);
  return out;
}

/* Takes the first text away where the second one stands for it. */
static GString *newer(GString *take_first, GString *take_second) {
  if (take_first && take_second) {
    g_string_free(take_first, TRUE);
  }
  return take_second ? take_second : take_first;
}

GString *privacy_text_of(const Privacy *privacy, guint categories, const void *data, gsize length) {
  GString *plain = without_credentials(privacy->needles, data, length);
  return newer(plain, plain ? personal_redact(categories, plain->str, plain->len)
                            : personal_redact(categories, data, length));
}

GString *privacy_text(const Privacy *privacy, PrivacyBorder border, const void *data,
                      gsize length) {
  return privacy_text_of(privacy, privacy->categories[border], data, length);
}

char *privacy_command(const Privacy *privacy, PrivacyBorder border, const char *command) {
  GString *text = privacy_text(privacy, border, command, strlen(command));
  char *formed = command_forms_redact(text ? text->str : command);
  if (!text) {
    return formed;
  }
  char *plain = g_string_free(text, formed != NULL);
  return formed ? formed : plain;
}
