/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest-numbers.c: numbers of processes that are given again at once. Whoever is killed with a command is told by its
 * number, and the number of one that has just ended may be that of somebody else by the time the signal is sent.
 */
#include "guest-raw.h"

#define ROUNDS 40

/* Of no concern to anybody: each of its children ends by itself, with 0. Before each, the next number is made a small one
 * again, in this namespace alone. */
#define BYSTANDER                                                                                  \
  "use POSIX; $| = 1; open my $last, '>', '/proc/sys/kernel/ns_last_pid' or die;"                  \
  "fork; fork; print 'x';"                                                                         \
  "while (1) {"                                                                                    \
  "  sysseek $last, 0, 0; syswrite $last, '1000';"                                                 \
  "  my $pid = fork;"                                                                              \
  "  if (!$pid) { select undef, undef, undef, 0.001; POSIX::_exit(0) }"                            \
  "  waitpid $pid, WUNTRACED;"                                                                     \
  "  if ($? != 0) { print \"a child of mine: $?\\n\"; kill 'KILL', $pid; waitpid $pid, 0 }"        \
  "}"

/* So many that they do not all die at once; some come and go while they are looked for. */
#define VICTIM                                                                                     \
  "$| = 1; for (1 .. 100) { fork or sleep 1000 } fork; fork; print 'x';"                           \
  "while (1) { my $pid = fork; exit if !$pid; waitpid $pid, 0 }"

static void perl(struct raw *raw, uint32_t id, const char *program) {
  const char *const argv[] = {"perl", "-e", program, NULL};
  raw_execute(raw, id, (struct raw_command){.argv = argv});
  raw_wait_output(raw, id, 4);
}

static gboolean begin(struct raw *raw) {
  if (!raw_begin_as_init(raw)) {
    return FALSE;
  }
  if (raw_run(raw, 1, "echo 1000 >/proc/sys/kernel/ns_last_pid; exit $?")->exit_code != 0) {
    g_test_skip("this kernel does not let a number be chosen");
    raw_end(raw);
    return FALSE;
  }
  return TRUE;
}

static void test_reused(void) {
  struct raw raw;
  if (!begin(&raw)) {
    return;
  }
  perl(&raw, 2, BYSTANDER);
  for (uint32_t id = 3; id < 3 + ROUNDS; id++) {
    perl(&raw, id, VICTIM);
    raw_send_cancel(&raw, id);
    g_assert_cmpint(raw_wait(&raw, id)->status, ==, SANDHOST_CANCELLED);
  }
  g_assert_cmpstr(raw_answer(&raw, 2)->out->str, ==, "xxxx");
  g_assert_cmpint(raw_answer(&raw, 2)->done, ==, 0);
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/numbers/reused", test_reused);
  return g_test_run();
}
