/* SPDX-License-Identifier: Apache-2.0 */
/* glob.h: the one glob of the product (behaviour 4.4): whole string, case-sensitive, * and ? also match
 * /, [abc] [a-z] [!abc], no escape character. */
#ifndef SANDHOST_BASE_GLOB_H
#define SANDHOST_BASE_GLOB_H

#include <glib.h>

/* Bytes, except that ? and a bracket take one whole UTF-8 character where text is valid there. Linear
 * in practice: never exponential, whatever the pattern. */
gboolean glob_match(const char *pattern, const char *text);

/* Whether any pattern of the NULL-terminated vector matches. NULL vector: FALSE. */
gboolean glob_match_any(const char *const *patterns, const char *text);

#endif
