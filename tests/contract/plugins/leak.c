/* SPDX-License-Identifier: Apache-2.0 */
/* leak.c: leaves descriptors open, LEAK_COUNT of them (64 is the default) in each of open, create and execute, or only in
 * the one that LEAK_WHERE names; every second one is not closed on exec. Each is of the file that LEAK_FILE names. */
#define HOOK_SAYS "done\n"
#include "hooked.h"

static void hook(const char *operation) {
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

HOOKED_PLUGIN("leak")
