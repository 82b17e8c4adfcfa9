/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleanup.c: sandhost cleanup, sandboxes that outlived their run. They are listed first; then the record says of each
 * run whether a process still has it. What a living run holds is never touched.
 *
 * Removal goes run by run: a run that is over gets no new sandbox, so a sweep of that run alone can only meet what it
 * left. Runs that this record does not know may be another's, who runs now: only old ones are taken for left behind.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/option.h"

#define SWEEP_SECONDS 300
#define DEFAULT_MIN_AGE (60 * 60)
#define MOST_MIN_AGE (10 * 365 * 24 * 3600ll)
/* Sandboxes without the name of a run are swept among everybody's: whatever began after the list was made, or this long
 * before, is too young for that. */
#define LEAST_NAMELESS_AGE 600

typedef struct {
  CliRunOptions run; /* config, provider, record */
  char **option;
  char *wanted; /* run */
  char *min_age;
  gboolean all;
  gboolean dry_run;
  gboolean json;
} CleanupOptions;

typedef enum { STATE_UNKNOWN, STATE_ENDED, STATE_LIVES } RunState;

static const char *const STATE_WORDS[] = {
    [STATE_UNKNOWN] = "unknown", [STATE_ENDED] = "ended", [STATE_LIVES] = "running"};

typedef struct {
  Orphan *orphan; /* borrowed */
  RunState state;
  gboolean young;  /* of an unknown run, and not old enough */
  gboolean wanted; /* to be removed */
  gboolean removed;
} Leftover;

typedef struct {
  const CleanupOptions *options;
  ProviderRegistry *registry;
  char *provider;             /* name */
  ProviderInstance *instance; /* NULL: it could not be opened */
  Record *record;             /* NULL: there is none */
  Cancel *cancel;
  gint64 min_age;     /* seconds */
  gint64 listed;      /* clock_now when the list was begun */
  char *run_id;       /* the wanted run; NULL: every one */
  GPtrArray *orphans; /* of Orphan */
  GArray *leftovers;  /* of Leftover */
  char *failure;      /* the first thing that went wrong while removing */
  gint64 removed_count;
} Cleanup;

static void cleanup_clear(Cleanup *cleanup) {
  g_clear_pointer(&cleanup->leftovers, g_array_unref);
  g_clear_pointer(&cleanup->orphans, g_ptr_array_unref);
  g_clear_pointer(&cleanup->instance, provider_instance_close);
  g_clear_pointer(&cleanup->registry, provider_registry_free);
  g_clear_pointer(&cleanup->record, record_close);
  g_clear_pointer(&cleanup->cancel, cancel_unref);
  g_clear_pointer(&cleanup->failure, g_free);
  g_clear_pointer(&cleanup->run_id, g_free);
  g_clear_pointer(&cleanup->provider, g_free);
}

/* ---- What there is ------------------------------------------------------------------------------------------- */

/* Opening the record marks the runs whose process is gone, so what still runs has one, or one that cannot be asked
 * after, which counts as living. */
static gboolean state_of(const Cleanup *cleanup, const char *run_id, RunState *ret_state,
                         GError **error) {
  g_autoptr(GError) failure = NULL;
  g_autoptr(JsonObject) run =
      cleanup->record && run_id ? record_run(cleanup->record, run_id, &failure) : NULL;
  if (failure && !g_error_matches(failure, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND)) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  *ret_state = !run                                                      ? STATE_UNKNOWN
               : g_strcmp0(json_get_text(run, "status"), "running") == 0 ? STATE_LIVES
                                                                         : STATE_ENDED;
  return TRUE;
}

static gboolean sweep(const Cleanup *cleanup, const SweepRequest *request, GPtrArray *orphans,
                      GError **error) {
  const CallScope scope = {.deadline = clock_deadline(SWEEP_SECONDS * CLOCK_SECOND),
                           .cancel = cleanup->cancel};
  return provider_instance_sweep(cleanup->instance, request, orphans, &scope, error);
}

static gboolean is_young(const Cleanup *cleanup, const Orphan *orphan) {
  return orphan->age < 0 ? cleanup->min_age > 0 : orphan->age / CLOCK_SECOND < cleanup->min_age;
}

static int by_run(gconstpointer a, gconstpointer b) {
  const Orphan *one = *(const Orphan *const *)a;
  const Orphan *other = *(const Orphan *const *)b;
  int order = g_strcmp0(one->run_id, other->run_id);
  return order ? order : strcmp(one->ref, other->ref);
}

static gboolean list(Cleanup *cleanup, GError **error) {
  const SweepRequest request = {.run_id = cleanup->run_id, .dry_run = TRUE};
  cleanup->listed = clock_now();
  if (!sweep(cleanup, &request, cleanup->orphans, error)) {
    return FALSE;
  }
  g_ptr_array_sort(cleanup->orphans, by_run);
  const CleanupOptions *options = cleanup->options;
  gboolean removes = (options->all || cleanup->run_id) && !options->dry_run;
  for (guint i = 0; i < cleanup->orphans->len; i++) {
    Leftover leftover = {.orphan = g_ptr_array_index(cleanup->orphans, i)};
    if (!state_of(cleanup, leftover.orphan->run_id, &leftover.state, error)) {
      return FALSE;
    }
    leftover.young = leftover.state == STATE_UNKNOWN && is_young(cleanup, leftover.orphan);
    leftover.wanted = removes && leftover.state != STATE_LIVES && !leftover.young;
    g_array_append_val(cleanup->leftovers, leftover);
  }
  return TRUE;
}

/* ---- Removing ------------------------------------------------------------------------------------------------- */

static Leftover *leftover_at(const Cleanup *cleanup, guint i) {
  return &g_array_index(cleanup->leftovers, Leftover, i);
}

/* Whatever is not to be removed. Owned array of borrowed refs, NULL-terminated. */
static GPtrArray *refs_to_keep(const Cleanup *cleanup) {
  GPtrArray *keep = g_ptr_array_new();
  for (guint i = 0; i < cleanup->leftovers->len; i++) {
    if (!leftover_at(cleanup, i)->wanted) {
      g_ptr_array_add(keep, leftover_at(cleanup, i)->orphan->ref);
    }
  }
  g_ptr_array_add(keep, NULL);
  return keep;
}

static void note_removed(Cleanup *cleanup, const GPtrArray *swept) {
  g_autoptr(GHashTable) gone = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = 0; i < swept->len; i++) {
    Orphan *orphan = g_ptr_array_index(swept, i);
    if (orphan->removed) {
      g_hash_table_add(gone, orphan->ref);
      cleanup->removed_count++;
    }
  }
  for (guint i = 0; i < cleanup->leftovers->len; i++) {
    Leftover *leftover = leftover_at(cleanup, i);
    leftover->removed = leftover->removed || g_hash_table_contains(gone, leftover->orphan->ref);
  }
}

static void note_failure(Cleanup *cleanup, const GError *error) {
  if (!cleanup->failure) {
    cleanup->failure = g_strdup(error->message);
  }
}

/* run_id NULL: those whose run nobody knows by name. */
static void remove_run(Cleanup *cleanup, const char *run_id, RunState state, GPtrArray *keep) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) swept = g_ptr_array_new_with_free_func((GDestroyNotify)orphan_free);
  gint64 least = state == STATE_ENDED ? 0 : cleanup->min_age * CLOCK_SECOND;
  if (!run_id) {
    least = MAX(least, LEAST_NAMELESS_AGE * CLOCK_SECOND + clock_now() - cleanup->listed);
  }
  const SweepRequest request = {
      .run_id = run_id,
      .keep = (const char *const *)keep->pdata,
      .min_age = least,
  };
  RunState now = state;
  if (!state_of(cleanup, run_id, &now, &error)) {
    note_failure(cleanup, error);
  } else if (now == STATE_LIVES) { /* it was taken up again since the list was made */
    cleanup->failure = cleanup->failure ? cleanup->failure
                                        : g_strdup_printf("run %s has been taken up again", run_id);
  } else {
    if (!sweep(cleanup, &request, swept, &error)) {
      note_failure(cleanup, error);
    }
    note_removed(cleanup, swept);
  }
}

static void remove_wanted(Cleanup *cleanup) {
  g_autoptr(GPtrArray) keep = refs_to_keep(cleanup);
  g_autoptr(GHashTable) done = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = 0; i < cleanup->leftovers->len && !cancel_raised(cleanup->cancel); i++) {
    const Leftover *leftover = leftover_at(cleanup, i);
    const char *run_id = leftover->orphan->run_id;
    if (leftover->wanted && g_hash_table_add(done, (gpointer)(gsize)(run_id ? run_id : ""))) {
      remove_run(cleanup, run_id, leftover->state, keep);
    }
  }
}

/* ---- Telling -------------------------------------------------------------------------------------------------- */

static char *age_words(gint64 age) {
  gint64 seconds = age / CLOCK_SECOND;
  if (age < 0) {
    return g_strdup("?");
  }
  if (seconds < 120) {
    return g_strdup_printf("%" G_GINT64_FORMAT " s", seconds);
  }
  if (seconds < 120 * 60) {
    return g_strdup_printf("%" G_GINT64_FORMAT " min", seconds / 60);
  }
  return seconds < 48 * 3600 ? g_strdup_printf("%" G_GINT64_FORMAT " h", seconds / 3600)
                             : g_strdup_printf("%" G_GINT64_FORMAT " d", seconds / 86400);
}

static const char *action_of(const Cleanup *cleanup, const Leftover *leftover) {
  if (leftover->removed) {
    return "removed";
  }
  if (leftover->wanted) {
    return "not removed";
  }
  if (leftover->state == STATE_LIVES) {
    return "kept: its run goes on";
  }
  if (leftover->young) {
    return "kept: too young for a run that is not in this record";
  }
  return cleanup->options->dry_run ? "would be removed" : "left over";
}

static void print_table(const Cleanup *cleanup) {
  int width = 8;
  for (guint i = 0; i < cleanup->leftovers->len; i++) {
    width = MAX(width, (int)strlen(leftover_at(cleanup, i)->orphan->ref));
  }
  width = MIN(width, 64);
  if (cleanup->leftovers->len > 0) {
    printf("%-37s %-8s %-8s %-*s\n", "RUN", "STATE", "AGE", width, "SANDBOX");
  }
  for (guint i = 0; i < cleanup->leftovers->len; i++) {
    const Leftover *leftover = leftover_at(cleanup, i);
    const Orphan *orphan = leftover->orphan;
    g_autofree char *age = age_words(orphan->age);
    printf("%-37s %-8s %-8s %-*s %s\n", orphan->run_id ? orphan->run_id : "-",
           STATE_WORDS[leftover->state], age, width, orphan->ref, action_of(cleanup, leftover));
  }
}

static void print_advice(const Cleanup *cleanup) {
  guint removable = 0;
  guint young = 0;
  for (guint i = 0; i < cleanup->leftovers->len; i++) {
    const Leftover *leftover = leftover_at(cleanup, i);
    removable += leftover->state != STATE_LIVES && !leftover->young ? 1 : 0;
    young += leftover->young ? 1 : 0;
  }
  gboolean removes = (cleanup->options->all || cleanup->run_id) && !cleanup->options->dry_run;
  if (cleanup->leftovers->len == 0) {
    printf("nothing of %s is left over\n", provider_instance_name(cleanup->instance));
  } else if (removes) {
    printf("removed %" G_GINT64_FORMAT "\n", cleanup->removed_count);
  } else if (removable > 0) {
    printf("%u left over; --all removes them, --run RUN those of one run\n", removable);
  }
  if (young > 0) {
    printf("%u of runs that are not in this record, perhaps of another user's sandhost: they are "
           "left alone until they are %" G_GINT64_FORMAT " s old (--min-age)\n",
           young, cleanup->min_age);
  }
}

static void print_json(const Cleanup *cleanup) {
  g_autoptr(JsonObject) object = json_object_new_object();
  JsonObject *sandboxes = json_object_new_array();
  for (guint i = 0; cleanup->leftovers && i < cleanup->leftovers->len; i++) {
    const Leftover *leftover = leftover_at(cleanup, i);
    JsonObject *entry = json_object_new_object();
    json_add_text(entry, "ref", leftover->orphan->ref);
    json_add_text(entry, "run_id", leftover->orphan->run_id);
    json_add_text(entry, "run_state", STATE_WORDS[leftover->state]);
    json_add_take(entry, "age_seconds",
                  leftover->orphan->age < 0
                      ? NULL
                      : json_object_new_int64(leftover->orphan->age / CLOCK_SECOND));
    json_add_text(entry, "action", action_of(cleanup, leftover));
    json_add_bool(entry, "removed", leftover->removed);
    json_object_array_add(sandboxes, entry);
  }
  json_add_text(object, "provider", cleanup->provider);
  json_add_take(object, "sweeps",
                cleanup->instance
                    ? json_object_new_boolean(provider_instance_sweeps(cleanup->instance))
                    : NULL);
  json_add_int(object, "removed", cleanup->removed_count);
  json_add_take(object, "sandboxes", sandboxes);
  json_add_text(object, "error", cleanup->failure);
  g_autofree char *text = json_text(object);
  printf("%s\n", text);
}

/* ---- The command ----------------------------------------------------------------------------------------------- */

static gboolean open_provider(Cleanup *cleanup, Config *config, GError **error) {
  const CleanupOptions *options = cleanup->options;
  if (!harness_register(config, cleanup->registry, error)) {
    return FALSE;
  }
  if (!config->provider) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                        "no sandbox is configured; name a provider with --provider");
    return FALSE;
  }
  cleanup->provider = g_strdup(config->provider);
  Provider *provider = provider_registry_load(cleanup->registry, config->provider, error);
  if (!provider) {
    return FALSE;
  }
  for (gsize i = 0; options->option && options->option[i]; i++) {
    if (!config->provider_options) {
      config->provider_options = json_object_new_object();
    }
    if (!option_add(config->provider_options, provider_table(provider), options->option[i],
                    error)) {
      return FALSE;
    }
  }
  cleanup->instance =
      provider_instance_open(cleanup->registry, provider, config->provider_options, error);
  return cleanup->instance != NULL;
}

/* A record that was never made knows no run. */
static gboolean open_record(Cleanup *cleanup, const Config *config, GError **error) {
  g_autofree char *path = cli_record_path(&cleanup->options->run, config);
  if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
    return TRUE;
  }
  cleanup->record = record_open(path, error);
  return cleanup->record != NULL;
}

/* The whole id of the wanted run, which this record need not know. */
static gboolean resolve_run(Cleanup *cleanup, GError **error) {
  const char *wanted = cleanup->options->wanted;
  g_autoptr(GError) failure = NULL;
  RunState state = STATE_UNKNOWN;
  if (!wanted) {
    return TRUE;
  }
  cleanup->run_id = cleanup->record ? record_resolve(cleanup->record, wanted, &failure) : NULL;
  if (failure && !g_error_matches(failure, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND)) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  if (!cleanup->run_id) {
    cleanup->run_id = g_strdup(wanted);
  }
  if (!state_of(cleanup, cleanup->run_id, &state, error)) {
    return FALSE;
  }
  if (state == STATE_LIVES && !cleanup->options->dry_run) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED,
                "run %s goes on; its sandbox is removed when it ends", cleanup->run_id);
    return FALSE;
  }
  return TRUE;
}

static gboolean work(Cleanup *cleanup, GError **error) {
  cleanup->registry = cli_registry();
  cleanup->orphans = g_ptr_array_new_with_free_func((GDestroyNotify)orphan_free);
  cleanup->leftovers = g_array_new(FALSE, FALSE, sizeof(Leftover));
  cleanup->cancel = cancel_new();
  g_autoptr(Config) config = cli_config(&cleanup->options->run, cleanup->registry, error);
  if (!config || !open_provider(cleanup, config, error) || !open_record(cleanup, config, error) ||
      !resolve_run(cleanup, error)) {
    return FALSE;
  }
  cli_install_signals(cleanup->cancel);
  if (!list(cleanup, error)) {
    return FALSE;
  }
  remove_wanted(cleanup);
  if (cancel_raised(cleanup->cancel) && !cleanup->failure) {
    cleanup->failure = g_strdup("cancelled");
  }
  return TRUE;
}

static gboolean all_removed(const Cleanup *cleanup) {
  for (guint i = 0; i < cleanup->leftovers->len; i++) {
    const Leftover *leftover = leftover_at(cleanup, i);
    if (leftover->wanted && !leftover->removed) {
      return FALSE;
    }
  }
  return !cleanup->failure;
}

static int cleanup_run(const CleanupOptions *options, gint64 min_age) {
  g_autoptr(GError) error = NULL;
  Cleanup cleanup = {.options = options, .min_age = min_age};
  int code = EXIT_SANDHOST;
  if (!work(&cleanup, &error)) {
    code = cli_fail(error);
    if (options->json && cleanup.provider && code == EXIT_SANDHOST) {
      cleanup.failure = g_strdup(error->message);
      print_json(&cleanup);
    }
  } else {
    if (options->json) {
      print_json(&cleanup);
    } else if (!provider_instance_sweeps(cleanup.instance)) {
      printf("nothing to clean up: a sandbox of %s ends with the sandhost that made it\n",
             provider_instance_name(cleanup.instance));
    } else {
      print_table(&cleanup);
      print_advice(&cleanup);
    }
    if (cleanup.failure) {
      cli_complain("%s", cleanup.failure);
    }
    code = cli_caught_signal()     ? 128 + cli_caught_signal()
           : all_removed(&cleanup) ? 0
                                   : EXIT_SANDHOST;
  }
  cli_install_signals(NULL);
  cleanup_clear(&cleanup);
  return code;
}

static int check_and_run(int argc, char **argv, const CleanupOptions *options) {
  gint64 min_age = DEFAULT_MIN_AGE;
  if (argc > 1) {
    cli_complain("cleanup takes no argument '%s'; --run names a run", argv[1]);
    return EXIT_USAGE;
  }
  if (options->all && options->wanted) {
    cli_complain("--run and --all exclude each other");
    return EXIT_USAGE;
  }
  if (options->wanted && *options->wanted == '\0') {
    cli_complain("--run needs the name of a run");
    return EXIT_USAGE;
  }
  if (options->min_age && !cli_number("--min-age", options->min_age, 0, MOST_MIN_AGE, &min_age)) {
    return EXIT_USAGE;
  }
  return cleanup_run(options, min_age);
}

int cli_cleanup(int argc, char **argv) {
  CleanupOptions options = {0};
  const GOptionEntry entries[] = {
      {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options.run.config,
       "Configuration file (sandhost.json(5))", "F"},
      {"provider", 'p', 0, G_OPTION_ARG_STRING, &options.run.provider,
       "Sandbox provider (default bubblewrap)", "NAME"},
      {"option", 'o', 0, G_OPTION_ARG_STRING_ARRAY, &options.option,
       "An option of the provider; any number of times", "NAME=VALUE"},
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &options.run.record, "File that keeps the record",
       "F"},
      {"run", 0, 0, G_OPTION_ARG_STRING, &options.wanted,
       "Remove what is left of this run (its id or the beginning of it)", "RUN"},
      {"all", 0, 0, G_OPTION_ARG_NONE, &options.all,
       "Remove what is left of every run that is over", NULL},
      {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &options.dry_run, "Only tell what would be removed",
       NULL},
      {"min-age", 0, 0, G_OPTION_ARG_STRING, &options.min_age,
       "Leave younger sandboxes of runs that are not in the record alone (default 3600)", "S"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "Print one JSON object", NULL},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse(&argc, &argv, NULL,
                "Lists the sandboxes that a sandhost which is gone left behind, and with --run or "
                "--all removes them. Those of a run that goes on are never touched.",
                entries)) {
    code = check_and_run(argc, argv, &options);
  }
  cli_run_options_clear(&options.run);
  g_strfreev(options.option);
  g_free(options.wanted);
  g_free(options.min_age);
  return code;
}
