/* SPDX-License-Identifier: Apache-2.0 */
/* stuck.c: does not come back from where STUCK_IN says: its constructor, its entry, start; elsewhere it is good. With
 * STUCK_DEAF no signal gets through to the thread meanwhile. */
#include "good.h"

#include <signal.h>

static void perhaps_stuck(const char *where) {
  const char *wanted = getenv("STUCK_IN");
  sigset_t all;
  if (wanted && strcmp(wanted, where) == 0 && getenv("STUCK_DEAF")) {
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
  }
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
