/* SPDX-License-Identifier: Apache-2.0 */
/* guest-control.c: limits, cancels, stdin, flow control, and what a command leaves behind. */
#include "guest-raw.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Ends ------------------------------------------------------------------------------------ */

static void check_limit(const struct raw_answer *answer) {
  g_assert_cmpint(answer->status, ==, SANDHOST_OK);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(answer->exit_code, ==, 137);
  g_assert_cmpint(answer->signal, ==, SIGKILL);
}

static void test_limit(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(
      &raw, 1,
      (struct raw_command){.script = "echo so far; sleep 1000", .limit = 200 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  check_limit(answer);
  g_assert_cmpstr(answer->out->str, ==, "so far\n");
  g_assert_cmpuint(answer->duration, >=, 200 * RAW_MILLISECOND);
  raw_end(&raw);
}

/* Not even one that left the session and whose parent is gone gets away. */
static void test_limit_finds_the_tree(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){
                  .script = "trap '' TERM INT HUP; "
                            "(setsid sh -c 'trap \"\" TERM; (setsid sleep 1000 & echo $!; )' &) ; "
                            "sleep 1000",
                  .limit = 500 * RAW_MILLISECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  check_limit(answer);
  pid_t escaped = raw_number(answer->out->str);
  g_assert_false(raw_is_alive(escaped));
  raw_end(&raw);
}

/* A process whose first thread has ended looks like a zombie, but goes on. */
static void test_limit_ends_a_headless_process(void) {
  struct raw raw;
  g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
  g_autofree char *script = g_strdup_printf("setsid '%s' headless & sleep 1000", program);
  raw_begin(&raw);
  raw_execute(&raw, 1, (struct raw_command){.script = script, .limit = 1 * RAW_SECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  check_limit(answer);
  pid_t headless = raw_number(answer->out->str);
  for (int i = 0; kill(headless, 0) == 0; i++) {
    g_assert_cmpint(i, <, RAW_PATIENCE);
    g_usleep(1000);
  }
  raw_end(&raw);
}

static void *go_on(void *unused) {
  (void)unused;
  printf("%d\n", (int)getpid());
  (void)fflush(stdout);
  for (;;) {
    pause();
  }
  return NULL;
}

static void be_headless(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, go_on, NULL) == 0) {
    pthread_exit(NULL);
  }
}

static void test_limit_ends_a_stopped_command(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "kill -STOP $$", .limit = 200 * RAW_MILLISECOND});
  check_limit(raw_wait(&raw, 1));
  raw_end(&raw);
}

/* A tree that grows as fast as it can, up to a bound: a few hundred shells that restart each
 * other. */
static void test_limit_ends_a_growing_tree(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){
                  .script = "grow() { while :; do "
                            "test $(ls -d /proc/[0-9]* | wc -l) -lt 400 && (grow \"$1\" &); "
                            "done; }; echo mark$$; grow mark$$",
                  .environment = (const char *const[]){"SANDHOST_TEST=growing-tree", NULL},
                  .limit = 1 * RAW_SECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  check_limit(answer);
  const struct raw_answer *left =
      raw_run(&raw, 2, "grep -l SANDHOST_TEST=growing-tree /proc/[0-9]*/environ 2>/dev/null");
  g_assert_cmpstr(left->out->str, ==, "");
  raw_end(&raw);
}

static void test_limit_after_the_end(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "sleep 1000 & echo $!", .limit = 3600 * RAW_SECOND});
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpuint(answer->ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_true(raw_is_alive(raw_number(answer->out->str)));
  raw_end(&raw);
}

static void test_cancel(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1, (struct raw_command){.script = "(setsid sleep 1000 & echo $!); sleep 1000"});
  raw_wait_output(&raw, 1, 2);
  raw_send_cancel(&raw, 1);
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpint(answer->status, ==, SANDHOST_CANCELLED);
  g_assert_false(raw_is_alive(raw_number(answer->out->str)));
  g_assert_cmpint(raw_run(&raw, 2, "exit 4")->exit_code, ==, 4);
  raw_end(&raw);
}

/* Nobody takes the output: a ping, a kill and another command pass all the same. */
static void test_full_pipe(void) {
  struct raw raw;
  raw_begin(&raw);
  raw.keeps_credit = TRUE;
  raw_execute(&raw, 1, (struct raw_command){.script = "cat /dev/zero"});
  raw_wait_output(&raw, 1, GUEST_WINDOW);
  raw_ping(&raw, 7);
  g_assert_cmpint(raw_run(&raw, 2, "exit 6")->exit_code, ==, 6);
  raw_send_u32(&raw, GUEST_SIGNAL, 1, SIGUSR1);
  const struct raw_answer *answer = raw_answer(&raw, 1);
  raw_wait_gone((pid_t)answer->pid);
  raw_send_cancel(&raw, 1);
  raw_wait(&raw, 1);
  g_assert_cmpuint(answer->out->len, ==, GUEST_WINDOW);
  raw_end(&raw);
}

/* The test does not even read: the stream itself is full when the kill is sent. */
static void test_full_stream(void) {
  struct raw raw;
  raw_begin(&raw);
  for (uint32_t id = 1; id <= 8; id++) {
    raw_execute(&raw, id, (struct raw_command){.script = "cat /dev/zero"});
    raw_wait_started(&raw, id);
    raw_send_u32(&raw, GUEST_CREDIT, id, 64u << 20);
  }
  pid_t first = (pid_t)raw_answer(&raw, 1)->pid;
  g_usleep(100000); /* for the stream to fill; a kill that comes sooner is no fault */
  for (uint32_t id = 1; id <= 8; id++) {
    raw_send_cancel(&raw, id);
  }
  raw_wait_gone(first);
  raw.keeps_credit = TRUE;
  for (uint32_t id = 1; id <= 8; id++) {
    g_assert_cmpint(raw_wait(&raw, id)->status, ==, SANDHOST_CANCELLED);
  }
  raw_end(&raw);
}

/* The guest was told nothing: its stream ends, and so does everything. */
static void test_end_of_stream(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1, (struct raw_command){.script = "(setsid sleep 1000 & echo $!); sleep 1000"});
  const struct raw_answer *left = raw_run(&raw, 2, "sleep 1000 & echo $!");
  raw_wait_output(&raw, 1, 2);
  pid_t processes[] = {(pid_t)raw_answer(&raw, 1)->pid, raw_number(raw_answer(&raw, 1)->out->str),
                       raw_number(left->out->str)};
  for (size_t i = 0; i < G_N_ELEMENTS(processes); i++) {
    g_assert_true(raw_is_alive(processes[i]));
  }
  raw_end(&raw);
  for (size_t i = 0; i < G_N_ELEMENTS(processes); i++) {
    g_assert_false(raw_is_alive(processes[i]));
  }
}

/* Where it is no init, the guest can be killed; its keepers then end what they keep. */
static void test_guest_killed(void) {
  struct raw raw;
  int status;
  raw_begin(&raw);
  raw_execute(&raw, 1, (struct raw_command){.script = "(setsid sleep 1000 & echo $!); sleep 1000"});
  raw_wait_output(&raw, 1, 2);
  pid_t command = (pid_t)raw_answer(&raw, 1)->pid;
  pid_t escaped = raw_number(raw_answer(&raw, 1)->out->str);
  kill(raw.pid, SIGKILL);
  g_assert_cmpint(waitpid(raw.pid, &status, 0), ==, raw.pid);
  raw_wait_gone(command);
  raw_wait_gone(escaped);
  close(raw.fd);
  raw_release(&raw);
}

/* The same while a keeper is still starting its command, before it waits for anything. */
static void test_guest_killed_at_start(void) {
  for (int i = 0; i < 50; i++) {
    struct raw raw;
    int status;
    raw_begin(&raw);
    raw_execute(&raw, 1, (struct raw_command){.script = "sleep 1000"});
    raw_wait_started(&raw, 1);
    pid_t command = (pid_t)raw_answer(&raw, 1)->pid;
    kill(raw.pid, SIGKILL);
    g_assert_cmpint(waitpid(raw.pid, &status, 0), ==, raw.pid);
    raw_wait_gone(command);
    close(raw.fd);
    raw_release(&raw);
  }
}

/* ---- What is left behind --------------------------------------------------------------------- */

/* The command's end counts, not that of a process that holds its pipes; that one goes on. */
static void test_background(void) {
  struct raw raw;
  raw_begin(&raw);
  const struct raw_answer *answer = raw_run(
      &raw, 1,
      "(while ! test -e go; do sleep 0.01; done; head -c 1000000 /dev/zero && touch done) & "
      "echo $!; exit 2");
  g_assert_cmpint(answer->exit_code, ==, 2);
  pid_t left = raw_number(answer->out->str);
  g_assert_true(raw_is_alive(left));
  raw_put_file(&raw, "go", "");
  raw_wait_gone(left);
  g_autofree char *done = raw_path(&raw, "done");
  g_assert_true(g_file_test(done, G_FILE_TEST_EXISTS)); /* it did not die of SIGPIPE */
  raw_end(&raw);
}

/* More than a keeper can be kept for. */
static void test_many_left_behind(void) {
  struct raw raw;
  raw_begin(&raw);
  for (uint32_t id = 1; id <= 30; id++) {
    g_assert_cmpint(raw_run(&raw, id, "sleep 1000 & exit 0")->exit_code, ==, 0);
  }
  raw_end(&raw);
}

/* ---- Stdin ----------------------------------------------------------------------------------- */

static void test_stdin(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "tr a-z A-Z", .flags = SANDHOST_EXECUTE_STDIN});
  raw_send_data(&raw, 1, "in three ", 9);
  raw_wait_started(&raw, 1);
  raw_send_data(&raw, 1, "pieces", 6);
  raw_send_data(&raw, 1, "\n", 1);
  raw_send_end(&raw, 1);
  const struct raw_answer *answer = raw_wait(&raw, 1);
  g_assert_cmpstr(answer->out->str, ==, "IN THREE PIECES\n");
  g_assert_cmpuint(answer->credited, ==, 16);
  raw_end(&raw);
}

/* Credit comes back as the command reads, never before. */
static void test_stdin_window(void) {
  struct raw raw;
  g_autofree char *window = g_strnfill(GUEST_WINDOW, 'w');
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "while ! test -e go; do sleep 0.01; done; wc -c",
                                   .flags = SANDHOST_EXECUTE_STDIN});
  raw_send_data(&raw, 1, window, GUEST_WINDOW);
  raw_ping(&raw, 1);
  struct raw_answer *answer = raw_answer(&raw, 1);
  g_assert_cmpuint(answer->credited, <, GUEST_WINDOW);
  raw_put_file(&raw, "go", "");
  while (answer->credited < GUEST_WINDOW) {
    g_assert_true(raw_step(&raw));
  }
  raw_send_data(&raw, 1, window, GUEST_WINDOW);
  raw_send_end(&raw, 1);
  g_assert_cmpstr(raw_wait(&raw, 1)->out->str, ==, "2097152\n");
  raw_end(&raw);
}

/* A command that does not read: what comes is dropped and credited. */
static void test_stdin_closed(void) {
  struct raw raw;
  g_autofree char *window = g_strnfill(GUEST_WINDOW, 'w');
  raw_begin(&raw);
  raw_execute(&raw, 1,
              (struct raw_command){.script = "exec <&-; echo closed; "
                                             "while ! test -e go; do sleep 0.01; done; exit 9",
                                   .flags = SANDHOST_EXECUTE_STDIN});
  raw_wait_output(&raw, 1, 7);
  for (int i = 1; i <= 3; i++) {
    raw_send_data(&raw, 1, window, GUEST_WINDOW);
    while (raw_answer(&raw, 1)->credited < (uint64_t)i * GUEST_WINDOW) {
      g_assert_true(raw_step(&raw));
    }
  }
  raw_put_file(&raw, "go", "");
  g_assert_cmpint(raw_wait(&raw, 1)->exit_code, ==, 9);
  raw_end(&raw);
}

static void test_stdin_unread_at_the_end(void) {
  struct raw raw;
  g_autofree char *window = g_strnfill(GUEST_WINDOW, 'w');
  raw_begin(&raw);
  raw_execute(&raw, 1, (struct raw_command){.script = "exit 3", .flags = SANDHOST_EXECUTE_STDIN});
  raw_send_data(&raw, 1, window, GUEST_WINDOW);
  g_assert_cmpint(raw_wait(&raw, 1)->exit_code, ==, 3);
  raw_end(&raw);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void test_parallel(void) {
  enum { COUNT = 40 };
  struct raw raw;
  raw_begin(&raw);
  for (uint32_t id = 1; id <= COUNT; id++) {
    g_autofree char *script = g_strdup_printf("sleep 0.05; echo %u; exit %u", id, id);
    raw_execute(&raw, id, (struct raw_command){.script = script});
  }
  for (uint32_t id = 1; id <= COUNT; id++) {
    g_autofree char *expected = g_strdup_printf("%u\n", id);
    const struct raw_answer *answer = raw_wait(&raw, id);
    g_assert_cmpint(answer->exit_code, ==, (int)id);
    g_assert_cmpstr(answer->out->str, ==, expected);
  }
  raw_end(&raw);
}

static void test_too_many(void) {
  struct raw raw;
  raw_begin(&raw);
  for (uint32_t id = 1; id <= GUEST_MAX_REQUESTS; id++) {
    raw_execute(&raw, id, (struct raw_command){.script = "exec sleep 1000"});
  }
  raw_execute(&raw, 1000, (struct raw_command){.script = "true"});
  g_assert_cmpint(raw_wait(&raw, 1000)->status, ==, SANDHOST_LIMIT);
  for (uint32_t id = 1; id <= GUEST_MAX_REQUESTS; id++) {
    raw_wait_started(&raw, id);
    g_assert_cmpint(raw_answer(&raw, id)->done, ==, 0);
  }
  raw_send_cancel(&raw, 5);
  raw_wait(&raw, 5);
  g_assert_cmpint(raw_run(&raw, 1001, "exit 8")->exit_code, ==, 8);
  raw_end(&raw);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "headless") == 0) {
    be_headless();
    return 1;
  }
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/control/limit", test_limit);
  g_test_add_func("/guest/control/limit-finds-the-tree", test_limit_finds_the_tree);
  g_test_add_func("/guest/control/limit-headless", test_limit_ends_a_headless_process);
  g_test_add_func("/guest/control/limit-stopped", test_limit_ends_a_stopped_command);
  g_test_add_func("/guest/control/limit-growing-tree", test_limit_ends_a_growing_tree);
  g_test_add_func("/guest/control/limit-after-the-end", test_limit_after_the_end);
  g_test_add_func("/guest/control/cancel", test_cancel);
  g_test_add_func("/guest/control/full-pipe", test_full_pipe);
  g_test_add_func("/guest/control/full-stream", test_full_stream);
  g_test_add_func("/guest/control/end-of-stream", test_end_of_stream);
  g_test_add_func("/guest/control/guest-killed", test_guest_killed);
  g_test_add_func("/guest/control/guest-killed-at-start", test_guest_killed_at_start);
  g_test_add_func("/guest/control/background", test_background);
  g_test_add_func("/guest/control/many-left-behind", test_many_left_behind);
  g_test_add_func("/guest/control/stdin", test_stdin);
  g_test_add_func("/guest/control/stdin-window", test_stdin_window);
  g_test_add_func("/guest/control/stdin-closed", test_stdin_closed);
  g_test_add_func("/guest/control/stdin-unread", test_stdin_unread_at_the_end);
  g_test_add_func("/guest/control/parallel", test_parallel);
  g_test_add_func("/guest/control/too-many", test_too_many);
  return g_test_run();
}
