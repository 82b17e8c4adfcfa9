/* SPDX-License-Identifier: Apache-2.0 */
/* check-whole.c: what else belongs to the whole process, and is not a provider's: its limits, its group and session, whether
 * orphans come to it. Held against what was there before anything of a provider was loaded. */
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "suite.h"

typedef struct {
  struct rlimit limits[RLIM_NLIMITS];
  pid_t group;
  pid_t session;
  int takes_orphans;
} Whole;

static void whole_take(Whole *ret_whole) {
  for (int i = 0; i < RLIM_NLIMITS; i++) {
    getrlimit((__rlimit_resource_t)i, &ret_whole->limits[i]);
  }
  ret_whole->group = getpgrp();
  ret_whole->session = getsid(0);
  prctl(PR_GET_CHILD_SUBREAPER, &ret_whole->takes_orphans);
}

static Whole before;

static void __attribute__((constructor)) take_before(void) {
  whole_take(&before);
}

static void check_whole(Subject *subject, Verdict *verdict) {
  Box box;
  Whole after;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box, "echo alive", 0, "alive\n", verdict);
  box_close(&box, verdict);
  whole_take(&after);
  for (int i = 0; i < RLIM_NLIMITS; i++) {
    if (before.limits[i].rlim_cur != after.limits[i].rlim_cur ||
        before.limits[i].rlim_max != after.limits[i].rlim_max) {
      wrong(verdict, "the resource limit %d was changed", i);
    }
  }
  if (before.group != after.group || before.session != after.session) {
    wrong(verdict, "the process has another group, or another session");
  } else if (before.takes_orphans != after.takes_orphans) {
    wrong(verdict, "the process became a child subreaper");
  }
}

const Check WHOLE_CHECKS[] = {
    {"process: limits and groups",
     "a provider changes no resource limit, process group or session, and makes no subreaper of "
     "its host",
     check_whole},
    {0},
};
