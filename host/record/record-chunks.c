/* SPDX-License-Identifier: Apache-2.0 */
/* record-chunks.c: chunks of output, in and out of the file. */
#include "record/record-chunks.h"

#include <zlib.h>

/* zlib makes nothing larger than this of what it cannot pack. */
#define PACKED_MAX (RECORD_CHUNK_MAX + RECORD_CHUNK_MAX / 64 + 1024)

/* ---- In ---------------------------------------------------------------------------------------- */

static int insert_output(Record *record, const char *run_id, const char *execution_id, int stream,
                         gint64 *ret_number) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_INSERT_OUTPUT, &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, execution_id);
  sqlite3_bind_int(statement, 3, stream);
  code = record_finish(statement);
  if (code == SQLITE_OK && sqlite3_changes(record->db) == 0) {
    return SQLITE_NOTFOUND;
  }
  *ret_number = sqlite3_last_insert_rowid(record->db);
  return code;
}

static int insert_chunk(Record *record, gint64 number, const RecordChunk *chunk) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_INSERT_CHUNK, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_int64(statement, 2, (gint64)chunk->start);
  sqlite3_bind_int64(statement, 3, (gint64)chunk->length);
  sqlite3_bind_blob64(statement, 4, chunk->data, chunk->size, SQLITE_STATIC);
  return record_finish(statement);
}

gboolean record_chunk_write(Record *record, const char *run_id, const char *execution_id,
                            int stream, const RecordChunk *chunk, gint64 *number, GError **error) {
  gint64 row = *number;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    if (row == 0) {
      code = insert_output(record, run_id, execution_id, stream, &row);
    }
    code = record_settle(record, code == SQLITE_OK ? insert_chunk(record, row, chunk) : code);
  }
  gboolean ok = code == SQLITE_OK;
  if (code == SQLITE_NOTFOUND) {
    record_no_run(run_id, error);
  } else if (!ok) {
    record_fail(record, "write", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  if (ok) {
    *number = row;
  }
  return ok;
}

/* ---- Out --------------------------------------------------------------------------------------- */

int record_output_find(Record *record, gint64 run, const char *execution_id, int stream,
                       gint64 *ret_number) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_OUTPUT, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, run);
  record_bind_text(statement, 2, execution_id);
  sqlite3_bind_int(statement, 3, stream);
  code = sqlite3_step(statement);
  *ret_number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  record_done(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* NULL when it is not exactly length bytes. */
static GByteArray *unpack(const void *data, int size, gint64 length) {
  if (!data || size > (int)PACKED_MAX || length < 1 || length > RECORD_CHUNK_MAX) {
    return NULL;
  }
  GByteArray *bytes = g_byte_array_sized_new((guint)length);
  uLongf unpacked = (uLongf)length;
  int code = uncompress(bytes->data, &unpacked, data, (uLong)size);
  if (code != Z_OK || unpacked != (uLongf)length) {
    g_byte_array_unref(bytes);
    return NULL;
  }
  g_byte_array_set_size(bytes, (guint)length);
  return bytes;
}

int record_chunk_read(Record *record, gint64 number, guint64 offset, guint64 *ret_start,
                      GByteArray **ret_bytes) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_CHUNK, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_int64(statement, 2, (gint64)MIN(offset, G_MAXINT64));
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    guint64 start = (guint64)sqlite3_column_int64(statement, 0);
    GByteArray *bytes =
        unpack(sqlite3_column_blob(statement, 2), sqlite3_column_bytes(statement, 2),
               sqlite3_column_int64(statement, 1));
    code = !bytes ? SQLITE_CORRUPT : offset - start >= bytes->len ? SQLITE_DONE : SQLITE_OK;
    if (code == SQLITE_OK) {
      *ret_start = start;
      *ret_bytes = bytes;
    } else if (bytes) {
      g_byte_array_unref(bytes);
    }
  }
  record_done(statement);
  return code;
}
