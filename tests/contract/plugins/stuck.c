/* SPDX-License-Identifier: Apache-2.0 */
/* stuck.c: does not come back from where STUCK_IN says: its constructor, its entry, start; elsewhere it is good. */
#include "good.h"

static void perhaps_stuck(const char *where) {
  const char *wanted = getenv("STUCK_IN");
  while (wanted && strcmp(wanted, where) == 0) {
    usleep(1000);
  }
}

__attribute__((constructor)) static void constructor(void) {
  perhaps_stuck("constructor");
}

static int32_t stuck_start(struct sandhost_call *call, const struct sandhost_host *host) {
  (void)call;
  (void)host;
  perhaps_stuck("start");
  return SANDHOST_OK;
}

GOOD_PLUGIN("stuck", table.start = stuck_start; perhaps_stuck("entry"))
