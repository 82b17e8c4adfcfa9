/* SPDX-License-Identifier: Apache-2.0 */
/* record-log.c: when what is in the write-ahead log moves into the file: at a heartbeat, when it is long, or early in a
 * process that finds it full. */
#include "record-fixture.h"
#include "record/approvals.h"

#define RUN "run_00000000000000000000000000000001"

static off_t file_size(const char *path) {
  struct stat facts;
  g_assert_cmpint(stat(path, &facts), ==, 0);
  return facts.st_size;
}

/* So many commits, each of a page at least. */
static void commit(Record *record, guint count) {
  g_autofree char *text = g_strnfill(4096, 'x');
  g_autofree char *payload = g_strdup_printf("{\"text\": \"%s\"}", text);
  for (guint i = 0; i < count; i++) {
    append_text(record, RUN, "a", NULL, payload);
  }
}

/* What one process left is moved by the next, and then the log begins anew: it does not grow with each. */
static void test_short_runs(Place *place, gconstpointer unused) {
  (void)unused;
  g_autofree char *log = g_strconcat(place->path, "-wal", NULL);
  Record *record = open_record(place->path);
  begin_run(record, RUN);
  record_close(record);
  for (guint i = 0; i < 100; i++) {
    record = open_record(place->path);
    commit(record, 5);
    record_close(record);
    g_assert_cmpint(file_size(log), <, 300 * 4120);
  }
  g_assert_cmpint(file_size(place->path), >, 400 * 4096);
}

static void test_heartbeat(Place *place, gconstpointer unused) {
  (void)unused;
  gboolean held = FALSE;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, RUN);
  commit(record, 100);
  g_assert_cmpint(file_size(place->path), <, 100 * 4096);
  g_assert_true(record_heartbeat(record, RUN, "owner", FALSE, &held, NULL));
  g_assert_cmpint(file_size(place->path), >, 100 * 4096);
}

/* Also where nothing beats. */
static void test_long(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_run(record, RUN);
  commit(record, 1000);
  g_assert_cmpint(file_size(place->path), >, 100 * 4096);
  g_autofree char *log = g_strconcat(place->path, "-wal", NULL);
  g_assert_cmpint(file_size(log), <, 1200 * 4120);
}

/* A short run does not pay for it, unless the log was there. */
static void test_short(Place *place, gconstpointer unused) {
  (void)unused;
  Record *record = open_record(place->path);
  begin_run(record, RUN);
  commit(record, 10);
  off_t before = file_size(place->path);
  record_close(record);
  g_assert_cmpint(file_size(place->path), ==, before);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
  g_test_add("/record/log/" name, Place, NULL, place_make, function, place_remove)
  ADD("short-runs", test_short_runs);
  ADD("heartbeat", test_heartbeat);
  ADD("long", test_long);
  ADD("short", test_short);
  return g_test_run();
}
