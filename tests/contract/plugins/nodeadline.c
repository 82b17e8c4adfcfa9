/* SPDX-License-Identifier: Apache-2.0 */
/* nodeadline.c: its execute looks neither at the deadline nor at a cancel, one call per sandbox. */
#include "good.h"

static int32_t deaf_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  if (strcmp(request->argv[0].data, "deaf") != 0) {
    return good_execute(call, sandbox, request, observer, ret_result);
  }
  sleep(5);
  good_log("woke");
  good_say(observer, ret_result, "too late\n", 9);
  return SANDHOST_OK;
}

static int32_t deaf_create(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_create *request,
                           struct sandhost_sandbox **ret_sandbox) {
  if (request->image.length > 0) {
    sleep(5);
  }
  return good_create(call, instance, request, ret_sandbox);
}

GOOD_PLUGIN("nodeadline", table.execute = deaf_execute; table.create = deaf_create;
            table.threads = SANDHOST_THREADS_SANDBOX)
