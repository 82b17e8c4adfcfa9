/* SPDX-License-Identifier: Apache-2.0 */
/* budgets.h: a person's answer to a run that waits for more of a budget. */
#ifndef SANDHOST_CLI_BUDGETS_H
#define SANDHOST_CLI_BUDGETS_H

#include "record/budgets.h"

/* path: the record's file; NULL: the default one. request NULL: all that the run waits for. What was decided is printed. */
gboolean budgets_decide(const char *path, const char *wanted, const char *request,
                        const RecordBudgetDecision *decision, GError **error);

#endif
