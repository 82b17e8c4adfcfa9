/* SPDX-License-Identifier: Apache-2.0 */
/* check-lifecycle.c: making, sharing, losing and ending sandboxes. */
#include <string.h>

#include "network.h"
#include "sleepers.h"

static void check_reference(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  if (!box.ref || !*box.ref) {
    wrong(verdict, "create reported no SANDHOST_REPORT_REF");
  }
  box_close(&box, verdict);
}

static void check_working_dir(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *expected = g_strdup_printf("%s\n", subject->working_dir);
  want_run(&box, "pwd", 0, expected, verdict);
  want_run(&box, "echo x > here && cat here", 0, "x\n", verdict);
  box_close(&box, verdict);
}

static void check_environment(Subject *subject, Verdict *verdict) {
  Box box;
  g_setenv("SANDHOST_CONFORMANCE_LEAK", "leaked", TRUE);
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box, "echo \"$CONFORMANCE\"", 0, "from the manifest\n", verdict);
  want_run(&box, "echo \"${SANDHOST_CONFORMANCE_LEAK-none}\"", 0, "none\n", verdict);
  box_close(&box, verdict);
}

static void check_state_stays(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&box, "echo kept > state.txt", 0, "", verdict);
  want_run(&box, "cat state.txt", 0, "kept\n", verdict);
  box_close(&box, verdict);
}

static void check_fresh(Subject *subject, Verdict *verdict) {
  Box first;
  Box second;
  if (subject->host_surface) {
    skipped(verdict, "commands run on this machine");
    return;
  }
  if (!box_open(&first, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_run(&first, "echo mine > secret.txt; echo mine > /tmp/secret.txt", 0, "", verdict);
  if (box_open(&second, subject, SANDHOST_NETWORK_DENY, verdict)) {
    want_run(&second, "cat secret.txt /tmp/secret.txt 2>/dev/null; ls", 0, "", verdict);
    box_close(&second, verdict);
  }
  box_close(&first, verdict);
}

static void check_terminate_twice(Subject *subject, Verdict *verdict) {
  Box box;
  struct sandhost_call call;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  call_init(&call, 30);
  if (subject->table->terminate(&call, box.handle) != SANDHOST_OK) {
    wrong(verdict, "the first terminate failed: %s", call.message);
  }
  call_clear(&call);
  box_close(&box, verdict);
}

static void check_use_after_terminate(Subject *subject, Verdict *verdict) {
  Box box;
  Ran ran;
  struct sandhost_call call;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  call_init(&call, 30);
  subject->table->terminate(&call, box.handle);
  call_clear(&call);
  run_script(&box, "echo alive", NULL, &ran);
  if (ran.status == SANDHOST_OK || ran.out->len > 0) {
    wrong(verdict, "a terminated sandbox ran a command");
  }
  ran_clear(&ran);
  box_close(&box, verdict);
}

static void check_terminate_cancelled(Subject *subject, Verdict *verdict) {
  Box box;
  struct sandhost_call call;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  call_init(&call, 30);
  call_cancel(&call);
  gint32 status = subject->table->terminate(&call, box.handle);
  if (status != SANDHOST_OK) {
    wrong(verdict, "terminate of a cancelled caller failed with %s", status_name(status));
  }
  call_clear(&call);
  subject->table->release(box.handle);
  g_free(box.ref);
}

static void check_ends_processes(Subject *subject, Verdict *verdict) {
  Box box;
  guint left = 0;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *mark = g_strdup_printf("1%u", g_random_int_range(100000, 999999));
  g_autofree char *script = g_strdup_printf("sleep %s & (setsid sleep %s &) ; echo up", mark, mark);
  want_run(&box, script, 0, "up\n", verdict);
  for (int i = 0; i < 100 && sleepers_count(mark) < 2; i++) {
    g_usleep(20000);
  }
  guint seen = sleepers_count(mark);
  box_close(&box, verdict);
  for (int i = 0; i < 100 && (left = sleepers_count(mark)) > 0; i++) {
    g_usleep(20000);
  }
  if (left > 0) {
    wrong(verdict, "%u processes live on after terminate", left);
  } else if (seen < 2) {
    untried(verdict, "what runs in the sandbox is not seen from here");
  }
}

#define CROWD 8

/* All are made before one is used, and all are used before one ends. */
typedef struct {
  Subject *subject;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  guint arrived;
} Crowd;

/* Waits until every member of the crowd has come here so many times. */
static void crowd_meet(Crowd *crowd, guint times) {
  pthread_mutex_lock(&crowd->lock);
  crowd->arrived++;
  pthread_cond_broadcast(&crowd->changed);
  while (crowd->arrived < times * CROWD) {
    pthread_cond_wait(&crowd->changed, &crowd->lock);
  }
  pthread_mutex_unlock(&crowd->lock);
}

#define CROWD_SCRIPT "f=f$$; echo one > $f; cat $f"

static gpointer one_of_crowd(gpointer data) {
  Crowd *crowd = data;
  Verdict *verdict = g_new0(Verdict, 1);
  Box box;
  gboolean made = box_open(&box, crowd->subject, SANDHOST_NETWORK_DENY, verdict);
  crowd_meet(crowd, 1);
  if (made) {
    want_run(&box, CROWD_SCRIPT, 0, "one\n", verdict);
  }
  crowd_meet(crowd, 2);
  if (made) {
    box_close(&box, verdict);
  }
  g_free(box.ref);
  return verdict;
}

static void many_in_parallel(Subject *subject, Verdict *verdict) {
  GThread *threads[CROWD];
  Crowd crowd = {.subject = subject};
  pthread_mutex_init(&crowd.lock, NULL);
  pthread_cond_init(&crowd.changed, NULL);
  for (guint i = 0; i < CROWD; i++) {
    threads[i] = g_thread_new("crowd", one_of_crowd, &crowd);
  }
  for (guint i = 0; i < CROWD; i++) {
    Verdict *one = g_thread_join(threads[i]);
    if (one->wrong) {
      wrong(verdict, "%s", one->wrong);
    }
    g_free(one->wrong);
    g_free(one);
  }
  pthread_mutex_destroy(&crowd.lock);
  pthread_cond_destroy(&crowd.changed);
}

static void many_in_turn(Subject *subject, Verdict *verdict) {
  Box boxes[CROWD];
  guint made = 0;
  while (made < CROWD && box_open(&boxes[made], subject, SANDHOST_NETWORK_DENY, verdict)) {
    made++;
  }
  for (guint i = 0; i < made; i++) {
    want_run(&boxes[i], CROWD_SCRIPT, 0, "one\n", verdict);
  }
  for (guint i = 0; i < made; i++) {
    box_close(&boxes[i], verdict);
  }
}

static void check_many(Subject *subject, Verdict *verdict) {
  if (subject->table->threads >= SANDHOST_THREADS_SANDBOX) {
    many_in_parallel(subject, verdict);
  } else {
    many_in_turn(subject, verdict);
  }
}

static void check_network_off(Subject *subject, Verdict *verdict) {
  Box box;
  if (!subject->keeps_network_off) {
    skipped(verdict, "the provider does not declare that it keeps the network off");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  want_network_off(&box, verdict);
  box_close(&box, verdict);
}

static void check_network_on(Subject *subject, Verdict *verdict) {
  Box box;
  if (!declares_setting(subject->table, SANDHOST_SETTING_NETWORK_ON)) {
    skipped(verdict, "the provider does not declare that it gives a network");
    return;
  }
  if (!box_open(&box, subject, SANDHOST_NETWORK_ALLOW, verdict)) {
    return;
  }
  want_network_on(&box, verdict);
  box_close(&box, verdict);
}

const Check LIFECYCLE_CHECKS[] = {
    {"create: its own name", "create reports SANDHOST_REPORT_REF", check_reference},
    {"create: working directory",
     "the working directory exists, is writable, and is where commands start", check_working_dir},
    {"create: environment", "the manifest's variables are there, and nothing of the host's",
     check_environment},
    {"sandbox: files stay", "what one command writes the next one finds", check_state_stays},
    {"sandbox: nothing shared", "two sandboxes see nothing of each other", check_fresh},
    {"sandbox: many at once", "sandboxes may be made and used at once, as the thread level says",
     check_many},
    {"network: off", "SANDHOST_NETWORK_DENY leaves no way out: no route, no connection, no name",
     check_network_off},
    {"network: on", "SANDHOST_NETWORK_ALLOW makes a sandbox whose commands connect",
     check_network_on},
    {"terminate: twice", "terminate succeeds when the sandbox is gone already",
     check_terminate_twice},
    {"terminate: cancelled caller",
     "terminate keeps its own deadline when the caller has cancelled", check_terminate_cancelled},
    {"terminate: use after", "no command runs in a terminated sandbox", check_use_after_terminate},
    {"terminate: processes", "terminate destroys all that runs in the sandbox",
     check_ends_processes},
    {0},
};
