/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c: dies in create. */
#include "good.h"

static int32_t crash_create(struct sandhost_call *call, struct sandhost_instance *instance,
                            const struct sandhost_create *request,
                            struct sandhost_sandbox **ret_sandbox) {
  (void)call;
  (void)instance;
  (void)request;
  (void)ret_sandbox;
  abort();
}

GOOD_PLUGIN("crash", table.create = crash_create)
