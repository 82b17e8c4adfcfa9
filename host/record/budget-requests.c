/* SPDX-License-Identifier: Apache-2.0 */
/* budget-requests.c: runs that stand before an exhausted budget, and what a person says to that. Each change is one
 * transaction, as in lives.c. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/millionths.h"
#include "record/asks.h"
#include "record/budgets-private.h"

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* The amounts of a request, as they are now. */
static void put_amounts(JsonObject *content, const RecordShortage *shortage, gint64 needed,
                        gint64 shortfall) {
  RecordShortage whole = *shortage;
  whole.needed = needed;
  g_autofree char *text = record_shortage_text(&whole);
  json_add_take(content, "limit", millionths_json(shortage->total));
  json_add_take(content, "used", millionths_json(shortage->used));
  json_add_take(content, "needed", millionths_json(needed));
  json_add_take(content, "shortfall", millionths_json(shortfall));
  json_add_text(content, "message", text);
}

/* What is missing now, in the window of now; 0: nothing. */
static gint64 missing(const BudgetNow *now, gint64 needed, RecordShortage *ret_shortage) {
  *ret_shortage =
      (RecordShortage){.found = TRUE,
                       .limit = now->limit,
                       .total = millionths_add(now->limit.limit, now->counter.granted),
                       .used = millionths_add(now->counter.spent, now->counter.reserved),
                       .needed = needed};
  gint64 over = millionths_add(ret_shortage->used, -ret_shortage->total);
  return MAX(millionths_add(over, needed), 0);
}

/* Others may have granted or used since it was written, and a day may have passed. */
static int refresh(Record *record, gint64 counter, gint64 needed, JsonObject *request) {
  g_auto(BudgetNow) now = {0};
  RecordShortage shortage = {0};
  int code = budgets_now(record, counter, &now);
  if (code == SQLITE_OK) {
    gint64 amount = missing(&now, needed, &shortage);
    put_amounts(request, &shortage, needed, amount);
    if (amount == 0) {
      json_add_bool(request, "has_room", TRUE);
    }
  }
  return code;
}

static gboolean is_pending(JsonObject *request) {
  return g_strcmp0(json_get_text(request, "status"), "pending") == 0;
}

int budget_requests_read(Record *record, gint64 number, gboolean all, JsonObject *array) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT content, run_id, runs.status, counter, needed FROM budget_requests q"
                     "  JOIN runs ON runs.number = q.run"
                     "  WHERE (?1 = 0 OR q.run = ?1)"
                     "    AND (?2 OR (q.status = 'pending' AND runs.status IN (" RECORD_OPEN ")))"
                     "  ORDER BY q.number",
                     &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_int(statement, 2, all);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_autofree char *run_id = record_text_column(statement, 1);
    g_autofree char *run_status = record_text_column(statement, 2);
    JsonObject *request = record_json_column(statement, 0);
    if (!json_object_is_type(request, json_type_object)) {
      json_object_put(request);
      continue;
    }
    json_object_object_del(request, BUDGET_SEALED);
    json_add_text(request, "run_id", run_id);
    json_add_text(request, "run_status", run_status);
    json_object_array_add(array, request);
    if (is_pending(request) &&
        (code = refresh(record, sqlite3_column_int64(statement, 3),
                        sqlite3_column_int64(statement, 4), request)) != SQLITE_OK) {
      break;
    }
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_budget_requests(Record *record, const char *run_id, gboolean all,
                                   GError **error) {
  g_autoptr(JsonObject) array = json_object_new_array();
  g_auto(Life) life = {0};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = run_id ? life_read(record, run_id, &life) : SQLITE_OK;
    code = code == SQLITE_OK ? budget_requests_read(record, life.number, all, array) : code;
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  gboolean ok =
      code == SQLITE_OK || (code == SQLITE_NOTFOUND ? record_no_run(run_id, error)
                                                    : record_fail(record, "read", code, error));
  pthread_mutex_unlock(&record->lock);
  return ok ? g_steal_pointer(&array) : NULL;
}

/* ---- What is sealed ---------------------------------------------------------------------------------------------- */

static int read_sealed(Record *record, gint64 number, JsonObject *calls) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(
      record, "SELECT content FROM budget_requests WHERE run = ?1 ORDER BY number", &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, number);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    g_autoptr(JsonObject) content = record_json_column(statement, 0);
    JsonObject *sealed = json_get(content, BUDGET_SEALED);
    if (!json_object_is_type(sealed, json_type_object)) {
      continue;
    }
    json_object_object_foreach(sealed, id, arguments) {
      json_add_take(calls, id, json_object_get(arguments));
    }
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_sealed_calls(Record *record, const char *run_id, GError **error) {
  g_autoptr(JsonObject) calls = json_object_new_object();
  g_auto(Life) life = {0};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = life_read(record, run_id, &life);
    code = code == SQLITE_OK ? read_sealed(record, life.number, calls) : code;
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  gboolean ok =
      code == SQLITE_OK || (code == SQLITE_NOTFOUND ? record_no_run(run_id, error)
                                                    : record_fail(record, "read", code, error));
  pthread_mutex_unlock(&record->lock);
  return ok ? g_steal_pointer(&calls) : NULL;
}

int budget_requests_forget(Record *record, const char *run_id, const char *tool_call_id) {
  g_autofree char *path = tool_call_id ? g_strdup_printf("$." BUDGET_SEALED ".\"%s\"", tool_call_id)
                                       : g_strdup("$." BUDGET_SEALED);
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "UPDATE budget_requests SET content = json_remove(content, ?2)"
                     "  WHERE run = (SELECT number FROM runs WHERE run_id = ?1)"
                     "    AND instr(content, '\"" BUDGET_SEALED "\"') > 0",
                     &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, path);
  return record_finish_once(statement);
}

/* ---- Those that wait --------------------------------------------------------------------------------------------- */

/* One that waits, with its row's numbers. */
typedef struct {
  gint64 number;
  gint64 counter;
  gint64 needed;
  gint64 shortfall;
  JsonObject *content; /* owned */
} Pending;

static void pending_clear(void *value) {
  Pending *pending = value;
  json_object_put(pending->content);
}

/* Those of the run that wait: of one counter, or with 0 of any; one request, or with NULL any. */
static int read_pending(Record *record, const char *run_id, gint64 counter, const char *request_id,
                        GArray *found) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "SELECT q.number, counter, needed, shortfall, content FROM budget_requests q"
                     "  JOIN runs ON runs.number = q.run WHERE run_id = ?1 AND q.status = 'pending'"
                     "    AND (?2 = 0 OR counter = ?2) AND (?3 IS NULL OR request_id = ?3)"
                     "  ORDER BY q.number",
                     &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  sqlite3_bind_int64(statement, 2, counter);
  record_bind_text(statement, 3, request_id);
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    Pending pending = {
        .number = sqlite3_column_int64(statement, 0),
        .counter = sqlite3_column_int64(statement, 1),
        .needed = sqlite3_column_int64(statement, 2),
        .shortfall = sqlite3_column_int64(statement, 3),
        .content = record_json_column(statement, 4),
    };
    if (!json_object_is_type(pending.content, json_type_object)) {
      json_object_put(pending.content);
      pending.content = json_object_new_object();
    }
    g_array_append_val(found, pending);
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

static GArray *pending_array(void) {
  GArray *array = g_array_new(FALSE, FALSE, sizeof(Pending));
  g_array_set_clear_func(array, pending_clear);
  return array;
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

/* Owned. */
static JsonObject *content_new(const RecordLimit *limit) {
  g_autofree char *id = id_new("budgetreq");
  JsonObject *content = json_object_new_object();
  json_add_text(content, "request_id", id);
  json_add_text(content, "status", "pending");
  json_add_text(content, "scope", limit->scope);
  json_add_text(content, "meter", limit->meter);
  json_add_text(content, "window", limit->window);
  json_add_text(content, "key", limit->key);
  record_add_time(content, "created_at", clock_wall());
  return content;
}

static int write_request(Record *record, const char *run_id, const Pending *pending) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(
      record,
      pending->number ? "UPDATE budget_requests SET status = ?3, counter = ?4, needed = ?5,"
                        "  shortfall = ?6, content = ?7 WHERE request_id = ?2 AND run ="
                        "    (SELECT number FROM runs WHERE run_id = ?1)"
                      : "INSERT INTO budget_requests"
                        "  (run, request_id, status, counter, needed, shortfall, content)"
                        "  SELECT number, ?2, ?3, ?4, ?5, ?6, ?7 FROM runs WHERE run_id = ?1",
      &code);
  if (!statement) {
    return code;
  }
  g_autofree char *text = json_text(pending->content);
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, json_get_text(pending->content, "request_id"));
  record_bind_text(statement, 3, json_get_text(pending->content, "status"));
  sqlite3_bind_int64(statement, 4, pending->counter);
  sqlite3_bind_int64(statement, 5, pending->needed);
  sqlite3_bind_int64(statement, 6, pending->shortfall);
  record_bind_text(statement, 7, text);
  return record_finish_once(statement);
}

/* What the events about a request hold of it. */
static JsonObject *facts_of(JsonObject *content, const char *const *keys) {
  JsonObject *facts = json_object_new_object();
  for (gsize i = 0; keys[i]; i++) {
    json_add_take(facts, keys[i], json_object_get(json_get(content, keys[i])));
  }
  return facts;
}

static int add_exhausted(Record *record, const char *run_id, JsonObject *content,
                         const char *tool_call_id) {
  static const char *const KEYS[] = {"request_id", "scope", "meter",  "window",    "key",
                                     "limit",      "used",  "needed", "shortfall", NULL};
  JsonObject *facts = facts_of(content, KEYS);
  json_add_text(facts, "on_exhausted", "pause");
  json_add_text(facts, "for_tool_call_id", tool_call_id);
  return record_add_event(record, run_id, "budget_exhausted", facts);
}

static void seal(JsonObject *content, const RecordWaiting *waiting) {
  JsonObject *sealed = json_get(content, BUDGET_SEALED);
  if (!waiting->tool_call_id || !waiting->sealed) {
    return;
  }
  if (!json_object_is_type(sealed, json_type_object)) {
    sealed = json_object_new_object();
    json_add_take(content, BUDGET_SEALED, sealed);
  }
  json_add_take(sealed, waiting->tool_call_id, json_object_get(waiting->sealed));
}

/* Within a transaction. *ret_content is owned by the caller. */
static int ask(Record *record, const char *run_id, const RecordShortage *shortage,
               const RecordWaiting *waiting, JsonObject **ret_content) {
  BudgetCounter counter = {0};
  g_autoptr(GArray) found = pending_array();
  int code = budgets_counter(record, run_id, &shortage->limit, &counter);
  if (code == SQLITE_OK) {
    code = read_pending(record, run_id, counter.number, NULL, found);
  }
  if (code != SQLITE_OK) {
    return code;
  }
  if (found->len == 0) {
    const Pending fresh = {.counter = counter.number, .content = content_new(&shortage->limit)};
    g_array_append_val(found, fresh);
  }
  Pending *pending = &g_array_index(found, Pending, 0);
  gint64 over = millionths_add(shortage->used, -shortage->total);
  pending->needed = millionths_add(pending->needed, shortage->needed);
  pending->shortfall = millionths_add(over, pending->needed);
  put_amounts(pending->content, shortage, pending->needed, pending->shortfall);
  seal(pending->content, waiting);
  code = write_request(record, run_id, pending);
  if (code == SQLITE_OK) {
    code = add_exhausted(record, run_id, pending->content, waiting->tool_call_id);
  }
  json_object_object_del(pending->content, BUDGET_SEALED);
  *ret_content = json_object_get(pending->content);
  return code;
}

gboolean record_ask_budget(Record *record, const char *run_id, const char *owner,
                           const RecordShortage *shortage, const RecordWaiting *waiting,
                           const RecordStep *step, JsonObject **ret_request, GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_autoptr(JsonObject) content = NULL;
  g_autoptr(JsonObject) warnings = json_object_new_array();
  g_autoptr(GPtrArray) rows = record_rows(step->events);
  RecordShortage unused = {0};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = life_check_held(record, run_id, owner, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = budgets_charge(record, run_id, step, warnings, &unused, &refusal);
  }
  if (code == SQLITE_OK && !refusal) {
    code = record_insert_rows(record, run_id, rows);
    code = code == SQLITE_OK ? record_insert_events(record, run_id, warnings) : code;
  }
  for (guint i = 0; code == SQLITE_OK && !refusal && step->answered && i < step->answered->len;
       i++) {
    code = approvals_insert(record, run_id, g_ptr_array_index(step->answered, i));
  }
  if (code == SQLITE_OK && !refusal) {
    code = ask(record, run_id, shortage, waiting, &content);
  }
  gboolean ok = record_settle_refused(record, code, run_id, g_steal_pointer(&refusal), error);
  pthread_mutex_unlock(&record->lock);
  if (ok) {
    *ret_request = g_steal_pointer(&content);
  }
  return ok;
}

/* ---- What nobody need decide any more ---------------------------------------------------------------------------- */

static gboolean is_of(const RecordLimit *limit, JsonObject *request) {
  return g_strcmp0(limit->scope, json_get_text(request, "scope")) == 0 &&
         g_strcmp0(limit->meter, json_get_text(request, "meter")) == 0;
}

/* Whether the limits of now have room for it: one that is there no more has. */
static int look_again(Record *record, const GArray *limits, JsonObject *request,
                      gboolean *ret_room) {
  int code = SQLITE_OK;
  *ret_room = TRUE;
  for (guint i = 0; code == SQLITE_OK && *ret_room && i < limits->len; i++) {
    RecordCharge look = g_array_index(limits, RecordCharge, i);
    if (is_of(&look.limit, request)) {
      if (look.amount == 0) { /* only the request knows */
        millionths_read(json_get(request, "needed"), &look.amount);
      }
      code = budgets_room(record, &look, ret_room);
    }
  }
  return code;
}

int budget_requests_reconsider(Record *record, const GArray *limits, JsonObject *requests,
                               gboolean *ret_some) {
  int code = SQLITE_OK;
  for (gsize i = 0; limits && code == SQLITE_OK && i < json_object_array_length(requests); i++) {
    JsonObject *request = json_object_array_get_idx(requests, i);
    gboolean room = FALSE;
    if (is_pending(request)) {
      code = look_again(record, limits, request, &room);
    }
    if (code == SQLITE_OK && room) {
      json_add_text(request, "status", BUDGET_UNNEEDED);
      *ret_some = TRUE;
    }
  }
  return code;
}

static int close_one(Record *record, const char *run_id, Pending *pending) {
  static const char *const KEYS[] = {"request_id", "scope",  "meter", "window",
                                     "key",        "status", NULL};
  json_add_text(pending->content, "status", BUDGET_UNNEEDED);
  record_add_time(pending->content, "decided_at", clock_wall());
  int code = write_request(record, run_id, pending);
  return code == SQLITE_OK ? record_add_event(record, run_id, "budget_request_closed",
                                              facts_of(pending->content, KEYS))
                           : code;
}

int budget_requests_close(Record *record, const char *run_id, JsonObject *requests) {
  int code = SQLITE_OK;
  for (gsize i = 0; code == SQLITE_OK && i < json_object_array_length(requests); i++) {
    JsonObject *request = json_object_array_get_idx(requests, i);
    g_autoptr(GArray) found = pending_array();
    if (g_strcmp0(json_get_text(request, "status"), BUDGET_UNNEEDED) != 0) {
      continue;
    }
    code = read_pending(record, run_id, 0, json_get_text(request, "request_id"), found);
    if (code == SQLITE_OK && found->len > 0) { /* else it was closed earlier */
      code = close_one(record, run_id, &g_array_index(found, Pending, 0));
    }
  }
  return code;
}

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

static int raise_limit(Record *record, gint64 counter, gint64 amount) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "UPDATE budget_counters"
                     "  SET granted = CASE WHEN granted > 9223372036854775807 - ?2"
                     "                     THEN 9223372036854775807 ELSE granted + ?2 END"
                     "  WHERE number = ?1",
                     &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, counter);
  sqlite3_bind_int64(statement, 2, MAX(amount, 0));
  return record_finish_once(statement);
}

/* A grant counts for the window that goes on now, and makes up for what was used since the run stopped. */
static int bring_up(Record *record, const char *run_id, Pending *pending, gint64 *ret_total) {
  g_auto(BudgetNow) now = {0};
  RecordShortage shortage = {0};
  int code = budgets_now(record, pending->counter, &now);
  if (code == SQLITE_OK && now.counter.number == 0) {
    code = budgets_counter(record, run_id, &now.limit, &now.counter);
  }
  if (code == SQLITE_OK) {
    pending->counter = now.counter.number;
    pending->shortfall = missing(&now, pending->needed, &shortage);
    *ret_total = CLAMP(shortage.total, 0, MILLIONTHS_MOST);
    put_amounts(pending->content, &shortage, pending->needed, pending->shortfall);
  }
  return code;
}

/* Beyond the most there is no room that could be told from none. */
static void refuse_too_much(const Pending *pending, GError **refusal) {
  g_set_error(refusal, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
              "The %s budget for %s cannot be raised beyond " MILLIONTHS_MOST_TEXT
              "; a smaller amount may do",
              json_get_text(pending->content, "scope"), json_get_text(pending->content, "meter"));
}

static int decide_one(Record *record, const char *run_id, const RecordBudgetDecision *decision,
                      Pending *pending, GError **refusal) {
  static const char *const KEYS[] = {"request_id", "scope",  "meter",    "window", "key",
                                     "status",     "amount", "approver", "note",   NULL};
  gint64 total = 0;
  int code = decision->grants ? bring_up(record, run_id, pending, &total) : SQLITE_OK;
  gint64 amount = decision->amount ? decision->amount : pending->shortfall;
  if (code == SQLITE_OK && decision->grants && amount > MILLIONTHS_MOST - total) {
    refuse_too_much(pending, refusal);
    return SQLITE_OK;
  }
  JsonObject *content = pending->content;
  json_add_text(content, "status", decision->grants ? "granted" : "denied");
  json_add_text(content, "approver", decision->approver);
  json_add_text(content, "note", decision->note);
  json_add_take(content, "amount", decision->grants ? millionths_json(amount) : NULL);
  record_add_time(content, "decided_at", clock_wall());
  if (code == SQLITE_OK && decision->grants) {
    code = raise_limit(record, pending->counter, amount);
  }
  if (code == SQLITE_OK) {
    code = write_request(record, run_id, pending);
  }
  return code == SQLITE_OK ? record_add_event(record, run_id,
                                              decision->grants ? "budget_granted" : "budget_denied",
                                              facts_of(content, KEYS))
                           : code;
}

gboolean record_decide_budget(Record *record, const char *run_id, const char *request_id,
                              const RecordBudgetDecision *decision, JsonObject **ret_requests,
                              GError **error) {
  g_autoptr(GError) refusal = NULL;
  g_autoptr(GArray) found = pending_array();
  g_autoptr(JsonObject) decided = json_object_new_array();
  g_auto(Life) life = {0};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN);
  if (code == SQLITE_OK) {
    code = life_read(record, run_id, &life);
  }
  if (code == SQLITE_OK && life_is_open(life.status)) {
    code = read_pending(record, run_id, 0, request_id, found);
  }
  if (code == SQLITE_OK && found->len == 0) {
    record_conflict(&refusal, "Run %s is not waiting for a budget decision", run_id);
  } else if (code == SQLITE_OK && found->len > 1 && decision->amount) {
    g_set_error(&refusal, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "Run %s waits for %u budget decisions; an amount goes with the id of one request",
                run_id, found->len);
  }
  if (code == SQLITE_OK && !refusal) {
    code = asks_check(record, run_id, request_id, TRUE, &refusal);
  }
  for (guint i = 0; code == SQLITE_OK && !refusal && i < found->len; i++) {
    Pending *pending = &g_array_index(found, Pending, i);
    code = decide_one(record, run_id, decision, pending, &refusal);
    json_object_object_del(pending->content, BUDGET_SEALED);
    json_object_array_add(decided, json_object_get(pending->content));
  }
  gboolean ok = record_settle_refused(record, code, run_id, g_steal_pointer(&refusal), error);
  pthread_mutex_unlock(&record->lock);
  if (ok && ret_requests) {
    *ret_requests = g_steal_pointer(&decided);
  }
  return ok;
}
