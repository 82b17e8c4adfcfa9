/* SPDX-License-Identifier: Apache-2.0 */
/* budgets.c: sandhost budgets, what was used of what runs may use; sandhost grant, and the other answer to a run that waits
 * for more (sandhost deny). */
#include "cli/budgets.h"

#include <stdio.h>

#include "base/error.h"
#include "base/millionths.h"
#include "base/repr.h"
#include "cli/cli.h"
#include "cli/recorded.h"
#include "run/resume.h"

/* ---- What was used ----------------------------------------------------------------------------------------------- */

static const char *number_of(JsonObject *row, const char *key) {
  return json_object_to_json_string(json_get(row, key));
}

/* Keys are names from outside: nothing in them moves a cursor. */
static gboolean print_row(JsonObject *row) {
  const char *key = json_get_text(row, "key");
  g_autofree char *shown = cli_one_line(key);
  g_autofree char *used = g_strdup(number_of(row, "spent"));
  g_autofree char *reserved = g_strdup(number_of(row, "reserved"));
  g_autofree char *granted = g_strdup(number_of(row, "granted"));
  g_autofree char *left = g_strdup(number_of(row, "remaining"));
  g_autofree char *line = g_strdup_printf("%-11s  %-15s  %-6s  %10s  %10s  %10s  %10s  %10s  %s",
                                          json_get_text(row, "scope"), json_get_text(row, "meter"),
                                          json_get_text(row, "window"), number_of(row, "limit"),
                                          granted, used, reserved, left, shown);
  return recorded_print(line);
}

static void print_rows(JsonObject *rows) {
  gboolean goes_on = json_object_array_length(rows) > 0;
  if (goes_on) {
    goes_on = recorded_print("SCOPE        METER            WINDOW       LIMIT     GRANTED"
                             "       SPENT    RESERVED   REMAINING  KEY");
  } else {
    fprintf(stderr, "no budget is counted\n");
  }
  for (gsize i = 0; goes_on && i < json_object_array_length(rows); i++) {
    goes_on = print_row(json_object_array_get_idx(rows, i));
  }
}

/* What waits for an answer, and the command that gives it. */
static gboolean print_waiting(Record *record, const char *id, GError **error) {
  g_autoptr(JsonObject) requests = record_budget_requests(record, id, FALSE, error);
  gboolean goes_on = requests != NULL;
  for (gsize i = 0; goes_on && i < json_object_array_length(requests); i++) {
    JsonObject *request = json_object_array_get_idx(requests, i);
    const char *run = json_get_text(request, "run_id");
    g_autofree char *line =
        json_get_bool(request, "has_room", FALSE)
            ? g_strdup_printf(
                  "%s waits, and the %s budget for %s has room again; sandhost resume %s", run,
                  json_get_text(request, "scope"), json_get_text(request, "meter"), run)
            : g_strdup_printf("%s waits: %s; sandhost grant %s --approver NAME", run,
                              json_get_text(request, "message"), run);
    g_autofree char *shown = cli_one_line(line);
    goes_on = recorded_print(shown);
  }
  return requests != NULL;
}

static gboolean list(const char *path, const char *wanted, gboolean all, gboolean json,
                     GError **error) {
  g_autoptr(Record) record = recorded_open(path, error);
  g_autofree char *id = record && wanted ? record_resolve(record, wanted, error) : NULL;
  if (!record || (wanted && !id)) {
    return FALSE;
  }
  g_autoptr(JsonObject) rows = record_budgets(record, id, all, error);
  if (rows && json) {
    recorded_print_json(rows);
  } else if (rows) {
    print_rows(rows);
    return print_waiting(record, id, error);
  }
  return rows != NULL;
}

int cli_budgets(int argc, char **argv) {
  g_autofree char *record = NULL;
  g_autoptr(GError) error = NULL;
  gboolean all = FALSE;
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"all", 'a', 0, G_OPTION_ARG_NONE, &all, "Also days and months that are over", NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "Print them as one JSON array", NULL},
      {0},
  };
  if (!cli_parse_mixed(&argc, &argv, "[RUN]",
                       "Lists what was used of the budgets; of those that cover one run, where its "
                       "id is given.",
                       entries)) {
    return EXIT_USAGE;
  }
  if (argc > 2) {
    cli_complain("budgets takes one run, got '%s' too", argv[2]);
    return EXIT_USAGE;
  }
  return list(record, argc > 1 ? argv[1] : NULL, all, json, &error) ? 0 : cli_fail(error);
}

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

gboolean budgets_decide(const char *path, const char *wanted, const char *request,
                        const RecordBudgetDecision *decision, GError **error) {
  g_autoptr(JsonObject) requests = NULL;
  g_autofree char *chosen = path ? g_strdup(path) : record_default_path();
  if (!g_file_test(chosen, G_FILE_TEST_EXISTS)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No run %s", wanted);
    return FALSE;
  }
  g_autoptr(Record) record = record_open(chosen, error);
  g_autofree char *id = record ? record_resolve(record, wanted, error) : NULL;
  g_autoptr(Privacy) known = id ? cli_request_privacy(record, id) : NULL;
  if (!id || !resume_decide_budget(record, id, request, decision, NULL, known, &requests, error)) {
    return FALSE;
  }
  for (gsize i = 0; i < json_object_array_length(requests); i++) {
    JsonObject *decided = json_object_array_get_idx(requests, i);
    if (decision->grants) {
      printf("%s granted %s %s\n", json_get_text(decided, "request_id"),
             number_of(decided, "amount"), json_get_text(decided, "meter"));
    } else {
      printf("%s denied\n", json_get_text(decided, "request_id"));
    }
  }
  if (cli_stdout_fault()) {
    cli_complain("the decision is stored all the same");
  }
  return TRUE;
}

static int grant(int argc, char **argv, const char *record, const char *amount,
                 RecordBudgetDecision decision) {
  g_autoptr(GError) error = NULL;
  if (argc < 2 || argc > 3) {
    cli_complain("grant takes a run, and one of its budget requests where it has several");
    return EXIT_USAGE;
  }
  if (amount && (!millionths_parse(amount, &decision.amount) || decision.amount == 0)) {
    cli_complain("--amount must be a number above 0 and at most " MILLIONTHS_MOST_TEXT
                 ", with at most six "
                 "digits behind the point, got '%s'",
                 amount);
    return EXIT_USAGE;
  }
  if (budgets_decide(record, argv[1], argc > 2 ? argv[2] : NULL, &decision, &error)) {
    return 0;
  }
  int code = cli_fail(error);
  return g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED) ? EXIT_DENIED : code;
}

int cli_grant(int argc, char **argv) {
  g_autofree char *record = NULL;
  g_autofree char *approver = NULL;
  g_autofree char *note = NULL;
  g_autofree char *amount = NULL;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"approver", 'a', 0, G_OPTION_ARG_STRING, &approver, "Who decides", "NAME"},
      {"amount", 0, 0, G_OPTION_ARG_STRING, &amount,
       "How much more, in the meter's unit (default: what is missing)", "N"},
      {"note", 'n', 0, G_OPTION_ARG_STRING, &note, "Why; it goes into the record", "TEXT"},
      {0},
  };
  if (!cli_parse_mixed(&argc, &argv, "RUN [REQUEST]",
                       "Raises the limit that a run stands at, for everybody whom this budget "
                       "covers. sandhost resume goes on with the run; sandhost deny RUN ends it.",
                       entries)) {
    return EXIT_USAGE;
  }
  const RecordBudgetDecision decision = {.grants = TRUE, .approver = approver, .note = note};
  return grant(argc, argv, record, amount, decision);
}
