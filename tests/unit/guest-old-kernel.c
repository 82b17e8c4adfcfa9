/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-old-kernel.c: the guest on a kernel that has no close_range, as gVisor's was for long: what it inherited is closed
 * all the same, without a call for each descriptor that there could be.
 */
#include "guest-raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define INHERITED 1500
#define NOBODY_OPENS 3000

static gboolean install(const struct sock_filter *steps, unsigned short count) {
  const struct sock_fprog program = {.len = count,
                                     .filter = (struct sock_filter *)(uintptr_t)steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* FALSE: this machine has no filters, and the test is skipped. */
static gboolean forget_close_range(void) {
  static const struct sock_filter STEPS[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  static gboolean is_forgotten;
  is_forgotten = is_forgotten || install(STEPS, G_N_ELEMENTS(STEPS));
  if (!is_forgotten) {
    g_test_skip("no filter of system calls can be installed here");
  }
  return is_forgotten;
}

/* Whoever closes what nobody opened is killed. */
static gboolean forbid_guesses(void) {
  static const struct sock_filter STEPS[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NOBODY_OPENS, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(STEPS, G_N_ELEMENTS(STEPS));
}

/* Starts it with a few descriptors too many; the command that it runs, and it itself, have none of them. */
static void check_closed(const char *const *argv) {
  struct raw raw;
  int spare[2] = {open("/dev/null", O_RDONLY), -1};
  g_assert_cmpint(spare[0], >=, 0);
  spare[1] = fcntl(spare[0], F_DUPFD, INHERITED);
  g_assert_cmpint(spare[1], ==, INHERITED);
  memset(&raw, 0, sizeof raw);
  raw_spawn(&raw, argv);
  close(spare[0]);
  close(spare[1]);
  raw_send_hello(&raw, GUEST_MAGIC, GUEST_VERSION);
  g_assert_cmpuint(raw_take_hello(&raw), ==, GUEST_VERSION);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "for fd in 3 4 5 6 7 8 9; do\n"
                                             "  (: <&$fd) 2>/dev/null && echo open $fd\n"
                                             "done; echo over"});
  g_assert_cmpstr(raw_wait(&raw, 1)->out->str, ==, "over\n");
  g_autofree char *inherited = g_strdup_printf("/proc/%d/fd/%d", (int)raw.pid, INHERITED);
  char target[64];
  g_assert_cmpint(readlink(inherited, target, sizeof target), <, 0);
  g_assert_cmpint(raw_run(&raw, 2, "exit 5")->exit_code, ==, 5);
  raw_end(&raw);
}

static void test_without_proc(void) {
  g_autofree char *program = raw_program();
  const char *const argv[] = {
      "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$0\"", program, NULL};
  int status = -1;
  if (!g_spawn_command_line_sync("unshare --mount mount -t tmpfs none /proc", NULL, NULL, &status,
                                 NULL) ||
      status != 0) {
    g_test_skip("no file system can be mounted here");
  } else if (forget_close_range()) {
    check_closed(argv);
  }
}

static void test_listed(void) {
  g_autofree char *program = raw_program();
  const char *const argv[] = {program, NULL};
  if (forget_close_range()) {
    g_assert_true(forbid_guesses());
    check_closed(argv);
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/old-kernel/without-proc", test_without_proc);
  g_test_add_func("/guest/old-kernel/listed", test_listed);
  return g_test_run();
}
