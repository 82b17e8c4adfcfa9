/* SPDX-License-Identifier: Apache-2.0 */
/* amount.h: spans of time, points in time and sizes, as people write them. All complain of what they cannot read,
 * naming the option, and return FALSE. */
#ifndef SANDHOST_CLI_AMOUNT_H
#define SANDHOST_CLI_AMOUNT_H

#include <glib.h>

/* "90s", "30m", "12h", "7d", "2w": nanoseconds. */
gboolean amount_span(const char *option, const char *text, gint64 *ret_span);
/* A span before now, or a date or time of ISO 8601 (UTC where it has no zone): nanoseconds since 1970. */
gboolean amount_since(const char *option, const char *text, gint64 *ret_wall);
/* "1000", "500K", "20M", "1G", powers of 1024: bytes. */
gboolean amount_size(const char *option, const char *text, gint64 *ret_bytes);

#endif
