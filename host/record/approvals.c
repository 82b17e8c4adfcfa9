/* SPDX-License-Identifier: Apache-2.0 */
/* approvals.c: the asks that wait, are decided and used. Each change is one transaction, as in lives.c. */
#include "record/approvals.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/asks.h"
#include "record/budgets-private.h"

/* ---- Approvals, read --------------------------------------------------------------------------------------------- */

int approvals_read(Record *record, gint64 number, gboolean all, JsonObject *array) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT content, approvals.status, run_id, runs.status, expires_at"
                     "  FROM approvals JOIN runs ON runs.number = approvals.run"
                     "  WHERE (?1 = 0 OR run = ?1) AND (?2 OR (approvals.status = 'pending'"
                     "    AND runs.status IN (" RECORD_OPEN ")))"
                     "  ORDER BY approvals.number",
                     &code);
  if (!statement) {
    return code;
  }
  gint64 now = clock_wall();
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_int(statement, 2, all);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_autofree char *status = record_text_column(statement, 1);
    g_autofree char *run_id = record_text_column(statement, 2);
    g_autofree char *run_status = record_text_column(statement, 3);
    JsonObject *approval = record_json_column(statement, 0);
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
  int code = run_id ? life_read(record, run_id, &life) : SQLITE_OK;
  if (code == SQLITE_OK) {
    code = approvals_read(record, life.number, all, array);
  }
  gboolean ok =
      code == SQLITE_OK || (code == SQLITE_NOTFOUND ? record_no_run(run_id, error)
                                                    : record_fail(record, "read", code, error));
  pthread_mutex_unlock(&record->lock);
  return ok ? g_steal_pointer(&array) : NULL;
}

/* ---- Approvals, written ------------------------------------------------------------------------------------------ */

int approvals_insert(Record *record, const char *run_id, JsonObject *approval) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "INSERT INTO approvals (run, approval_id, status, expires_at, content)"
                     "  SELECT number, ?2, ?5, ?3, ?4 FROM runs WHERE run_id = ?1",
                     &code);
  if (!statement) {
    return code;
  }
  g_autofree char *content = json_text(approval);
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, json_get_text(approval, "approval_id"));
  sqlite3_bind_int64(statement, 3, json_get_int(approval, "expires", 0));
  record_bind_text(statement, 4, content);
  const char *status = json_get_text(approval, "status");
  record_bind_text(statement, 5, status ? status : "pending");
  return record_finish_once(statement);
}

/* Of this run; *ret_approval stays NULL when there is none. */
static int read_approval(Record *record, const char *run_id, const char *approval_id,
                         JsonObject **ret_approval) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
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
    g_autofree char *status = record_text_column(statement, 1);
    JsonObject *approval = record_json_column(statement, 0);
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
  sqlite3_stmt *statement = record_prepare(
      record, "UPDATE approvals SET status = ?2, content = ?3 WHERE approval_id = ?1", &code);
  if (!statement) {
    return code;
  }
  g_autofree char *content = json_text(approval);
  record_bind_text(statement, 1, json_get_text(approval, "approval_id"));
  record_bind_text(statement, 2, json_get_text(approval, "status"));
  record_bind_text(statement, 3, content);
  code = record_finish_once(statement);
  if (code != SQLITE_OK) {
    return code;
  }
  JsonObject *facts = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(FACTS); i++) {
    json_add_take(facts, FACTS[i], json_object_get(json_get(approval, FACTS[i])));
  }
  return record_add_event(record, run_id, "approval_resolved", facts);
}

int approvals_forget_inputs(Record *record, const char *run_id) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(
      record,
      "UPDATE approvals SET content = CASE"
      "    WHEN json_extract(content, '$." APPROVAL_UNRECORDED "') = 1"
      "    THEN json_remove(content, '$." APPROVAL_SEALED "', '$." APPROVAL_SEALED_EDIT "',"
      "      '$.arguments',"
      "      '$.edited_arguments', '$.command.summary', '$.command.opaque_reasons')"
      "    ELSE json_remove(content, '$." APPROVAL_SEALED "', '$." APPROVAL_SEALED_EDIT "') END"
      "  WHERE run = (SELECT number FROM runs WHERE run_id = ?1)"
      "    AND json_valid(content) AND (instr(content, '\"sealed_') > 0"
      "      OR instr(content, '\"" APPROVAL_UNRECORDED "\"') > 0)",
      &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  code = record_finish_once(statement);
  record->wipes = record->wipes || (code == SQLITE_OK && sqlite3_changes(record->db) > 0);
  return code;
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
    code = code == SQLITE_OK ? asks_check(record, run_id, id, FALSE, refusal) : code;
    const char *status = json_get_text(approval, "status");
    if (code != SQLITE_OK || *refusal) {
      break;
    }
    if (g_strcmp0(status, "approved") != 0) {
      record_conflict(refusal, "Approval %s is already %s", id, status ? status : "gone");
    } else {
      json_add_text(approval, "status", "used");
      record->wipes = record->wipes || json_get(approval, APPROVAL_SEALED) != NULL;
      json_object_object_del(approval, APPROVAL_SEALED);
      json_object_object_del(approval, APPROVAL_SEALED_EDIT);
      record_add_time(approval, "used_at", clock_wall());
      json_add_text(approval, "used_for_approval_id", id);
      code = write_approval(record, run_id, approval);
    }
  }
  return code;
}

gboolean record_step(Record *record, const char *run_id, const char *owner, const RecordStep *step,
                     RecordShortage *ret_shortage, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_autoptr(JsonObject) warnings = json_object_new_array();
  g_autoptr(GPtrArray) rows = record_rows(step->events);
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = life_check_held(record, run_id, owner, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = use_approvals(record, run_id, step->approval_ids, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = budgets_charge(record, run_id, step, warnings, ret_shortage, &refusal);
  }
  if (code == SQLITE_OK && !refusal && step->again) {
    code = budget_requests_forget(record, run_id, step->again);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_rows(record, run_id, rows);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_events(record, run_id, warnings);
  }
  gboolean ok = record_settle_refused(record, code, run_id, g_steal_pointer(&refusal), error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

gboolean record_commit(Record *record, const char *run_id, const char *owner,
                       const GPtrArray *approval_ids, JsonObject *events, GError **error) {
  const RecordStep step = {.approval_ids = approval_ids, .events = events};
  RecordShortage unused = {0};
  return record_step(record, run_id, owner, &step, &unused, error);
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
  g_autoptr(GPtrArray) rows = record_rows(events);
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = life_check_held(record, run_id, owner, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = supersede(record, run_id, superseded);
    for (guint i = 0; code == SQLITE_OK && i < approvals->len; i++) {
      code = approvals_insert(record, run_id, g_ptr_array_index(approvals, i));
    }
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_rows(record, run_id, rows);
  }
  gboolean ok = record_settle_refused(record, code, run_id, g_steal_pointer(&refusal), error);
  pthread_mutex_unlock(&record->lock);
  return ok;
}

/* What nobody decided in time is over; read_approvals tells it as expired already. */
int approvals_expire_late(Record *record, const char *run_id, JsonObject *approvals) {
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
    record_conflict(refusal, "Approval %s expired at %s", approval_id,
                    json_get_text(approval, "expires_at"));
    if (g_strcmp0(status, "pending") == 0) {
      code = expire(record, run_id, approval);
      *ret_expired = code == SQLITE_OK;
    }
  } else {
    record_conflict(refusal, "Approval %s is already %s", approval_id, status);
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
  record_add_time(approval, "decided_at", clock_wall());
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
    code = life_read(record, run_id, &life);
  }
  if (code == SQLITE_OK) {
    code = read_approval(record, run_id, approval_id, &approval);
  }
  if (code == SQLITE_OK && approval) {
    code = asks_check(record, run_id, approval_id, TRUE, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = check_pending(record, run_id, approval_id, approval, &expired, &refusal);
  }
  if (code == SQLITE_OK && !refusal && !life_is_open(life.status)) {
    record_conflict(&refusal, "Run %s is %s; nothing of it waits for a decision", run_id,
                    life.status);
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
  gboolean ok =
      begun && record_settle_refused(record, code, run_id, g_steal_pointer(&refusal), error);
  pthread_mutex_unlock(&record->lock);
  if (ok && ret_approval) {
    *ret_approval = g_steal_pointer(&approval);
  }
  return ok;
}
