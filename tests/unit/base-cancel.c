/* SPDX-License-Identifier: Apache-2.0 */
/* base-cancel.c: a flag that threads, signal handlers and poll see. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "base/cancel.h"

/* Set before the signal is raised, read by the handler in the same thread. */
static Cancel *raised_by_signal;

static gboolean is_readable(const Cancel *cancel, int timeout) {
  struct pollfd poll_fd = {.fd = cancel_fd(cancel), .events = POLLIN};
  return poll(&poll_fd, 1, timeout) == 1;
}

static void test_fresh(void) {
  g_autoptr(Cancel) cancel = cancel_new();
  g_assert_false(cancel_raised(cancel));
  g_assert_false(is_readable(cancel, 0));
  g_assert_cmpint(fcntl(cancel_fd(cancel), F_GETFD) & FD_CLOEXEC, ==, FD_CLOEXEC);
}

static void test_raised(void) {
  g_autoptr(Cancel) cancel = cancel_new();
  cancel_raise(cancel);
  cancel_raise(cancel);
  g_assert_true(cancel_raised(cancel));
  g_assert_true(is_readable(cancel, 0));
  g_assert_true(is_readable(cancel, 0));
}

static void test_nobody(void) {
  g_assert_false(cancel_raised(NULL));
  g_assert_cmpint(cancel_fd(NULL), ==, -1);
  cancel_unref(NULL);
}

static void test_references(void) {
  Cancel *cancel = cancel_new();
  Cancel *other = cancel_ref(cancel);
  int fd = cancel_fd(cancel);
  cancel_unref(cancel);
  g_assert_cmpint(fcntl(fd, F_GETFD), >=, 0);
  cancel_raise(other);
  g_assert_true(cancel_raised(other));
  cancel_unref(other);
  g_assert_cmpint(fcntl(fd, F_GETFD), ==, -1);
}

static void *raise_it(void *cancel) {
  cancel_raise(cancel);
  return NULL;
}

static void test_thread(void) {
  g_autoptr(Cancel) cancel = cancel_new();
  pthread_t thread;
  g_assert_cmpint(pthread_create(&thread, NULL, raise_it, cancel), ==, 0);
  g_assert_true(is_readable(cancel, -1));
  g_assert_true(cancel_raised(cancel));
  pthread_join(thread, NULL);
}

static void on_signal(int number) {
  (void)number;
  cancel_raise(raised_by_signal);
}

static void test_signal(void) {
  g_autoptr(Cancel) cancel = cancel_new();
  struct sigaction action = {.sa_handler = on_signal};
  struct sigaction before;
  raised_by_signal = cancel;
  g_assert_cmpint(sigaction(SIGUSR1, &action, &before), ==, 0);
  g_assert_cmpint(raise(SIGUSR1), ==, 0);
  g_assert_true(cancel_raised(cancel));
  g_assert_true(is_readable(cancel, 0));
  sigaction(SIGUSR1, &before, NULL);
  raised_by_signal = NULL;
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/cancel/fresh", test_fresh);
  g_test_add_func("/cancel/raised", test_raised);
  g_test_add_func("/cancel/nobody", test_nobody);
  g_test_add_func("/cancel/references", test_references);
  g_test_add_func("/cancel/thread", test_thread);
  g_test_add_func("/cancel/signal", test_signal);
  return g_test_run();
}
