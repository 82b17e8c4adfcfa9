/* SPDX-License-Identifier: Apache-2.0 */
/* door.c: the entry of a mapped file, the table that it gives, and its name. */
#include "provider/door.h"

#include <dlfcn.h>
#include <string.h>

/* Functions and data are different kinds of pointers to C, and the same to dlsym. */
static ProviderEntry entry_of(gpointer symbol) {
  ProviderEntry entry = NULL;
  memcpy(&entry, &symbol, sizeof entry);
  return entry;
}

/* Which other major it was built for; -1: none. */
static int other_major(void *handle) {
  for (int major = 0; major <= 9; major++) {
    g_autofree char *symbol = g_strdup_printf("sandhost_provider_%d", major);
    if (major != SANDHOST_ABI_MAJOR && dlsym(handle, symbol)) {
      return major;
    }
  }
  return -1;
}

ProviderEntry door_entry(void *handle, char **ret_reason) {
  gpointer symbol = dlsym(handle, SANDHOST_ENTRY_NAME);
  if (symbol) {
    return entry_of(symbol);
  }
  int major = other_major(handle);
  *ret_reason = major < 0 ? g_strdup("it has no entry " SANDHOST_ENTRY_NAME)
                          : g_strdup_printf("it was built for ABI major %d, this host speaks %d",
                                            major, SANDHOST_ABI_MAJOR);
  return NULL;
}

char *door_ask(ProviderEntry entry, const struct sandhost_host *host,
               struct sandhost_provider *ret_table) {
  const struct sandhost_provider *theirs = entry(host);
  if (!theirs) {
    return g_strdup_printf("it will not work with this host (ABI %d.%d, host table of %zu bytes)",
                           SANDHOST_ABI_MAJOR, SANDHOST_ABI_MINOR, sizeof(struct sandhost_host));
  }
  return table_check(theirs, ret_table);
}

char *door_name_fault(const struct sandhost_provider *table, const char *name) {
  return strcmp(table->name, name) == 0
             ? NULL
             : g_strdup_printf("its name '%s' differs from the file's '%s'", table->name, name);
}
