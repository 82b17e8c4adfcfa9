/* SPDX-License-Identifier: Apache-2.0 */
/* garbled.c: fails with text that is no UTF-8 and would command a terminal. */
#include "good.h"

static int32_t garbled_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                               const struct sandhost_execute *request,
                               const struct sandhost_observer *observer,
                               struct sandhost_result *ret_result) {
  (void)sandbox;
  (void)request;
  (void)observer;
  (void)ret_result;
  return good_fail(call, SANDHOST_DENIED, "no\xff\n\033[31mred\xe2\x80\xae");
}

GOOD_PLUGIN("garbled", table.execute = garbled_execute)
