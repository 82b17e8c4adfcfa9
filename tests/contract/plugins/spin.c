/* SPDX-License-Identifier: Apache-2.0 */
/* spin.c: loops without an end in the operation that SPIN_WHERE names (execute is the default), deaf to everything. It naps
 * between its turns, so that whoever waits for it has the machine. */
#include "good.h"

static void spin_in(const char *operation) {
  const char *where = getenv("SPIN_WHERE");
  while (strcmp(where ? where : "execute", operation) == 0) {
    usleep(1000);
  }
}

static int32_t spin_create(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_create *request,
                           struct sandhost_sandbox **ret_sandbox) {
  spin_in("create");
  return good_create(call, instance, request, ret_sandbox);
}

static int32_t spin_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  (void)call;
  (void)sandbox;
  (void)request;
  (void)observer;
  spin_in("execute");
  ret_result->ended = SANDHOST_ENDED_EXIT;
  return SANDHOST_OK;
}

static int32_t spin_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  spin_in("terminate");
  return good_terminate(call, sandbox);
}

GOOD_PLUGIN("spin", table.create = spin_create; table.execute = spin_execute;
            table.terminate = spin_terminate)
