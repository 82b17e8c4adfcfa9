/* SPDX-License-Identifier: Apache-2.0 */
/* floor-rows.h: what the machine costs by itself, so that the ratios of the other tables can be judged. */
#ifndef SANDHOST_BENCH_FLOOR_ROWS_H
#define SANDHOST_BENCH_FLOOR_ROWS_H

#include <glib.h>

/* Prints a table. */
void bench_floors(const char *scratch, guint rounds);

#endif
