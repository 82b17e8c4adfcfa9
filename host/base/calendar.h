/* SPDX-License-Identifier: Apache-2.0 */
/* calendar.h: where a day and a month begin, in UTC. Times are nanoseconds since 1970. */
#ifndef SANDHOST_BASE_CALENDAR_H
#define SANDHOST_BASE_CALENDAR_H

#include <glib.h>

/* The last 00:00 UTC, and the last one of a first of the month, at or before wall. */
gint64 calendar_day(gint64 wall);
gint64 calendar_month(gint64 wall);

#endif
