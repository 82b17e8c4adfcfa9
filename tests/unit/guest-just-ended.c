/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-just-ended.c: a command that ends by itself between the moment in which the guest finds it at its limit and the
 * one in which its processes are stopped. The moment is made by a filter of system calls: the guest is held in its first
 * SIGSTOP until the command has ended.
 */
#include "guest-raw.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Tells who sends a SIGSTOP, and lets it wait. -1: this machine cannot. */
static int watch_stops(void) {
  static const struct sock_filter STEPS[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_send_signal, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGSTOP, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {.len = G_N_ELEMENTS(STEPS),
                                     .filter = (struct sock_filter *)(uintptr_t)STEPS};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
             ? -1
             : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                            &program);
}

struct watch {
  struct raw raw;
  int listener;
  pid_t guest;
  char *command; /* owned: where the command writes its numbers */
  int over[2];   /* a pipe whose end is the end of the watch */
  gboolean stops_keeper;
  gboolean has_ended;
};

static char state_of(pid_t pid) {
  g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
  g_autofree char *text = NULL;
  g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
  return strrchr(text, ')')[2];
}

/* By a call that is not watched. */
static void stop(pid_t pid) {
  g_assert_cmpint(syscall(SYS_tgkill, pid, pid, SIGSTOP), ==, 0);
  while (state_of(pid) != 'T') {
    g_usleep(1000);
  }
}

/* Ends the command when it has come to where it waits, and returns when it has ended. */
static void end_command(struct watch *watch) {
  g_autofree char *text = NULL;
  while (!g_file_get_contents(watch->command, &text, NULL, NULL)) {
    g_usleep(1000);
  }
  g_auto(GStrv) numbers = g_strsplit(text, " ", 2);
  pid_t pid = raw_number(numbers[0]);
  if (watch->stops_keeper) {
    stop(raw_number(numbers[1]));
  }
  g_assert_cmpint(kill(pid, SIGTERM), ==, 0);
  raw_wait_gone(pid);
  watch->has_ended = TRUE;
}

static void *serve(void *user) {
  struct watch *watch = user;
  struct pollfd ready[] = {{.fd = watch->listener, .events = POLLIN},
                           {.fd = watch->over[0], .events = POLLIN}};
  union {
    struct seccomp_notif stop;
    char room[1024]; /* the kernel's may be larger than the header's */
  } asked;
  while (poll(ready, 2, -1) > 0 && !ready[1].revents) {
    memset(&asked, 0, sizeof asked);
    if (ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0) {
      continue; /* whoever it was has been killed */
    }
    if ((pid_t)asked.stop.pid == watch->guest && !watch->has_ended) {
      end_command(watch);
    }
    struct seccomp_notif_resp answer = {.id = asked.stop.id,
                                        .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    (void)ioctl(watch->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  return NULL;
}

/* What the command left in the background is alive when it has ended. */
static void check_spared(gboolean stops_keeper) {
  static int listener = -1;
  struct watch watch = {.stops_keeper = stops_keeper};
  listener = listener < 0 ? watch_stops() : listener;
  if (listener < 0) {
    g_test_skip("no filter of system calls that asks can be installed here");
    return;
  }
  raw_begin(&watch.raw);
  watch.listener = listener;
  watch.guest = watch.raw.pid; /* raw ends before the watch does */
  watch.command = raw_path(&watch.raw, "command");
  g_assert_cmpint(pipe(watch.over), ==, 0);
  GThread *thread = g_thread_new("watch", serve, &watch);
  raw_execute(&watch.raw, 1,
              (struct raw_command){.script = "setsid sleep 1000 >/dev/null 2>&1 & echo $! >left;"
                                             "echo $$ $PPID >new; mv new command; exec sleep 1000",
                                   .limit = 300 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&watch.raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(answer->signal, ==, SIGTERM);
  g_assert_cmpint(raw_run(&watch.raw, 2, "kill -0 $(cat left)")->exit_code, ==, 0);
  raw_end(&watch.raw);
  close(watch.over[1]);
  g_thread_join(thread);
  close(watch.over[0]);
  g_free(watch.command);
}

/* By the time that it is stopped nobody has its number. */
static void test_waited_for(void) {
  check_spared(FALSE);
}

static void test_zombie(void) {
  check_spared(TRUE);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/just-ended/waited-for", test_waited_for);
  g_test_add_func("/guest/just-ended/zombie", test_zombie);
  return g_test_run();
}
