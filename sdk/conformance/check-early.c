/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check-early.c: a cancel, a deadline and a stream that says stop, before, at the first and at a later piece of every
 * operation.
 *
 * Soon is measured against a command that does nothing, run right behind it on the same busy machine, beside the two
 * seconds that the contract gives for cleaning up; and only three late returns in a row are too late.
 */
#include <string.h>

#include "left.h"
#include "operations.h"

/* In so many times of an empty command. */
#define SOON 50
#define ATTEMPTS 3
/* Until then the piece is there at which a stream stands still; if it is not, the deadline passes all the same. */
#define UNTIL_DEADLINE (SECOND / 2)

static const char *act_name(Act act) {
  static const char *const NAMES[] = {[ACT_NONE] = "nothing",
                                      [ACT_CANCEL] = "a cancel",
                                      [ACT_DEADLINE] = "the deadline",
                                      [ACT_STOP] = "the stream's stop",
                                      [ACT_HOOK] = "a hook"};
  return NAMES[act];
}

/* ---- Afterwards ------------------------------------------------------------------------------------------------- */

/* The sandbox goes on. *ret_took: what an empty command takes now. */
static gboolean goes_on(Box *box, const char *after, gint64 *ret_took, Verdict *verdict) {
  Ran ran;
  run_script(box, ":", NULL, &ran);
  gboolean ok = ran.status == SANDHOST_OK && ran.result.exit_code == 0;
  if (!ok) {
    wrong(verdict, "after %s the next command returned %s: %s", after, status_name(ran.status),
          ran.message ? ran.message : "no message");
  }
  *ret_took = ran.took;
  ran_clear(&ran);
  return ok;
}

/* ---- Over before it begins ---------------------------------------------------------------------------------------- */

static void begin_late(const Operation *operation, Box *box, gboolean cancelled, Verdict *verdict) {
  gint32 expected = cancelled ? SANDHOST_CANCELLED : SANDHOST_TIMEOUT;
  struct sandhost_call call;
  Moment moment = {0};
  call_init(&call, cancelled ? 60 : -1);
  if (cancelled) {
    call_cancel(&call);
  }
  gint32 status = operation_run(operation, box, &call, &moment);
  if (operation_is_absent(operation, &moment, status)) {
    /* then the host does it itself */
  } else if (status != expected) {
    wrong(verdict, "%s of a call that %s returned %s instead of %s", operation->name,
          cancelled ? "was cancelled" : "had no time left", status_name(status),
          status_name(expected));
  } else if (call.fails == 0) {
    wrong(verdict, "%s returned %s and told no error", operation->name, status_name(status));
  } else if (moment.pieces > 0 && operation_gives(operation)) {
    wrong(verdict, "%s of a call that %s gave something", operation->name,
          cancelled ? "was cancelled" : "had no time left");
  }
  call_clear(&call);
}

static void check_begun_late(Subject *subject, Verdict *verdict) {
  Box box;
  gint64 took = 0;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  gboolean ready = operations_prepare(&box, verdict);
  for (const Operation *operation = OPERATIONS; ready && operation->name; operation++) {
    if (operation->is_there(subject->table)) {
      begin_late(operation, &box, TRUE, verdict);
      begin_late(operation, &box, FALSE, verdict);
    }
  }
  if (ready && goes_on(&box, "calls that were over", &took, verdict)) {
    operations_left_nothing(&box, verdict);
  }
  box_close(&box, verdict);
}

/* ---- On the way --------------------------------------------------------------------------------------------------- */

/* FALSE: it was late, and nothing else was wrong. */
static gboolean end_at(const Operation *operation, Box *box, Act act, guint at, Verdict *verdict) {
  gint32 expected = act == ACT_DEADLINE ? SANDHOST_TIMEOUT : SANDHOST_CANCELLED;
  struct sandhost_call call;
  Moment moment = {.act = act, .at = at};
  gint64 idle = 0;
  call_init(&call, 60);
  if (act == ACT_DEADLINE) {
    call.deadline = suite_now() + UNTIL_DEADLINE;
  }
  gint32 status = operation_run(operation, box, &call, &moment);
  gint64 since = suite_now() - (moment.acted ? moment.acted : call.deadline);
  gboolean whole = operation->is_whole && act != ACT_STOP && operation->is_whole(&moment);
  if (status != expected && !operation_is_absent(operation, &moment, status) &&
      !(status == SANDHOST_OK && (whole || moment.acted == 0))) {
    wrong(verdict, "%s with %s at piece %u returned %s instead of %s: %s", operation->name,
          act_name(act), at, status_name(status), status_name(expected),
          call.message ? call.message : "no message");
  }
  g_autofree char *after = g_strdup_printf("%s with %s", operation->name, act_name(act));
  goes_on(box, after, &idle, verdict);
  if (moment.late) {
    wrong(verdict, "%s used its stream after the return", operation->name);
  } else if (moment.ignored) {
    wrong(verdict, "%s used its stream again after that had said stop", operation->name);
  }
  call_clear(&call);
  return since <= 2 * SECOND + SOON * idle || verdict->wrong;
}

static void end_soon_at(const Operation *operation, Box *box, Act act, guint at, Verdict *verdict) {
  for (int i = 0; i < ATTEMPTS; i++) {
    if (end_at(operation, box, act, at, verdict)) {
      return;
    }
  }
  wrong(verdict, "%s came back late after %s at piece %u, %d times", operation->name, act_name(act),
        at, ATTEMPTS);
}

static void each_ended_by(Subject *subject, Verdict *verdict, Act act) {
  static const guint AT[] = {1, 3, 20};
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  gboolean ready = operations_prepare(&box, verdict);
  for (const Operation *operation = OPERATIONS; ready && operation->name; operation++) {
    for (gsize i = 0; i < G_N_ELEMENTS(AT) && operation->streams; i++) {
      gboolean silent = operation->run == OPERATIONS[1].run && i > 0; /* it says one word only */
      if (operation->is_there(subject->table) && !silent && !verdict->wrong) {
        end_soon_at(operation, &box, act, AT[i], verdict);
      }
    }
  }
  if (ready && !verdict->wrong) {
    operations_left_nothing(&box, verdict);
  }
  box_close(&box, verdict);
}

static void check_cancelled(Subject *subject, Verdict *verdict) {
  each_ended_by(subject, verdict, ACT_CANCEL);
}

static void check_out_of_time(Subject *subject, Verdict *verdict) {
  each_ended_by(subject, verdict, ACT_DEADLINE);
}

static void check_stopped(Subject *subject, Verdict *verdict) {
  each_ended_by(subject, verdict, ACT_STOP);
}

/* ---- From another thread, at any time ----------------------------------------------------------------------------- */

/* Eighths of the time that the operation took when nobody disturbed it. */
#define EIGHTHS 8

typedef struct {
  struct sandhost_call *call;
  gint64 delay; /* ns */
} Disturber;

static gpointer disturb(gpointer data) {
  const Disturber *disturber = data;
  g_usleep((gulong)(disturber->delay / 1000));
  call_cancel(disturber->call);
  return NULL;
}

/* What it takes undisturbed; 0: it does not work, of which other checks tell, or it is not there. */
static gint64 measure(const Operation *operation, Box *box) {
  struct sandhost_call call;
  Moment moment = {0};
  call_init(&call, 300);
  gint64 from = suite_now();
  gint32 status = operation_run(operation, box, &call, &moment);
  call_clear(&call);
  return status == SANDHOST_OK ? suite_now() - from : 0;
}

static void cancel_after(const Operation *operation, Box *box, gint64 delay, Verdict *verdict) {
  struct sandhost_call call;
  Moment moment = {0};
  call_init(&call, 300);
  Disturber disturber = {.call = &call, .delay = delay};
  GThread *thread = g_thread_new("disturb", disturb, &disturber);
  gint32 status = operation_run(operation, box, &call, &moment);
  g_thread_join(thread);
  if (status != SANDHOST_OK && status != SANDHOST_CANCELLED &&
      !operation_is_absent(operation, &moment, status)) {
    wrong(verdict, "%s, cancelled on the way, returned %s: %s", operation->name,
          status_name(status), call.message ? call.message : "no message");
  }
  call_clear(&call);
}

/* Those that have no end of their own are ended at their pieces above. */
static gboolean ends_by_itself(const Operation *operation) {
  return !operation->streams || operation->is_whole;
}

static void check_disturbed(Subject *subject, Verdict *verdict) {
  Box box;
  gint64 idle = 0;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  gboolean ready = operations_prepare(&box, verdict);
  for (const Operation *operation = OPERATIONS; ready && operation->name; operation++) {
    if (!operation->is_there(subject->table) || !ends_by_itself(operation)) {
      continue;
    }
    gint64 took = measure(operation, &box);
    for (gint64 i = 0; took > 0 && i < EIGHTHS && !verdict->wrong; i++) {
      cancel_after(operation, &box, took * i / EIGHTHS, verdict);
      goes_on(&box, operation->name, &idle, verdict);
    }
  }
  box_close(&box, verdict);
}

/* ---- Making one --------------------------------------------------------------------------------------------------- */

/* A create that is cancelled after so long makes an ordinary sandbox, or none. Returns whether it is certain of that. */
static gboolean cancel_create(Subject *subject, gint64 delay, Verdict *verdict) {
  MakeRequest request;
  struct sandhost_call call;
  Box box = {.subject = subject};
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  call_init(&call, 300);
  Disturber disturber = {.call = &call, .delay = delay};
  GThread *thread = g_thread_new("disturb", disturb, &disturber);
  gint32 status = subject->table->create(&call, subject->instance, &request.create, &box.handle);
  g_thread_join(thread);
  if (status == SANDHOST_OK) {
    want_run(&box, "echo alive", 0, "alive\n", verdict);
    box_close(&box, verdict);
  } else if (status != SANDHOST_CANCELLED) {
    wrong(verdict, "create, cancelled on the way, returned %s: %s", status_name(status),
          call.message ? call.message : "no message");
  }
  gboolean certain = status == SANDHOST_OK || !call.may_have_happened;
  call_clear(&call);
  return certain;
}

static void check_create(Subject *subject, Verdict *verdict) {
  Box box;
  gint64 from = suite_now();
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  gint64 took = suite_now() - from;
  box_close(&box, verdict);
  gboolean certain = TRUE;
  for (gint64 i = 0; i <= EIGHTHS && !verdict->wrong; i++) {
    certain = cancel_create(subject, took * i / EIGHTHS, verdict) && certain;
  }
  want_none_left(subject, certain, verdict);
}

static void check_create_late(Subject *subject, Verdict *verdict) {
  MakeRequest request;
  struct sandhost_call call;
  Box box = {.subject = subject};
  make_request_init(&request, subject, SANDHOST_NETWORK_DENY);
  call_init(&call, -1);
  gint32 status = subject->table->create(&call, subject->instance, &request.create, &box.handle);
  if (status == SANDHOST_OK) {
    want_run(&box, "echo alive", 0, "alive\n", verdict);
    box_close(&box, verdict);
  } else if (status != SANDHOST_TIMEOUT) {
    wrong(verdict, "create without any time left returned %s: %s", status_name(status),
          call.message ? call.message : "no message");
  }
  gboolean certain = status == SANDHOST_OK || !call.may_have_happened;
  call_clear(&call);
  want_none_left(subject, certain, verdict);
}

const Check EARLY_CHECKS[] = {
    {"early: over before it begins",
     "an operation whose call is over does nothing: CANCELLED, or TIMEOUT", check_begun_late},
    {"early: cancelled at a piece",
     "a cancel while a stream moves is CANCELLED, soon; nothing half is left, the sandbox stays",
     check_cancelled},
    {"early: deadline at a piece", "the same for a deadline, with TIMEOUT", check_out_of_time},
    {"early: stream says stop",
     "the same for a stream that says stop, with CANCELLED; it is not used again", check_stopped},
    {"early: cancelled at any time",
     "an operation that somebody cancels meanwhile is CANCELLED or done, and the sandbox stays",
     check_disturbed},
    {"early: create cancelled",
     "create, cancelled at any time, is CANCELLED and leaves nothing, or an ordinary sandbox",
     check_create},
    {"early: create out of time", "create without any time left is TIMEOUT, or an ordinary sandbox",
     check_create_late},
    {0},
};
