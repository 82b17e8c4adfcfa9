/* SPDX-License-Identifier: Apache-2.0 */
/* record-transaction.c: what transactions that read, refuse and write are made of (lives.c, approvals.c). */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/record-private.h"

sqlite3_stmt *record_prepare(Record *record, const char *sql, int *ret_code) {
  sqlite3_stmt *statement = NULL;
  *ret_code = sqlite3_prepare_v2(record->db, sql, -1, &statement, NULL);
  return statement;
}

int record_finish_once(sqlite3_stmt *statement) {
  int code = sqlite3_step(statement);
  sqlite3_finalize(statement);
  return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

int record_run_once(Record *record, const char *sql, gint64 number) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(record, sql, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  return record_finish_once(statement);
}

int record_ask(Record *record, const char *sql, gint64 number, gint64 *ret_answer) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(record, sql, &code);
  if (!statement) {
    return code;
  }
  if (sqlite3_bind_parameter_count(statement) > 0) {
    sqlite3_bind_int64(statement, 1, number);
  }
  code = sqlite3_step(statement);
  *ret_answer = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_json_column(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return text ? json_parse("the record", text, (gsize)sqlite3_column_bytes(statement, column), NULL)
              : NULL;
}

gboolean record_settle_refused(Record *record, int code, const char *run_id, GError *take_refusal,
                               GError **error) {
  g_autoptr(GError) refusal = take_refusal;
  if (!refusal &&
      sqlite3_get_autocommit(record->db)) { /* it was never begun, or SQLite has ended it */
    return record_fail(record, "write", code, error);
  }
  code = record_settle(record, refusal ? SQLITE_ABORT : code);
  if (refusal) {
    g_propagate_error(error, g_steal_pointer(&refusal));
    return FALSE;
  }
  if (code == SQLITE_NOTFOUND) {
    return record_no_run(run_id, error);
  }
  return code == SQLITE_OK || record_fail(record, "write", code, error);
}

void record_conflict(GError **error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFLICT, text);
}

void record_add_time(JsonObject *object, const char *key, gint64 wall) {
  g_autofree char *text = clock_format(wall);
  json_add_text(object, key, text);
}

int record_add_event(Record *record, const char *run_id, const char *type,
                     JsonObject *take_metadata) {
  g_autoptr(JsonObject) events = json_object_new_array();
  JsonObject *event = json_object_new_object();
  json_add_text(event, "type", type);
  json_add_take(event, "metadata", take_metadata);
  json_object_array_add(events, event);
  return record_insert_events(record, run_id, events);
}

char *record_text_column(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return g_utf8_make_valid(text ? text : "", -1);
}
