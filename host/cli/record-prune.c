/* SPDX-License-Identifier: Apache-2.0 */
/* record-prune.c: sandhost record prune, by what the options or a configuration say. */
#include "cli/record-prune.h"

#include "base/clock.h"
#include "cli/amount.h"
#include "cli/cli.h"
#include "cli/recorded.h"
#include "record/record-prune.h"

typedef struct {
  CliRunOptions run; /* config and record */
  char *older_than;
  char *keep;
  char *max_bytes;
  gboolean dry_run;
  gboolean json;
} PruneOptions;

/* What the configuration says, where the options say nothing. */
static gboolean read_config(PruneOptions *options, PruneRequest *request, GError **error) {
  if (!options->run.config) {
    return TRUE;
  }
  g_autoptr(ProviderRegistry) registry = cli_registry();
  g_autoptr(Config) config = cli_config(&options->run, registry, error);
  if (!config) {
    return FALSE;
  }
  if (request->older_than == 0 && config->retention_days > 0) {
    request->older_than = MAX(clock_wall() - config->retention_days * 86400 * CLOCK_SECOND, 1);
  }
  if (request->max_bytes == 0) {
    request->max_bytes = config->retention_max_bytes;
  }
  if (!options->run.record) {
    options->run.record = cli_record_path(&options->run, config);
  }
  return TRUE;
}

static gboolean print_result(JsonObject *result, gboolean dry_run) {
  JsonObject *runs = json_get(result, "runs");
  for (gsize i = 0; i < json_object_array_length(runs); i++) {
    JsonObject *run = json_object_array_get_idx(runs, i);
    g_autofree char *line = g_strdup_printf("%s  ended %s", json_get_text(run, "run_id"),
                                            json_get_text(run, "ended_at"));
    if (!recorded_print(line)) {
      return FALSE;
    }
  }
  const char *warning = json_get_text(result, "warning");
  if (warning) {
    cli_complain("the file could not be made smaller (%s); the room in it is used again", warning);
  }
  g_autofree char *line = g_strdup_printf(
      "%s %" G_GSIZE_FORMAT " runs: %" G_GINT64_FORMAT " bytes in use, %" G_GINT64_FORMAT " before",
      dry_run ? "would prune" : "pruned", json_object_array_length(runs),
      json_get_int(result, "bytes_after", 0), json_get_int(result, "bytes_before", 0));
  return recorded_print(line);
}

static int prune(PruneOptions *options, PruneRequest *request) {
  g_autoptr(GError) error = NULL;
  if (!read_config(options, request, &error)) {
    return cli_fail(error);
  }
  if (request->older_than == 0 && request->max_bytes == 0 && !options->keep) {
    cli_complain(
        "nothing says what to prune; give --older-than, --keep or --max-bytes, or --config with "
        "telemetry_config.retention_days or retention_max_bytes");
    return EXIT_USAGE;
  }
  g_autoptr(Record) record = recorded_open(options->run.record, &error);
  g_autoptr(JsonObject) result = record ? record_prune(record, request, &error) : NULL;
  if (!result) {
    return cli_fail(error);
  }
  if (options->json) {
    json_add_bool(result, "dry_run", request->dry_run);
    recorded_print_json(result);
  } else {
    print_result(result, request->dry_run);
  }
  return 0;
}

static int run_prune(int argc, char **argv, PruneOptions *options) {
  PruneRequest request = {.dry_run = options->dry_run};
  gint64 span = 0;
  if (argc > 1) {
    cli_complain("record prune takes options only, got '%s'", argv[1]);
    return EXIT_USAGE;
  }
  if ((options->older_than && !amount_span("--older-than", options->older_than, &span)) ||
      (options->keep && !cli_number("--keep", options->keep, 0, G_MAXINT64, &request.keep)) ||
      (options->max_bytes && !amount_size("--max-bytes", options->max_bytes, &request.max_bytes))) {
    return EXIT_USAGE;
  }
  if (span > 0) {
    request.older_than = MAX(clock_wall() - span, 1);
  }
  return prune(options, &request);
}

int cli_record_prune(int argc, char **argv) {
  PruneOptions options = {0};
  const GOptionEntry entries[] = {
      {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options.run.config,
       "Configuration file whose telemetry_config says what stays, where no option does", "F"},
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &options.run.record, "File that keeps the record",
       "F"},
      {"older-than", 0, 0, G_OPTION_ARG_STRING, &options.older_than,
       "Runs that ended longer ago than this (30d)", "SPAN"},
      {"max-bytes", 0, 0, G_OPTION_ARG_STRING, &options.max_bytes,
       "The oldest runs, until the record is no larger (500M)", "SIZE"},
      {"keep", 0, 0, G_OPTION_ARG_STRING, &options.keep,
       "The newest N runs stay whatever else is asked; alone: all others go", "N"},
      {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &options.dry_run, "Only tell what would go", NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "Print one JSON object", NULL},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse_mixed(
          &argc, &argv, "",
          "Takes old runs out of the record. A run that is running or waits for an answer "
          "always stays.",
          entries)) {
    code = run_prune(argc, argv, &options);
  }
  cli_run_options_clear(&options.run);
  g_free(options.older_than);
  g_free(options.keep);
  g_free(options.max_bytes);
  return code;
}
