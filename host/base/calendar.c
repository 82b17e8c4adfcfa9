/* SPDX-License-Identifier: Apache-2.0 */
/* calendar.c: days and months of UTC, which knows no daylight saving. */
#include "base/calendar.h"

#include <time.h>

#include "base/clock.h"

#define DAY (86400 * CLOCK_SECOND)

gint64 calendar_day(gint64 wall) {
  gint64 past = wall % DAY;
  return wall - (past < 0 ? past + DAY : past);
}

gint64 calendar_month(gint64 wall) {
  gint64 day = calendar_day(wall);
  time_t seconds = (time_t)(day / CLOCK_SECOND);
  struct tm parts;
  gmtime_r(&seconds, &parts);
  return day - (parts.tm_mday - 1) * DAY;
}
