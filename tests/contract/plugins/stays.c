/* SPDX-License-Identifier: Apache-2.0 */
/* stays.c: its sandboxes do not end: terminate says that it cannot, with the status that STAYS_WITH has (11 is the default,
 * unavailable). */
#include "good.h"

static int32_t stays_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)sandbox;
  const char *status = getenv("STAYS_WITH");
  return good_fail(call, status ? (int32_t)strtol(status, NULL, 10) : SANDHOST_UNAVAILABLE,
                   "the engine is away");
}

GOOD_PLUGIN("stays", table.terminate = stays_terminate)
