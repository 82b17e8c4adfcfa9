/* SPDX-License-Identifier: Apache-2.0 */
/* abandon.c: sandhost cancel and sandhost abandon, the end of a run from outside. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "run/resume.h"

/* What a process of the run may have left; only after the run is ours to end. A warning where that cannot be known. */
static void sweep(JsonObject *request, const char *run_id) {
  g_autoptr(GError) error = NULL;
  CliRunOptions options = {0};
  ProviderRegistry *registry = NULL;
  Harness *harness = NULL;
  if (g_strcmp0(json_get_text(request, "surface"), "api") == 0) {
    cli_complain(
        "sandboxes of the run may be left: it was begun by a program with libsandhost, and "
        "this does not know which provider that has");
    return;
  }
  if (cli_request_open(request, &options, &error)) {
    harness = cli_harness(&options, &registry, &error);
  }
  if (!harness || !run_sweep_leftovers(harness, run_id, NULL, NULL, &error)) {
    cli_complain("sandboxes of the run may be left, sandhost cleanup finds them: %s",
                 error->message);
  }
  g_clear_pointer(&harness, harness_free);
  g_clear_pointer(&registry, provider_registry_free);
  cli_run_options_clear(&options);
}

static gboolean abandon(const char *path, const char *wanted, const char *status,
                        const char *reason, GError **error) {
  gboolean changed = FALSE;
  if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No run %s", wanted);
    return FALSE;
  }
  g_autoptr(Record) record = record_open(path, error);
  g_autofree char *id = record ? record_resolve(record, wanted, error) : NULL;
  g_autoptr(Privacy) known = id ? cli_request_privacy(record, id) : NULL;
  if (!id || !resume_abandon(record, id, status, reason, known, &changed, error)) {
    return FALSE;
  }
  g_autoptr(JsonObject) life = record_life(record, id, error);
  if (!life) {
    return FALSE;
  }
  printf("%s %s\n", id, json_get_text(life, "status"));
  if (changed && json_get(life, "request")) {
    sweep(json_get(life, "request"), id);
  }
  return TRUE;
}

static int run_abandon(int argc, char **argv, const GOptionEntry *entries, const char *summary,
                       char **record, char **status, char **reason) {
  static const char *const KNOWN[] = {"cancelled", "failed", "timeout", NULL};
  g_autoptr(GError) error = NULL;
  if (!cli_parse_mixed(&argc, &argv, "RUN", summary, entries)) {
    return EXIT_USAGE;
  }
  if (argc != 2) {
    cli_complain("%s takes one run; sandhost runs lists them", argv[0]);
    return EXIT_USAGE;
  }
  if (*status && !g_strv_contains(KNOWN, *status)) {
    cli_complain("status must be cancelled, failed or timeout");
    return EXIT_USAGE;
  }
  g_autofree char *path = *record ? g_strdup(*record) : record_default_path();
  const char *name = *status ? *status : "cancelled";
  g_autofree char *why = g_strdup(*reason);
  if (!why) {
    why = g_strdup(strcmp(name, "timeout") == 0 ? "The run's deadline passed"
                                                : "The run was ended from outside");
  }
  return abandon(path, argv[1], name, why, &error) ? 0 : cli_fail(error);
}

int cli_abandon(int argc, char **argv) {
  g_autofree char *record = NULL;
  g_autofree char *status = NULL;
  g_autofree char *reason = NULL;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"status", 's', 0, G_OPTION_ARG_STRING, &status, "cancelled (default), failed or timeout",
       "S"},
      {"reason", 'r', 0, G_OPTION_ARG_STRING, &reason, "Why; it goes into the record", "TEXT"},
      {0},
  };
  return run_abandon(argc, argv, entries,
                     "Ends a run from outside, also one that waits or whose process died, and "
                     "removes its sandboxes. A run that has ended already stays as it is.",
                     &record, &status, &reason);
}

int cli_cancel(int argc, char **argv) {
  g_autofree char *record = NULL;
  g_autofree char *status = NULL;
  g_autofree char *reason = NULL;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"reason", 'r', 0, G_OPTION_ARG_STRING, &reason, "Why; it goes into the record", "TEXT"},
      {0},
  };
  return run_abandon(argc, argv, entries,
                     "Cancels a run: one that waits ends, and one that goes on in another process "
                     "notices within a second. A run that has ended already stays as it is.",
                     &record, &status, &reason);
}
