/* SPDX-License-Identifier: Apache-2.0 */
/* record-private.h: the open record, as record.c, record-schema.c and record-read.c share it. */
#ifndef SANDHOST_RECORD_RECORD_PRIVATE_H
#define SANDHOST_RECORD_RECORD_PRIVATE_H

#include <pthread.h>
#include <sqlite3.h>

#include "record/record-owner.h"
#include "record/record.h"

typedef enum {
  STATEMENT_BEGIN,
  STATEMENT_BEGIN_READ,
  STATEMENT_COMMIT,
  STATEMENT_ROLLBACK,
  STATEMENT_INSERT_RUN,
  STATEMENT_INSERT_EVENT,
  STATEMENT_END_RUN,
  STATEMENT_RUN_STATUS,
  STATEMENT_RUNNING,
  STATEMENT_NEWEST,
  STATEMENT_PREFIX,
  STATEMENT_RUN,
  STATEMENT_EVENTS,
  STATEMENT_RUNS,
  STATEMENT_COUNT,
} StatementId;

struct Record {
  char *path;
  pthread_mutex_t lock; /* guards all below: one statement at a time, one transaction at a time */
  sqlite3 *db;
  sqlite3_stmt *statements[STATEMENT_COUNT]; /* prepared when first needed, then kept */
  gint64 patience;                           /* until when a lock is waited for; clock_now */
};

/* Functions that return an int return an SQLite code, SQLITE_OK when all is well. */

/* "could not {what} the record {path}: {what SQLite says of the code}". Returns FALSE. */
gboolean record_fail(Record *record, const char *what, int code, GError **error);
/* NOT_FOUND "No run {id}". Returns FALSE. */
gboolean record_no_run(const char *run_id, GError **error);

/* Under the lock: the statement, ready to be bound, to be given back with record_done; NULL with
 * *ret_code set when it cannot be prepared. */
sqlite3_stmt *record_statement(Record *record, StatementId id, int *ret_code);
void record_done(sqlite3_stmt *statement);
/* Steps once and gives the statement back: for those without results. */
int record_finish(sqlite3_stmt *statement);
/* A statement without parameters and results. */
int record_run_statement(Record *record, StatementId id);
/* The text must live until the statement is given back. NULL text: null. */
void record_bind_text(sqlite3_stmt *statement, int index, const char *text);

/* record-schema.c: makes the tables of a new file, brings an old one up, refuses what is not
 * ours. SQLITE_ERROR with *error set for a refusal. Comes before any other use of the
 * connection. */
int record_prepare_layout(Record *record, GError **error);

#endif
