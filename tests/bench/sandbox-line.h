/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox-line.h: the provider's part of a command alone: no policy, no bridge, no record. */
#ifndef SANDHOST_BENCH_SANDBOX_LINE_H
#define SANDHOST_BENCH_SANDBOX_LINE_H

#include "provider/sandbox.h"

/* Runs a line of shell and throws its output away. Nanoseconds; -1 when it does not exit with 0. */
gint64 sandbox_line(Sandbox *sandbox, const char *line);

/* Lists all files, with their hashes; -1 also where there are not count of them, a hash each. */
gint64 sandbox_listing(Sandbox *sandbox, guint count);

#endif
