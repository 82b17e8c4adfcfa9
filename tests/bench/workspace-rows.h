/* SPDX-License-Identifier: Apache-2.0 */
/* workspace-rows.h: the files of a workspace, in and out and unchanged. */
#ifndef SANDHOST_BENCH_WORKSPACE_ROWS_H
#define SANDHOST_BENCH_WORKSPACE_ROWS_H

#include <glib.h>

/* Prints its rows. */
void bench_workspace(const char *scratch, guint rounds);

#endif
