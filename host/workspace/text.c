/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: most files are ASCII, so a word at a time is looked at until the first other byte. */
#include "workspace/text.h"

#include <string.h>

/* How many bytes at the beginning are ASCII and not NUL; rounded down to words, so there may be
 * more. */
static gsize ascii_words(const guint8 *data, gsize length) {
  const guint64 high = G_GUINT64_CONSTANT(0x8080808080808080);
  const guint64 ones = G_GUINT64_CONSTANT(0x0101010101010101);
  gsize at = 0;
  for (; length - at >= sizeof(guint64); at += sizeof(guint64)) {
    guint64 word;
    memcpy(&word, data + at, sizeof word);
    /* A zero byte borrows in the subtraction, which sets its high bit. */
    if ((word | (word - ones)) & high) {
      break;
    }
  }
  return at;
}

gboolean text_is_utf8(const void *data, gsize length) {
  const guint8 *bytes = data;
  gsize ascii = length ? ascii_words(bytes, length) : 0;
  /* The rest begins at a character: what precedes it is ASCII. */
  return ascii == length || g_utf8_validate_len((const char *)bytes + ascii, length - ascii, NULL);
}

gboolean text_may_begin(const void *data, gsize length) {
  const char *end = NULL;
  if (length == 0 || g_utf8_validate_len(data, length, &end)) {
    return TRUE;
  }
  gsize rest = length - (gsize)(end - (const char *)data);
  /* GLib also calls a character cut that begins with NUL. */
  return *end != '\0' && g_utf8_get_char_validated(end, (gssize)rest) == (gunichar)-2;
}
