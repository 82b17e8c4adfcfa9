/* SPDX-License-Identifier: Apache-2.0 */
/* record-read.c: what the record holds, as JSON. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/record-private.h"

/* Ids shorter than this are too likely to be a slip. */
#define PREFIX_MIN 8
/* Arguments may be JSON_MAX_DEPTH deep, and stand some levels down in a payload. */
#define READ_DEPTH (2 * JSON_MAX_DEPTH)

/* json_parse is not for this: it refuses what output may hold, a NUL. */
gboolean record_read_json(sqlite3_stmt *statement, int column, JsonObject **ret_value) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  int length = sqlite3_column_bytes(statement, column);
  if (!text) {
    *ret_value = NULL;
    return sqlite3_column_type(statement, column) == SQLITE_NULL;
  }
  if (length > (int)JSON_MAX_BYTES) {
    return FALSE;
  }
  json_tokener *tokener = json_tokener_new_ex(READ_DEPTH);
  JsonObject *value = json_tokener_parse_ex(tokener, text, length + 1); /* with the NUL: the end */
  gboolean whole = json_tokener_get_error(tokener) == json_tokener_success &&
                   json_tokener_get_parse_end(tokener) >= (size_t)length;
  json_tokener_free(tokener);
  if (!whole) {
    json_object_put(value);
    return FALSE;
  }
  *ret_value = value;
  return TRUE;
}

/* Text that a foreign hand may have put there is made UTF-8 again. */
static void add_column_text(JsonObject *object, const char *key, sqlite3_stmt *statement,
                            int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  g_autofree char *valid = text ? g_utf8_make_valid(text, -1) : NULL;
  json_add_text(object, key, valid);
}

static void add_column_time(JsonObject *object, const char *key, sqlite3_stmt *statement,
                            int column) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) {
    json_add_text(object, key, NULL);
    return;
  }
  g_autofree char *text = clock_format(sqlite3_column_int64(statement, column));
  json_add_text(object, key, text);
}

static JsonObject *event_json(sqlite3_stmt *statement) {
  JsonObject *event = json_object_new_object();
  json_add_int(event, "seq", sqlite3_column_int64(statement, 0));
  add_column_time(event, "at", statement, 1);
  add_column_text(event, "type", statement, 2);
  JsonObject *metadata = NULL;
  JsonObject *payload = NULL;
  gboolean good = record_read_json(statement, 3, &metadata);
  good = record_read_json(statement, 4, &payload) && good;
  json_add_take(event, "metadata", metadata);
  json_add_take(event, "payload", payload);
  if (!good) {
    json_add_bool(event, "damaged", TRUE);
  }
  return event;
}

/* The columns that STATEMENT_RUN and STATEMENT_RUNS have in common. */
static JsonObject *run_json(sqlite3_stmt *statement) {
  JsonObject *run = json_object_new_object();
  add_column_text(run, "run_id", statement, 0);
  add_column_text(run, "trace_id", statement, 1);
  add_column_text(run, "status", statement, 2);
  add_column_time(run, "created_at", statement, 3);
  add_column_time(run, "ended_at", statement, 4);
  return run;
}

/* SQLITE_NOTFOUND when there is no such run; else *ret_run may be set even with a failure. */
static int read_run(Record *record, const char *run_id, JsonObject **ret_run, gint64 *ret_number) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_RUN, &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    JsonObject *header = NULL;
    *ret_run = run_json(statement);
    record_read_json(statement, 5, &header);
    json_add_take(*ret_run, "header", header);
    *ret_number = sqlite3_column_int64(statement, 6);
  }
  record_done(statement);
  return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_NOTFOUND : code;
}

static int read_events(Record *record, gint64 number, JsonObject *events) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_EVENTS, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    json_object_array_add(events, event_json(statement));
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_run(Record *record, const char *run_id, GError **error) {
  g_autoptr(JsonObject) run = NULL;
  gint64 number = 0;
  pthread_mutex_lock(&record->lock);
  /* One transaction: the status and the events are of the same moment. */
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = read_run(record, run_id, &run, &number);
    if (code == SQLITE_OK) {
      JsonObject *events = json_object_new_array();
      json_add_take(run, "events", events);
      code = read_events(record, number, events);
    }
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  if (code == SQLITE_NOTFOUND) {
    record_no_run(run_id, error);
  } else if (code != SQLITE_OK) {
    record_fail(record, "read", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  return code == SQLITE_OK ? g_steal_pointer(&run) : NULL;
}

JsonObject *record_header(Record *record, const char *run_id, GError **error) {
  g_autoptr(JsonObject) run = NULL;
  gint64 number = 0;
  pthread_mutex_lock(&record->lock);
  int code = read_run(record, run_id, &run, &number);
  if (code == SQLITE_NOTFOUND) {
    record_no_run(run_id, error);
  } else if (code != SQLITE_OK) {
    record_fail(record, "read", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  return code == SQLITE_OK ? json_object_get(json_get(run, "header")) : NULL;
}

const char *const *record_status_names(void) {
  static const char *const NAMES[] = {
      "running",           "completed",       "failed",      "cancelled",
      "awaiting_approval", "awaiting_budget", "interrupted", "blocked",
      "timeout",           "abandoned",       NULL};
  return NAMES;
}

/* Adds the run when it is one of the provider's. */
static void add_run(sqlite3_stmt *statement, const char *provider, JsonObject *runs) {
  JsonObject *header = NULL;
  record_read_json(statement, 5, &header);
  const char *own = json_get_text(header, "provider");
  if (!provider || g_strcmp0(provider, own) == 0) {
    JsonObject *run = run_json(statement);
    json_add_text(run, "agent_name", json_get_text(header, "agent_name"));
    json_add_text(run, "provider", own);
    json_add_int(run, "commands", sqlite3_column_int64(statement, 6));
    json_object_array_add(runs, run);
  }
  json_object_put(header);
}

/* What stands in the header of each run of the provider, and perhaps in others, so that not each header is read and each
 * run's commands counted. Owned; NULL: any provider. */
static char *part_of_header(const char *provider) {
  if (!provider) {
    return NULL;
  }
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_text(object, "provider", provider);
  g_autofree char *text = json_text(object);
  return g_strndup(text + 1, strlen(text) - 2); /* without the braces */
}

JsonObject *record_runs_matching(Record *record, const RecordFilter *filter, GError **error) {
  g_autoptr(JsonObject) runs = json_object_new_array();
  int code = SQLITE_DONE;
  g_autofree char *header_part = part_of_header(filter->provider);
  pthread_mutex_lock(&record->lock);
  sqlite3_stmt *statement = record_statement(record, STATEMENT_RUNS, &code);
  if (statement) {
    record_bind_text(statement, 1, filter->status);
    sqlite3_bind_int64(statement, 2, filter->since);
    record_bind_text(statement, 3, header_part);
    while (json_object_array_length(runs) < filter->limit &&
           (code = sqlite3_step(statement)) == SQLITE_ROW) {
      add_run(statement, filter->provider, runs);
    }
    record_done(statement);
  }
  gboolean ok =
      code == SQLITE_DONE || code == SQLITE_ROW || record_fail(record, "read", code, error);
  pthread_mutex_unlock(&record->lock);
  return ok ? g_steal_pointer(&runs) : NULL;
}

JsonObject *record_runs(Record *record, guint limit, GError **error) {
  const RecordFilter filter = {.limit = limit};
  return record_runs_matching(record, &filter, error);
}

/* Up to three ids. An empty array when there is none. */
static int read_ids(Record *record, StatementId id, const char *text, GPtrArray *ids) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, id, &code);
  if (!statement) {
    return code;
  }
  if (text) {
    record_bind_text(statement, 1, text);
  }
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_ptr_array_add(ids, g_strdup((const char *)sqlite3_column_text(statement, 0)));
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

char *record_newest(Record *record, GError **error) {
  g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
  pthread_mutex_lock(&record->lock);
  int code = read_ids(record, STATEMENT_NEWEST, NULL, ids);
  gboolean ok = code == SQLITE_OK || record_fail(record, "read", code, error);
  pthread_mutex_unlock(&record->lock);
  return ok && ids->len > 0 ? g_strdup(g_ptr_array_index(ids, 0)) : NULL;
}

char *record_resolve(Record *record, const char *id, GError **error) {
  g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
  pthread_mutex_lock(&record->lock);
  int code = read_ids(record, STATEMENT_PREFIX, id, ids);
  gboolean ok = code == SQLITE_OK || record_fail(record, "read", code, error);
  pthread_mutex_unlock(&record->lock);
  if (!ok) {
    return NULL;
  }
  const char *first = ids->len > 0 ? g_ptr_array_index(ids, 0) : NULL;
  if (first && (strcmp(first, id) == 0 || (ids->len == 1 && strlen(id) >= PREFIX_MIN))) {
    return g_strdup(first);
  }
  if (!first || strlen(id) < PREFIX_MIN) {
    record_no_run(id, error);
    return NULL;
  }
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "%s is the beginning of several runs: %s, %s%s", id, first,
              (const char *)g_ptr_array_index(ids, 1), ids->len > 2 ? ", ..." : "");
  return NULL;
}
