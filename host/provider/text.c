/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: makes what a plugin said fit to be shown: bounded, UTF-8, one line, nothing that a terminal obeys. */
#include "provider/text.h"

#include <string.h>

/* Characters that print nothing and change how the rest is read: embedding, override, isolate, marks. */
static gboolean turns_direction(gunichar c) {
  return c == 0x200e || c == 0x200f || c == 0x061c || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069);
}

static gboolean must_go(gunichar c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || turns_direction(c) || c == 0x2028 || c == 0x2029;
}

/* The longest prefix of at most max bytes that ends with a whole character. */
static gsize whole_prefix(const char *data, gsize length, gsize max) {
  if (length <= max) {
    return length;
  }
  gsize end = max;
  while (end > 0 && max - end < 4 && ((guchar)data[end] & 0xc0) == 0x80) {
    end--;
  }
  return ((guchar)data[end] & 0xc0) == 0x80 ? max : end;
}

char *text_clean(struct sandhost_text text) {
  if (!text.data || text.length == 0) {
    return g_strdup("");
  }
  gsize length = whole_prefix(text.data, text.length, TEXT_MAX_BYTES);
  g_autofree char *valid = g_utf8_make_valid(text.data, (gssize)length);
  g_autoptr(GString) out = g_string_sized_new(length);
  for (char *at = valid; *at; at = g_utf8_next_char(at)) {
    gunichar c = g_utf8_get_char(at);
    if (c == '\n' || c == '\r' || c == '\t') {
      g_string_append_c(out, ' ');
    } else if (must_go(c)) {
      g_string_append_unichar(out, 0xfffd);
    } else {
      g_string_append_unichar(out, c);
    }
  }
  g_string_truncate(out, whole_prefix(out->str, out->len, TEXT_MAX_BYTES)); /* U+FFFD is longer */
  return g_strdup(g_strchomp(out->str));
}

char *text_clean_string(const char *string, gsize max) {
  return text_clean(
      (struct sandhost_text){.data = string, .length = string ? strnlen(string, max) : 0});
}

char *text_checked_line(const char *string, gsize max) {
  if (!string) {
    return NULL;
  }
  gsize length = strnlen(string, max + 1);
  if (length > max || !g_utf8_validate_len(string, length, NULL)) {
    return NULL;
  }
  g_autofree char *copy = g_strndup(string, length);
  for (char *at = copy; *at; at = g_utf8_next_char(at)) {
    if (must_go(g_utf8_get_char(at))) {
      return NULL;
    }
  }
  return g_steal_pointer(&copy);
}

gboolean text_is_name(const char *string, gsize max, const char *also) {
  if (!string || !g_ascii_islower(string[0])) {
    return FALSE;
  }
  gsize length = strnlen(string, max + 1);
  for (gsize i = 0; i < length; i++) {
    if (!g_ascii_islower(string[i]) && !g_ascii_isdigit(string[i]) && string[i] != '_' &&
        !strchr(also, string[i])) {
      return FALSE;
    }
  }
  return length <= max;
}
