/* SPDX-License-Identifier: Apache-2.0 */
/* show.c: sandhost show, the record of a run. */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "record/trajectory.h"

static char *choose_run(Record *record, const char *wanted, GError **error) {
  if (wanted) {
    return record_resolve(record, wanted, error);
  }
  g_autoptr(GError) failure = NULL;
  char *newest = record_newest(record, &failure);
  if (failure) {
    g_propagate_error(error, g_steal_pointer(&failure));
  } else if (!newest) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND,
                        "no run is recorded yet; sandhost exec -- COMMAND makes one");
  }
  return newest;
}

static gboolean show(const char *path, const char *wanted, gboolean json, GError **error) {
  if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND,
                "no run is recorded in %s; sandhost exec -- COMMAND makes one, --record FILE names "
                "another record",
                path);
    return FALSE;
  }
  g_autoptr(Record) record = record_open(path, error);
  if (!record) {
    return FALSE;
  }
  g_autofree char *id = choose_run(record, wanted, error);
  if (!id) {
    return FALSE;
  }
  g_autoptr(JsonObject) run = record_run(record, id, error);
  if (!run) {
    return FALSE;
  }
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  g_autofree char *text = json ? json_text(trajectory) : trajectory_text(trajectory);
  cli_write(STDOUT_FILENO, text, strlen(text));
  if (json) {
    cli_write(STDOUT_FILENO, "\n", 1);
  }
  return TRUE;
}

int cli_show(int argc, char **argv) {
  g_autofree char *record = NULL;
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "Print the trajectory as JSON", NULL},
      {0},
  };
  if (!cli_parse(
          &argc, &argv, "[RUN]",
          "Prints what a run did. RUN is its id or the beginning of it; without one, the newest.",
          entries)) {
    return EXIT_USAGE;
  }
  if (argc > 2) {
    cli_complain("show takes one run, got '%s' too", argv[2]);
    return EXIT_USAGE;
  }
  g_autoptr(GError) error = NULL;
  if (!record) {
    record = record_default_path();
  }
  return show(record, argc > 1 ? argv[1] : NULL, json, &error) ? 0 : cli_fail(error);
}
