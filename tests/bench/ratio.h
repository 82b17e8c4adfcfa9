/* SPDX-License-Identifier: Apache-2.0 */
/* ratio.h: one line of the table: ours and what it is held against, measured in turn. */
#ifndef SANDHOST_BENCH_RATIO_H
#define SANDHOST_BENCH_RATIO_H

#include <glib.h>

/* Nanoseconds for one time; 0 when the machine's other work hid them, which only a difference of two times can be;
 * -1 when it failed. */
typedef gint64 (*Sample)(void *user);

typedef struct {
  Sample take;
  void *user;
} Meter;

/* Sorts the values. */
double ratio_median(double *values, guint count);

/* One sample, taken again while it is hidden; 0: it always was. */
gint64 ratio_take(Meter meter);

/* What is left of a time when another is taken off, as a sample: hidden rather than below nothing. */
gint64 ratio_difference(gint64 whole, gint64 part);

/* The head of the table. */
void ratio_print_head(const char *title, const char *base);

/* A B A B ... times times, after one of each that does not count; what is printed is the median of the pairwise
 * ratios, so that a machine that slows down slows both. goal 0: there is none. */
void ratio_compare(const char *what, Meter ours, Meter base, double goal, guint times);
/* The same, where base / ours counts and is to be at least goal. */
void ratio_compare_faster(const char *what, Meter ours, Meter base, double goal, guint times);
/* The same as MB/s of what moves bytes: how much of the base's rate ours is, to be at least goal. */
void ratio_compare_rate(const char *what, Meter ours, Meter base, guint64 bytes, double goal,
                        guint times);

/* A line that could not be measured. */
void ratio_leave_out(const char *what, const char *reason);

/* A line with one figure of ours, to be at most goal. */
void ratio_print_figure(const char *what, double value, const char *unit, double goal);

/* The same of a peak of memory in bytes, printed in MB; below 0 it failed. */
void ratio_print_peak(const char *what, gint64 bytes, double goal);

/* What this process has of memory of its own, in bytes: neither shared files nor what is only mapped. */
gint64 ratio_own_memory(void);

#endif
