/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.c: pairwise samples, their medians, and the lines of the table. */
#include "ratio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 5u

static int order(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

double ratio_median(double *values, guint count) {
  qsort(values, count, sizeof *values, order);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void ratio_print_head(const char *title, const char *base) {
  printf("\n%-62s %9s %9s %7s  goal\n", title, "ours ms", base, "ratio");
}

/* A sample that is the difference of two can come out below nothing on a busy machine: it is taken again. */
static gint64 take(Meter meter) {
  gint64 took = -1;
  for (guint i = 0; i < TRIES && took <= 0; i++) {
    took = meter.take(meter.user);
  }
  return took;
}

static void compare(const char *what, Meter ours, Meter base, double goal, guint times,
                    gboolean faster) {
  g_autofree double *mine = g_new0(double, times);
  g_autofree double *others = g_new0(double, times);
  g_autofree double *ratios = g_new0(double, times);
  if (take(ours) <= 0 || take(base) <= 0) {
    printf("%-62s failed\n", what);
    return;
  }
  for (guint i = 0; i < times; i++) {
    gint64 a = take(ours);
    gint64 b = take(base);
    if (a <= 0 || b <= 0) {
      printf("%-62s failed\n", what);
      return;
    }
    mine[i] = (double)a / 1e6;
    others[i] = (double)b / 1e6;
    ratios[i] = faster ? (double)b / (double)a : (double)a / (double)b;
  }
  double ratio = ratio_median(ratios, times);
  gboolean met = faster ? ratio >= goal : ratio <= goal;
  printf("%-62s %9.3f %9.3f %7.2f", what, ratio_median(mine, times), ratio_median(others, times),
         ratio);
  if (goal > 0) {
    printf("  %s %.2f  %s", faster ? ">=" : "<=", goal, met ? "ok" : "MISSED");
  }
  putchar('\n');
  fflush(stdout);
}

void ratio_compare(const char *what, Meter ours, Meter base, double goal, guint times) {
  compare(what, ours, base, goal, times, FALSE);
}

void ratio_compare_faster(const char *what, Meter ours, Meter base, double goal, guint times) {
  compare(what, ours, base, goal, times, TRUE);
}

void ratio_leave_out(const char *what, const char *reason) {
  printf("%-62s left out: %s\n", what, reason);
  fflush(stdout);
}

void ratio_print_figure(const char *what, double value, const char *unit, double goal) {
  printf("%-62s %9.1f %s", what, value, unit);
  if (goal > 0) {
    printf("  <= %g  %s", goal, value <= goal ? "ok" : "MISSED");
  }
  putchar('\n');
  fflush(stdout);
}

gint64 ratio_own_memory(void) {
  g_autofree char *status = NULL;
  const char *line = NULL;
  if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL) ||
      !(line = strstr(status, "\nRssAnon:"))) {
    return -1;
  }
  const char *number = line + strlen("\nRssAnon:");
  return (gint64)g_ascii_strtoull(number + strspn(number, " \t"), NULL, 10) * 1024;
}
