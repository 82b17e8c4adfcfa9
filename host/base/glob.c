/* SPDX-License-Identifier: Apache-2.0 */
/* glob.c: matches by walking both strings once, going back only to the last star. */
#include "base/glob.h"

#include <string.h>

/* The character at text and its length: a whole UTF-8 character where there is one, else one
 * byte. */
static gunichar character(const char *text, gsize *ret_length) {
  gunichar value = g_utf8_get_char_validated(text, -1);
  if (value == (gunichar)-1 || value == (gunichar)-2) {
    *ret_length = 1;
    return 0x110000 + (guchar)*text; /* equal to itself, to no character */
  }
  *ret_length = (gsize)g_unichar_to_utf8(value, NULL);
  return value;
}

/* The end of the bracket that begins at pattern, or NULL: then [ is literal. A ] first is
 * literal. last is the pattern's last ], so that a pattern of many [ is not searched to its end
 * for each of them. */
static const char *bracket_end(const char *pattern, const char *last) {
  const char *at = pattern + 1;
  if (!last || at > last) {
    return NULL;
  }
  if (*at == '!') {
    at++;
  }
  if (*at == ']') {
    at++;
  }
  return strchr(at, ']');
}

static gboolean bracket_matches(const char *pattern, const char *end, gunichar wanted) {
  const char *at = pattern + 1;
  gboolean negated = *at == '!';
  gboolean found = FALSE;
  if (negated) {
    at++;
  }
  while (at < end) {
    gsize length = 0;
    gunichar low = character(at, &length);
    gunichar high = low;
    at += length;
    if (at[0] == '-' && at + 1 < end) {
      high = character(at + 1, &length);
      at += 1 + length;
    }
    found = found || (wanted >= low && wanted <= high);
  }
  return found != negated;
}

/* Matches one element of the pattern that is no star against the text; advances both on success. */
static gboolean match_one(const char **pattern, const char *last, const char **text) {
  gsize length = 0;
  if (!**text) {
    return FALSE;
  }
  gunichar wanted = character(*text, &length);
  const char *end = **pattern == '[' ? bracket_end(*pattern, last) : NULL;
  if (**pattern == '?') {
    (*pattern)++;
  } else if (end) {
    if (!bracket_matches(*pattern, end, wanted)) {
      return FALSE;
    }
    *pattern = end + 1;
  } else {
    if (**pattern != **text) {
      return FALSE;
    }
    (*pattern)++;
    length = 1;
  }
  *text += length;
  return TRUE;
}

gboolean glob_match(const char *pattern, const char *text) {
  const char *star = NULL; /* behind the last star met */
  const char *from = NULL; /* where the text that it leaves begins */
  const char *last = strrchr(pattern, ']');
  for (;;) {
    if (*pattern == '*') {
      star = ++pattern;
      from = text;
    } else if (!*pattern && !*text) {
      return TRUE;
    } else if (!*pattern || !match_one(&pattern, last, &text)) {
      if (!star || !*from) {
        return FALSE;
      }
      gsize length = 0; /* the star takes whole characters, or ? would match what is left of one */
      character(from, &length);
      pattern = star;
      text = from += length;
    }
  }
}

gboolean glob_match_any(const char *const *patterns, const char *text) {
  for (gsize i = 0; patterns && patterns[i]; i++) {
    if (glob_match(patterns[i], text)) {
      return TRUE;
    }
  }
  return FALSE;
}
