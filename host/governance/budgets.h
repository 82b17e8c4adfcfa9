/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budgets.h: how much runs may use (behaviour 11): the limits of a configuration or a policy, checked. Pure; what was used
 * is counted elsewhere. Amounts are millionths of the meter's unit (base/millionths.h).
 */
#ifndef SANDHOST_GOVERNANCE_BUDGETS_H
#define SANDHOST_GOVERNANCE_BUDGETS_H

#include "base/json.h"

typedef enum {
  BUDGET_MODEL_COST_USD,
  BUDGET_MODEL_TOKENS,
  BUDGET_MODEL_CALLS,
  BUDGET_TOOL_CALLS,
  BUDGET_SANDBOX_SECONDS,
  BUDGET_SUBAGENT_RUNS,
} BudgetMeter;
#define BUDGET_METERS 6

/* From the widest to the narrowest. */
typedef enum { BUDGET_APPLICATION, BUDGET_AGENT, BUDGET_SESSION, BUDGET_REQUEST } BudgetScope;
#define BUDGET_SCOPES 4

typedef enum { BUDGET_TOTAL, BUDGET_DAY, BUDGET_MONTH } BudgetWindow;

typedef struct {
  BudgetScope scope;
  BudgetMeter meter;
  BudgetWindow window;
  gint64 limit;    /* above 0 */
  gint64 warn_at;  /* millionths of the limit, above 0 and at most MILLIONTHS */
  gboolean pauses; /* else the run ends at the limit */
} BudgetLimit;

typedef struct {
  char *application_id; /* NULL where no application is budgeted */
  GArray *limits;       /* BudgetLimit */
} Budgets;

/* Reads {"application_id", "application", "agent", "session", "request"}; object is borrowed. Errors: CONFIG with the
 * texts of behaviour 11. */
Budgets *budgets_new(JsonObject *object, GError **error);
void budgets_free(Budgets *budgets);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Budgets, budgets_free)

/* Constant. */
const char *budget_meter_name(BudgetMeter meter);
const char *budget_scope_name(BudgetScope scope);
const char *budget_window_name(BudgetWindow window);

/* When the window that holds wall began (nanoseconds since 1970, 00:00 UTC); 0 for the total. */
gint64 budget_window_start(BudgetWindow window, gint64 wall);

#endif
