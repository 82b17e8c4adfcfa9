/* SPDX-License-Identifier: Apache-2.0 */
/* floors.h: what it costs to start and end programs without us. Each returns nanoseconds for one time, or -1 when it
 * failed. */
#ifndef SANDHOST_BENCH_FLOORS_H
#define SANDHOST_BENCH_FLOORS_H

#include <glib.h>
#include <sys/types.h>

/* Starts argv with these as its input and output, or /dev/null for one below 0; what it complains of is thrown away.
 * -1 when it cannot. */
pid_t floor_start(const char *const *argv, int in, int out);

/* Starts argv with its output thrown away and waits for it. */
gint64 floor_spawn(const char *const *argv);

/* Starts argv and reads all it prints, through a pipe or a pair of sockets; is also a failure when that are not exactly
 * bytes. */
gint64 floor_read_pipe(const char *const *argv, guint64 bytes);
gint64 floor_read_sockets(const char *const *argv, guint64 bytes);

/* argv is something that ends in cat: from the end of its input, once it answers, to its own end. */
gint64 floor_end(const char *const *argv);

/* Runs argv below a program that is smaller than anything measured, as a child's peak counts what its parent held.
 * *ret_peak: bytes, of the largest of its processes that somebody waited for. */
gint64 floor_measure(const char *const *argv, gint64 *ret_peak);

/* The last line of what argv complains of when it fails, owned; NULL when it does not fail. */
char *floor_complaint(const char *const *argv);

#endif
