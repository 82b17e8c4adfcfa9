/* SPDX-License-Identifier: Apache-2.0 */
/* check-watched.c: what was seen of the process around all calls, from before the file was mapped until stop had returned. */
#include "guard.h"
#include "interpose.h"
#include "suite.h"

#define BLIND "this build has a sanitizer in the place from which that is seen"

static void tell_of(GuardKind kind, Verdict *verdict) {
  g_autofree char *found = guard_found(kind);
  if (found) {
    wrong(verdict, "%s", found);
  }
}

static void check_state(Subject *subject, Verdict *verdict) {
  (void)subject;
  tell_of(GUARD_STATE, verdict);
}

static void check_handlers(Subject *subject, Verdict *verdict) {
  (void)subject;
  if (!interpose_sees()) {
    skipped(verdict, BLIND);
    return;
  }
  tell_of(GUARD_HANDLERS, verdict);
}

static void check_threads(Subject *subject, Verdict *verdict) {
  (void)subject;
  if (!interpose_sees()) {
    skipped(verdict, BLIND);
    return;
  }
  tell_of(GUARD_THREADS, verdict);
}

static void check_printed(Subject *subject, Verdict *verdict) {
  (void)subject;
  tell_of(GUARD_PRINTED, verdict);
}

static void check_started(Subject *subject, Verdict *verdict) {
  (void)subject;
  tell_of(GUARD_STARTED, verdict);
}

static void check_reaped(Subject *subject, Verdict *verdict) {
  (void)subject;
  tell_of(GUARD_REAPED, verdict);
}

const Check WATCHED_CHECKS[] = {
    {"process: left as it was",
     "a provider changes no working directory, umask, locale, environment, signal handler or mask",
     check_state},
    {"process: no handlers", "a provider installs no exit or fork handlers", check_handlers},
    {"process: threads",
     "whoever begins a thread waits for its end: stop for those of start, close for an instance's; "
     "none is begun before",
     check_threads},
    {"process: prints nothing", "a provider prints nothing", check_printed},
    {"process: starts nothing early", "until open has returned no process is started",
     check_started},
    {"process: only its own children", "a provider waits for the processes that it began",
     check_reaped},
    {0},
};
