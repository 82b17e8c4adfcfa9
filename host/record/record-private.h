/* SPDX-License-Identifier: Apache-2.0 */
/* record-private.h: the open record, as the files of this room share it. */
#ifndef SANDHOST_RECORD_RECORD_PRIVATE_H
#define SANDHOST_RECORD_RECORD_PRIVATE_H

#include <pthread.h>
#include <sqlite3.h>

#include "record/approvals.h"
#include "record/record-owner.h"
#include "record/record.h"

typedef enum {
  STATEMENT_BEGIN,
  STATEMENT_BEGIN_READ,
  STATEMENT_COMMIT,
  STATEMENT_ROLLBACK,
  STATEMENT_INSERT_RUN,
  STATEMENT_INSERT_EVENT,
  STATEMENT_LAST_LINK,
  STATEMENT_MOVE_LINK,
  STATEMENT_INSERT_CHAIN,
  STATEMENT_CHAIN,
  STATEMENT_MOVE_HEAD,
  STATEMENT_END_RUN,
  STATEMENT_RUN_STATUS,
  STATEMENT_RUNNING,
  STATEMENT_NEWEST,
  STATEMENT_PREFIX,
  STATEMENT_RUN,
  STATEMENT_EVENTS,
  STATEMENT_RUNS,
  STATEMENT_HOLDS,
  STATEMENT_INSERT_LIFE,
  STATEMENT_INSERT_OUTPUT,
  STATEMENT_INSERT_CHUNK,
  STATEMENT_OUTPUT,
  STATEMENT_CHUNK,
  STATEMENT_OUTPUT_END,
  STATEMENT_EXECUTIONS,
  STATEMENT_PAYLOAD,
  STATEMENT_VERIFY_RUN,
  STATEMENT_VERIFY_EVENTS,
  STATEMENT_VERIFY_OUTPUTS,
  STATEMENT_ANCHOR,
  STATEMENT_NUMBERS,
  STATEMENT_ORPHANS,
  STATEMENT_STRAYS,
  STATEMENT_PRUNABLE,
  STATEMENT_INSERT_PRUNED,
  STATEMENT_COUNT,
} StatementId;

/* The states of a run that is not over, and stays in the record however old it is. */
#define RECORD_UNPRUNABLE "'running', 'awaiting_approval', 'awaiting_budget'"

/* Those of a run that is not over, or may go on. */
#define RECORD_OPEN "'running', 'interrupted', 'awaiting_approval', 'awaiting_budget'"

/* record-sql.c: the text of each. */
extern const char *const RECORD_SQL[STATEMENT_COUNT];

struct Record {
  char *path;
  pthread_mutex_t lock; /* guards all below: one statement at a time, one transaction at a time */
  sqlite3 *db;
  sqlite3_stmt *statements[STATEMENT_COUNT]; /* prepared when first needed, then kept */
  gboolean read_only;                        /* what writes fails */
  gint64 longest;                            /* nanoseconds that a lock is waited for */
  gint64 patience;                           /* until when; clock_now */
  int log_pages;                             /* of the write-ahead log, as of our last commit */
  guint64 commits;                           /* of ours */
  gboolean
      wipes; /* something was overwritten that nobody is to find, and the log may still hold it */
};

/* Functions that return an int return an SQLite code, SQLITE_OK when all is well. */

/* record-failure.c. "could not {what} the record {path}: {what SQLite says of the code}", or who holds it. Returns FALSE. */
gboolean record_fail(Record *record, const char *what, int code, GError **error);
/* NOT_FOUND "No run {id}". Returns FALSE. */
gboolean record_no_run(const char *run_id, GError **error);

/* Under the lock: the statement, ready to be bound, to be given back with record_done; NULL with
 * *ret_code set when it cannot be prepared. */
sqlite3_stmt *record_statement(Record *record, StatementId id, int *ret_code);
void record_done(sqlite3_stmt *statement);
/* Steps once and gives the statement back: for those without results. */
int record_finish(sqlite3_stmt *statement);
/* record-log.c. From here on commits look after the log. */
void record_log_watch(Record *record);
/* Moves a log that is full into the file, without waiting for anybody. With the lock. */
void record_tidy(Record *record);
/* With the lock. yes: what is deleted from here on is overwritten with zeros wherever it stood, which costs writing pages
 * that fall free; no: where that costs nothing. */
void record_overwrite(Record *record, gboolean yes);
/* After a commit, where record->wipes: the log holds nothing of before, unless somebody reads just now. */
void record_wipe_log(Record *record);
/* A statement without parameters and results. */
int record_run_statement(Record *record, StatementId id);
/* Ends the transaction: with what was done when code is SQLITE_OK, else without a trace. Returns
 * the code that counts. */
int record_settle(Record *record, int code);
/* Within a transaction: appends events ({type, metadata, payload, at}), and ends a
 * run that is running or has the status `also` (SQLITE_NOTFOUND where there is no such);
 * termination: its termination_reason, NULL for none. */
int record_insert_events(Record *record, const char *run_id, JsonObject *events);
/* The same in two steps: events may be large, and are made into rows before the transaction begins, lest others wait. NULL
 * events: none. NULL rows: one is too long. Owned. */
GPtrArray *record_rows(JsonObject *events);
int record_insert_rows(Record *record, const char *run_id, const GPtrArray *rows);
int record_end_within(Record *record, const char *run_id, const char *status, const char *also,
                      const char *reason, const char *termination);
/* In lives.c, for record_begin_life: the life of a run whose row has just been made. */
int record_insert_life(Record *record, const char *run_id, const RecordLife *life, gint64 at);
/* The text must live until the statement is given back. NULL text: null. */
void record_bind_text(sqlite3_stmt *statement, int index, const char *text);

/* record-transaction.c. A statement for one use, to be stepped and finalized; NULL with *ret_code. */
sqlite3_stmt *record_prepare(Record *record, const char *sql, int *ret_code);
/* Runs it to its end and frees it. */
int record_finish_once(sqlite3_stmt *statement);
/* A statement for one use with the one parameter ?1; and one that answers with a number (0: with no row), and may have
 * none. */
int record_run_once(Record *record, const char *sql, gint64 number);
int record_ask(Record *record, const char *sql, gint64 number, gint64 *ret_answer);
/* What stands in a column; both owned, NULL where it is no JSON, and "" for null. */
JsonObject *record_json_column(sqlite3_stmt *statement, int column);
char *record_text_column(sqlite3_stmt *statement, int column);
/* The end of a transaction that may have refused: then take_refusal is why, and nothing was done. */
gboolean record_settle_refused(Record *record, int code, const char *run_id, GError *take_refusal,
                               GError **error);
void record_conflict(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
void record_add_time(JsonObject *object, const char *key, gint64 wall);
/* One event of now into the run. */
int record_add_event(Record *record, const char *run_id, const char *type,
                     JsonObject *take_metadata);

/* record-read.c: the JSON in a column; NULL for none and for JSON's null. FALSE when the text is not what was
 * written. *ret_value is owned. */
gboolean record_read_json(sqlite3_stmt *statement, int column, JsonObject **ret_value);

/* record-read-only.c: reopens a file that cannot be written, in the place of record->db. path is absolute. SQLITE_ERROR with
 * *error set where it says more. */
int record_reopen_read_only(Record *record, const char *path, GError **error);

/* record-schema.c: whether the layout is that of this program; *error is set where it is not. */
int record_check_layout(Record *record, GError **error);

/* record-schema.c: makes the tables of a new file, brings an old one up, refuses what is not
 * ours. SQLITE_ERROR with *error set for a refusal. Comes before any other use of the
 * connection. */
int record_prepare_layout(Record *record, GError **error);

#endif
