/* SPDX-License-Identifier: Apache-2.0 */
/* check-beside.c: with SANDHOST_THREADS_PARALLEL no operation waits until a command has ended. */
#include <string.h>

#include "suite.h"

typedef struct {
  Box *box;
  gint is_up; /* atomic: it has said so, or ended */
  Ran ran;
} Waiting;

static void note_output(void *user, const char *data, gsize length) {
  (void)data;
  (void)length;
  g_atomic_int_set(&((Waiting *)user)->is_up, 1);
}

static gpointer run_waiting(gpointer data) {
  Waiting *waiting = data;
  run_script(waiting->box,
             "echo up; i=0; until [ -e go ] || [ $i -ge 400 ]; do i=$((i+1)); sleep 0.05; done; "
             "cat go",
             &(RunOptions){.deadline = 120, .on_output = note_output, .user = waiting},
             &waiting->ran);
  g_atomic_int_set(&waiting->is_up, 1);
  return NULL;
}

/* The command waits for a file that is written, and read, while it runs. */
static void write_beside(Box *box, Verdict *verdict) {
  Waiting waiting = {.box = box};
  GThread *thread = g_thread_new("waiting", run_waiting, &waiting);
  while (!g_atomic_int_get(&waiting.is_up)) {
    g_usleep(10000);
  }
  g_autofree char *path = below(box, "go");
  gint32 status = write_from(box, path, "gone\n", 5, 0644);
  g_thread_join(thread);
  if (status != SANDHOST_OK) {
    wrong(verdict, "write_file beside a command returned %s", status_name(status));
  } else if (waiting.ran.status != SANDHOST_OK || strcmp(waiting.ran.out->str, "up\ngone\n") != 0) {
    wrong(verdict,
          "a command that waited for what write_file writes did not see it: status %s, '%.100s'",
          status_name(waiting.ran.status), waiting.ran.out->str);
  }
  ran_clear(&waiting.ran);
}

static void check_beside(Subject *subject, Verdict *verdict) {
  Box box;
  if (subject->table->threads < SANDHOST_THREADS_PARALLEL) {
    skipped(verdict, "the declared thread level allows one call at a time in a sandbox");
    return;
  }
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    write_beside(&box, verdict);
    box_close(&box, verdict);
  }
}

const Check BESIDE_CHECKS[] = {
    {"files: beside a command", "with SANDHOST_THREADS_PARALLEL files move while a command runs",
     check_beside},
    {0},
};
