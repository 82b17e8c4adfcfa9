/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.h: one line of the table: ours and what it is held against, measured in turn. */
#ifndef SANDHOST_BENCH_RATIO_H
#define SANDHOST_BENCH_RATIO_H

#include <glib.h>

/* Nanoseconds for one time, or -1 when it failed. */
typedef gint64 (*Sample)(void *user);

typedef struct {
  Sample take;
  void *user;
} Meter;

/* Sorts the values. */
double ratio_median(double *values, guint count);

/* The head of the table. */
void ratio_print_head(const char *title, const char *base);

/* A B A B ... times times, after one of each that does not count; what is printed is the median of the pairwise
 * ratios, so that a machine that slows down slows both. goal 0: there is none. */
void ratio_compare(const char *what, Meter ours, Meter base, double goal, guint times);
/* The same, where base / ours counts and is to be at least goal. */
void ratio_compare_faster(const char *what, Meter ours, Meter base, double goal, guint times);

/* A line that could not be measured. */
void ratio_leave_out(const char *what, const char *reason);

/* A line with one figure of ours, to be at most goal. */
void ratio_print_figure(const char *what, double value, const char *unit, double goal);

/* What this process has of memory of its own, in bytes: neither shared files nor what is only mapped. */
gint64 ratio_own_memory(void);

#endif
