/* SPDX-License-Identifier: Apache-2.0 */
/* check-person.c: what is told to a person who waits. */
#include "suite.h"

static void check_progress(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box, "echo alive", 0, "alive\n", verdict);
  box_close(&box, verdict);
  g_autofree char *line = bad_progress(); /* of all calls until now */
  if (line) {
    wrong(verdict, "progress was told '%.200s'", line);
  }
}

const Check PERSON_CHECKS[] = {
    {"progress: one line", "progress is one line of text, without control characters",
     check_progress},
    {0},
};
