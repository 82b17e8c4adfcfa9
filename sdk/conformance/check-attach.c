/* SPDX-License-Identifier: Apache-2.0 */
/* check-attach.c: attach keeps its call as every operation does; and a handle that goes alone. */
#include "suite.h"

static void want_ended(Box *box, gint32 expected, Verdict *verdict) {
  struct sandhost_call call;
  Box other = {.subject = box->subject};
  call_init(&call, expected == SANDHOST_TIMEOUT ? -1 : 60);
  if (expected == SANDHOST_CANCELLED) {
    call_cancel(&call);
  }
  gint32 status = box->subject->table->attach(&call, box->subject->instance,
                                              as_text(box->ref ? box->ref : ""), &other.handle);
  call_clear(&call);
  if (status == SANDHOST_OK) {
    box->subject->table->release(other.handle);
  }
  if (status != expected) {
    wrong(verdict, "attach of a call that %s returned %s instead of %s",
          expected == SANDHOST_TIMEOUT ? "had no time left" : "was cancelled", status_name(status),
          status_name(expected));
  }
}

/* A second handle goes, and the sandbox stays. */
static void release_only(Box *box, Verdict *verdict) {
  struct sandhost_call call;
  Box other = {.subject = box->subject};
  call_init(&call, 60);
  gint32 status = box->subject->table->attach(&call, box->subject->instance,
                                              as_text(box->ref ? box->ref : ""), &other.handle);
  call_clear(&call);
  if (status != SANDHOST_OK) {
    wrong(verdict, "attach to a living sandbox returned %s", status_name(status));
    return;
  }
  box->subject->table->release(other.handle);
  want_run(box, "echo alive", 0, "alive\n", verdict);
}

static void with_attached(Subject *subject, void (*body)(Box *box, Verdict *verdict),
                          Verdict *verdict) {
  Box box;
  if (!subject->table->attach) {
    skipped(verdict, "no attach");
  } else if (box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    body(&box, verdict);
    box_close(&box, verdict);
  }
}

static void over(Box *box, Verdict *verdict) {
  want_ended(box, SANDHOST_CANCELLED, verdict);
  want_ended(box, SANDHOST_TIMEOUT, verdict);
  want_run(box, "echo alive", 0, "alive\n", verdict);
}

static void check_over(Subject *subject, Verdict *verdict) {
  with_attached(subject, over, verdict);
}

static void check_released(Subject *subject, Verdict *verdict) {
  with_attached(subject, release_only, verdict);
}

const Check ATTACH_CHECKS[] = {
    {"attach: over before it begins", "attach of a call that is over is CANCELLED, or TIMEOUT",
     check_over},
    {"attach: released", "release ends nothing: another handle of the same sandbox goes on",
     check_released},
    {0},
};
