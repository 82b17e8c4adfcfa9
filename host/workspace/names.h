/* SPDX-License-Identifier: Apache-2.0 */
/* names.h: what a path of the workspace looks like, and which paths are never copied
 * (behaviour 8.5). */
#ifndef SANDHOST_WORKSPACE_NAMES_H
#define SANDHOST_WORKSPACE_NAMES_H

#include <glib.h>

/* Relative, shorter than PATH_MAX, without NUL, and no component is empty, "." or "..". */
gboolean name_is_proper(const char *path, gsize length);

/* Whether a component begins with a dot. */
gboolean name_is_hidden(const char *path, gsize length);

/* run.json or events.jsonl directly in a folder whose name begins with run_. */
gboolean name_is_run_record(const char *path);

#endif
