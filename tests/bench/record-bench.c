/* SPDX-License-Identifier: Apache-2.0 */
/* record-bench.c: an event, hashed and chained, on the disk when the call returns, beside a bare row that is the same. */
#include "record-bench.h"

#include <sqlite3.h>

#include "base/clock.h"
#include "ratio.h"
#include "record/record.h"

#define RUN "run_00000000000000000000000000000001"
/* As much as the end of a command. */
#define METADATA                                                                                   \
  "{\"tool_call_id\":\"call_00000000000000000000000000000001\",\"exit_code\":0,"                   \
  "\"timed_out\":false,\"duration_ms\":1.234,\"stdout_bytes\":2,\"stderr_bytes\":0}"
#define PAYLOAD "{\"command\":[\"sh\",\"-c\",\"echo a\"],\"exit_code\":0,\"stdout\":\"a\\n\"}"

/* ---- The floor --------------------------------------------------------------------------------------------------- */

static sqlite3_stmt *open_floor(const char *scratch, sqlite3 **ret_db) {
  static const char SETUP[] =
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
      "CREATE TABLE rows (number INTEGER PRIMARY KEY, at INTEGER, type TEXT,"
      " metadata TEXT, payload TEXT)";
  g_autofree char *path = g_build_filename(scratch, "floor.db", NULL);
  sqlite3_stmt *insert = NULL;
  if (sqlite3_open(path, ret_db) != SQLITE_OK ||
      sqlite3_exec(*ret_db, SETUP, NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(*ret_db,
                         "INSERT INTO rows (at, type, metadata, payload)"
                         " VALUES (?1, 'sandbox_exec_completed', ?2, ?3)",
                         -1, &insert, NULL) != SQLITE_OK) {
    return NULL;
  }
  return insert;
}

static gint64 insert_row(void *user) {
  sqlite3_stmt *insert = user;
  gint64 from = clock_now();
  sqlite3_bind_int64(insert, 1, clock_wall());
  sqlite3_bind_text(insert, 2, METADATA, -1, SQLITE_STATIC);
  sqlite3_bind_text(insert, 3, PAYLOAD, -1, SQLITE_STATIC);
  gboolean ok = sqlite3_step(insert) == SQLITE_DONE;
  sqlite3_reset(insert);
  return ok ? clock_now() - from : -1;
}

/* ---- Ours -------------------------------------------------------------------------------------------------------- */

typedef struct {
  Record *record;
  JsonObject *metadata;
  JsonObject *payload;
} Event;

static gint64 append_event(void *user) {
  const Event *event = user;
  gint64 from = clock_now();
  gboolean ok = record_append(event->record, RUN, "sandbox_exec_completed", event->metadata,
                              event->payload, NULL);
  return ok ? clock_now() - from : -1;
}

static gboolean begin(Event *event, const char *scratch) {
  g_autofree char *path = g_build_filename(scratch, "events.db", NULL);
  g_autoptr(JsonObject) header = json_object_new_object();
  event->record = record_open(path, NULL);
  event->metadata = json_tokener_parse(METADATA);
  event->payload = json_tokener_parse(PAYLOAD);
  return event->record && record_begin(event->record, RUN, "trace", header, NULL);
}

void bench_record(const char *scratch, guint rounds) {
  static const char WHAT[] = "an event on record / one durable SQLite insert";
  Event event = {0};
  sqlite3 *db = NULL;
  sqlite3_stmt *insert = open_floor(scratch, &db);
  if (insert && begin(&event, scratch)) {
    ratio_compare(WHAT, (Meter){append_event, &event}, (Meter){insert_row, insert}, 1.5,
                  rounds * 10);
  } else {
    ratio_leave_out(WHAT, "a database could not be made");
  }
  record_close(event.record);
  json_object_put(event.metadata);
  json_object_put(event.payload);
  sqlite3_finalize(insert);
  sqlite3_close(db);
}
