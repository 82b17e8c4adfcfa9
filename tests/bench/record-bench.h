/* SPDX-License-Identifier: Apache-2.0 */
/* record-bench.h: what an event on record costs beside one durable row. */
#ifndef SANDHOST_BENCH_RECORD_BENCH_H
#define SANDHOST_BENCH_RECORD_BENCH_H

#include <glib.h>

/* Prints the lines; scratch is a folder to work in. */
void bench_record(const char *scratch, guint rounds);

#endif
