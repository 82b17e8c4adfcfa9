/* SPDX-License-Identifier: Apache-2.0 */
/* record-weight.c: a row is what it holds, and the pages of its own where it is too long to lie beside others. */
#include "record/record-weight.h"

/* One number for each row: its bytes, with some for its key and what stands before each value. */
static const char ROWS[] =
    "SELECT 24 + length(type) + ifnull(length(CAST(metadata AS BLOB)), 0)"
    "  + ifnull(length(CAST(payload AS BLOB)), 0) + ifnull(length(hash), 0)"
    "  FROM events WHERE run = ?1"
    " UNION ALL SELECT 16 + length(data) FROM output_chunks"
    "  WHERE output IN (SELECT number FROM outputs WHERE run = ?1)"
    " UNION ALL SELECT 100 FROM outputs WHERE run = ?1"
    " UNION ALL SELECT 200 + length(CAST(header AS BLOB)) FROM runs WHERE number = ?1"
    " UNION ALL SELECT 80 + ifnull(length(CAST(request AS BLOB)), 0) FROM lives WHERE run = ?1"
    " UNION ALL SELECT 120 + length(CAST(content AS BLOB)) FROM approvals WHERE run = ?1"
    " UNION ALL SELECT 120 + length(CAST(content AS BLOB)) FROM budget_requests WHERE run = ?1";

/* As SQLite lays a row of a table without rowid out: what is longer than a quarter of a page has pages of its own, but
 * for its beginning. */
static gint64 bytes_in_file(gint64 row, gint64 page) {
  gint64 most = (page - 12) * 64 / 255 - 23;
  gint64 least = (page - 12) * 32 / 255 - 23;
  gint64 each = page - 4;
  if (row <= most) {
    return row;
  }
  gint64 rest = (row - least) % each;
  gint64 pages = (row - least) / each;
  return least + rest <= most ? pages * page + least + rest : (pages + 1) * page + least;
}

int record_weigh_run(Record *record, gint64 number, gint64 *ret_bytes) {
  gint64 page = 0;
  gint64 bytes = 0;
  int code = record_ask(record, "PRAGMA page_size", 0, &page);
  sqlite3_stmt *statement = code == SQLITE_OK ? record_prepare(record, ROWS, &code) : NULL;
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    bytes += bytes_in_file(sqlite3_column_int64(statement, 0), page);
  }
  sqlite3_finalize(statement);
  *ret_bytes = bytes;
  return code == SQLITE_DONE ? SQLITE_OK : code;
}
