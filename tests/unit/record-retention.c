/* SPDX-License-Identifier: Apache-2.0 */
/* record-retention.c: what goes by itself and when, what never does, and that the rest is whole. */
#include "record-fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "record/approvals.h"
#include "record/record-prune.h"
#include "record/record-retention.h"
#include "record/record-verify.h"

#define DAY (86400 * CLOCK_SECOND)
/* Longer than any machine needs for these. */
#define LONG (600 * CLOCK_SECOND)

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

/* A run that ended so many days ago; status NULL: that has not ended. */
static void write_run(const Place *place, Record *record, const char *run_id, gint64 keep_days,
                      const char *status, gint64 days_ago) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) header = json_object_new_object();
  const RecordLife life = {.owner = "owner_1", .lease_seconds = 60, .keep_days = keep_days};
  record_begin_life(record, run_id, "trace_1", header, &life, &error);
  g_assert_no_error(error);
  append_text(record, run_id, "a", "{\"x\": 1}", NULL);
  if (status) {
    gint64 at = clock_wall() - days_ago * DAY;
    g_autofree char *ends = g_strdup_printf("[{\"type\": \"run_ended\", \"at\": %" G_GINT64_FORMAT
                                            ", \"metadata\": {\"status\": \"%s\"}}]",
                                            at, status);
    g_autofree char *sql = g_strdup_printf("UPDATE runs SET ended_at = %" G_GINT64_FORMAT
                                           ", status = '%s' WHERE run_id = '%s'",
                                           at, status, run_id);
    g_autoptr(JsonObject) events = json_of(ends);
    record_append_many(record, run_id, events, &error);
    g_assert_no_error(error);
    run_sql(place->path, sql);
  }
}

static void assert_retained(Record *record, gint64 days, gint64 now, gint64 most, RetentionEnd end,
                            guint removed) {
  guint count = 0;
  const RetentionRequest request = {.days = days, .now = now, .most = most};
  g_assert_cmpint(record_retain(record, &request, &count), ==, end);
  g_assert_cmpuint(count, ==, removed);
}

/* What is there, all of it whole. */
static void assert_left(Record *record, const char *expected) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) all = record_verify_runs(record, &error);
  g_autoptr(GString) ids = g_string_new(NULL);
  assert_json(json_get(all, "faults"), "[]");
  JsonObject *runs = json_get(all, "runs");
  for (gsize i = 0; i < json_object_array_length(runs); i++) {
    const char *id = json_object_get_string(json_object_array_get_idx(runs, i));
    g_autoptr(JsonObject) verdict = record_verify_run(record, id, &error);
    g_assert_cmpstr(json_get_text(verdict, "state"), ==, "whole");
    g_string_append_printf(ids, "%s%s", i ? " " : "", id);
  }
  g_assert_cmpstr(ids->str, ==, expected);
}

static void test_old_runs_go(Place *place, gconstpointer unused) {
  (void)unused;
  RetentionFacts facts;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 30, "completed", 31);
  write_run(place, record, "r2", 30, "completed", 29);
  write_run(place, record, "r3", 30, "failed", 400);
  write_run(place, record, "r4", 30, "interrupted", 31);
  gint64 now = clock_wall();
  assert_retained(record, 30, now, LONG, RETENTION_DONE, 3);
  assert_left(record, "r2");
  g_assert_true(record_retention_facts(record, &facts, NULL));
  g_assert_cmpint(facts.removed, ==, 3);
  g_assert_cmpint(facts.removed_at, ==, now);
}

static void test_what_goes_on_stays(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 1, NULL, 0);
  write_run(place, record, "r2", 1, "awaiting_approval", 90);
  write_run(place, record, "r3", 1, "awaiting_budget", 90);
  write_run(place, record, "r4", 1, "completed", 90);
  assert_retained(record, 1, clock_wall(), LONG, RETENTION_DONE, 1);
  assert_left(record, "r1 r2 r3");
}

/* Two configurations on one record: a run goes when both say so. */
static void test_both_must_agree(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 0, "completed", 90);
  write_run(place, record, "r2", 365, "completed", 90);
  write_run(place, record, "r3", 30, "completed", 90);
  gint64 now = clock_wall();
  assert_retained(record, 100, now, LONG, RETENTION_DONE, 0);
  assert_left(record, "r1 r2 r3");
  assert_retained(record, 1, now + 2 * DAY, LONG, RETENTION_DONE, 1);
  assert_left(record, "r1 r2");
}

static void test_once_a_day(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(Record) other = open_record(place->path);
  gint64 now = clock_wall();
  assert_retained(record, 30, now, LONG, RETENTION_DONE, 0);
  write_run(place, record, "r1", 30, "completed", 31);
  assert_retained(record, 30, now, LONG, RETENTION_NOT_DUE, 0);
  assert_retained(other, 30, now + DAY - CLOCK_SECOND, LONG, RETENTION_NOT_DUE, 0);
  assert_left(record, "r1");
  assert_retained(other, 30, now + DAY + CLOCK_SECOND, LONG, RETENTION_DONE, 1);
  /* A clock that was wrong and is right again. */
  write_run(place, record, "r2", 30, "completed", 31);
  assert_retained(record, 30, now, LONG, RETENTION_DONE, 1);
}

/* Without any time it takes many turns; what is there is whole at each. */
static void test_goes_on(Place *place, gconstpointer unused) {
  (void)unused;
  guint removed = 0;
  guint turns = 0;
  RetentionEnd end = RETENTION_UNFINISHED;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 30, "completed", 33);
  write_run(place, record, "r2", 30, "completed", 32);
  write_run(place, record, "r3", 30, "completed", 29);
  for (int i = 0; i < 100; i++) {
    append_text(record, "r2", "b", NULL, NULL);
  }
  gint64 now = clock_wall();
  assert_retained(record, 30, now, 0, RETENTION_UNFINISHED, 1);
  assert_retained(record, 30, now + 9 * CLOCK_SECOND, 0, RETENTION_NOT_DUE, 0);
  assert_left(record, "r2 r3");
  for (removed = 1; end == RETENTION_UNFINISHED; turns++) {
    guint count = 0;
    now += 11 * CLOCK_SECOND;
    const RetentionRequest request = {.days = 30, .now = now, .most = turns < 20 ? 0 : LONG};
    end = record_retain(record, &request, &count);
    removed += count;
    assert_left(record, removed == 1 ? "r2 r3" : "r3");
  }
  g_assert_cmpint(end, ==, RETENTION_DONE);
  g_assert_cmpuint(removed, ==, 2);
  g_assert_cmpuint(turns, >=, 3);
  assert_retained(record, 30, now, LONG, RETENTION_NOT_DUE, 0);
}

/* A writer that holds the lock is not waited for; nothing is half done. */
static void test_busy(Place *place, gconstpointer unused) {
  (void)unused;
  sqlite3 *db = NULL;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 30, "completed", 31);
  gint64 now = clock_wall();
  g_assert_cmpint(sqlite3_open(place->path, &db), ==, SQLITE_OK);
  g_assert_cmpint(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), ==, SQLITE_OK);
  assert_retained(record, 30, now, 0, RETENTION_NOT_DUE, 0);
  g_assert_cmpint(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), ==, SQLITE_OK);
  sqlite3_close(db);
  assert_left(record, "r1");
  assert_retained(record, 30, now, LONG, RETENTION_DONE, 1);
}

static void test_pages_come_back(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autofree char *text = g_strnfill(100000, 'x');
  g_autofree char *payload = g_strdup_printf("{\"stdout\": \"%s\"}", text);
  for (int i = 0; i < 20; i++) {
    g_autofree char *id = g_strdup_printf("r%d", i);
    write_run(place, record, id, 30, NULL, 0);
    append_text(record, id, "b", NULL, payload);
    end_run(record, id, "completed");
  }
  assert_retained(record, 30, clock_wall() + 31 * DAY, LONG, RETENTION_DONE, 20);
  g_assert_cmpint(ask(place->path, "PRAGMA page_count"), <, 60);
}

/* ---- Ten at once ------------------------------------------------------------------------------------------------ */

#define PROCESSES 10
#define OLD_RUNS 40

static void retain_in_child(const char *path, gint64 now, int gate) {
  char byte = 0;
  guint removed = 0;
  const RetentionRequest request = {.days = 30, .now = now, .most = CLOCK_MILLISECOND};
  if (read(gate, &byte, 1) != 0) {
    _exit(255);
  }
  Record *record = record_open(path, NULL);
  if (!record) {
    _exit(255);
  }
  record_retain(record, &request, &removed);
  record_close(record);
  _exit((int)removed);
}

static void test_ten_processes(Place *place, gconstpointer unused) {
  (void)unused;
  int gate[2];
  pid_t children[PROCESSES];
  guint removed = 0;
  gint64 now = clock_wall();
  Record *record = open_record(place->path);
  for (int i = 0; i < OLD_RUNS; i++) {
    g_autofree char *id = g_strdup_printf("r%d", i);
    write_run(place, record, id, 30, "completed", 31);
  }
  write_run(place, record, "young", 30, "completed", 1);
  record_close(record);
  g_assert_cmpint(pipe2(gate, O_CLOEXEC), ==, 0);
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    g_assert_cmpint(children[i], >=, 0);
    if (children[i] == 0) {
      close(gate[1]);
      retain_in_child(place->path, now, gate[0]);
    }
  }
  close(gate[0]);
  close(gate[1]);
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    g_assert_cmpint(waitpid(children[i], &status, 0), ==, children[i]);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), !=, 255);
    removed += (guint)WEXITSTATUS(status);
  }
  /* One whose stamp could not be moved back leaves the rest to the next day. */
  record = open_record(place->path);
  guint rest = 0;
  const RetentionRequest request = {.days = 30, .now = now + DAY + CLOCK_SECOND, .most = LONG};
  g_assert_cmpint(record_retain(record, &request, &rest), ==, RETENTION_DONE);
  g_assert_cmpuint(removed + rest, ==, OLD_RUNS);
  assert_left(record, "young");
  record_close(record);
}

/* ---- What a removed run leaves -------------------------------------------------------------------------------- */

/* A process that died between the two: what it left is no fault, and goes with the next. */
static void test_swept_later(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 30, "completed", 31);
  run_sql(place->path, "INSERT INTO outputs VALUES (1, 1, 'exec_1', 1);"
                       "INSERT INTO output_chunks VALUES (1, 0, 1, x'00'), (1, 1, 1, x'00')");
  assert_retained(record, 30, clock_wall(), 0, RETENTION_UNFINISHED, 1);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM output_chunks"), ==, 2);
  assert_left(record, "");
  g_autoptr(JsonObject) result = record_prune(record, &(PruneRequest){.keep = 1}, NULL);
  assert_json(json_get(result, "runs"), "[]");
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM output_chunks"), ==, 0);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM events"), ==, 0);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM discarded"), ==, 0);
}

/* A mark at a run that is there takes nothing of it. */
static void test_strange_mark(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 30, "completed", 1);
  run_sql(place->path, "INSERT INTO discarded VALUES (1), (77)");
  assert_retained(record, 30, clock_wall(), LONG, RETENTION_DONE, 0);
  assert_left(record, "r1");
}

/* Each row that speaks of a run goes with it. */
static void test_nothing_dangles(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(place, record, "r1", 30, "completed", 31);
  write_run(place, record, "r2", 30, "completed", 1);
  run_sql(place->path,
          "INSERT INTO approvals (run, approval_id, status, expires_at, content)"
          "  VALUES (1, 'approval_1', 'used', 1, '{}'), (2, 'approval_2', 'used', 1, '{}')");
  assert_retained(record, 30, clock_wall(), LONG, RETENTION_DONE, 1);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM pragma_foreign_key_check"), ==, 0);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM approvals"), ==, 1);
  g_assert_cmpint(ask(place->path, "SELECT count(*) FROM lives"), ==, 1);
  /* And the others are held as before. */
  append_text(record, "r2", "a", NULL, NULL);
  run_sql(place->path, "DELETE FROM approvals"); /* of which no event tells */
  assert_left(record, "r2");
}

#define ADD(name, function)                                                                        \
  g_test_add("/record/retention/" name, Place, NULL, place_make, function, place_remove)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("old-runs-go", test_old_runs_go);
  ADD("what-goes-on-stays", test_what_goes_on_stays);
  ADD("both-must-agree", test_both_must_agree);
  ADD("once-a-day", test_once_a_day);
  ADD("goes-on", test_goes_on);
  ADD("busy", test_busy);
  ADD("pages-come-back", test_pages_come_back);
  ADD("swept-later", test_swept_later);
  ADD("strange-mark", test_strange_mark);
  ADD("nothing-dangles", test_nothing_dangles);
  ADD("ten-processes", test_ten_processes);
  return g_test_run();
}
