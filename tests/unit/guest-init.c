/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-init.c: the guest as PID 1 of a namespace, where commands may do their worst: what a
 * command kills or stops here is only what is in the namespace.
 */
#include "guest-raw.h"

/* All but init and the shell itself are killed: its keeper too. Its end is told truly all the
 * same. */
static void test_kill_all(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  const struct raw_answer *answer = raw_run(&raw, 1, "kill -9 -1; echo alive; sleep 0.2; exit 3");
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(answer->exit_code, ==, 3);
  g_assert_cmpstr(answer->out->str, ==, "alive\n");
  g_assert_cmpuint(answer->max_rss, >, 0);
  for (uint32_t id = 2; id < 20; id++) {
    answer = raw_run(&raw, id, "kill -9 -1; exit 4");
    g_assert_cmpint(answer->exit_code, ==, 4);
    g_assert_cmpint(raw_run(&raw, id + 100, "exit 5")->exit_code, ==, 5);
  }
  raw_end(&raw);
}

/* A second command is killed by the first: a signal that nobody here sent. */
static void test_killed_by_another(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  raw_execute(&raw, 1, (struct raw_command){.script = "exec sleep 1000"});
  raw_wait_started(&raw, 1);
  g_assert_cmpint(raw_run(&raw, 2, "kill -9 -1; exit 4")->exit_code, ==, 4);
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(answer->signal, ==, SIGKILL);
  raw_end(&raw);
}

/* Without its keeper, a command still has its limit, and its tree is found. */
static void test_limit_without_keeper(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  raw_execute(
      &raw, 1,
      (struct raw_command){.script = "kill -9 -1; (setsid sleep 1000 & echo $!); sleep 1000",
                           .limit = 500 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_LIMIT);
  g_autofree char *script =
      g_strdup_printf("test -d /proc/%d && echo alive", (int)raw_number(answer->out->str));
  g_assert_cmpstr(raw_run(&raw, 2, script)->out->str, ==, "");
  raw_end(&raw);
}

/* What stands beside an adopted command is not killed with it. */
static void test_cancel_spares_others(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  /* The second one kills the keepers of both, but neither the first nor itself. */
  raw_execute(&raw, 1, (struct raw_command){.script = "echo ready; sleep 1000; exit 1"});
  raw_wait_output(&raw, 1, 6);
  raw_execute(&raw, 2,
              (struct raw_command){.script = "for p in /proc/[0-9]*; do "
                                             "grep -qs sandhost-keeper $p/comm && "
                                             "kill -9 ${p#/proc/}; done; echo killed; sleep 1000"});
  raw_wait_output(&raw, 2, 7);
  raw_send_cancel(&raw, 2);
  g_assert_cmpint(raw_wait(&raw, 2)->status, ==, SANDHOST_CANCELLED);
  raw_run(&raw, 3, "exit 0"); /* whatever the kill did to the first one is known by now */
  g_assert_cmpint(raw_answer(&raw, 1)->done, ==, 0);
  raw_send_u32(&raw, GUEST_SIGNAL, 1, SIGTERM);
  g_assert_cmpint(raw_wait(&raw, 1)->signal, ==, SIGTERM);
  raw_end(&raw);
}

/* A command that ended in time, which its keeper was kept from telling, leaves what it began. */
static void test_limit_spares_what_ended(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  raw_execute(&raw, 1,
              (struct raw_command){.script = "setsid sleep 1000 >/dev/null 2>&1 & echo $!; "
                                             "kill -STOP $PPID; exit 3",
                                   .limit = 500 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(answer->exit_code, ==, 3);
  g_autofree char *script = g_strdup_printf("kill -0 %d", (int)raw_number(answer->out->str));
  g_assert_cmpint(raw_run(&raw, 2, script)->exit_code, ==, 0);
  raw_end(&raw);
}

/* Cancelled while its keeper reads what it is to begin: it is killed when it begins, and the keeper goes on. */
static void test_cancel_before_begin(void) {
  struct raw raw;
  g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  for (int i = 0; i < 1500; i++) {
    g_autofree char *variable = g_strdup_printf("VARIABLE_OF_A_LONG_NAME_%d=", i);
    g_strv_builder_add(builder, variable);
  }
  g_auto(GStrv) variables = g_strv_builder_end(builder);
  g_autofree char *keeper = g_strdup(raw_run(&raw, 1, "echo $PPID")->out->str);
  raw_execute(&raw, 2,
              (struct raw_command){.script = "exec sleep 1000",
                                   .environment = (const char *const *)variables});
  raw_send_cancel(&raw, 2);
  g_assert_cmpint(raw_wait(&raw, 2)->status, ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(raw_run(&raw, 3, "echo $PPID")->out->str, ==, keeper);
  raw_end(&raw);
}

/* A stopped keeper neither starts nor ends anything by itself. */
static void test_stop_all(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  raw_run(&raw, 10, "true"); /* now keepers wait, which are stopped too */
  raw_execute(
      &raw, 1,
      (struct raw_command){.script = "kill -STOP -1; sleep 1000", .limit = 300 * RAW_MILLISECOND});
  g_assert_cmpuint(raw_wait(&raw, 1)->ended, ==, SANDHOST_ENDED_LIMIT);
  raw_execute(&raw, 2, (struct raw_command){.script = "sleep 0.1; exit 4"});
  raw_execute(&raw, 3, (struct raw_command){.script = "sleep 0.1; exit 5"});
  g_assert_cmpint(raw_wait(&raw, 2)->exit_code, ==, 4);
  g_assert_cmpint(raw_wait(&raw, 3)->exit_code, ==, 5);
  raw_end(&raw);
}

/* Commands one after the other have the same keeper: none is made in reserve while one is idle. */
static void test_one_keeper(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  for (uint32_t id = 1; id < 5; id++) {
    const struct raw_answer *answer =
        raw_run(&raw, id, "cat /proc/[0-9]*/comm | grep -c sandhost-keeper");
    g_assert_cmpstr(answer->out->str, ==, "1\n");
  }
  raw_end(&raw);
}

static void test_init_survives(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  g_assert_cmpint(raw_run(&raw, 1, "kill -9 1; kill -TERM 1; kill -INT 1; exit 2")->exit_code, ==,
                  2);
  g_assert_cmpint(raw_run(&raw, 2, "exit 3")->exit_code, ==, 3);
  raw_end(&raw);
}

/* Orphans of orphans do not stay as zombies. */
static void test_reaps(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  raw_run(&raw, 1, "for i in 1 2 3 4 5; do (setsid sh -c '(true &) &' &); done; exit 0");
  for (uint32_t id = 2;; id++) {
    const struct raw_answer *answer =
        raw_run(&raw, id, "cat /proc/[0-9]*/stat | grep -c ') Z '; exit 0");
    if (g_str_equal(answer->out->str, "0\n")) {
      break;
    }
    g_assert_cmpuint(id, <, 500);
    g_usleep(10000);
  }
  raw_end(&raw);
}

/* A true bomb, bounded by a limit on processes. */
static void test_fork_bomb(void) {
  struct raw raw;
  if (!raw_begin_as_init(&raw)) {
    return;
  }
  /* RLIMIT_NPROC does not bind root: another user is needed. */
  raw_execute(&raw, 1,
              (struct raw_command){
                  .argv = (const char *const[]){"setpriv", "--reuid", "64123", "--regid", "64123",
                                                "--clear-groups", "prlimit", "--nproc=300", "perl",
                                                "-e", "$| = 1; print 'x'; fork while 1", NULL},
                  .limit = 1 * RAW_SECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpstr(answer->out->str, ==, "x"); /* it ran */
  /* All are dead by now; that the last are taken off the list takes a moment more. */
  for (uint32_t id = 2;; id++) {
    answer = raw_run(&raw, id, "cat /proc/[0-9]*/status | grep -c 'Uid:.*64123'; exit 0");
    if (g_str_equal(answer->out->str, "0\n")) {
      break;
    }
    g_assert_cmpuint(id, <, 500);
    g_usleep(10000);
  }
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/init/kill-all", test_kill_all);
  g_test_add_func("/guest/init/killed-by-another", test_killed_by_another);
  g_test_add_func("/guest/init/limit-without-keeper", test_limit_without_keeper);
  g_test_add_func("/guest/init/cancel-spares-others", test_cancel_spares_others);
  g_test_add_func("/guest/init/limit-spares-what-ended", test_limit_spares_what_ended);
  g_test_add_func("/guest/init/cancel-before-begin", test_cancel_before_begin);
  g_test_add_func("/guest/init/stop-all", test_stop_all);
  g_test_add_func("/guest/init/one-keeper", test_one_keeper);
  g_test_add_func("/guest/init/init-survives", test_init_survives);
  g_test_add_func("/guest/init/reaps", test_reaps);
  g_test_add_func("/guest/init/fork-bomb", test_fork_bomb);
  return g_test_run();
}
