/* SPDX-License-Identifier: Apache-2.0 */
/* api-budgets.c: runs of a program before a limit, and what a program is charged for its own work; on local_test. */
#include <glib/gstdio.h>
#include <string.h>

#include "base/json.h"
#include "remove-tree.h"
#include "sandhost.h"

#define KEY "sk-model-0123456789abcdef"
#define CONFIG(budgets)                                                                            \
  "{\"model_config\": {\"provider\": \"p\", \"model\": \"m\", \"api_key\": \"" KEY "\"},"          \
  " \"agent_config\": {\"governance_config\": {\"sandbox_config\": \"local_test\","                \
  " \"allow_test_sandbox_runtime\": true, \"policy\": {\"mode\": \"permissive\"},"                 \
  " \"budgets\": " budgets "}}}"
#define LIMIT(scope, meter, limit, end)                                                            \
  CONFIG("{\"" scope "\": [{\"meter\": \"" meter "\", \"limit\": " limit                           \
         ", \"on_exhausted\": \"" end "\"}]}")

typedef struct {
  char *folder;
  char *record;
  sandhost *host;
  GString *ran;   /* the commands, each ended by ; one at a time */
  GString *asked; /* what check_approver was told */
  gboolean refuses;
} Fixture;

static int handle(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  Fixture *fixture = user;
  (void)ret_stderr;
  g_string_append_printf(fixture->ran, "%s;", argv[2]);
  *ret_stdout = strdup("done");
  return 0;
}

static int check_approver(void *user, const struct sandhost_decision *decision,
                          char **ret_refusal) {
  Fixture *fixture = user;
  g_assert_null(decision->approval_id);
  g_assert_null(decision->approval);
  g_assert_null(decision->arguments);
  g_assert_nonnull(strstr(decision->budget_requests, "\"request_id\":\"budgetreq_"));
  g_string_append_printf(fixture->asked, "%s %s %s|", decision->decision, decision->approver,
                         decision->amount ? decision->amount : "-");
  if (!fixture->refuses) {
    return 0;
  }
  *ret_refusal = strdup("not today");
  return 1;
}

static sandhost *open_host(Fixture *fixture, const char *config, gboolean checks) {
  const struct sandhost_settings settings = {.size = sizeof settings,
                                             .record = fixture->record,
                                             .check_approver = checks ? check_approver : NULL,
                                             .user = fixture};
  sandhost *host = NULL;
  char *error = NULL;
  sandhost_open(config, &settings, &host, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(sandhost_add_test_command(host, "sh", handle, fixture, NULL), ==, 0);
  return host;
}

static void set_up(Fixture *fixture, gconstpointer config) {
  fixture->folder = g_dir_make_tmp("sandhost-api-budgets-XXXXXX", NULL);
  fixture->record = g_build_filename(fixture->folder, "record.db", NULL);
  fixture->ran = g_string_new(NULL);
  fixture->asked = g_string_new(NULL);
  fixture->host = open_host(fixture, config, FALSE);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_close(fixture->host);
  remove_tree(fixture->folder);
  g_string_free(fixture->ran, TRUE);
  g_string_free(fixture->asked, TRUE);
  g_free(fixture->record);
  g_free(fixture->folder);
}

/* ---- Short ways -------------------------------------------------------------------------------------------------- */

static void assert_refused(int status, int wanted, char *take_error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
static void assert_refused(int status, int wanted, char *take_error, const char *format, ...) {
  va_list words;
  va_start(words, format);
  g_autofree char *text = g_strdup_vprintf(format, words);
  va_end(words);
  g_assert_cmpstr(take_error, ==, text);
  g_assert_cmpint(status, ==, wanted);
  sandhost_free(take_error);
}

/* The function, with these arguments before the error, is refused so. */
#define REFUSED(wanted, text, function, ...)                                                       \
  do {                                                                                             \
    char *refusal = NULL;                                                                          \
    int outcome = function(__VA_ARGS__, &refusal);                                                 \
    assert_refused(outcome, wanted, refusal, "%s", text);                                          \
  } while (0)

#define OK(function, ...)                                                                          \
  do {                                                                                             \
    char *refusal = NULL;                                                                          \
    int outcome = function(__VA_ARGS__, &refusal);                                                 \
    g_assert_cmpstr(refusal, ==, NULL);                                                            \
    g_assert_cmpint(outcome, ==, SANDHOST_STATUS_OK);                                              \
  } while (0)

static JsonObject *parse(char *take_text) {
  g_autoptr(GError) error = NULL;
  JsonObject *object = json_parse("the text", take_text, strlen(take_text), &error);
  g_assert_no_error(error);
  sandhost_free(take_text);
  return object;
}

/* What the function gives with these arguments, all but the last two. Owned. */
#define PARSE(function, ...)                                                                       \
  ({                                                                                               \
    char *given = NULL;                                                                            \
    OK(function, __VA_ARGS__, &given);                                                             \
    parse(given);                                                                                  \
  })

static sandhost_run *start_as(sandhost *host, const char *request, const char *session,
                              const char *agent) {
  const struct sandhost_hooks hooks = {
      .size = sizeof hooks, .request = request, .session_id = session, .agent_name = agent};
  sandhost_run *run = NULL;
  OK(sandhost_run_start, host, &hooks, &run);
  return run;
}

static sandhost_run *start(Fixture *fixture, const char *request) {
  return start_as(fixture->host, request, NULL, NULL);
}

static sandhost_run *resume(Fixture *fixture, const char *id) {
  sandhost_run *run = NULL;
  OK(sandhost_resume, fixture->host, id, NULL, &run);
  return run;
}

static void end(sandhost_run *run) {
  OK(sandhost_run_end, run, NULL, NULL);
}

static JsonObject *at(JsonObject *array, gsize index) {
  g_assert_cmpuint(index, <, json_object_array_length(array));
  return json_object_array_get_idx(array, index);
}

static void check(JsonObject *object, const char *key, const char *wanted) {
  g_assert_cmpstr(json_object_get_string(json_get(object, key)), ==, wanted);
}

static void check_execute(sandhost_run *run, const char *command, const char *status) {
  g_autoptr(JsonObject) result = PARSE(sandhost_execute, run, command, 9);
  check(result, "status", status);
}

/* What the run would end as. */
static void check_waiting(sandhost_run *run, const char *status, gsize budgets) {
  g_autoptr(JsonObject) told = PARSE(sandhost_run_waiting, run);
  check(told, "status", status);
  check(told, "run_id", sandhost_run_id(run));
  g_assert_cmpuint(json_object_array_length(json_get(told, "approvals")), ==, 0);
  g_assert_cmpuint(json_object_array_length(json_get(told, "budget_requests")), ==, budgets);
}

static void check_recorded(Fixture *fixture, const char *id, const char *status) {
  g_autoptr(JsonObject) story = PARSE(sandhost_run_trajectory, fixture->host, id);
  check(story, "status", status);
}

/* One member of the first counter. */
static void check_counted(Fixture *fixture, const char *id, const char *key, const char *wanted) {
  g_autoptr(JsonObject) rows = PARSE(sandhost_budgets, fixture->host, id, 0);
  check(at(rows, 0), key, wanted);
}

/* A run that has waited with its second command, put away. Owned. */
static char *wait_with(Fixture *fixture, const char *command) {
  sandhost_run *run = start(fixture, "{\"task\": 7}");
  char *id = g_strdup(sandhost_run_id(run));
  check_execute(run, "first", "success");
  check_waiting(run, "completed", 0);
  g_autoptr(JsonObject) result = PARSE(sandhost_execute_tagged, run, "second", command, 9);
  check(result, "status", "awaiting_budget");
  check(json_get(result, "budget_request"), "shortfall", "1");
  check_execute(run, "third", "error");
  check_waiting(run, "awaiting_budget", 1);
  end(run);
  check_recorded(fixture, id, "awaiting_budget");
  g_assert_cmpstr(fixture->ran->str, ==, "first;");
  return id;
}

/* ---- A run that waits -------------------------------------------------------------------------------------------- */

static void test_grant(Fixture *fixture, gconstpointer data) {
  (void)data;
  g_autofree char *id = wait_with(fixture, "second");
  g_autofree char *done = g_strdup_printf("Run %s is not waiting for a budget decision", id);
  g_autoptr(JsonObject) waiting =
      PARSE(sandhost_runs, fixture->host, "{\"status\": \"awaiting_budget\"}");
  check(at(waiting, 0), "run_id", id);
  g_autoptr(JsonObject) before = PARSE(sandhost_run_trajectory, fixture->host, id);
  const char *request = json_get_text(at(json_get(before, "budget_requests"), 0), "request_id");
  g_autofree char *still =
      g_strdup_printf("Run %s is still waiting for a budget decision: %s", id, request);
  sandhost_run *run = NULL;
  REFUSED(SANDHOST_STATUS_STATE, still, sandhost_resume, fixture->host, id, NULL, &run);

  sandhost *host = fixture->host;
  REFUSED(SANDHOST_STATUS_INVALID, "host and run_id must not be NULL", sandhost_grant, host, NULL,
          NULL, "alice", NULL, 0, NULL);
  REFUSED(SANDHOST_STATUS_INVALID, "approver is required", sandhost_grant, host, id, NULL, NULL,
          NULL, 0, NULL);
  REFUSED(SANDHOST_STATUS_INVALID, "amount must be greater than zero", sandhost_grant, host, id,
          NULL, "alice", NULL, -1, NULL);
  REFUSED(SANDHOST_STATUS_INVALID, "amount must be at most 9000000000000", sandhost_grant, host, id,
          NULL, "alice", NULL, 9000000000000000001, NULL);
  REFUSED(SANDHOST_STATUS_NOT_FOUND, "No run run_00000000000000000000000000000000", sandhost_grant,
          host, "run_00000000000000000000000000000000", NULL, "alice", NULL, 0, NULL);
  REFUSED(SANDHOST_STATUS_STATE, done, sandhost_grant, host, id, "budgetreq_other", "alice", NULL,
          0, NULL);
  g_autoptr(JsonObject) granted = PARSE(sandhost_grant, host, id, request, "alice", "with " KEY, 0);
  check(at(granted, 0), "status", "granted");
  check(at(granted, 0), "amount", "1");
  check(at(granted, 0), "note", "with [REDACTED:credential]");
  REFUSED(SANDHOST_STATUS_STATE, done, sandhost_grant, host, id, NULL, "alice", NULL, 0, NULL);

  run = resume(fixture, id);
  g_autoptr(JsonObject) stopped = PARSE(sandhost_execute_stopped, run);
  check(at(json_get(stopped, "results"), 0), "status", "success");
  check(at(json_get(stopped, "results"), 0), "tag", "second");
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "first;second;");
  check_recorded(fixture, id, "completed");
  check_counted(fixture, id, "spent", "2");
  check_counted(fixture, id, "granted", "1");
  check_counted(fixture, NULL, "remaining", "0");
  REFUSED(SANDHOST_STATUS_NOT_FOUND, "No run run_00000000", sandhost_budgets, host, "run_00000000",
          0, &(char *){NULL});
}

static void test_deny(Fixture *fixture, gconstpointer data) {
  (void)data;
  g_autofree char *id = wait_with(fixture, "second");
  g_autoptr(JsonObject) denied = PARSE(sandhost_deny_budget, fixture->host, id, NULL, "bob", NULL);
  check(at(denied, 0), "status", "denied");
  sandhost_run *run = resume(fixture, id);
  check_waiting(run, "failed", 0);
  g_autoptr(JsonObject) stopped = PARSE(sandhost_execute_stopped, run);
  JsonObject *result = at(json_get(stopped, "results"), 0);
  check(result, "status", "error");
  check(result, "termination_reason", "budget_exhausted");
  g_assert_true(g_str_has_prefix(json_get_text(result, "response"),
                                 "This run stopped because the request budget is exhausted: "));
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "first;");
  check_recorded(fixture, id, "failed");
}

/* The true command, whatever is recorded of it. */
static void test_sealed(Fixture *fixture, gconstpointer data) {
  (void)data;
  g_autofree char *id = wait_with(fixture, "use " KEY);
  g_autoptr(JsonObject) before = PARSE(sandhost_run_trajectory, fixture->host, id);
  g_assert_null(strstr(json_object_to_json_string(before), KEY));
  g_assert_null(strstr(json_object_to_json_string(before), "sealed"));
  g_autoptr(JsonObject) granted =
      PARSE(sandhost_grant, fixture->host, id, NULL, "alice", NULL, 1000000);
  g_assert_null(strstr(json_object_to_json_string(granted), KEY));
  sandhost_run *run = resume(fixture, id);
  g_autoptr(JsonObject) stopped = PARSE(sandhost_execute_stopped, run);
  g_assert_null(strstr(json_object_to_json_string(stopped), KEY));
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "first;use " KEY ";");
}

static void test_approver(Fixture *fixture, gconstpointer data) {
  (void)data;
  g_autofree char *id = wait_with(fixture, "second");
  sandhost *host = open_host(fixture, data, TRUE);
  fixture->refuses = TRUE;
  REFUSED(SANDHOST_STATUS_DENIED, "Approver mallory is refused: not today", sandhost_grant, host,
          id, NULL, "mallory", NULL, 2500000, NULL);
  REFUSED(SANDHOST_STATUS_DENIED, "Approver mallory is refused: not today", sandhost_deny_budget,
          host, id, NULL, "mallory", NULL, NULL);
  fixture->refuses = FALSE;
  OK(sandhost_grant, host, id, NULL, "alice", NULL, 0, NULL);
  g_assert_cmpstr(fixture->asked->str, ==, "grant mallory 2.5|deny mallory -|grant alice -|");
  sandhost_close(host);
}

/* Nobody could go on with it: the command is refused, and the run goes on. */
static void test_cannot_wait(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_run *run = start(fixture, NULL);
  check_execute(run, "first", "success");
  check_execute(run, "second", "error");
  check_waiting(run, "completed", 0);
  REFUSED(SANDHOST_STATUS_DENIED,
          "The request budget for tool_calls is exhausted: 1 of 1 used, 0.5 more needed",
          sandhost_run_charge, run, "tool_calls", 500000, SANDHOST_CHARGE_SPEND);
  end(run);
}

/* ---- Charges ----------------------------------------------------------------------------------------------------- */

#define COST "model_cost_usd"

static void test_charge(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_run *run = start(fixture, "{}");
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  char *hold = NULL;
  OK(sandhost_run_charge, run, COST, 400000, SANDHOST_CHARGE_SPEND);
  OK(sandhost_run_charge, run, COST, 600000, SANDHOST_CHARGE_LOOK);
  OK(sandhost_run_charge, run, "model_tokens", 5000000, SANDHOST_CHARGE_SPEND); /* no limit */
  OK(sandhost_run_hold, run, COST, 500000, &hold);
  check_counted(fixture, id, "reserved", "0.5");
  check_counted(fixture, id, "remaining", "0.1");
  check_waiting(run, "completed", 0);
  REFUSED(SANDHOST_STATUS_DENIED,
          "The request budget for model_cost_usd is exhausted: 0.9 of 1 used, 0.2 more needed",
          sandhost_run_charge, run, COST, 200000, SANDHOST_CHARGE_SPEND);
  check_waiting(run, "awaiting_budget", 1);
  OK(sandhost_run_settle, run, hold, 450000);
  REFUSED(SANDHOST_STATUS_NOT_FOUND, "the run has no such hold, or it was settled",
          sandhost_run_settle, run, hold, 450000);
  sandhost_free(hold);
  OK(sandhost_run_charge, run, COST, 300000, SANDHOST_CHARGE_DONE);
  check_counted(fixture, id, "spent", "1.15");
  check_counted(fixture, id, "reserved", "0");
  end(run);
  check_recorded(fixture, id, "awaiting_budget");

  OK(sandhost_grant, fixture->host, id, NULL, "alice", NULL, 1000000, NULL);
  run = resume(fixture, id);
  g_assert_cmpstr(sandhost_run_request(run), ==, "{}");
  OK(sandhost_run_charge, run, COST, 200000, SANDHOST_CHARGE_SPEND);
  check_counted(fixture, id, "spent", "1.35");
  OK(sandhost_run_hold, run, COST, 600000, &hold);
  sandhost_free(hold);
  end(run); /* what was held is free */
  check_counted(fixture, id, "reserved", "0");
  check_recorded(fixture, id, "completed");
}

static void test_charge_ends(Fixture *fixture, gconstpointer data) {
  (void)data;
  static const char *const OVER =
      "This run stopped because the request budget is exhausted: "
      "The request budget for model_calls is exhausted: 2 of 2 used, 1 more needed";
  sandhost_run *run = start(fixture, "{}");
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  OK(sandhost_run_charge, run, "model_calls", 2000000, SANDHOST_CHARGE_SPEND);
  REFUSED(SANDHOST_STATUS_DENIED, OVER, sandhost_run_charge, run, "model_calls", 1000000,
          SANDHOST_CHARGE_SPEND);
  g_autoptr(JsonObject) told = PARSE(sandhost_run_waiting, run);
  check(told, "status", "failed");
  check(told, "termination_reason", "budget_exhausted");
  check(told, "message", OVER);
  check_execute(run, "never", "error");
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "");
  check_recorded(fixture, id, "failed");
}

static void test_charge_refuses(Fixture *fixture, gconstpointer data) {
  (void)data;
  static const char *const METERS =
      "meter must be one of: model_cost_usd, model_tokens, model_calls, tool_calls, "
      "sandbox_seconds, subagent_runs";
  sandhost_run *run = start(fixture, NULL);
  char *hold = NULL;
  REFUSED(SANDHOST_STATUS_INVALID, "run and meter must not be NULL", sandhost_run_charge, NULL,
          COST, 1, 0);
  REFUSED(SANDHOST_STATUS_INVALID, METERS, sandhost_run_charge, run, "tokens", 1, 0);
  REFUSED(SANDHOST_STATUS_INVALID, "millionths must not be negative", sandhost_run_charge, run,
          COST, -1, 0);
  REFUSED(SANDHOST_STATUS_INVALID, "how must be one of enum sandhost_charge", sandhost_run_charge,
          run, COST, 1, 7);
  REFUSED(SANDHOST_STATUS_INVALID, "ret_hold must not be NULL", sandhost_run_hold, run, COST, 1,
          NULL);
  REFUSED(SANDHOST_STATUS_INVALID, METERS, sandhost_run_hold, run, "tokens", 1, &hold);
  REFUSED(SANDHOST_STATUS_INVALID, "run and hold must not be NULL, and millionths not negative",
          sandhost_run_settle, run, NULL, 1);
  REFUSED(SANDHOST_STATUS_NOT_FOUND, "the run has no such hold, or it was settled",
          sandhost_run_settle, run, "hold_1", 1);
  REFUSED(SANDHOST_STATUS_INVALID, "run and ret_json must not be NULL", sandhost_run_waiting, run,
          NULL);
  REFUSED(SANDHOST_STATUS_INVALID, "host and ret_json must not be NULL", sandhost_budgets,
          fixture->host, NULL, 0, NULL);
  end(run);
}

/* ---- Whose it is ------------------------------------------------------------------------------------------------- */

static void test_names(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_run *run = start_as(fixture->host, "{}", "talk", "bot");
  check_execute(run, "first", "success");
  end(run);
  run = start_as(fixture->host, "{}", "talk", "bot");
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  g_autoptr(JsonObject) result = PARSE(sandhost_execute, run, "second", 9);
  check(result, "status", "awaiting_budget");
  check(result, "session_id", "talk");
  end(run);
  run = start_as(fixture->host, "{}", "other", NULL);
  check_execute(run, "third", "success");
  end(run);
  check_counted(fixture, id, "key", "talk");
  g_autoptr(JsonObject) last = PARSE(sandhost_trajectory, fixture->host, id);
  check(last, "session_id", "talk");
  check(json_get(last, "harness"), "agent_name", "bot");

  OK(sandhost_grant, fixture->host, id, NULL, "alice", NULL, 0, NULL);
  run = resume(fixture, id); /* hooks are not looked at: it is the same session */
  json_object_put(PARSE(sandhost_execute_stopped, run));
  end(run);
  check_counted(fixture, id, "key", "talk");
  check_counted(fixture, id, "spent", "2");
  g_assert_cmpstr(fixture->ran->str, ==, "first;third;second;");
}

static void test_name_refuses(Fixture *fixture, gconstpointer data) {
  (void)data;
  g_autofree char *longest = g_strnfill(257, 'a');
  const char *const names[] = {"", " ", longest, "\xff"};
  struct sandhost_hooks hooks = {.size = sizeof hooks};
  sandhost_run *run = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    hooks.session_id = names[i];
    hooks.agent_name = NULL;
    REFUSED(SANDHOST_STATUS_INVALID,
            "hooks->session_id must be valid UTF-8 of at most 256 bytes, and not empty",
            sandhost_run_start, fixture->host, &hooks, &run);
    hooks.session_id = NULL;
    hooks.agent_name = names[i];
    REFUSED(SANDHOST_STATUS_INVALID,
            "hooks->agent_name must be valid UTF-8 of at most 256 bytes, and not empty",
            sandhost_run_start, fixture->host, &hooks, &run);
  }
  hooks.size = offsetof(struct sandhost_hooks, session_id); /* a program of before */
  OK(sandhost_run_start, fixture->host, &hooks, &run);
  end(run);
}

#define ADD(path, function, config)                                                                \
  g_test_add("/api-budgets/" path, Fixture, config, set_up, function, tear_down)

int main(int argc, char **argv) {
  static const char ONE_CALL[] = LIMIT("request", "tool_calls", "1", "pause");
  g_test_init(&argc, &argv, NULL);
  ADD("grant", test_grant, ONE_CALL);
  ADD("deny", test_deny, ONE_CALL);
  ADD("sealed", test_sealed, ONE_CALL);
  ADD("approver", test_approver, ONE_CALL);
  ADD("cannot-wait", test_cannot_wait, ONE_CALL);
  ADD("charge", test_charge, LIMIT("request", COST, "1", "pause"));
  ADD("charge-ends", test_charge_ends, LIMIT("request", "model_calls", "2", "terminate"));
  ADD("charge-refuses", test_charge_refuses, ONE_CALL);
  ADD("names", test_names, LIMIT("session", "tool_calls", "1", "pause"));
  ADD("name-refuses", test_name_refuses, ONE_CALL);
  return g_test_run();
}
