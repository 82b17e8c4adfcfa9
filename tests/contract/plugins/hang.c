/* SPDX-License-Identifier: Apache-2.0 */
/* hang.c: does not come back from being loaded or from the operation that HANG_HOW names, or crashes while it is loaded,
 * where it is told to; else it is like good. */
#include <unistd.h>

#include "good.h"

static void hang_in(const char *what) {
  const char *how = getenv("HANG_HOW");
  while (how && strcmp(how, what) == 0) {
    pause();
  }
}

static void __attribute__((constructor)) hang(void) {
  const char *how = getenv("HANG_HOW");
  hang_in("hang");
  if (how && strcmp(how, "abort") == 0) {
    abort();
  }
}

static int32_t hang_open(struct sandhost_call *call, const struct sandhost_open *request,
                         struct sandhost_instance **ret_instance) {
  hang_in("open");
  return good_open(call, request, ret_instance);
}

static void hang_close(struct sandhost_instance *instance) {
  hang_in("close");
  good_close(instance);
}

static int32_t hang_create(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_create *request,
                           struct sandhost_sandbox **ret_sandbox) {
  hang_in("create");
  return good_create(call, instance, request, ret_sandbox);
}

static int32_t hang_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  hang_in("execute");
  return good_execute(call, sandbox, request, observer, ret_result);
}

static int32_t hang_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  hang_in("terminate");
  return good_terminate(call, sandbox);
}

GOOD_PLUGIN("hang", table.open = hang_open; table.close = hang_close; table.create = hang_create;
            table.execute = hang_execute; table.terminate = hang_terminate)
