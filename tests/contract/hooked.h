/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hooked.h: the well-behaved provider with one function of the plugin's own before everything that open, create, execute
 * and terminate do. Every command succeeds, as sh -c gives it, and says HOOK_SAYS, which is nothing where the plugin does
 * not define it.
 */
#ifndef SANDHOST_CONTRACT_HOOKED_H
#define SANDHOST_CONTRACT_HOOKED_H

#include "good.h"

#ifndef HOOK_SAYS
#define HOOK_SAYS ""
#endif

/* The plugin's. */
static void hook(const char *operation);

static inline int32_t hooked_open(struct sandhost_call *call, const struct sandhost_open *request,
                                  struct sandhost_instance **ret_instance) {
  hook("open");
  return good_open(call, request, ret_instance);
}

static inline int32_t hooked_create(struct sandhost_call *call, struct sandhost_instance *instance,
                                    const struct sandhost_create *request,
                                    struct sandhost_sandbox **ret_sandbox) {
  hook("create");
  return good_create(call, instance, request, ret_sandbox);
}

static inline int32_t hooked_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                     const struct sandhost_execute *request,
                                     const struct sandhost_observer *observer,
                                     struct sandhost_result *ret_result) {
  (void)call;
  (void)sandbox;
  (void)request;
  hook("execute");
  ret_result->ended = SANDHOST_ENDED_EXIT;
  if (sizeof HOOK_SAYS > 1) {
    good_say(observer, ret_result, HOOK_SAYS, sizeof HOOK_SAYS - 1);
  }
  return SANDHOST_OK;
}

static inline int32_t hooked_terminate(struct sandhost_call *call,
                                       struct sandhost_sandbox *sandbox) {
  hook("terminate");
  return good_terminate(call, sandbox);
}

#define HOOKED_PLUGIN(plugin_name)                                                                 \
  GOOD_PLUGIN(plugin_name, table.open = hooked_open; table.create = hooked_create;                 \
              table.execute = hooked_execute; table.terminate = hooked_terminate)

#endif
