/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c: names to files and entries. What is loaded is the loader's, and the process's. */
#include "provider/registry.h"

#include <string.h>

#include "base/error.h"
#include "provider/folders.h"
#include "provider/loader.h"
#include "provider/provider-private.h"
#include "provider/table.h"
#include "provider/text.h"

static const char *const PRODUCT_NAMES[] = {"bubblewrap", "daytona",    "docker", "e2b",  "http",
                                            "local",      "local_test", "modal",  "none", "vercel"};

typedef struct {
  char *file;          /* NULL: linked in */
  ProviderEntry entry; /* NULL: a file */
} Registered;

struct ProviderRegistry {
  pthread_mutex_t lock; /* guards registered */
  GHashTable *registered;
  TestCommands *tests;
  char **folders;
  char *guest_dir;
  const LoadWatch *watch; /* NULL: nobody is told */
};

static void registered_free(gpointer data) {
  Registered *registered = data;
  g_free(registered->file);
  g_free(registered);
}

static void add(ProviderRegistry *registry, const char *name, const char *file,
                ProviderEntry entry) {
  Registered *registered = g_new0(Registered, 1);
  registered->file = g_strdup(file);
  registered->entry = entry;
  g_hash_table_replace(registry->registered, g_strdup(name), registered);
}

ProviderRegistry *provider_registry_new(void) {
  ProviderRegistry *registry = g_new0(ProviderRegistry, 1);
  pthread_mutex_init(&registry->lock, NULL);
  registry->registered = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, registered_free);
  registry->tests = test_commands_new();
  registry->folders = folders_of_providers();
  registry->guest_dir = folder_of_guests();
  add(registry, "none", NULL, builtin_none_entry);
  add(registry, "local_test", NULL, builtin_local_test_entry);
  return registry;
}

void provider_registry_free(ProviderRegistry *registry) {
  if (!registry) {
    return;
  }
  g_hash_table_unref(registry->registered);
  test_commands_unref(registry->tests);
  g_strfreev(registry->folders);
  g_free(registry->guest_dir);
  pthread_mutex_destroy(&registry->lock);
  g_free(registry);
}

static gboolean check_name(const char *name, GError **error) {
  if (table_name_is_valid(name)) {
    return TRUE;
  }
  g_autofree char *shown = text_clean_string(name, 256);
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "'%s' is no name for a provider: lower-case letters, digits, - and _, at most %u, "
              "beginning with a letter",
              shown, TABLE_MAX_NAME);
  return FALSE;
}

static gboolean add_checked(ProviderRegistry *registry, const char *name, const char *file,
                            ProviderEntry entry, GError **error) {
  pthread_mutex_lock(&registry->lock);
  const Registered *taken = g_hash_table_lookup(registry->registered, name);
  gboolean same = taken && taken->entry == entry && g_strcmp0(taken->file, file) == 0;
  if (!taken) {
    add(registry, name, file, entry);
  } else if (!same) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "the provider name '%s' is taken by %s", name,
                taken->file ? taken->file : "a provider that is built in");
  }
  pthread_mutex_unlock(&registry->lock);
  return !taken || same;
}

gboolean provider_registry_add_file(ProviderRegistry *registry, const char *name, const char *file,
                                    GError **error) {
  if (!check_name(name, error)) {
    return FALSE;
  }
  if (!g_path_is_absolute(file)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "the file of provider '%s' must be an absolute path: %s", name, file);
    return FALSE;
  }
  return add_checked(registry, name, file, NULL, error);
}

gboolean provider_registry_add_entry(ProviderRegistry *registry, const char *name,
                                     ProviderEntry entry, GError **error) {
  return check_name(name, error) && loader_load_entry(name, entry, error) &&
         add_checked(registry, name, NULL, entry, error);
}

void provider_registry_add_test_command(ProviderRegistry *registry, const char *name,
                                        LocalTestHandler handler, void *user) {
  test_commands_add(registry->tests, name, handler, user);
}

TestCommands *provider_registry_tests(ProviderRegistry *registry) {
  return registry->tests;
}

const char *provider_registry_guest_dir(ProviderRegistry *registry) {
  return registry->guest_dir;
}

/* ---- Finding ------------------------------------------------------------------------------------------------ */

/* sandhost-NAME.so -> NAME, whatever it is; NULL for any other file. Owned. */
static char *word_of_file(const char *file) {
  if (!g_str_has_prefix(file, "sandhost-") || !g_str_has_suffix(file, ".so")) {
    return NULL;
  }
  gsize head = strlen("sandhost-");
  gsize length = strlen(file);
  if (length < head + strlen(".so")) {
    return NULL;
  }
  return g_strndup(file + head, length - head - strlen(".so"));
}

/* The same where NAME is one. */
static char *name_of_file(const char *file) {
  g_autofree char *word = word_of_file(file);
  return word && table_name_is_valid(word) ? g_steal_pointer(&word) : NULL;
}

/* Adds the files of a folder to found (name -> file, both owned), unless the name is there already. */
static void scan(const char *folder, GHashTable *found) {
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  const char *file = NULL;
  while (dir && (file = g_dir_read_name(dir))) {
    g_autofree char *name = name_of_file(file);
    if (name && !g_hash_table_contains(found, name)) {
      g_hash_table_insert(found, g_steal_pointer(&name), g_build_filename(folder, file, NULL));
    }
  }
}

/* Everything that can be loaded: name -> file or "built in". Owned. */
static GHashTable *find_all(ProviderRegistry *registry) {
  GHashTable *found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  GHashTableIter iter;
  gpointer name = NULL;
  gpointer value = NULL;
  pthread_mutex_lock(&registry->lock);
  g_hash_table_iter_init(&iter, registry->registered);
  while (g_hash_table_iter_next(&iter, &name, &value)) {
    const Registered *registered = value;
    g_hash_table_insert(found, g_strdup(name),
                        g_strdup(registered->file ? registered->file : "built in"));
  }
  pthread_mutex_unlock(&registry->lock);
  for (gsize i = 0; registry->folders[i]; i++) {
    scan(registry->folders[i], found);
  }
  return found;
}

static int by_text(gconstpointer a, gconstpointer b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys, sorted, NULL-terminated; owned copies. */
static char **sorted_keys(GHashTable *table) {
  g_autoptr(GPtrArray) names = g_ptr_array_new();
  GHashTableIter iter;
  gpointer name = NULL;
  g_hash_table_iter_init(&iter, table);
  while (g_hash_table_iter_next(&iter, &name, NULL)) {
    g_ptr_array_add(names, g_strdup(name));
  }
  g_ptr_array_sort(names, by_text);
  g_ptr_array_add(names, NULL);
  return (char **)g_ptr_array_free(g_steal_pointer(&names), FALSE);
}

char **provider_registry_names(ProviderRegistry *registry) {
  g_autoptr(GHashTable) found = find_all(registry);
  for (gsize i = 0; i < G_N_ELEMENTS(PRODUCT_NAMES); i++) {
    if (!g_hash_table_contains(found, PRODUCT_NAMES[i])) {
      g_hash_table_insert(found, g_strdup(PRODUCT_NAMES[i]), NULL);
    }
  }
  return sorted_keys(found);
}

void provider_registry_list(ProviderRegistry *registry, char ***ret_names, char ***ret_files) {
  g_autoptr(GHashTable) found = find_all(registry);
  char **names = sorted_keys(found);
  char **files = g_new0(char *, g_strv_length(names) + 1);
  for (gsize i = 0; names[i]; i++) {
    files[i] = g_strdup(g_hash_table_lookup(found, names[i]));
  }
  *ret_names = names;
  *ret_files = files;
}

char **provider_registry_misnamed(ProviderRegistry *registry) {
  g_autoptr(GHashTable) found = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (gsize i = 0; registry->folders[i]; i++) {
    g_autoptr(GDir) dir = g_dir_open(registry->folders[i], 0, NULL);
    const char *file = NULL;
    while (dir && (file = g_dir_read_name(dir))) {
      g_autofree char *word = word_of_file(file);
      if (word && !table_name_is_valid(word)) {
        g_hash_table_add(found, g_build_filename(registry->folders[i], file, NULL));
      }
    }
  }
  return sorted_keys(found);
}

char *provider_registry_name_fault(const char *file) {
  g_autofree char *base = g_path_get_basename(file);
  g_autofree char *word = word_of_file(base);
  g_autoptr(GError) error = NULL;
  return word && !check_name(word, &error) ? g_strdup(error->message) : NULL;
}

/* The first sandhost-NAME.so of the folders. Owned; NULL: none. */
static char *find_file(ProviderRegistry *registry, const char *name) {
  g_autofree char *base = g_strdup_printf("sandhost-%s.so", name);
  for (gsize i = 0; registry->folders[i]; i++) {
    g_autofree char *file = g_build_filename(registry->folders[i], base, NULL);
    if (g_file_test(file, G_FILE_TEST_EXISTS)) {
      return g_steal_pointer(&file);
    }
  }
  return NULL;
}

Provider *provider_registry_load(ProviderRegistry *registry, const char *name, GError **error) {
  if (!check_name(name, error)) {
    return NULL;
  }
  pthread_mutex_lock(&registry->lock);
  const Registered *registered = g_hash_table_lookup(registry->registered, name);
  ProviderEntry entry = registered ? registered->entry : NULL;
  g_autofree char *file = registered ? g_strdup(registered->file) : NULL;
  pthread_mutex_unlock(&registry->lock);

  if (entry) {
    return loader_load_entry(name, entry, error);
  }
  if (!file) {
    file = find_file(registry, name);
  }
  if (!file) {
    g_autofree char *folders = g_strjoinv(", ", registry->folders);
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND,
                "The %s sandbox provider is not installed: no sandhost-%s.so in %s", name, name,
                folders);
    return NULL;
  }
  if (registry->watch) {
    registry->watch->begun(name);
  }
  Provider *provider = loader_load_file(name, file, error);
  if (registry->watch) {
    registry->watch->done();
  }
  return provider;
}

void provider_registry_watch_loads(ProviderRegistry *registry, const LoadWatch *watch) {
  registry->watch = watch;
}

const struct sandhost_provider *provider_table(const Provider *provider) {
  return &provider->table;
}

const char *provider_file(const Provider *provider) {
  return provider->file;
}
