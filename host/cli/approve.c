/* SPDX-License-Identifier: Apache-2.0 */
/* approve.c: sandhost approve and sandhost deny, a person's word about one ask of a run. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/budgets.h"
#include "cli/cli.h"
#include "run/resume.h"

typedef struct {
  char *record;
  char *approver;
  char *note;
  char *arguments;
} DecideOptions;

static JsonObject *read_arguments(const char *text, GError **error) {
  g_autoptr(GError) failure = NULL;
  JsonObject *arguments = json_parse("--arguments", text, strlen(text), &failure);
  if (failure) {
    g_propagate_error(error, g_steal_pointer(&failure));
  } else if (!arguments) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                        "arguments must be a JSON object with command and timeout");
  }
  return arguments;
}

/* What is allowed is the call as it will run. */
static void tell_shortened(Record *record, const char *run, JsonObject *arguments) {
  g_autoptr(JsonObject) header = record_header(record, run, NULL);
  gint64 timeout = json_get_int(arguments, "timeout", 0);
  cli_tell_shortened(timeout,
                     json_get_int(json_get(header, "limits"), "tool_call_timeout", timeout));
}

static gboolean decide(const DecideOptions *options, const char *decision, const char *run,
                       const char *approval, GError **error) {
  g_autoptr(JsonObject) arguments = NULL;
  if (options->arguments && !(arguments = read_arguments(options->arguments, error))) {
    return FALSE;
  }
  g_autofree char *path = options->record ? g_strdup(options->record) : record_default_path();
  if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No run %s", run);
    return FALSE;
  }
  g_autoptr(Record) record = record_open(path, error);
  g_autofree char *id = record ? record_resolve(record, run, error) : NULL;
  g_autoptr(Privacy) known = id ? cli_request_privacy(record, id) : NULL;
  const ResumeDecision whole = {.decision = decision,
                                .approver = options->approver,
                                .note = options->note,
                                .arguments = arguments,
                                .known = known};
  if (!id || !resume_decide_as(record, id, approval, &whole, NULL, error)) {
    return FALSE;
  }
  tell_shortened(record, id, arguments);
  printf("%s %s\n", approval, strcmp(decision, "approve") == 0 ? "approved" : "denied");
  if (cli_stdout_fault()) {
    cli_complain("the decision is stored all the same");
  }
  return TRUE;
}

/* What a run waits for is an ask with an id of its own, or more of a budget, which the run alone names. */
static gboolean is_about_budget(int argc, char **argv, const char *decision) {
  return strcmp(decision, "deny") == 0 &&
         (argc == 2 || (argc == 3 && g_str_has_prefix(argv[2], "budgetreq_")));
}

static gboolean deny_budget(const DecideOptions *options, const char *run, const char *request,
                            GError **error) {
  const RecordBudgetDecision decision = {.approver = options->approver, .note = options->note};
  return budgets_decide(options->record, run, request, &decision, error);
}

static int run_decision(int argc, char **argv, const char *decision, const char *summary) {
  DecideOptions options = {0};
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &options.record, "File that keeps the record", "F"},
      {"approver", 'a', 0, G_OPTION_ARG_STRING, &options.approver, "Who decides", "NAME"},
      {"note", 'n', 0, G_OPTION_ARG_STRING, &options.note, "Why; the agent reads it", "TEXT"},
      {"arguments", 0, 0, G_OPTION_ARG_STRING, &options.arguments,
       "Allow this call in the place of the one asked about: {\"command\", \"timeout\"}", "JSON"},
      {0},
  };
  int code = EXIT_USAGE;
  const char *usage = strcmp(decision, "deny") == 0 ? "RUN [APPROVAL]" : "RUN APPROVAL";
  if (cli_parse_mixed(&argc, &argv, usage, summary, entries)) {
    g_autoptr(GError) error = NULL;
    if (is_about_budget(argc, argv, decision)) {
      code =
          deny_budget(&options, argv[1], argc > 2 ? argv[2] : NULL, &error) ? 0 : cli_fail(error);
    } else if (argc != 3) {
      cli_complain("%s takes a run and an approval; sandhost approvals lists them", argv[0]);
    } else {
      code = decide(&options, decision, argv[1], argv[2], &error) ? 0 : cli_fail(error);
    }
    if (g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED)) {
      code = EXIT_DENIED; /* of the approver */
    }
  }
  g_free(options.record);
  g_free(options.approver);
  g_free(options.note);
  g_free(options.arguments);
  return code;
}

int cli_approve(int argc, char **argv) {
  return run_decision(argc, argv, "approve",
                      "Allows once exactly what the run asked about. The decision is final; "
                      "sandhost resume goes on with the run.");
}

int cli_deny(int argc, char **argv) {
  return run_decision(argc, argv, "deny",
                      "Refuses what the run asked about; without an approval, the budget that it "
                      "waits for. The decision is final; sandhost resume goes on with the run, "
                      "which is told.");
}
