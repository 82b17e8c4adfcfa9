/* SPDX-License-Identifier: Apache-2.0 */
/* loud.c: fails with a megabyte of text. */
#include "good.h"

static int32_t loud_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  (void)sandbox;
  (void)request;
  (void)observer;
  (void)ret_result;
  static char message[1 << 20];
  memset(message, 'a', sizeof message);
  return good_host->fail(call, SANDHOST_INTERNAL,
                         (struct sandhost_text){.data = message, .length = sizeof message});
}

GOOD_PLUGIN("loud", table.execute = loud_execute)
