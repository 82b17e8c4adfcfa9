/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h: @anthropic-ai/sandbox-runtime, where ./bench has put it: its program, and an open session of its library. */
#ifndef SANDHOST_BENCH_RUNTIME_H
#define SANDHOST_BENCH_RUNTIME_H

#include <glib.h>

/* The folder of the package; NULL: *ret_reason says why there is none. Both borrowed. */
const char *runtime_package(const char **ret_reason);

/* Settings of no network, and of the current folder as the only one to write to, in a new file; its path is owned. */
char *runtime_settings(const char *scratch);

/* A process of node with the library in it. */
typedef struct Runtime Runtime;

/* NULL: it does not come up. */
Runtime *runtime_open(const char *scratch, const char *package);
void runtime_close(Runtime *runtime);

/* One command that does nothing, as the process itself times it. A sample. */
gint64 runtime_command(void *runtime);

#endif
