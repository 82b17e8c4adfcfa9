/* SPDX-License-Identifier: Apache-2.0 */
/* floors.h: what the machine itself costs: bare spawns, bare sandboxes, bare files. Each returns nanoseconds for one
 * time, or -1 when it failed. */
#ifndef SANDHOST_BENCH_FLOORS_H
#define SANDHOST_BENCH_FLOORS_H

#include <glib.h>

/* Starts argv with its output thrown away and waits for it. */
gint64 floor_spawn(const char *const *argv);

/* lstat of every file below a folder. */
gint64 floor_stat_walk(const char *folder);

/* Reads every file below from, tars them in memory, and writes them below to. */
gint64 floor_copy(const char *from, const char *to);

/* Makes count files of size bytes of text each below a folder, 100 to a folder. */
void floor_fill(const char *folder, guint count, gsize size);

/* Peak memory of a finished child, in bytes: runs argv with output thrown away. *ret_exit as waitpid's. */
gint64 floor_peak_memory(const char *const *argv, int *ret_exit);

#endif
