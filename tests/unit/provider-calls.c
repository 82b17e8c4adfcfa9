/* SPDX-License-Identifier: Apache-2.0 */
/* provider-calls.c: calls on plugins that keep the contract. */
#include "provider-testing.h"

/* ---- Good ----------------------------------------------------------------------------------------------- */

static void test_execute(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "echo hello world", NULL));
  g_assert_cmpstr(command.out->str, ==, "hello world\n");
  g_assert_cmpuint(command.execution, ==, 7);
  g_assert_cmpuint(command.result.ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(command.result.exit_code, ==, 0);
  g_assert_cmpuint(command.result.stdout_bytes, ==, 12);
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_exit_code(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "fail 3", NULL));
  g_assert_cmpint(command.result.exit_code, ==, 3);
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_input(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  command.input = "some input";
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "cat", NULL));
  g_assert_cmpstr(command.out->str, ==, "some input");
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_facts_of_create(void) {
  Zoo zoo = zoo_open("good");
  g_assert_cmpstr(sandbox_ref(zoo.sandbox), ==, "good-1");
  g_assert_cmpstr(sandbox_image(zoo.sandbox), ==, "memory");
  g_assert_cmpstr(sandbox_network_isolation(zoo.sandbox), ==, "not required");
  g_assert_cmpstr(sandbox_working_dir(zoo.sandbox), ==, "/workspace");
  g_assert_null(sandbox_lost_reason(zoo.sandbox));
  zoo_close(&zoo);
}

static void note_progress(void *user, const char *line) {
  g_string_append(user, line);
}

static void test_progress(void) {
  Zoo zoo = zoo_open("good");
  g_autoptr(GString) lines = g_string_new(NULL);
  g_autoptr(Manifest) manifest = manifest_of(NULL);
  const CallScope scope = {
      .deadline = clock_deadline(CLOCK_SECOND), .progress = note_progress, .user = lines};
  Sandbox *other = sandbox_create(zoo.instance, manifest, "key-2", "run-1", &scope, NULL);
  g_assert_cmpstr(lines->str, ==, "making a sandbox");
  g_assert_true(sandbox_end(other, NULL));
  zoo_close(&zoo);
}

static void test_order_of_life(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("good");
  zoo_close(&zoo);
  assert_log(log, "open\ncreate\nterminate\nrelease\nclose\n");
  log_end(log);
}

static void test_close_before_end(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("good");
  provider_instance_close(zoo.instance);
  assert_log(log, "open\ncreate\n");
  g_assert_true(sandbox_end(zoo.sandbox, NULL));
  assert_log(log, "open\ncreate\nterminate\nrelease\nclose\n");
  provider_registry_free(zoo.registry);
  log_end(log);
}

/* An end that is begun early is the same end, once. */
static void test_end_begun_early(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("good");
  sandbox_end_begin(zoo.sandbox);
  sandbox_end_begin(zoo.sandbox);
  zoo_close(&zoo);
  assert_log(log, "open\ncreate\nterminate\nrelease\nclose\n");
  log_end(log);
}

static void test_output_limit(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  const struct sandhost_execute settings = {.max_output_bytes = 1500};
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "flood 5", &settings));
  g_assert_cmpuint(command.out->len, ==, 1500);
  g_assert_cmpuint(command.result.stdout_bytes, ==, 5000);
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_observer_stops(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  command.answer = SANDHOST_LIMIT;
  g_assert_false(command_run(&command, zoo.sandbox, &scope, "flood 5", NULL));
  g_assert_error(command.error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  g_assert_cmpstr(command.error->message, ==, "good: execute was stopped");
  g_assert_cmpuint(command.out->len, ==, 1000); /* nothing more after the stop */
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_unsound_argv(void) {
  Zoo zoo = zoo_open("good");
  g_autofree char *message = command_refusal(zoo.sandbox, "", SANDHOST_INVALID);
  g_assert_cmpstr(message, ==, "a command needs a name, and no part of it may hold a NUL");
  zoo_close(&zoo);
}

static void test_cancel(void) {
  Zoo zoo = zoo_open("good");
  g_autoptr(Cancel) cancel = cancel_new();
  const CallScope scope = {.deadline = G_MAXINT64, .cancel = cancel};
  pthread_t thread;
  pthread_create(&thread, NULL, raise_soon, cancel);
  Command command = command_new();
  g_assert_false(command_run(&command, zoo.sandbox, &scope, "hang", NULL));
  pthread_join(thread, NULL);
  g_assert_error(command.error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  g_assert_cmpstr(command.error->message, ==, "was cancelled");
  g_assert_null(sandbox_lost_reason(zoo.sandbox));
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_deadline(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(50 * CLOCK_MILLISECOND);
  Command command = command_new();
  g_assert_false(command_run(&command, zoo.sandbox, &scope, "hang", NULL));
  g_assert_error(command.error, PROVIDER_ERROR, SANDHOST_TIMEOUT);
  g_assert_cmpstr(command.error->message, ==, "the time was over");
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_cancelled_before(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("good");
  g_autoptr(Cancel) cancel = cancel_new();
  cancel_raise(cancel);
  const CallScope scope = {.deadline = G_MAXINT64, .cancel = cancel};
  Command command = command_new();
  g_assert_false(command_run(&command, zoo.sandbox, &scope, "echo x", NULL));
  g_assert_error(command.error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  g_assert_cmpstr(command.error->message, ==, "good: cancelled before it began");
  assert_log(log, "open\ncreate\n");
  command_clear(&command);
  zoo_close(&zoo);
  log_end(log);
}

/* ---- Lost --------------------------------------------------------------------------------------------------- */

static void test_lost_is_remembered(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("good");
  g_autofree char *first = command_refusal(zoo.sandbox, "lost", SANDHOST_LOST);
  g_assert_cmpstr(first, ==, "the sandbox is gone");
  g_assert_cmpstr(sandbox_lost_reason(zoo.sandbox), ==, "somebody removed it");
  g_autofree char *second = command_refusal(zoo.sandbox, "echo x", SANDHOST_LOST);
  g_assert_cmpstr(second, ==, "somebody removed it");
  zoo_close(&zoo);
  assert_log(log, "open\ncreate\nexecute\nterminate\nrelease\nclose\n");
  log_end(log);
}

/* ---- Levels --------------------------------------------------------------------------------------------------- */

typedef struct {
  Sandbox *sandbox;
  char most;
} Runner;

static void *run_once(void *argument) {
  Runner *runner = argument;
  const CallScope scope = scope_of(60 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, runner->sandbox, &scope, "x", NULL));
  runner->most = command.out->str[0];
  command_clear(&command);
  return NULL;
}

static void test_serial_plugin(void) {
  Zoo first = zoo_open("serial");
  Zoo second = zoo_open("serial");
  Runner runners[8];
  pthread_t threads[8];
  for (gsize i = 0; i < G_N_ELEMENTS(runners); i++) {
    runners[i] = (Runner){.sandbox = i % 2 ? first.sandbox : second.sandbox};
    pthread_create(&threads[i], NULL, run_once, &runners[i]);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(runners); i++) {
    pthread_join(threads[i], NULL);
    g_assert_cmpint(runners[i].most, ==, '1');
  }
  zoo_close(&first);
  zoo_close(&second);
}

static void test_waiting_ends_at_the_deadline(void) {
  Zoo zoo = zoo_open("serial");
  Runner runners[4];
  pthread_t threads[4];
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    runners[i] = (Runner){.sandbox = zoo.sandbox};
    pthread_create(&threads[i], NULL, run_once, &runners[i]);
  }
  const CallScope scope = scope_of(0);
  Command command = command_new();
  g_assert_false(command_run(&command, zoo.sandbox, &scope, "x", NULL));
  g_assert_error(command.error, PROVIDER_ERROR, SANDHOST_TIMEOUT);
  g_assert_cmpstr(command.error->message, ==, "serial: the time was over before it began");
  command_clear(&command);
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    pthread_join(threads[i], NULL);
  }
  zoo_close(&zoo);
}

typedef struct {
  Sandbox *sandbox;
  Cancel *cancel;
  gint running;
} Crowd;

static void count_started(void *user, uint64_t execution) {
  (void)execution;
  g_atomic_int_inc(&((Crowd *)user)->running);
}

static int32_t ignore_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  return SANDHOST_OK;
}

static void *hang_with(void *argument) {
  Crowd *crowd = argument;
  const CallScope scope = {.deadline = G_MAXINT64, .cancel = crowd->cancel};
  const struct sandhost_text argv = {.data = "hang", .length = 4};
  const struct sandhost_execute request = {.size = sizeof request, .argv = &argv, .argc = 1};
  const struct sandhost_observer observer = {
      .size = sizeof observer, .user = crowd, .started = count_started, .output = ignore_output};
  struct sandhost_result result = {0};
  g_autoptr(GError) error = NULL;
  g_assert_false(sandbox_execute(crowd->sandbox, &scope, &request, &observer, &result, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  return NULL;
}

/* None of them ends before all have begun. */
static void test_parallel_calls(void) {
  Zoo zoo = zoo_open("good");
  g_autoptr(Cancel) cancel = cancel_new();
  Crowd crowd = {.sandbox = zoo.sandbox, .cancel = cancel};
  pthread_t threads[16];
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    pthread_create(&threads[i], NULL, hang_with, &crowd);
  }
  while (g_atomic_int_get(&crowd.running) < (gint)G_N_ELEMENTS(threads)) {
    g_usleep(1000);
  }
  cancel_raise(cancel);
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    pthread_join(threads[i], NULL);
  }
  zoo_close(&zoo);
}

/* Many calls use the same memory again. */
static void test_many_calls(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(60 * CLOCK_SECOND);
  for (int i = 0; i < 1000; i++) {
    Command command = command_new();
    g_assert_true(command_run(&command, zoo.sandbox, &scope, "echo x", NULL));
    g_assert_cmpstr(command.out->str, ==, "x\n");
    command_clear(&command);
  }
  zoo_close(&zoo);
}

/* ---- Absent slots ------------------------------------------------------------------------------------------- */

static void test_absent_slots(void) {
  Zoo zoo = zoo_open("good");
  const CallScope scope = scope_of(CLOCK_SECOND);
  const struct sandhost_network network = {.size = sizeof network, .mode = SANDHOST_NETWORK_DENY};
  GError *error = NULL;
  g_assert_false(sandbox_set_network_policy(zoo.sandbox, &scope, &network, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(error->message, ==,
                  "the good sandbox cannot change its network while it runs; put network_policy in "
                  "the manifest");
  g_clear_error(&error);
  g_assert_null(sandbox_snapshot(zoo.sandbox, &scope, &error));
  g_assert_cmpstr(error->message, ==,
                  "the good sandbox keeps no snapshots; copy out the files that are to stay");
  g_clear_error(&error);
  g_assert_false(sandbox_signal(zoo.sandbox, &scope, 7, 15, &error));
  g_assert_cmpstr(error->message, ==,
                  "the good sandbox cannot signal a command; cancel it instead");
  g_clear_error(&error);
  zoo_close(&zoo);
}

/* ---- start and stop ------------------------------------------------------------------------------------------ */

/* Last, since nothing can be opened afterwards. */
static void test_start_and_stop(void) {
  char *log = log_new();
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  Provider *provider = provider_registry_load(registry, "lowered", NULL);
  g_autoptr(JsonObject) options = json_object_new_object();
  json_add_text(options, "base_url", "x");
  for (int i = 0; i < 2; i++) {
    g_autoptr(ProviderInstance) instance =
        provider_instance_open(registry, provider, options, NULL);
    g_assert_nonnull(instance);
  }
  provider_stop_all();
  provider_stop_all();
  assert_log(log, "start\nopen\nclose\nopen\nclose\nstop\n");
  GError *error = NULL;
  g_assert_null(provider_instance_open(registry, provider, options, &error));
  g_assert_cmpstr(error->message, ==, "the provider lowered was stopped");
  g_error_free(error);
  log_end(log);
}

int main(int argc, char **argv) {
  use_plain_memory(argv);
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/calls/" name, function)
  TEST("execute", test_execute);
  TEST("exit-code", test_exit_code);
  TEST("input", test_input);
  TEST("facts-of-create", test_facts_of_create);
  TEST("progress", test_progress);
  TEST("order-of-life", test_order_of_life);
  TEST("end-begun-early", test_end_begun_early);
  TEST("close-before-end", test_close_before_end);
  TEST("output-limit", test_output_limit);
  TEST("observer-stops", test_observer_stops);
  TEST("unsound-argv", test_unsound_argv);
  TEST("cancel", test_cancel);
  TEST("deadline", test_deadline);
  TEST("cancelled-before", test_cancelled_before);
  TEST("lost-is-remembered", test_lost_is_remembered);
  TEST("serial-plugin", test_serial_plugin);
  TEST("waiting-ends-at-the-deadline", test_waiting_ends_at_the_deadline);
  TEST("parallel-calls", test_parallel_calls);
  TEST("many-calls", test_many_calls);
  TEST("absent-slots", test_absent_slots);
  TEST("start-and-stop", test_start_and_stop);
  return g_test_run();
}
