/* SPDX-License-Identifier: Apache-2.0 */
/* budgets.c: the shape of budgets, limit by limit. */
#include "governance/budgets.h"

#include <string.h>

#include "base/calendar.h"
#include "base/millionths.h"
#include "config/check.h"

#define MOST_SHOWN 60 /* characters of a wrong value */

static const char *const METERS[] = {[BUDGET_MODEL_COST_USD] = "model_cost_usd",
                                     [BUDGET_MODEL_TOKENS] = "model_tokens",
                                     [BUDGET_MODEL_CALLS] = "model_calls",
                                     [BUDGET_TOOL_CALLS] = "tool_calls",
                                     [BUDGET_SANDBOX_SECONDS] = "sandbox_seconds",
                                     [BUDGET_SUBAGENT_RUNS] = "subagent_runs",
                                     NULL};
static const char *const SCOPES[] = {[BUDGET_APPLICATION] = "application",
                                     [BUDGET_AGENT] = "agent",
                                     [BUDGET_SESSION] = "session",
                                     [BUDGET_REQUEST] = "request",
                                     NULL};
static const char *const WINDOWS[] = {
    [BUDGET_TOTAL] = "total", [BUDGET_DAY] = "day", [BUDGET_MONTH] = "month", NULL};
static const char *const ENDS[] = {"pause", "terminate", NULL};

G_STATIC_ASSERT(G_N_ELEMENTS(METERS) == BUDGET_METERS + 1);
G_STATIC_ASSERT(G_N_ELEMENTS(SCOPES) == BUDGET_SCOPES + 1);

const char *budget_meter_name(BudgetMeter meter) {
  return METERS[meter];
}

const char *budget_scope_name(BudgetScope scope) {
  return SCOPES[scope];
}

const char *budget_window_name(BudgetWindow window) {
  return WINDOWS[window];
}

gint64 budget_window_start(BudgetWindow window, gint64 wall) {
  switch (window) {
  case BUDGET_TOTAL:
    return 0;
  case BUDGET_DAY:
    return calendar_day(wall);
  case BUDGET_MONTH:
    return calendar_month(wall);
  }
  return 0;
}

/* ---- One limit --------------------------------------------------------------------------------------------------- */

/* The place of the key's text in names; fallback (-1: none) where the key is not given. -1: refused. */
static int choose(JsonObject *object, const char *key, const char *const *names, int fallback,
                  GError **error) {
  JsonObject *value = json_get(object, key);
  const char *text =
      json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
  if (!value && fallback >= 0) {
    return fallback;
  }
  for (int i = 0; text && names[i]; i++) {
    if (strcmp(text, names[i]) == 0) {
      return i;
    }
  }
  g_autofree char *known = check_join(names, ", ");
  g_autofree char *whole = text ? g_strdup(text) : json_text(value);
  g_autofree char *shown = g_utf8_substring(whole, 0, MIN(g_utf8_strlen(whole, -1), MOST_SHOWN));
  check_refuse(error, "budget %s must be one of: %s; got '%s'", key, known, shown);
  return -1;
}

static gboolean read_amounts(JsonObject *object, BudgetLimit *limit, GError **error) {
  JsonObject *warn_at = json_get(object, "warn_at");
  limit->warn_at = 8 * MILLIONTHS / 10;
  if (!millionths_read(json_get(object, "limit"), &limit->limit)) {
    return check_refuse(error, "budget limit must be a number of at most 9000000000000");
  }
  if (!millionths_is_exact(json_get(object, "limit"))) {
    return check_refuse(error, "budget limit must have at most six digits behind the point");
  }
  if (limit->limit <= 0) {
    return check_refuse(error, "budget limit must be greater than zero");
  }
  if (warn_at && (!millionths_read(warn_at, &limit->warn_at) || limit->warn_at <= 0 ||
                  limit->warn_at > MILLIONTHS)) {
    return check_refuse(error, "budget warn_at must be a fraction above 0 and at most 1");
  }
  return TRUE;
}

static gboolean read_limit(JsonObject *object, BudgetScope scope, gsize at, BudgetLimit *ret_limit,
                           GError **error) {
  static const char *const KEYS[] = {"limit", "meter", "on_exhausted", "warn_at", "window", NULL};
  g_autofree char *where = g_strdup_printf("budgets.%s[%" G_GSIZE_FORMAT "]", SCOPES[scope], at);
  if (!json_object_is_type(object, json_type_object)) {
    return check_refuse(error, "%s must be an object", where);
  }
  if (!check_keys(object, where, KEYS, error)) {
    return FALSE;
  }
  int meter = choose(object, "meter", METERS, -1, error);
  int window = meter < 0 ? -1 : choose(object, "window", WINDOWS, BUDGET_TOTAL, error);
  int end = window < 0 ? -1 : choose(object, "on_exhausted", ENDS, 0, error);
  if (end < 0) {
    return FALSE;
  }
  *ret_limit = (BudgetLimit){.scope = scope,
                             .meter = (BudgetMeter)meter,
                             .window = (BudgetWindow)window,
                             .pauses = end == 0};
  return read_amounts(object, ret_limit, error);
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

static gboolean read_scope(Budgets *budgets, JsonObject *object, BudgetScope scope,
                           GError **error) {
  JsonObject *list = json_get(object, SCOPES[scope]);
  guint seen = 0;
  if (list && !json_object_is_type(list, json_type_array)) {
    return check_refuse(error, "budgets.%s must be a list of budget limits", SCOPES[scope]);
  }
  for (gsize i = 0; list && i < json_object_array_length(list); i++) {
    BudgetLimit limit = {0};
    if (!read_limit(json_object_array_get_idx(list, i), scope, i, &limit, error)) {
      return FALSE;
    }
    if (seen & (1u << limit.meter)) {
      return check_refuse(error, "budgets.%s sets %s more than once", SCOPES[scope],
                          METERS[limit.meter]);
    }
    seen |= 1u << limit.meter;
    g_array_append_val(budgets->limits, limit);
  }
  if (scope == BUDGET_APPLICATION && seen && !budgets->application_id) {
    return check_refuse(error,
                        "budgets.application_id is required to budget an application: it names "
                        "the deployment or tenant the budget belongs to");
  }
  return TRUE;
}

Budgets *budgets_new(JsonObject *object, GError **error) {
  static const char *const KEYS[] = {"agent",   "application", "application_id",
                                     "request", "session",     NULL};
  if (!json_object_is_type(object, json_type_object)) {
    check_refuse(error, "budgets must be an object");
    return NULL;
  }
  g_autoptr(Budgets) budgets = g_new0(Budgets, 1);
  budgets->limits = g_array_new(FALSE, FALSE, sizeof(BudgetLimit));
  if (!check_keys(object, "budgets", KEYS, error) ||
      !check_full_text(object, "budgets", "application_id", &budgets->application_id, error)) {
    return NULL;
  }
  for (BudgetScope scope = BUDGET_APPLICATION; scope <= BUDGET_REQUEST; scope++) {
    if (!read_scope(budgets, object, scope, error)) {
      return NULL;
    }
  }
  return g_steal_pointer(&budgets);
}

void budgets_free(Budgets *budgets) {
  if (!budgets) {
    return;
  }
  g_free(budgets->application_id);
  g_array_unref(budgets->limits);
  g_free(budgets);
}
