/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-retention.c: whoever moves the stamp does the work of the day. It is moved first, so that of ten processes nine
 * go their way, and moved back by who did not finish. The lock is given back between two runs, and nobody else's is
 * waited for longer than the whole may take.
 */
#include "record/record-retention.h"

#include "base/clock.h"
#include "record/record-remove.h"

#define DAY (86400 * CLOCK_SECOND)
/* Pages given back in one transaction. */
#define PAGES_AT_ONCE "256"

typedef struct {
  Record *record;
  const RetentionRequest *request;
  gint64 deadline; /* clock_now */
  guint removed;
  gboolean remains; /* something is left to do */
} Work;

static gboolean time_is_over(const Work *work) {
  return clock_now() >= work->deadline;
}

/* ---- The stamp -------------------------------------------------------------------------------------------------- */

/* A clock that was wrong once must not put it off for years: a stamp of the future is none. */
#define IS_DUE "looked_at NOT BETWEEN ?1 - 86400000000000 AND ?1"

/* TRUE: the day's work is ours. Read before it is written, since nearly always there is nothing to do. */
static gboolean claim(const Work *work) {
  Record *record = work->record;
  gint64 due = 0;
  gboolean ours = FALSE;
  pthread_mutex_lock(&record->lock);
  record->patience = work->deadline;
  int code = record_ask(record, "SELECT 1 FROM retention WHERE " IS_DUE, work->request->now, &due);
  if (code == SQLITE_OK && due) {
    code = record_run_once(record, "UPDATE retention SET looked_at = ?1 WHERE " IS_DUE,
                           work->request->now);
    ours = code == SQLITE_OK && sqlite3_changes(record->db) > 0;
  }
  pthread_mutex_unlock(&record->lock);
  return ours;
}

/* What is left is gone on with soon, and not by each of many that come at once. */
static void give_back_stamp(const Work *work) {
  Record *record = work->record;
  pthread_mutex_lock(&record->lock);
  record->patience = MAX(work->deadline, clock_now() + 20 * CLOCK_MILLISECOND);
  record_run_once(
      record,
      "UPDATE retention SET looked_at = ?1 - 86400000000000 + 10000000000 WHERE looked_at = ?1",
      work->request->now);
  pthread_mutex_unlock(&record->lock);
}

/* ---- Runs --------------------------------------------------------------------------------------------------------- */

static int find_oldest(const Work *work, gint64 *ret_number) {
  int code = SQLITE_OK;
  /* By the index: what ended so late is not looked at. */
  sqlite3_stmt *statement =
      record_prepare(work->record,
                     "SELECT number FROM runs"
                     "  WHERE keep_days IS NOT NULL AND ended_at IS NOT NULL AND ended_at < ?1"
                     "    AND keep_days > 0 AND ended_at < ?2 - keep_days * 86400000000000"
                     "    AND status NOT IN (" RECORD_UNPRUNABLE ") ORDER BY ended_at LIMIT 1",
                     &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, work->request->now - work->request->days * DAY);
  sqlite3_bind_int64(statement, 2, work->request->now);
  code = sqlite3_step(statement);
  *ret_number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static int remove_oldest(const Work *work, gboolean *ret_gone) {
  gint64 number = 0;
  int code = find_oldest(work, &number);
  if (code == SQLITE_OK && number > 0) {
    code = record_remove_run(work->record, number, ret_gone);
  }
  return code == SQLITE_OK && *ret_gone
             ? record_run_once(work->record,
                               "UPDATE retention SET removed = removed + 1, removed_at = ?1",
                               work->request->now)
             : code;
}

/* First what an earlier run left, so that little lies about that is not needed any more. A run is found and removed where
 * nobody else writes, so that it is still what it was. */
static int remove_piece(const Work *work, gboolean *ret_gone, gboolean *ret_more) {
  Record *record = work->record;
  record->patience = work->deadline;
  int code = sqlite3_exec(record->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (code != SQLITE_OK) {
    return code;
  }
  code = record_sweep(record, ret_more);
  if (code == SQLITE_OK && !*ret_more) {
    code = remove_oldest(work, ret_gone);
    *ret_more = *ret_gone;
  }
  return record_settle(record, code);
}

static void remove_runs(Work *work) {
  gboolean more = TRUE;
  while (more && !work->remains) {
    gboolean gone = FALSE;
    more = FALSE;
    pthread_mutex_lock(&work->record->lock);
    record_removal_begin(work->record);
    int code = remove_piece(work, &gone, &more);
    record_removal_end(work->record);
    pthread_mutex_unlock(&work->record->lock);
    work->removed += gone && code == SQLITE_OK ? 1 : 0;
    work->remains = code != SQLITE_OK || (more && time_is_over(work));
  }
}

/* ---- The file ----------------------------------------------------------------------------------------------------- */

/* One step; *ret_left is the number of pages that are still unused. A file that cannot give pages back one by one keeps
 * them, to be used again; record prune writes it anew. */
static int shrink(Record *record, gint64 *ret_left) {
  gint64 mode = 0;
  int code = record_ask(record, "PRAGMA auto_vacuum", 0, &mode);
  if (code == SQLITE_OK && mode == 2) {
    code =
        sqlite3_exec(record->db, "PRAGMA incremental_vacuum(" PAGES_AT_ONCE ")", NULL, NULL, NULL);
    code = code == SQLITE_OK ? record_ask(record, "PRAGMA freelist_count", 0, ret_left) : code;
  }
  return code;
}

static void give_back_pages(Work *work) {
  gint64 before = 0;
  gint64 left = 0;
  do {
    before = left;
    left = 0;
    if (time_is_over(work)) {
      work->remains = TRUE;
      return;
    }
    pthread_mutex_lock(&work->record->lock);
    work->record->patience = work->deadline;
    int code = shrink(work->record, &left);
    pthread_mutex_unlock(&work->record->lock);
    work->remains = code != SQLITE_OK;
  } while (!work->remains && left > 0 && left != before);
}

/* ---- The whole ----------------------------------------------------------------------------------------------------- */

RetentionEnd record_retain(Record *record, const RetentionRequest *request, guint *ret_removed) {
  Work work = {.record = record, .request = request, .deadline = clock_deadline(request->most)};
  if (ret_removed) {
    *ret_removed = 0;
  }
  if (!claim(&work)) {
    return RETENTION_NOT_DUE;
  }
  remove_runs(&work);
  if (!work.remains) {
    give_back_pages(&work);
  }
  if (work.remains) {
    give_back_stamp(&work);
  }
  if (ret_removed) {
    *ret_removed = work.removed;
  }
  return work.remains ? RETENTION_UNFINISHED : RETENTION_DONE;
}

gboolean record_retention_facts(Record *record, RetentionFacts *ret_facts, GError **error) {
  RetentionFacts facts = {0};
  pthread_mutex_lock(&record->lock);
  int code = record_ask(record, "SELECT removed FROM retention", 0, &facts.removed);
  if (code == SQLITE_OK) {
    code =
        record_ask(record, "SELECT coalesce(removed_at, 0) FROM retention", 0, &facts.removed_at);
  }
  gboolean ok = code == SQLITE_OK || record_fail(record, "read", code, error);
  pthread_mutex_unlock(&record->lock);
  if (ok) {
    *ret_facts = facts;
  }
  return ok;
}
