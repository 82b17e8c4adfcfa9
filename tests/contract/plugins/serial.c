/* SPDX-License-Identifier: Apache-2.0 */
/* serial.c: one call at a time in the whole plugin; tells how many it ever saw at once. */
#include "good.h"

static int running;
static int most;

static int32_t serial_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_execute *request,
                              const struct sandhost_observer *observer,
                              struct sandhost_result *ret_result) {
  (void)sandbox;
  (void)request;
  int now = __atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
  int seen = __atomic_load_n(&most, __ATOMIC_SEQ_CST);
  while (now > seen &&
         !__atomic_compare_exchange_n(&most, &seen, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  good_host->wait(call, -1, 0, 20000000);
  __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
  char digit = (char)('0' + __atomic_load_n(&most, __ATOMIC_SEQ_CST));
  good_say(observer, ret_result, &digit, 1);
  ret_result->ended = SANDHOST_ENDED_EXIT;
  return SANDHOST_OK;
}

GOOD_PLUGIN("serial", table.execute = serial_execute; table.threads = SANDHOST_THREADS_PLUGIN)
