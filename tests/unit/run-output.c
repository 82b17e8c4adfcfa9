/* SPDX-License-Identifier: Apache-2.0 */
/* run-output.c: what is kept of a stream, and who sees what of it. */
#include "run/output.h"

#include "base/clock.h"
#include "record-fixture.h"

#define SECRET "sk-0123456789abcdefghij"
#define M CREDENTIAL_MARKER

static Privacy *privacy_with(gboolean stream) {
  PrivacyConfig config;
  CaptureConfig capture;
  const char *const declared[] = {SECRET, NULL};
  privacy_config_init(&config, &capture);
  config.stream = stream;
  Privacy *privacy = privacy_new(&config, declared, NULL);
  privacy_config_clear(&config);
  return privacy;
}

static char *text_of(const Output *output, gboolean truncated) {
  g_autoptr(JsonObject) text = output_text(output, truncated);
  return g_strdup(json_object_get_string(text));
}

static gboolean follow(void *user, guint32 stream, const void *data, gsize length) {
  g_assert_cmpuint(stream, ==, 7);
  g_string_append_len(user, data, (gssize)length);
  return TRUE;
}

static gboolean follow_once(void *user, guint32 stream, const void *data, gsize length) {
  follow(user, stream, data, length);
  return FALSE;
}

/* Wherever the cap is, nothing of a credential stands before it. */
static void test_cap(void) {
  g_autoptr(Privacy) privacy = privacy_with(FALSE);
  const char *text = "output " SECRET " and more";
  for (guint64 max = 1; max < 60; max++) {
    for (gsize step = 1; step < 9; step++) {
      Output output;
      output_init(&output, max);
      output_guard(&output, privacy);
      for (gsize at = 0; at < strlen(text); at += step) {
        output_add(&output, text + at, MIN(step, strlen(text) - at));
      }
      output_finish(&output, strlen(text));
      g_autofree char *got = text_of(&output, output_truncated(&output, strlen(text)));
      g_autofree char *wanted = g_strndup("output " M " and more", max);
      g_assert_cmpstr(got, ==, wanted);
      g_assert_cmpint(output_truncated(&output, strlen(text)), ==,
                      max < strlen("output " M " and more"));
      output_clear(&output);
    }
  }
}

/* A provider that stops at the cap gives away the beginning of one. */
static void test_cut_by_the_provider(void) {
  g_autoptr(Privacy) privacy = privacy_with(FALSE);
  Output output;
  output_init(&output, 1000);
  output_guard(&output, privacy);
  output_add(&output, "output " SECRET, 7 + 15);
  output_finish(&output, 5000);
  g_assert_true(output_truncated(&output, 5000));
  g_autofree char *got = text_of(&output, TRUE);
  g_assert_cmpstr(got, ==, "output " M);
  output_clear(&output);

  output_init(&output, 1000);
  output_guard(&output, privacy);
  output_add(&output, "output " SECRET, 7 + 15);
  output_finish(&output, 7 + 15);
  g_assert_false(output_truncated(&output, 7 + 15));
  g_autofree char *all = text_of(&output, FALSE);
  g_assert_cmpstr(all, ==, "output sk-0123456789ab"); /* all that the command said */
  output_clear(&output);
}

static void test_follower(void) {
  g_autoptr(Privacy) privacy = privacy_with(TRUE);
  GString *seen = g_string_new(NULL);
  const OutputFollower follower = {.put = follow, .user = seen, .stream = 7};
  Output output;
  output_init(&output, 10);
  output_guard(&output, privacy);
  output_follow(&output, &follower);
  output_add(&output, "a@b.de " SECRET "\n", 8 + strlen(SECRET));
  output_add(&output, "c@d", 3);
  g_assert_cmpstr(seen->str, ==, "[REDACTED_EMAIL] " M "\n");
  output_add(&output, ".de", 3);
  output_finish(&output, 0);
  g_assert_cmpstr(seen->str, ==, "[REDACTED_EMAIL] " M "\n[REDACTED_EMAIL]");
  g_autofree char *kept = text_of(&output, TRUE);
  g_assert_cmpstr(kept, ==, "a@b.de [RE"); /* the result is another border */
  output_clear(&output);
  g_string_free(seen, TRUE);
}

/* Nobody follows, whatever is taken out on the way there. */
static void test_no_follower(void) {
  g_autoptr(Privacy) privacy = privacy_with(TRUE);
  const OutputFollower nobody = {.stream = 7};
  Output output;
  output_init(&output, 100);
  output_guard(&output, privacy);
  output_follow(&output, &nobody);
  output_add(&output, "mail jane@example.com ", 22);
  output_finish(&output, 22);
  g_assert_cmpuint(output.kept->len, ==, 22);
  output_clear(&output);
}

static void test_follower_stops(void) {
  g_autoptr(Privacy) privacy = privacy_with(FALSE);
  GString *seen = g_string_new(NULL);
  const OutputFollower follower = {.put = follow_once, .user = seen, .stream = 7};
  Output output;
  output_init(&output, 10);
  output_guard(&output, privacy);
  output_follow(&output, &follower);
  output_add(&output, "one", 3);
  output_add(&output, "two", 3);
  output_finish(&output, 6);
  g_assert_true(output.stopped);
  g_assert_cmpstr(seen->str, ==, "one");
  output_clear(&output);
  g_string_free(seen, TRUE);
}

/* What is kept beside the events has neither credentials nor personal data, over every border. */
static void test_kept(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Privacy) privacy = privacy_with(FALSE);
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"execution_id\": \"exec_1\", \"tool_call_id\": \"call_0001\"}", NULL);
  Output output;
  output_init(&output, 100);
  output_guard(&output, privacy);
  output_keep(&output, record_output_new(record, "run_1", "exec_1", 1, 1u << 20), 0);
  const char *line = "line " SECRET " jane@example.com\n";
  for (guint i = 0; i < 1000; i++) {
    for (gsize at = 0; at < strlen(line); at += 11) {
      output_add(&output, line + at, MIN(11, strlen(line) - at));
    }
  }
  output_finish(&output, 0);
  g_autoptr(JsonObject) facts = output_seal(&output, TRUE);
  const gsize size = strlen("line " M " [REDACTED_EMAIL]\n");
  g_assert_cmpint(json_get_int(facts, "bytes", 0), ==, (gint64)size * 1000);
  g_assert_true(json_get_bool(facts, "all", FALSE));
  output_clear(&output);
}

/* What a silent command has printed is in the record while it still runs; what is over soon is not written twice. */
static void test_kept_while_silent(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"execution_id\": \"exec_1\", \"tool_call_id\": \"call_0001\"}", NULL);
  Output output;
  output_init(&output, 100);
  output_keep_now(&output); /* nothing is kept of it */
  output_keep(&output, record_output_new(record, "run_1", "exec_1", 1, 1u << 20), 0);
  output.since += 3600 * CLOCK_SECOND;
  output_add(&output, "short", 5);
  output_keep_now(&output);
  g_assert_false(record_output_is_stored(output.full));
  output.since -= 7200 * CLOCK_SECOND;
  output_keep_now(&output);
  g_assert_true(record_output_is_stored(output.full));
  output_add(&output, " and long", 9);
  output_keep_now(&output);
  output_keep_now(&output);
  output_finish(&output, 14);
  g_autoptr(JsonObject) facts = output_seal(&output, FALSE);
  g_assert_cmpint(json_get_int(facts, "bytes", 0), ==, 14);
  g_autofree char *text = text_of(&output, FALSE);
  g_assert_cmpstr(text, ==, "short and long");
  output_clear(&output);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/run/output/cap", test_cap);
  g_test_add_func("/run/output/cut-by-the-provider", test_cut_by_the_provider);
  g_test_add_func("/run/output/follower", test_follower);
  g_test_add_func("/run/output/no-follower", test_no_follower);
  g_test_add_func("/run/output/follower-stops", test_follower_stops);
  g_test_add("/run/output/kept", Place, NULL, place_make, test_kept, place_remove);
  g_test_add("/run/output/kept-while-silent", Place, NULL, place_make, test_kept_while_silent,
             place_remove);
  return g_test_run();
}
