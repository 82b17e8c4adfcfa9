/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check-lost.c: sandboxes that are gone: ended under what runs in them, ended before it, killed from inside. Each
 * operation on one is SANDHOST_LOST, terminate and release are not.
 */
#include "lost.h"

#include <string.h>
#include <unistd.h>

#include "interpose.h"
#include "operations.h"

/* ---- One that is gone --------------------------------------------------------------------------------------------- */

static void want_lost_by(const Operation *operation, Box *box, Verdict *verdict) {
  struct sandhost_call call;
  /* One that lives all the same would go on giving until the deadline. */
  Moment moment = {.act = operation_gives(operation) ? ACT_STOP : ACT_NONE, .at = 1};
  call_init(&call, 60);
  gint32 status = operation_run(operation, box, &call, &moment);
  if (operation_is_absent(operation, &moment, status)) {
    /* and stays so */
  } else if (status != SANDHOST_LOST) {
    wrong(verdict, "%s of a sandbox that is gone returned %s instead of LOST: %s", operation->name,
          status_name(status), call.message ? call.message : "no message");
  } else if (!call.message || !*call.message) {
    wrong(verdict, "%s of a sandbox that is gone told no error", operation->name);
  } else if (moment.bytes > 0 && operation_gives(operation)) {
    wrong(verdict, "%s of a sandbox that is gone gave %" G_GUINT64_FORMAT " bytes", operation->name,
          moment.bytes);
  }
  call_clear(&call);
}

static void want_signal_lost(Box *box, Verdict *verdict) {
  struct sandhost_call call;
  if (!box->subject->table->signal) {
    return;
  }
  call_init(&call, 60);
  gint32 status = box->subject->table->signal(&call, box->handle, 1, 15);
  if (status != SANDHOST_LOST) {
    wrong(verdict, "signal of a sandbox that is gone returned %s instead of LOST",
          status_name(status));
  }
  call_clear(&call);
}

void want_all_lost(Box *box, Verdict *verdict) {
  for (const Operation *operation = OPERATIONS; operation->name; operation++) {
    if (operation->is_there(box->subject->table)) {
      want_lost_by(operation, box, verdict);
    }
  }
  want_signal_lost(box, verdict);
}

static void terminate(Box *box, Verdict *verdict) {
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = box->subject->table->terminate(&call, box->handle);
  if (status != SANDHOST_OK) {
    wrong(verdict, "terminate failed with %s: %s", status_name(status),
          call.message ? call.message : "no message");
  }
  call_clear(&call);
}

static void check_after_terminate(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  operations_prepare(&box, verdict);
  terminate(&box, verdict);
  want_all_lost(&box, verdict);
  box_close(&box, verdict); /* once more is no error */
}

/* ---- Ended under what runs in it ------------------------------------------------------------------------------------ */

typedef struct {
  const Operation *operation;
  Box *box;
  struct sandhost_call call;
  Moment moment;
  gint32 status;
  pthread_mutex_t lock;
  pthread_cond_t change;
  gboolean under_way; /* its piece is there */
  gboolean ending;    /* terminate is being called */
} Under;

/* How long a stream stands still once terminate is being called; then it goes on. */
#define STANDSTILL_US 200000

/* In the stream. */
static void stand_still(void *user) {
  Under *under = user;
  pthread_mutex_lock(&under->lock);
  under->under_way = TRUE;
  pthread_cond_broadcast(&under->change);
  while (!under->ending) {
    pthread_cond_wait(&under->change, &under->lock);
  }
  pthread_mutex_unlock(&under->lock);
  g_usleep(STANDSTILL_US);
}

static gpointer run_under(gpointer data) {
  Under *under = data;
  under->status = operation_run(under->operation, under->box, &under->call, &under->moment);
  pthread_mutex_lock(&under->lock);
  under->under_way = TRUE; /* whatever it was */
  pthread_cond_broadcast(&under->change);
  pthread_mutex_unlock(&under->lock);
  return NULL;
}

static void end_under(const Operation *operation, Subject *subject, guint at, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  operations_prepare(&box, verdict);
  Under under = {.operation = operation,
                 .box = &box,
                 .moment = {.act = ACT_HOOK, .at = at, .hook = stand_still, .user = &under}};
  pthread_mutex_init(&under.lock, NULL);
  pthread_cond_init(&under.change, NULL);
  call_init(&under.call, 60);
  GThread *thread = g_thread_new("under", run_under, &under);
  pthread_mutex_lock(&under.lock);
  while (!under.under_way) {
    pthread_cond_wait(&under.change, &under.lock);
  }
  under.ending = TRUE;
  pthread_cond_broadcast(&under.change);
  pthread_mutex_unlock(&under.lock);
  terminate(&box, verdict);
  g_thread_join(thread);
  if (under.status != SANDHOST_LOST && !(under.status == SANDHOST_OK && operation->may_be_done)) {
    wrong(verdict, "%s returned %s instead of LOST when its sandbox was terminated: %s",
          operation->name, status_name(under.status),
          under.call.message ? under.call.message : "no message");
  } else if (under.status == SANDHOST_LOST && (!under.call.lost || !*under.call.lost)) {
    wrong(verdict, "%s returned LOST without a SANDHOST_REPORT_LOST", operation->name);
  }
  call_clear(&under.call);
  pthread_cond_destroy(&under.change);
  pthread_mutex_destroy(&under.lock);
  box_close(&box, verdict);
}

static void check_ended_under(Subject *subject, Verdict *verdict) {
  if (subject->table->threads < SANDHOST_THREADS_PARALLEL) {
    skipped(verdict, "the declared thread level lets nothing run beside terminate");
    return;
  }
  for (const Operation *operation = OPERATIONS; operation->name && !verdict->wrong; operation++) {
    if (operation->streams && operation->is_there(subject->table)) {
      end_under(operation, subject, 1, verdict);
    }
  }
}

/* A command that says nothing: only its own end, or the sandbox's, lets execute return. */
typedef struct {
  Box *box;
  Verdict *verdict;
  GThread *thread;
} Ending;

static gpointer end_now(gpointer data) {
  Ending *ending = data;
  terminate(ending->box, ending->verdict);
  return NULL;
}

static void end_soon(void *user, guint64 execution) {
  Ending *ending = user;
  (void)execution;
  ending->thread = suite_thread_new("end", end_now, ending);
}

/* A command that was begun, and then lost with its sandbox. */
static void want_told_as_begun(const Ran *ran, Verdict *verdict) {
  if (!ran->lost || !*ran->lost) {
    wrong(verdict, "execute returned LOST without a SANDHOST_REPORT_LOST");
  } else if (ran->starts > 0 && ran->did_not_happen) {
    wrong(verdict, "execute said by may_have_happened 0 that a command that ran was never begun");
  }
}

static void check_ended_under_silence(Subject *subject, Verdict *verdict) {
  Box box;
  Ran ran;
  Verdict other = {0};
  if (subject->table->threads < SANDHOST_THREADS_PARALLEL) {
    skipped(verdict, "the declared thread level lets nothing run beside terminate");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  Ending ending = {.box = &box, .verdict = &other};
  run_script(&box, "sleep 600 & setsid sleep 600 & sleep 600",
             &(RunOptions){.on_started = end_soon, .user = &ending}, &ran);
  if (ending.thread) {
    g_thread_join(ending.thread);
  }
  if (other.wrong) {
    wrong(verdict, "%s", other.wrong);
  } else if (ran.status != SANDHOST_LOST) {
    wrong(verdict, "the command's execute returned %s instead of LOST: %s", status_name(ran.status),
          ran.message ? ran.message : "no message");
  } else {
    want_told_as_begun(&ran, verdict);
  }
  g_free(other.wrong);
  ran_clear(&ran);
  want_all_lost(&box, verdict);
  box_close(&box, verdict);
}

/* ---- Killed from inside --------------------------------------------------------------------------------------------- */

/*
 * Kills what stands between the command and the top: this program, where commands run on this machine, else the first
 * process of the sandbox's own process namespace. Nothing else may ever be hit, whatever a provider says of itself:
 * - only ancestors of the command are, never a group and never all;
 * - with this program as the top it has to be in the same namespace and be found above;
 * - else the namespace must be another one than ours, and none of a whole machine, whose number is the same everywhere.
 * In any doubt the command ends with 9 and has killed nothing.
 */
#define MACHINES_OWN "pid:[4026531836]"
#define KILL_ABOVE                                                                                 \
  "n=$(readlink /proc/self/ns/pid) || exit 9; case $n in 'pid:['*) ;; *) exit 9;; esac; "          \
  "if [ %s = other ]; then [ \"$n\" != '%s' ] && [ \"$n\" != '" MACHINES_OWN "' ] || exit 9; "     \
  "else [ \"$n\" = '%s' ] || exit 9; fi; "                                                         \
  "p=$$; all=; while :; do s=$(cat /proc/$p/stat) || exit 9; s=${s##*) }; s=${s#* }; "             \
  "p=${s%%%% *}; [ \"$p\" = %d ] && break; [ \"$p\" -gt 1 ] || exit 9; all=\"$all $p\"; done; "    \
  "[ \"$all\" ] || exit 9; echo killing; kill -9 $all; sleep 60"

/* NULL: this program does not know where it is itself. Owned. */
static char *killing_script(const Subject *subject) {
  g_autofree char *own = g_file_read_link("/proc/self/ns/pid", NULL);
  const char *where = subject->host_surface ? "same" : "other";
  int top = subject->host_surface ? (int)getpid() : 1;
  return own ? g_strdup_printf(KILL_ABOVE, where, own, own, top) : NULL;
}

/* In seconds, where the command outlives what stood above it. Long before it is over everything is killed. */
#define KILLERS_LIMIT 5

/* Whatever a command kills, its call comes back, and the sandbox goes on or is lost: never both. */
static void check_killed_inside(Subject *subject, Verdict *verdict) {
  Box box;
  Ran ran;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  operations_prepare(&box, verdict);
  g_autofree char *script = killing_script(subject);
  run_script(&box, script ? script : "exit 9",
             &(RunOptions){.limit = KILLERS_LIMIT, .deadline = 120}, &ran);
  if (ran.status == SANDHOST_OK && ran.result.exit_code == 9 && ran.out->len == 0) {
    skipped(verdict, "nothing stands above the command that may be killed without a doubt");
  } else if (ran.status == SANDHOST_LOST) {
    want_told_as_begun(&ran, verdict);
    want_all_lost(&box, verdict);
  } else if (ran.status != SANDHOST_OK) {
    wrong(verdict, "a command that killed what stands above it: execute returned %s: %s",
          status_name(ran.status), ran.message ? ran.message : "no message");
  } else {
    want_run(&box, "cat to/kept", 0, "old", verdict);
  }
  ran_clear(&ran);
  box_close(&box, verdict);
}

const Check LOST_CHECKS[] = {
    {"lost: after terminate", "every operation on a terminated sandbox is LOST, and does nothing",
     check_after_terminate},
    {"lost: terminated under streams",
     "terminate beside a stream that moves succeeds; the operation is LOST, with the reason "
     "reported, or was done before; a command never is",
     check_ended_under},
    {"lost: terminated under a command",
     "terminate ends a running command, whose execute is LOST and does not say that it was never "
     "begun; nothing can be "
     "asked afterwards",
     check_ended_under_silence},
    {"lost: killed from inside",
     "a command that kills what stands above it is over; the sandbox goes on, or is LOST for good",
     check_killed_inside},
    {0},
};
