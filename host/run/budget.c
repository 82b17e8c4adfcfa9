/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c: what a run does before a limit: it waits for a person, or it ends (behaviour 11). */
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/millionths.h"
#include "run/execute-private.h"

#define EXHAUSTED "This run stopped because the %s budget is exhausted: %s"

static GArray *charges_new(void) {
  return g_array_new(FALSE, FALSE, sizeof(RecordCharge));
}

/* ---- At the limit ------------------------------------------------------------------------------------------------ */

/* For good: no call of the run is begun any more. The first reason counts. */
static void end_run(Run *run, const char *scope, const char *text) {
  pthread_mutex_lock(&run->pausing);
  if (!run->exhausted) {
    run->exhausted = g_strdup_printf(EXHAUSTED, scope, text);
  }
  pthread_mutex_unlock(&run->pausing);
}

char *run_exhausted(Run *run) {
  pthread_mutex_lock(&run->pausing);
  char *text = g_strdup(run->exhausted);
  pthread_mutex_unlock(&run->pausing);
  return text;
}

gboolean budget_refuse_exhausted(Run *run, GError **error) {
  g_autofree char *text = run_exhausted(run);
  if (text) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_BUDGET_EXCEEDED, text);
  }
  return text != NULL;
}

/* What nobody is asked about is told as an event alone. */
static void record_exhausted(Run *run, const RecordShortage *shortage, const char *call_id) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "request_id", NULL);
  json_add_text(facts, "scope", shortage->limit.scope);
  json_add_text(facts, "meter", shortage->limit.meter);
  json_add_text(facts, "window", shortage->limit.window);
  json_add_text(facts, "key", shortage->limit.key);
  json_add_take(facts, "limit", millionths_json(shortage->total));
  json_add_take(facts, "used", millionths_json(shortage->used));
  json_add_take(facts, "needed", millionths_json(shortage->needed));
  json_add_take(facts, "shortfall",
                millionths_json(millionths_add(millionths_add(shortage->used, -shortage->total),
                                               shortage->needed)));
  json_add_text(facts, "on_exhausted", shortage->limit.pauses ? "pause" : "terminate");
  json_add_text(facts, "for_tool_call_id", call_id);
  journal_add(run->journal, "budget_exhausted", facts, NULL);
}

/* As the door is told of it. Owned. */
static JsonObject *shown(JsonObject *request) {
  static const char *const KEYS[] = {"scope", "meter",  "window",    "limit",
                                     "used",  "needed", "shortfall", "request_id"};
  JsonObject *object = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(KEYS); i++) {
    JsonObject *copy = NULL; /* the run's own: json-c counts references without atomics */
    JsonObject *value = json_get(request, KEYS[i]);
    if (value) {
      json_object_deep_copy(value, &copy, NULL);
    }
    json_add_take(object, KEYS[i], copy);
  }
  return object;
}

/* In the place of the run's earlier word about the same request, which has grown. */
static void note_waiting(Run *run, JsonObject *take_request) {
  const char *id = json_get_text(take_request, "request_id");
  pthread_mutex_lock(&run->pausing);
  gsize count = json_object_array_length(run->waiting_budgets);
  gsize at = 0;
  while (at < count &&
         g_strcmp0(json_get_text(json_object_array_get_idx(run->waiting_budgets, at), "request_id"),
                   id) != 0) {
    at++;
  }
  json_object_array_put_idx(run->waiting_budgets, at, take_request);
  pthread_mutex_unlock(&run->pausing);
}

/* The arguments of a call that its events do not hold as they are: without these nobody could run it again. NULL: they
 * do. Borrowed. */
static JsonObject *sealed_of(const Call *call) {
  const Harness *harness = call->run->harness;
  const Capture capture = {.privacy = harness->privacy, .config = &harness->config->capture};
  return capture_keeps(&capture, call->args) ||
                 strlen(json_object_to_json_string(call->args)) > PAUSE_MOST_ARGUMENTS
             ? NULL
             : call->args;
}

/* Sets *error to what the limit means for the run. call NULL: it was no call that met it. What a call was allowed a moment
 * ago is still allowed when it goes on. ret_request stays NULL where the run does not wait. */
static void meet(Run *run, const RecordShortage *shortage, const Call *call,
                 JsonObject **ret_request, GError **error) {
  const GPtrArray *answered = call ? call->answered : NULL;
  g_autofree char *text = record_shortage_text(shortage);
  if (shortage->limit.pauses && run->pauses) {
    g_autoptr(JsonObject) request = NULL;
    const RecordWaiting waiting = {.tool_call_id = call ? call->id : NULL,
                                   .sealed = call ? sealed_of(call) : NULL};
    for (guint i = 0; answered && i < answered->len; i++) {
      pause_record_answered(run, g_ptr_array_index(answered, i));
    }
    if (journal_ask_budget(run->journal, shortage, &waiting, answered, &request, error)) {
      note_waiting(run, shown(request));
      *ret_request = shown(request);
      g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_BUDGET_EXCEEDED,
                          json_get_text(request, "message"));
    }
    return;
  }
  record_exhausted(run, shortage, call ? call->id : NULL);
  if (!shortage->limit.pauses) {
    end_run(run, shortage->limit.scope, text);
    budget_refuse_exhausted(run, error);
    return;
  }
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_BUDGET_EXCEEDED, text);
}

/* ---- A command --------------------------------------------------------------------------------------------------- */

/* Whether the command has room now; ret_shortage says what is missing, or *error what went wrong. */
static gboolean has_room(const Run *run, RecordShortage *ret_shortage, GError **error) {
  g_autoptr(GArray) charges = charges_new();
  metering_add(run->metering, RECORD_LOOK, BUDGET_TOOL_CALLS, MILLIONTHS, NULL, charges);
  metering_add(run->metering, RECORD_LOOK, BUDGET_SANDBOX_SECONDS, METERING_SANDBOX_TIME, NULL,
               charges);
  return charges->len == 0 || record_look(run->record, charges, ret_shortage, error);
}

gboolean budget_look_ahead(Call *call, GError **error) {
  const Run *run = call->run;
  RecordShortage shortage = {0};
  g_autoptr(GError) failure = NULL;
  gboolean room = has_room(run, &shortage, &failure);
  if (room || !shortage.found || (shortage.limit.pauses && run->pauses)) {
    return TRUE; /* what could not be read is told by the look itself */
  }
  meet(call->run, &shortage, call, &call->budget_request, error);
  return FALSE;
}

gboolean budget_look(Call *call, GError **error) {
  Run *run = call->run;
  RecordShortage shortage = {0};
  g_autoptr(GError) failure = NULL;
  if (budget_refuse_exhausted(run, error)) {
    return FALSE;
  }
  if (has_room(run, &shortage, &failure)) {
    return TRUE;
  }
  if (shortage.found) {
    meet(run, &shortage, call, &call->budget_request, error);
  } else {
    g_propagate_error(error, g_steal_pointer(&failure));
  }
  return FALSE;
}

gboolean budget_begin(Call *call, JsonObject *take_event, GError **error) {
  Run *run = call->run;
  RecordShortage shortage = {0};
  g_autoptr(GArray) charges = charges_new();
  g_autoptr(GError) failure = NULL;
  journal_owe(run->journal, BUDGET_SANDBOX_SECONDS, session_unpaid(call->session));
  metering_add(run->metering, RECORD_SPEND, BUDGET_TOOL_CALLS, MILLIONTHS, NULL, charges);
  metering_add(run->metering, RECORD_HOLD, BUDGET_SANDBOX_SECONDS, METERING_SANDBOX_TIME,
               call->execution_id, charges);
  const JournalStep step = {.approval_ids = call->approvals,
                            .again = call->request->tool_call_id,
                            .charges = charges,
                            .take_event = take_event};
  if (journal_step(run->journal, &step, &shortage, &failure)) {
    return TRUE;
  }
  if (shortage.found) {
    meet(run, &shortage, call, &call->budget_request, error);
  } else {
    g_propagate_error(error, g_steal_pointer(&failure));
  }
  return FALSE;
}

void budget_ended(Call *call) {
  Journal *journal = call->run->journal;
  journal_owe(journal, BUDGET_SANDBOX_SECONDS, session_unpaid(call->session));
  if (metering_covers(call->run->metering, BUDGET_SANDBOX_SECONDS)) {
    journal_settle(journal, call->execution_id, 0); /* the time itself is owed already */
  }
}

/* ---- Other meters ------------------------------------------------------------------------------------------------ */

/* The older budget of a policy knows of what was spent, not of what is held. */
static void count_cost(const Run *run, BudgetMeter meter, gint64 amount) {
  if (meter == BUDGET_MODEL_COST_USD && run->harness->policy) {
    policy_count(run->harness->policy, 0, amount);
  }
}

gboolean run_charge(Run *run, RunCharge how, BudgetMeter meter, gint64 amount, char **ret_hold,
                    GError **error) {
  static const RecordChargeKind KINDS[] = {[RUN_LOOK] = RECORD_LOOK,
                                           [RUN_SPEND] = RECORD_SPEND,
                                           [RUN_HOLD] = RECORD_HOLD,
                                           [RUN_OWE] = RECORD_OWE};
  RecordShortage shortage = {0};
  g_autoptr(GArray) charges = charges_new();
  g_autoptr(GError) failure = NULL;
  g_autofree char *hold = how == RUN_HOLD ? id_new("hold") : NULL;
  if (how == RUN_OWE) {
    journal_owe(run->journal, meter, amount);
    count_cost(run, meter, amount);
    return journal_flush(run->journal, error);
  }
  if (budget_refuse_exhausted(run, error)) {
    return FALSE;
  }
  metering_add(run->metering, KINDS[how], meter, MAX(amount, 0), hold, charges);
  const JournalStep step = {.charges = charges};
  if (!journal_step(run->journal, &step, &shortage, &failure)) {
    g_autoptr(JsonObject) request = NULL;
    if (shortage.found) {
      meet(run, &shortage, NULL, &request, error);
    } else {
      g_propagate_error(error, g_steal_pointer(&failure));
    }
    return FALSE;
  }
  if (how == RUN_SPEND) {
    count_cost(run, meter, amount);
  }
  if (ret_hold) {
    *ret_hold = g_steal_pointer(&hold);
  }
  return TRUE;
}

gboolean run_settle(Run *run, const char *hold, BudgetMeter meter, gint64 amount, GError **error) {
  RecordShortage unused = {0};
  g_autoptr(GArray) charges = charges_new();
  const JournalStep step = {.charges = charges};
  count_cost(run, meter, amount);
  journal_settle(run->journal, hold, amount);
  metering_add(run->metering, RECORD_OWE, meter, 0, NULL, charges); /* a settlement does not warn */
  return journal_step(run->journal, &step, &unused, error);
}

JsonObject *run_waiting_budgets(Run *run) {
  JsonObject *copy = NULL;
  pthread_mutex_lock(&run->pausing);
  json_object_deep_copy(run->waiting_budgets, &copy, NULL);
  pthread_mutex_unlock(&run->pausing);
  return copy;
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

/* Who has said so, and why, is for the agent to read. Owned. */
static char *denied_text(JsonObject *request) {
  const char *note = json_get_text(request, "note");
  return g_strdup_printf("%s. Denied by %s%s%s", json_get_text(request, "message"),
                         json_get_text(request, "approver"), note ? ": " : "", note ? note : "");
}

/* A person has said that there is no more: that ends the run, whatever has changed since. */
gboolean budget_recall(Run *run, GError **error) {
  g_autoptr(JsonObject) requests = record_budget_requests(run->record, run->id, TRUE, error);
  for (gsize i = 0; requests && i < json_object_array_length(requests); i++) {
    JsonObject *request = json_object_array_get_idx(requests, i);
    if (g_strcmp0(json_get_text(request, "status"), "denied") == 0) {
      g_autofree char *text = denied_text(request);
      end_run(run, json_get_text(request, "scope"), text);
    }
  }
  return requests != NULL;
}
