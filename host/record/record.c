/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c: opening the file and writing to it. Each function that writes makes one transaction,
 * which is on the disk when it returns (WAL with synchronous = FULL: one fdatasync), or leaves no
 * trace.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/forked.h"
#include "record/budgets-private.h"
#include "record/record-chain.h"
#include "record/record-seal.h"

/* Longer than any honest writer holds the lock, even with a slow disk. */
#define PATIENCE (30 * CLOCK_SECOND)

/* ---- What all parts use ---------------------------------------------------------------------- */

gboolean record_no_run(const char *run_id, GError **error) {
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No run %s", run_id);
  return FALSE;
}

sqlite3_stmt *record_statement(Record *record, StatementId id, int *ret_code) {
  if (!record->statements[id]) {
    int code = sqlite3_prepare_v3(record->db, RECORD_SQL[id], -1, SQLITE_PREPARE_PERSISTENT,
                                  &record->statements[id], NULL);
    if (code != SQLITE_OK) {
      *ret_code = code;
      return NULL;
    }
  }
  record->patience = clock_deadline(record->longest);
  return record->statements[id];
}

void record_done(sqlite3_stmt *statement) {
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
}

int record_finish(sqlite3_stmt *statement) {
  int code = sqlite3_step(statement);
  record_done(statement);
  return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

int record_run_statement(Record *record, StatementId id) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, id, &code);
  return statement ? record_finish(statement) : code;
}

void record_bind_text(sqlite3_stmt *statement, int index, const char *text) {
  sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

/* ---- Events on their way in ------------------------------------------------------------------ */

typedef struct {
  gint64 at;
  char *type;
  const char *
      metadata; /* JSON text; NULL: none. The value's own where it is good, which outlives the row, */
  const char *payload;  /* since an event may hold megabytes */
  char *owned_metadata; /* else ours */
  char *owned_payload;
} Row;

static void row_free(Row *row) {
  if (row) {
    g_free(row->type);
    g_free(row->owned_metadata);
    g_free(row->owned_payload);
    g_free(row);
  }
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Row, row_free)

/* Borrowed from value, or from *ret_owned where its own text will not do. */
static const char *text_of(JsonObject *value, char **ret_owned) {
  size_t length = 0;
  const char *text = json_object_to_json_string_length(
      value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
  if (g_utf8_validate_len(text, length, NULL)) {
    return text;
  }
  *ret_owned = g_utf8_make_valid(text, (gssize)length);
  return *ret_owned;
}

static char *marker_for(const char *text, gsize length) {
  g_autofree char *digest = digest_hex(text, length);
  return g_strdup_printf("{\"capture\":\"truncated\",\"bytes\":%" G_GSIZE_FORMAT
                         ",\"sha256\":\"%s\"}",
                         length, digest);
}

static Row *row_new(const char *type, gint64 at, JsonObject *metadata, JsonObject *payload,
                    GError **error) {
  g_autoptr(Row) row = g_new0(Row, 1);
  row->at = at;
  row->type = g_utf8_make_valid(type, -1);
  row->metadata = metadata ? text_of(metadata, &row->owned_metadata) : NULL;
  row->payload = payload ? text_of(payload, &row->owned_payload) : NULL;
  if (row->metadata && strlen(row->metadata) > JSON_MAX_BYTES) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                "the facts of an event %s are too long for the record", type);
    return NULL;
  }
  gsize length = row->payload ? strlen(row->payload) : 0;
  if (length > JSON_MAX_BYTES) {
    char *marker = marker_for(row->payload, length);
    g_free(row->owned_payload);
    row->owned_payload = marker;
    row->payload = marker;
  }
  return g_steal_pointer(&row);
}

static int append_row(Record *record, RecordChain *chain, const Row *row) {
  return record_chain_append(record, chain, row->at, row->type, row->metadata, row->payload);
}

/* SQLITE_NOTFOUND when there is no such run. */
static int insert_rows(Record *record, const char *run_id, const Row *const *rows, gsize count) {
  RecordChain chain;
  int code = record_chain_read(record, run_id, &chain);
  for (gsize i = 0; code == SQLITE_OK && i < count; i++) {
    code = append_row(record, &chain, rows[i]);
  }
  return code == SQLITE_OK ? record_chain_write(record, &chain) : code;
}

int record_settle(Record *record, int code) {
  if (code == SQLITE_OK) {
    code = record_run_statement(record, STATEMENT_COMMIT);
  }
  /* SQLite may have rolled back by itself. */
  if (code != SQLITE_OK && !sqlite3_get_autocommit(record->db)) {
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  return code;
}

static gboolean write_rows(Record *record, const char *run_id, const GPtrArray *rows,
                           GError **error) {
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    const Row *const *all = (const Row *const *)rows->pdata;
    code = record_settle(record, insert_rows(record, run_id, all, rows->len));
  }
  gboolean ok = code == SQLITE_OK;
  if (code == SQLITE_NOTFOUND) {
    record_no_run(run_id, error);
  } else if (!ok) {
    record_fail(record, "write", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  return ok;
}

/* NULL when one is too long. Owned. */
static GPtrArray *rows_of(JsonObject *events, GError **error) {
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)row_free);
  gint64 now = clock_wall();
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    const char *type = json_get_text(event, "type");
    Row *row = row_new(type ? type : "", json_get_int(event, "at", now),
                       json_get(event, "metadata"), json_get(event, "payload"), error);
    if (!row) {
      return NULL;
    }
    g_ptr_array_add(rows, row);
  }
  return g_steal_pointer(&rows);
}

gboolean record_append_many(Record *record, const char *run_id, JsonObject *events,
                            GError **error) {
  g_autoptr(GPtrArray) rows = rows_of(events, error);
  return rows && (rows->len == 0 || write_rows(record, run_id, rows, error));
}

int record_insert_events(Record *record, const char *run_id, JsonObject *events) {
  g_autoptr(GPtrArray) rows = rows_of(events, NULL);
  return record_insert_rows(record, run_id, rows);
}

GPtrArray *record_rows(JsonObject *events) {
  return events ? rows_of(events, NULL) : g_ptr_array_new();
}

int record_insert_rows(Record *record, const char *run_id, const GPtrArray *rows) {
  if (!rows) {
    return SQLITE_TOOBIG;
  }
  const Row *const *all = (const Row *const *)rows->pdata;
  return rows->len == 0 ? SQLITE_OK : insert_rows(record, run_id, all, rows->len);
}

gboolean record_append(Record *record, const char *run_id, const char *type, JsonObject *metadata,
                       JsonObject *payload, GError **error) {
  g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)row_free);
  Row *row = row_new(type, clock_wall(), metadata, payload, error);
  if (!row) {
    return FALSE;
  }
  g_ptr_array_add(rows, row);
  return write_rows(record, run_id, rows, error);
}

/* ---- The beginning and the end of a run ------------------------------------------------------ */

static int insert_run(Record *record, gint64 number, const char *run_id, const char *trace_id,
                      gint64 at, const char *header, gint64 keep_days) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_INSERT_RUN, &code);
  if (!statement) {
    return code;
  }
  RecordOwner self = record_owner_self();
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, trace_id);
  sqlite3_bind_int64(statement, 3, at);
  record_bind_text(statement, 4, header);
  sqlite3_bind_int64(statement, 5, self.pid);
  sqlite3_bind_int64(statement, 6, self.start);
  record_bind_text(statement, 7, self.boot);
  record_bind_text(statement, 8, self.namespace);
  sqlite3_bind_int64(statement, 9, number);
  sqlite3_bind_int64(statement, 10, keep_days);
  code = record_finish(statement);
  record_owner_clear(&self);
  return code;
}

/* The run, its place in the chain of runs, and its first event. */
static int begin_run(Record *record, const char *run_id, const char *trace_id, const char *header,
                     gint64 keep_days, const Row *row) {
  gint64 last = 0;
  guint8 link[DIGEST_BYTES];
  guint8 content[DIGEST_BYTES];
  RecordChain chain;
  int code = record_chain_last(record, &last, link);
  if (code == SQLITE_OK) {
    code = insert_run(record, last + 1, run_id, trace_id, row->at, header, keep_days);
  }
  if (code == SQLITE_OK) {
    chain_run_content(row->at, (ChainText){run_id, -1}, (ChainText){trace_id, -1},
                      (ChainText){header, -1}, content);
    chain_next(link, last + 1, content, link);
    code = record_chain_begin(record, last + 1, link, &chain);
  }
  if (code == SQLITE_OK) {
    code = append_row(record, &chain, row);
  }
  return code == SQLITE_OK ? record_chain_write(record, &chain) : code;
}

gboolean record_begin(Record *record, const char *run_id, const char *trace_id, JsonObject *header,
                      GError **error) {
  return record_begin_life(record, run_id, trace_id, header, NULL, error);
}

/* Whether a commit waits for the disk; outside of a transaction. */
static int set_waiting(Record *record, gboolean waits) {
  return sqlite3_exec(record->db,
                      waits ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", NULL,
                      NULL, NULL);
}

/* With the lock; one transaction. */
static int begin_with_life(Record *record, const char *run_id, const char *trace_id,
                           const char *header, const RecordLife *life, const Row *row) {
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code != SQLITE_OK) {
    return code;
  }
  code = begin_run(record, run_id, trace_id, header, life ? life->keep_days : 0, row);
  if (code == SQLITE_OK && life) {
    code = record_insert_life(record, run_id, life, row->at);
  }
  return record_settle(record, code);
}

gboolean record_begin_life(Record *record, const char *run_id, const char *trace_id,
                           JsonObject *header, const RecordLife *life, GError **error) {
  g_autofree char *owned = NULL;
  const char *text = text_of(header, &owned);
  g_autoptr(JsonObject) facts = json_object_new_object();
  json_add_take(facts, "header", json_object_get(header));
  g_autoptr(Row) row = row_new("run_started", clock_wall(), facts, NULL, error);
  if (!row) {
    return FALSE;
  }
  gboolean lazy = life && life->lazy;
  pthread_mutex_lock(&record->lock);
  int code = lazy ? set_waiting(record, FALSE) : SQLITE_OK;
  if (code == SQLITE_OK) {
    code = begin_with_life(record, run_id, trace_id, text, life, row);
  }
  if (lazy) {
    int restored = set_waiting(record, TRUE);
    code = code == SQLITE_OK ? restored : code;
  }
  gboolean ok = code == SQLITE_OK || record_fail(record, "write", code, error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

/* Within a transaction: a run that is running, or has the status `also`, gets this status and
 * this event. SQLITE_NOTFOUND when there is no such run. */
static int end_run(Record *record, const char *run_id, const char *status, const char *also,
                   const Row *row) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_END_RUN, &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, status);
  sqlite3_bind_int64(statement, 3, row->at);
  record_bind_text(statement, 4, also);
  code = record_finish(statement);
  gboolean ended = sqlite3_changes(record->db) > 0;
  if (code == SQLITE_OK && ended) {
    code = budgets_release(record, run_id);
  }
  if (code == SQLITE_OK) {
    code = ended ? insert_rows(record, run_id, &row, 1) : SQLITE_NOTFOUND;
  }
  return code;
}

int record_end_within(Record *record, const char *run_id, const char *status, const char *also,
                      const char *reason, const char *termination) {
  g_autoptr(JsonObject) facts = json_object_new_object();
  json_add_text(facts, "status", status);
  json_add_text(facts, "reason", reason);
  if (termination) {
    json_add_text(facts, "termination_reason", termination);
  }
  g_autoptr(Row) row = row_new("run_ended", clock_wall(), facts, NULL, NULL);
  return row ? end_run(record, run_id, status, also, row) : SQLITE_TOOBIG;
}

static gboolean tell_unended(Record *record, const char *run_id, GError **error) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_RUN_STATUS, &code);
  if (!statement) {
    return record_fail(record, "read", code, error);
  }
  record_bind_text(statement, 1, run_id);
  if (sqlite3_step(statement) == SQLITE_ROW) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD, "run %s has ended already (%s)",
                run_id, (const char *)sqlite3_column_text(statement, 0));
  } else {
    record_no_run(run_id, error);
  }
  record_done(statement);
  return FALSE;
}

gboolean record_end(Record *record, const char *run_id, const char *status, const char *reason,
                    GError **error) {
  g_autoptr(JsonObject) facts = json_object_new_object();
  json_add_text(facts, "status", status);
  json_add_text(facts, "reason", reason);
  g_autoptr(Row) row = row_new("run_ended", clock_wall(), facts, NULL, error);
  if (!row) {
    return FALSE;
  }
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = record_settle(record, end_run(record, run_id, status, "interrupted", row));
  }
  gboolean ok =
      code == SQLITE_OK || (code == SQLITE_NOTFOUND ? tell_unended(record, run_id, error)
                                                    : record_fail(record, "write", code, error));
  pthread_mutex_unlock(&record->lock);
  return ok;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Shorter and more often than SQLite's own waiting: a commit takes a fraction of a millisecond. */
static int wait_for_lock(void *user, int tries) {
  const Record *record = user;
  if (clock_now() >= record->patience) {
    return 0;
  }
  gulong longest = 100ul << MIN(tries, 5);
  g_usleep(longest / 2 + (gulong)g_random_int_range(0, (gint32)longest));
  return 1;
}

/* The default place is made whole. Of a place that somebody typed only the last folder: the rest would be a mistake. */
static gboolean make_folder(const char *path, const char *folder, GError **error) {
  g_autofree char *usual = record_default_path();
  gboolean whole = strcmp(path, usual) == 0;
  if ((whole ? g_mkdir_with_parents(folder, 0700) : mkdir(folder, 0700)) == 0 || errno == EEXIST) {
    return TRUE;
  }
  int code = errno;
  g_autofree char *above = g_path_get_dirname(folder);
  if (code == ENOENT && g_file_test(above, G_FILE_TEST_IS_DIR)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                "could not open the record %s: no folder can be made in %s", path, above);
  } else if (!whole && code == ENOENT) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                "could not open the record %s: there is no folder %s", path, above);
  } else {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD, "could not open the record %s: %s",
                path, g_strerror(code));
  }
  return FALSE;
}

/* mknod and not open: closing a descriptor of the file would drop the locks that another Record
 * of this process has on it. */
static gboolean make_file(const char *path, GError **error) {
  struct stat about;
  if (stat(path, &about) == 0) {
    if (!S_ISREG(about.st_mode)) {
      g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD,
                  "%s is not a record of sandhost: it is not a regular file", path);
    }
    return S_ISREG(about.st_mode);
  }
  g_autofree char *folder = g_path_get_dirname(path);
  if (!make_folder(path, folder, error)) {
    return FALSE;
  }
  if (mknod(path, S_IFREG | 0600, 0) < 0 && errno != EEXIST) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD, "could not open the record %s: %s",
                path, g_strerror(errno));
    return FALSE;
  }
  return TRUE;
}

/* The file may come from anywhere: nothing in it is run. */
static void configure(Record *record) {
  sqlite3 *db = record->db;
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  record_log_watch(record);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
}

static int prepare(Record *record, GError **error) {
  configure(record);
  sqlite3_busy_handler(record->db, wait_for_lock, record);
  /* Making a file, and its change to WAL, do not wait for each other's locks: they are tried
   * again here. */
  record->patience = clock_deadline(record->longest);
  int code;
  int tries = 0;
  do {
    code = record->read_only ? record_check_layout(record, error)
                             : record_prepare_layout(record, error);
  } while ((code & 0xff) == SQLITE_BUSY && wait_for_lock(record, tries++));
  return code;
}

static int open_database(Record *record, gboolean to_read, GError **error) {
  /* An absolute path has no special meaning for SQLite, as ":memory:" has. */
  g_autofree char *folder = g_path_is_absolute(record->path) ? NULL : g_get_current_dir();
  g_autofree char *path =
      folder ? g_build_filename(folder, record->path, NULL) : g_strdup(record->path);
  int code = sqlite3_open_v2(
      path, &record->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
  if (code == SQLITE_OK && sqlite3_db_readonly(record->db, "main") == 1) {
    code = to_read ? record_reopen_read_only(record, path, error) : SQLITE_READONLY;
  }
  if (code == SQLITE_OK) {
    code = prepare(record, error);
  }
  if (code == SQLITE_OK) {
    code = sqlite3_exec(record->db,
                        "PRAGMA synchronous = FULL; PRAGMA cache_size = -512;"
                        "PRAGMA secure_delete = FAST",
                        NULL, NULL, NULL);
  }
  return code;
}

/* Ids of the runs whose process is gone. */
static int find_dead(Record *record, GPtrArray *ids) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_RUNNING, &code);
  if (!statement) {
    return code;
  }
  RecordOwner self = {0};
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_autofree char *boot = g_strdup((const char *)sqlite3_column_text(statement, 3));
    g_autofree char *namespace = g_strdup((const char *)sqlite3_column_text(statement, 4));
    const RecordOwner owner = {.pid = sqlite3_column_int64(statement, 1),
                               .start = sqlite3_column_int64(statement, 2),
                               .boot = boot,
                               .namespace = namespace};
    if (!self.boot) {
      self = record_owner_self();
    }
    if (boot && namespace && record_owner_is_gone(&owner, &self)) {
      g_ptr_array_add(ids, g_strdup((const char *)sqlite3_column_text(statement, 0)));
    }
  }
  record_done(statement);
  record_owner_clear(&self);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void free_seals(gpointer seals) {
  json_object_put(seals);
}

/* Of each run what its commands had printed: read before the transaction, since it may be much. Owned. */
static GHashTable *seals_of(Record *record, const GPtrArray *ids) {
  GHashTable *seals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_seals);
  for (guint i = 0; i < ids->len; i++) {
    const char *id = g_ptr_array_index(ids, i);
    g_hash_table_insert(seals, g_strdup(id), record_seals(record, id));
  }
  return seals;
}

/* What cannot be marked now, with a full disk, is marked by the next who opens; reading must go
 * on. */
static int mark_dead(Record *record) {
  g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
  int code = find_dead(record, ids);
  if (code != SQLITE_OK || ids->len == 0) {
    return code;
  }
  g_autoptr(Row) row = row_new("run_interrupted", clock_wall(), NULL, NULL, NULL);
  row->metadata = "{\"cause\":\"process_gone\"}";
  g_autoptr(GHashTable) seals = seals_of(record, ids);
  if (record_run_statement(record, STATEMENT_BEGIN) != SQLITE_OK) {
    return SQLITE_OK;
  }
  /* Again, where nobody else writes: another process may have taken one of them over. */
  g_ptr_array_set_size(ids, 0);
  code = find_dead(record, ids);
  for (guint i = 0; code == SQLITE_OK && i < ids->len; i++) {
    const char *id = g_ptr_array_index(ids, i);
    gpointer events = NULL;
    if (!g_hash_table_lookup_extended(seals, id, NULL, &events)) {
      continue; /* it died just now, and is marked by the next who opens */
    }
    code = record_insert_seals(record, id, events);
    if (code == SQLITE_OK) {
      code = end_run(record, id, "interrupted", "running", row);
    }
    if (code == SQLITE_NOTFOUND) { /* another process was first */
      code = SQLITE_OK;
    }
  }
  record_settle(record, code);
  return SQLITE_OK;
}

/* SQLite knows what this process has locked by a table in memory, which a child finds as it was at the fork: it would
 * take its parent's locks for its own, and wait for ever for a thread that it does not have. */
static gboolean check_forked(GError **error) {
  if (!forked_is_spoilt()) {
    return TRUE;
  }
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFLICT, RECORD_FORKED_TEXT);
  return FALSE;
}

static Record *open_record(const char *path, gboolean to_read, GError **error) {
  if (!check_forked(error) || !make_file(path, error)) {
    return NULL;
  }
  g_autoptr(Record) record = g_new0(Record, 1);
  forked_hold();
  g_autoptr(GError) refusal = NULL;
  pthread_mutex_init(&record->lock, NULL);
  record->path = g_strdup(path);
  record->longest = PATIENCE;
  int code = open_database(record, to_read, &refusal);
  if (code == SQLITE_OK && !record->read_only) {
    code = mark_dead(record);
  }
  if (refusal) {
    g_propagate_error(error, g_steal_pointer(&refusal));
    return NULL;
  }
  if (code != SQLITE_OK) {
    record_fail(record, "open", code, error);
    return NULL;
  }
  return g_steal_pointer(&record);
}

Record *record_open(const char *path, GError **error) {
  return open_record(path, FALSE, error);
}

Record *record_open_to_read(const char *path, GError **error) {
  return open_record(path, TRUE, error);
}

void record_close(Record *record) {
  if (!record) {
    return;
  }
  for (gsize i = 0; i < STATEMENT_COUNT; i++) {
    sqlite3_finalize(record->statements[i]);
  }
  sqlite3_close(record->db);
  forked_release();
  pthread_mutex_destroy(&record->lock);
  g_free(record->path);
  g_free(record);
}

char *record_default_path(void) {
  const char *state = g_getenv("SANDHOST_STATE_DIR");
  if (state && *state) {
    return g_build_filename(state, "record.db", NULL);
  }
  /* The XDG rules let a path that is not absolute count as unset. */
  const char *base = g_getenv("XDG_STATE_HOME");
  if (base && g_path_is_absolute(base)) {
    return g_build_filename(base, "sandhost", "record.db", NULL);
  }
  const char *home = g_getenv("HOME");
  if (home && g_path_is_absolute(home)) {
    return g_build_filename(home, ".local", "state", "sandhost", "record.db", NULL);
  }
  return g_strdup("/var/lib/sandhost/record.db");
}
