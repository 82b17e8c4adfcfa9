/* SPDX-License-Identifier: Apache-2.0 */
/* check-limits.c: what ends a command before its time. */
#include <string.h>

#include "suite.h"

/* Also what has yet to become a sleep, since the machine is busy. */
static gboolean nothing_left(Box *box, const char *mark, Verdict *verdict) {
  g_autofree char *script =
      g_strdup_printf("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -Eq "
                      "'^(setsid )?sleep %s' && echo ${p##*/}; done; true",
                      mark);
  return want_run(box, script, 0, "", verdict);
}

static void with_limit(Subject *subject, Verdict *verdict, const char *body) {
  Box box;
  Ran ran;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *mark = g_strdup_printf("1%u", g_random_int_range(100000, 999999));
  g_auto(GStrv) parts = g_strsplit(body, "MARK", -1);
  g_autofree char *script = g_strjoinv(mark, parts);
  run_script(&box, script, &(RunOptions){.limit = 1}, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_LIMIT ||
      ran.result.exit_code != 137) {
    wrong(verdict, "status %s, ended %u, exit code %d", status_name(ran.status), ran.result.ended,
          ran.result.exit_code);
  } else if (strcmp(ran.out->str, "before\n") != 0) {
    wrong(verdict, "what it printed before the limit came as '%.100s'", ran.out->str);
  } else if (ran.took < SECOND * 9 / 10) {
    wrong(verdict, "it was killed after %" G_GINT64_FORMAT " ms", ran.took / 1000000);
  }
  ran_clear(&ran);
  nothing_left(&box, mark, verdict);
  want_run(&box, "echo alive", 0, "alive\n", verdict);
  box_close(&box, verdict);
}

static void check_limit(Subject *subject, Verdict *verdict) {
  with_limit(subject, verdict, "echo before; sleep MARK");
}

static void check_limit_tree(Subject *subject, Verdict *verdict) {
  with_limit(
      subject, verdict,
      "echo before; sleep MARK & (sleep MARK & sleep MARK) & (setsid sleep MARK &) ; "
      "(setsid sh -c 'setsid sleep MARK & sleep MARK' &) ; trap '' TERM HUP INT; sleep MARK");
}

static void check_limit_flood(Subject *subject, Verdict *verdict) {
  Box box;
  Ran ran;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  run_script(&box, "yes", &(RunOptions){.limit = 1, .max_output = 1000}, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_LIMIT ||
      ran.out->len != 1000) {
    wrong(verdict, "status %s, ended %u, %zu bytes", status_name(ran.status), ran.result.ended,
          (size_t)ran.out->len);
  }
  ran_clear(&ran);
  box_close(&box, verdict);
}

static void check_no_false_limit(Subject *subject, Verdict *verdict) {
  Box box;
  Ran ran;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  run_script(&box, "exit 137", &(RunOptions){.limit = 30}, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_EXIT ||
      ran.result.exit_code != 137) {
    wrong(verdict, "exit 137 ended as %u with %d", ran.result.ended, ran.result.exit_code);
  }
  ran_clear(&ran);
  box_close(&box, verdict);
}

static void ended_early(Subject *subject, Verdict *verdict, const RunOptions *options,
                        gint32 expected) {
  Box box;
  Ran ran;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *mark = g_strdup_printf("1%u", g_random_int_range(100000, 999999));
  g_autofree char *script =
      g_strdup_printf("yes | head -c 200000; (setsid sleep %s &); sleep %s", mark, mark);
  guint late = late_calls();
  run_script(&box, script, options, &ran);
  if (ran.status != expected) {
    wrong(verdict, "execute returned %s instead of %s", status_name(ran.status),
          status_name(expected));
  } else if (late_calls() > late) {
    wrong(verdict, "the observer was called after the return");
  }
  ran_clear(&ran);
  nothing_left(&box, mark, verdict);
  want_run(&box, "echo alive", 0, "alive\n", verdict);
  box_close(&box, verdict);
}

static void check_cancel(Subject *subject, Verdict *verdict) {
  ended_early(subject, verdict, &(RunOptions){.cancel_after = SECOND / 2}, SANDHOST_CANCELLED);
}

static void check_deadline(Subject *subject, Verdict *verdict) {
  ended_early(subject, verdict, &(RunOptions){.deadline = 1}, SANDHOST_TIMEOUT);
}

static void check_stop(Subject *subject, Verdict *verdict) {
  ended_early(subject, verdict, &(RunOptions){.stop_after = 1000}, SANDHOST_CANCELLED);
}

static void check_cancelled_before(Subject *subject, Verdict *verdict) {
  struct sandhost_sandbox *handle = NULL;
  const struct sandhost_network network = {
      .size = sizeof network,
      .mode = subject->keeps_network_off ? SANDHOST_NETWORK_DENY : SANDHOST_NETWORK_ALLOW};
  const struct sandhost_create request = {.size = sizeof request,
                                          .key = as_text("sandbox_never"),
                                          .run_id = as_text(subject->run_id),
                                          .working_dir = as_path(subject->working_dir),
                                          .network = &network};
  struct sandhost_call call;
  call_init(&call, 60);
  call_cancel(&call);
  gint32 status = subject->table->create(&call, subject->instance, &request, &handle);
  if (status == SANDHOST_OK && !handle) {
    wrong(verdict, "create returned OK and no sandbox");
  } else if (status == SANDHOST_OK) {
    /* Too quick to notice is allowed; then it is a sandbox like any other. */
    Box box = {.subject = subject, .handle = handle};
    want_run(&box, "echo alive", 0, "alive\n", verdict);
    box_close(&box, verdict);
  } else if (status != SANDHOST_CANCELLED) {
    wrong(verdict, "create of a cancelled caller returned %s", status_name(status));
  }
  call_clear(&call);
}

const Check LIMIT_CHECKS[] = {
    {"limit: time",
     "a command at its limit is killed: ENDED_LIMIT, 137, its output until then is there",
     check_limit},
    {"limit: whole tree",
     "the limit kills everything the command started, whatever session or group it is in",
     check_limit_tree},
    {"limit: flood", "a full pipe does not hold the kill back", check_limit_flood},
    {"limit: not confused", "exit 137 is an exit", check_no_false_limit},
    {"cancel: running command",
     "a cancel ends the whole tree and returns CANCELLED; the sandbox stays", check_cancel},
    {"cancel: deadline", "a passed deadline does the same and returns TIMEOUT", check_deadline},
    {"cancel: observer says stop", "the same for an observer that says stop", check_stop},
    {"cancel: before create", "create of a cancelled caller is CANCELLED, or an ordinary sandbox",
     check_cancelled_before},
    {0},
};
