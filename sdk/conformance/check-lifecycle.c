/* SPDX-License-Identifier: Apache-2.0 */
/* check-lifecycle.c: making, sharing, losing and ending sandboxes. */
#include <string.h>

#include "suite.h"

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
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  g_autofree char *mark = g_strdup_printf("%u", g_random_int_range(100000, 999999));
  g_autofree char *script =
      g_strdup_printf("sleep 1%s & (setsid sleep 1%s &) ; echo up", mark, mark);
  want_run(&box, script, 0, "up\n", verdict);
  box_close(&box, verdict);
  /* Local providers only: a remote one shows no process here. */
  g_autofree char *search = g_strdup_printf("pgrep -f '^sleep 1%s$'", mark);
  const char *argv[] = {"/bin/sh", "-c", search, NULL};
  for (int i = 0; i < 100; i++) {
    int status = 0;
    g_autofree char *out = NULL;
    g_spawn_sync(NULL, (char **)(gpointer)argv, NULL, 0, NULL, NULL, &out, NULL, &status, NULL);
    if (!out || !*out) {
      return;
    }
    g_usleep(20000);
  }
  wrong(verdict, "processes live on after terminate");
}

#define CROWD 8

static gpointer one_of_crowd(gpointer data) {
  Subject *subject = data;
  Verdict *verdict = g_new0(Verdict, 1);
  Box box;
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    want_run(&box, "f=f$$; echo one > $f; cat $f", 0, "one\n", verdict);
    box_close(&box, verdict);
  }
  return verdict;
}

static void check_many(Subject *subject, Verdict *verdict) {
  GThread *threads[CROWD];
  gboolean parallel = subject->table->threads >= SANDHOST_THREADS_SANDBOX;
  for (guint i = 0; i < CROWD; i++) {
    threads[i] = g_thread_new("crowd", one_of_crowd, subject);
    if (!parallel) {
      g_thread_join(g_thread_ref(threads[i]));
    }
  }
  for (guint i = 0; i < CROWD; i++) {
    Verdict *one = g_thread_join(threads[i]);
    if (one->wrong) {
      wrong(verdict, "%s", one->wrong);
    }
    g_free(one->wrong);
    g_free(one->skipped);
    g_free(one);
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
  want_run(&box, "test ! -r /proc/net/route || ! grep -qv '^Iface' /proc/net/route", 0, NULL,
           verdict);
  if (subject->table->probe) {
    struct sandhost_call call;
    guint32 told = 0;
    const struct sandhost_probe probe = {
        .size = sizeof probe, .address = as_text("1.1.1.1"), .port = 80, .patience = 2 * SECOND};
    call_init(&call, 20);
    gint32 status = subject->table->probe(&call, box.handle, &probe, &told);
    /* UNSUPPORTED: in this sandbox the host tries by itself. */
    if (status != SANDHOST_UNSUPPORTED &&
        (status != SANDHOST_OK || told != SANDHOST_PROBE_BLOCKED)) {
      wrong(verdict, "probe said %s, verdict %u", status_name(status), told);
    }
    call_clear(&call);
  }
  box_close(&box, verdict);
}

static void check_network_on(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_ALLOW, verdict)) {
    return;
  }
  want_run(&box, "true", 0, "", verdict);
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
    {"network: off", "SANDHOST_NETWORK_DENY leaves no route out", check_network_off},
    {"network: on", "SANDHOST_NETWORK_ALLOW makes a sandbox", check_network_on},
    {"terminate: twice", "terminate succeeds when the sandbox is gone already",
     check_terminate_twice},
    {"terminate: cancelled caller",
     "terminate keeps its own deadline when the caller has cancelled", check_terminate_cancelled},
    {"terminate: use after", "no command runs in a terminated sandbox", check_use_after_terminate},
    {"terminate: processes", "terminate destroys all that runs in the sandbox",
     check_ends_processes},
    {0},
};
