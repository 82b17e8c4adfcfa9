/* SPDX-License-Identifier: Apache-2.0 */
/* shown.c: what controls, hides or turns the text around it is written out. */
#include "base/shown.h"

#include <string.h>

gboolean shown_is_hidden(gunichar c) {
  switch (g_unichar_type(c)) {
  case G_UNICODE_CONTROL:
  case G_UNICODE_FORMAT:
  case G_UNICODE_LINE_SEPARATOR:
  case G_UNICODE_PARAGRAPH_SEPARATOR:
    return TRUE;
  default:
    return FALSE;
  }
}

static void append_character(GString *out, gunichar c) {
  static const char LETTERS[] = {['\n'] = 'n', ['\t'] = 't', ['\r'] = 'r'};
  if (c < sizeof LETTERS && LETTERS[c]) {
    g_string_append_printf(out, "\\%c", LETTERS[c]);
  } else if (c < 0x20 || c == 0x7f) {
    g_string_append_printf(out, "\\x%02x", c);
  } else if (shown_is_hidden(c)) {
    g_string_append_printf(out, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
  } else {
    g_string_append_unichar(out, c);
  }
}

void shown_append(GString *out, const char *text) {
  for (const char *at = text; *at;) {
    gunichar c = g_utf8_get_char_validated(at, -1);
    if (c == (gunichar)-1 || c == (gunichar)-2) {
      g_string_append_printf(out, "\\x%02x", (guchar)*at);
      at++;
    } else {
      append_character(out, c);
      at += g_utf8_skip[(guchar)*at];
    }
  }
}

char *shown_text(const char *text) {
  GString *out = g_string_new(NULL);
  shown_append(out, text ? text : "");
  return g_string_free(out, FALSE);
}

char **shown_lines(const char *text) {
  char **lines = g_strsplit(text ? text : "", "\n", -1);
  for (char **line = lines; *line; line++) {
    char *shown = shown_text(*line);
    g_free(*line);
    *line = shown;
  }
  return lines;
}
