/* SPDX-License-Identifier: Apache-2.0 */
/* metering.c: limits become charges. */
#include "run/metering.h"

#include "base/clock.h"

struct Metering {
  GArray *limits; /* BudgetLimit */
  char *keys[BUDGET_SCOPES];
};

Metering *metering_new(const Budgets *budgets, const MeteringKeys *keys) {
  if (!budgets) {
    return NULL;
  }
  Metering *metering = g_new0(Metering, 1);
  metering->limits = g_array_ref(budgets->limits);
  metering->keys[BUDGET_APPLICATION] = g_strdup(budgets->application_id);
  metering->keys[BUDGET_AGENT] = g_strdup(keys->agent_name);
  metering->keys[BUDGET_SESSION] = g_strdup(keys->session_id ? keys->session_id : keys->run_id);
  metering->keys[BUDGET_REQUEST] = g_strdup(keys->run_id);
  return metering;
}

void metering_free(Metering *metering) {
  if (!metering) {
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(metering->keys); i++) {
    g_free(metering->keys[i]);
  }
  g_array_unref(metering->limits);
  g_free(metering);
}

gboolean metering_covers(const Metering *metering, BudgetMeter meter) {
  for (guint i = 0; metering && i < metering->limits->len; i++) {
    if (g_array_index(metering->limits, BudgetLimit, i).meter == meter) {
      return TRUE;
    }
  }
  return FALSE;
}

void metering_add(const Metering *metering, RecordChargeKind kind, BudgetMeter meter, gint64 amount,
                  const char *hold, GArray *charges) {
  gint64 now = clock_wall();
  for (guint i = 0; metering && i < metering->limits->len; i++) {
    const BudgetLimit *limit = &g_array_index(metering->limits, BudgetLimit, i);
    if (limit->meter != meter) {
      continue;
    }
    const RecordCharge charge = {
        .limit = {.scope = budget_scope_name(limit->scope),
                  .key = metering->keys[limit->scope],
                  .meter = budget_meter_name(limit->meter),
                  .window = budget_window_name(limit->window),
                  .starts = budget_window_start(limit->window, now),
                  .limit = limit->limit,
                  .warn_at = limit->warn_at,
                  .pauses = limit->pauses},
        .kind = kind,
        .amount = amount,
        .least = kind != RECORD_OWE && meter == BUDGET_SANDBOX_SECONDS ? MIN(amount, 1) : 0,
        .hold = hold,
    };
    g_array_append_val(charges, charge);
  }
}

void metering_look(const Metering *metering, GArray *charges) {
  static const gint64 NEEDED[BUDGET_METERS] = {
      [BUDGET_TOOL_CALLS] = MILLIONTHS, [BUDGET_SANDBOX_SECONDS] = METERING_SANDBOX_TIME};
  for (BudgetMeter meter = 0; meter < BUDGET_METERS; meter++) {
    metering_add(metering, RECORD_LOOK, meter, NEEDED[meter], NULL, charges);
  }
}
