/* SPDX-License-Identifier: Apache-2.0 */
/* file-check.h: whether nobody but root and this user can change what a plugin's path leads to. */
#ifndef SANDHOST_PROVIDER_FILE_CHECK_H
#define SANDHOST_PROVIDER_FILE_CHECK_H

#include <glib.h>

/* Resolves file, then checks each component: owned by root or the effective user and not writable by others. A
 * sticky folder may be written by others, unless it is the one that holds the file. Returns the resolved path,
 * owned; NULL with *ret_reason (owned) such as "it is writable by others (mode 0666)". */
char *file_check(const char *file, char **ret_reason);

/* Whether file passes that and begins as a shared object does. Nothing of it is run. */
gboolean file_may_load(const char *file);

#endif
