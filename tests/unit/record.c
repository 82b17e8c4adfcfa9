/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: one process and its record: what goes in comes out, and what is no record is refused. */
#include "record-fixture.h"

#include <sqlite3.h>

#include "record/trajectory.h"

/* before and after: what stands around the path in the message. */
static void assert_refused(const char *path, const char *before, const char *after) {
  g_autoptr(GError) error = NULL;
  g_autofree char *expected = g_strconcat(before, path, after, NULL);
  g_assert_null(record_open(path, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD);
  g_assert_cmpstr(error->message, ==, expected);
}

/* ---- In and out ------------------------------------------------------------------------------------------------ */

static void test_round_trip(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "tool_call_started",
              "{\"tool_call_id\": \"call_1\", \"n\": 9007199254740993, \"ms\": 12.300}",
              "{\"arguments\": {\"command\": \"echo \\u0000\\u202e caf\xc3\xa9 \\\"'\"}}");
  end_run(record, "run_1", "completed");

  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "run_id"), ==, "run_1");
  g_assert_cmpstr(json_get_text(run, "trace_id"), ==, "trace_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, "completed");
  assert_json(json_get(run, "header"), "{\"agent_name\":\"a\",\"provider\":\"bubblewrap\"}");
  g_assert_cmpuint(json_object_array_length(json_get(run, "events")), ==, 3);
  JsonObject *started = event_at(run, 0);
  assert_json(json_get(started, "type"), "\"run_started\"");
  assert_json(json_get(started, "metadata"),
              "{\"header\":{\"agent_name\":\"a\",\"provider\":\"bubblewrap\"}}");
  g_assert_cmpstr(json_get_text(started, "at"), ==, json_get_text(run, "created_at"));
  JsonObject *call = event_at(run, 1);
  g_assert_cmpint(json_get_int(call, "seq", 0), ==, 2);
  assert_json(json_get(call, "metadata"),
              "{\"tool_call_id\":\"call_1\",\"n\":9007199254740993,\"ms\":12.300}");
  assert_json(json_get(call, "payload"),
              "{\"arguments\":{\"command\":\"echo \\u0000\xe2\x80\xae caf\xc3\xa9 \\\"'\"}}");
  JsonObject *ended = event_at(run, 2);
  assert_json(json_get(ended, "metadata"), "{\"status\":\"completed\",\"reason\":null}");
  g_assert_null(json_get(ended, "payload"));
  g_assert_cmpstr(json_get_text(ended, "at"), ==, json_get_text(run, "ended_at"));
}

static void test_stays(Place *place, gconstpointer unused) {
  (void)unused;
  Record *record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "policy_violation", NULL, NULL);
  record_close(record);

  g_autoptr(Record) again = open_record(place->path);
  g_autoptr(JsonObject) run = read_run(again, "run_1");
  /* Its process, this one, lives. */
  g_assert_cmpstr(json_get_text(run, "status"), ==, "running");
  g_assert_null(json_get(run, "ended_at"));
  assert_json(json_get(event_at(run, 1), "type"), "\"policy_violation\"");
}

static void test_many_in_order(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  begin_run(record, "run_2");
  g_autoptr(JsonObject) events =
      json_of("[{\"type\": \"a\", \"at\": 1000000}, {\"type\": \"b\", \"metadata\": {\"x\": 1}},"
              " {\"type\": \"c\", \"payload\": {\"y\": 2}}]");
  g_assert_true(record_append_many(record, "run_1", events, &error));
  append_text(record, "run_2", "other", NULL, NULL);
  g_assert_true(record_append_many(record, "run_1", events, &error));

  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_autoptr(GString) seen = g_string_new(NULL);
  for (gsize i = 0; i < json_object_array_length(json_get(run, "events")); i++) {
    JsonObject *event = event_at(run, i);
    g_string_append_printf(seen, "%d%s ", (int)json_get_int(event, "seq", 0),
                           json_get_text(event, "type"));
  }
  g_assert_cmpstr(seen->str, ==, "1run_started 2a 3b 4c 5a 6b 7c ");
  g_assert_cmpstr(json_get_text(event_at(run, 1), "at"), ==, "1970-01-01T00:00:00.001000Z");
  assert_json(json_get(event_at(run, 2), "metadata"), "{\"x\":1}");
  assert_json(json_get(event_at(run, 3), "payload"), "{\"y\":2}");
}

static void test_many_none(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) nothing = json_object_new_array();
  begin_run(record, "run_1");
  g_assert_true(record_append_many(record, "run_1", nothing, &error));
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpuint(json_object_array_length(json_get(run, "events")), ==, 1);
}

/* All or nothing: the second event cannot be kept, so the first is not either. */
static void test_many_all_or_nothing(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autofree char *long_text = g_strnfill(JSON_MAX_BYTES, 'x');
  g_autoptr(JsonObject) events =
      json_of("[{\"type\": \"a\"}, {\"type\": \"b\", \"metadata\": {}}]");
  json_add_text(json_get(json_object_array_get_idx(events, 1), "metadata"), "long", long_text);
  begin_run(record, "run_1");
  g_assert_false(record_append_many(record, "run_1", events, &error));
  g_assert_cmpstr(error->message, ==, "the facts of an event b are too long for the record");
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpuint(json_object_array_length(json_get(run, "events")), ==, 1);
}

static void test_long_payload(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autofree char *long_text = g_strnfill(JSON_MAX_BYTES, 'x');
  g_autoptr(JsonObject) payload = json_object_new_object();
  json_add_text(payload, "stdout", long_text);
  begin_run(record, "run_1");
  g_assert_true(record_append(record, "run_1", "sandbox_exec_completed", NULL, payload, &error));
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  JsonObject *kept = json_get(event_at(run, 1), "payload");
  g_assert_cmpstr(json_get_text(kept, "capture"), ==, "truncated");
  g_assert_cmpint(json_get_int(kept, "bytes", 0), ==, JSON_MAX_BYTES + strlen("{\"stdout\":\"\"}"));
  g_assert_cmpuint(strlen(json_get_text(kept, "sha256")), ==, 64);
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  assert_json(json_get(trajectory, "capture_gaps"),
              "[{\"type\":\"sandbox_exec_completed\",\"id\":\"event_2\",\"state\":\"truncated\"}]");
}

static void test_longest_payload(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autofree char *text = g_strnfill(JSON_MAX_BYTES - strlen("{\"stdout\":\"\"}"), 'x');
  g_autoptr(JsonObject) payload = json_object_new_object();
  json_add_text(payload, "stdout", text);
  begin_run(record, "run_1");
  g_assert_true(record_append(record, "run_1", "sandbox_exec_completed", NULL, payload, &error));
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(json_get(event_at(run, 1), "payload"), "stdout"), ==, text);
}

static void test_bad_utf8(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) facts = json_object_new_object();
  json_add_text(facts, "command", "echo \xff.");
  begin_run(record, "run_1");
  g_assert_true(record_append(record, "run_1", "x", facts, NULL, &error));
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  assert_json(json_get(event_at(run, 1), "metadata"), "{\"command\":\"echo \xef\xbf\xbd.\"}");
}

/* Arguments as deep as the parser lets through, some levels down in a payload. */
static void test_deep(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  JsonObject *deep = json_object_new_array();
  for (int i = 0; i < JSON_MAX_DEPTH + 8; i++) {
    JsonObject *outer = json_object_new_array();
    json_object_array_add(outer, deep);
    deep = outer;
  }
  g_autoptr(JsonObject) payload = json_object_new_object();
  json_add_take(payload, "arguments", deep);
  begin_run(record, "run_1");
  g_assert_true(record_append(record, "run_1", "x", NULL, payload, &error));
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_null(json_get(event_at(run, 1), "damaged"));
  g_assert_true(json_object_equal(json_get(event_at(run, 1), "payload"), payload));
}

static void test_damaged_event(Place *place, gconstpointer unused) {
  (void)unused;
  Record *record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "x", "{\"a\": 1}", "{\"b\": 2}");
  record_close(record);
  run_sql(place->path, "UPDATE events SET payload = '{\"b\": 2' WHERE seq = 2");

  g_autoptr(Record) again = open_record(place->path);
  g_autoptr(JsonObject) run = read_run(again, "run_1");
  g_assert_true(json_get_bool(event_at(run, 1), "damaged", FALSE));
  assert_json(json_get(event_at(run, 1), "metadata"), "{\"a\":1}");
  g_assert_null(json_get(event_at(run, 1), "payload"));
}

/* ---- Runs ---------------------------------------------------------------------------------------------------------- */

static void assert_no_run(gboolean ok, GError **error, const char *message) {
  g_assert_false(ok);
  g_assert_error(*error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND);
  g_assert_cmpstr((*error)->message, ==, message);
  g_clear_error(error);
}

static void test_no_such_run(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  GError *error = NULL;
  assert_no_run(record_append(record, "run_x", "a", NULL, NULL, &error), &error, "No run run_x");
  assert_no_run(record_end(record, "run_x", "failed", NULL, &error), &error, "No run run_x");
  assert_no_run(record_run(record, "run_x", &error) != NULL, &error, "No run run_x");
  assert_no_run(record_resolve(record, "run_x", &error) != NULL, &error, "No run run_x");
}

static void test_same_id_twice(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) header = json_object_new_object();
  begin_run(record, "run_1");
  g_assert_false(record_begin(record, "run_1", "trace_2", header, &error));
  g_autofree char *expected =
      g_strdup_printf("could not write the record %s: constraint failed", place->path);
  g_assert_cmpstr(error->message, ==, expected);
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpuint(json_object_array_length(json_get(run, "events")), ==, 1);
}

static void test_ends_once(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  end_run(record, "run_1", "awaiting_approval");
  g_assert_false(record_end(record, "run_1", "failed", NULL, &error));
  g_assert_cmpstr(error->message, ==, "run run_1 has ended already (awaiting_approval)");
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, "awaiting_approval");
}

static void test_newest(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_assert_null(record_newest(record, &error));
  g_assert_no_error(error);
  begin_run(record, "run_b");
  begin_run(record, "run_a");
  g_autofree char *newest = record_newest(record, &error);
  g_assert_cmpstr(newest, ==, "run_a");
}

static void test_resolve(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_0123456789");
  begin_run(record, "run_01239999");
  g_autofree char *whole = record_resolve(record, "run_01239999", &error);
  g_assert_cmpstr(whole, ==, "run_01239999");
  g_autofree char *part = record_resolve(record, "run_01234", &error);
  g_assert_cmpstr(part, ==, "run_0123456789");
}

static void test_resolve_whole_id_that_begins_another(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_01234");
  begin_run(record, "run_0123");
  g_autofree char *id = record_resolve(record, "run_0123", &error);
  g_assert_cmpstr(id, ==, "run_0123");
}

static void test_resolve_ambiguous(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_01235");
  begin_run(record, "run_01234");
  g_assert_null(record_resolve(record, "run_0123", &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==,
                  "run_0123 is the beginning of several runs: run_01234, run_01235");
  g_clear_error(&error);
  begin_run(record, "run_01236");
  g_assert_null(record_resolve(record, "run_0123", &error));
  g_assert_cmpstr(error->message, ==,
                  "run_0123 is the beginning of several runs: run_01234, run_01235, ...");
}

static void test_resolve_too_short(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_01234");
  GError *error = NULL;
  assert_no_run(record_resolve(record, "run_012", &error) != NULL, &error, "No run run_012");
  assert_no_run(record_resolve(record, "", &error) != NULL, &error, "No run ");
  /* Nothing in it is a pattern. */
  assert_no_run(record_resolve(record, "run_0123%", &error) != NULL, &error, "No run run_0123%");
  assert_no_run(record_resolve(record, "run_0*?[4]", &error) != NULL, &error, "No run run_0*?[4]");
}

static void test_runs(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started", "{\"purpose\": \"command\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_completed", "{\"purpose\": \"command\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_started", "{\"purpose\": \"workspace_sync\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_started", NULL, NULL);
  end_run(record, "run_1", "failed");
  begin_run(record, "run_2");
  begin_run(record, "run_3");

  g_autoptr(JsonObject) runs = record_runs(record, 2, &error);
  g_assert_no_error(error);
  g_assert_cmpuint(json_object_array_length(runs), ==, 2);
  assert_json(json_get(json_object_array_get_idx(runs, 0), "run_id"), "\"run_3\"");
  json_object_put(g_steal_pointer(&runs));
  runs = record_runs(record, 10, &error);
  JsonObject *first = json_object_array_get_idx(runs, 2);
  assert_json(json_get(first, "run_id"), "\"run_1\"");
  assert_json(json_get(first, "status"), "\"failed\"");
  assert_json(json_get(first, "provider"), "\"bubblewrap\"");
  g_assert_cmpint(json_get_int(first, "commands", -1), ==, 2);
  g_assert_nonnull(json_get_text(first, "ended_at"));
  g_assert_null(json_get(json_object_array_get_idx(runs, 1), "ended_at"));
}

/* ---- The file --------------------------------------------------------------------------------------------------------- */

static mode_t mode_of(const char *path) {
  struct stat about;
  g_assert_cmpint(stat(path, &about), ==, 0);
  return about.st_mode & 07777;
}

static void test_modes(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *path = g_build_filename(place->folder, "a", "record.db", NULL);
  g_autofree char *folder = g_build_filename(place->folder, "a", NULL);
  g_autofree char *log = g_strconcat(path, "-wal", NULL);
  g_autofree char *shared = g_strconcat(path, "-shm", NULL);
  g_autoptr(Record) record = open_record(path);
  begin_run(record, "run_1");
  g_assert_cmpint(mode_of(folder), ==, 0700);
  g_assert_cmpint(mode_of(path), ==, 0600);
  g_assert_cmpint(mode_of(log), ==, 0600);
  g_assert_cmpint(mode_of(shared), ==, 0600);
}

/* A place that somebody typed wrong is not made. */
static void test_missing_folders(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autofree char *path = g_build_filename(place->folder, "a", "b", "record.db", NULL);
  g_autofree char *folder = g_build_filename(place->folder, "a", NULL);
  g_autofree char *text =
      g_strdup_printf("could not open the record %s: there is no folder %s", path, folder);
  g_assert_null(record_open(path, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD);
  g_assert_cmpstr(error->message, ==, text);
  g_assert_false(g_file_test(folder, G_FILE_TEST_EXISTS));
}

/* The folder above is there, and takes no other one. */
static void test_no_folder_to_be_made(Place *place, gconstpointer unused) {
  (void)unused;
  (void)place;
  g_autoptr(GError) error = NULL;
  g_assert_null(record_open("/proc/x/record.db", &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD);
  g_assert_cmpstr(error->message, ==,
                  "could not open the record /proc/x/record.db: no folder can be made in /proc");
}

static void test_empty_file(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *path = g_build_filename(place->folder, "empty", NULL);
  g_assert_true(g_file_set_contents(path, "", 0, NULL));
  g_autoptr(Record) record = open_record(path);
  begin_run(record, "run_1");
}

static void test_newer_layout(Place *place, gconstpointer unused) {
  (void)unused;
  record_close(open_record(place->path));
  run_sql(place->path, "PRAGMA user_version = 7");
  assert_refused(place->path, "", " was written by a newer sandhost (layout 7, this one knows 5)");
}

static void test_not_a_database(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *path = g_build_filename(place->folder, "notes.txt", NULL);
  g_autofree char *kept = NULL;
  g_assert_true(g_file_set_contents(path, "buy milk\n", -1, NULL));
  assert_refused(path, "", " is not a record of sandhost: it is not a database");
  g_assert_true(g_file_get_contents(path, &kept, NULL, NULL));
  g_assert_cmpstr(kept, ==, "buy milk\n");
}

static void test_not_a_database_and_long(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *path = g_build_filename(place->folder, "notes.txt", NULL);
  g_autofree char *text = g_strnfill(100000, 'x');
  g_assert_true(g_file_set_contents(path, text, -1, NULL));
  assert_refused(path, "", " is not a record of sandhost: it is not a database");
}

static void test_another_database(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *path = g_build_filename(place->folder, "other.db", NULL);
  run_sql(path, "CREATE TABLE cookies (name TEXT)");
  assert_refused(path, "", " is not a record of sandhost: it is another program's database");
  run_sql(path, "DROP TABLE cookies; PRAGMA user_version = 1");
  assert_refused(path, "", " is not a record of sandhost: it is another program's database");
}

static void test_not_a_file(Place *place, gconstpointer unused) {
  (void)unused;
  assert_refused(place->folder, "", " is not a record of sandhost: it is not a regular file");
  assert_refused("/dev/null", "", " is not a record of sandhost: it is not a regular file");
}

static void test_folder_that_cannot_be(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *file = g_build_filename(place->folder, "file", NULL);
  g_autofree char *path = g_build_filename(file, "record.db", NULL);
  g_assert_true(g_file_set_contents(file, "", 0, NULL));
  assert_refused(path, "could not open the record ", ": Not a directory");
}

static void test_relative_path(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *before = g_get_current_dir();
  g_autofree char *path = g_build_filename(place->folder, ":memory:", NULL);
  g_assert_cmpint(g_chdir(place->folder), ==, 0);
  record_close(open_record(":memory:"));
  g_assert_cmpint(g_chdir(before), ==, 0);
  g_assert_true(g_file_test(path, G_FILE_TEST_IS_REGULAR));
}

/* The file of a stranger may hold more than tables. */
static void test_no_trigger_runs(Place *place, gconstpointer unused) {
  (void)unused;
  record_close(open_record(place->path));
  run_sql(place->path, "CREATE TRIGGER t AFTER INSERT ON runs BEGIN"
                       "  UPDATE runs SET status = 'completed'; END");
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpstr(json_get_text(run, "status"), ==, "running");
}

/* A second record of this process opens and closes the file: the first one's locks must stay. */
static void test_two_in_one_process(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) first = open_record(place->path);
  begin_run(first, "run_1");
  record_close(open_record(place->path));
  append_text(first, "run_1", "a", NULL, NULL);
  g_autoptr(Record) second = open_record(place->path);
  append_text(second, "run_1", "b", NULL, NULL);
  g_autoptr(JsonObject) run = read_run(first, "run_1");
  assert_json(json_get(event_at(run, 2), "type"), "\"b\"");
}

static gpointer append_from_thread(gpointer data) {
  for (int i = 0; i < 50; i++) {
    append_text(data, "run_1", "x", "{\"a\": 1}", NULL);
  }
  return NULL;
}

static void test_threads(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  GThread *threads[4];
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    threads[i] = g_thread_new("append", append_from_thread, record);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    g_thread_join(threads[i]);
  }
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_cmpuint(json_object_array_length(json_get(run, "events")), ==, 201);
}

/* ---- The default path --------------------------------------------------------------------------------------------------- */

static void assert_default(const char *state, const char *xdg, const char *home,
                           const char *expected) {
  const char *const names[] = {"SANDHOST_STATE_DIR", "XDG_STATE_HOME", "HOME"};
  const char *const values[] = {state, xdg, home};
  char *before[3];
  for (int i = 0; i < 3; i++) {
    before[i] = g_strdup(g_getenv(names[i]));
    if (values[i]) {
      g_setenv(names[i], values[i], TRUE);
    } else {
      g_unsetenv(names[i]);
    }
  }
  g_autofree char *path = record_default_path();
  g_assert_cmpstr(path, ==, expected);
  for (int i = 0; i < 3; i++) {
    if (before[i]) {
      g_setenv(names[i], before[i], TRUE);
    } else {
      g_unsetenv(names[i]);
    }
    g_free(before[i]);
  }
}

/* A clock that stands outside of the years that can be counted hides no run. */
static void test_runs_of_any_year(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  run_sql(place->path, "UPDATE runs SET created_at = -7654321000000000000");
  g_autoptr(JsonObject) runs = record_runs(record, 10, &error);
  g_assert_no_error(error);
  g_assert_cmpuint(json_object_array_length(runs), ==, 1);
}

static void test_default_path(void) {
  assert_default("/s", "/x", "/h", "/s/record.db");
  assert_default(NULL, "/x", "/h", "/x/sandhost/record.db");
  assert_default("", "relative", "/h", "/h/.local/state/sandhost/record.db");
  assert_default(NULL, NULL, "/h", "/h/.local/state/sandhost/record.db");
  assert_default(NULL, NULL, "", "/var/lib/sandhost/record.db");
  assert_default(NULL, NULL, NULL, "/var/lib/sandhost/record.db");
}

#define ADD(name, function)                                                                        \
  g_test_add("/record/" name, Place, NULL, place_make, function, place_remove)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/record/default-path", test_default_path);
  ADD("round-trip", test_round_trip);
  ADD("stays", test_stays);
  ADD("many/in-order", test_many_in_order);
  ADD("many/none", test_many_none);
  ADD("many/all-or-nothing", test_many_all_or_nothing);
  ADD("payload/too-long", test_long_payload);
  ADD("payload/longest", test_longest_payload);
  ADD("bad-utf8", test_bad_utf8);
  ADD("deep", test_deep);
  ADD("damaged-event", test_damaged_event);
  ADD("no-such-run", test_no_such_run);
  ADD("same-id-twice", test_same_id_twice);
  ADD("ends-once", test_ends_once);
  ADD("newest", test_newest);
  ADD("resolve/parts", test_resolve);
  ADD("resolve/whole-id-that-begins-another", test_resolve_whole_id_that_begins_another);
  ADD("resolve/ambiguous", test_resolve_ambiguous);
  ADD("resolve/too-short", test_resolve_too_short);
  ADD("runs", test_runs);
  ADD("runs/any-year", test_runs_of_any_year);
  ADD("file/modes", test_modes);
  ADD("file/missing-folders", test_missing_folders);
  ADD("no-folder-to-be-made", test_no_folder_to_be_made);
  ADD("file/empty", test_empty_file);
  ADD("file/newer-layout", test_newer_layout);
  ADD("file/not-a-database", test_not_a_database);
  ADD("file/not-a-database-and-long", test_not_a_database_and_long);
  ADD("file/another-database", test_another_database);
  ADD("file/not-a-file", test_not_a_file);
  ADD("file/folder-that-cannot-be", test_folder_that_cannot_be);
  ADD("file/relative-path", test_relative_path);
  ADD("file/no-trigger-runs", test_no_trigger_runs);
  ADD("file/two-in-one-process", test_two_in_one_process);
  ADD("threads", test_threads);
  return g_test_run();
}
