/* SPDX-License-Identifier: Apache-2.0 */
/* support-spawn.c: guest_spawn gives a child its streams, its user and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-spawn.h"

struct started {
  pid_t pid;
  int pidfd;
  int stream;
  int errors;
};

/* Reads to the end, waiting where the descriptor does not block. */
static char *read_all(int fd) {
  GString *text = g_string_new(NULL);
  char buffer[4096];
  for (;;) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    g_assert_cmpint(poll(&ready, 1, 20000), ==, 1);
    ssize_t count = read(fd, buffer, sizeof buffer);
    g_assert_cmpint(count, >=, 0);
    if (count == 0) {
      return g_string_free(text, FALSE);
    }
    g_string_append_len(text, buffer, count);
  }
}

static int finish(struct started *started, char **ret_output, char **ret_errors) {
  g_assert_cmpint(shutdown(started->stream, SHUT_WR), ==, 0);
  *ret_output = read_all(started->stream);
  *ret_errors = read_all(started->errors);
  int status = -1;
  g_assert_cmpint(waitpid(started->pid, &status, 0), ==, started->pid);
  close(started->stream);
  close(started->errors);
  if (started->pidfd >= 0) {
    close(started->pidfd);
  }
  return status;
}

static int run_shell(const char *script, const char *const envp[],
                     const struct guest_spawn_options *options, char **ret_output,
                     char **ret_errors) {
  const char *const argv[] = {"/bin/sh", "-c", script, NULL};
  struct started started;
  g_assert_cmpint(guest_spawn(argv, envp, options, &started.pid, &started.pidfd, &started.stream,
                              &started.errors),
                  ==, 0);
  g_assert_cmpint(fcntl(started.stream, F_GETFD), ==, FD_CLOEXEC);
  g_assert_cmpint(fcntl(started.errors, F_GETFD), ==, FD_CLOEXEC);
  g_assert_true(fcntl(started.errors, F_GETFL) & O_NONBLOCK);
  return finish(&started, ret_output, ret_errors);
}

static void test_streams(void) {
  const char *const argv[] = {"/bin/sh", "-c",
                              "read line; echo \"got $line\"; echo bad >&2; exit 7", NULL};
  struct started started;
  g_assert_cmpint(
      guest_spawn(argv, NULL, NULL, &started.pid, &started.pidfd, &started.stream, &started.errors),
      ==, 0);
  g_assert_cmpint(write(started.stream, "hello\n", 6), ==, 6);
  g_autofree char *output = NULL;
  g_autofree char *errors = NULL;
  int status = finish(&started, &output, &errors);
  g_assert_cmpstr(output, ==, "got hello\n");
  g_assert_cmpstr(errors, ==, "bad\n");
  g_assert_true(WIFEXITED(status));
  g_assert_cmpint(WEXITSTATUS(status), ==, 7);
}

static void test_environment_is_exact(void) {
  const char *const envp[] = {"A=1", "B=two", NULL};
  const char *const argv[] = {"/usr/bin/env", NULL};
  struct started started;
  g_assert_cmpint(
      guest_spawn(argv, envp, NULL, &started.pid, &started.pidfd, &started.stream, &started.errors),
      ==, 0);
  g_autofree char *output = NULL;
  g_autofree char *errors = NULL;
  g_assert_cmpint(finish(&started, &output, &errors), ==, 0);
  g_assert_cmpstr(output, ==, "A=1\nB=two\n");
}

static void test_only_named_descriptors_reach_it(void) {
  /* Inheritable ones of the caller, on purpose. */
  int leak = open("/dev/null", O_RDONLY);
  int high = fcntl(leak, F_DUPFD, 200);
  int pair[2];
  g_assert_cmpint(pipe2(pair, O_CLOEXEC), ==, 0);
  g_assert_cmpint(write(pair[1], "passed", 6), ==, 6);
  close(pair[1]);
  const int pass[] = {pair[0], leak};
  struct guest_spawn_options options = {.pass_fds = pass, .pass_count = G_N_ELEMENTS(pass)};
  g_autofree char *output = NULL;
  g_autofree char *errors = NULL;
  int status = run_shell("cat <&3; echo; ls /proc/$$/fd", NULL, &options, &output, &errors);
  g_assert_cmpint(status, ==, 0);
  g_assert_cmpstr(output, ==, "passed\n0\n1\n2\n3\n4\n");
  close(leak);
  close(high);
  close(pair[0]);
}

static void test_session_and_signals(void) {
  sigset_t block;
  sigset_t old;
  sigemptyset(&block);
  sigaddset(&block, SIGTERM);
  g_assert_cmpint(pthread_sigmask(SIG_BLOCK, &block, &old), ==, 0);
  struct sigaction ignore = {.sa_handler = SIG_IGN};
  struct sigaction before;
  g_assert_cmpint(sigaction(SIGINT, &ignore, &before), ==, 0);
  g_autofree char *output = NULL;
  g_autofree char *errors = NULL;
  int status = run_shell("grep -E '^Sig(Blk|Ign)' /proc/self/status; read a b c d e f rest < "
                         "/proc/$$/stat; [ $e = $$ ] && [ $f = $$ ] && echo own session",
                         NULL, NULL, &output, &errors);
  g_assert_cmpint(sigaction(SIGINT, &before, NULL), ==, 0);
  g_assert_cmpint(pthread_sigmask(SIG_SETMASK, &old, NULL), ==, 0);
  g_assert_cmpint(status, ==, 0);
  g_assert_cmpstr(output, ==,
                  "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nown session\n");
}

static void test_user_and_folder(void) {
  if (geteuid() != 0) {
    g_test_skip("only root can become another user");
    return;
  }
  int dumpable = prctl(PR_GET_DUMPABLE);
  struct guest_spawn_options options = {
      .change_user = TRUE, .uid = 65534, .gid = 65533, .cwd = "/tmp"};
  g_autofree char *output = NULL;
  g_autofree char *errors = NULL;
  int status = run_shell("grep -E '^(Uid|Gid|Groups)' /proc/self/status; pwd", NULL, &options,
                         &output, &errors);
  g_assert_cmpint(status, ==, 0);
  g_assert_cmpstr(output, ==,
                  "Uid:\t65534\t65534\t65534\t65534\nGid:\t65533\t65533\t65533\t65533\n"
                  "Groups:\t \n/tmp\n");
  g_assert_cmpuint(geteuid(), ==, 0);
  g_assert_cmpint(prctl(PR_GET_DUMPABLE), ==, dumpable);
}

static void test_cgroup_files_are_written_first(void) {
  g_autofree char *dir = g_dir_make_tmp("sandhost-spawn-XXXXXX", NULL);
  g_autofree char *path = g_build_filename(dir, "cgroup.procs", NULL);
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  g_assert_cmpint(fd, >=, 0);
  struct guest_spawn_options options = {.cgroup_fds = &fd, .cgroup_count = 1};
  g_autofree char *output = NULL;
  g_autofree char *errors = NULL;
  g_assert_cmpint(run_shell("exit 0", NULL, &options, &output, &errors), ==, 0);
  g_autofree char *content = NULL;
  g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
  g_assert_cmpstr(content, ==, "0");
  close(fd);
  g_assert_cmpint(g_remove(path), ==, 0);
  g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static int spawn_error(const char *program, const struct guest_spawn_options *options) {
  const char *const argv[] = {program, NULL};
  struct started started = {.pid = -7, .pidfd = -7, .stream = -7, .errors = -7};
  int error = guest_spawn(argv, NULL, options, &started.pid, &started.pidfd, &started.stream,
                          &started.errors);
  g_assert_cmpint(started.pid, ==, -7);
  g_assert_cmpint(started.stream, ==, -7);
  return error;
}

static void test_failures_leave_nothing(void) {
  int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
  close(lowest);
  g_assert_cmpint(spawn_error("/nonexistent/program", NULL), ==, -ENOENT);
  g_assert_cmpint(spawn_error("/etc/passwd", NULL), ==, -EACCES);
  struct guest_spawn_options options = {.cwd = "/nonexistent"};
  g_assert_cmpint(spawn_error("/bin/true", &options), ==, -ENOENT);
  int readable = open("/dev/null", O_RDONLY | O_CLOEXEC);
  g_assert_cmpint(readable, ==, lowest);
  options = (struct guest_spawn_options){.cgroup_fds = &readable, .cgroup_count = 1};
  g_assert_cmpint(spawn_error("/bin/true", &options), ==, -EBADF);
  close(readable);
  g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1);
  g_assert_cmpint(errno, ==, ECHILD);
}

static void test_guest_program(void) {
  g_autofree char *dir = g_dir_make_tmp("sandhost-spawn-XXXXXX", NULL);
  struct sandhost_path guest_dir = {.data = dir, .length = strlen(dir)};
  g_assert_null(guest_program(guest_dir));
  g_assert_null(guest_program((struct sandhost_path){.data = "", .length = 0}));
  g_autofree char *path = g_strdup_printf("%s/sandhost-guest-x86_64", dir);
#if !defined(__x86_64__)
  g_test_skip("the name is that of another machine");
  return;
#endif
  g_assert_true(g_file_set_contents(path, "#!/bin/sh\n", -1, NULL));
  g_assert_cmpint(g_chmod(path, 0644), ==, 0);
  g_assert_null(guest_program(guest_dir));
  g_assert_cmpint(g_chmod(path, 0755), ==, 0);
  g_autofree char *found = guest_program(guest_dir);
  g_assert_cmpstr(found, ==, path);
  g_assert_cmpint(g_remove(path), ==, 0);
  g_assert_cmpint(g_rmdir(dir), ==, 0);
}

static gpointer spawn_many(gpointer data) {
  for (int i = 0; i < 20; i++) {
    struct guest_spawn_options options = {
        .change_user = GPOINTER_TO_INT(data) && geteuid() == 0, .uid = 65534, .gid = 65534};
    g_autofree char *output = NULL;
    g_autofree char *errors = NULL;
    g_assert_cmpint(run_shell("echo here", NULL, &options, &output, &errors), ==, 0);
    g_assert_cmpstr(output, ==, "here\n");
  }
  return NULL;
}

static void test_many_threads(void) {
  GThread *threads[6];
  for (int i = 0; i < 6; i++) {
    threads[i] = g_thread_new("spawn", spawn_many, GINT_TO_POINTER(i % 2));
  }
  for (int i = 0; i < 6; i++) {
    g_thread_join(threads[i]);
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/spawn/streams", test_streams);
  g_test_add_func("/support/spawn/environment-is-exact", test_environment_is_exact);
  g_test_add_func("/support/spawn/only-named-descriptors-reach-it",
                  test_only_named_descriptors_reach_it);
  g_test_add_func("/support/spawn/session-and-signals", test_session_and_signals);
  g_test_add_func("/support/spawn/user-and-folder", test_user_and_folder);
  g_test_add_func("/support/spawn/cgroup-files-are-written-first",
                  test_cgroup_files_are_written_first);
  g_test_add_func("/support/spawn/failures-leave-nothing", test_failures_leave_nothing);
  g_test_add_func("/support/spawn/guest-program", test_guest_program);
  g_test_add_func("/support/spawn/many-threads", test_many_threads);
  return g_test_run();
}
