/* SPDX-License-Identifier: Apache-2.0 */
/* instance.c: a provider opened with checked options, and what it keeps on this machine. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "provider/job.h"
#include "provider/text.h"

/* open is cheap by contract; close and what belongs to it gets as long. */
#define OPEN_DEADLINE (10 * CLOCK_SECOND)

#define DEFAULT_MAX_OUTPUT 1000000u

Level *provider_level(Provider *provider, ProviderInstance *instance, Sandbox *sandbox) {
  switch (provider->table.threads) {
  case SANDHOST_THREADS_PLUGIN:
    return &provider->level;
  case SANDHOST_THREADS_INSTANCE:
    return instance ? &instance->level : NULL;
  case SANDHOST_THREADS_SANDBOX:
    return sandbox ? &sandbox->level : NULL;
  default:
    return NULL;
  }
}

/* ---- close ------------------------------------------------------------------------------------------------- */

static gint32 invoke_close(Job *job) {
  job->provider->table.close(job->ret_instance);
  return SANDHOST_OK;
}

/* A close that does not come back is left alone. */
static void close_theirs(Provider *provider, struct sandhost_instance *theirs) {
  const CallScope scope = {.deadline = clock_deadline(OPEN_DEADLINE)};
  g_autoptr(Job) job = job_new("close", &scope, provider, NULL, NULL, NULL);
  job->invoke = invoke_close;
  job->ret_instance = theirs;
  job_run(job, NULL);
}

void provider_instance_unref(ProviderInstance *instance) {
  if (!instance || !g_atomic_int_dec_and_test(&instance->refs)) {
    return;
  }
  if (instance->theirs) {
    close_theirs(instance->provider, instance->theirs);
  }
  option_values_free(instance->values);
  test_commands_unref(instance->tests);
  g_hash_table_unref(instance->lowered);
  g_free(instance->levels);
  level_clear(&instance->level);
  g_free(instance);
}

void provider_instance_close(ProviderInstance *instance) {
  provider_instance_unref(instance);
}

/* ---- open -------------------------------------------------------------------------------------------------- */

static gint32 invoke_open(Job *job) {
  return job->provider->table.open(&job->call, &job->open, &job->ret_instance);
}

static void close_late(Job *job) {
  if (job->status == SANDHOST_OK && job->ret_instance) {
    close_theirs(job->provider, job->ret_instance);
  }
}

static void copy_values(Job *job, const OptionValues *values, gsize count) {
  struct sandhost_value *copies = job_alloc(job, count, sizeof *copies);
  memcpy(copies, option_values_get(values), count * sizeof *copies);
  for (gsize i = 0; i < count; i++) {
    copies[i].text = job_text(job, copies[i].text);
    copies[i].pairs = job_pairs(job, copies[i].pairs, copies[i].pair_count);
  }
  job->open.values = copies;
  job->open.value_count = count;
}

static gboolean call_open(ProviderInstance *instance, const char *guest_dir, GError **error) {
  Provider *provider = instance->provider;
  const CallScope scope = {.deadline = clock_deadline(OPEN_DEADLINE)};
  g_autoptr(Job) job = job_new("open", &scope, provider, NULL, NULL, instance->tests);
  job->invoke = invoke_open;
  job->orphaned = close_late;
  job->open.size = sizeof job->open;
  job->open.guest_dir = job_path(job, path_of(guest_dir));
  copy_values(job, instance->values, provider->table.option_count);
  g_autoptr(GError) refusal = NULL;
  if (!job_run(job, &refusal)) {
    if (provider_error_is(refusal,
                          SANDHOST_INVALID)) { /* what only the provider could check of an option */
      g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, refusal->message);
    } else {
      g_propagate_error(error, g_steal_pointer(&refusal));
    }
    return FALSE;
  }
  instance->theirs = job->ret_instance;
  if (!instance->theirs) {
    g_set_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL,
                "%s: open said that it succeeded and gave no instance", provider->table.name);
    return FALSE;
  }
  return TRUE;
}

/* ---- What is kept here and now ------------------------------------------------------------------------------- */

static gint32 invoke_enforces_now(Job *job) {
  return job->provider->table.enforces_now(&job->call, job->instance->theirs, job->levels,
                                           job->provider->table.enforces_count);
}

static gboolean ask_levels(ProviderInstance *instance, GError **error) {
  const struct sandhost_provider *table = &instance->provider->table;
  gsize count = table->enforces_count;
  instance->levels = g_new0(guint32, MAX(count, 1));
  for (gsize i = 0; i < count; i++) {
    instance->levels[i] = table->enforces[i].level;
  }
  if (!table->enforces_now || count == 0) {
    return TRUE;
  }
  const CallScope scope = {.deadline = clock_deadline(OPEN_DEADLINE)};
  g_autoptr(Job) job =
      job_new("enforces_now", &scope, instance->provider, instance, NULL, instance->tests);
  job->invoke = invoke_enforces_now;
  job->levels = job_alloc(job, count, sizeof *job->levels);
  memcpy(job->levels, instance->levels, count * sizeof *job->levels);
  if (!job_run(job, error)) {
    return FALSE;
  }
  for (gsize i = 0; i < count; i++) {
    guint32 setting = table->enforces[i].setting;
    if (job->levels[i] >= instance->levels[i]) {
      continue;
    }
    instance->levels[i] = job->levels[i];
    const char *why = call_reported(&job->call, SANDHOST_REPORT_LOWERED + setting);
    g_hash_table_insert(instance->lowered, GUINT_TO_POINTER(setting),
                        g_strdup(why && *why ? why : "not on this machine"));
  }
  return TRUE;
}

ProviderInstance *provider_instance_open(ProviderRegistry *registry, Provider *provider,
                                         JsonObject *options, GError **error) {
  g_autoptr(OptionValues) values = option_values_new(&provider->table, options, error);
  TestCommands *tests = provider_registry_tests(registry);
  if (!values || !provider_start(provider, tests, error)) {
    return NULL;
  }
  g_autoptr(ProviderInstance) instance = g_new0(ProviderInstance, 1);
  instance->refs = 1;
  instance->provider = provider;
  instance->tests = test_commands_ref(tests);
  instance->values = g_steal_pointer(&values);
  instance->lowered = g_hash_table_new_full(NULL, NULL, NULL, g_free);
  level_init(&instance->level);
  if (!call_open(instance, provider_registry_guest_dir(registry), error) ||
      !ask_levels(instance, error)) {
    return NULL;
  }
  return g_steal_pointer(&instance);
}

/* ---- Facts --------------------------------------------------------------------------------------------------- */

const char *provider_instance_name(const ProviderInstance *instance) {
  return instance->provider->table.name;
}

gboolean provider_instance_isolates(const ProviderInstance *instance) {
  return !(instance->provider->table.flags & SANDHOST_PROVIDER_HOST_SURFACE);
}

gboolean provider_instance_is_test(const ProviderInstance *instance) {
  return (instance->provider->table.flags & SANDHOST_PROVIDER_TEST) != 0;
}

gboolean provider_instance_executes(const ProviderInstance *instance) {
  return instance->provider->executes;
}

guint64 provider_instance_max_output(const ProviderInstance *instance) {
  const struct sandhost_provider *table = &instance->provider->table;
  const struct sandhost_value *values = option_values_get(instance->values);
  for (gsize i = 0; i < table->option_count; i++) {
    if (strcmp(table->options[i].name, "max_output_bytes") == 0 &&
        (values[i].type == SANDHOST_OPTION_INTEGER || values[i].type == SANDHOST_OPTION_SIZE) &&
        values[i].set && values[i].integer > 0) {
      return (guint64)values[i].integer;
    }
  }
  return DEFAULT_MAX_OUTPUT;
}

JsonObject *provider_instance_options(const ProviderInstance *instance) {
  return option_values_to_json(instance->values, &instance->provider->table);
}

void provider_instance_secrets(const ProviderInstance *instance, GPtrArray *strings) {
  option_values_secrets(instance->values, &instance->provider->table, strings);
}

guint32 provider_instance_level(const ProviderInstance *instance, guint32 setting) {
  const struct sandhost_provider *table = &instance->provider->table;
  /* Nothing that a provider is given carries a secret: whoever declares that it delivers them is mistaken. */
  gboolean can_be = setting != SANDHOST_SETTING_SECRETS;
  for (gsize i = 0; can_be && i < table->enforces_count; i++) {
    if (table->enforces[i].setting == setting) {
      return instance->levels[i];
    }
  }
  return table->enforces_count == 0 ? SANDHOST_LEVEL_ENFORCED : SANDHOST_LEVEL_NONE;
}

const char *provider_instance_lowered(const ProviderInstance *instance, guint32 setting) {
  return g_hash_table_lookup(instance->lowered, GUINT_TO_POINTER(setting));
}
