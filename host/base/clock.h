/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: points in time. Durations are 64-bit nanoseconds. */
#ifndef SANDHOST_BASE_CLOCK_H
#define SANDHOST_BASE_CLOCK_H

#include <glib.h>

#define CLOCK_SECOND G_GINT64_CONSTANT(1000000000)
#define CLOCK_MILLISECOND G_GINT64_CONSTANT(1000000)

/* CLOCK_MONOTONIC nanoseconds. */
gint64 clock_now(void);

/* Nanoseconds since 1970. In the year 2262 they end: from then on it is the last of them. */
gint64 clock_wall(void);
/* The same of a time in seconds and nanoseconds. */
gint64 clock_count(gint64 seconds, gint64 nanoseconds);

/* ISO 8601 UTC with microseconds: 2026-01-31T12:00:00.000000Z. Returns owned. */
char *clock_format(gint64 wall);

/* now + duration, never past INT64_MAX; a negative duration is no deadline (INT64_MAX). */
gint64 clock_deadline(gint64 duration);

#endif
