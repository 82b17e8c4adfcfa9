/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c: whether the kernel has killed something in this sandbox because its memory was used up.
 *
 * Where the sandbox is a control group of its own whose files are mounted (as container engines do it), the
 * kernel counts such kills there. A command that was killed while the count rose is then told as what it is.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

static int count_fd = -1; /* kept open: a command may hide what lies at the path */

void memory_init(void) {
  static const char *const FILES[] = {"/sys/fs/cgroup/memory.events",
                                      "/sys/fs/cgroup/memory/memory.oom_control"};
  if (!guest_is_init) {
    return; /* the control group is not ours alone */
  }
  for (size_t i = 0; i < sizeof FILES / sizeof FILES[0] && count_fd < 0; i++) {
    count_fd = open(FILES[i], O_RDONLY | O_CLOEXEC);
  }
}

uint64_t memory_kills(void) {
  static const char KEY[] = "oom_kill ";
  char text[512];
  ssize_t length = count_fd < 0 ? -1 : pread(count_fd, text, sizeof text - 1, 0);
  if (length <= 0) {
    return 0;
  }
  text[length] = '\0';
  /* At the beginning of a line: there is an oom_kill_disable as well. */
  for (const char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
    if (strncmp(at, KEY, sizeof KEY - 1) == 0) {
      return strtoull(at + sizeof KEY - 1, NULL, 10);
    }
  }
  return 0;
}
