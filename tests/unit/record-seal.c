/* SPDX-License-Identifier: Apache-2.0 */
/* record-seal.c: what a command had printed when its host was killed is covered by the chain, once the run is found so. */
#include "record-fixture.h"

#include <sqlite3.h>

#include "base/digest.h"
#include "record/approvals.h"
#include "record/record-output.h"
#include "record/record-verify.h"
#include "record/trajectory.h"

#define TEXT "line 1\nline 2\n"

static void keep(Record *record, const char *execution_id, int stream, const char *text) {
  g_autoptr(RecordOutput) output =
      record_output_new(record, "run_1", execution_id, stream, 1u << 20);
  record_output_add(output, text, strlen(text));
  json_object_put(record_output_finish(output));
}

static void begin_life(Record *record) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) header = json_object_new_object();
  g_autoptr(JsonObject) request = json_object_new_object();
  const RecordLife life = {.owner = "owner_1", .lease_seconds = 60, .request = request};
  record_begin_life(record, "run_1", "trace_1", header, &life, &error);
  g_assert_no_error(error);
}

/* One command that ended, and one that did not, with output on both streams. */
static void write_killed(const Place *place) {
  Record *record = open_record(place->path);
  begin_life(record);
  append_text(record, "run_1", "tool_call_started",
              "{\"tool_call_id\": \"call_1\", \"tool_name\": \"execute\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"tool_call_id\": \"call_1\", \"execution_id\": \"exec_1\"}", NULL);
  keep(record, "exec_1", 1, "ended\n");
  g_autofree char *digest = digest_hex("ended\n", 6);
  g_autofree char *ended =
      g_strdup_printf("{\"tool_call_id\": \"call_1\", \"execution_id\": \"exec_1\","
                      " \"stdout_kept\": {\"bytes\": 6, \"sha256\": \"%s\", \"all\": true}}",
                      digest);
  append_text(record, "run_1", "sandbox_exec_completed", ended, NULL);
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"tool_call_id\": \"call_1\", \"execution_id\": \"exec_2\"}", NULL);
  keep(record, "exec_2", 1, TEXT);
  keep(record, "exec_2", 2, "warn\n");
  record_close(record);
}

/* Another process, by what the record says. */
static void kill_owner(const Place *place) {
  run_sql(place->path, "UPDATE runs SET owner_start = owner_start + 1");
}

/* The events that seal something. */
static JsonObject *seals_in(Record *record) {
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  JsonObject *events = json_get(run, "events");
  JsonObject *seals = json_object_new_array();
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    if (g_strcmp0(json_get_text(event, "type"), "sandbox_output_sealed") == 0) {
      json_object_array_add(seals, json_object_get(json_get(event, "metadata")));
    }
  }
  return seals;
}

static void assert_sealed(Record *record) {
  g_autoptr(JsonObject) seals = seals_in(record);
  g_autofree char *out = digest_hex(TEXT, strlen(TEXT));
  g_autofree char *err = digest_hex("warn\n", 5);
  g_autofree char *expected = g_strdup_printf(
      "[{\"tool_call_id\":\"call_1\",\"execution_id\":\"exec_2\","
      "\"stdout_kept\":{\"bytes\":14,\"chunks\":1,\"sha256\":\"%s\",\"complete\":false},"
      "\"stderr_kept\":{\"bytes\":5,\"chunks\":1,\"sha256\":\"%s\",\"complete\":false}}]",
      out, err);
  assert_json(seals, expected);
}

static void assert_state(Record *record, const char *faults) {
  g_autoptr(JsonObject) verdict = record_verify_run(record, "run_1", NULL);
  assert_json(json_get(verdict, "faults"), faults);
}

static gboolean put(void *user, const void *data, gsize length) {
  g_string_append_len(user, data, (gssize)length);
  return TRUE;
}

static void test_found_at_start(Place *place, gconstpointer unused) {
  (void)unused;
  write_killed(place);
  kill_owner(place);
  Record *record = open_record(place->path);
  assert_sealed(record);
  assert_state(record, "[]");
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, "interrupted");
  record_close(record);
  /* Once. */
  record = open_record(place->path);
  assert_sealed(record);
  run_sql(place->path,
          "UPDATE output_chunks SET length = length - 1 WHERE output = (SELECT number FROM outputs "
          "WHERE execution_id = 'exec_2' AND stream = 2)");
  assert_state(record, "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the kept stderr of "
                       "exec_2 is altered\"}]");
  record_close(record);
}

static void test_shown(Place *place, gconstpointer unused) {
  (void)unused;
  RecordOutputFacts facts;
  g_autoptr(GError) error = NULL;
  g_autoptr(GString) got = g_string_new(NULL);
  write_killed(place);
  kill_owner(place);
  g_autoptr(Record) record = open_record(place->path);
  record_output_read(record, "run_1", "2", 1, 0, G_MAXUINT64, put, got, &facts, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(got->str, ==, TEXT);
  g_assert_false(facts.ended);
  record_output_read(record, "run_1", "1", 1, 0, G_MAXUINT64, put, got, &facts, &error);
  g_assert_no_error(error);
  g_assert_true(facts.ended);
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  g_autofree char *text = trajectory_text(trajectory);
  g_assert_nonnull(strstr(text, "    stdout, incomplete: 14 bytes were kept (--output prints them)"
                                "\n    stderr, incomplete: 5 bytes were kept"));
  JsonObject *step = json_object_array_get_idx(json_get(trajectory, "steps"), 0);
  assert_json(json_get(step, "other_events"), "[]");
}

/* Nobody opened the record meanwhile: a host of another machine goes on with the run. */
static void test_taken_over(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  write_killed(place);
  g_autoptr(Record) record = open_record(place->path);
  run_sql(place->path, "UPDATE lives SET heartbeat_at = 0");
  record_take(record, "run_1", "owner_2", "trace_2", 60, NULL, &error);
  g_assert_no_error(error);
  assert_sealed(record);
  assert_state(record, "[]");
}

static void test_refused_take_writes_nothing(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  write_killed(place);
  g_autoptr(Record) record = open_record(place->path);
  g_assert_false(record_take(record, "run_1", "owner_2", "trace_2", 60, NULL, &error));
  g_autoptr(JsonObject) seals = seals_in(record);
  assert_json(seals, "[]");
}

static void test_abandoned(Place *place, gconstpointer unused) {
  (void)unused;
  gboolean changed = FALSE;
  g_autoptr(GError) error = NULL;
  write_killed(place);
  g_autoptr(Record) record = open_record(place->path);
  record_abandon(record, "run_1", "cancelled", "enough", &changed, &error);
  g_assert_no_error(error);
  g_assert_true(changed);
  assert_sealed(record);
  assert_state(record, "[]");
}

/* ---- A record that somebody damaged ------------------------------------------------------------------------------ */

#define CHUNKS_OF_2                                                                                \
  "output = (SELECT number FROM outputs WHERE execution_id = 'exec_2' AND stream = 1)"

static void assert_damaged(const Place *place, const char *damaged, const char *bytes) {
  kill_owner(place);
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, "interrupted");
  g_autoptr(JsonObject) seals = seals_in(record);
  JsonObject *kept = json_get(json_object_array_get_idx(seals, 0), "stdout_kept");
  g_assert_cmpstr(json_get_text(kept, "damaged"), ==, damaged);
  assert_json(json_get(kept, "bytes"), bytes);
  assert_state(record, "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the kept stdout of "
                       "exec_2 was damaged when its run was found interrupted\"}]");
}

static void test_bad_chunk(Place *place, gconstpointer unused) {
  (void)unused;
  write_killed(place);
  run_sql(place->path, "UPDATE output_chunks SET data = x'00ff' WHERE " CHUNKS_OF_2);
  assert_damaged(place, "a chunk cannot be unpacked", "0");
}

static void test_bad_later_chunk(Place *place, gconstpointer unused) {
  (void)unused;
  write_killed(place);
  run_sql(place->path, "INSERT INTO output_chunks SELECT output, 14, 1 << 40, x'00' FROM "
                       "output_chunks WHERE " CHUNKS_OF_2);
  assert_damaged(place, "a chunk cannot be unpacked", "14");
}

static void test_gap(Place *place, gconstpointer unused) {
  (void)unused;
  write_killed(place);
  run_sql(place->path, "INSERT INTO output_chunks SELECT output, 100, length, data FROM "
                       "output_chunks WHERE " CHUNKS_OF_2);
  assert_damaged(place, "chunks are missing", "14");
}

static void test_overlap(Place *place, gconstpointer unused) {
  (void)unused;
  write_killed(place);
  run_sql(place->path, "INSERT INTO output_chunks SELECT output, 7, length, data FROM "
                       "output_chunks WHERE " CHUNKS_OF_2);
  assert_damaged(place, "its chunks overlap", "14");
}

static void test_no_chunks(Place *place, gconstpointer unused) {
  (void)unused;
  write_killed(place);
  run_sql(place->path, "DELETE FROM output_chunks WHERE output <> (SELECT number FROM outputs "
                       "WHERE execution_id = 'exec_1')");
  kill_owner(place);
  g_autoptr(Record) record = open_record(place->path);
  assert_state(record, "[]");
}

static void test_bad_texts(Place *place, gconstpointer unused) {
  (void)unused;
  write_killed(place);
  run_sql(place->path, "UPDATE events SET metadata = '{' WHERE type = 'sandbox_exec_started';"
                       "UPDATE outputs SET execution_id = CAST(x'ff' AS TEXT) WHERE stream = 2");
  kill_owner(place);
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) seals = seals_in(record);
  g_assert_cmpuint(json_object_array_length(seals), ==, 2);
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, "interrupted");
}

#define ADD(name, function)                                                                        \
  g_test_add("/record/seal/" name, Place, NULL, place_make, function, place_remove)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("found-at-start", test_found_at_start);
  ADD("shown", test_shown);
  ADD("taken-over", test_taken_over);
  ADD("refused-take-writes-nothing", test_refused_take_writes_nothing);
  ADD("abandoned", test_abandoned);
  ADD("damaged/chunk", test_bad_chunk);
  ADD("damaged/later-chunk", test_bad_later_chunk);
  ADD("damaged/gap", test_gap);
  ADD("damaged/overlap", test_overlap);
  ADD("damaged/no-chunks", test_no_chunks);
  ADD("damaged/texts", test_bad_texts);
  return g_test_run();
}
