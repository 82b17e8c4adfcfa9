/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-marks.c: the guest on a kernel without child subreapers, where what a command started is told by marks. Such a
 * kernel is made of this one by a filter of system calls, which the guest inherits.
 */
#include "guest-raw.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Answers as gVisor does to both calls of prctl. FALSE: this machine has no filters. */
static gboolean forget_subreapers(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_CHILD_SUBREAPER, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_GET_CHILD_SUBREAPER, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {.len = G_N_ELEMENTS(steps), .filter = steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static gboolean begin(struct raw *raw) {
  static gboolean is_forgotten;
  is_forgotten = is_forgotten || forget_subreapers();
  if (!is_forgotten) {
    g_test_skip("no filter of system calls can be installed here");
    return FALSE;
  }
  return raw_begin_as_init(raw);
}

/* The numbers of processes, as their script printed them, that are still there. */
static char *alive(struct raw *raw, uint32_t id, const char *pids) {
  g_autofree char *script =
      g_strdup_printf("for p in %s; do ! test -d /proc/$p || echo $p; done; exit 0", pids);
  g_autofree char *one_line = g_strdelimit(g_strdup(script), "\n", ' ');
  return g_strdup(raw_run(raw, id, one_line)->out->str);
}

#define ORPHAN "(setsid sleep 1000 >/dev/null 2>&1 & echo $!)"

static void test_limit_finds_orphans(void) {
  struct raw raw;
  if (!begin(&raw)) {
    return;
  }
  raw_execute(
      &raw, 1,
      (struct raw_command){.script = ORPHAN "; sleep 1000 & echo $!; (" ORPHAN "); sleep 1000",
                           .limit = 300 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_LIMIT);
  g_autofree char *left = alive(&raw, 2, answer->out->str);
  g_assert_cmpstr(left, ==, "");
  raw_end(&raw);
}

static void test_cancel_finds_orphans(void) {
  struct raw raw;
  if (!begin(&raw)) {
    return;
  }
  raw_execute(&raw, 1, (struct raw_command){.script = ORPHAN "; sleep 1000"});
  raw_wait_output(&raw, 1, 2);
  raw_send_cancel(&raw, 1);
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpint(answer->status, ==, SANDHOST_CANCELLED);
  g_autofree char *left = alive(&raw, 2, answer->out->str);
  g_assert_cmpstr(left, ==, "");
  raw_end(&raw);
}

/* What other commands left behind, and what runs beside, stays. */
static void test_others_stay(void) {
  struct raw raw;
  if (!begin(&raw)) {
    return;
  }
  g_autofree char *earlier = g_strdup(raw_run(&raw, 1, ORPHAN "; exit 0")->out->str);
  raw_execute(&raw, 2, (struct raw_command){.script = ORPHAN "; sleep 1000; exit 1"});
  raw_wait_output(&raw, 2, 2);
  raw_execute(&raw, 3,
              (struct raw_command){.script = "sleep 1000", .limit = 200 * RAW_MILLISECOND});
  g_assert_cmpuint(raw_wait(&raw, 3)->ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(raw_answer(&raw, 2)->done, ==, 0);
  g_autofree char *first = alive(&raw, 4, earlier);
  g_assert_cmpstr(first, ==, earlier);
  g_autofree char *second = alive(&raw, 5, raw_answer(&raw, 2)->out->str);
  g_assert_cmpstr(second, ==, raw_answer(&raw, 2)->out->str);
  raw_send_cancel(&raw, 2);
  g_assert_cmpint(raw_wait(&raw, 2)->status, ==, SANDHOST_CANCELLED);
  raw_end(&raw);
}

/* Who takes another limit than any command was given belongs to nobody, and goes. */
static void test_own_mark_does_not_help(void) {
  struct raw raw;
  if (!begin(&raw)) {
    return;
  }
  raw_execute(
      &raw, 1,
      (struct raw_command){
          .script = "(setsid prlimit --rss=4096 sleep 1000 >/dev/null 2>&1 & echo $!); sleep 1000",
          .limit = 300 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_LIMIT);
  g_autofree char *left = alive(&raw, 2, answer->out->str);
  g_assert_cmpstr(left, ==, "");
  raw_end(&raw);
}

static void test_limit_without_keeper(void) {
  struct raw raw;
  if (!begin(&raw)) {
    return;
  }
  raw_execute(&raw, 1,
              (struct raw_command){.script = "kill -9 -1; " ORPHAN "; sleep 1000",
                                   .limit = 500 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_LIMIT);
  g_autofree char *left = alive(&raw, 2, answer->out->str);
  g_assert_cmpstr(left, ==, "");
  raw_end(&raw);
}

/* Cancelled as soon as it can be: before, while or after it gets its mark. */
static void test_cancel_at_once(void) {
  struct raw raw;
  if (!begin(&raw)) {
    return;
  }
  for (uint32_t id = 1; id <= 60; id += 2) {
    raw_execute(&raw, id, (struct raw_command){.script = "exec sleep 1234567"});
    if (id % 4 == 1) {
      g_usleep(id * 20);
    }
    raw_send_cancel(&raw, id);
    g_assert_cmpint(raw_wait(&raw, id)->status, ==, SANDHOST_CANCELLED);
    g_assert_cmpstr(
        raw_run(&raw, id + 1, "grep -l '^sleep' /proc/[0-9]*/cmdline; exit 0")->out->str, ==, "");
  }
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/marks/limit-finds-orphans", test_limit_finds_orphans);
  g_test_add_func("/guest/marks/cancel-finds-orphans", test_cancel_finds_orphans);
  g_test_add_func("/guest/marks/others-stay", test_others_stay);
  g_test_add_func("/guest/marks/own-mark-does-not-help", test_own_mark_does_not_help);
  g_test_add_func("/guest/marks/limit-without-keeper", test_limit_without_keeper);
  g_test_add_func("/guest/marks/cancel-at-once", test_cancel_at_once);
  return g_test_run();
}
