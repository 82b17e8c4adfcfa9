/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.c: from what a machine knows to a set of texts. */
#include "privacy/credentials.h"

#include <string.h>

#include "config/credentials.h"

/* More than a machine has: the rest is left out. */
#define MOST_VALUES 4096u
#define MOST_BYTES (64u << 10) /* of one value; what is behind them falls to the rest of the text */

/* ---- Spellings --------------------------------------------------------------------------------------------------- */

/* How a writer of JSON spells what it need not: each of these is what some writer does by itself. */
typedef struct {
  gboolean slashes; /* as \/ */
  gboolean ascii;   /* everything else as \u... */
  gboolean upper;   /* its digits */
  const char *hex;  /* these too, for the sake of HTML: quotes that are not here are \" */
} Spelling;

static const char *const HEX[] = {"", "<>&", "\"", "<>&'\"", "<>&'\"+`"};

static void append_unit(GString *out, gunichar unit, gboolean upper) {
  g_string_append_printf(out, upper ? "\\u%04X" : "\\u%04x", unit);
}

static void append_character(GString *out, gunichar c, const Spelling *spelling) {
  static const char SHORT[] = {
      ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
  if (c < 0x80 && c > 0 && strchr(spelling->hex, (int)c)) {
    append_unit(out, c, spelling->upper);
  } else if (c == '"' || c == '\\' || (c == '/' && spelling->slashes)) {
    g_string_append_printf(out, "\\%c", (char)c);
  } else if (c < sizeof SHORT && SHORT[c]) {
    g_string_append_printf(out, "\\%c", SHORT[c]);
  } else if (c < 0x20 || (spelling->ascii && c >= 0x7f && c < 0x10000)) {
    append_unit(out, c, spelling->upper);
  } else if (spelling->ascii && c >= 0x10000) {
    append_unit(out, 0xd800 + ((c - 0x10000) >> 10), spelling->upper);
    append_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff), spelling->upper);
  } else {
    g_string_append_unichar(out, c);
  }
}

/* As JSON writes it between its quotes. Owned. */
static char *escaped(const char *value, const Spelling *spelling) {
  GString *out = g_string_new(NULL);
  for (const char *at = value; *at; at += g_utf8_skip[(guchar)*at]) {
    append_character(out, g_utf8_get_char(at), spelling);
  }
  return g_string_free(out, FALSE);
}

/* Whether nobody spells it in another way. */
static gboolean is_plain(const char *value) {
  while (g_ascii_isalnum(*value) || *value == '-' || *value == '_' || *value == '.') {
    value++;
  }
  return *value == '\0';
}

/* ---- The set ----------------------------------------------------------------------------------------------------- */

/* Takes text. */
static void add_text(GHashTable *set, char *take_text) {
  if (!take_text || strlen(take_text) < CREDENTIAL_LEAST_BYTES ||
      g_hash_table_size(set) >= MOST_VALUES) {
    g_free(take_text);
    return;
  }
  g_hash_table_add(set, take_text);
}

static void add_spellings(GHashTable *set, const char *value) {
  add_text(set, g_strdup(value));
  if (is_plain(value) || !g_utf8_validate(value, -1, NULL)) {
    return;
  }
  for (guint way = 0; way < 8 * G_N_ELEMENTS(HEX); way++) {
    const Spelling spelling = {.slashes = (way & 1) != 0,
                               .ascii = (way & 2) != 0,
                               .upper = (way & 4) != 0,
                               .hex = HEX[way / 8]};
    add_text(set, escaped(value, &spelling));
  }
}

/* A key in PEM is seldom printed just as it is kept: its lines are found one by one. */
static void add_lines(GHashTable *set, const char *value) {
  g_auto(GStrv) lines = g_strsplit_set(value, "\r\n", -1);
  for (char **line = lines; *line && lines[1]; line++) {
    g_strstrip(*line);
    if (strlen(*line) >= CREDENTIAL_LEAST_BYTES && !strstr(*line, "-----")) {
      add_spellings(set, *line);
    }
  }
}

static void add_value(GHashTable *set, const char *value) {
  g_autofree char *bounded = g_strndup(value, MOST_BYTES);
  g_strstrip(bounded); /* the newline of a file that it came from */
  add_spellings(set, bounded);
  add_lines(set, bounded);
  const char *bare = credential_without_scheme(bounded);
  if (bare != bounded) {
    add_spellings(set, bare);
  }
}

/* ---- What counts -------------------------------------------------------------------------------------------------- */

static gboolean is_path(const char *value) {
  gboolean rooted = *value == '/' && (strchr(value + 1, '/') || strchr(value, '.'));
  return rooted || g_str_has_prefix(value, "~/") || g_str_has_prefix(value, "./") ||
         g_str_has_prefix(value, "../");
}

static gboolean is_number(const char *value) {
  return value[strspn(value, "0123456789.+-")] == '\0';
}

static gboolean is_word(const char *value) {
  return value[strcspn(value, " \t\r\n\f\v")] == '\0';
}

static void add_variable(GHashTable *set, const char *variable) {
  const char *equals = strchr(variable, '=');
  if (!equals) {
    return;
  }
  const char *value = credential_without_scheme(equals + 1);
  g_autofree char *name = g_strndup(variable, (gsize)(equals - variable));
  g_autoptr(GPtrArray) within = g_ptr_array_new_with_free_func(g_free);
  credentials_within(value, credential_is_name(name), within);
  for (guint i = 0; i < within->len; i++) {
    add_value(set, g_ptr_array_index(within, i));
  }
  if (strlen(value) >= CREDENTIAL_LEAST_NAMED && is_word(value) && !is_path(value) &&
      !is_number(value) && credential_is_name(name)) {
    add_value(set, value);
  }
}

Needles *credentials_new(const char *const *declared, const char *const *environment) {
  g_autoptr(GHashTable) set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (gsize i = 0; declared && declared[i]; i++) {
    if (!is_path(declared[i])) {
      add_value(set, declared[i]);
    }
  }
  for (gsize i = 0; environment && environment[i]; i++) {
    add_variable(set, environment[i]);
  }
  guint count = 0;
  g_autofree gpointer *texts = g_hash_table_get_keys_as_array(set, &count);
  return needles_new((const char *const *)texts, count);
}
