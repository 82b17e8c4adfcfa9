/* SPDX-License-Identifier: Apache-2.0 */
/* record-chain.c: whatever is changed in the file behind the record's back is found, and named. */
#include "record-fixture.h"

#include <sqlite3.h>

#include "record/record-prune.h"
#include "record/record-verify.h"

/* Two ended runs of five events each. */
static void write_runs(const char *path) {
  g_autoptr(Record) record = open_record(path);
  for (int i = 1; i <= 2; i++) {
    g_autofree char *id = g_strdup_printf("run_%d", i);
    begin_run(record, id);
    append_text(record, id, "a", "{\"n\": 1}", "{\"text\": \"one\"}");
    append_text(record, id, "b", NULL, NULL);
    append_text(record, id, "c", "{}", NULL);
    end_run(record, id, "completed");
  }
}

static void assert_run(const char *path, const char *run_id, const char *state,
                       const char *faults) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(path);
  g_autoptr(JsonObject) verdict = record_verify_run(record, run_id, &error);
  g_assert_no_error(error);
  assert_json(json_get(verdict, "faults"), faults);
  g_assert_cmpstr(json_get_text(verdict, "state"), ==, state);
}

static void assert_runs(const char *path, const char *faults) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(path);
  g_autoptr(JsonObject) verdict = record_verify_runs(record, &error);
  g_assert_no_error(error);
  assert_json(json_get(verdict, "faults"), faults);
}

static void test_whole(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  assert_run(place->path, "run_1", "whole", "[]");
  assert_run(place->path, "run_2", "whole", "[]");
  assert_runs(place->path, "[]");
}

static void test_empty(Place *place, gconstpointer unused) {
  (void)unused;
  assert_runs(place->path, "[]");
}

/* Each column of an event, one at a time. */
static void test_altered(Place *place, gconstpointer unused) {
  (void)unused;
  static const char *const CHANGES[] = {
      "at = at + 1",         "type = 'x'",     "metadata = '{\"n\":2}'",
      "metadata = NULL",     "payload = '{}'", "payload = NULL",
      "hash = zeroblob(32)", "hash = NULL",    "hash = x'00'",
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CHANGES); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autofree char *sql =
        g_strdup_printf("UPDATE events SET %s WHERE run = 1 AND seq = 2", CHANGES[i]);
    write_runs(path);
    run_sql(path, sql);
    assert_run(path, "run_1", "damaged", "[{\"event\":2,\"what\":\"altered\",\"detail\":null}]");
    assert_run(path, "run_2", "whole", "[]");
    assert_runs(path, "[]");
  }
}

/* No text is another thing than an empty one, and where one ends and the next begins counts. */
static void test_borders(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "UPDATE events SET metadata = '' WHERE run = 1 AND seq = 3;"
                       "UPDATE events SET type = 'c{', metadata = '}' WHERE run = 2 AND seq = 4");
  assert_run(place->path, "run_1", "damaged",
             "[{\"event\":3,\"what\":\"altered\",\"detail\":null}]");
  assert_run(place->path, "run_2", "damaged",
             "[{\"event\":4,\"what\":\"altered\",\"detail\":null}]");
}

static void test_first_and_last(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "UPDATE events SET payload = '1' WHERE run = 1 AND seq IN (1, 5)");
  assert_run(place->path, "run_1", "damaged",
             "[{\"event\":1,\"what\":\"altered\",\"detail\":null},"
             "{\"event\":5,\"what\":\"altered\",\"detail\":null}]");
}

static void test_missing(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "DELETE FROM events WHERE run = 1 AND seq = 3");
  assert_run(place->path, "run_1", "damaged",
             "[{\"event\":3,\"what\":\"missing\",\"detail\":null}]");
}

static void test_end_missing(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "DELETE FROM events WHERE run = 2 AND seq >= 5");
  assert_run(place->path, "run_2", "damaged",
             "[{\"event\":5,\"what\":\"missing\",\"detail\":null}]");
  run_sql(place->path, "DELETE FROM events WHERE run = 2");
  assert_run(place->path, "run_2", "damaged",
             "[{\"event\":1,\"what\":\"missing\",\"detail\":\"events 1 to 5 are missing\"}]");
}

/* Removed, and those behind it moved up. */
static void test_moved_up(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "DELETE FROM events WHERE run = 1 AND seq = 2;"
                       "UPDATE events SET seq = seq - 1 WHERE run = 1 AND seq = 3;"
                       "UPDATE events SET seq = seq - 1 WHERE run = 1 AND seq = 4;"
                       "UPDATE events SET seq = seq - 1 WHERE run = 1 AND seq = 5");
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) verdict = record_verify_run(record, "run_1", NULL);
  g_assert_cmpstr(json_get_text(verdict, "state"), ==, "damaged");
  JsonObject *first = json_object_array_get_idx(json_get(verdict, "faults"), 0);
  g_assert_cmpint(json_get_int(first, "event", 0), ==, 2);
}

static void test_out_of_order(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "UPDATE events SET seq = 99 WHERE run = 1 AND seq = 3;"
                       "UPDATE events SET seq = 3 WHERE run = 1 AND seq = 4;"
                       "UPDATE events SET seq = 4 WHERE run = 1 AND seq = 99");
  assert_run(place->path, "run_1", "damaged",
             "[{\"event\":4,\"what\":\"out_of_order\",\"detail\":\"event 3 stands where event 4 "
             "was\"},{\"event\":3,\"what\":\"out_of_order\",\"detail\":\"event 4 stands where "
             "event 3 was\"}]");
}

static void test_added(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "INSERT INTO events (run, seq, at, type) VALUES (1, 6, 0, 'x')");
  assert_run(place->path, "run_1", "damaged", "[{\"event\":6,\"what\":\"added\",\"detail\":null}]");
}

/* The end removed, and the count with it. */
static void test_count_altered(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "DELETE FROM events WHERE run = 1 AND seq = 5;"
                       "UPDATE chains SET count = 4 WHERE run = 1");
  assert_run(place->path, "run_1", "damaged",
             "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the head of the run's chain is "
             "not its last event's hash\"}]");
  run_sql(place->path, "UPDATE chains SET count = 9000000000000000000 WHERE run = 2");
  assert_run(place->path, "run_2", "damaged",
             "[{\"event\":6,\"what\":\"missing\",\"detail\":\"events 6 to 9000000000000000000 are "
             "missing\"}]");
}

static void test_row_altered(Place *place, gconstpointer unused) {
  (void)unused;
  static const char FAULT[] = "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the run's id, "
                              "trace, beginning or header, or its link to the run before it\"}]";
  static const char *const CHANGES[] = {"trace_id = 'x'", "created_at = 1", "header = '{}'"};
  for (gsize i = 0; i < G_N_ELEMENTS(CHANGES); i++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, (int)i);
    g_autofree char *sql = g_strdup_printf("UPDATE runs SET %s WHERE number = 2", CHANGES[i]);
    write_runs(path);
    run_sql(path, sql);
    assert_run(path, "run_2", "damaged", FAULT);
    assert_run(path, "run_1", "whole", "[]");
  }
}

static void test_status_altered(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "UPDATE runs SET status = 'failed' WHERE number = 1");
  assert_run(place->path, "run_1", "damaged",
             "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the run's status is failed, and "
             "its events say completed\"}]");
  run_sql(place->path, "UPDATE runs SET status = 'running' WHERE number = 2");
  assert_run(place->path, "run_2", "damaged",
             "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the run's status is running, and "
             "its events say completed\"}]");
  run_sql(place->path, "UPDATE runs SET status = 'completed', ended_at = ended_at + 1");
  assert_run(
      place->path, "run_2", "damaged",
      "[{\"event\":null,\"what\":\"altered\",\"detail\":\"the time of the run's end is not that "
      "of its event\"}]");
}

static void test_run_missing(Place *place, gconstpointer unused) {
  (void)unused;
  for (int number = 1; number <= 2; number++) {
    g_autofree char *path = g_strdup_printf("%s-%d", place->path, number);
    g_autofree char *sql = g_strdup_printf("DELETE FROM events WHERE run = %d;"
                                           "DELETE FROM chains WHERE run = %d;"
                                           "DELETE FROM runs WHERE number = %d",
                                           number, number, number);
    g_autofree char *fault =
        g_strdup_printf("[{\"run\":%d,\"what\":\"missing\",\"detail\":null}]", number);
    write_runs(path);
    run_sql(path, sql);
    assert_runs(path, fault);
  }
}

static void test_chain_row_missing(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "DELETE FROM chains WHERE run = 2");
  assert_run(place->path, "run_2", "damaged",
             "[{\"event\":null,\"what\":\"missing\",\"detail\":\"the run's row in the chain\"}]");
}

static void test_row_of_events_missing(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "PRAGMA foreign_keys = OFF; DELETE FROM runs WHERE number = 1");
  assert_runs(place->path, "[{\"run\":1,\"what\":\"missing\",\"detail\":null},{\"run\":1,\"what\":"
                           "\"missing\",\"detail\":\"its events are there and its row is not\"}]");
}

/* A later output would get the number of pieces that are there already. */
static void test_strays(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "PRAGMA foreign_keys = OFF;"
                       "INSERT INTO output_chunks VALUES (7, 0, 1, x'00'), (7, 1, 1, x'00');"
                       "INSERT INTO outputs VALUES (8, 99, 'exec_1', 1)");
  assert_runs(
      place->path,
      "[{\"run\":null,\"what\":\"added\",\"detail\":\"pieces of the output 7, which is not "
      "there\"},{\"run\":null,\"what\":\"added\",\"detail\":\"the output 8 is of no run\"}]");
}

static void test_runs_head_altered(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "UPDATE record_chain SET link = zeroblob(32)");
  assert_runs(place->path,
              "[{\"run\":null,\"what\":\"altered\",\"detail\":\"the head of the runs' chain\"}]");
}

/* A number is never given twice, so a removed last run is not forgotten with the next one. */
static void test_last_run_removed_then_another(Place *place, gconstpointer unused) {
  (void)unused;
  write_runs(place->path);
  run_sql(place->path, "DELETE FROM events WHERE run = 2; DELETE FROM chains WHERE run = 2;"
                       "DELETE FROM runs WHERE number = 2");
  Record *record = open_record(place->path);
  begin_run(record, "run_3");
  end_run(record, "run_3", "completed");
  record_close(record);
  assert_runs(place->path, "[{\"run\":2,\"what\":\"missing\",\"detail\":null}]");
  assert_run(place->path, "run_3", "whole", "[]");
}

static void test_no_such_run(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_assert_null(record_verify_run(record, "run_9", &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND);
  g_assert_cmpstr(error->message, ==, "No run run_9");
}

/* ---- A file from before the chains ------------------------------------------------------------------------------ */

/* Layout 1 as it was, with an ended run and one that waits. */
static void write_old(const char *path) {
  g_autofree char *folder = g_path_get_dirname(path);
  g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
  run_sql(
      path,
      "CREATE TABLE runs (number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, trace_id TEXT "
      "NOT "
      "NULL, status TEXT NOT NULL, created_at INTEGER NOT NULL, ended_at INTEGER, header TEXT NOT "
      "NULL, "
      "owner_pid INTEGER NOT NULL, owner_start INTEGER NOT NULL, owner_boot TEXT NOT NULL, "
      "owner_namespace TEXT NOT NULL) STRICT;"
      "CREATE INDEX runs_running ON runs (number) WHERE status = 'running';"
      "CREATE TABLE events (run INTEGER NOT NULL REFERENCES runs (number), seq INTEGER NOT NULL, "
      "at INTEGER NOT NULL, type TEXT NOT NULL, metadata TEXT, payload TEXT, PRIMARY KEY (run, "
      "seq)) "
      "STRICT, WITHOUT ROWID;"
      "INSERT INTO runs VALUES (1, 'run_old1', 't', 'completed', 1000, 2000, '{}', 1, 1, 'b', 'n');"
      "INSERT INTO runs VALUES (2, 'run_old2', 't', 'interrupted', 1000, NULL, '{}', 1, 1, 'b', "
      "'n');"
      "INSERT INTO events VALUES (1, 1, 1000, 'run_started', '{}', NULL);"
      "INSERT INTO events VALUES (2, 1, 1000, 'run_started', '{}', NULL);"
      "PRAGMA application_id = 1936614504; PRAGMA user_version = 1");
}

static void test_old_file(Place *place, gconstpointer unused) {
  (void)unused;
  write_old(place->path);
  Record *record = open_record(place->path);
  append_text(record, "run_old2", "a", NULL, NULL);
  end_run(record, "run_old2", "failed");
  begin_run(record, "run_3");
  end_run(record, "run_3", "completed");
  g_autoptr(JsonObject) run = read_run(record, "run_old2");
  g_assert_cmpuint(json_object_array_length(json_get(run, "events")), ==, 3);
  record_close(record);
  assert_run(place->path, "run_old1", "not_chained", "[]");
  assert_run(place->path, "run_old2", "not_chained", "[]");
  assert_run(place->path, "run_3", "whole", "[]");
  assert_runs(place->path, "[]");
}

static void test_old_file_pruned(Place *place, gconstpointer unused) {
  (void)unused;
  write_old(place->path);
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, "run_3");
  end_run(record, "run_3", "completed");
  const PruneRequest request = {.keep = 1};
  g_autoptr(JsonObject) result = record_prune(record, &request, NULL);
  g_assert_cmpuint(json_object_array_length(json_get(result, "runs")), ==, 2);
  g_assert_null(json_get(result, "warning"));
  assert_run(place->path, "run_3", "whole", "[]");
  assert_runs(place->path, "[]");
}

#define ADD(name, function)                                                                        \
  g_test_add("/record/chain/" name, Place, NULL, place_make, function, place_remove)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("whole", test_whole);
  ADD("empty", test_empty);
  ADD("event/altered", test_altered);
  ADD("event/borders", test_borders);
  ADD("event/first-and-last", test_first_and_last);
  ADD("event/missing", test_missing);
  ADD("event/end-missing", test_end_missing);
  ADD("event/moved-up", test_moved_up);
  ADD("event/out-of-order", test_out_of_order);
  ADD("event/added", test_added);
  ADD("event/count-altered", test_count_altered);
  ADD("run/row-altered", test_row_altered);
  ADD("run/status-altered", test_status_altered);
  ADD("run/missing", test_run_missing);
  ADD("run/chain-row-missing", test_chain_row_missing);
  ADD("run/row-of-events-missing", test_row_of_events_missing);
  ADD("run/head-altered", test_runs_head_altered);
  ADD("strays", test_strays);
  ADD("run/removed-then-another", test_last_run_removed_then_another);
  ADD("run/no-such", test_no_such_run);
  ADD("old/not-chained", test_old_file);
  ADD("old/pruned", test_old_file_pruned);
  return g_test_run();
}
