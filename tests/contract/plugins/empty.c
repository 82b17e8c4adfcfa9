/* SPDX-License-Identifier: Apache-2.0 */
/* empty.c: creates with success and gives no sandbox. */
#include "good.h"

static int32_t empty_create(struct sandhost_call *call, struct sandhost_instance *instance,
                            const struct sandhost_create *request,
                            struct sandhost_sandbox **ret_sandbox) {
  (void)call;
  (void)instance;
  (void)request;
  (void)ret_sandbox;
  return SANDHOST_OK;
}

GOOD_PLUGIN("empty", table.create = empty_create)
