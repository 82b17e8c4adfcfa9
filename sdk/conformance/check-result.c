/* SPDX-License-Identifier: Apache-2.0 */
/* check-result.c: the numbers of a result. Clocks may be coarse and far away, so the bounds are wide: what they find is
 * another unit, or another place. */
#include "suite.h"

#define MILLISECOND (SECOND / 1000)

/* Nothing, or at least so long. */
static gboolean is_since(gint64 time, gint64 least) {
  return time == 0 || time >= least;
}

static void judge_always(const Ran *ran, Verdict *verdict) {
  const struct sandhost_result *result = &ran->result;
  if (ran->status != SANDHOST_OK || result->ended != SANDHOST_ENDED_EXIT) {
    wrong(verdict, "status %s, ended %u; stderr: %.200s", status_name(ran->status), result->ended,
          ran->err->str);
  } else if (result->duration < 0 || result->duration > ran->took + SECOND) {
    wrong(verdict,
          "a command whose execute took %" G_GINT64_FORMAT
          " ns has a duration of %" G_GINT64_FORMAT,
          ran->took, result->duration);
  } else if (result->user_time < 0 || result->system_time < 0 ||
             result->user_time > 2 * ran->took + SECOND ||
             result->system_time > 2 * ran->took + SECOND) {
    wrong(verdict,
          "one process that ran for %" G_GINT64_FORMAT " ns has used %" G_GINT64_FORMAT
          " ns itself and %" G_GINT64_FORMAT " ns of the system",
          ran->took, result->user_time, result->system_time);
  } else if (result->signal != 0) {
    wrong(verdict, "a command that exited has signal %d", result->signal);
  } else if (result->reserved != 0) {
    wrong(verdict, "reserved is %d", result->reserved);
  }
}

static void sleeping(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "sleep 0.5", NULL, &ran);
  judge_always(&ran, verdict);
  if (!is_since(ran.result.duration, 100 * MILLISECOND)) {
    wrong(verdict, "a command that slept half a second has a duration of %" G_GINT64_FORMAT " ns",
          ran.result.duration);
  }
  ran_clear(&ran);
}

/* Counting is a shell's own work: hardly anything of it is the system's. */
static void counting(Box *box, Verdict *verdict) {
  Ran ran;
  run_script(box, "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done", NULL, &ran);
  judge_always(&ran, verdict);
  const struct sandhost_result *result = &ran.result;
  gint64 used = result->user_time + result->system_time;
  if (!is_since(used, MILLISECOND)) {
    wrong(verdict, "a command that counted to 400,000 has used %" G_GINT64_FORMAT " ns", used);
  } else if (used >= 200 * MILLISECOND && result->system_time > result->user_time) {
    wrong(verdict,
          "of a command that only counted, %" G_GINT64_FORMAT
          " ns are the system's and %" G_GINT64_FORMAT " ns its own",
          result->system_time, result->user_time);
  }
  ran_clear(&ran);
}

static void check_result(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  sleeping(&box, verdict);
  counting(&box, verdict);
  box_close(&box, verdict);
}

const Check RESULT_CHECKS[] = {
    {"execute: numbers",
     "a result's times are nanoseconds, its own apart from the system's; signal is for "
     "ENDED_SIGNAL",
     check_result},
    {0},
};
