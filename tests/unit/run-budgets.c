/* SPDX-License-Identifier: Apache-2.0 */
/* run-budgets.c: what a run is charged for, and what it does at a limit. */
#include "base/millionths.h"
#include "provider-testing.h"
#include "record/approvals.h"
#include "record/budgets.h"
#include "run/execute.h"
#include "run/run.h"

typedef struct {
  ProviderRegistry *registry;
  Harness *harness;
  char *folder;
  Record *record;
  Run *run;
} Place;

/* A run under these budgets (JSON) and rules; waits: it may go on later. */
static Place place_open(const char *budgets, const char *policy, gboolean waits) {
  g_autoptr(GError) error = NULL;
  Place place = {.registry = zoo_registry(), .folder = folder_new()};
  g_autofree char *path = g_build_filename(place.folder, "record.db", NULL);
  g_autofree char *text = g_strdup_printf(
      "{\"session_id\": \"talk\", \"agent_config\": {\"enable_workspace_files\": false,"
      " \"governance_config\": {\"policy\": %s, \"sandbox_config\": \"sweeper\","
      " \"budgets\": %s}}}",
      policy, budgets);
  g_autoptr(JsonObject) object = json_parse("the configuration", text, strlen(text), &error);
  g_assert_no_error(error);
  g_auto(GStrv) names = provider_registry_names(place.registry);
  Config *config = config_new(object, (const char *const *)names, &error);
  g_assert_no_error(error);
  place.harness = harness_new(config, place.registry, &error);
  g_assert_no_error(error);
  place.record = record_open(path, &error);
  g_assert_no_error(error);
  g_autoptr(JsonObject) request = json_object_new_object();
  const RunHooks hooks = {.request = waits ? request : NULL};
  place.run = run_start(place.harness, place.record, &hooks, &error);
  g_assert_no_error(error);
  return place;
}

/* The run as it is recorded after its end, which is told as completed. */
static JsonObject *end_run(Place *place) {
  g_autoptr(GError) error = NULL;
  g_autofree char *id = g_strdup(run_id(place->run));
  run_end(place->run, "completed", NULL, &error);
  g_assert_no_error(error);
  JsonObject *run = record_run(place->record, id, &error);
  g_assert_no_error(error);
  return run;
}

static void place_close(Place *place) {
  record_close(place->record);
  harness_free(place->harness);
  provider_registry_free(place->registry);
  folder_remove(place->folder);
}

static void check_end(Place *place, const char *status, gsize sandboxes) {
  g_autoptr(JsonObject) run = end_run(place);
  JsonObject *events = json_get(run, "events");
  gsize made = 0;
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    made += g_strcmp0(json_get_text(json_object_array_get_idx(events, i), "type"),
                      "sandbox_session_created") == 0;
  }
  g_assert_cmpstr(json_get_text(run, "status"), ==, status);
  g_assert_cmpuint(made, ==, sandboxes);
  place_close(place);
}

/* The observation's status and message. Owned. */
static char *run_true(Place *place, ExecuteEnd wanted) {
  const ExecuteCall call = {.command = "true", .timeout = 5};
  ExecuteOutcome outcome;
  execute_run(place->run, &call, &outcome);
  const char *message = json_get_text(outcome.observation, "message");
  char *text = g_strdup_printf("%s: %s", json_get_text(outcome.observation, "status"),
                               message ? message : "");
  g_test_message("%s", text);
  g_assert_cmpint(outcome.end, ==, wanted);
  execute_outcome_clear(&outcome);
  return text;
}

static void check_true(Place *place, ExecuteEnd end, const char *wanted) {
  g_autofree char *text = run_true(place, end);
  g_assert_cmpstr(text, ==, wanted);
}

/* One member of the counter of a meter. Owned. */
static char *counted(Place *place, const char *meter, const char *key) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) rows = record_budgets(place->record, NULL, TRUE, &error);
  g_assert_no_error(error);
  for (gsize i = 0; i < json_object_array_length(rows); i++) {
    JsonObject *row = json_object_array_get_idx(rows, i);
    if (g_strcmp0(json_get_text(row, "meter"), meter) == 0) {
      return g_strdup(json_object_get_string(json_get(row, key)));
    }
  }
  return g_strdup("none");
}

static void check_counted(Place *place, const char *meter, const char *key, const char *wanted) {
  g_autofree char *text = counted(place, meter, key);
  g_assert_cmpstr(text, ==, wanted);
}

#define ALLOW "{\"mode\": \"permissive\"}"
#define ONE_LIMIT(scope, meter, limit, end)                                                        \
  "{\"" scope "\": [{\"meter\": \"" meter "\", \"limit\": " limit ", \"on_exhausted\": \"" end     \
  "\"}]}"

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static void test_pause(void) {
  Place place = place_open(ONE_LIMIT("session", "tool_calls", "1", "pause"), ALLOW, TRUE);
  g_assert_cmpstr(run_session_id(place.run), ==, "talk");
  check_true(&place, EXECUTE_FINISHED, "success: ");
  check_counted(&place, "tool_calls", "key", "talk");
  check_true(&place, EXECUTE_WAITING,
             "awaiting_budget: The session budget for tool_calls is exhausted: 1 of 1 used, 1 more "
             "needed");
  g_assert_true(run_is_paused(place.run));
  g_autoptr(JsonObject) waiting = run_waiting_budgets(place.run);
  g_assert_cmpuint(json_object_array_length(waiting), ==, 1);
  check_true(&place, EXECUTE_REJECTED,
             "error: The run waits for a budget decision; no command is begun.");
  check_counted(&place, "tool_calls", "spent", "1");
  check_end(&place, "awaiting_budget", 1);
}

#define OVER                                                                                       \
  "error: This run stopped because the request budget is exhausted: The request budget for "       \
  "tool_calls is exhausted: 1 of 1 used, 1 more needed"

static void test_terminate(void) {
  Place place = place_open(ONE_LIMIT("request", "tool_calls", "1", "terminate"), ALLOW, TRUE);
  check_true(&place, EXECUTE_FINISHED, "success: ");
  check_true(&place, EXECUTE_DENIED, OVER);
  g_assert_false(run_is_paused(place.run));
  check_true(&place, EXECUTE_DENIED, OVER); /* and nothing more is begun */
  check_counted(&place, "tool_calls", "spent", "1");
  check_end(&place, "failed", 1);
}

/* Of a limit of one call. */
static void use_up(Place *place) {
  g_autoptr(GError) error = NULL;
  run_charge(place->run, RUN_SPEND, BUDGET_TOOL_CALLS, MILLIONTHS, NULL, &error);
  g_assert_no_error(error);
}

/* A run that nobody could resume does not wait: the call is refused, and the run goes on. */
static void test_cannot_wait(void) {
  Place place = place_open(ONE_LIMIT("request", "tool_calls", "1", "pause"), ALLOW, FALSE);
  use_up(&place);
  check_true(&place, EXECUTE_DENIED,
             "error: The request budget for tool_calls is exhausted: 1 of 1 used, 1 more needed");
  g_assert_false(run_is_paused(place.run));
  check_end(&place, "completed", 0); /* no sandbox is made for what may not run */
}

static void test_denied_is_free(void) {
  Place place = place_open(
      ONE_LIMIT("request", "tool_calls", "1", "pause"),
      "{\"mode\": \"permissive\", \"rules\": {\"deny\": [{\"rule_id\": \"d\", \"capability\": "
      "\"process.exec\"}]}}",
      TRUE);
  check_true(&place, EXECUTE_DENIED, "error: Matched deny policy rule.");
  check_counted(&place, "tool_calls", "spent", "none");
  check_end(&place, "completed", 0);
}

static void test_sandbox_time(void) {
  Place place = place_open(ONE_LIMIT("request", "sandbox_seconds", "100", "pause"), ALLOW, TRUE);
  check_true(&place, EXECUTE_FINISHED, "success: ");
  check_counted(&place, "sandbox_seconds", "reserved", "0"); /* the command holds no more */
  g_autofree char *before = counted(&place, "sandbox_seconds", "spent");
  json_object_put(end_run(&place));
  g_autofree char *after = counted(&place, "sandbox_seconds", "spent");
  g_assert_cmpfloat(g_ascii_strtod(before, NULL), >, 0);
  g_assert_cmpfloat(g_ascii_strtod(after, NULL), >, g_ascii_strtod(before, NULL));
  place_close(&place);
}

/* A command begins while anything is left. */
static void test_no_sandbox_time(void) {
  g_autoptr(GError) error = NULL;
  Place place = place_open(ONE_LIMIT("request", "sandbox_seconds", "0.9", "pause"), ALLOW, TRUE);
  run_charge(place.run, RUN_OWE, BUDGET_SANDBOX_SECONDS, 899999, NULL, &error);
  g_assert_no_error(error);
  run_charge(place.run, RUN_LOOK, BUDGET_SANDBOX_SECONDS, MILLIONTHS, NULL, &error);
  g_assert_no_error(error);
  run_charge(place.run, RUN_OWE, BUDGET_SANDBOX_SECONDS, 1, NULL, &error);
  check_true(&place, EXECUTE_WAITING,
             "awaiting_budget: The request budget for sandbox_seconds is exhausted: 0.9 of 0.9 "
             "used, 1 more needed");
  check_end(&place, "awaiting_budget", 0);
}

/* ---- What doors charge ------------------------------------------------------------------------------------------- */

static void charge(Place *place, RunCharge how, BudgetMeter meter, gint64 amount, char **ret_hold,
                   const char *wanted) {
  g_autoptr(GError) error = NULL;
  gboolean ok = run_charge(place->run, how, meter, amount, ret_hold, &error);
  g_assert_cmpstr(error ? error->message : NULL, ==, wanted);
  g_assert_cmpint(ok, ==, wanted == NULL);
}

static void test_cost(void) {
  g_autoptr(GError) error = NULL;
  g_autofree char *hold = NULL;
  Place place = place_open(ONE_LIMIT("agent", "model_cost_usd", "0.3", "pause"), ALLOW, TRUE);
  charge(&place, RUN_HOLD, BUDGET_MODEL_COST_USD, 200000, &hold, NULL);
  check_counted(&place, "model_cost_usd", "key", "sandhost");
  check_counted(&place, "model_cost_usd", "remaining", "0.1");
  run_settle(place.run, hold, BUDGET_MODEL_COST_USD, 100000, &error);
  g_assert_no_error(error);
  for (int i = 0; i < 2; i++) { /* 0.1 + 0.1 + 0.1 is 0.3 here */
    charge(&place, RUN_SPEND, BUDGET_MODEL_COST_USD, 100000, NULL, NULL);
  }
  check_counted(&place, "model_cost_usd", "remaining", "0");
  charge(&place, RUN_OWE, BUDGET_MODEL_COST_USD, 50000, NULL, NULL);
  check_counted(&place, "model_cost_usd", "spent", "0.35");
  charge(&place, RUN_LOOK, BUDGET_MODEL_COST_USD, 1, NULL,
         "The agent budget for model_cost_usd is exhausted: 0.35 of 0.3 used, 0.000001 more "
         "needed");
  g_assert_true(run_is_paused(place.run));
  check_end(&place, "awaiting_budget", 0);
}

/* What was held is spent when it is settled, which is when somebody may want to know. */
static void test_settled_cost_warns(void) {
  g_autoptr(GError) error = NULL;
  Place place = place_open(ONE_LIMIT("agent", "model_cost_usd", "0.3", "pause"), ALLOW, TRUE);
  for (int i = 0; i < 2; i++) {
    g_autofree char *hold = NULL;
    charge(&place, RUN_HOLD, BUDGET_MODEL_COST_USD, 140000, &hold, NULL);
    run_settle(place.run, hold, BUDGET_MODEL_COST_USD, 130000, &error);
    g_assert_no_error(error);
  }
  g_autoptr(JsonObject) run = end_run(&place);
  g_autofree char *events = json_text(json_get(run, "events"));
  const char *warning = strstr(events, "\"budget_warning\"");
  g_assert_nonnull(warning);
  g_assert_null(strstr(warning + 1, "\"budget_warning\""));
  place_close(&place);
}

static void test_unlimited(void) {
  g_autofree char *hold = NULL;
  Place place = place_open("{}", ALLOW, TRUE);
  charge(&place, RUN_HOLD, BUDGET_MODEL_TOKENS, 5 * MILLIONTHS, &hold, NULL);
  g_assert_nonnull(hold);
  charge(&place, RUN_OWE, BUDGET_MODEL_TOKENS, 5 * MILLIONTHS, NULL, NULL);
  g_assert_true(run_settle(place.run, hold, BUDGET_MODEL_TOKENS, 1, NULL));
  check_counted(&place, "model_tokens", "spent", "none");
  check_end(&place, "completed", 0);
}

/* The older kind counts what the run is charged for, too. */
static void test_older_cost(void) {
  Place place =
      place_open("{}", "{\"mode\": \"permissive\", \"budget\": {\"max_cost\": 0.5}}", TRUE);
  charge(&place, RUN_SPEND, BUDGET_MODEL_COST_USD, 500000, NULL, NULL);
  check_true(&place, EXECUTE_DENIED, "error: Policy cost budget exceeded.");
  check_end(&place, "completed", 0);
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

/* The next segment of a run that has ended waiting. */
static void resume(Place *place, const char *id) {
  g_autoptr(GError) error = NULL;
  const RunHooks hooks = {0};
  place->run = run_resume(place->harness, place->record, id, &hooks, &error);
  g_assert_no_error(error);
}

static char *wait_and_decide(Place *place, gboolean grants) {
  g_autoptr(GError) error = NULL;
  g_free(run_true(place, EXECUTE_WAITING));
  char *id = g_strdup(run_id(place->run));
  json_object_put(end_run(place));
  const RecordBudgetDecision decision = {.grants = grants, .approver = "alice"};
  record_decide_budget(place->record, id, NULL, &decision, NULL, &error);
  g_assert_no_error(error);
  return id;
}

static void test_granted(void) {
  Place place = place_open(ONE_LIMIT("request", "tool_calls", "1", "pause"), ALLOW, TRUE);
  use_up(&place);
  g_autofree char *id = wait_and_decide(&place, TRUE);
  resume(&place, id);
  check_true(&place, EXECUTE_FINISHED, "success: ");
  check_counted(&place, "tool_calls", "granted", "1");
  check_end(&place, "completed", 1);
}

static void test_denied(void) {
  Place place = place_open(ONE_LIMIT("request", "tool_calls", "1", "pause"), ALLOW, TRUE);
  use_up(&place);
  g_autofree char *id = wait_and_decide(&place, FALSE);
  resume(&place, id);
  check_true(&place, EXECUTE_DENIED,
             "error: This run stopped because the request budget is exhausted: The request budget "
             "for tool_calls is exhausted: 1 of 1 used, 1 more needed. Denied by alice");
  check_end(&place, "failed", 0);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/run/budgets/" name, function)
  ADD("pause", test_pause);
  ADD("terminate", test_terminate);
  ADD("cannot-wait", test_cannot_wait);
  ADD("denied-is-free", test_denied_is_free);
  ADD("sandbox-time", test_sandbox_time);
  ADD("no-sandbox-time", test_no_sandbox_time);
  ADD("cost", test_cost);
  ADD("settled-cost-warns", test_settled_cost_warns);
  ADD("unlimited", test_unlimited);
  ADD("older-cost", test_older_cost);
  ADD("granted", test_granted);
  ADD("denied", test_denied);
  return g_test_run();
}
