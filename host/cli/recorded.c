/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.c: finding the record and a run in it. */
#include "cli/recorded.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cli.h"
#include "run/story.h"

Record *recorded_open(const char *path, GError **error) {
  g_autofree char *chosen = path ? g_strdup(path) : record_default_path();
  if (!g_file_test(chosen, G_FILE_TEST_EXISTS)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND,
                "no run is recorded in %s; sandhost exec -- COMMAND makes one, --record FILE names "
                "another record",
                chosen);
    return NULL;
  }
  return record_open_to_read(chosen, error);
}

char *recorded_run(Record *record, const char *wanted, GError **error) {
  if (wanted) {
    return story_find(record, wanted, error);
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

gboolean recorded_print(const char *text) {
  g_autofree char *line = g_strconcat(text, "\n", NULL);
  return cli_write(STDOUT_FILENO, line, strlen(line));
}

gboolean recorded_print_json(JsonObject *value) {
  return json_write_line(value, cli_put_stdout, NULL);
}
