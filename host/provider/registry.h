/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry.h: which providers there are, and loading the one that is used.
 *
 * A provider is found by name, in this order: registered by the program or the configuration; a file
 * sandhost-NAME.so in a folder of SANDHOST_PLUGIN_PATH (colon-separated); one in the installed folder
 * (beside this library or program, else the build's prefix). Only the one that is asked for is loaded.
 * Thread-safe.
 */
#ifndef SANDHOST_PROVIDER_REGISTRY_H
#define SANDHOST_PROVIDER_REGISTRY_H

#include <glib.h>
#include <sandhost/provider.h>

#include "provider/table.h"

typedef struct ProviderRegistry ProviderRegistry;
typedef struct Provider Provider;

/* Knows none and local_test already. Returns owned. */
ProviderRegistry *provider_registry_new(void);
void provider_registry_free(ProviderRegistry *registry);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ProviderRegistry, provider_registry_free)

/* Registers a file under a name. The file is only loaded when used. A bad name, a relative path, a name that
 * is taken by another file: CONFIG error. */
gboolean provider_registry_add_file(ProviderRegistry *registry, const char *name, const char *file,
                                    GError **error);
/* Registers a provider that is linked in; checked at once. */
gboolean provider_registry_add_entry(ProviderRegistry *registry, const char *name,
                                     ProviderEntry entry, GError **error);

/* A handler of local_test: gets argv, returns the exit code and what it prints (owned strings, may be NULL). */
typedef int (*LocalTestHandler)(void *user, const char *const *argv, char **ret_stdout,
                                char **ret_stderr);
void provider_registry_add_test_command(ProviderRegistry *registry, const char *name,
                                        LocalTestHandler handler, void *user);

/* Every name that the configuration may use, sorted: the ten that the product knows (bubblewrap, daytona,
 * docker, e2b, http, local, local_test, modal, none, vercel), those registered, those found. NULL-terminated,
 * owned. */
char **provider_registry_names(ProviderRegistry *registry);
/* Names that can be loaded here, with their files: sorted; built-in ones have no file ("built in"). Owned table
 * of arrays: names and files are parallel. */
void provider_registry_list(ProviderRegistry *registry, char ***ret_names, char ***ret_files);

/* Files sandhost-NAME.so of the folders that no configuration can name, sorted: they are never loaded. NULL-terminated, owned. */
char **provider_registry_misnamed(ProviderRegistry *registry);
/* Why that one cannot be named: fit to be shown, owned; NULL: it can. */
char *provider_registry_name_fault(const char *file);

/* Loads (once) and checks. Refusals name the file and the reason: writable by others, no entry, another ABI
 * major, a table that is too short, a missing required slot, a bad name or one that differs from the file's, an
 * unknown flag. A known name without a file: "The {name} sandbox provider is not installed: no sandhost-{name}.so
 * in {folders}". Borrowed until the registry is freed; the plugin stays mapped for ever. */
Provider *provider_registry_load(ProviderRegistry *registry, const char *name, GError **error);

/* Who is told, in the thread that loads, that a plugin's file begins to load, and that it is done: the plugin's own code
 * runs meanwhile, which may not come back. watch is borrowed until the registry is freed. */
typedef struct {
  void (*begun)(const char *name);
  void (*done)(void);
} LoadWatch;
void provider_registry_watch_loads(ProviderRegistry *registry, const LoadWatch *watch);

/* The folder of the guest programs beside this program. Borrowed; "" where there is none. */
const char *provider_registry_guest_dir(ProviderRegistry *registry);

/* The checked copy of the provider's table: fields beyond the plugin's own size are zero. Borrowed. */
const struct sandhost_provider *provider_table(const Provider *provider);
const char *provider_file(const Provider *provider); /* NULL: built in or linked in */

/* For a program that is about to end, when all instances are closed: stops what plugins began in start. No
 * provider can be opened afterwards. */
void provider_stop_all(void);

#endif
