/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c: the two clocks. */
#include "base/clock.h"

#include <time.h>

gint64 clock_count(gint64 seconds, gint64 nanoseconds) {
  gint64 count = 0;
  if (__builtin_mul_overflow(seconds, CLOCK_SECOND, &count) ||
      __builtin_add_overflow(count, nanoseconds, &count)) {
    return seconds < 0 ? G_MININT64 : G_MAXINT64;
  }
  return count;
}

static gint64 read_clock(clockid_t id) {
  struct timespec now;
  clock_gettime(id, &now);
  return clock_count(now.tv_sec, now.tv_nsec);
}

gint64 clock_now(void) {
  return read_clock(CLOCK_MONOTONIC);
}

gint64 clock_wall(void) {
  return read_clock(CLOCK_REALTIME);
}

char *clock_format(gint64 wall) {
  gint64 below = wall % CLOCK_SECOND; /* before 1970: counted from the second below, too */
  if (below < 0) {
    below += CLOCK_SECOND;
  }
  time_t seconds = (time_t)((wall - below) / CLOCK_SECOND);
  struct tm parts;
  char date[32];
  gmtime_r(&seconds, &parts);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  return g_strdup_printf("%s.%06" G_GINT64_FORMAT "Z", date, below / 1000);
}

gint64 clock_deadline(gint64 duration) {
  gint64 now = clock_now();
  return duration < 0 || duration > G_MAXINT64 - now ? G_MAXINT64 : now + duration;
}
