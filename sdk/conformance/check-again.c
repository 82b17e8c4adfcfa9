/* SPDX-License-Identifier: Apache-2.0 */
/* check-again.c: a create that failed leaves nothing behind, so its key is free. */
#include <string.h>

#include "suite.h"

typedef struct {
  struct sandhost_call *call;
  gint64 delay; /* microseconds */
} Canceller;

static gpointer cancel_later(gpointer data) {
  const Canceller *canceller = data;
  g_usleep((gulong)canceller->delay);
  call_cancel(canceller->call);
  return NULL;
}

/* Whether it failed and is certain of having left nothing. One that succeeds is ended: its key is free as well. */
static gboolean fails(Subject *subject, const MakeRequest *request, gint64 seconds, gint64 delay,
                      Verdict *verdict) {
  struct sandhost_call call;
  Box box = {.subject = subject};
  call_init(&call, seconds);
  Canceller canceller = {.call = &call, .delay = delay};
  GThread *thread = delay > 0 ? g_thread_new("cancel", cancel_later, &canceller) : NULL;
  gint32 status = subject->table->create(&call, subject->instance, &request->create, &box.handle);
  if (thread) {
    g_thread_join(thread);
  }
  gboolean certain = status == SANDHOST_OK || !call.may_have_happened;
  call_clear(&call);
  if (status == SANDHOST_OK) {
    box_close(&box, verdict);
  }
  return certain;
}

/* Nothing is asked for now that cannot be had. */
static void want_again(Subject *subject, MakeRequest *request, const char *after,
                       Verdict *verdict) {
  Verdict own = {0};
  Box box;
  request->create.image = as_text("");
  request->create.snapshot = as_text("");
  request->create.gpu = 0;
  if (box_open_as(&box, subject, request, &own)) {
    want_run(&box, "echo alive; ls -A", 0, "alive\n", &own);
    box_close(&box, &own);
  } else {
    g_free(box.ref);
  }
  if (own.wrong) {
    wrong(verdict, "with the key of a create that %s: %s", after, own.wrong);
  }
  g_free(own.wrong);
}

#define QUARTERS 4

static void after_cancel(Subject *subject, Verdict *verdict) {
  MakeRequest request;
  Box box;
  gint64 from = suite_now();
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  gint64 took = (suite_now() - from) / 1000;
  box_close(&box, verdict);
  for (gint64 i = 1; i <= QUARTERS && !verdict->wrong; i++) {
    make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
    if (fails(subject, &request, 300, took * i / QUARTERS, verdict)) {
      want_again(subject, &request, "was cancelled", verdict);
    }
  }
}

static void check_again(Subject *subject, Verdict *verdict) {
  MakeRequest request;
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  if (fails(subject, &request, -1, 0, verdict)) {
    want_again(subject, &request, "had no time left", verdict);
  }
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  request.create.snapshot = as_text("sandhost-conformance-no-such-snapshot");
  if (fails(subject, &request, 300, 0, verdict)) {
    want_again(subject, &request, "named a snapshot that is none", verdict);
  }
  if (subject_level(subject, SANDHOST_SETTING_GPU) == SANDHOST_LEVEL_NONE) {
    make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
    request.create.gpu = 1;
    if (fails(subject, &request, 300, 0, verdict)) {
      want_again(subject, &request, "asked for a GPU", verdict);
    }
  }
  after_cancel(subject, verdict);
}

const Check AGAIN_CHECKS[] = {
    {"create: after a failure",
     "a create that failed leaves nothing behind: the same key makes an ordinary sandbox",
     check_again},
    {0},
};
