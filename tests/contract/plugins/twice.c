/* SPDX-License-Identifier: Apache-2.0 */
/* twice.c: fails twice in one call, and says more about it. */
#include "good.h"

static int32_t twice_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                             const struct sandhost_execute *request,
                             const struct sandhost_observer *observer,
                             struct sandhost_result *ret_result) {
  (void)sandbox;
  (void)request;
  (void)observer;
  (void)ret_result;
  const struct sandhost_failure details = {
      .size = sizeof details,
      .service_code = good_text("quota_exceeded"),
      .retry_after = 3000000000,
      .may_have_happened = 1,
  };
  good_fail(call, SANDHOST_LIMIT, "the first reason");
  good_host->fail_details(call, &details);
  return good_fail(call, SANDHOST_DENIED, "the second reason");
}

GOOD_PLUGIN("twice", table.execute = twice_execute)
