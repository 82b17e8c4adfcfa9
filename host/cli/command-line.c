/* SPDX-License-Identifier: Apache-2.0 */
/* command-line.c: joins words so that sh reads them back as they were. */
#include "cli/command-line.h"

#include <string.h>

static gboolean is_plain(const char *word) {
  static const char PLAIN[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
  return *word && word[strspn(word, PLAIN)] == '\0';
}

char *command_line_join(const char *const *words) {
  if (words[0] && !words[1]) {
    return g_strdup(words[0]);
  }
  GString *line = g_string_new(NULL);
  for (gsize i = 0; words[i]; i++) {
    g_autofree char *quoted = is_plain(words[i]) ? g_strdup(words[i]) : g_shell_quote(words[i]);
    g_string_append_printf(line, "%s%s", i ? " " : "", quoted);
  }
  return g_string_free(line, FALSE);
}
