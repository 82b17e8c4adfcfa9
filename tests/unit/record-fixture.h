/* SPDX-License-Identifier: Apache-2.0 */
/* record-fixture.h: a fresh folder with a record in it, and short ways to write one. */
#ifndef SANDHOST_TESTS_RECORD_FIXTURE_H
#define SANDHOST_TESTS_RECORD_FIXTURE_H

#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "record/record.h"
#include "remove-tree.h"

typedef struct {
  char *folder;
  char *path; /* not there yet */
} Place;

static inline void place_make(Place *place, gconstpointer unused) {
  (void)unused;
  place->folder = g_dir_make_tmp("sandhost-record-XXXXXX", NULL);
  g_assert_nonnull(place->folder);
  place->path = g_build_filename(place->folder, "state", "record.db", NULL);
}

static inline void place_remove(Place *place, gconstpointer unused) {
  (void)unused;
  remove_tree(place->folder);
  g_free(place->path);
  g_free(place->folder);
}

static inline Record *open_record(const char *path) {
  g_autoptr(GError) error = NULL;
  Record *record = record_open(path, &error);
  g_assert_no_error(error);
  g_assert_nonnull(record);
  return record;
}

static inline JsonObject *json_of(const char *text) {
  JsonObject *value = json_tokener_parse(text);
  g_assert_nonnull(value);
  return value;
}

static inline void begin_run(Record *record, const char *run_id) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) header = json_of("{\"agent_name\": \"a\", \"provider\": \"bubblewrap\"}");
  record_begin(record, run_id, "trace_1", header, &error);
  g_assert_no_error(error);
}

static inline void append_text(Record *record, const char *run_id, const char *type,
                               const char *metadata, const char *payload) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) facts = metadata ? json_of(metadata) : NULL;
  g_autoptr(JsonObject) content = payload ? json_of(payload) : NULL;
  record_append(record, run_id, type, facts, content, &error);
  g_assert_no_error(error);
}

/* The event that asks for this approval, as a run writes it: in an array of events. Owned. */
static inline JsonObject *events_asking(JsonObject *approval) {
  static const char *const FACTS[] = {"approval_id", "tool_call_id",    "capability",
                                      "risk_level",  "expires_at",      "request_id",
                                      "policy_hash", "manifest_digest", "request_digest"};
  JsonObject *facts = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(FACTS); i++) {
    json_add_take(facts, FACTS[i], json_object_get(json_get(approval, FACTS[i])));
  }
  JsonObject *event = json_object_new_object();
  json_add_text(event, "type", "approval_request_created");
  json_add_take(event, "metadata", facts);
  JsonObject *events = json_object_new_array();
  json_object_array_add(events, event);
  return events;
}

static inline void run_sql(const char *path, const char *sql) {
  sqlite3 *db = NULL;
  char *problem = NULL;
  g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
  sqlite3_busy_timeout(db, 30000);
  sqlite3_exec(db, sql, NULL, NULL, &problem);
  g_assert_cmpstr(problem, ==, NULL);
  sqlite3_close(db);
}

static inline void end_run(Record *record, const char *run_id, const char *status) {
  g_autoptr(GError) error = NULL;
  record_end(record, run_id, status, NULL, &error);
  g_assert_no_error(error);
}

static inline JsonObject *read_run(Record *record, const char *run_id) {
  g_autoptr(GError) error = NULL;
  JsonObject *run = record_run(record, run_id, &error);
  g_assert_no_error(error);
  return run;
}

static inline JsonObject *event_at(JsonObject *run, gsize index) {
  JsonObject *events = json_get(run, "events");
  g_assert_cmpuint(index, <, json_object_array_length(events));
  return json_object_array_get_idx(events, index);
}

#define assert_json(value, expected)                                                               \
  do {                                                                                             \
    g_autofree char *assert_text = json_text(value);                                               \
    g_assert_cmpstr(assert_text, ==, expected);                                                    \
  } while (0)

#endif
