/* SPDX-License-Identifier: Apache-2.0 */
/* subject.c: what the rows of ours are measured on. */
#include "subject.h"

#include "base/clock.h"

static Config *config_for(const char *workspace) {
  Config *config = config_new_default();
  g_free(config->provider);
  config->provider = g_strdup("bubblewrap");
  g_free(config->files_dir);
  config->files_dir = g_strdup(workspace);
  config->max_files = 100000;
  config->max_copy_bytes = G_GUINT64_CONSTANT(1) << 30;
  return config;
}

void subject_open(Subject *subject, const char *scratch, const char *workspace) {
  g_autoptr(GError) error = NULL;
  g_autofree char *record = g_build_filename(scratch, "record.db", NULL);
  subject->registry = provider_registry_new();
  subject->harness = harness_new(config_for(workspace), subject->registry, &error);
  g_assert_no_error(error);
  subject->record = record_open(record, &error);
  g_assert_no_error(error);
  const RunHooks hooks = {0};
  subject->run = run_start(subject->harness, subject->record, &hooks, &error);
  g_assert_no_error(error);
}

void subject_close(Subject *subject) {
  run_end(subject->run, "completed", NULL, NULL);
  record_close(subject->record);
  harness_free(subject->harness);
  provider_registry_free(subject->registry);
}

gint64 subject_line(const Subject *subject, const char *line) {
  const ExecuteCall call = {.command = line};
  ExecuteOutcome outcome;
  gint64 from = clock_now();
  execute_run(subject->run, &call, &outcome);
  gint64 took = clock_now() - from;
  gboolean ok = outcome.end == EXECUTE_FINISHED && outcome.exit_code == 0;
  execute_outcome_clear(&outcome);
  return ok ? took : -1;
}

Sandbox *subject_sandbox(const Subject *subject) {
  static gint number; /* rows open some in many threads */
  const CallScope scope = {.deadline = G_MAXINT64};
  g_autofree char *key = g_strdup_printf("sandbox_bench%d", g_atomic_int_add(&number, 1));
  return sandbox_create(subject->harness->instance, subject->harness->config->manifest, key,
                        "run_bench", &scope, NULL);
}
