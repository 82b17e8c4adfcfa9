/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-schema.c: the layout of the file. PRAGMA user_version is the number of the layout and
 * PRAGMA application_id says that the file is ours; both stand in the file's first page.
 */
#include "base/error.h"
#include "record/approvals-layout.h"
#include "record/budgets-layout.h"
#include "record/record-private.h"
#include "record/retention-layout.h"

/* "sndh" */
#define APPLICATION_ID 0x736e6468

/* LAYOUTS[n] brings layout n to n + 1; layout 0 is an empty file. What has been released is
 * never changed: a change is a new entry. Times are nanoseconds since 1970. A run's events are
 * numbered from 1 and stand side by side. */
static const char *const LAYOUTS[] = {
    "CREATE TABLE runs ("
    "  number INTEGER PRIMARY KEY,"
    "  run_id TEXT NOT NULL UNIQUE,"
    "  trace_id TEXT NOT NULL,"
    "  status TEXT NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  ended_at INTEGER,"
    "  header TEXT NOT NULL,"
    "  owner_pid INTEGER NOT NULL,"
    "  owner_start INTEGER NOT NULL,"
    "  owner_boot TEXT NOT NULL,"
    "  owner_namespace TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX runs_running ON runs (number) WHERE status = 'running';"
    "CREATE TABLE events ("
    "  run INTEGER NOT NULL REFERENCES runs (number),"
    "  seq INTEGER NOT NULL,"
    "  at INTEGER NOT NULL,"
    "  type TEXT NOT NULL,"
    "  metadata TEXT,"
    "  payload TEXT,"
    "  PRIMARY KEY (run, seq)"
    ") STRICT, WITHOUT ROWID;",
    /* chain: of one run, from its first event on; a run without a row here is older than the
     * chains. record_chain has one row: the runs' own chain. A pruned run leaves what the chains
     * need of it. outputs: what is not whole in an event; chunks can each be read alone. */
    "ALTER TABLE events ADD COLUMN hash BLOB;"
    "CREATE TABLE chains ("
    "  run INTEGER PRIMARY KEY REFERENCES runs (number),"
    "  link BLOB NOT NULL,"
    "  count INTEGER NOT NULL,"
    "  head BLOB NOT NULL"
    ") STRICT;"
    "CREATE TABLE record_chain ("
    "  id INTEGER PRIMARY KEY CHECK (id = 1),"
    "  first INTEGER NOT NULL,"
    "  last INTEGER NOT NULL,"
    "  link BLOB NOT NULL"
    ") STRICT;"
    "INSERT INTO record_chain (id, first, last, link)"
    "  SELECT 1, coalesce(max(number), 0) + 1, coalesce(max(number), 0), zeroblob(32) FROM runs;"
    "CREATE TABLE pruned ("
    "  number INTEGER PRIMARY KEY,"
    "  run_id TEXT NOT NULL,"
    "  status TEXT NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  pruned_at INTEGER NOT NULL,"
    "  link BLOB,"
    "  count INTEGER,"
    "  head BLOB"
    ") STRICT;"
    "CREATE TABLE outputs ("
    "  number INTEGER PRIMARY KEY,"
    "  run INTEGER NOT NULL REFERENCES runs (number),"
    "  execution_id TEXT NOT NULL,"
    "  stream INTEGER NOT NULL,"
    "  UNIQUE (run, execution_id, stream)"
    ") STRICT;"
    "CREATE TABLE output_chunks ("
    "  output INTEGER NOT NULL REFERENCES outputs (number),"
    "  start INTEGER NOT NULL,"
    "  length INTEGER NOT NULL,"
    "  data BLOB NOT NULL,"
    "  PRIMARY KEY (output, start)"
    ") STRICT, WITHOUT ROWID;",
    APPROVALS_LAYOUT,
    RETENTION_LAYOUT,
    BUDGETS_LAYOUT,
};
#define CURRENT_LAYOUT ((gint64)G_N_ELEMENTS(LAYOUTS))

static int read_number(Record *record, const char *sql, gint64 *ret_number) {
  sqlite3_stmt *statement = NULL;
  int code = sqlite3_prepare_v2(record->db, sql, -1, &statement, NULL);
  if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    *ret_number = sqlite3_column_int64(statement, 0);
    code = SQLITE_OK;
  }
  sqlite3_finalize(statement);
  return code;
}

static int refuse(Record *record, const char *why, GError **error) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD, "%s is not a record of sandhost: %s",
              record->path, why);
  return SQLITE_ERROR;
}

/* Sets *ret_layout to that of the file: 0 for an empty one. Within a transaction: the numbers
 * and the tables are of the same moment, while another process may be making them. */
static int read_layout(Record *record, gint64 *ret_layout, GError **error) {
  gint64 application = 0;
  gint64 layout = 0;
  gint64 tables = 0;
  int code = read_number(record, "PRAGMA application_id", &application);
  if (code == SQLITE_OK) {
    code = read_number(record, "PRAGMA user_version", &layout);
  }
  if (code == SQLITE_OK && application != APPLICATION_ID) {
    code = read_number(record, "SELECT count(*) FROM sqlite_master", &tables);
  }
  if ((code & 0xff) == SQLITE_NOTADB) {
    return refuse(record, "it is not a database", error);
  }
  if (code != SQLITE_OK) {
    return code;
  }
  if (application != APPLICATION_ID && (application != 0 || layout != 0 || tables != 0)) {
    return refuse(record, "it is another program's database", error);
  }
  if (layout < 0 || layout > CURRENT_LAYOUT) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                "%s was written by a newer sandhost (layout %" G_GINT64_FORMAT
                ", this one knows %" G_GINT64_FORMAT ")",
                record->path, layout, CURRENT_LAYOUT);
    return SQLITE_ERROR;
  }
  *ret_layout = layout;
  return SQLITE_OK;
}

/* In one transaction with the numbers, so that a layout is there whole or not at all. */
static int upgrade(Record *record, GError **error) {
  int code = sqlite3_exec(record->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (code != SQLITE_OK) {
    return code;
  }
  /* Another process may have been first. */
  gint64 layout = 0;
  code = read_layout(record, &layout, error);
  for (gint64 n = layout; code == SQLITE_OK && n < CURRENT_LAYOUT; n++) {
    code = sqlite3_exec(record->db, LAYOUTS[n], NULL, NULL, NULL);
  }
  if (code == SQLITE_OK) {
    g_autofree char *numbers =
        g_strdup_printf("PRAGMA application_id = %d; PRAGMA user_version = %" G_GINT64_FORMAT ";"
                        "COMMIT",
                        APPLICATION_ID, CURRENT_LAYOUT);
    code = sqlite3_exec(record->db, numbers, NULL, NULL, NULL);
  }
  if (code != SQLITE_OK && !sqlite3_get_autocommit(record->db)) {
    sqlite3_exec(record->db, "ROLLBACK", NULL, NULL, NULL);
  }
  return code;
}

static int read_layout_now(Record *record, gint64 *ret_layout, GError **error) {
  int code = sqlite3_exec(record->db, "BEGIN", NULL, NULL, NULL);
  if (code == SQLITE_OK) {
    code = read_layout(record, ret_layout, error);
    sqlite3_exec(record->db, "ROLLBACK", NULL, NULL, NULL);
  }
  return code;
}

int record_check_layout(Record *record, GError **error) {
  gint64 layout = 0;
  int code = read_layout_now(record, &layout, error);
  if (code == SQLITE_OK && layout == 0) {
    return refuse(record, "it is empty", error);
  }
  if (code == SQLITE_OK && layout != CURRENT_LAYOUT) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                "%s was written by an older sandhost, and cannot be written here to bring it up: "
                "copy it to where it can, "
                "and name the copy with --record",
                record->path);
    return SQLITE_ERROR;
  }
  return code;
}

int record_prepare_layout(Record *record, GError **error) {
  gint64 layout = 0;
  int code = read_layout_now(record, &layout, error);
  if (code != SQLITE_OK || layout == CURRENT_LAYOUT) {
    return code;
  }
  /* Only an empty file can be told to give pages back one by one; others do when they are pruned. */
  if (layout == 0) {
    sqlite3_exec(record->db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL);
  }
  /* Remembered by the file. Where a file system cannot share memory the mode stays what it was,
   * and everything still holds, only slower. */
  code = sqlite3_exec(record->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
  return code == SQLITE_OK ? upgrade(record, error) : code;
}
