/* SPDX-License-Identifier: Apache-2.0 */
/* docker-crowd.c: fifty containers at once: what they cost this process, and a command in each. */
#include "docker-bench.h"

#include "base/clock.h"
#include "ratio.h"

#define CROWD 50u

typedef struct {
  const char *socket;
  Sandbox *sandbox;
  Hand *hand; /* a kept connection of its own, as the guest has one */
} Member;

static gpointer by_guest(gpointer data) {
  const Member *member = data;
  return GINT_TO_POINTER(sandbox_line(member->sandbox, "true") < 0);
}

static gpointer by_exec(gpointer data) {
  const Member *member = data;
  return GINT_TO_POINTER(
      by_hand_exec(member->socket, member->hand, sandbox_ref(member->sandbox), "true", -1) < 0);
}

static gint64 all_at_once(GThreadFunc work, Member *members) {
  GThread *threads[CROWD];
  gboolean failed = FALSE;
  docker_settle();
  gint64 from = clock_now();
  for (guint i = 0; i < CROWD; i++) {
    threads[i] = g_thread_new("crowd", work, &members[i]);
  }
  for (guint i = 0; i < CROWD; i++) {
    failed = g_thread_join(threads[i]) != NULL || failed;
  }
  return failed ? -1 : clock_now() - from;
}

static gint64 guests_at_once(void *user) {
  return all_at_once(by_guest, user);
}

static gint64 execs_at_once(void *user) {
  return all_at_once(by_exec, user);
}

void docker_crowd_rows(Bench *bench, guint rounds) {
  static const char COMMANDS[] = "50 containers, a command each at once, faster than 50 execs";
  static const char MEMORY[] = "50 sessions of one process: its own memory for each";
  Member members[CROWD] = {{.socket = NULL}};
  gint64 before = ratio_own_memory();
  guint count = 0;
  while (count < CROWD && (members[count].sandbox = docker_open(bench))) {
    count++;
  }
  gint64 after = ratio_own_memory();
  gboolean all = count == CROWD;
  for (guint i = 0; i < count; i++) {
    members[i].socket = bench->socket;
    members[i].hand = hand_new(bench->socket);
    all = all && members[i].hand;
  }
  if (all) {
    ratio_compare_faster(COMMANDS, (Meter){guests_at_once, members},
                         (Meter){execs_at_once, members}, 0, MAX(rounds / 6, 3));
    ratio_print_figure(MEMORY, (double)(after - before) / 1024 / CROWD, "KB", 20);
  } else {
    ratio_leave_out(COMMANDS, "the engine did not make them");
    ratio_leave_out(MEMORY, "the engine did not make them");
  }
  while (count > 0) {
    count--;
    hand_free(members[count].hand);
    sandbox_end(members[count].sandbox, NULL);
  }
}
