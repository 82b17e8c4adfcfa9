/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lives.c: who holds a run, whether it lives, who may take it over, and its end from outside. Each change is one
 * transaction, and everything is read again within it (BEGIN IMMEDIATE), so that of several processes one is first, and
 * the others see what it did.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/asks.h"
#include "record/budgets-private.h"
#include "record/record-seal.h"

/* ---- A life ------------------------------------------------------------------------------------------------------- */

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

int life_check_held(Record *record, const char *run_id, const char *owner, GError **refusal) {
  gboolean held = FALSE;
  int code = holds(record, run_id, owner, &held);
  if (code == SQLITE_OK && !held) {
    record_conflict(refusal, "Run %s was ended, or taken over, from outside", run_id);
  }
  return code;
}

gboolean record_heartbeat(Record *record, const char *run_id, const char *owner, gboolean beat,
                          gboolean *ret_held, GError **error) {
  gboolean held = FALSE;
  pthread_mutex_lock(&record->lock);
  int code = holds(record, run_id, owner, &held);
  if (code == SQLITE_OK && held && beat) {
    sqlite3_stmt *statement =
        record_prepare(record,
                       "UPDATE lives SET heartbeat_at = ?3 WHERE owner = ?2"
                       "  AND run = (SELECT number FROM runs WHERE run_id = ?1)",
                       &code);
    if (statement) {
      record->patience = clock_deadline(CLOCK_SECOND);
      record_bind_text(statement, 1, run_id);
      record_bind_text(statement, 2, owner);
      sqlite3_bind_int64(statement, 3, clock_wall());
      code = record_finish_once(statement);
    }
  }
  gboolean ok = code == SQLITE_OK || record_fail(record, "write", code, error);
  record_tidy(record);
  pthread_mutex_unlock(&record->lock);
  if (ok) {
    *ret_held = held;
  }
  return ok;
}

gboolean life_is_open(const char *status) {
  static const char *const OPEN[] = {"running", "interrupted", "awaiting_approval",
                                     "awaiting_budget", NULL};
  return g_strv_contains(OPEN, status);
}

void life_clear(Life *life) {
  g_free(life->status);
  g_free(life->trace_id);
  json_object_put(life->request);
  json_object_put(life->error);
  record_owner_clear(&life->owner);
}

int life_read(Record *record, const char *run_id, Life *ret_life) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
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
        .status = record_text_column(statement, 1),
        .trace_id = record_text_column(statement, 2),
        .owner = {.pid = sqlite3_column_int64(statement, 3),
                  .start = sqlite3_column_int64(statement, 4),
                  .boot = record_text_column(statement, 5),
                  .namespace = record_text_column(statement, 6)},
        .lives = sqlite3_column_type(statement, 7) != SQLITE_NULL,
        .attempt = sqlite3_column_int64(statement, 7),
        .lease = sqlite3_column_int64(statement, 8),
        .heartbeat_at = sqlite3_column_int64(statement, 9),
        .request = record_json_column(statement, 10),
        .error = record_json_column(statement, 11),
    };
  }
  sqlite3_finalize(statement);
  return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_NOTFOUND : code;
}

JsonObject *life_header(Record *record, const char *run_id, int *ret_code) {
  JsonObject *header = NULL;
  sqlite3_stmt *statement = record_statement(record, STATEMENT_RUN, ret_code);
  if (!statement) {
    return NULL;
  }
  record_bind_text(statement, 1, run_id);
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    header = record_json_column(statement, 5);
  }
  record_done(statement);
  *ret_code = code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_NOTFOUND : code;
  return header;
}

JsonObject *record_life(Record *record, const char *run_id, GError **error) {
  g_auto(Life) life = {0};
  g_autoptr(JsonObject) object = json_object_new_object();
  JsonObject *approvals = json_object_new_array();
  JsonObject *requests = json_object_new_array();
  g_autoptr(JsonObject) header = NULL;
  json_add_take(object, "approvals", approvals);
  json_add_take(object, "budget_requests", requests);
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = life_read(record, run_id, &life);
    if (code == SQLITE_OK) {
      code = approvals_read(record, life.number, TRUE, approvals);
    }
    if (code == SQLITE_OK) {
      code = budget_requests_read(record, life.number, TRUE, requests);
    }
    if (code == SQLITE_OK) {
      header = life_header(record, run_id, &code);
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
    record_add_time(object, "heartbeat_at", life.heartbeat_at);
  }
  json_add_take(object, "privacy", json_object_get(json_get(header, "privacy")));
  json_add_take(object, "request", json_object_get(life.request));
  json_add_take(object, "error", json_object_get(life.error));
  return g_steal_pointer(&object);
}

/* Nothing of the run is run again, so nothing is kept for it. */
static int forget_inputs(Record *record, const char *run_id) {
  int code = SQLITE_OK;
  record_overwrite(record, TRUE);
  sqlite3_stmt *statement =
      record_prepare(record,
                     "UPDATE lives SET request = json_remove(request, '$.command')"
                     "  WHERE run = (SELECT number FROM runs WHERE run_id = ?1)"
                     "    AND json_valid(request) AND instr(request, '\"command\"') > 0",
                     &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  code = record_finish_once(statement);
  if (code == SQLITE_OK) {
    code = approvals_forget_inputs(record, run_id);
  }
  code = code == SQLITE_OK ? budget_requests_forget(record, run_id, NULL) : code;
  record_overwrite(record, FALSE);
  return code;
}

gboolean record_end_life_after(Record *record, const char *run_id, const char *owner,
                               JsonObject *events, const RecordEnd *end, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_autoptr(GPtrArray) rows = record_rows(events);
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = life_check_held(record, run_id, owner, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_rows(record, run_id, rows);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_end_within(record, run_id, end->status, "interrupted", end->reason,
                             end->termination);
  }
  if (code == SQLITE_OK && !refusal && !life_is_open(end->status)) {
    code = forget_inputs(record, run_id);
  }
  gboolean ok = record_settle_refused(record, code, run_id, g_steal_pointer(&refusal), error);
  record_wipe_log(record);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

gboolean record_end_life(Record *record, const char *run_id, const char *owner, const char *status,
                         const char *reason, GError **error) {
  const RecordEnd end = {.status = status, .reason = reason};
  return record_end_life_after(record, run_id, owner, NULL, &end, error);
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

/* What a run may wait for, as it stands in the record. */
typedef struct {
  JsonObject *approvals; /* owned */
  JsonObject *budgets;   /* requests; owned */
  gboolean room;         /* there is room again for some that nobody has decided */
} Waits;

static void waits_clear(Waits *waits) {
  json_object_put(waits->approvals);
  json_object_put(waits->budgets);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Waits, waits_clear)

/* The ids (at key) of those that have the status, joined; NULL: none. Owned. */
static char *ids_with(JsonObject *asks, const char *status, const char *key) {
  GString *ids = g_string_new(NULL);
  for (gsize i = 0; i < json_object_array_length(asks); i++) {
    JsonObject *ask = json_object_array_get_idx(asks, i);
    if (g_strcmp0(json_get_text(ask, "status"), status) == 0) {
      g_string_append_printf(ids, "%s%s", ids->len ? ", " : "", json_get_text(ask, key));
    }
  }
  return g_string_free(ids, ids->len == 0);
}

/* Where a run lives whose process is there and says so; NULL: it does not. Constant. */
static const char *home_of(const Life *life) {
  RecordOwner self = record_owner_self();
  gboolean gone = record_owner_is_gone(&life->owner, &self);
  gboolean ours = record_owner_is_same(&life->owner, &self);
  record_owner_clear(&self);
  /* The process that began one without a life has nobody who could take it over. */
  gboolean live =
      !life->lives || (!gone && clock_wall() - life->heartbeat_at < life->lease * CLOCK_SECOND);
  return !live ? NULL : ours ? "this process" : "another process";
}

static const char *cause_of(const Life *life, const Waits *waits) {
  if (strcmp(life->status, "running") == 0) {
    return "recovered_after_lapsed_lease";
  }
  if (strcmp(life->status, "awaiting_approval") == 0) {
    return "approval";
  }
  g_autofree char *denied = ids_with(waits->budgets, "denied", "request_id");
  return strcmp(life->status, "awaiting_budget") != 0 ? "interrupted"
         : denied                                     ? "budget_denied"
         : waits->room                                ? "budget_room"
                                                      : "budget_grant";
}

/* The table of behaviour 6.6. *ret_cause is constant. */
static void check_resumable(const Life *life, const char *run_id, const Waits *waits,
                            gboolean takes, const char **ret_cause, GError **refusal) {
  if (!life_is_open(life->status)) {
    record_conflict(refusal, "Run %s is %s; only a waiting or stopped run can resume", run_id,
                    life->status);
    return;
  }
  const char *home = strcmp(life->status, "running") == 0 ? home_of(life) : NULL;
  if (home) {
    record_conflict(refusal, "Run %s is running in %s (its heartbeat is current)", run_id, home);
    return;
  }
  if (!life->request) {
    record_conflict(refusal, "Run %s cannot be resumed: its request was never stored", run_id);
    return;
  }
  g_autofree char *approvals = ids_with(waits->approvals, "pending", "approval_id");
  g_autofree char *budgets = ids_with(waits->budgets, "pending", "request_id");
  if (approvals) {
    record_conflict(refusal, "Run %s is still waiting for approval: %s", run_id, approvals);
    return;
  }
  if (budgets && takes) {
    record_conflict(refusal, "Run %s is still waiting for a budget decision: %s", run_id, budgets);
    return;
  }
  *ret_cause = cause_of(life, waits);
}

/* Under the lock, within a transaction. takes: to take the run, under these limits; else only whether that is worth
 * trying. */
static int examine(Record *record, const char *run_id, gboolean takes, const GArray *limits,
                   Life *ret_life, Waits *ret_waits, const char **ret_cause, GError **refusal) {
  ret_waits->approvals = json_object_new_array();
  ret_waits->budgets = json_object_new_array();
  int code = life_read(record, run_id, ret_life);
  if (code == SQLITE_OK) {
    code = approvals_read(record, ret_life->number, TRUE, ret_waits->approvals);
  }
  if (code == SQLITE_OK) {
    code = budget_requests_read(record, ret_life->number, TRUE, ret_waits->budgets);
  }
  if (code == SQLITE_OK) {
    code = budget_requests_reconsider(record, limits, ret_waits->budgets, &ret_waits->room);
  }
  if (code == SQLITE_OK) {
    check_resumable(ret_life, run_id, ret_waits, takes, ret_cause, refusal);
  }
  if (code == SQLITE_OK && !*refusal) {
    code = asks_check(record, run_id, NULL, FALSE, refusal);
  }
  return code;
}

gboolean record_can_resume(Record *record, const char *run_id, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_auto(Waits) waits = {0};
  g_auto(Life) life = {0};
  const char *cause = NULL;
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = examine(record, run_id, FALSE, NULL, &life, &waits, &cause, &refusal);
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
      record_prepare(record,
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
  code = record_finish_once(statement);
  record_owner_clear(&self);
  return code;
}

static int move_life(Record *record, gint64 number, const char *owner, gint64 lease) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(record,
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
  return record_finish_once(statement);
}

static int take_run(Record *record, const char *run_id, const Life *life, const Waits *waits,
                    const char *owner, const char *trace_id, gint64 lease, const char *cause) {
  int code = move_run(record, life->number);
  if (code == SQLITE_OK) {
    code = move_life(record, life->number, owner, lease);
  }
  if (code == SQLITE_OK) {
    code = approvals_expire_late(record, run_id, waits->approvals);
  }
  if (code == SQLITE_OK) {
    code = budget_requests_close(record, run_id, waits->budgets);
  }
  if (code == SQLITE_OK) { /* what a process that was never told as dead has left */
    code = budgets_release(record, run_id);
  }
  if (code != SQLITE_OK) {
    return code;
  }
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "cause", cause);
  json_add_text(facts, "trigger", "explicit");
  json_add_text(facts, "trace_id", trace_id);
  json_add_int(facts, "attempt", life->attempt + 1);
  return record_add_event(record, run_id, "run_resumed", facts);
}

gboolean record_take(Record *record, const char *run_id, const char *owner, const char *trace_id,
                     gint64 lease_seconds, const GArray *limits, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_auto(Waits) waits = {0};
  g_auto(Life) life = {0};
  const char *cause = NULL;
  pthread_mutex_lock(&record->lock);
  g_autoptr(JsonObject) seals = record_seals(record, run_id);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = examine(record, run_id, TRUE, limits, &life, &waits, &cause, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_seals(record, run_id, seals);
  }
  if (code == SQLITE_OK && !refusal) {
    code = take_run(record, run_id, &life, &waits, owner, trace_id, lease_seconds, cause);
  }
  gboolean ok = record_settle_refused(record, code, run_id, g_steal_pointer(&refusal), error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

/* ---- Ending from outside ----------------------------------------------------------------------------------------- */

static int put_error(Record *record, gint64 number, const char *reason) {
  int code = SQLITE_OK;
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_text(object, "type", "RunEndedOutside");
  json_add_text(object, "message", reason);
  g_autofree char *text = json_text(object);
  /* Nobody has this name: whoever held the run holds it no more. */
  sqlite3_stmt *statement =
      record_prepare(record, "UPDATE lives SET owner = '', error = ?2 WHERE run = ?1", &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  record_bind_text(statement, 2, text);
  return record_finish_once(statement);
}

gboolean record_abandon(Record *record, const char *run_id, const char *status, const char *reason,
                        gboolean *ret_changed, GError **error) {
  g_auto(Life) life = {0};
  gboolean changed = FALSE;
  pthread_mutex_lock(&record->lock);
  g_autoptr(JsonObject) seals = record_seals(record, run_id);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = life_read(record, run_id, &life);
  }
  if (code == SQLITE_OK && life_is_open(life.status)) {
    changed = TRUE;
    code = record_insert_seals(record, run_id, seals);
    if (code == SQLITE_OK) {
      code = put_error(record, life.number, reason);
    }
    if (code == SQLITE_OK) {
      code = forget_inputs(record, run_id);
    }
    if (code == SQLITE_OK) {
      code = record_end_within(record, run_id, status, life.status, reason, NULL);
    }
  }
  gboolean ok = record_settle_refused(record, code, run_id, NULL, error);
  record_wipe_log(record);
  pthread_mutex_unlock(&record->lock);
  if (ok) {
    *ret_changed = changed;
  }
  return ok;
}
