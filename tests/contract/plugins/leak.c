/* SPDX-License-Identifier: Apache-2.0 */
/* leak.c: leaves descriptors open, LEAK_COUNT of them (64 is the default) in each of open, create and execute, or only in
 * the one that LEAK_WHERE names; every second one is not closed on exec. Each is of the file that LEAK_FILE names. */
#include "good.h"

static void leak_in(const char *operation) {
  const char *where = getenv("LEAK_WHERE");
  const char *file = getenv("LEAK_FILE");
  const char *count = getenv("LEAK_COUNT");
  if (where && strcmp(where, operation) != 0) {
    return;
  }
  for (int i = 0; i < good_number(count ? count : "64"); i++) {
    int fd = open(file ? file : "/dev/null", i % 2 ? O_RDONLY | O_CLOEXEC : O_RDONLY);
    if (fd < 0) {
      return;
    }
  }
}

static int32_t leak_open(struct sandhost_call *call, const struct sandhost_open *request,
                         struct sandhost_instance **ret_instance) {
  leak_in("open");
  return good_open(call, request, ret_instance);
}

static int32_t leak_create(struct sandhost_call *call, struct sandhost_instance *instance,
                           const struct sandhost_create *request,
                           struct sandhost_sandbox **ret_sandbox) {
  leak_in("create");
  return good_create(call, instance, request, ret_sandbox);
}

/* As sh -c gives it: the command succeeds and says so. */
static int32_t leak_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  (void)call;
  (void)sandbox;
  (void)request;
  leak_in("execute");
  ret_result->ended = SANDHOST_ENDED_EXIT;
  good_say(observer, ret_result, "done\n", 5);
  return SANDHOST_OK;
}

GOOD_PLUGIN("leak", table.open = leak_open; table.create = leak_create;
            table.execute = leak_execute)
