/* SPDX-License-Identifier: Apache-2.0 */
/* mark.c: marks count up, so that a process can lower its own to that of an earlier command only, never to a later one. */
#include "mark.h"

#include <sys/prctl.h>
#include <sys/resource.h>

/* Far above any memory, and below what stands for no limit. */
#define FIRST (UINT64_C(1) << 60)

static int needed;
static uint64_t last = FIRST;

/* gVisor grants it to the first process, which it changes nothing for, and to no other. Asking tells. */
void mark_init(void) {
  int is_reaper = 0;
  needed = prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_GET_CHILD_SUBREAPER, &is_reaper) < 0 ||
           !is_reaper;
}

int mark_is_needed(void) {
  return needed;
}

uint64_t mark_new(void) {
  return needed ? ++last : MARK_NONE;
}

int mark_is_known(uint64_t mark) {
  return mark > FIRST && mark <= last;
}

void mark_set(uint64_t mark) {
  const struct rlimit limit = {.rlim_cur = mark, .rlim_max = mark};
  if (mark != MARK_NONE) {
    setrlimit(RLIMIT_RSS, &limit);
  }
}
