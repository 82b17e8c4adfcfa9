/* SPDX-License-Identifier: Apache-2.0 */
/* record-prune.c: run by run, in short transactions, so that nobody waits long; then the file gets smaller. */
#include "record/record-prune.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/record-remove.h"
#include "record/record-weight.h"

#define PATIENCE (30 * CLOCK_SECOND)
/* Pages given back in one transaction; each is written to the log first, so fewer where the disk has little room. */
#define PAGES_AT_ONCE "2000"
#define FEW_PAGES "50"
/* What the log takes while runs are removed, with some to spare. */
#define ROOM_FOR_LOG (1u << 20)

typedef struct {
  gint64 number;
  gint64 at; /* when it ended, or began */
  char *run_id;
} Candidate;

static void candidate_free(Candidate *candidate) {
  g_free(candidate->run_id);
  g_free(candidate);
}

static int find_candidates(Record *record, gint64 keep, GPtrArray *candidates) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_PRUNABLE, &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, keep);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Candidate *candidate = g_new0(Candidate, 1);
    candidate->number = sqlite3_column_int64(statement, 0);
    candidate->run_id = g_strdup((const char *)sqlite3_column_text(statement, 1));
    candidate->at = sqlite3_column_int64(statement, 2);
    g_ptr_array_add(candidates, candidate);
  }
  record_done(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static int read_used(Record *record, gint64 *ret_bytes) {
  gint64 pages = 0;
  gint64 unused = 0;
  gint64 size = 0;
  int code = record_ask(record, "PRAGMA page_count", 0, &pages);
  code = code == SQLITE_OK ? record_ask(record, "PRAGMA freelist_count", 0, &unused) : code;
  code = code == SQLITE_OK ? record_ask(record, "PRAGMA page_size", 0, &size) : code;
  if (code == SQLITE_OK) {
    *ret_bytes = (pages - unused) * size;
  }
  return code;
}

/* ---- Room --------------------------------------------------------------------------------------- */

static gboolean is_full(int code) {
  return (code & 0xff) == SQLITE_FULL;
}

/* Moves the log into the file, and gives its room back where nobody reads it. What fails shows in what is written next. */
static void make_room(Record *record) {
  record->patience = clock_deadline(CLOCK_SECOND); /* a reader may be there for long */
  sqlite3_wal_checkpoint_v2(record->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/* The log moves into the file before it goes, and is written to before anything gets smaller. */
static void tell_full(const Record *record, GError **error) {
  g_autofree char *log = g_strconcat(record->path, "-wal", NULL);
  struct stat about;
  gint64 bytes = stat(log, &about) == 0 ? (gint64)about.st_size : 0;
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
              "could not prune the record %s: its disk is full, and pruning needs some room there "
              "itself: free %" G_GINT64_FORMAT " KiB on it, and prune again",
              record->path, (bytes + ROOM_FOR_LOG) / 1024);
}

/* ---- One run -------------------------------------------------------------------------------------- */

/* What removed runs left, also those that an earlier process removed: a transaction for each piece, so that whoever
 * else writes gets its turn. */
static int sweep(Record *record) {
  int code = SQLITE_OK;
  gboolean more = TRUE;
  while (code == SQLITE_OK && more) {
    code = record_run_statement(record, STATEMENT_BEGIN);
    if (code == SQLITE_OK) {
      code = record_settle(record, record_sweep(record, &more));
      record_tidy(record);
    }
  }
  return code;
}

static int remove_one(Record *record, gint64 number, gboolean *ret_gone) {
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = record_settle(record, record_remove_run(record, number, ret_gone));
    record_tidy(record);
  }
  return code == SQLITE_OK ? sweep(record) : code;
}

/* ---- All of them ------------------------------------------------------------------------------------ */

static gboolean may_go(const PruneRequest *request, const Candidate *candidate, gint64 used) {
  if (request->older_than == 0 && request->max_bytes == 0) {
    return TRUE;
  }
  return (request->older_than != 0 && candidate->at < request->older_than) ||
         (request->max_bytes != 0 && used > request->max_bytes);
}

static void tell_run(const Candidate *candidate, JsonObject *runs) {
  g_autofree char *valid = g_utf8_make_valid(candidate->run_id, -1);
  g_autofree char *at = clock_format(candidate->at);
  JsonObject *run = json_object_new_object();
  json_add_text(run, "run_id", valid);
  json_add_text(run, "ended_at", at);
  json_object_array_add(runs, run);
}

static int remove_all(Record *record, const PruneRequest *request, const GPtrArray *candidates,
                      JsonObject *runs, gint64 *used) {
  int code = SQLITE_OK;
  for (guint i = 0; code == SQLITE_OK && i < candidates->len; i++) {
    const Candidate *candidate = g_ptr_array_index(candidates, i);
    gboolean gone = FALSE;
    if (!may_go(request, candidate, *used)) {
      continue;
    }
    code = remove_one(record, candidate->number, &gone);
    if (code == SQLITE_OK && gone) {
      tell_run(candidate, runs);
      code = read_used(record, used);
    }
  }
  return code;
}

/* What would go, in the order in which it would, with the bytes that each would free. */
static int weigh_all(Record *record, const PruneRequest *request, const GPtrArray *candidates,
                     JsonObject *runs, gint64 *used) {
  int code = SQLITE_OK;
  for (guint i = 0; code == SQLITE_OK && i < candidates->len; i++) {
    const Candidate *candidate = g_ptr_array_index(candidates, i);
    gint64 bytes = 0;
    if (!may_go(request, candidate, *used)) {
      continue;
    }
    code = record_weigh_run(record, candidate->number, &bytes);
    if (code == SQLITE_OK) {
      tell_run(candidate, runs);
      *used = MAX(*used - bytes, 0);
    }
  }
  return code;
}

static gboolean has_unused(Record *record) {
  gint64 unused = 0;
  return record_ask(record, "PRAGMA freelist_count", 0, &unused) == SQLITE_OK && unused > 0;
}

/* A file that cannot give pages back one by one is written anew, and then can. */
static int shrink(Record *record) {
  gint64 mode = 0;
  gint64 unused = 0;
  gint64 before = 0;
  int code = record_ask(record, "PRAGMA auto_vacuum", 0, &mode);
  record->patience = clock_deadline(PATIENCE);
  if (code == SQLITE_OK && mode != 2) {
    code = sqlite3_exec(record->db, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", NULL, NULL, NULL);
  }
  code = code == SQLITE_OK ? record_ask(record, "PRAGMA freelist_count", 0, &unused) : code;
  while (code == SQLITE_OK && unused > 0 && unused != before) {
    before = unused;
    record->patience = clock_deadline(PATIENCE);
    code =
        sqlite3_exec(record->db, "PRAGMA incremental_vacuum(" PAGES_AT_ONCE ")", NULL, NULL, NULL);
    if (is_full(code)) {
      make_room(record);
      code = sqlite3_exec(record->db, "PRAGMA incremental_vacuum(" FEW_PAGES ")", NULL, NULL, NULL);
      record_tidy(record);
    }
    code = code == SQLITE_OK ? record_ask(record, "PRAGMA freelist_count", 0, &unused) : code;
  }
  if (code == SQLITE_OK) {
    record->patience = clock_deadline(CLOCK_SECOND); /* a reader may be there for long */
    code = sqlite3_exec(record->db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
  }
  return code;
}

static int prune(Record *record, const PruneRequest *request, JsonObject *runs, gint64 *ret_before,
                 gint64 *ret_after) {
  g_autoptr(GPtrArray) candidates = g_ptr_array_new_with_free_func((GDestroyNotify)candidate_free);
  int code = read_used(record, ret_before);
  code = code == SQLITE_OK ? sweep(record) : code;
  code = code == SQLITE_OK ? read_used(record, ret_after) : code;
  code = code == SQLITE_OK ? find_candidates(record, request->keep, candidates) : code;
  if (code == SQLITE_OK) {
    code = remove_all(record, request, candidates, runs, ret_after);
  }
  return code;
}

/* Reads one state of the record, and keeps nobody from writing meanwhile. */
static int foresee(Record *record, const PruneRequest *request, JsonObject *runs,
                   gint64 *ret_before, gint64 *ret_after) {
  g_autoptr(GPtrArray) candidates = g_ptr_array_new_with_free_func((GDestroyNotify)candidate_free);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  code = code == SQLITE_OK ? read_used(record, ret_before) : code;
  *ret_after = *ret_before;
  code = code == SQLITE_OK ? find_candidates(record, request->keep, candidates) : code;
  if (code == SQLITE_OK) {
    code = weigh_all(record, request, candidates, runs, ret_after);
  }
  if (!sqlite3_get_autocommit(record->db)) {
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  return code;
}

static int prune_now(Record *record, const PruneRequest *request, JsonObject *runs,
                     gint64 *ret_before, gint64 *ret_after) {
  record_removal_begin(record);
  make_room(record);
  int code = prune(record, request, runs, ret_before, ret_after);
  record_removal_end(record);
  return code;
}

JsonObject *record_prune(Record *record, const PruneRequest *request, GError **error) {
  gint64 before = 0;
  gint64 after = 0;
  g_autoptr(JsonObject) result = json_object_new_object();
  JsonObject *runs = json_object_new_array();
  json_add_take(result, "runs", runs);
  pthread_mutex_lock(&record->lock);
  int code = request->dry_run ? foresee(record, request, runs, &before, &after)
                              : prune_now(record, request, runs, &before, &after);
  if (is_full(code)) {
    tell_full(record, error);
  } else if (code != SQLITE_OK) {
    record_fail(record, "prune", code, error);
  }
  int shrunk =
      code == SQLITE_OK && !request->dry_run && has_unused(record) ? shrink(record) : SQLITE_OK;
  pthread_mutex_unlock(&record->lock);
  json_add_int(result, "bytes_before", before);
  json_add_int(result, "bytes_after", after);
  json_add_text(result, "warning", shrunk == SQLITE_OK ? NULL : sqlite3_errstr(shrunk));
  return code == SQLITE_OK ? g_steal_pointer(&result) : NULL;
}
