/* SPDX-License-Identifier: Apache-2.0 */
/* metering.h: which counters a run's use is charged to: the limits of its policy, with the run's own keys. Immutable. */
#ifndef SANDHOST_RUN_METERING_H
#define SANDHOST_RUN_METERING_H

#include "base/millionths.h"
#include "governance/budgets.h"
#include "record/budgets.h"

typedef struct Metering Metering;

/* What tells a run's counters from another's. */
typedef struct {
  const char *run_id;
  const char *session_id; /* NULL: the run is a session of its own */
  const char *agent_name;
} MeteringKeys;

/* budgets is borrowed, keys are copied. NULL budgets: NULL, as which every function takes it for no limits. */
Metering *metering_new(const Budgets *budgets, const MeteringKeys *keys);
void metering_free(Metering *metering);

gboolean metering_covers(const Metering *metering, BudgetMeter meter);

/* Whatever is left of the time in a sandbox is enough to begin a command; this is what it holds where there is as much. */
#define METERING_SANDBOX_TIME MILLIONTHS

/* Adds what the next step needs of each limit, as RECORD_LOOK; amount 0: this is not known. As metering_add. */
void metering_look(const Metering *metering, GArray *charges);

/* Adds a charge for each limit on the meter, in the window of now. hold (for RECORD_HOLD) is borrowed until the charges
 * are made, as is metering. charges: a GArray of RecordCharge. */
void metering_add(const Metering *metering, RecordChargeKind kind, BudgetMeter meter, gint64 amount,
                  const char *hold, GArray *charges);

#endif
