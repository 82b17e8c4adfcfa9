/* SPDX-License-Identifier: Apache-2.0 */
/*
 * door.h: what a mapped file must be before anybody calls more than its entry. The conformance suite uses it as well: what
 * it passes, the host does not refuse. It therefore needs nothing of a host but the table that the entry is given.
 *
 * Reasons are owned, fit to be shown, and go behind "provider file FILE refused: ".
 */
#ifndef SANDHOST_PROVIDER_DOOR_H
#define SANDHOST_PROVIDER_DOOR_H

#include "provider/table.h"

/* Maps the file, for good, if the way to it is nobody else's (file-check.h). NULL: *ret_handle is set; else the reason. */
char *door_map(const char *file, void **ret_handle);

/* handle: of door_map. NULL: *ret_reason is set. */
ProviderEntry door_entry(void *handle, char **ret_reason);

/* Calls the entry. NULL: *ret_table is filled, as table_check says; else the reason. */
char *door_ask(ProviderEntry entry, const struct sandhost_host *host,
               struct sandhost_provider *ret_table);

/* name: what the file's name, sandhost-NAME.so, says. NULL: it is the table's too; else the reason. */
char *door_name_fault(const struct sandhost_provider *table, const char *name);

#endif
