/* SPDX-License-Identifier: Apache-2.0 */
/* guest-commands.c: what becomes of one command: its streams, its end, its surroundings. */
#include "guest-raw.h"

static void check_exit(const struct raw_answer *answer, int exit_code, const char *out,
                       const char *err) {
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpstr(answer->err->str, ==, err);
  g_assert_cmpstr(answer->out->str, ==, out);
  g_assert_cmpint(answer->exit_code, ==, exit_code);
  g_assert_cmpint(answer->signal, ==, 0);
  g_assert_cmpuint(answer->out_bytes, ==, strlen(out));
  g_assert_cmpuint(answer->err_bytes, ==, strlen(err));
}

static void test_exit(void) {
  struct raw raw;
  raw_begin(&raw);
  const struct raw_answer *answer = raw_run(&raw, 1, "echo out; echo err >&2; exit 3");
  check_exit(answer, 3, "out\n", "err\n");
  g_assert_true(answer->started);
  g_assert_cmpuint(answer->pid, >, 1);
  g_assert_cmpuint(answer->duration, >, 0);
  g_assert_cmpuint(answer->max_rss, >, 0);
  raw_end(&raw);
}

static void test_signal(void) {
  struct raw raw;
  raw_begin(&raw);
  const struct raw_answer *answer = raw_run(&raw, 1, "echo before; kill -SEGV $$");
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(answer->signal, ==, SIGSEGV);
  g_assert_cmpint(answer->exit_code, ==, 128 + SIGSEGV);
  g_assert_cmpstr(answer->out->str, ==, "before\n");
  raw_end(&raw);
}

static void test_sent_signal(void) {
  struct raw raw;
  raw_begin(&raw);
  /* The group gets it: also the sleep that the shell waits for. */
  raw_execute(&raw, 1, (struct raw_command){.script = "echo ready; sleep 1000; echo not reached"});
  raw_wait_output(&raw, 1, 6);
  raw_send_u32(&raw, GUEST_SIGNAL, 1, SIGTERM);
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(answer->signal, ==, SIGTERM);
  g_assert_cmpstr(answer->out->str, ==, "ready\n");
  raw_end(&raw);
}

static void test_environment(void) {
  struct raw raw;
  const char *const environment[] = {"MINE=first", "BASE=laid over", "MINE=a b=c", NULL};
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "echo \"$BASE|$MINE|$PATH\"; pwd; umask",
                                   .environment = environment,
                                   .cwd = "/usr"});
  check_exit(raw_wait(&raw, 1), 0, "laid over|a b=c|/usr/bin:/bin\n/usr\n0022\n", "");
  check_exit(raw_run(&raw, 2, "echo \"$BASE|$MINE\""), 0, "of the guest|\n", "");
  raw_end(&raw);
}

/* Default dispositions, an empty mask, a session of its own, no descriptor but 0, 1 and 2. */
static void test_surroundings(void) {
  struct raw raw;
  raw_begin(&raw);
  const struct raw_answer *answer = raw_run(&raw, 1, "exec cat /proc/self/status");
  g_assert_nonnull(strstr(answer->out->str, "\nSigBlk:\t0000000000000000\n"
                                            "SigIgn:\t0000000000000000\n"
                                            "SigCgt:\t0000000000000000\n"));
  raw_execute(&raw, 4,
              (struct raw_command){.argv = (const char *const[]){"ls", "/proc/self/fd", NULL}});
  check_exit(raw_wait(&raw, 4), 0, "0\n1\n2\n3\n", ""); /* 3 is the folder itself */
  check_exit(raw_run(&raw, 2, "set -- $(cat /proc/$$/stat); test $$ = $5 && test $$ = $6"), 0, "",
             "");
  check_exit(raw_run(&raw, 3, "ulimit -c; readlink /proc/self/fd/0"), 0, "0\n/dev/null\n", "");
  raw_end(&raw);
}

static void test_file_limit_is_kept(void) {
  struct raw raw;
  g_autofree char *program = raw_program();
  g_autofree char *script = g_strdup_printf("ulimit -S -n 512; exec %s", program);
  const char *const argv[] = {"sh", "-c", script, NULL};
  memset(&raw, 0, sizeof raw);
  raw_spawn(&raw, argv);
  raw_send_hello(&raw, GUEST_MAGIC, GUEST_VERSION);
  raw_take_hello(&raw);
  check_exit(raw_run(&raw, 1, "ulimit -S -n"), 0, "512\n", "");
  raw_end(&raw);
}

/* A command of the same user reads nothing of the guest: its files in /proc belong to root. */
static void test_not_dumpable(void) {
  struct raw raw;
  struct stat facts;
  raw_begin(&raw);
  g_autofree char *path = g_strdup_printf("/proc/%d/environ", (int)raw.pid);
  g_assert_cmpint(stat(path, &facts), ==, 0);
  g_assert_cmpuint(facts.st_uid, ==, 0);
  g_autofree char *script = g_strdup_printf(
      "setpriv --reuid 64123 --clear-groups --inh-caps=-all "
      "sh -c 'cat /proc/%d/environ || cat /proc/%d/fd/0 || ls /proc/%d/fd' >/dev/null 2>&1",
      (int)raw.pid, (int)raw.pid, (int)raw.pid);
  g_assert_cmpint(raw_run(&raw, 1, script)->exit_code, !=, 0);
  raw_end(&raw);
}

static void test_cannot_start(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "plain", "no program");
  raw_put_file(&raw, "garbage", "\x01\x02");
  g_autofree char *garbage = raw_path(&raw, "garbage");
  g_assert_cmpint(chmod(garbage, 0755), ==, 0);
  raw_execute(&raw, 1, (struct raw_command){.argv = (const char *const[]){"no-such", NULL}});
  check_exit(raw_wait(&raw, 1), 127, "", "sandhost: no-such: No such file or directory\n");
  raw_execute(&raw, 2, (struct raw_command){.argv = (const char *const[]){"./plain", NULL}});
  check_exit(raw_wait(&raw, 2), 126, "", "sandhost: ./plain: Permission denied\n");
  raw_execute(&raw, 3, (struct raw_command){.argv = (const char *const[]){"./plain/x", NULL}});
  check_exit(raw_wait(&raw, 3), 127, "", "sandhost: ./plain/x: Not a directory\n");
  raw_execute(&raw, 4, (struct raw_command){.argv = (const char *const[]){"./garbage", NULL}});
  check_exit(raw_wait(&raw, 4), 126, "", "sandhost: ./garbage: Exec format error\n");
  raw_execute(&raw, 5, (struct raw_command){.script = "true", .cwd = "/no/such/folder"});
  check_exit(raw_wait(&raw, 5), 126, "", "sandhost: /no/such/folder: No such file or directory\n");
  raw_end(&raw);
}

/* A relative folder of PATH stands below the command's own working directory. */
static void test_own_path(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_put_file(&raw, "bin/mine", "#!/bin/sh\necho found $1\n");
  g_autofree char *program = raw_path(&raw, "bin/mine");
  g_assert_cmpint(chmod(program, 0755), ==, 0);
  raw_execute(
      &raw, 1,
      (struct raw_command){.argv = (const char *const[]){"mine", "it", NULL},
                           .environment = (const char *const[]){"PATH=/nowhere:bin:/bin", NULL}});
  check_exit(raw_wait(&raw, 1), 0, "found it\n", "");
  raw_end(&raw);
}

static void test_large_script(void) {
  struct raw raw;
  g_autoptr(GString) script = g_string_new("echo $0 $1 $#\nx='");
  for (size_t i = 0; i < 3u << 20; i++) {
    g_string_append_c(script, (char)('a' + i % 26));
  }
  g_string_append(script, "'\necho ${#x}\nexit 7\n");
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){
                  .argv = (const char *const[]){"sh", "-c", script->str, "me", "too", NULL}});
  check_exit(raw_wait(&raw, 1), 7, "me too 1\n3145728\n", "");
  raw_end(&raw);
}

static void test_large_argument(void) {
  struct raw raw;
  g_autofree char *large = g_strnfill(200 * 1024, 'x');
  raw_begin(&raw);
  raw_execute(&raw, 1, (struct raw_command){.argv = (const char *const[]){"echo", large, NULL}});
  check_exit(raw_wait(&raw, 1), 126, "", "sandhost: echo: Argument list too long\n");
  raw_end(&raw);
}

static void test_max_output(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "head -c 3000000 /dev/zero | tr '\\0' x; "
                                             "echo whole >&2",
                                   .max_output = 1000000});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->out->len, ==, 1000000);
  g_assert_cmpuint(answer->out_bytes, ==, 3000000);
  g_assert_cmpstr(answer->err->str, ==, "whole\n");
  raw_end(&raw);
}

static void test_much_output(void) {
  struct raw raw;
  raw_begin(&raw);
  const struct raw_answer *answer = raw_run(&raw, 1, "head -c 33554432 /dev/zero | tr '\\0' y");
  g_assert_cmpint(answer->exit_code, ==, 0);
  g_assert_cmpuint(answer->out->len, ==, 33554432);
  g_assert_cmpuint(answer->out_bytes, ==, 33554432);
  g_assert_cmpuint(strspn(answer->out->str, "y"), ==, 33554432);
  raw_end(&raw);
}

/* What is in the pipe when the command ends is its output, even when credit for it comes later. */
static void test_late_credit(void) {
  struct raw raw;
  raw_begin(&raw);
  raw.keeps_credit = TRUE;
  /* The window, and as much as the pipe holds: then the command can end. */
  raw_execute(&raw, 1, (struct raw_command){.script = "head -c 1090000 /dev/zero; exit 5"});
  raw_wait_output(&raw, 1, GUEST_WINDOW);
  struct raw_answer *answer = raw_answer(&raw, 1);
  raw_wait_gone((pid_t)answer->pid);
  raw_ping(&raw, 1);
  g_assert_cmpint(answer->done, ==, 0);
  g_assert_cmpuint(answer->out->len, ==, GUEST_WINDOW);
  raw_send_u32(&raw, GUEST_CREDIT, 1, GUEST_WINDOW);
  raw_wait(&raw, 1);
  g_assert_cmpuint(answer->out->len, ==, 1090000);
  g_assert_cmpint(answer->exit_code, ==, 5);
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/commands/exit", test_exit);
  g_test_add_func("/guest/commands/signal", test_signal);
  g_test_add_func("/guest/commands/sent-signal", test_sent_signal);
  g_test_add_func("/guest/commands/environment", test_environment);
  g_test_add_func("/guest/commands/surroundings", test_surroundings);
  g_test_add_func("/guest/commands/file-limit-is-kept", test_file_limit_is_kept);
  g_test_add_func("/guest/commands/not-dumpable", test_not_dumpable);
  g_test_add_func("/guest/commands/cannot-start", test_cannot_start);
  g_test_add_func("/guest/commands/own-path", test_own_path);
  g_test_add_func("/guest/commands/large-script", test_large_script);
  g_test_add_func("/guest/commands/large-argument", test_large_argument);
  g_test_add_func("/guest/commands/max-output", test_max_output);
  g_test_add_func("/guest/commands/much-output", test_much_output);
  g_test_add_func("/guest/commands/late-credit", test_late_credit);
  return g_test_run();
}
