/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.c: most rules of a long policy are settled by comparing the ends of a glob with those of
 * the text; only what is left is matched character by character. */
#include "governance/pattern.h"

#include <string.h>

#include "base/glob.h"

/* Bytes behind the last star, 0 when a wildcard may be among them. A star in a bracket has its ]
 * behind it, and so counts for nothing. */
static gsize literal_suffix(const char *glob) {
  const char *star = strrchr(glob, '*');
  return star && !strpbrk(star, "?[]") ? strlen(star + 1) : 0;
}

void pattern_set(Pattern *pattern, char *take_glob) {
  *pattern = (Pattern){.glob = take_glob};
  if (!take_glob) {
    return;
  }
  pattern->prefix = strcspn(take_glob, "*?[");
  pattern->suffix = literal_suffix(take_glob);
  pattern->end = take_glob + strlen(take_glob) - pattern->suffix;
  if (!take_glob[pattern->prefix]) {
    pattern->kind = PATTERN_LITERAL;
  } else if (take_glob[pattern->prefix] == '*' &&
             !strpbrk(take_glob + pattern->prefix + 1, "*?[]")) {
    pattern->kind = PATTERN_ENDS;
  } else {
    pattern->kind = PATTERN_GLOB;
  }
}

void pattern_clear(Pattern *pattern) {
  g_free(pattern->glob);
  *pattern = (Pattern){.glob = NULL};
}

static gboolean ends_match(const Pattern *pattern, const char *text) {
  if (strncmp(pattern->glob, text, pattern->prefix) != 0) {
    return FALSE;
  }
  const char *rest = text + pattern->prefix;
  gsize length = strlen(rest);
  return length >= pattern->suffix && strcmp(rest + length - pattern->suffix, pattern->end) == 0;
}

gboolean pattern_matches(const Pattern *pattern, const char *text) {
  const char *value = text ? text : "";
  switch (pattern->kind) {
  case PATTERN_NONE:
    return TRUE;
  case PATTERN_LITERAL:
    return strcmp(pattern->glob, value) == 0;
  case PATTERN_ENDS:
    return ends_match(pattern, value);
  case PATTERN_GLOB:
    break;
  }
  return ends_match(pattern, value) && glob_match(pattern->glob, value);
}
