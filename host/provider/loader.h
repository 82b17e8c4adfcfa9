/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h: from a file or an entry to a checked provider. */
#ifndef SANDHOST_PROVIDER_LOADER_H
#define SANDHOST_PROVIDER_LOADER_H

#include "provider/registry.h"

/* Loads, asks and checks; each file and entry once per process. name is what the provider must call itself.
 * NOT_FOUND or CONFIG error, which names the file. Borrowed for ever. Threads: any. */
Provider *loader_load_file(const char *name, const char *file, GError **error);
Provider *loader_load_entry(const char *name, ProviderEntry entry, GError **error);

#endif
