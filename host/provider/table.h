/* SPDX-License-Identifier: Apache-2.0 */
/* table.h: the check of a provider's table at the door. */
#ifndef SANDHOST_PROVIDER_TABLE_H
#define SANDHOST_PROVIDER_TABLE_H

#include <glib.h>
#include <sandhost/provider.h>

#define TABLE_MAX_NAME 32u

typedef const struct sandhost_provider *(*ProviderEntry)(const struct sandhost_host *host);

/* The name of a provider: lower-case letters, digits, - and _, 1 to 32, beginning with a letter. */
gboolean table_name_is_valid(const char *name);

/* Copies theirs into *ret_table once, with its strings and arrays, and checks the copy; fields that theirs does
 * not have are zero. NULL: it is sound, and never freed. Else the reason, owned: "its name 'X' is not valid". */
char *table_check(const struct sandhost_provider *theirs, struct sandhost_provider *ret_table);

#endif
