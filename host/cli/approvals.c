/* SPDX-License-Identifier: Apache-2.0 */
/* approvals.c: sandhost approvals, what waits for a person. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/shown.h"
#include "cli/cli.h"
#include "cli/recorded.h"
#include "governance/approvals.h"
#include "record/approvals.h"

static void print_json(JsonObject *approvals) {
  g_autoptr(JsonObject) array = approvals_told(approvals);
  g_autofree char *text = json_text(array);
  printf("%s\n", text);
}

static void print_line(const char *before, const char *text) {
  g_autofree char *line = shown_text(text);
  printf("%s%s\n", before, line);
}

/* The whole text, whatever of the call the ask is about: that is what an approval lets run. */
static void print_call(const char *before, JsonObject *arguments) {
  const char *command = json_get_text(arguments, "command");
  if (!command) { /* it is not to be recorded, and the run is over */
    return;
  }
  g_auto(GStrv) lines = shown_lines(command);
  for (char **line = lines; *line; line++) {
    printf("%s%s\n", before, *line);
  }
}

static const char *target_of(JsonObject *approval) {
  static const char *const KEYS[] = {"host", "path", "resource", "tool_name"};
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    const char *text = json_get_text(json_get(approval, "target"), KEYS[i]);
    if (text) {
      return text;
    }
  }
  return "";
}

static void print_one(JsonObject *approval) {
  JsonObject *edited = json_get(approval, "edited_arguments");
  const char *approver = json_get_text(approval, "approver");
  printf("%s %s %s\n", json_get_text(approval, "run_id"), json_get_text(approval, "approval_id"),
         json_get_text(approval, "status"));
  g_autofree char *asked = g_strdup_printf("%s %s | %s", json_get_text(approval, "capability"),
                                           target_of(approval), json_get_text(approval, "reason"));
  print_line("  ", asked);
  print_call("  command: ", json_get(approval, "arguments"));
  if (edited) {
    print_call("  allowed in its place: ", edited);
  }
  if (json_get(edited, "timeout")) {
    printf("  timeout: %" G_GINT64_FORMAT " s\n", json_get_int(edited, "timeout", 0));
  }
  printf("  risk %s, expires %s\n", json_get_text(approval, "risk_level"),
         json_get_text(approval, "expires_at"));
  if (approver) {
    const char *note = json_get_text(approval, "note");
    g_autofree char *by = g_strdup_printf("%s%s%s", approver, note ? ": " : "", note ? note : "");
    print_line("  decided by ", by);
  }
}

static gboolean list(const char *path, const char *wanted, gboolean all, gboolean json,
                     GError **error) {
  g_autoptr(Record) record = NULL;
  g_autoptr(JsonObject) approvals = NULL;
  g_autofree char *place = record_default_path();
  if (!path && !wanted && !g_file_test(place, G_FILE_TEST_EXISTS)) {
    approvals = json_object_new_array(); /* nothing was ever run */
  } else {
    record = recorded_open(path, error);
    g_autofree char *id = record && wanted ? record_resolve(record, wanted, error) : NULL;
    if (!record || (wanted && !id)) {
      return FALSE;
    }
    approvals = record_approvals(record, id, all, error);
  }
  if (!approvals) {
    return FALSE;
  }
  if (json) {
    print_json(approvals);
    return TRUE;
  }
  for (gsize i = 0; i < json_object_array_length(approvals); i++) {
    print_one(json_object_array_get_idx(approvals, i));
  }
  if (json_object_array_length(approvals) == 0) {
    fprintf(stderr, "%s\n", all ? "no approval is recorded" : "nothing waits for a decision");
  }
  return TRUE;
}

int cli_approvals(int argc, char **argv) {
  g_autofree char *record = NULL;
  gboolean all = FALSE;
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"all", 'a', 0, G_OPTION_ARG_NONE, &all, "Also those that are decided, used or expired",
       NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "Print them as one JSON array", NULL},
      {0},
  };
  if (!cli_parse_mixed(&argc, &argv, "[RUN]",
                       "Lists what runs wait for; of one run, where its id is given.", entries)) {
    return EXIT_USAGE;
  }
  if (argc > 2) {
    cli_complain("approvals takes one run, got '%s' too", argv[2]);
    return EXIT_USAGE;
  }
  g_autoptr(GError) error = NULL;
  return list(record, argc > 1 ? argv[1] : NULL, all, json, &error) ? 0 : cli_fail(error);
}
