/* SPDX-License-Identifier: Apache-2.0 */
/* repr.h: values printed for people the way the source documents print them (Python's repr). */
#ifndef SANDHOST_BASE_REPR_H
#define SANDHOST_BASE_REPR_H

#include "base/json.h"

/* 'text', or "text" when it holds ' and no "; backslash, newline, tab and CR escaped, other
 * non-printable characters as \xNN, \uNNNN, \UNNNNNNNN. Returns owned. */
char *repr_text(const char *text);

/* Any JSON value: ['a', 'b'], {'key': 1}, True, None. Returns owned. */
char *repr_json(JsonObject *value);

#endif
