/* SPDX-License-Identifier: Apache-2.0 */
/* run-sandbox.c: what a run does around its sandbox: the network tried from inside before a command runs, the time that
 * making it may take, what an earlier process left of the run. */
#include "provider-testing.h"
#include "record/record.h"
#include "run/execute.h"
#include "run/run.h"

typedef struct {
  ProviderRegistry *registry;
  Harness *harness;
  char *folder;
  Record *record;
  Run *run;
} Place;

static char *allow(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                   const char *command) {
  (void)command;
  (void)user;
  (void)request;
  (void)decision;
  return g_strdup("tester");
}

/* options and manifest are JSON objects. */
static Place place_open(const char *provider, const char *options, const char *manifest) {
  g_autoptr(GError) error = NULL;
  Place place = {.registry = zoo_registry(), .folder = folder_new()};
  g_autofree char *path = g_build_filename(place.folder, "record.db", NULL);
  g_autofree char *text =
      g_strdup_printf("{\"enable_workspace_files\": false, \"governance_config\": {"
                      "\"profile\": \"permissive-dev\", \"sandbox_config\": {\"provider\": \"%s\","
                      "\"options\": %s}, \"sandbox_manifest\": %s}}",
                      provider, options, manifest);
  g_autoptr(JsonObject) object = json_parse("the configuration", text, strlen(text), &error);
  g_assert_no_error(error);
  g_auto(GStrv) names = provider_registry_names(place.registry);
  Config *config = config_new(object, (const char *const *)names, &error);
  g_assert_no_error(error);
  place.harness = harness_new(config, place.registry, &error);
  g_assert_no_error(error);
  place.record = record_open(path, &error);
  g_assert_no_error(error);
  const RunHooks hooks = {.answer = allow};
  place.run = run_start(place.harness, place.record, &hooks, &error);
  g_assert_no_error(error);
  return place;
}

/* The events of the run, after its end. */
static JsonObject *place_close(Place *place) {
  g_autoptr(GError) error = NULL;
  g_autofree char *id = g_strdup(run_id(place->run));
  run_end(place->run, "completed", NULL, &error);
  g_assert_no_error(error);
  JsonObject *run = record_run(place->record, id, &error);
  g_assert_no_error(error);
  record_close(place->record);
  harness_free(place->harness);
  provider_registry_free(place->registry);
  folder_remove(place->folder);
  return run;
}

/* The first event of a type; NULL. */
static JsonObject *event_of(JsonObject *run, const char *type) {
  JsonObject *events = json_get(run, "events");
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    if (g_strcmp0(json_get_text(event, "type"), type) == 0) {
      return event;
    }
  }
  return NULL;
}

/* Runs one command; the message of its observation, owned; NULL: it went well. */
static char *run_one(Place *place) {
  const ExecuteCall call = {.command = "true"};
  ExecuteOutcome outcome;
  execute_run(place->run, &call, &outcome);
  char *message = outcome.end == EXECUTE_FINISHED
                      ? NULL
                      : g_strdup(json_get_text(outcome.observation, "message"));
  g_assert_cmpint(outcome.end, ==, message ? EXECUTE_FAILED : EXECUTE_FINISHED);
  execute_outcome_clear(&outcome);
  return message;
}

/* ---- The network ---------------------------------------------------------------------------------------------- */

static void assert_isolation(const char *options, const char *manifest, const char *isolation) {
  Place place = place_open("guarded", options, manifest);
  g_autofree char *message = run_one(&place);
  g_assert_cmpstr(message, ==, NULL);
  g_autoptr(JsonObject) run = place_close(&place);
  JsonObject *created = event_of(run, "sandbox_session_created");
  g_assert_cmpstr(json_get_text(json_get(created, "metadata"), "network_isolation"), ==, isolation);
}

static void test_checked(void) {
  assert_isolation("{}", "{}", "checked");
}

static void test_unchecked(void) {
  g_setenv("GUARDED_PROBE", "reached", TRUE);
  assert_isolation("{\"verify_network_isolation\": false}", "{}", "unchecked");
  g_unsetenv("GUARDED_PROBE");
}

static void test_not_required(void) {
  g_setenv("GUARDED_PROBE", "reached", TRUE);
  assert_isolation("{}", "{\"network_policy\": {\"default\": \"allow\"}}", "not required");
  g_unsetenv("GUARDED_PROBE");
}

/* The sandbox is ended, no command runs in it, and the model is told why. */
static void assert_refused(const char *found, const char *text) {
  char *log = log_new();
  g_setenv("GUARDED_PROBE", found, TRUE);
  Place place = place_open("guarded", "{}", "{}");
  g_autofree char *message = run_one(&place);
  g_assert_cmpstr(message, ==, text);
  g_autoptr(JsonObject) run = place_close(&place);
  g_assert_null(event_of(run, "sandbox_session_created"));
  g_assert_null(event_of(run, "sandbox_exec_started"));
  g_autofree char *lines = NULL;
  g_assert_true(g_file_get_contents(log, &lines, NULL, NULL));
  g_assert_nonnull(strstr(lines, "create\n"));
  g_assert_nonnull(strstr(lines, "terminate\nrelease\n"));
  g_unsetenv("GUARDED_PROBE");
  log_end(log);
}

static const char REACHED[] =
    "The guarded sandbox was created with no network access, but it still reached the internet: "
    "this account or plan does not enforce network isolation. Use a provider that does, allow the "
    "network in the manifest if the work needs it, or set the sandbox option "
    "verify_network_isolation=false to accept an unchecked sandbox.";

static void test_reached(void) {
  assert_refused("reached", REACHED);
}

static void test_reached_by_ipv6(void) {
  assert_refused("ipv6", REACHED);
}

static const char UNCLEAR[] =
    "The guarded sandbox's network could not be checked: the guest fell over. Set the sandbox "
    "option verify_network_isolation=false to accept an unchecked sandbox.";

static void test_unclear(void) {
  assert_refused("unclear", UNCLEAR);
}

static void test_half_unclear(void) {
  assert_refused("half", UNCLEAR);
}

static void test_no_python(void) {
  assert_refused(
      "unsupported",
      "The guarded sandbox's network could not be checked: the image has no python to run the "
      "check with. Use an image that has one, or set the sandbox option "
      "verify_network_isolation=false to accept an unchecked sandbox.");
}

/* ---- Making it ------------------------------------------------------------------------------------------------ */

static void test_cancel_while_made(void) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Cancel) cancel = cancel_new();
  Place place = place_open("sweeper", "{\"fault\": \"slow\"}", "{}");
  run_end(place.run, "completed", NULL, &error);
  g_assert_no_error(error);
  const RunHooks hooks = {.cancel = cancel};
  place.run = run_start(place.harness, place.record, &hooks, &error);
  g_assert_no_error(error);

  pthread_t thread;
  g_assert_cmpint(pthread_create(&thread, NULL, raise_soon, cancel), ==, 0);
  const ExecuteCall call = {.command = "true", .timeout = 1000};
  ExecuteOutcome outcome;
  execute_run(place.run, &call, &outcome);
  g_assert_cmpint(outcome.end, ==, EXECUTE_CANCELLED);
  execute_outcome_clear(&outcome);
  pthread_join(thread, NULL);
  json_object_put(place_close(&place));
}

/* A command's own limit says nothing about how long its sandbox may take to be made. */
static void test_limit_is_not_for_making(void) {
  Place place = place_open("sweeper", "{\"fault\": \"nap\"}", "{}");
  const ExecuteCall call = {.command = "true", .timeout = 1};
  ExecuteOutcome outcome;
  execute_run(place.run, &call, &outcome);
  g_assert_cmpint(outcome.end, ==, EXECUTE_FINISHED);
  execute_outcome_clear(&outcome);
  json_object_put(place_close(&place));
}

/* ---- Left-overs ------------------------------------------------------------------------------------------------ */

static void test_leftovers(void) {
  Place place = place_open("sweeper", "{}", "{}");
  json_object_put(place_close(&place));

  char *folder = folder_new();
  g_autofree char *options = g_strdup_printf("{\"folder\": \"%s\"}", folder);
  g_autofree char *ours = g_build_filename(folder, "one", NULL);
  g_autofree char *theirs = g_build_filename(folder, "two", NULL);
  place = place_open("sweeper", options, "{}");
  g_assert_true(g_file_set_contents(ours, "run_a", -1, NULL));
  g_assert_true(g_file_set_contents(theirs, "run_b", -1, NULL));
  g_autoptr(GError) error = NULL;
  guint removed = 0;
  run_sweep_leftovers(place.harness, "run_a", NULL, &removed, &error);
  g_assert_no_error(error);
  g_assert_cmpuint(removed, ==, 1);
  g_assert_false(g_file_test(ours, G_FILE_TEST_EXISTS));
  g_assert_true(g_file_test(theirs, G_FILE_TEST_EXISTS));
  g_assert_true(run_sweep_leftovers(place.harness, "", NULL, NULL, &error));
  g_assert_true(g_file_test(theirs, G_FILE_TEST_EXISTS));
  json_object_put(place_close(&place));
  folder_remove(folder);
}

static void test_leftover_stuck(void) {
  char *folder = folder_new();
  g_autofree char *options = g_strdup_printf("{\"folder\": \"%s\", \"fault\": \"stuck\"}", folder);
  g_autofree char *file = g_build_filename(folder, "one", NULL);
  Place place = place_open("sweeper", options, "{}");
  g_assert_true(g_file_set_contents(file, "run_a", -1, NULL));
  g_autoptr(GError) error = NULL;
  g_assert_false(run_sweep_leftovers(place.harness, "run_a", NULL, NULL, &error));
  g_assert_cmpstr(error->message, ==, "the sandbox one of run run_a could not be removed");
  json_object_put(place_close(&place));
  folder_remove(folder);
}

int main(int argc, char **argv) {
  use_plain_memory(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/run-sandbox/network/checked", test_checked);
  g_test_add_func("/run-sandbox/network/unchecked", test_unchecked);
  g_test_add_func("/run-sandbox/network/not-required", test_not_required);
  g_test_add_func("/run-sandbox/network/reached", test_reached);
  g_test_add_func("/run-sandbox/network/reached-by-ipv6", test_reached_by_ipv6);
  g_test_add_func("/run-sandbox/network/unclear", test_unclear);
  g_test_add_func("/run-sandbox/network/half-unclear", test_half_unclear);
  g_test_add_func("/run-sandbox/network/no-python", test_no_python);
  g_test_add_func("/run-sandbox/making/cancel", test_cancel_while_made);
  g_test_add_func("/run-sandbox/making/limit", test_limit_is_not_for_making);
  g_test_add_func("/run-sandbox/leftovers/removed", test_leftovers);
  g_test_add_func("/run-sandbox/leftovers/stuck", test_leftover_stuck);
  return g_test_run();
}
