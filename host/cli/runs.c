/* SPDX-License-Identifier: Apache-2.0 */
/* runs.c: sandhost runs, a list of what is on record. */
#include <string.h>

#include "base/clock.h"
#include "cli/amount.h"
#include "cli/cli.h"
#include "cli/recorded.h"
#include "record/record-retention.h"

#define DEFAULT_LIMIT 20

/* Padded by characters; what a stranger wrote into the file has no control characters here. */
static void add_cell(GString *line, const char *text, glong width) {
  g_autofree char *shown = g_utf8_make_valid(text ? text : "-", -1);
  for (char *at = shown; *at; at = g_utf8_next_char(at)) {
    gunichar letter = g_utf8_get_char(at);
    g_string_append_unichar(line, g_unichar_isprint(letter) ? letter : '?');
  }
  for (glong length = g_utf8_strlen(shown, -1); length < width; length++) {
    g_string_append_c(line, ' ');
  }
}

static gboolean print_run(JsonObject *run) {
  g_autoptr(GString) line = g_string_new(NULL);
  const char *created = json_get_text(run, "created_at");
  g_autofree char *second =
      created && strlen(created) > 19 ? g_strndup(created, 19) : g_strdup("-");
  g_autofree char *commands =
      g_strdup_printf("%" G_GINT64_FORMAT, json_get_int(run, "commands", 0));
  add_cell(line, json_get_text(run, "run_id"), 36);
  add_cell(line, "  ", 0);
  add_cell(line, second, 19);
  add_cell(line, "  ", 0);
  add_cell(line, json_get_text(run, "status"), 17);
  add_cell(line, "  ", 0);
  add_cell(line, commands, 8);
  add_cell(line, "  ", 0);
  add_cell(line, json_get_text(run, "provider"), 0);
  return recorded_print(line->str);
}

static void print_runs(JsonObject *runs) {
  gboolean goes_on = json_object_array_length(runs) == 0 ||
                     recorded_print("RUN                                   BEGAN (UTC)          "
                                    "STATUS             COMMANDS  PROVIDER");
  for (gsize i = 0; goes_on && i < json_object_array_length(runs); i++) {
    goes_on = print_run(json_object_array_get_idx(runs, i));
  }
}

/* Who reads on to the end of the list learns why there is no more of it. */
static void tell_removed(Record *record) {
  RetentionFacts facts;
  if (record_retention_facts(record, &facts, NULL) && facts.removed > 0) {
    g_autofree char *at = clock_format(facts.removed_at);
    cli_complain("%" G_GINT64_FORMAT " older runs were removed after their run_retention_days, "
                 "the last on %.10s",
                 facts.removed, at);
  }
}

static gboolean list_runs(const char *path, const RecordFilter *filter, gboolean json,
                          GError **error) {
  g_autoptr(Record) record = recorded_open(path, error);
  g_autoptr(JsonObject) runs = record ? record_runs_matching(record, filter, error) : NULL;
  if (!runs) {
    return FALSE;
  }
  if (json) {
    recorded_print_json(runs);
  } else {
    print_runs(runs);
    if (json_object_array_length(runs) < filter->limit) {
      tell_removed(record);
    }
  }
  return TRUE;
}

static int run_runs(int argc, char **argv, const char *path, RecordFilter filter, const char *since,
                    const char *limit, gboolean json) {
  gint64 most = DEFAULT_LIMIT;
  g_autoptr(GError) error = NULL;
  if (argc > 1) {
    cli_complain("runs takes options only, got '%s'; sandhost show RUN tells of one", argv[1]);
    return EXIT_USAGE;
  }
  if (filter.status && !g_strv_contains(record_status_names(), filter.status)) {
    g_autofree char *list = g_strjoinv(", ", (char **)(gsize)record_status_names());
    cli_complain("--status must be one of: %s, got '%s'", list, filter.status);
    return EXIT_USAGE;
  }
  if ((since && !amount_since("--since", since, &filter.since)) ||
      (limit && !cli_number("--limit", limit, 1, G_MAXUINT32, &most))) {
    return EXIT_USAGE;
  }
  filter.limit = (guint)most;
  return list_runs(path, &filter, json, &error) ? 0 : cli_fail(error);
}

int cli_runs(int argc, char **argv) {
  g_autofree char *record = NULL;
  g_autofree char *status = NULL;
  g_autofree char *since = NULL;
  g_autofree char *provider = NULL;
  g_autofree char *limit = NULL;
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"status", 's', 0, G_OPTION_ARG_STRING, &status, "Only runs with this status", "S"},
      {"since", 0, 0, G_OPTION_ARG_STRING, &since,
       "Only runs that began then or later (12h, 7d, 2026-01-31)", "T"},
      {"provider", 'p', 0, G_OPTION_ARG_STRING, &provider, "Only runs in this provider's sandboxes",
       "NAME"},
      {"limit", 'n', 0, G_OPTION_ARG_STRING, &limit, "At most so many (default 20)", "N"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "Print a JSON array", NULL},
      {0},
  };
  if (!cli_parse_mixed(&argc, &argv, "", "Lists the runs on record, the newest first.", entries)) {
    return EXIT_USAGE;
  }
  const RecordFilter filter = {.status = status, .provider = provider};
  return run_runs(argc, argv, record, filter, since, limit, json);
}
