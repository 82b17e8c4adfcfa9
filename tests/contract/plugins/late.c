/* SPDX-License-Identifier: Apache-2.0 */
/* late.c: goes on writing and failing after execute has returned. */
#include "good.h"

static struct sandhost_call *late_call;
static const struct sandhost_observer *late_observer;

static void *speak(void *argument) {
  (void)argument;
  usleep(100000);
  late_observer->output(late_observer->user, SANDHOST_STDOUT, "late\n", 5);
  good_fail(late_call, SANDHOST_INTERNAL, "late");
  good_host->report(late_call, SANDHOST_REPORT_LOST, good_text("late"));
  good_host->progress(late_call, good_text("late"));
  if (good_host->cancelled(late_call) == 1 && good_host->cancel_fd(late_call) == -1 &&
      good_host->wait(late_call, -1, 0, -1) == SANDHOST_CANCELLED) {
    good_log("spoke late");
  }
  return NULL;
}

static int32_t late_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                            const struct sandhost_execute *request,
                            const struct sandhost_observer *observer,
                            struct sandhost_result *ret_result) {
  pthread_t thread;
  late_call = call;
  late_observer = observer;
  pthread_create(&thread, NULL, speak, NULL);
  pthread_detach(thread);
  return good_execute(call, sandbox, request, observer, ret_result);
}

GOOD_PLUGIN("late", table.execute = late_execute)
