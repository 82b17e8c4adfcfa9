/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h: a glob that is asked often: what can be told from its ends is worked out once. */
#ifndef SANDHOST_GOVERNANCE_PATTERN_H
#define SANDHOST_GOVERNANCE_PATTERN_H

#include <glib.h>

typedef enum {
  PATTERN_NONE,    /* no glob: matches anything */
  PATTERN_LITERAL, /* no wildcard */
  PATTERN_ENDS,    /* one star between two literals: its ends decide */
  PATTERN_GLOB,    /* its ends may only refuse */
} PatternKind;

typedef struct {
  PatternKind kind;
  char *glob;      /* owned; NULL: PATTERN_NONE */
  gsize prefix;    /* bytes before the first wildcard */
  gsize suffix;    /* bytes after the last star, when they are literal */
  const char *end; /* the suffix itself, within glob */
} Pattern;

/* A pattern of zeroes is PATTERN_NONE. Takes glob (UTF-8, or NULL); forgets what was there. */
void pattern_set(Pattern *pattern, char *take_glob);
void pattern_clear(Pattern *pattern);

/* What glob_match says (base/glob.h); NULL text is the empty string. */
gboolean pattern_matches(const Pattern *pattern, const char *text);

#endif
