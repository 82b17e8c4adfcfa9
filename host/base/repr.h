/* SPDX-License-Identifier: Apache-2.0 */
/* repr.h: values printed for people the way the source documents print them (Python's repr). */
#ifndef SANDHOST_BASE_REPR_H
#define SANDHOST_BASE_REPR_H

#include "base/json.h"

/* 'text', or "text" when it holds ' and no "; backslash, newline, tab and CR escaped, other
 * non-printable characters as \xNN, \uNNNN, \UNNNNNNNN. Returns owned. */
char *repr_text(const char *text);

/* In place, for one line at a terminal: what would move a cursor, hide, or turn around what stands beside it (controls, also
 * those above ASCII, directions, characters of no width) becomes spaces. text may be NULL. */
void repr_line(char *text);

/* Any JSON value: ['a', 'b'], {'key': 1}, True, None. Returns owned. */
char *repr_json(JsonObject *value);

#endif
