/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c: the file and its entry. Each entry is asked once per process; the provider that it gave, or why it was
 * refused, is kept as long as the process: a plugin is never unmapped, and its locks are the process's.
 */
#include "provider/loader.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "provider/door.h"
#include "provider/inside.h"
#include "provider/job.h"

typedef struct {
  Provider *provider; /* NULL: refused */
  char *reason;       /* of the refusal */
} Known;

/* entry -> Known. The lock also serialises the entries. */
static struct {
  pthread_mutex_t lock;
  GHashTable *known;
} loader = {.lock = PTHREAD_MUTEX_INITIALIZER};

static Provider *new_provider(const struct sandhost_provider *table, const char *file) {
  Provider *provider = g_new0(Provider, 1);
  provider->table = *table;
  provider->file = g_strdup(file);
  provider->executes = TRUE;
  level_init(&provider->level);
  pthread_mutex_init(&provider->starting, NULL);
  return provider;
}

static Known *ask(ProviderEntry entry, const char *name, const char *file) {
  Known *known = g_new0(Known, 1);
  struct sandhost_provider table = {0};
  InsideVisit visit;
  inside_enter(&visit, name, "loading");
  known->reason = door_ask(entry, &call_host_table, &table);
  inside_leave(&visit);
  if (!known->reason) {
    known->provider = new_provider(&table, file);
    known->provider->executes = entry != builtin_none_entry;
  }
  return known;
}

/* Functions and data are different kinds of pointers to C, and the same to dlsym. */
static gpointer key_of(ProviderEntry entry) {
  gpointer key = NULL;
  memcpy(&key, &entry, sizeof key);
  return key;
}

static const Known *ask_once(ProviderEntry entry, const char *name, const char *file) {
  pthread_mutex_lock(&loader.lock);
  if (!loader.known) {
    loader.known = g_hash_table_new(NULL, NULL);
  }
  Known *known = g_hash_table_lookup(loader.known, key_of(entry));
  if (!known) {
    known = ask(entry, name, file);
    g_hash_table_insert(loader.known, key_of(entry), known);
  }
  pthread_mutex_unlock(&loader.lock);
  return known;
}

Provider *loader_load_entry(const char *name, ProviderEntry entry, GError **error) {
  const Known *known = ask_once(entry, name, NULL);
  if (!known->provider) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "provider %s refused: %s", name,
                known->reason);
    return NULL;
  }
  if (strcmp(known->provider->table.name, name) != 0) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "provider %s refused: its name '%s' differs from the registered '%s'", name,
                known->provider->table.name, name);
    return NULL;
  }
  return known->provider;
}

static Provider *refuse(const char *file, const char *reason, GError **error) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "provider file %s refused: %s", file,
              reason);
  return NULL;
}

Provider *loader_load_file(const char *name, const char *file, GError **error) {
  void *handle = NULL;
  InsideVisit visit;
  inside_enter(&visit, name, "loading");
  g_autofree char *reason = door_map(file, &handle);
  inside_leave(&visit);
  if (reason) {
    return refuse(file, reason, error);
  }
  ProviderEntry entry = door_entry(handle, &reason);
  if (!entry) {
    return refuse(file, reason, error);
  }
  const Known *known = ask_once(entry, name, file);
  if (!known->provider) {
    return refuse(file, known->reason, error);
  }
  reason = door_name_fault(&known->provider->table, name);
  if (reason) {
    return refuse(file, reason, error);
  }
  return known->provider;
}

/* ---- start and stop ---------------------------------------------------------------------------------------- */

static gint32 invoke_start(Job *job) {
  return job->provider->table.start(&job->call, &call_host_table);
}

static gint32 invoke_stop(Job *job) {
  job->provider->table.stop();
  return SANDHOST_OK;
}

gboolean provider_start(Provider *provider, TestCommands *tests, GError **error) {
  gboolean ok = TRUE;
  pthread_mutex_lock(&provider->starting);
  if (!provider->started && provider->table.start) {
    const CallScope scope = {.deadline = clock_deadline(10 * CLOCK_SECOND)};
    g_autoptr(Job) job = job_new("start", &scope, provider, NULL, NULL, tests);
    job->invoke = invoke_start;
    job_run(job, &provider->start_error);
  }
  provider->started = TRUE;
  if (provider->start_error) {
    g_propagate_error(error, g_error_copy(provider->start_error));
    ok = FALSE;
  }
  pthread_mutex_unlock(&provider->starting);
  return ok;
}

static void stop_one(Provider *provider) {
  pthread_mutex_lock(&provider->starting);
  if (provider->started && !provider->start_error) {
    if (provider->table.stop) {
      const CallScope scope = {.deadline = clock_deadline(5 * CLOCK_SECOND)};
      g_autoptr(Job) job = job_new("stop", &scope, provider, NULL, NULL, NULL);
      job->invoke = invoke_stop;
      job_run(job, NULL);
    }
    provider->start_error = g_error_new(PROVIDER_ERROR, SANDHOST_CONFLICT,
                                        "the provider %s was stopped", provider->table.name);
  }
  pthread_mutex_unlock(&provider->starting);
}

void provider_stop_all(void) {
  g_autoptr(GPtrArray) providers = g_ptr_array_new();
  pthread_mutex_lock(&loader.lock);
  if (loader.known) {
    GHashTableIter iter;
    gpointer value = NULL;
    g_hash_table_iter_init(&iter, loader.known);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
      if (((Known *)value)->provider) {
        g_ptr_array_add(providers, ((Known *)value)->provider);
      }
    }
  }
  pthread_mutex_unlock(&loader.lock);
  for (guint i = 0; i < providers->len; i++) {
    stop_one(g_ptr_array_index(providers, i));
  }
}
