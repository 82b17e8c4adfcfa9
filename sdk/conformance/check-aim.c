/* SPDX-License-Identifier: Apache-2.0 */
/* check-aim.c: a signal goes to the command that it names, not to its neighbour. */
#include <string.h>

#include "suite.h"

typedef struct {
  Box *box;
  guint64 execution;
  gint is_up; /* atomic: it has said so */
  Ran ran;
} Neighbour;

static void note_execution(void *user, guint64 execution) {
  ((Neighbour *)user)->execution = execution;
}

static void note_output(void *user, const char *data, gsize length) {
  (void)data;
  (void)length;
  g_atomic_int_set(&((Neighbour *)user)->is_up, 1);
}

static gpointer run_neighbour(gpointer data) {
  Neighbour *neighbour = data;
  run_script(neighbour->box,
             "echo up; i=0; until [ -e go ] || [ $i -ge 600 ]; do i=$((i+1)); sleep 0.05; done; "
             "echo end",
             &(RunOptions){.deadline = 120,
                           .on_started = note_execution,
                           .on_output = note_output,
                           .user = neighbour},
             &neighbour->ran);
  g_atomic_int_set(&neighbour->is_up, 1);
  return NULL;
}

static GThread *neighbour_start(Neighbour *neighbour, Box *box) {
  *neighbour = (Neighbour){.box = box};
  GThread *thread = g_thread_new("neighbour", run_neighbour, neighbour);
  while (!g_atomic_int_get(&neighbour->is_up)) {
    g_usleep(10000);
  }
  return thread;
}

static void send_term(Neighbour *neighbour, Verdict *verdict) {
  struct sandhost_call call;
  call_init(&call, 60);
  gint32 status = neighbour->box->subject->table->signal(&call, neighbour->box->handle,
                                                         neighbour->execution, 15);
  if (status != SANDHOST_OK) {
    wrong(verdict, "signal of a running command returned %s", status_name(status));
  }
  call_clear(&call);
}

static void aim(Box *box, Verdict *verdict) {
  Neighbour aimed;
  Neighbour other;
  GThread *of_other = neighbour_start(&other, box);
  GThread *of_aimed = neighbour_start(&aimed, box);
  send_term(&aimed, verdict);
  g_thread_join(of_aimed);
  want_run(box, ": > go", 0, "", verdict);
  g_thread_join(of_other);
  if (aimed.ran.status != SANDHOST_OK || aimed.ran.result.ended != SANDHOST_ENDED_SIGNAL) {
    wrong(verdict, "the command that was meant: status %s, ended %u", status_name(aimed.ran.status),
          aimed.ran.result.ended);
  }
  if (other.ran.status != SANDHOST_OK || other.ran.result.ended != SANDHOST_ENDED_EXIT ||
      strcmp(other.ran.out->str, "up\nend\n") != 0) {
    wrong(verdict, "the command beside it: status %s, ended %u, '%.100s'",
          status_name(other.ran.status), other.ran.result.ended, other.ran.out->str);
  }
  ran_clear(&aimed.ran);
  ran_clear(&other.ran);
}

static void check_aim(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->table->signal || subject->table->threads < SANDHOST_THREADS_PARALLEL) {
    skipped(verdict,
            subject->table->signal ? "the declared thread level lets no signal in" : "no signal");
    return;
  }
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    aim(&box, verdict);
    box_close(&box, verdict);
  }
}

const Check AIM_CHECKS[] = {
    {"signal: one command", "a signal reaches the command that it is for, and no other", check_aim},
    {0},
};
