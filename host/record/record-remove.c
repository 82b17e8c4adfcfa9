/* SPDX-License-Identifier: Apache-2.0 */
/* record-remove.c: the row and its dependents in one transaction, the bulk behind it in pieces. */
#include "record/record-remove.h"

#include "base/clock.h"

/* For how long one transaction sweeps. */
#define PIECE (20 * CLOCK_MILLISECOND)
/* Rows between two looks at the clock: a chunk has some 100 KiB, an event perhaps megabytes. */
#define SOME "4"

void record_removal_begin(Record *record) {
  sqlite3_db_config(record->db, SQLITE_DBCONFIG_ENABLE_FKEY, 0, NULL);
}

void record_removal_end(Record *record) {
  sqlite3_db_config(record->db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
}

/* ---- The run -------------------------------------------------------------------------------------------------------- */

/* The tables whose rows belong to a run (ON DELETE CASCADE, which does nothing while foreign keys are off), as
 * statements that remove those of run ?1. */
static int list_dependents(Record *record, GPtrArray *statements) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT printf('DELETE FROM \"%w\" WHERE \"%w\" = ?1', m.name, f.\"from\")"
                     "  FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f"
                     "  WHERE m.type = 'table' AND f.\"table\" = 'runs'"
                     "    AND f.on_delete = 'CASCADE'",
                     &code);
  if (!statement) {
    return code;
  }
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_ptr_array_add(statements, g_strdup((const char *)sqlite3_column_text(statement, 0)));
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int remove_dependents(Record *record, gint64 number) {
  g_autoptr(GPtrArray) statements = g_ptr_array_new_with_free_func(g_free);
  int code = list_dependents(record, statements);
  for (guint i = 0; code == SQLITE_OK && i < statements->len; i++) {
    code = record_run_once(record, g_ptr_array_index(statements, i), number);
  }
  return code;
}

static int note_pruned(Record *record, gint64 number) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_INSERT_PRUNED, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_int64(statement, 2, clock_wall());
  return record_finish(statement);
}

int record_remove_run(Record *record, gint64 number, gboolean *ret_gone) {
  static const char *const PARTS[] = {
      "INSERT OR IGNORE INTO discarded (run) VALUES (?1)",
      "DELETE FROM chains WHERE run = ?1",
      "DELETE FROM runs WHERE number = ?1",
  };
  int code = note_pruned(record, number);
  *ret_gone = code == SQLITE_OK && sqlite3_changes(record->db) > 0;
  if (*ret_gone) {
    code = remove_dependents(record, number);
  }
  for (gsize i = 0; *ret_gone && code == SQLITE_OK && i < G_N_ELEMENTS(PARTS); i++) {
    code = record_run_once(record, PARTS[i], number);
  }
  return code;
}

/* ---- What it leaves --------------------------------------------------------------------------------------------------- */

/* *ret_run is 0 when nothing is left. *ret_there: a mark at a run that is there, which is a stranger's. */
static int find_discarded(Record *record, gint64 *ret_run, gboolean *ret_there) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT run, EXISTS (SELECT 1 FROM runs WHERE number = run) FROM discarded"
                     "  ORDER BY run LIMIT 1",
                     &code);
  if (!statement) {
    return code;
  }
  code = sqlite3_step(statement);
  *ret_run = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  *ret_there = code == SQLITE_ROW && sqlite3_column_int(statement, 1) != 0;
  sqlite3_finalize(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* The first of these that finds something. *ret_more FALSE: there was nothing. */
static int sweep_some(Record *record, gboolean *ret_more) {
  static const char *const STEPS[] = {
      "DELETE FROM output_chunks WHERE (output, start) IN (SELECT output, start FROM output_chunks"
      "  WHERE output = (SELECT number FROM outputs WHERE run = ?1 LIMIT 1) LIMIT " SOME ")",
      "DELETE FROM outputs WHERE number = (SELECT number FROM outputs WHERE run = ?1 LIMIT 1)",
      "DELETE FROM events WHERE (run, seq) IN (SELECT run, seq FROM events WHERE run = ?1"
      "  LIMIT " SOME ")",
      "DELETE FROM discarded WHERE run = ?1",
  };
  gint64 run = 0;
  gboolean there = FALSE;
  int changes = 0;
  int code = find_discarded(record, &run, &there);
  *ret_more = code == SQLITE_OK && run != 0;
  for (gsize i = there ? G_N_ELEMENTS(STEPS) - 1 : 0;
       *ret_more && code == SQLITE_OK && changes == 0 && i < G_N_ELEMENTS(STEPS); i++) {
    code = record_run_once(record, STEPS[i], run);
    changes = sqlite3_changes(record->db);
  }
  return code;
}

int record_sweep(Record *record, gboolean *ret_more) {
  gint64 until = clock_deadline(PIECE);
  int code;
  do {
    code = sweep_some(record, ret_more);
  } while (code == SQLITE_OK && *ret_more && clock_now() < until);
  return code;
}
