/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.c: pairwise samples, their medians, and the lines of the table. */
#include "ratio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 9u

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

gint64 ratio_take(Meter meter) {
  gint64 took = 0;
  for (guint i = 0; i < TRIES && took == 0; i++) {
    took = meter.take(meter.user);
  }
  return took;
}

gint64 ratio_difference(gint64 whole, gint64 part) {
  return whole < 0 || part < 0 ? -1 : MAX(whole - part, 0);
}

/* What counts, and what is to be large. */
typedef enum { TIME, TIMES_FASTER, RATE } Kind;

typedef struct {
  const char *what;
  Kind kind;
  guint64 bytes; /* of one sample, for RATE */
  double goal;
  guint times;
} Row;

static void print_failed(const char *what) {
  printf("%-62s failed\n", what);
  fflush(stdout);
}

/* FALSE: the line says why there is no figure. */
static gboolean take_pair(const Row *row, Meter ours, Meter base, gint64 *ret_ours,
                          gint64 *ret_base) {
  *ret_ours = ratio_take(ours);
  *ret_base = *ret_ours > 0 ? ratio_take(base) : *ret_ours;
  if (*ret_base == 0) {
    ratio_leave_out(row->what, "too little to be seen beside this machine's other work");
  } else if (*ret_base < 0) {
    print_failed(row->what);
  }
  return *ret_base > 0;
}

/* Milliseconds, or MB/s. */
static double shown(const Row *row, gint64 took) {
  return row->kind == RATE ? (double)row->bytes / ((double)took / 1e3) : (double)took / 1e6;
}

static void compare(const Row *row, Meter ours, Meter base) {
  g_autofree double *mine = g_new0(double, row->times);
  g_autofree double *others = g_new0(double, row->times);
  g_autofree double *ratios = g_new0(double, row->times);
  gint64 a = 0;
  gint64 b = 0;
  if (!take_pair(row, ours, base, &a, &b)) {
    return;
  }
  for (guint i = 0; i < row->times; i++) {
    if (!take_pair(row, ours, base, &a, &b)) {
      return;
    }
    mine[i] = shown(row, a);
    others[i] = shown(row, b);
    ratios[i] = row->kind == TIME ? (double)a / (double)b : (double)b / (double)a;
  }
  double ratio = ratio_median(ratios, row->times);
  gboolean met = row->kind == TIME ? ratio <= row->goal : ratio >= row->goal;
  printf("%-62s %9.3f %9.3f %7.2f", row->what, ratio_median(mine, row->times),
         ratio_median(others, row->times), ratio);
  if (row->goal > 0) {
    printf("  %s %.2f  %s", row->kind == TIME ? "<=" : ">=", row->goal, met ? "ok" : "MISSED");
  }
  putchar('\n');
  fflush(stdout);
}

void ratio_compare(const char *what, Meter ours, Meter base, double goal, guint times) {
  const Row row = {.what = what, .kind = TIME, .goal = goal, .times = times};
  compare(&row, ours, base);
}

void ratio_compare_faster(const char *what, Meter ours, Meter base, double goal, guint times) {
  const Row row = {.what = what, .kind = TIMES_FASTER, .goal = goal, .times = times};
  compare(&row, ours, base);
}

void ratio_compare_rate(const char *what, Meter ours, Meter base, guint64 bytes, double goal,
                        guint times) {
  const Row row = {.what = what, .kind = RATE, .bytes = bytes, .goal = goal, .times = times};
  compare(&row, ours, base);
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

void ratio_print_peak(const char *what, gint64 bytes, double goal) {
  if (bytes < 0) {
    print_failed(what);
  } else {
    ratio_print_figure(what, (double)bytes / 1e6, "MB", goal);
  }
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
