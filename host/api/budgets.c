/* SPDX-License-Identifier: Apache-2.0 */
/* budgets.c: what runs have used, a person's word about more, and what a program is charged for its own work. */
#include <string.h>

#include "api/api-private.h"
#include "base/error.h"
#include "base/millionths.h"
#include "run/resume.h"

/* ---- What was used ----------------------------------------------------------------------------------------------- */

static JsonObject *list(sandhost *host, const char *wanted, gboolean all, GError **error) {
  g_autofree char *id = NULL;
  Record *record = host_record_for(host, wanted, &id, error);
  return record ? record_budgets(record, id, all, error) : NULL;
}

int sandhost_budgets(sandhost *host, const char *run_id, int all, char **ret_json,
                     char **ret_error) {
  g_autoptr(GError) error = NULL;
  if (!host || !ret_json) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host and ret_json must not be NULL", ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  g_autoptr(JsonObject) rows = list(host, run_id, all != 0, &error);
  if (!rows) {
    return api_fail(error, ret_error);
  }
  api_give(rows, ret_json);
  return SANDHOST_STATUS_OK;
}

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

static int decide(sandhost *host, const char *wanted, const char *request_id,
                  const RecordBudgetDecision *decision, char **ret_requests, char **ret_error) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) requests = NULL;
  Record *record = NULL;
  if (!host || !wanted) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host and run_id must not be NULL", ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  const ApproverHook hook = api_approver(host);
  g_autofree char *id = host_find_run(host, wanted, &record, &error);
  if (!id || !resume_decide_budget(record, id, request_id, decision, &hook, host_privacy(host),
                                   &requests, &error)) {
    return api_fail_argument(error, ret_error);
  }
  api_give(requests, ret_requests);
  return SANDHOST_STATUS_OK;
}

int sandhost_grant(sandhost *host, const char *run_id, const char *request_id, const char *approver,
                   const char *note, long long millionths, char **ret_requests, char **ret_error) {
  const RecordBudgetDecision decision = {
      .grants = TRUE, .approver = approver, .note = note, .amount = millionths};
  return decide(host, run_id, request_id, &decision, ret_requests, ret_error);
}

int sandhost_deny_budget(sandhost *host, const char *run_id, const char *request_id,
                         const char *approver, const char *note, char **ret_requests,
                         char **ret_error) {
  const RecordBudgetDecision decision = {.approver = approver, .note = note};
  return decide(host, run_id, request_id, &decision, ret_requests, ret_error);
}

/* ---- Charging ---------------------------------------------------------------------------------------------------- */

static gboolean find_meter(const char *name, BudgetMeter *ret_meter) {
  for (BudgetMeter meter = 0; meter < BUDGET_METERS; meter++) {
    if (strcmp(budget_meter_name(meter), name) == 0) {
      *ret_meter = meter;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean find_kind(int how, RunCharge *ret_kind) {
  switch (how) {
  case SANDHOST_CHARGE_SPEND:
    *ret_kind = RUN_SPEND;
    return TRUE;
  case SANDHOST_CHARGE_LOOK:
    *ret_kind = RUN_LOOK;
    return TRUE;
  case SANDHOST_CHARGE_DONE:
    *ret_kind = RUN_OWE;
    return TRUE;
  default:
    return FALSE;
  }
}

static const char *fault_of_amount(long long millionths) {
  return millionths < 0                 ? "millionths must not be negative"
         : millionths > MILLIONTHS_MOST ? "millionths must be at most " MILLIONTHS_MOST_TEXT
                                          "000000"
                                        : NULL;
}

/* What is wrong with the arguments of a charge; NULL: nothing. */
static const char *fault_of(const sandhost_run *run, const char *meter, long long millionths,
                            BudgetMeter *ret_meter) {
  if (!run || !meter) {
    return "run and meter must not be NULL";
  }
  if (!find_meter(meter, ret_meter)) {
    return "meter must be one of: model_cost_usd, model_tokens, model_calls, tool_calls, "
           "sandbox_seconds, subagent_runs";
  }
  return fault_of_amount(millionths);
}

static int charge(sandhost_run *run, RunCharge kind, BudgetMeter meter, gint64 amount,
                  char **ret_hold, char **ret_error) {
  g_autoptr(GError) error = NULL;
  g_autofree char *hold = NULL;
  int entered = api_run_enter(run, ret_error);
  if (entered != SANDHOST_STATUS_OK) {
    return entered;
  }
  gboolean ok = run_charge(run->run, kind, meter, amount, &hold, &error);
  if (ok && ret_hold) {
    pthread_mutex_lock(&run->lock);
    g_hash_table_insert(run->holds, g_strdup(hold), GINT_TO_POINTER((gint)meter));
    pthread_mutex_unlock(&run->lock);
    *ret_hold = g_steal_pointer(&hold);
  }
  api_run_leave(run);
  return ok ? SANDHOST_STATUS_OK : api_fail(error, ret_error);
}

int sandhost_run_charge(sandhost_run *run, const char *meter, long long millionths, int how,
                        char **ret_error) {
  BudgetMeter number = 0;
  RunCharge kind = RUN_SPEND;
  const char *fault = fault_of(run, meter, millionths, &number);
  if (!fault && !find_kind(how, &kind)) {
    fault = "how must be one of enum sandhost_charge";
  }
  return fault ? api_refuse(SANDHOST_STATUS_INVALID, fault, ret_error)
               : charge(run, kind, number, millionths, NULL, ret_error);
}

int sandhost_run_hold(sandhost_run *run, const char *meter, long long millionths, char **ret_hold,
                      char **ret_error) {
  BudgetMeter number = 0;
  const char *fault = fault_of(run, meter, millionths, &number);
  if (!fault && !ret_hold) {
    fault = "ret_hold must not be NULL";
  }
  return fault ? api_refuse(SANDHOST_STATUS_INVALID, fault, ret_error)
               : charge(run, RUN_HOLD, number, millionths, ret_hold, ret_error);
}

/* The hold is this caller's to settle: nobody else finds it any more. */
static gboolean take_hold(sandhost_run *run, const char *hold, BudgetMeter *ret_meter) {
  gpointer meter = NULL;
  pthread_mutex_lock(&run->lock);
  gboolean found = g_hash_table_lookup_extended(run->holds, hold, NULL, &meter);
  if (found) {
    g_hash_table_remove(run->holds, hold);
  }
  pthread_mutex_unlock(&run->lock);
  *ret_meter = (BudgetMeter)GPOINTER_TO_INT(meter);
  return found;
}

int sandhost_run_settle(sandhost_run *run, const char *hold, long long millionths,
                        char **ret_error) {
  g_autoptr(GError) error = NULL;
  BudgetMeter meter = 0;
  if (!run || !hold || millionths < 0) {
    return api_refuse(SANDHOST_STATUS_INVALID,
                      "run and hold must not be NULL, and millionths not negative", ret_error);
  }
  if (millionths > MILLIONTHS_MOST) {
    return api_refuse(SANDHOST_STATUS_INVALID, fault_of_amount(millionths), ret_error);
  }
  int entered = api_run_enter(run, ret_error);
  if (entered != SANDHOST_STATUS_OK) {
    return entered;
  }
  gboolean found = take_hold(run, hold, &meter);
  gboolean ok = found && run_settle(run->run, hold, meter, millionths, &error);
  api_run_leave(run);
  if (!found) {
    return api_refuse(SANDHOST_STATUS_NOT_FOUND, "the run has no such hold, or it was settled",
                      ret_error);
  }
  return ok ? SANDHOST_STATUS_OK : api_fail(error, ret_error);
}

/* ---- What it comes to -------------------------------------------------------------------------------------------- */

int sandhost_run_waiting(sandhost_run *run, char **ret_json, char **ret_error) {
  if (!run || !ret_json) {
    return api_refuse(SANDHOST_STATUS_INVALID, "run and ret_json must not be NULL", ret_error);
  }
  int entered = api_run_enter(run, ret_error);
  if (entered != SANDHOST_STATUS_OK) {
    return entered;
  }
  g_autofree char *exhausted = run_exhausted(run->run);
  g_autoptr(JsonObject) told = json_object_new_object();
  json_add_text(told, "run_id", run_id(run->run));
  json_add_text(told, "status", api_run_status(run));
  json_add_take(told, "approvals", run_waiting(run->run));
  json_add_take(told, "budget_requests", run_waiting_budgets(run->run));
  json_add_text(told, "termination_reason", exhausted ? "budget_exhausted" : NULL);
  json_add_text(told, "message", exhausted);
  api_run_leave(run);
  api_give(told, ret_json);
  return SANDHOST_STATUS_OK;
}
