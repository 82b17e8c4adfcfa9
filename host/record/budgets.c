/* SPDX-License-Identifier: Apache-2.0 */
/* budgets.c: counters, and what is taken from them within a transaction (BEGIN IMMEDIATE: of several processes one is
 * first, and the others see what it took). */
#include <string.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/millionths.h"
#include "record/budgets-private.h"

char *record_shortage_text(const RecordShortage *shortage) {
  g_autofree char *used = millionths_text(shortage->used);
  g_autofree char *limit = millionths_text(shortage->total);
  g_autofree char *needed = millionths_text(shortage->needed);
  return g_strdup_printf("The %s budget for %s is exhausted: %s of %s used, %s more needed",
                         shortage->limit.scope, shortage->limit.meter, used, limit, needed);
}

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

static void bind_counter(sqlite3_stmt *statement, const RecordLimit *limit) {
  record_bind_text(statement, 1, limit->scope);
  record_bind_text(statement, 2, limit->key);
  record_bind_text(statement, 3, limit->meter);
  record_bind_text(statement, 4, limit->window);
  sqlite3_bind_int64(statement, 5, limit->starts);
}

static int read_counter(Record *record, const RecordLimit *limit, BudgetCounter *ret_counter) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(
      record,
      "SELECT number, granted, spent, warned,"
      "       (SELECT coalesce(sum(amount), 0) FROM budget_holds WHERE counter = c.number)"
      "  FROM budget_counters c"
      "  WHERE scope = ?1 AND key = ?2 AND meter = ?3 AND window = ?4 AND starts = ?5",
      &code);
  if (!statement) {
    return code;
  }
  bind_counter(statement, limit);
  *ret_counter = (BudgetCounter){0};
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    *ret_counter = (BudgetCounter){
        .number = sqlite3_column_int64(statement, 0),
        .granted = sqlite3_column_int64(statement, 1),
        .spent = sqlite3_column_int64(statement, 2),
        .warned = sqlite3_column_int(statement, 3) != 0,
        .reserved = sqlite3_column_int64(statement, 4),
    };
  }
  sqlite3_finalize(statement);
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

int budgets_counter(Record *record, const char *run_id, const RecordLimit *limit,
                    BudgetCounter *ret_counter) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "INSERT INTO budget_counters (scope, key, meter, window, starts, budget, run)"
                     "  VALUES (?1, ?2, ?3, ?4, ?5, ?6,"
                     "    CASE WHEN ?2 = ?7 THEN (SELECT number FROM runs WHERE run_id = ?7) END)"
                     "  ON CONFLICT (scope, key, meter, window, starts)"
                     "  DO UPDATE SET budget = excluded.budget",
                     &code);
  if (!statement) {
    return code;
  }
  bind_counter(statement, limit);
  sqlite3_bind_int64(statement, 6, limit->limit);
  record_bind_text(statement, 7, run_id);
  code = record_finish_once(statement);
  return code == SQLITE_OK ? read_counter(record, limit, ret_counter) : code;
}

static int put_spent(Record *record, const BudgetCounter *counter) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(
      record, "UPDATE budget_counters SET spent = ?2, warned = ?3 WHERE number = ?1", &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, counter->number);
  sqlite3_bind_int64(statement, 2, counter->spent);
  sqlite3_bind_int(statement, 3, counter->warned);
  return record_finish_once(statement);
}

static int put_hold(Record *record, const char *run_id, const BudgetCounter *counter,
                    const RecordCharge *charge, gint64 amount) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "INSERT INTO budget_holds (hold, run, counter, amount)"
                     "  SELECT ?2, number, ?3, ?4 FROM runs WHERE run_id = ?1",
                     &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, charge->hold);
  sqlite3_bind_int64(statement, 3, counter->number);
  sqlite3_bind_int64(statement, 4, amount);
  return record_finish_once(statement);
}

int budgets_release(Record *record, const char *run_id) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(
      record, "DELETE FROM budget_holds WHERE run = (SELECT number FROM runs WHERE run_id = ?1)",
      &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, run_id);
  return record_finish_once(statement);
}

/* ---- Charges ----------------------------------------------------------------------------------------------------- */

/* Once for a counter. */
static void warn(const RecordLimit *limit, gint64 total, BudgetCounter *counter,
                 JsonObject *warnings) {
  if (counter->warned || (__int128)counter->spent * MILLIONTHS < (__int128)total * limit->warn_at) {
    return;
  }
  counter->warned = TRUE;
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "scope", limit->scope);
  json_add_text(facts, "meter", limit->meter);
  json_add_text(facts, "window", limit->window);
  json_add_text(facts, "key", limit->key);
  json_add_take(facts, "limit", millionths_json(total));
  json_add_take(facts, "spent", millionths_json(counter->spent));
  json_add_take(facts, "warn_at", millionths_json(limit->warn_at));
  JsonObject *event = json_object_new_object();
  json_add_text(event, "type", "budget_warning");
  json_add_take(event, "metadata", facts);
  json_object_array_add(warnings, event);
}

/* A limit that ends the run is told before one that a person could raise. */
static void note_shortage(const RecordCharge *charge, gint64 total, gint64 used,
                          RecordShortage *shortage) {
  if (shortage->found && (!shortage->limit.pauses || charge->limit.pauses)) {
    return;
  }
  *shortage = (RecordShortage){.found = TRUE,
                               .limit = charge->limit,
                               .total = total,
                               .used = used,
                               .needed = charge->amount};
}

static gint64 total_of(const RecordLimit *limit, const BudgetCounter *counter) {
  return millionths_add(limit->limit, counter->granted);
}

static gint64 used_of(const BudgetCounter *counter) {
  return millionths_add(counter->spent, counter->reserved);
}

/* Whether there is room for the charge. */
static gboolean fits(const RecordCharge *charge, const BudgetCounter *counter,
                     RecordShortage *shortage) {
  gint64 total = total_of(&charge->limit, counter);
  gint64 used = used_of(counter);
  gint64 least = charge->least ? charge->least : charge->amount;
  /* Not a sum: beyond what can be counted, one more would fit as well as the last. */
  if (charge->kind == RECORD_OWE || least <= millionths_add(total, -used)) {
    return TRUE;
  }
  note_shortage(charge, total, used, shortage);
  return FALSE;
}

static int take(Record *record, const char *run_id, const RecordCharge *charge,
                JsonObject *warnings, RecordShortage *shortage) {
  BudgetCounter counter = {0};
  int code = budgets_counter(record, run_id, &charge->limit, &counter);
  if (code != SQLITE_OK || !fits(charge, &counter, shortage) || charge->kind == RECORD_LOOK) {
    return code;
  }
  gint64 total = total_of(&charge->limit, &counter);
  if (charge->kind == RECORD_HOLD) {
    gint64 left = total - used_of(&counter);
    return put_hold(record, run_id, &counter, charge,
                    charge->least ? MIN(charge->amount, left) : charge->amount);
  }
  counter.spent = millionths_add(counter.spent, charge->amount);
  warn(&charge->limit, total, &counter, warnings);
  return put_spent(record, &counter);
}

/* What was used in the place of a hold goes to the counters that it was held on, whatever day it is now. */
static int settle(Record *record, const RecordSettlement *settlement) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement =
      record_prepare(record,
                     "UPDATE budget_counters"
                     "  SET spent = CASE WHEN spent > 9223372036854775807 - ?2"
                     "                   THEN 9223372036854775807 ELSE spent + ?2 END"
                     "  WHERE number IN (SELECT counter FROM budget_holds WHERE hold = ?1)",
                     &code);
  if (!statement) {
    return code;
  }
  record_bind_text(statement, 1, settlement->hold);
  sqlite3_bind_int64(statement, 2, MAX(settlement->amount, 0));
  code = record_finish_once(statement);
  if (code != SQLITE_OK ||
      !(statement = record_prepare(record, "DELETE FROM budget_holds WHERE hold = ?1", &code))) {
    return code;
  }
  record_bind_text(statement, 1, settlement->hold);
  return record_finish_once(statement);
}

int budgets_charge(Record *record, const char *run_id, const RecordStep *step, JsonObject *warnings,
                   RecordShortage *ret_shortage, GError **refusal) {
  RecordShortage shortage = {0};
  int code = SQLITE_OK;
  for (guint i = 0; step->settlements && code == SQLITE_OK && i < step->settlements->len; i++) {
    code = settle(record, &g_array_index(step->settlements, RecordSettlement, i));
  }
  for (guint i = 0; step->charges && code == SQLITE_OK && i < step->charges->len; i++) {
    code =
        take(record, run_id, &g_array_index(step->charges, RecordCharge, i), warnings, &shortage);
  }
  if (code == SQLITE_OK && shortage.found) {
    g_autofree char *text = record_shortage_text(&shortage);
    g_set_error_literal(refusal, SANDHOST_ERROR, SANDHOST_ERROR_BUDGET_EXCEEDED, text);
    *ret_shortage = shortage;
  }
  return code;
}

gboolean record_look(Record *record, GArray *charges, RecordShortage *ret_shortage,
                     GError **error) {
  RecordShortage shortage = {0};
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    for (guint i = 0; code == SQLITE_OK && i < charges->len; i++) {
      const RecordCharge *charge = &g_array_index(charges, RecordCharge, i);
      BudgetCounter counter = {0};
      code = read_counter(record, &charge->limit, &counter);
      if (code == SQLITE_OK) {
        fits(charge, &counter, &shortage);
      }
    }
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  gboolean ok = code == SQLITE_OK || record_fail(record, "read", code, error);
  pthread_mutex_unlock(&record->lock);
  if (ok && shortage.found) {
    g_autofree char *text = record_shortage_text(&shortage);
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_BUDGET_EXCEEDED, text);
    *ret_shortage = shortage;
    return FALSE;
  }
  return ok;
}

int budgets_room(Record *record, const RecordCharge *charge, gboolean *ret_room) {
  RecordShortage unused = {0};
  BudgetCounter counter = {0};
  int code = read_counter(record, &charge->limit, &counter);
  *ret_room = code == SQLITE_OK && fits(charge, &counter, &unused);
  return code;
}

/* ---- Now --------------------------------------------------------------------------------------------------------- */

void budget_now_clear(BudgetNow *now) {
  g_free((char *)(gsize)now->limit.scope);
  g_free((char *)(gsize)now->limit.key);
  g_free((char *)(gsize)now->limit.meter);
  g_free((char *)(gsize)now->limit.window);
  *now = (BudgetNow){0};
}

static gint64 window_of_now(const char *window) {
  gint64 now = clock_wall();
  return strcmp(window, "day") == 0     ? calendar_day(now)
         : strcmp(window, "month") == 0 ? calendar_month(now)
                                        : 0;
}

int budgets_now(Record *record, gint64 counter, BudgetNow *ret_now) {
  int code = SQLITE_OK;
  sqlite3_stmt *statement = record_prepare(
      record, "SELECT scope, key, meter, window, budget FROM budget_counters WHERE number = ?1",
      &code);
  if (!statement) {
    return code;
  }
  sqlite3_bind_int64(statement, 1, counter);
  code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    ret_now->limit = (RecordLimit){.scope = record_text_column(statement, 0),
                                   .key = record_text_column(statement, 1),
                                   .meter = record_text_column(statement, 2),
                                   .window = record_text_column(statement, 3),
                                   .limit = sqlite3_column_int64(statement, 4)};
    ret_now->limit.starts = window_of_now(ret_now->limit.window);
  }
  sqlite3_finalize(statement);
  return code == SQLITE_ROW    ? read_counter(record, &ret_now->limit, &ret_now->counter)
         : code == SQLITE_DONE ? SQLITE_CORRUPT
                               : code;
}

/* ---- The status -------------------------------------------------------------------------------------------------- */

static JsonObject *status_row(sqlite3_stmt *statement) {
  static const char *const NAMES[] = {"scope", "meter", "window", "key"};
  JsonObject *row = json_object_new_object();
  for (int i = 0; i < (int)G_N_ELEMENTS(NAMES); i++) {
    g_autofree char *text = record_text_column(statement, i);
    json_add_text(row, NAMES[i], text);
  }
  gint64 starts = sqlite3_column_int64(statement, 4);
  gint64 limit = sqlite3_column_int64(statement, 5);
  gint64 granted = sqlite3_column_int64(statement, 6);
  gint64 spent = sqlite3_column_int64(statement, 7);
  gint64 reserved = sqlite3_column_int64(statement, 8);
  gint64 left = millionths_add(millionths_add(limit, granted), -millionths_add(spent, reserved));
  if (starts) {
    record_add_time(row, "window_starts", starts);
  } else {
    json_add_text(row, "window_starts", NULL);
  }
  json_add_take(row, "limit", millionths_json(limit));
  json_add_take(row, "granted", millionths_json(granted));
  json_add_take(row, "spent", millionths_json(spent));
  json_add_take(row, "reserved", millionths_json(reserved));
  json_add_take(row, "remaining", millionths_json(MAX(left, 0)));
  return row;
}

static int read_status(Record *record, const char *run_id, gboolean all, JsonObject *array) {
  int code = SQLITE_OK;
  /* The keys of the counters that cover a run. */
  g_autoptr(JsonObject) header = run_id ? life_header(record, run_id, &code) : NULL;
  sqlite3_stmt *statement =
      code != SQLITE_OK
          ? NULL
          : record_prepare(record,
                           "SELECT scope, meter, window, key, starts, budget, granted, spent,"
                           "       (SELECT coalesce(sum(amount), 0) FROM budget_holds WHERE "
                           "counter = c.number)"
                           "  FROM budget_counters c WHERE"
                           "    (?1 IS NULL OR (scope = 'request' AND key = ?1)"
                           "     OR (scope = 'session' AND key = coalesce(?2, ?1))"
                           "     OR (scope = 'agent' AND key = ?3)"
                           "     OR (scope = 'application' AND key = ?4))"
                           "    AND (?5 OR window = 'total' OR (window = 'day' AND starts = ?6)"
                           "         OR (window = 'month' AND starts = ?7))"
                           "  ORDER BY number",
                           &code);
  if (!statement) {
    return code;
  }
  gint64 now = clock_wall();
  record_bind_text(statement, 1, run_id);
  record_bind_text(statement, 2, json_get_text(header, "session_id"));
  record_bind_text(statement, 3, json_get_text(header, "agent_name"));
  record_bind_text(statement, 4, json_get_text(header, "application_id"));
  sqlite3_bind_int(statement, 5, all);
  sqlite3_bind_int64(statement, 6, calendar_day(now));
  sqlite3_bind_int64(statement, 7, calendar_month(now));
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    json_object_array_add(array, status_row(statement));
  }
  sqlite3_finalize(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

JsonObject *record_budgets(Record *record, const char *run_id, gboolean all, GError **error) {
  g_autoptr(JsonObject) array = json_object_new_array();
  pthread_mutex_lock(&record->lock);
  int code = record_run_statement(record, STATEMENT_BEGIN_READ);
  if (code == SQLITE_OK) {
    code = read_status(record, run_id, all, array);
    record_run_statement(record, STATEMENT_ROLLBACK);
  }
  gboolean ok =
      code == SQLITE_OK || (code == SQLITE_NOTFOUND ? record_no_run(run_id, error)
                                                    : record_fail(record, "read", code, error));
  pthread_mutex_unlock(&record->lock);
  return ok ? g_steal_pointer(&array) : NULL;
}
