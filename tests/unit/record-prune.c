/* SPDX-License-Identifier: Apache-2.0 */
/* record-prune.c: what goes, what stays, and that the rest is whole. */
#include "record-fixture.h"

#include "base/clock.h"
#include "record/record-prune.h"
#include "record/record-verify.h"

#include <sqlite3.h>

/* A run that takes some room. */
static void write_run(Record *record, const char *run_id, const char *status) {
  g_autoptr(GError) error = NULL;
  g_autofree char *text = g_strnfill(100000, 'x');
  g_autoptr(JsonObject) payload = json_object_new_object();
  json_add_text(payload, "stdout", text);
  begin_run(record, run_id);
  record_append(record, run_id, "a", NULL, payload, &error);
  g_assert_no_error(error);
  if (status) {
    end_run(record, run_id, status);
  }
}

static void assert_pruned(Record *record, PruneRequest request, const char *expected) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) result = record_prune(record, &request, &error);
  g_assert_no_error(error);
  g_autoptr(GString) ids = g_string_new(NULL);
  JsonObject *runs = json_get(result, "runs");
  for (gsize i = 0; i < json_object_array_length(runs); i++) {
    g_string_append_printf(ids, "%s%s", i ? " " : "",
                           json_get_text(json_object_array_get_idx(runs, i), "run_id"));
  }
  g_assert_cmpstr(ids->str, ==, expected);
  g_assert_null(json_get(result, "warning"));
}

static void assert_left(Record *record, const char *expected) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) runs = record_runs(record, 100, &error);
  g_autoptr(GString) ids = g_string_new(NULL);
  for (gsize i = json_object_array_length(runs); i-- > 0;) {
    const char *id = json_get_text(json_object_array_get_idx(runs, i), "run_id");
    g_autoptr(JsonObject) verdict = record_verify_run(record, id, &error);
    assert_json(json_get(verdict, "faults"), "[]");
    g_assert_cmpstr(json_get_text(verdict, "state"), ==, "whole");
    g_string_append_printf(ids, "%s%s", ids->len ? " " : "", id);
  }
  g_assert_cmpstr(ids->str, ==, expected);
  g_autoptr(JsonObject) verdict = record_verify_runs(record, &error);
  assert_json(json_get(verdict, "faults"), "[]");
}

static void test_keep(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(record, "r1", "completed");
  write_run(record, "r2", "failed");
  write_run(record, "r3", "completed");
  assert_pruned(record, (PruneRequest){.keep = 3}, "");
  assert_pruned(record, (PruneRequest){.keep = 1}, "r1 r2");
  assert_left(record, "r3");
  write_run(record, "r4", "completed");
  assert_left(record, "r3 r4");
  assert_pruned(record, (PruneRequest){.keep = 0}, "r3 r4");
  assert_left(record, "");
  write_run(record, "r5", "completed");
  assert_left(record, "r5");
}

static void test_gap_in_the_middle(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(record, "r1", "awaiting_approval");
  write_run(record, "r2", "failed");
  write_run(record, "r3", NULL);
  write_run(record, "r4", "awaiting_budget");
  write_run(record, "r5", "interrupted");
  assert_pruned(record, (PruneRequest){.keep = 0}, "r2 r5");
  assert_left(record, "r1 r3 r4");
}

static void test_older_than(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(record, "r1", "completed");
  gint64 between = clock_wall();
  write_run(record, "r2", "completed");
  assert_pruned(record, (PruneRequest){.older_than = 1}, "");
  assert_pruned(record, (PruneRequest){.older_than = between, .keep = 2}, "");
  assert_pruned(record, (PruneRequest){.older_than = between}, "r1");
  assert_left(record, "r2");
}

static void test_max_bytes(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(record, "r1", "completed");
  write_run(record, "r2", "completed");
  write_run(record, "r3", "completed");
  assert_pruned(record, (PruneRequest){.max_bytes = 10000000}, "");
  assert_pruned(record, (PruneRequest){.max_bytes = 335000}, "r1");
  assert_pruned(record, (PruneRequest){.max_bytes = 1, .keep = 1}, "r2");
  assert_left(record, "r3");
}

static void test_dry_run(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  write_run(record, "r1", "completed");
  write_run(record, "r2", "completed");
  assert_pruned(record, (PruneRequest){.keep = 0, .dry_run = TRUE}, "r1 r2");
  assert_pruned(record, (PruneRequest){.max_bytes = 335000, .dry_run = TRUE}, "");
  assert_pruned(record, (PruneRequest){.max_bytes = 235000, .dry_run = TRUE}, "r1");
  assert_left(record, "r1 r2");
}

/* Another process writes all the while, for longer than anybody would wait. */
static void test_dry_run_beside_a_writer(Place *place, gconstpointer unused) {
  (void)unused;
  sqlite3 *writer = NULL;
  g_autoptr(Record) record = open_record(place->path);
  write_run(record, "r1", "completed");
  write_run(record, "r2", "completed");
  g_assert_cmpint(sqlite3_open(place->path, &writer), ==, SQLITE_OK);
  g_assert_cmpint(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), ==, SQLITE_OK);
  assert_pruned(record, (PruneRequest){.keep = 1, .dry_run = TRUE}, "r1");
  g_assert_cmpint(sqlite3_exec(writer, "COMMIT", NULL, NULL, NULL), ==, SQLITE_OK);
  sqlite3_close(writer);
  assert_left(record, "r1 r2");
}

/* Nothing is held when it has looked, and what it foretells is about what comes. */
static void test_dry_run_foretells(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  for (int i = 0; i < 120; i++) {
    g_autofree char *id = g_strdup_printf("r%03d", i);
    if (i % 4 == 0) {
      write_run(record, id, "completed");
      continue;
    }
    begin_run(record, id);
    for (int n = 0; n < 5; n++) {
      append_text(record, id, "a", NULL, NULL);
    }
    end_run(record, id, "completed");
  }
  const PruneRequest look = {.keep = 40, .dry_run = TRUE};
  const PruneRequest request = {.keep = 40};
  g_autoptr(JsonObject) foretold = record_prune(record, &look, &error);
  g_autoptr(JsonObject) done = record_prune(record, &request, &error);
  g_assert_no_error(error);
  gint64 before = json_get_int(foretold, "bytes_before", 0);
  gint64 difference =
      json_get_int(foretold, "bytes_after", 0) - json_get_int(done, "bytes_after", 0);
  g_assert_cmpint(json_get_int(done, "bytes_before", 0), ==, before);
  g_test_message("%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT, difference, before);
  g_assert_cmpint(ABS(difference), <, before / 20);
}

static void test_file_shrinks(Place *place, gconstpointer unused) {
  (void)unused;
  struct stat before;
  struct stat after;
  g_autoptr(Record) record = open_record(place->path);
  for (int i = 0; i < 30; i++) {
    g_autofree char *id = g_strdup_printf("r%02d", i);
    write_run(record, id, "completed");
  }
  g_assert_cmpint(stat(place->path, &before), ==, 0);
  g_autoptr(JsonObject) result = record_prune(record, &(PruneRequest){.keep = 1}, NULL);
  g_assert_cmpint(stat(place->path, &after), ==, 0);
  g_assert_cmpint(before.st_size, >, 2000000);
  g_assert_cmpint(after.st_size, <, 400000);
  g_assert_cmpint(json_get_int(result, "bytes_after", 0), <=, after.st_size);
  assert_left(record, "r29");
}

/* Another process, here another connection, writes while it is pruned. */
static void test_beside_a_writer(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(Record) writer = open_record(place->path);
  write_run(record, "r1", "completed");
  write_run(writer, "r2", NULL);
  assert_pruned(record, (PruneRequest){.keep = 0}, "r1");
  append_text(writer, "r2", "b", NULL, NULL);
  end_run(writer, "r2", "completed");
  write_run(writer, "r3", "completed");
  assert_left(record, "r2 r3");
}

static void test_gone_run_is_not_there(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  write_run(record, "run_00001", "completed");
  assert_pruned(record, (PruneRequest){.keep = 0}, "run_00001");
  g_assert_null(record_resolve(record, "run_00001", &error));
  g_assert_cmpstr(error->message, ==, "No run run_00001");
}

#define ADD(name, function)                                                                        \
  g_test_add("/record/prune/" name, Place, NULL, place_make, function, place_remove)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("keep", test_keep);
  ADD("gap-in-the-middle", test_gap_in_the_middle);
  ADD("older-than", test_older_than);
  ADD("max-bytes", test_max_bytes);
  ADD("dry-run", test_dry_run);
  ADD("dry-run-beside-a-writer", test_dry_run_beside_a_writer);
  ADD("dry-run-foretells", test_dry_run_foretells);
  ADD("file-shrinks", test_file_shrinks);
  ADD("beside-a-writer", test_beside_a_writer);
  ADD("gone-run", test_gone_run_is_not_there);
  return g_test_run();
}
