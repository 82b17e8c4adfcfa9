/* SPDX-License-Identifier: Apache-2.0 */
/* floor-files.h: what bare files cost: to walk, read, pack and write. Each returns nanoseconds for one time, or -1 when
 * it failed. */
#ifndef SANDHOST_BENCH_FLOOR_FILES_H
#define SANDHOST_BENCH_FLOOR_FILES_H

#include <glib.h>

/* lstat of every file below a folder. */
gint64 floor_stat_walk(const char *folder);

/* Reads every file below from, tars them in memory, and writes them below to. */
gint64 floor_copy(const char *from, const char *to);

/* The same three apart: count files of size bytes. What is written to is there before: no page is new. */
gint64 floor_read_files(const char *folder);
gint64 floor_tar(guint count, gsize size, void *room, gsize room_size, gsize *ret_used);
gint64 floor_write_files(const char *folder, guint count, gsize size);

/* Makes count files of size bytes of text each below a folder, 100 to a folder. */
void floor_fill(const char *folder, guint count, gsize size);

#endif
