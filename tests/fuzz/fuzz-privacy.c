/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-privacy.c: the first lines are credentials, the rest is text. However it is cut, no credential is left in it, the
 * markers are the same, and what holds nothing stays as it was. */
#include <glib.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "privacy/command-forms.h"
#include "privacy/credential-stream.h"
#include "privacy/credentials.h"
#include "privacy/personal-stream.h"

#define MOST_VALUES 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static GString *clean(const Needles *needles, const char *text, gsize length, gsize step) {
  GString *out = g_string_new(NULL);
  const TextSink sink = {.put = text_sink_append, .user = out};
  g_autoptr(CredentialStream) stream = credential_stream_new(needles, sink);
  for (gsize at = 0; at < length; at += step) {
    credential_stream_add(stream, text + at, MIN(step, length - at));
  }
  credential_stream_finish(stream, FALSE);
  return out;
}

static GString *impersonal(const char *text, gsize length, gsize step) {
  GString *out = g_string_new(NULL);
  const TextSink sink = {.put = text_sink_append, .user = out};
  g_autoptr(PersonalStream) stream = personal_stream_new(PERSONAL_ALL, sink);
  for (gsize at = 0; at < length; at += step) {
    personal_stream_add(stream, text + at, MIN(step, length - at));
  }
  personal_stream_finish(stream);
  return out;
}

/* What is left between the markers holds none. */
static void check_rest(const Needles *needles, const GString *clean_text) {
  const char *at = clean_text->str;
  const char *end = at + clean_text->len;
  while (at < end) {
    const char *marker =
        memmem(at, (gsize)(end - at), CREDENTIAL_MARKER, strlen(CREDENTIAL_MARKER));
    const char *stop = marker ? marker : end;
    g_assert_false(needles_any(needles, at, (gsize)(stop - at)));
    at = marker ? marker + strlen(CREDENTIAL_MARKER) : end;
  }
}

static void check_credentials(const char *const *values, const char *text, gsize length) {
  g_autoptr(Needles) needles = credentials_new(values, NULL);
  if (!needles) {
    return;
  }
  GString *whole = clean(needles, text, length, MAX(length, 1));
  GString *pieces = clean(needles, text, length, 7);
  g_assert_true(g_string_equal(whole, pieces));
  check_rest(needles, whole);
  if (!needles_any(needles, text, length)) {
    g_assert_cmpuint(whole->len, ==, length);
    g_assert_true(length == 0 || memcmp(whole->str, text, length) == 0);
  }
  g_string_free(whole, TRUE);
  g_string_free(pieces, TRUE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *values[MOST_VALUES + 1] = {NULL};
  const char *text = (const char *)data;
  gsize length = size;
  for (guint i = 0; i < MOST_VALUES && length > 0; i++) {
    const char *end = memchr(text, '\n', length);
    gsize line = end ? (gsize)(end - text) : length;
    values[i] = g_strndup(text, line);
    line += end ? 1 : 0;
    text += line;
    length -= line;
  }
  check_credentials((const char *const *)values, text, length);
  for (guint i = 0; i < MOST_VALUES; i++) {
    g_free(values[i]);
  }

  GString *stepped = impersonal(text, length, 5);
  GString *once = personal_redact(PERSONAL_ALL, text, length);
  if (length <= PERSONAL_MOST_HELD) { /* a longer token is let go in parts */
    g_assert_cmpuint(stepped->len, ==, once ? once->len : length);
    g_assert_true(length == 0 || memcmp(stepped->str, once ? once->str : text, stepped->len) == 0);
  }
  g_string_free(stepped, TRUE);
  if (once) {
    g_string_free(once, TRUE);
  }
  g_autofree char *command = g_strndup(text, length);
  g_free(command_forms_redact(command));
  return 0;
}
