/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stays.c: its sandboxes do not end: terminate says that it cannot, with the status that STAYS_WITH has (100 is the
 * default, unavailable). With STAYS_UNSEEN create fails, and may have made one; with
 * STAYS_SWEEPS it has a sweep, which finds nothing.
 */
#include "good.h"

static int32_t stays_create(struct sandhost_call *call, struct sandhost_instance *instance,
                            const struct sandhost_create *request,
                            struct sandhost_sandbox **ret_sandbox) {
  if (!getenv("STAYS_UNSEEN")) {
    return good_create(call, instance, request, ret_sandbox);
  }
  const struct sandhost_failure details = {
      .size = sizeof details, .service_code = {.data = ""}, .may_have_happened = 1};
  good_host->fail_details(call, &details);
  return good_fail(call, SANDHOST_UNAVAILABLE, "the connection broke");
}

static int32_t stays_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  (void)sandbox;
  const char *status = getenv("STAYS_WITH");
  return good_fail(call, status ? (int32_t)strtol(status, NULL, 10) : SANDHOST_UNAVAILABLE,
                   "the engine is away");
}

static int32_t stays_sweep(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_sweep *request,
                           const struct sandhost_orphan_sink *sink) {
  (void)call;
  (void)instance;
  (void)request;
  (void)sink;
  return SANDHOST_OK;
}

GOOD_PLUGIN("stays", table.create = stays_create; table.terminate = stays_terminate;
            table.sweep = getenv("STAYS_SWEEPS") ? stays_sweep : NULL)
