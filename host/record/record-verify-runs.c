/* SPDX-License-Identifier: Apache-2.0 */
/* record-verify-runs.c: that no run is missing between the first and the last, and nothing is there that is of no run. */
#include <string.h>

#include "record/record-verify.h"
#include "record/verify-private.h"

/* ---- Runs ------------------------------------------------------------------------------------------- */

typedef struct {
  gint64 first; /* number that is chained */
  gint64 last;
  gint64 pruned;
  gint64 next; /* number that comes next */
  guint8 link[DIGEST_BYTES];
  guint8 last_link[DIGEST_BYTES]; /* that of the last run that is there */
  JsonObject *runs;
  JsonObject *faults;
} RunsWalk;

static int read_anchor(Record *record, RunsWalk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_ANCHOR, &code);
  if (!statement) {
    return code;
  }
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    walk->first = sqlite3_column_int64(statement, 0);
    walk->last = sqlite3_column_int64(statement, 1);
    chain_column(statement, 2, walk->link);
  } else if (code == SQLITE_DONE) {
    verify_add_fault(walk->faults, "run", 0, "missing", "the row of the runs' chain");
    walk->first = 1;
  }
  record_done(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static void tell_missing(RunsWalk *walk, gint64 from, gint64 to) {
  if (from < to) {
    g_autofree char *detail =
        g_strdup_printf("runs %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT " are missing", from, to);
    verify_add_fault(walk->faults, "run", from, "missing", detail);
  } else {
    verify_add_fault(walk->faults, "run", from, "missing", NULL);
  }
}

static void walk_run(RunsWalk *walk, sqlite3_stmt *statement) {
  gint64 number = sqlite3_column_int64(statement, 0);
  const char *run_id = (const char *)sqlite3_column_text(statement, 1);
  if (sqlite3_column_int(statement, 2)) {
    walk->pruned++;
  } else {
    g_autofree char *valid = g_utf8_make_valid(run_id ? run_id : "", -1);
    json_object_array_add(walk->runs, json_object_new_string(valid));
  }
  if (number < walk->first) {
    return;
  }
  if (number > walk->next) {
    tell_missing(walk, walk->next, number - 1);
  }
  if (number > walk->last && walk->last >= 0) {
    verify_add_fault(walk->faults, "run", number, "added", "it is not in the runs' chain");
  }
  chain_column(statement, 3, walk->last_link);
  walk->next = number + 1;
}

static int walk_runs(Record *record, RunsWalk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_NUMBERS, &code);
  if (!statement) {
    return code;
  }
  walk->next = walk->first;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    walk_run(walk, statement);
  }
  record_done(statement);
  if (walk->next <= walk->last) {
    tell_missing(walk, walk->next, walk->last);
  } else if (json_object_array_length(walk->faults) == 0 &&
             memcmp(walk->link, walk->last_link, DIGEST_BYTES) != 0) {
    verify_add_fault(walk->faults, "run", 0, "altered", "the head of the runs' chain");
  }
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int find_orphans(Record *record, RunsWalk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_ORPHANS, &code);
  if (!statement) {
    return code;
  }
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    verify_add_fault(walk->faults, "run", sqlite3_column_int64(statement, 0), "missing",
                     "its events are there and its row is not");
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Kept output of no run, and pieces of no output: a later output would get their number. */
static int find_strays(Record *record, RunsWalk *walk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_STRAYS, &code);
  if (!statement) {
    return code;
  }
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    gboolean pieces = sqlite3_column_int(statement, 1) != 0;
    gint64 number = sqlite3_column_int64(statement, 0);
    g_autofree char *detail =
        g_strdup_printf("%s %" G_GINT64_FORMAT "%s", pieces ? "pieces of the output" : "the output",
                        number, pieces ? ", which is not there" : " is of no run");
    verify_add_fault(walk->faults, "run", 0, "added", detail);
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_verify_runs(Record *record, GError **error) {
  RunsWalk walk = {.runs = json_object_new_array(), .faults = json_object_new_array()};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = read_anchor(record, &walk);
    code = code == SQLITE_OK ? walk_runs(record, &walk) : code;
    code = code == SQLITE_OK ? find_orphans(record, &walk) : code;
    code = code == SQLITE_OK ? find_strays(record, &walk) : code;
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  if (code != SQLITE_OK) {
    record_fail(record, "read", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  g_autofree char *head = digest_to_hex(walk.link);
  JsonObject *result = json_object_new_object();
  json_add_text(result, "head", head);
  json_add_int(result, "pruned", walk.pruned);
  json_add_take(result, "runs", walk.runs);
  json_add_take(result, "faults", walk.faults);
  if (code != SQLITE_OK) {
    json_object_put(result);
    return NULL;
  }
  return result;
}
