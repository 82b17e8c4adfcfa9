/* SPDX-License-Identifier: Apache-2.0 */
/* record-output.c: what a command printed goes into chunks and comes back, byte for byte, up to a limit. */
#include "record-fixture.h"

#include <sqlite3.h>

#include "base/digest.h"
#include "base/ids.h"
#include "record/record-output.h"
#include "record/record-verify.h"

#define MANY (3u << 20)

static gint64 ask(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  sqlite3_stmt *statement = NULL;
  g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
  g_assert_cmpint(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), ==, SQLITE_OK);
  gint64 number = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return number;
}

/* Bytes that look random and are the same each time. */
static GByteArray *noise(guint length) {
  GByteArray *bytes = g_byte_array_sized_new(length);
  guint32 state = 1;
  for (guint i = 0; i < length; i++) {
    state = state * 1664525 + 1013904223;
    const guint8 byte = (guint8)(state >> 24);
    g_byte_array_append(bytes, &byte, 1);
  }
  return bytes;
}

/* Writes the command exec_1 of call_1 into run_1, whose stdout is bytes in pieces of this size. */
static JsonObject *write_output(Record *record, const GByteArray *bytes, gsize piece,
                                guint64 most) {
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"execution_id\": \"exec_1\", \"tool_call_id\": \"call_0001\"}", NULL);
  g_autoptr(RecordOutput) output = record_output_new(record, "run_1", "exec_1", 1, most);
  for (gsize at = 0; at < bytes->len; at += piece) {
    record_output_add(output, bytes->data + at, MIN(piece, bytes->len - at));
  }
  JsonObject *kept = record_output_finish(output);
  g_autoptr(JsonObject) facts =
      json_of("{\"execution_id\": \"exec_1\", \"tool_call_id\": \"call_0001\"}");
  g_autoptr(GError) error = NULL;
  json_add_int(facts, "stdout_bytes", bytes->len);
  json_add_take(facts, "stdout_kept", json_object_get(kept));
  record_append(record, "run_1", "sandbox_exec_completed", facts, NULL, &error);
  g_assert_no_error(error);
  return kept;
}

static void assert_bytes(const GByteArray *got, const void *bytes, guint64 length) {
  g_assert_cmpuint(got->len, ==, length);
  g_assert_true(length == 0 || memcmp(got->data, bytes, length) == 0);
}

static gboolean collect(void *user, const void *data, gsize length) {
  g_byte_array_append(user, data, (guint)length);
  return TRUE;
}

static GByteArray *read_output(Record *record, const char *call, guint64 offset, guint64 limit,
                               RecordOutputFacts *ret_facts) {
  g_autoptr(GError) error = NULL;
  GByteArray *bytes = g_byte_array_new();
  record_output_read(record, "run_1", call, 1, offset, limit, collect, bytes, ret_facts, &error);
  g_assert_no_error(error);
  g_assert_cmpuint(ret_facts->given, ==, bytes->len);
  return bytes;
}

static void assert_whole(Record *record) {
  g_autoptr(JsonObject) verdict = record_verify_run(record, "run_1", NULL);
  assert_json(json_get(verdict, "faults"), "[]");
}

static void round_trip(Place *place, guint length, gsize piece, guint64 most) {
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = noise(length);
  g_autoptr(JsonObject) kept = write_output(record, bytes, piece, most);
  guint expected = (guint)MIN(length, most);
  g_autofree char *digest = digest_hex(bytes->data, expected);
  g_assert_cmpint(json_get_int(kept, "bytes", 0), ==, expected);
  g_assert_cmpstr(json_get_text(kept, "sha256"), ==, digest);
  g_assert_null(json_get(kept, "error"));
  RecordOutputFacts facts;
  g_autoptr(GByteArray) got = read_output(record, "call_0001", 0, G_MAXUINT64, &facts);
  assert_bytes(got, bytes->data, expected);
  g_assert_cmpuint(facts.kept, ==, expected);
  g_assert_cmpuint(facts.written, ==, length);
  assert_whole(record);
}

static void test_small(Place *place, gconstpointer unused) {
  (void)unused;
  round_trip(place, 5, 5, 1000);
}

static void test_large(Place *place, gconstpointer unused) {
  (void)unused;
  round_trip(place, MANY, 65536, 100u << 20);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM output_chunks"), >, 3);
}

static void test_odd_pieces(Place *place, gconstpointer unused) {
  (void)unused;
  round_trip(place, 300001, 777, 100u << 20);
}

static void test_one_piece(Place *place, gconstpointer unused) {
  (void)unused;
  round_trip(place, MANY, MANY, 100u << 20);
}

static void test_limit(Place *place, gconstpointer unused) {
  (void)unused;
  round_trip(place, MANY, 10000, 1000001);
}

static void test_limit_of_one_byte(Place *place, gconstpointer unused) {
  (void)unused;
  round_trip(place, 100, 10, 1);
}

/* Packs a thousand times: a chunk ends by its length, too. */
static void test_zeros(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_byte_array_set_size(bytes, MANY);
  memset(bytes->data, 0, MANY);
  json_object_put(write_output(record, bytes, 100000, MANY));
  g_assert_cmpint(ask(place->path, "SELECT max(length) FROM output_chunks"), ==, 1 << 20);
  g_assert_cmpint(ask(place->path, "SELECT sum(length(data)) FROM output_chunks"), <, MANY / 100);
  RecordOutputFacts facts;
  g_autoptr(GByteArray) got = read_output(record, "1", 0, G_MAXUINT64, &facts);
  assert_bytes(got, bytes->data, bytes->len);
}

static void test_nothing(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_autoptr(JsonObject) kept = write_output(record, bytes, 1, 100);
  g_assert_cmpint(json_get_int(kept, "bytes", -1), ==, 0);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM outputs"), ==, 0);
  assert_whole(record);
}

static void test_pages(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = noise(MANY);
  json_object_put(write_output(record, bytes, 4096, MANY));
  static const guint64 PAGES[][2] = {{0, 1},           {0, 0},     {1000000, 300000},
                                     {MANY - 1, 10},   {MANY, 10}, {MANY + 5, 1},
                                     {G_MAXUINT64, 1}, {98304, 1}, {5, G_MAXUINT64}};
  for (gsize i = 0; i < G_N_ELEMENTS(PAGES); i++) {
    RecordOutputFacts facts;
    guint64 offset = MIN(PAGES[i][0], MANY);
    guint64 length = MIN(PAGES[i][1], MANY - offset);
    g_autoptr(GByteArray) got = read_output(record, "exec_1", PAGES[i][0], PAGES[i][1], &facts);
    assert_bytes(got, bytes->data + offset, length);
  }
}

static gboolean take_one(void *user, const void *data, gsize length) {
  int *calls = user;
  (void)data;
  g_assert_cmpuint(length, >, 0);
  ++*calls;
  return FALSE;
}

static void test_reader_stops(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = noise(MANY);
  json_object_put(write_output(record, bytes, 4096, MANY));
  RecordOutputFacts facts;
  int calls = 0;
  g_assert_true(
      record_output_read(record, "run_1", "1", 1, 0, MANY, take_one, &calls, &facts, &error));
  g_assert_cmpint(calls, ==, 1);
}

/* What is whole in the event is read from there. */
static void test_from_event(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started", "{\"execution_id\": \"exec_1\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_failed",
              "{\"execution_id\": \"exec_1\", \"stdout_bytes\": 7}",
              "{\"stdout\": \"a\\u0000caf\xc3\xa9!\", \"stderr\": \"\"}");
  RecordOutputFacts facts;
  g_autoptr(GByteArray) got = read_output(record, "1", 0, 100, &facts);
  assert_bytes(got, "a\0caf\xc3\xa9!", 8);
  g_autoptr(GByteArray) page = read_output(record, "1", 2, 3, &facts);
  assert_bytes(page, "caf", 3);
}

static void assert_not_found(Record *record, const char *run_id, const char *call, int domain_code,
                             const char *message) {
  g_autoptr(GError) error = NULL;
  RecordOutputFacts facts;
  g_autoptr(GByteArray) bytes = g_byte_array_new();
  g_assert_false(record_output_read(record, run_id, call, 1, 0, 1, collect, bytes, &facts, &error));
  g_assert_error(error, SANDHOST_ERROR, domain_code);
  g_assert_cmpstr(error->message, ==, message);
}

static void test_which_call(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"execution_id\": \"exec_1\", \"tool_call_id\": \"call_12345\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"execution_id\": \"exec_2\", \"purpose\": \"workspace_sync\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_started",
              "{\"execution_id\": \"exec_3\", \"tool_call_id\": \"call_12399\"}", NULL);
  assert_not_found(record, "run_x", "1", SANDHOST_ERROR_NOT_FOUND, "No run run_x");
  assert_not_found(record, "run_1", "3", SANDHOST_ERROR_NOT_FOUND,
                   "run run_1 has no command 3; it has 2");
  assert_not_found(record, "run_1", "0", SANDHOST_ERROR_NOT_FOUND,
                   "run run_1 has no command 0; it has 2");
  assert_not_found(record, "run_1", "call_12", SANDHOST_ERROR_NOT_FOUND,
                   "run run_1 has no command call_12; it has 2");
  assert_not_found(record, "run_1", "call_123", SANDHOST_ERROR_CONFIG,
                   "call_123 is the beginning of several calls: call_12345, call_12399");
  RecordOutputFacts facts;
  g_autoptr(GByteArray) got = read_output(record, "call_1239", 0, 1, &facts);
  g_assert_cmpuint(got->len, ==, 0);
}

static void test_altered(Place *place, gconstpointer unused) {
  (void)unused;
  static const struct {
    const char *sql;
    const char *fault;
  } CASES[] = {
      {"DELETE FROM output_chunks", "is in part missing"},
      {"DELETE FROM output_chunks; DELETE FROM outputs", "is missing"},
      {"DELETE FROM output_chunks WHERE start > 0", "is in part missing"},
      {"DELETE FROM output_chunks WHERE start = 0", "is in part missing"},
      {"UPDATE output_chunks SET data = zeroblob(9) WHERE start > 0", "is altered"},
      {"UPDATE output_chunks SET length = 1099511627776", "is altered"},
      {"UPDATE output_chunks SET length = -1", "is altered"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autoptr(Record) record = open_record(path);
    g_autoptr(GByteArray) bytes = noise(300000);
    json_object_put(write_output(record, bytes, 4096, MANY));
    ask(path, "SELECT 1");
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, CASES[i].sql, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
    g_autoptr(JsonObject) verdict = record_verify_run(record, "run_1", NULL);
    JsonObject *fault = json_object_array_get_idx(json_get(verdict, "faults"), 0);
    g_autofree char *expected = g_strdup_printf("the kept stdout of exec_1 %s", CASES[i].fault);
    g_assert_cmpstr(json_get_text(fault, "detail"), ==, expected);
    g_assert_cmpstr(json_get_text(verdict, "state"), ==, "damaged");
  }
}

/* Rows that nobody wrote: found, and not shown in the place of what the events tell of. */
static void test_added(Place *place, gconstpointer unused) {
  static const struct {
    const char *sql;
    const char *fault;
    gboolean shown; /* what was printed is shown all the same */
  } CASES[] = {
      {"INSERT INTO output_chunks SELECT output, 300000, length, data FROM output_chunks"
       " WHERE start = 0",
       "the kept stdout of exec_1 has more pieces than its event covers", TRUE},
      {"INSERT INTO output_chunks SELECT output, 400000, length, data FROM output_chunks"
       " WHERE start = 0",
       "the kept stdout of exec_1 has more pieces than its event covers", TRUE},
      {"INSERT INTO output_chunks SELECT output, 5, length, data FROM output_chunks"
       " WHERE start = 0",
       "the kept stdout of exec_1 has more pieces than its event covers", TRUE},
      {"INSERT INTO output_chunks SELECT output, -5, length, data FROM output_chunks"
       " WHERE start = 0",
       "the kept stdout of exec_1 has more pieces than its event covers", TRUE},
      {"INSERT INTO outputs SELECT 9, run, 'exec_1', 2 FROM outputs",
       "the kept stderr of exec_1 is told of by no event", TRUE},
      {"INSERT INTO outputs SELECT 9, run, 'exec_7', 1 FROM outputs",
       "the kept stdout of exec_7 is told of by no event", TRUE},
      {"INSERT INTO outputs SELECT 9, run, 'exec_1', 3 FROM outputs",
       "an output of exec_1 that is no stream", TRUE},
      {"UPDATE outputs SET execution_id = 'exec_7'", "the kept stdout of exec_1 is missing", FALSE},
  };
  (void)unused;
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autoptr(Record) record = open_record(path);
    g_autoptr(GByteArray) bytes = noise(300000);
    json_object_put(write_output(record, bytes, 4096, MANY));
    run_sql(path, CASES[i].sql);
    g_autoptr(JsonObject) verdict = record_verify_run(record, "run_1", NULL);
    JsonObject *fault = json_object_array_get_idx(json_get(verdict, "faults"), 0);
    g_assert_cmpstr(json_get_text(fault, "detail"), ==, CASES[i].fault);
    g_assert_cmpstr(json_get_text(verdict, "state"), ==, "damaged");
    if (CASES[i].shown) {
      RecordOutputFacts facts;
      g_autoptr(GByteArray) got = read_output(record, "1", 0, G_MAXUINT64, &facts);
      assert_bytes(got, bytes->data, bytes->len);
      g_autoptr(GByteArray) end = read_output(record, "1", 299990, G_MAXUINT64, &facts);
      assert_bytes(end, bytes->data + 299990, 10);
      g_assert_cmpuint(facts.kept, ==, 300000);
    }
  }
}

/* What stands whole in an event is read from there, whatever else somebody has put beside it. */
static void test_added_beside_event(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = noise(1000);
  json_object_put(write_output(record, bytes, 1000, MANY));
  append_text(record, "run_1", "sandbox_exec_started", "{\"execution_id\": \"exec_2\"}", NULL);
  append_text(record, "run_1", "sandbox_exec_completed",
              "{\"execution_id\": \"exec_2\", \"stdout_bytes\": 6}", "{\"stdout\": \"honest\"}");
  run_sql(place->path,
          "INSERT INTO outputs SELECT 9, run, 'exec_2', 1 FROM outputs;"
          "INSERT INTO output_chunks SELECT 9, start, length, data FROM output_chunks");
  RecordOutputFacts facts;
  g_autoptr(GByteArray) got = read_output(record, "2", 0, G_MAXUINT64, &facts);
  assert_bytes(got, "honest", 6);
  g_autoptr(JsonObject) verdict = record_verify_run(record, "run_1", NULL);
  assert_json(
      json_get(verdict, "faults"),
      "[{\"event\":null,\"what\":\"added\",\"detail\":\"the kept stdout of exec_2 is told of "
      "by no event\"}]");
}

/* A hole is told, and not an end. */
static void test_hole(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = noise(300000);
  g_autoptr(GByteArray) got = g_byte_array_new();
  json_object_put(write_output(record, bytes, 4096, MANY));
  run_sql(place->path, "DELETE FROM output_chunks WHERE start > 0");
  RecordOutputFacts facts;
  g_assert_false(
      record_output_read(record, "run_1", "1", 1, 0, G_MAXUINT64, collect, got, &facts, &error));
  g_assert_cmpstr(
      error->message, ==,
      "the kept stdout of command 1 is in part missing from the record; sandhost record "
      "verify tells more");
  assert_bytes(got, bytes->data, got->len); /* what is there is given */
  g_assert_cmpuint(got->len, >, 0);
}

/* What was written before the writer is gone is there. */
static void test_cut_off(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = noise(500000);
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started", "{\"execution_id\": \"exec_1\"}", NULL);
  RecordOutput *output = record_output_new(record, "run_1", "exec_1", 1, MANY);
  g_assert_false(record_output_is_stored(output));
  record_output_add(output, bytes->data, bytes->len);
  g_assert_true(record_output_is_stored(output));
  record_output_free(output);
  RecordOutputFacts facts;
  g_autoptr(GByteArray) got = read_output(record, "1", 0, MANY, &facts);
  g_assert_cmpuint(got->len, >, 300000);
  assert_bytes(got, bytes->data, got->len);
  assert_whole(record);
}

/* A record that cannot be written: told, and what is in it is sealed. */
static void test_failure(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(GByteArray) bytes = noise(1000);
  g_autoptr(RecordOutput) output = record_output_new(record, "run_9", "exec_1", 1, MANY);
  record_output_add(output, bytes->data, bytes->len);
  g_autoptr(JsonObject) kept = record_output_finish(output);
  assert_json(
      kept,
      "{\"bytes\":0,\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8"
      "55\",\"error\":\"No run run_9\"}");
}

/* Writes a command whose stdout is bytes and whose text is the first head of them. */
static void write_offloaded(Record *record, const GByteArray *bytes, guint64 head, guint64 most) {
  begin_run(record, "run_1");
  append_text(record, "run_1", "sandbox_exec_started", "{\"execution_id\": \"exec_1\"}", NULL);
  g_autoptr(RecordOutput) output = record_output_new(record, "run_1", "exec_1", 1, most);
  record_output_set_head(output, head);
  for (gsize at = 0; at < bytes->len; at += 9999) {
    record_output_add(output, bytes->data + at, MIN(9999, bytes->len - at));
  }
  gboolean cut = head < bytes->len;
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) facts = json_of("{\"execution_id\": \"exec_1\"}");
  g_autoptr(JsonObject) payload =
      json_of("{\"stdout\": null, \"stderr\": \"warn\", \"capture\": \"offloaded\"}");
  json_add_bool(facts, "stdout_truncated", cut);
  json_add_take(facts, "stdout_kept", record_output_finish(output));
  json_add_take(payload, "stdout_capture", record_output_head(output, cut));
  record_append(record, "run_1", "sandbox_exec_completed", facts, payload, &error);
  g_assert_no_error(error);
}

/* The payload, restored. Owned. */
static JsonObject *restored(Record *record) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) run = read_run(record, "run_1");
  g_assert_true(record_restore_outputs(record, run, &error));
  g_assert_no_error(error);
  return json_object_get(json_get(event_at(run, 2), "payload"));
}

static GByteArray *letters(guint length) {
  GByteArray *bytes = noise(length);
  for (guint i = 0; i < length; i++) {
    bytes->data[i] = (guint8) "abcdefgh\n\t\0z"[bytes->data[i] % 12];
  }
  return bytes;
}

static void test_restored(Place *place, gconstpointer unused) {
  (void)unused;
  static const guint64 HEADS[] = {1, 16384, 300000, 1048576, 1048577, 2000000, MANY};
  for (gsize i = 0; i < G_N_ELEMENTS(HEADS); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autoptr(Record) record = open_record(path);
    g_autoptr(GByteArray) bytes = letters(2000000);
    write_offloaded(record, bytes, HEADS[i], MANY);
    g_autoptr(JsonObject) payload = restored(record);
    JsonObject *text = json_get(payload, "stdout");
    g_assert_cmpuint((guint64)json_object_get_string_len(text), ==, MIN(HEADS[i], bytes->len));
    g_assert_cmpint(memcmp(json_object_get_string(text), bytes->data, MIN(HEADS[i], bytes->len)),
                    ==, 0);
    g_assert_cmpstr(json_get_text(payload, "stderr"), ==, "warn");
    g_assert_null(json_get(payload, "capture"));
    g_assert_null(json_get(payload, "stdout_capture"));
    assert_whole(record);
  }
}

/* What is not there any more, and what is not what was written. */
static void test_not_restored(Place *place, gconstpointer unused) {
  (void)unused;
  static const char *const SQL[] = {
      "DELETE FROM output_chunks",
      "DELETE FROM output_chunks; DELETE FROM outputs",
      "DELETE FROM output_chunks WHERE start > 0",
      "UPDATE output_chunks SET data = zeroblob(9)",
      "UPDATE output_chunks SET length = -1",
      "UPDATE output_chunks SET start = start + 1 WHERE start > 0",
      "UPDATE events SET payload = replace(payload, '\"bytes\":300000', '\"bytes\":299999')",
      "UPDATE events SET payload = replace(payload, '\"bytes\":300000', '\"bytes\":-1')",
      "UPDATE events SET payload = replace(payload, '\"bytes\":300000', '\"bytes\":99999999999')",
      "UPDATE events SET metadata = replace(metadata, 'exec_1', 'exec_2')",
  };
  for (gsize i = 0; i < G_N_ELEMENTS(SQL); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autoptr(Record) record = open_record(path);
    g_autoptr(GByteArray) bytes = noise(400000);
    write_offloaded(record, bytes, 300000, MANY);
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, SQL[i], NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
    g_autoptr(JsonObject) payload = restored(record);
    g_assert_null(json_get(payload, "stdout"));
    g_assert_cmpstr(json_get_text(payload, "stderr"), ==, "warn");
    g_assert_cmpstr(json_get_text(payload, "capture"), ==, "missing");
    g_assert_cmpstr(json_get_text(json_get(payload, "stdout_capture"), "capture"), ==, "missing");
  }
}

static JsonObject *head_of(Record *record, guint length, guint64 head, guint64 most, gboolean cut) {
  g_autoptr(GByteArray) bytes = noise(length);
  g_autofree char *id = id_new("exec");
  g_autoptr(RecordOutput) output = record_output_new(record, "run_1", id, 1, most);
  record_output_set_head(output, head);
  record_output_add(output, bytes->data, bytes->len);
  json_object_put(record_output_finish(output));
  return record_output_head(output, cut);
}

/* A text of which less is kept than it has is left where it is. */
static void test_head_not_kept(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_assert_null(
      head_of(record, 1000, 500, 2000, TRUE)); /* there is no such run: nothing is written */
  begin_run(record, "run_1");
  g_assert_null(head_of(record, 1000, 500, 400, TRUE));
  g_assert_null(head_of(record, 1000, 1000, 400, FALSE));
  static const struct {
    guint64 head;
    guint64 most;
    gboolean cut;
    gint64 bytes;
  } KEPT[] = {{500, 500, TRUE, 500},
              {500, 2000, TRUE, 500},
              {900, 2000, FALSE, 1000},
              {1500, 2000, TRUE, 1000}};
  for (gsize i = 0; i < G_N_ELEMENTS(KEPT); i++) {
    g_autoptr(JsonObject) head = head_of(record, 1000, KEPT[i].head, KEPT[i].most, KEPT[i].cut);
    g_assert_cmpint(json_get_int(head, "bytes", -1), ==, KEPT[i].bytes);
    g_autoptr(GByteArray) bytes = noise(1000);
    g_autofree char *digest = digest_hex(bytes->data, (gsize)KEPT[i].bytes);
    g_assert_cmpstr(json_get_text(head, "sha256"), ==, digest);
  }
}

#define ADD(name, function)                                                                        \
  g_test_add("/record/output/" name, Place, NULL, place_make, function, place_remove)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("small", test_small);
  ADD("large", test_large);
  ADD("odd-pieces", test_odd_pieces);
  ADD("one-piece", test_one_piece);
  ADD("limit", test_limit);
  ADD("limit-of-one-byte", test_limit_of_one_byte);
  ADD("zeros", test_zeros);
  ADD("nothing", test_nothing);
  ADD("pages", test_pages);
  ADD("reader-stops", test_reader_stops);
  ADD("from-event", test_from_event);
  ADD("which-call", test_which_call);
  ADD("altered", test_altered);
  ADD("added", test_added);
  ADD("added-beside-event", test_added_beside_event);
  ADD("hole", test_hole);
  ADD("cut-off", test_cut_off);
  ADD("failure", test_failure);
  ADD("restored", test_restored);
  ADD("not-restored", test_not_restored);
  ADD("head-not-kept", test_head_not_kept);
  return g_test_run();
}
