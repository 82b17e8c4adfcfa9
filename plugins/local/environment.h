/* SPDX-License-Identifier: Apache-2.0 */
/* environment.h: which variables a command on this machine gets. Lists are NULL-terminated, of
 * "NAME=value", and owned by the caller. */
#ifndef SANDHOST_LOCAL_ENVIRONMENT_H
#define SANDHOST_LOCAL_ENVIRONMENT_H

#include <glib.h>
#include <sandhost/provider.h>

/* Of all, those that every command may have and those named. */
char **environment_select(char *const *all, const struct sandhost_pair *names, size_t name_count);

/* base with the pairs added or replaced. */
char **environment_add(char *const *base, const struct sandhost_pair *pairs, size_t pair_count);

#endif
