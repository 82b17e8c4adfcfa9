/* SPDX-License-Identifier: Apache-2.0 */
/* hang.c: does not come back from being loaded, or crashes there, where it is told to; else it is like good. */
#include <unistd.h>

#include "good.h"

static void __attribute__((constructor)) hang(void) {
  const char *how = getenv("HANG_HOW");
  while (how && strcmp(how, "hang") == 0) {
    pause();
  }
  if (how && strcmp(how, "abort") == 0) {
    abort();
  }
}

GOOD_PLUGIN("hang", (void)table)
