/* SPDX-License-Identifier: Apache-2.0 */
/* spin.c: loops without an end in the operation that SPIN_WHERE names (execute is the default), deaf to everything. It naps
 * between its turns, so that whoever waits for it has the machine. */
#include "hooked.h"

static void hook(const char *operation) {
  const char *where = getenv("SPIN_WHERE");
  if (strcmp(where ? where : "execute", operation) == 0) {
    good_log("spins");
    for (;;) {
      usleep(1000);
    }
  }
}

HOOKED_PLUGIN("spin")
