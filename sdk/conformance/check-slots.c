/* SPDX-License-Identifier: Apache-2.0 */
/* check-slots.c: signal, attach, enforces_now, and the bounds that changes is given. */
#include <string.h>

#include "lost.h"

/* ---- signal ------------------------------------------------------------------------------------------------------ */

typedef struct {
  Box *box;
  guint64 execution;
  gint32 number; /* the signal that is sent at the first output */
  gint32 status; /* what signal returned */
  gboolean sent;
} Signalling;

static gint32 send_signal(Box *box, guint64 execution, gint32 number) {
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = box->subject->table->signal(&call, box->handle, execution, number);
  call_clear(&call);
  return status;
}

static void note_execution(void *user, guint64 execution) {
  ((Signalling *)user)->execution = execution;
}

/* The command says a word when its traps are set. */
static void send_at_output(void *user, const char *data, gsize length) {
  Signalling *signalling = user;
  (void)data;
  (void)length;
  if (!signalling->sent) {
    signalling->sent = TRUE;
    signalling->status = send_signal(signalling->box, signalling->execution, signalling->number);
  }
}

static void run_signalled(Box *box, const char *script, gint32 number, Signalling *signalling,
                          Ran *ret_ran) {
  *signalling = (Signalling){.box = box, .number = number};
  run_script(box, script,
             &(RunOptions){.limit = 60,
                           .deadline = 120,
                           .on_started = note_execution,
                           .on_output = send_at_output,
                           .user = signalling},
             ret_ran);
}

static void signal_ends(Box *box, Verdict *verdict) {
  Signalling signalling;
  Ran ran;
  run_signalled(box, "echo up; sleep 30; echo late", 15, &signalling, &ran);
  if (!signalling.sent || signalling.status != SANDHOST_OK) {
    wrong(verdict, "signal of a running command returned %s", status_name(signalling.status));
  } else if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_SIGNAL ||
             ran.result.signal != 15 || ran.result.exit_code != 143) {
    wrong(verdict, "after SIGTERM: %s, ended %u, signal %d, exit code %d", status_name(ran.status),
          ran.result.ended, ran.result.signal, ran.result.exit_code);
  }
  ran_clear(&ran);
  gint32 status = send_signal(box, signalling.execution, 15);
  if (status != SANDHOST_NOT_FOUND) {
    wrong(verdict, "signal of a finished command returned %s instead of NOT_FOUND",
          status_name(status));
  }
}

/* The command's own process and its child both say that they got it. */
static void signal_reaches_group(Box *box, Verdict *verdict) {
  Signalling signalling;
  Ran ran;
  run_signalled(box,
                "sh -c 'trap \"echo child >> got; exit 0\" USR1; : > ready; "
                "while :; do sleep 0.05; done' & "
                "trap 'echo own >> got; i=0; until grep -q child got || [ $i -ge 100 ]; do "
                "i=$((i+1)); sleep 0.1; done; exit 5' USR1; "
                "while [ ! -e ready ]; do sleep 0.05; done; echo up; while :; do sleep 0.05; done",
                10, &signalling, &ran);
  if (ran.status != SANDHOST_OK || ran.result.ended != SANDHOST_ENDED_EXIT ||
      ran.result.exit_code != 5) {
    wrong(verdict, "a command that traps SIGUSR1: %s, ended %u, exit code %d, signal said %s",
          status_name(ran.status), ran.result.ended, ran.result.exit_code,
          status_name(signalling.status));
  }
  ran_clear(&ran);
  want_run(box, "sort got", 0, "child\nown\n", verdict);
}

static void check_signal(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->signal || subject->table->threads < SANDHOST_THREADS_PARALLEL) {
    skipped(verdict,
            subject->table->signal ? "the declared thread level lets no signal in" : "no signal");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  signal_ends(&box, verdict);
  signal_reaches_group(&box, verdict);
  gint32 none = send_signal(&box, G_MAXUINT64, 15);
  if (none != SANDHOST_NOT_FOUND) {
    wrong(verdict, "signal of no command returned %s instead of NOT_FOUND", status_name(none));
  }
  want_run(&box, "echo alive", 0, "alive\n", verdict);
  box_close(&box, verdict);
}

/* ---- attach ------------------------------------------------------------------------------------------------------- */

static gint32 attach(Subject *subject, const char *ref, Box *ret_box, Verdict *verdict) {
  struct sandhost_call call;
  call_init(&call, 60);
  *ret_box = (Box){.subject = subject};
  gint32 status = subject->table->attach(&call, subject->instance, as_text(ref), &ret_box->handle);
  if (status == SANDHOST_OK && call.ref && strcmp(call.ref, ref) != 0) {
    wrong(verdict, "attach to '%s' reported another SANDHOST_REPORT_REF, '%s'", ref, call.ref);
  }
  call_clear(&call);
  return status;
}

static void want_no_attach(Subject *subject, const char *ref, const char *what, Verdict *verdict) {
  Box box;
  gint32 status = attach(subject, ref, &box, verdict);
  if (status != SANDHOST_NOT_FOUND) {
    wrong(verdict, "attach to %s returned %s instead of NOT_FOUND", what, status_name(status));
  }
  if (status == SANDHOST_OK) {
    box_close(&box, verdict);
  }
}

static void check_attach(Subject *subject, Verdict *verdict) {
  Box box;
  Box other;
  if (!subject->table->attach) {
    skipped(verdict, "no attach");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box, "echo mine > file", 0, "", verdict);
  g_autofree char *ref = g_strdup(box.ref ? box.ref : "");
  gint32 status = attach(subject, ref, &other, verdict);
  if (status != SANDHOST_OK) {
    wrong(verdict, "attach to a living sandbox returned %s", status_name(status));
  } else {
    want_run(&other, "cat file; echo theirs >> file", 0, "mine\n", verdict);
    want_run(&box, "cat file", 0, "mine\ntheirs\n", verdict);
    box_close(&other, verdict);
    want_all_lost(&box, verdict);
  }
  box_close(&box, verdict);
  want_no_attach(subject, ref, "a sandbox that is gone", verdict);
  want_no_attach(subject, "no-such-sandbox", "a name that nothing has", verdict);
}

/* ---- enforces_now ------------------------------------------------------------------------------------------------- */

#define UNTOUCHED 0xfeedu

static gboolean tells_why(const struct sandhost_call *call, guint32 setting) {
  for (guint i = 0; i < call->lowered_count; i++) {
    if (call->lowered[i] == setting) {
      return TRUE;
    }
  }
  return FALSE;
}

static void judge_levels(const struct sandhost_provider *table, const struct sandhost_call *call,
                         const guint32 *levels, Verdict *verdict) {
  for (gsize i = 0; i < table->enforces_count; i++) {
    const struct sandhost_enforces *declared = &table->enforces[i];
    if (levels[i] > declared->level) {
      wrong(verdict, "setting %u is raised from %u to %u", declared->setting, declared->level,
            levels[i]);
    } else if (levels[i] < declared->level && !tells_why(call, declared->setting)) {
      wrong(verdict, "setting %u is lowered from %u to %u, and no reason is told",
            declared->setting, declared->level, levels[i]);
    }
  }
  if (levels[table->enforces_count] != UNTOUCHED) {
    wrong(verdict, "a level was written behind the last one");
  }
}

static void check_enforces_now(Subject *subject, Verdict *verdict) {
  const struct sandhost_provider *table = subject->table;
  struct sandhost_call call;
  if (!table->enforces_now) {
    skipped(verdict, "no enforces_now: what is declared holds");
    return;
  }
  g_autofree guint32 *levels = g_new(guint32, table->enforces_count + 1);
  for (gsize i = 0; i <= table->enforces_count; i++) {
    levels[i] = UNTOUCHED;
  }
  call_init(&call, 60);
  gint32 status = table->enforces_now(&call, subject->instance, levels, table->enforces_count);
  if (status != SANDHOST_OK) {
    wrong(verdict, "enforces_now returned %s: %s", status_name(status),
          call.message ? call.message : "no message");
  } else {
    judge_levels(table, &call, levels, verdict);
  }
  call_clear(&call);
}

/* ---- The bounds of changes ---------------------------------------------------------------------------------------- */

typedef struct {
  guint entries;
  guint hashed;
} Counted;

static int32_t count_entry(void *user, const struct sandhost_entry *entry) {
  Counted *counted = user;
  counted->entries++;
  counted->hashed += (entry->flags & SANDHOST_ENTRY_SHA256) != 0;
  return SANDHOST_OK;
}

static void want_counted(Box *box, guint64 max_entries, guint64 max_hash, gint32 expected,
                         Counted wanted, Verdict *verdict) {
  Counted counted = {0};
  struct sandhost_call call;
  const struct sandhost_changes request = {.size = sizeof request,
                                           .root = as_path(box->subject->working_dir),
                                           .max_hash_bytes = max_hash,
                                           .max_entries = max_entries};
  const struct sandhost_entry_sink sink = {
      .size = sizeof sink, .user = &counted, .entry = count_entry};
  call_init(&call, 60);
  gint32 status = box->subject->table->changes(&call, box->handle, &request, &sink);
  call_clear(&call);
  if (status != expected || counted.entries != wanted.entries || counted.hashed != wanted.hashed) {
    wrong(verdict,
          "with max_entries %" G_GUINT64_FORMAT " and max_hash_bytes %" G_GUINT64_FORMAT
          ": %s, %u entries, %u of them hashed, instead of %s, %u and %u",
          max_entries, max_hash, status_name(status), counted.entries, counted.hashed,
          status_name(expected), wanted.entries, wanted.hashed);
  }
}

static void check_changes_bounds(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->changes) {
    skipped(verdict, "no changes: the host runs a listing command");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box,
           "for i in 1 2 3 4; do echo $i > f$i; done; head -c 3000000 /dev/zero > large; "
           "printf abc > three",
           0, "", verdict);
  want_counted(&box, 0, 0, SANDHOST_OK, (Counted){6, 6}, verdict);
  want_counted(&box, 6, 0, SANDHOST_OK, (Counted){6, 6}, verdict);
  want_counted(&box, 5, 0, SANDHOST_LIMIT, (Counted){5, 5}, verdict);
  want_counted(&box, 1, 0, SANDHOST_LIMIT, (Counted){1, 1}, verdict);
  want_counted(&box, 0, 3000000, SANDHOST_OK, (Counted){6, 6}, verdict);
  want_counted(&box, 0, 2999999, SANDHOST_OK, (Counted){6, 5}, verdict);
  want_counted(&box, 0, 2, SANDHOST_OK, (Counted){6, 4}, verdict);
  want_run(&box, "rm large three f1 f2 f3 f4", 0, "", verdict);
  want_counted(&box, 1, 0, SANDHOST_OK, (Counted){0, 0}, verdict);
  box_close(&box, verdict);
}

const Check SLOT_CHECKS[] = {
    {"signal: group",
     "a signal reaches the command's process and its group; a finished command is NOT_FOUND",
     check_signal},
    {"attach: by its name", "attach adopts a living sandbox; one that is gone is NOT_FOUND",
     check_attach},
    {"enforces: now", "enforces_now only lowers, and reports why", check_enforces_now},
    {"changes: bounds",
     "more than max_entries is LIMIT after that many; over max_hash_bytes comes without a hash; 0 "
     "is no limit",
     check_changes_bounds},
    {0},
};
