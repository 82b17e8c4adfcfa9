/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approvals.c: the lives of runs and the asks that wait, each change one transaction. Everything is read again within
 * it (BEGIN IMMEDIATE), so that of several processes that decide or resume at once one is first, and the others see what
 * it did.
 */
#include "record/approvals.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/record-private.h"

/* ---- Statements -------------------------------------------------------------------------------------------------- */

static sqlite3_stmt *prepare(Record *record, const char *sql, int *ret_code) {
  sqlite3_stmt *statement = NULL;
  *ret_code = sqlite3_prepare_v2(record->db, sql, -1, &statement, NULL);
  return statement;
}

/* Runs it to its end and frees it. */
static int finish(sqlite3_stmt *statement) {
  int code = sqlite3_step(statement);
  sqlite3_finalize(statement);
  return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

static JsonObject *json_column(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return text ? json_parse("the record", text, (gsize)sqlite3_column_bytes(statement, column), NULL)
              : NULL;
}

/* The end of a transaction that may have refused: then *refusal is why, and nothing was done. */
static gboolean settle(Record *record, int code, const char *run_id, GError *take_refusal,
                       GError **error) {
  g_autoptr(GError) refusal = take_refusal;
  code = record_settle(record, refusal ? SQLITE_ABORT : code);
  if (refusal) {
    g_propagate_error(error, g_steal_pointer(&refusal));
    return FALSE;
  }
  if (code == SQLITE_NOTFOUND) {
    return record_no_run(run_id, error);
  }
  return code == SQLITE_OK || record_fail(record, "write", code, error);
}

static void conflict(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void conflict(GError **error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFLICT, text);
}

static void add_time(JsonObject *object, const char *key, gint64 wall) {
  g_autofree char *text = clock_format(wall);
  json_add_text(object, key, text);
}

/* One event of now into the run. */
static int add_event(Record *record, const char *run_id, const char *type,
                     JsonObject *take_metadata) {
  g_autoptr(JsonObject) events = json_object_new_array();
  JsonObject *event = json_object_new_object();
  json_add_text(event, "type", type);
  json_add_take(event, "metadata", take_metadata);
  json_object_array_add(events, event);
  return record_insert_events(record, run_id, events);
}

/* ---- Lives ------------------------------------------------------------------------------------------------------- */

int record_insert_life(Record *record, const char *run_id, const RecordLife *life, gint64 at) {
  int code = SQLITE_OK;
  g_autofree char *request = life->request ? json_text(life->request) : NULL;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_INSERT_LIFE, &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, life->owner);
  sqlite3_bind_int64(statement, 3, life->lease_seconds);
  sqlite3_bind_int64(statement, 4, at);
  record_bind_text(statement, 5, request);
  return record_finish(statement);
}

static int holds(Record *record, const char *run_id, const char *owner, gboolean *ret_held) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_HOLDS, &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, owner);
  code = sqlite3_step(statement);
  *ret_held = code == SQLITE_ROW;
  record_done(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Within a transaction: SQLITE_OK and *refusal set when somebody else holds the run. */
static int check_held(Record *record, const char *run_id, const char *owner, GError **refusal) {
  gboolean held = FALSE;
  int code = holds(record, run_id, owner, &held);
  if (code == SQLITE_OK && !held) {
    conflict(refusal, "Run %s was ended, or taken over, from outside", run_id);
  }
  return code;
}

gboolean record_heartbeat(Record *record, const char *run_id, const char *owner, gboolean beat,
                          gboolean *ret_held, GError **error) {
  gboolean held = FALSE;
  pthread_mutex_lock(&record->lock);
  int code = holds(record, run_id, owner, &held);
  if (code == SQLITE_OK && held && beat) {
    sqlite3_stmt *statement = prepare(record,
                                      "UPDATE lives SET heartbeat_at = ?3 WHERE owner = ?2"
                                      "  AND run = (SELECT number FROM runs WHERE run_id = ?1)",
                                      &code);
    if (statement) {
      record->patience = clock_deadline(CLOCK_SECOND);
      record_bind_text(statement, 1, run_id);
      record_bind_text(statement, 2, owner);
      sqlite3_bind_int64(statement, 3, clock_wall());
      code = finish(statement);
    }
  }
  gboolean ok = code == SQLITE_OK || record_fail(record, "write", code, error);
  pthread_mutex_unlock(&record->lock);
  if (ok) {
    *ret_held = held;
  }
  return ok;
}

/* A run's row and its life, as far as they matter here. */
typedef struct {
  gint64 number;
  char *status;
  char *trace_id;
  gboolean lives; /* it has a life */
  gint64 attempt;
  gint64 lease;
  gint64 heartbeat_at;
  JsonObject *request;
  JsonObject *error;
  RecordOwner owner; /* the process */
} Life;

static void life_clear(Life *life) {
  g_free(life->status);
  g_free(life->trace_id);
  json_object_put(life->request);
  json_object_put(life->error);
  record_owner_clear(&life->owner);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Life, life_clear)

static char *text_column(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return g_utf8_make_valid(text ? text : "", -1);
}

/* SQLITE_NOTFOUND: no such run. */
static int read_life(Record *record, const char *run_id, Life *ret_life) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      prepare(record,
              "SELECT number, status, trace_id, owner_pid, owner_start, owner_boot,"
              "       owner_namespace, attempt, lease, heartbeat_at, request, error"
              "  FROM runs LEFT JOIN lives ON lives.run = runs.number WHERE run_id = ?1",
              &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    *ret_life = (Life){
        .number = sqlite3_column_int64(statement, 0),
        .status = text_column(statement, 1),
        .trace_id = text_column(statement, 2),
        .owner = {.pid = sqlite3_column_int64(statement, 3),
                  .start = sqlite3_column_int64(statement, 4),
                  .boot = text_column(statement, 5),
                  .namespace = text_column(statement, 6)},
        .lives = sqlite3_column_type(statement, 7) != SQLITE_NULL,
        .attempt = sqlite3_column_int64(statement, 7),
        .lease = sqlite3_column_int64(statement, 8),
        .heartbeat_at = sqlite3_column_int64(statement, 9),
        .request = json_column(statement, 10),
        .error = json_column(statement, 11),
    };
  }
  sqlite3_finalize(statement);
  return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_NOTFOUND : code;
}

/* ---- Approvals, read --------------------------------------------------------------------------------------------- */

/* Of one run (number) or, with 0, of all; each with run_id and run_status. An approval whose time is over is told as
 * expired, whether or not anybody has written that yet. */
static int read_approvals(Record *record, gint64 number, gboolean all, JsonObject *array) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      prepare(record,
              "SELECT content, approvals.status, run_id, runs.status, expires_at"
              "  FROM approvals JOIN runs ON runs.number = approvals.run"
              "  WHERE (?1 = 0 OR run = ?1) AND (?2 OR (approvals.status = 'pending'"
              "    AND runs.status IN ('running', 'interrupted', 'awaiting_approval')))"
              "  ORDER BY approvals.number",
              &code);
  if (!statement) {
    return code;
  }
  gint64 now = clock_wall();
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_int(statement, 2, all);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_autofree char *status = text_column(statement, 1);
    g_autofree char *run_id = text_column(statement, 2);
    g_autofree char *run_status = text_column(statement, 3);
    JsonObject *approval = json_column(statement, 0);
    gboolean late = strcmp(status, "pending") == 0 && sqlite3_column_int64(statement, 4) <= now;
    if (!json_object_is_type(approval, json_type_object) || (late && !all)) {
      json_object_put(approval);
      continue;
    }
    json_add_text(approval, "status", late ? "expired" : status);
    json_add_text(approval, "run_id", run_id);
    json_add_text(approval, "run_status", run_status);
    json_object_array_add(array, approval);
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_approvals(Record *record, const char *run_id, gboolean all, GError **error) {
  g_autoptr(JsonObject) array = json_object_new_array();
  g_auto(Life) life = {0};
  pthread_mutex_lock(&record->lock);
  record->patience = clock_deadline(30 * CLOCK_SECOND);
  int code = run_id ? read_life(record, run_id, &life) : SQLITE_OK;
  if (code == SQLITE_OK) {
    code = read_approvals(record, life.number, all, array);
  }
  gboolean ok =
      code == SQLITE_OK || (code == SQLITE_NOTFOUND ? record_no_run(run_id, error)
                                                    : record_fail(record, "read", code, error));
  pthread_mutex_unlock(&record->lock);
  return ok ? g_steal_pointer(&array) : NULL;
}

JsonObject *record_life(Record *record, const char *run_id, GError **error) {
  g_auto(Life) life = {0};
  g_autoptr(JsonObject) object = json_object_new_object();
  JsonObject *approvals = json_object_new_array();
  json_add_take(object, "approvals", approvals);
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = read_life(record, run_id, &life);
    if (code == SQLITE_OK) {
      code = read_approvals(record, life.number, TRUE, approvals);
    }
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  gboolean ok =
      code == SQLITE_OK || (code == SQLITE_NOTFOUND ? record_no_run(run_id, error)
                                                    : record_fail(record, "read", code, error));
  pthread_mutex_unlock(&record->lock);
  if (!ok) {
    return NULL;
  }
  json_add_text(object, "run_id", run_id);
  json_add_text(object, "trace_id", life.trace_id);
  json_add_text(object, "status", life.status);
  json_add_int(object, "attempt", life.attempt);
  json_add_int(object, "lease_seconds", life.lease);
  if (life.lives) {
    add_time(object, "heartbeat_at", life.heartbeat_at);
  }
  json_add_take(object, "request", json_object_get(life.request));
  json_add_take(object, "error", json_object_get(life.error));
  return g_steal_pointer(&object);
}

/* ---- Approvals, written ------------------------------------------------------------------------------------------ */

static int insert_approval(Record *record, const char *run_id, JsonObject *approval) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      prepare(record,
              "INSERT INTO approvals (run, approval_id, status, expires_at, content)"
              "  SELECT number, ?2, 'pending', ?3, ?4 FROM runs WHERE run_id = ?1",
              &code);
  if (!statement) {
    return code;
  }
  g_autofree char *content = json_text(approval);
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, json_get_text(approval, "approval_id"));
  sqlite3_bind_int64(statement, 3, json_get_int(approval, "expires", 0));
  record_bind_text(statement, 4, content);
  return finish(statement);
}

/* Of this run; *ret_approval stays NULL when there is none. */
static int read_approval(Record *record, const char *run_id, const char *approval_id,
                         JsonObject **ret_approval) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      prepare(record,
              "SELECT content, approvals.status FROM approvals JOIN runs"
              "  ON runs.number = approvals.run WHERE run_id = ?1 AND approval_id = ?2",
              &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, approval_id);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    g_autofree char *status = text_column(statement, 1);
    JsonObject *approval = json_column(statement, 0);
    if (json_object_is_type(approval, json_type_object)) {
      json_add_text(approval, "status", status);
      *ret_approval = approval;
    } else {
      json_object_put(approval);
    }
  }
  sqlite3_finalize(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Writes what an approval has become, and the event approval_resolved. */
static int write_approval(Record *record, const char *run_id, JsonObject *approval) {
  static const char *const FACTS[] = {"approval_id", "tool_call_id",  "capability",
                                      "status",      "approver",      "note",
                                      "decision",    "request_digest"};
  int code = SQLITE_OK;
  sqlite3_stmt *statement = prepare(
      record, "UPDATE approvals SET status = ?2, content = ?3 WHERE approval_id = ?1", &code);
  if (!statement) {
    return code;
  }
  g_autofree char *content = json_text(approval);
  record_bind_text(statement, 1, json_get_text(approval, "approval_id"));
  record_bind_text(statement, 2, json_get_text(approval, "status"));
  record_bind_text(statement, 3, content);
  code = finish(statement);
  if (code != SQLITE_OK) {
    return code;
  }
  JsonObject *facts = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(FACTS); i++) {
    json_add_take(facts, FACTS[i], json_object_get(json_get(approval, FACTS[i])));
  }
  return add_event(record, run_id, "approval_resolved", facts);
}

static int expire(Record *record, const char *run_id, JsonObject *approval) {
  json_add_text(approval, "status", "expired");
  return write_approval(record, run_id, approval);
}

/* Each approved one becomes used, or *refusal says which is not. */
static int use_approvals(Record *record, const char *run_id, const GPtrArray *ids,
                         GError **refusal) {
  int code = SQLITE_OK;
  for (guint i = 0; ids && code == SQLITE_OK && !*refusal && i < ids->len; i++) {
    const char *id = g_ptr_array_index(ids, i);
    g_autoptr(JsonObject) approval = NULL;
    code = read_approval(record, run_id, id, &approval);
    const char *status = json_get_text(approval, "status");
    if (code == SQLITE_OK && g_strcmp0(status, "approved") != 0) {
      conflict(refusal, "Approval %s is already %s", id, status ? status : "gone");
    } else if (code == SQLITE_OK) {
      json_add_text(approval, "status", "used");
      add_time(approval, "used_at", clock_wall());
      json_add_text(approval, "used_for_approval_id", id);
      code = write_approval(record, run_id, approval);
    }
  }
  return code;
}

gboolean record_commit(Record *record, const char *run_id, const char *owner,
                       const GPtrArray *approval_ids, JsonObject *events, GError **error) {
  g_autoptr(GError) refusal = NULL;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  gboolean begun = code == SQLITE_OK;
  if (code == SQLITE_OK) {
    code = check_held(record, run_id, owner, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = use_approvals(record, run_id, approval_ids, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_events(record, run_id, events);
  }
  gboolean ok = begun ? settle(record, code, run_id, g_steal_pointer(&refusal), error)
                      : record_fail(record, "write", code, error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

static int supersede(Record *record, const char *run_id, const GPtrArray *ids) {
  int code = SQLITE_OK;
  for (guint i = 0; ids && code == SQLITE_OK && i < ids->len; i++) {
    g_autoptr(JsonObject) approval = NULL;
    code = read_approval(record, run_id, g_ptr_array_index(ids, i), &approval);
    if (code == SQLITE_OK && g_strcmp0(json_get_text(approval, "status"), "approved") == 0) {
      code = expire(record, run_id, approval);
    }
  }
  return code;
}

gboolean record_suspend(Record *record, const char *run_id, const char *owner,
                        const GPtrArray *approvals, const GPtrArray *superseded, JsonObject *events,
                        GError **error) {
  g_autoptr(GError) refusal = NULL;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  gboolean begun = code == SQLITE_OK;
  if (code == SQLITE_OK) {
    code = check_held(record, run_id, owner, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = supersede(record, run_id, superseded);
    for (guint i = 0; code == SQLITE_OK && i < approvals->len; i++) {
      code = insert_approval(record, run_id, g_ptr_array_index(approvals, i));
    }
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_events(record, run_id, events);
  }
  gboolean ok = begun ? settle(record, code, run_id, g_steal_pointer(&refusal), error)
                      : record_fail(record, "write", code, error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

gboolean record_end_life(Record *record, const char *run_id, const char *owner, const char *status,
                         const char *reason, GError **error) {
  g_autoptr(GError) refusal = NULL;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  gboolean begun = code == SQLITE_OK;
  if (code == SQLITE_OK) {
    code = check_held(record, run_id, owner, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_end_within(record, run_id, status, "interrupted", reason);
  }
  gboolean ok = begun ? settle(record, code, run_id, g_steal_pointer(&refusal), error)
                      : record_fail(record, "write", code, error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

/* Within a transaction: what keeps this approval from being decided. One that is too late is written down as expired,
 * which is kept: *ret_expired. */
static int check_pending(Record *record, const char *run_id, const char *approval_id,
                         JsonObject *approval, gboolean *ret_expired, GError **refusal) {
  const char *status = json_get_text(approval, "status");
  gboolean late = json_get_int(approval, "expires", 0) <= clock_wall();
  int code = SQLITE_OK;
  *ret_expired = FALSE;
  if (!approval) {
    g_set_error(refusal, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No approval %s on run %s",
                approval_id, run_id);
  } else if (g_strcmp0(status, "pending") == 0 && !late) {
    return SQLITE_OK;
  } else if (g_strcmp0(status, "pending") == 0 || g_strcmp0(status, "expired") == 0) {
    conflict(refusal, "Approval %s expired at %s", approval_id,
             json_get_text(approval, "expires_at"));
    if (g_strcmp0(status, "pending") == 0) {
      code = expire(record, run_id, approval);
      *ret_expired = code == SQLITE_OK;
    }
  } else {
    conflict(refusal, "Approval %s is already %s", approval_id, status);
  }
  return code;
}

static void put_decision(JsonObject *approval, const RecordDecision *decision) {
  if (decision->edit) {
    decision->edit(decision->user, approval);
  }
  json_add_text(approval, "status", decision->approve ? "approved" : "denied");
  json_add_text(approval, "decision", decision->approve ? "approve" : "deny");
  json_add_text(approval, "approver", decision->approver);
  json_add_text(approval, "note", decision->note);
  add_time(approval, "decided_at", clock_wall());
}

gboolean record_decide(Record *record, const char *run_id, const char *approval_id,
                       const RecordDecision *decision, JsonObject **ret_approval, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_autoptr(JsonObject) approval = NULL;
  g_auto(Life) life = {0};
  gboolean expired = FALSE;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  gboolean begun = code == SQLITE_OK;
  if (code == SQLITE_OK) {
    code = read_life(record, run_id, &life);
  }
  if (code == SQLITE_OK) {
    code = read_approval(record, run_id, approval_id, &approval);
  }
  if (code == SQLITE_OK) {
    code = check_pending(record, run_id, approval_id, approval, &expired, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    put_decision(approval, decision);
    code = write_approval(record, run_id, approval);
  }
  if (begun && expired && record_settle(record, code) == SQLITE_OK) {
    g_propagate_error(error, g_steal_pointer(&refusal));
    begun = FALSE;
  } else if (!begun) {
    record_fail(record, "write", code, error);
  }
  gboolean ok = begun && settle(record, code, run_id, g_steal_pointer(&refusal), error);
  pthread_mutex_unlock(&record->lock);
  if (ok && ret_approval) {
    *ret_approval = g_steal_pointer(&approval);
  }
  return ok;
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

/* The ids that wait, joined; NULL: none. Owned. */
static char *waiting_ids(JsonObject *approvals) {
  GString *ids = g_string_new(NULL);
  for (gsize i = 0; i < json_object_array_length(approvals); i++) {
    JsonObject *approval = json_object_array_get_idx(approvals, i);
    if (g_strcmp0(json_get_text(approval, "status"), "pending") == 0) {
      g_string_append_printf(ids, "%s%s", ids->len ? ", " : "",
                             json_get_text(approval, "approval_id"));
    }
  }
  return g_string_free(ids, ids->len == 0);
}

static gboolean is_live(const Life *life) {
  if (!life->lives) {
    return TRUE; /* the process that began it has nobody who could take it over */
  }
  RecordOwner self = record_owner_self();
  gboolean gone = record_owner_is_gone(&life->owner, &self);
  record_owner_clear(&self);
  return !gone && clock_wall() - life->heartbeat_at < life->lease * CLOCK_SECOND;
}

/* The table of behaviour 6.6. *ret_cause is constant. */
static void check_resumable(const Life *life, const char *run_id, JsonObject *approvals,
                            const char **ret_cause, GError **refusal) {
  gboolean running = strcmp(life->status, "running") == 0;
  gboolean waiting = strcmp(life->status, "awaiting_approval") == 0;
  if (!running && !waiting && strcmp(life->status, "interrupted") != 0) {
    conflict(refusal, "Run %s is %s; only a waiting or stopped run can resume", run_id,
             life->status);
    return;
  }
  if (running && is_live(life)) {
    conflict(refusal, "Run %s is running in another process (its heartbeat is current)", run_id);
    return;
  }
  if (!life->request) {
    conflict(refusal, "Run %s cannot be resumed: its request was never stored", run_id);
    return;
  }
  g_autofree char *ids = waiting_ids(approvals);
  if (ids) {
    conflict(refusal, "Run %s is still waiting for approval: %s", run_id, ids);
    return;
  }
  *ret_cause = running ? "recovered_after_lapsed_lease" : waiting ? "approval" : "interrupted";
}

/* Under the lock, within a transaction. */
static int examine(Record *record, const char *run_id, Life *ret_life, JsonObject *approvals,
                   const char **ret_cause, GError **refusal) {
  int code = read_life(record, run_id, ret_life);
  if (code == SQLITE_OK) {
    code = read_approvals(record, ret_life->number, TRUE, approvals);
  }
  if (code == SQLITE_OK) {
    check_resumable(ret_life, run_id, approvals, ret_cause, refusal);
  }
  return code;
}

gboolean record_can_resume(Record *record, const char *run_id, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_autoptr(JsonObject) approvals = json_object_new_array();
  g_auto(Life) life = {0};
  const char *cause = NULL;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = examine(record, run_id, &life, approvals, &cause, &refusal);
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  gboolean ok = !refusal && code == SQLITE_OK;
  if (refusal) {
    g_propagate_error(error, g_steal_pointer(&refusal));
  } else if (code == SQLITE_NOTFOUND) {
    record_no_run(run_id, error);
  } else if (!ok) {
    record_fail(record, "read", code, error);
  }
  pthread_mutex_unlock(&record->lock);
  return ok;
}

static int move_run(Record *record, gint64 number) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      prepare(record,
              "UPDATE runs SET status = 'running', ended_at = NULL, owner_pid = ?2,"
              "  owner_start = ?3, owner_boot = ?4, owner_namespace = ?5 WHERE number = ?1",
              &code);
  if (!statement) {
    return code;
  }
  RecordOwner self = record_owner_self();
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_int64(statement, 2, self.pid);
  sqlite3_bind_int64(statement, 3, self.start);
  record_bind_text(statement, 4, self.boot);
  record_bind_text(statement, 5, self.namespace);
  code = finish(statement);
  record_owner_clear(&self);
  return code;
}

static int move_life(Record *record, gint64 number, const char *owner, gint64 lease) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = prepare(record,
                                    "UPDATE lives SET owner = ?2, attempt = attempt + 1,"
                                    "  lease = ?3, heartbeat_at = ?4 WHERE run = ?1",
                                    &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  record_bind_text(statement, 2, owner);
  sqlite3_bind_int64(statement, 3, lease);
  sqlite3_bind_int64(statement, 4, clock_wall());
  return finish(statement);
}

/* What nobody decided in time is over; read_approvals tells it as expired already. */
static int expire_late(Record *record, const char *run_id, JsonObject *approvals) {
  int code = SQLITE_OK;
  for (gsize i = 0; code == SQLITE_OK && i < json_object_array_length(approvals); i++) {
    const char *id = json_get_text(json_object_array_get_idx(approvals, i), "approval_id");
    g_autoptr(JsonObject) approval = NULL;
    code = read_approval(record, run_id, id, &approval);
    if (code == SQLITE_OK && g_strcmp0(json_get_text(approval, "status"), "pending") == 0) {
      code = expire(record, run_id, approval);
    }
  }
  return code;
}

static int take_run(Record *record, const char *run_id, const Life *life, JsonObject *approvals,
                    const char *owner, const char *trace_id, gint64 lease, const char *cause) {
  int code = move_run(record, life->number);
  if (code == SQLITE_OK) {
    code = move_life(record, life->number, owner, lease);
  }
  if (code == SQLITE_OK) {
    code = expire_late(record, run_id, approvals);
  }
  if (code != SQLITE_OK) {
    return code;
  }
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "cause", cause);
  json_add_text(facts, "trigger", "explicit");
  json_add_text(facts, "trace_id", trace_id);
  json_add_int(facts, "attempt", life->attempt + 1);
  return add_event(record, run_id, "run_resumed", facts);
}

gboolean record_take(Record *record, const char *run_id, const char *owner, const char *trace_id,
                     gint64 lease_seconds, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_autoptr(JsonObject) approvals = json_object_new_array();
  g_auto(Life) life = {0};
  const char *cause = NULL;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  gboolean begun = code == SQLITE_OK;
  if (code == SQLITE_OK) {
    code = examine(record, run_id, &life, approvals, &cause, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = take_run(record, run_id, &life, approvals, owner, trace_id, lease_seconds, cause);
  }
  gboolean ok = begun ? settle(record, code, run_id, g_steal_pointer(&refusal), error)
                      : record_fail(record, "write", code, error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

/* ---- Ending from outside ----------------------------------------------------------------------------------------- */

static gboolean has_ended(const char *status) {
  static const char *const OPEN[] = {"running", "interrupted", "awaiting_approval",
                                     "awaiting_budget", NULL};
  return !g_strv_contains(OPEN, status);
}

static int put_error(Record *record, gint64 number, const char *reason) {
  int code = SQLITE_OK;
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_text(object, "type", "RunEndedOutside");
  json_add_text(object, "message", reason);
  g_autofree char *text = json_text(object);
  /* Nobody has this name: whoever held the run holds it no more. */
  sqlite3_stmt *statement =
      prepare(record, "UPDATE lives SET owner = '', error = ?2 WHERE run = ?1", &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  record_bind_text(statement, 2, text);
  return finish(statement);
}

gboolean record_abandon(Record *record, const char *run_id, const char *status, const char *reason,
                        gboolean *ret_changed, GError **error) {
  g_auto(Life) life = {0};
  gboolean changed = FALSE;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  gboolean begun = code == SQLITE_OK;
  if (code == SQLITE_OK) {
    code = read_life(record, run_id, &life);
  }
  if (code == SQLITE_OK && !has_ended(life.status)) {
    changed = TRUE;
    code = put_error(record, life.number, reason);
    if (code == SQLITE_OK) {
      code = record_end_within(record, run_id, status, life.status, reason);
    }
  }
  gboolean ok =
      begun ? settle(record, code, run_id, NULL, error) : record_fail(record, "write", code, error);
  pthread_mutex_unlock(&record->lock);
  if (ok) {
    *ret_changed = changed;
  }
  return ok;
}
