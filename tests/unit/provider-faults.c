/* SPDX-License-Identifier: Apache-2.0 */
/* provider-faults.c: calls on plugins that spoil one thing each. */
#include "provider-testing.h"

/* ---- Failures ------------------------------------------------------------------------------------------------- */

static void test_first_failure_counts(void) {
  Zoo zoo = zoo_open("twice");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_false(command_run(&command, zoo.sandbox, &scope, "x", NULL));
  g_assert_error(command.error, PROVIDER_ERROR,
                 SANDHOST_DENIED); /* the status is what is returned */
  g_assert_cmpstr(command.error->message, ==, "the first reason");
  ProviderErrorDetails details = provider_error_details(command.error);
  g_assert_cmpstr(details.service_code, ==, "quota_exceeded");
  g_assert_cmpint(details.retry_after, ==, 3 * CLOCK_SECOND);
  g_assert_true(details.may_have_happened);
  g_autoptr(GError) copy = g_error_copy(command.error);
  g_assert_cmpstr(provider_error_details(copy).service_code, ==, "quota_exceeded");
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_long_text_is_cut(void) {
  Zoo zoo = zoo_open("loud");
  g_autofree char *message = command_refusal(zoo.sandbox, "x", SANDHOST_INTERNAL);
  g_assert_cmpuint(strlen(message), ==, 4096);
  zoo_close(&zoo);
}

static void test_bad_text_is_cleaned(void) {
  Zoo zoo = zoo_open("garbled");
  g_autofree char *message = command_refusal(zoo.sandbox, "x", SANDHOST_DENIED);
  g_assert_cmpstr(message, ==, "no\357\277\275 \357\277\275[31mred\357\277\275");
  zoo_close(&zoo);
}

static void test_silent_failure(void) {
  Zoo zoo = zoo_open("liar");
  g_autofree char *message = command_refusal(zoo.sandbox, "silent", SANDHOST_UNAVAILABLE);
  g_assert_cmpstr(message, ==, "liar: execute failed (unavailable)");
  zoo_close(&zoo);
}

static void test_unknown_status(void) {
  Zoo zoo = zoo_open("liar");
  g_autofree char *message = command_refusal(zoo.sandbox, "status", SANDHOST_INTERNAL);
  g_assert_cmpstr(message, ==, "liar: execute failed (unknown status 77)");
  zoo_close(&zoo);
}

static void test_ok_after_fail(void) {
  Zoo zoo = zoo_open("liar");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "okfail", NULL));
  g_assert_no_error(command.error);
  command_clear(&command);
  zoo_close(&zoo);
}

/* ---- Lies ----------------------------------------------------------------------------------------------------- */

static void assert_lie(const char *lie, const char *text) {
  Zoo zoo = zoo_open("liar");
  g_autofree char *message = command_refusal(zoo.sandbox, lie, SANDHOST_PROTOCOL);
  g_assert_cmpstr(message, ==, text);
  zoo_close(&zoo);
}

static void test_lies(void) {
  assert_lie("ended", "liar: execute gave an end of the command that is not known");
  assert_lie("code", "liar: execute gave an exit code that is none");
  assert_lie("signal", "liar: execute gave a signal that is none");
  assert_lie("count", "liar: execute counted less output than it gave");
  assert_lie("stream", "liar: execute wrote to a stream that is not there");
}

static void test_result_is_normalised(void) {
  Zoo zoo = zoo_open("liar");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "killed", NULL));
  g_assert_cmpint(command.result.signal, ==, 9);
  g_assert_cmpint(command.result.exit_code, ==, 137);
  g_assert_cmpint(command.result.duration, ==, 0);
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_no_sandbox(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance =
      provider_instance_open(registry, provider_registry_load(registry, "empty", NULL), NULL, NULL);
  g_autoptr(Manifest) manifest = manifest_of(NULL);
  const CallScope scope = scope_of(CLOCK_SECOND);
  GError *error = NULL;
  g_assert_null(sandbox_create(instance, manifest, "k", "r", &scope, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL);
  g_assert_cmpstr(error->message, ==, "empty: create said that it succeeded and gave no sandbox");
  g_error_free(error);
}

static int32_t no_entry(void *user, const struct sandhost_entry *entry) {
  (void)user;
  (void)entry;
  g_assert_not_reached();
}

static void test_listed_path_is_checked(void) {
  Zoo zoo = zoo_open("liar");
  const CallScope scope = scope_of(CLOCK_SECOND);
  const struct sandhost_entry_sink sink = {.size = sizeof sink, .entry = no_entry};
  GError *error = NULL;
  g_assert_false(sandbox_changes(zoo.sandbox, &scope, NULL, 0, 0, &sink, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL);
  g_assert_cmpstr(error->message, ==,
                  "liar: changes listed a path that is not below the root: 'a/../../etc/passwd'");
  g_error_free(error);
  zoo_close(&zoo);
}

static void test_probe_verdict_is_checked(void) {
  Zoo zoo = zoo_open("liar");
  const CallScope scope = scope_of(CLOCK_SECOND);
  const struct sandhost_probe probe = {.size = sizeof probe};
  guint32 verdict = 0;
  GError *error = NULL;
  g_assert_false(sandbox_probe(zoo.sandbox, &scope, &probe, &verdict, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_PROTOCOL);
  g_assert_cmpuint(verdict, ==, 0);
  g_error_free(error);
  zoo_close(&zoo);
}

static void test_snapshot_without_id(void) {
  Zoo zoo = zoo_open("liar");
  const CallScope scope = scope_of(CLOCK_SECOND);
  GError *error = NULL;
  g_assert_null(sandbox_snapshot(zoo.sandbox, &scope, &error));
  g_assert_cmpstr(error->message, ==, "liar: snapshot said that it succeeded and gave no id");
  g_error_free(error);
  zoo_close(&zoo);
}

static void test_late_words(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("late");
  const CallScope scope = scope_of(10 * CLOCK_SECOND);
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, &scope, "echo x", NULL));
  await_log(log, "open\ncreate\nexecute\nspoke late\n");
  g_assert_cmpstr(command.out->str, ==, "x\n");
  g_assert_null(sandbox_lost_reason(zoo.sandbox));
  command_clear(&command);
  zoo_close(&zoo);
  log_end(log);
}

/* ---- Calls that do not come back ---------------------------------------------------------------------------- */

static void test_deadline_is_ignored(void) {
  char *log = log_new();
  Zoo zoo = zoo_open("nodeadline");
  const CallScope scope = scope_of(50 * CLOCK_MILLISECOND);
  Command command = command_new();
  g_assert_false(command_run(&command, zoo.sandbox, &scope, "deaf", NULL));
  g_assert_error(command.error, PROVIDER_ERROR, SANDHOST_TIMEOUT);
  g_assert_cmpstr(command.error->message, ==, "nodeadline: execute did not come back in time");
  g_assert_cmpstr(sandbox_lost_reason(zoo.sandbox), ==, command.error->message);
  assert_log(log, "open\ncreate\n");

  /* The level allows one call at a time, and the one that hangs is not waited for. */
  g_autoptr(GError) error = NULL;
  g_assert_false(sandbox_end(zoo.sandbox, &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_UNAVAILABLE);
  g_assert_cmpstr(error->message, ==, "nodeadline: an earlier execute has not come back");
  provider_instance_close(zoo.instance);
  provider_registry_free(zoo.registry);
  assert_log(log, "open\ncreate\n");

  /* When it does come back everything is put in order, and what it says is not heard. */
  await_log(log, "open\ncreate\nwoke\nterminate\nrelease\nclose\n");
  g_assert_cmpstr(command.out->str, ==, "");
  command_clear(&command);
  log_end(log);
}

static void test_late_sandbox_is_ended(void) {
  char *log = log_new();
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  ProviderInstance *instance = provider_instance_open(
      registry, provider_registry_load(registry, "nodeadline", NULL), NULL, NULL);
  g_autoptr(Manifest) manifest =
      manifest_of("{\"image\":\"slow\",\"network_policy\":{\"default\":\"allow\"}}");
  g_autoptr(Cancel) cancel = cancel_new();
  const CallScope scope = {.deadline = G_MAXINT64, .cancel = cancel};
  pthread_t thread;
  pthread_create(&thread, NULL, raise_soon, cancel);
  GError *error = NULL;
  g_assert_null(sandbox_create(instance, manifest, "k", "r", &scope, &error));
  pthread_join(thread, NULL);
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  g_assert_cmpstr(error->message, ==, "nodeadline: create did not come back in time");
  g_error_free(error);
  provider_instance_close(instance);
  await_log(log, "open\ncreate\nterminate\nrelease\nclose\n");
  log_end(log);
}

int main(int argc, char **argv) {
  use_plain_memory(argv);
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/faults/" name, function)
  TEST("first-failure-counts", test_first_failure_counts);
  TEST("long-text-is-cut", test_long_text_is_cut);
  TEST("bad-text-is-cleaned", test_bad_text_is_cleaned);
  TEST("silent-failure", test_silent_failure);
  TEST("unknown-status", test_unknown_status);
  TEST("ok-after-fail", test_ok_after_fail);
  TEST("lies", test_lies);
  TEST("result-is-normalised", test_result_is_normalised);
  TEST("no-sandbox", test_no_sandbox);
  TEST("listed-path-is-checked", test_listed_path_is_checked);
  TEST("probe-verdict-is-checked", test_probe_verdict_is_checked);
  TEST("snapshot-without-id", test_snapshot_without_id);
  TEST("late-words", test_late_words);
  TEST("deadline-is-ignored", test_deadline_is_ignored);
  TEST("late-sandbox-is-ended", test_late_sandbox_is_ended);
  return g_test_run();
}
