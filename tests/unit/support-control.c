/* SPDX-License-Identifier: Apache-2.0 */
/* support-control.c: what happens to a running command: cancel, deadline, limit, signals, input. */
#include <fcntl.h>

#include "support-run.h"

/* ---- Cancel, deadline, limit ----------------------------------------------------------------- */

/* Starts a command that ends when it is cancelled, after some last output. */
static void script_cancellable(int fd, void *data) {
  (void)data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  fake_send_u32(fd, GUEST_STARTED, open.request, 1);
  fake_send_data(fd, GUEST_OUT, open.request, "hello");
  struct guest_frame cancel = fake_expect(fd, GUEST_CANCEL);
  g_assert_cmpuint(cancel.request, ==, open.request);
  fake_send_data(fd, GUEST_OUT, open.request, "too late");
  fake_send_done(fd, open.request, SANDHOST_CANCELLED, "", NULL, 0);
  open = fake_expect_open(fd, NULL); /* and is as good as before */
  fake_send_ended(fd, open.request, SANDHOST_ENDED_EXIT, 0, 0, 0, 0);
  fake_wait_for_end(fd);
}

static void check_still_good(struct run *run) {
  fake_call_clear(&run->call);
  fake_call_init(&run->call);
  run->observer.output = fake_observe_output;
  run->observer.user = &run->seen;
  g_assert_cmpint(run_execute(run), ==, SANDHOST_OK);
}

static int32_t cancel_from_output(void *user, uint32_t stream, const void *data, size_t length) {
  struct run *run = user;
  fake_call_cancel(&run->call);
  return fake_observe_output(&run->seen, stream, data, length);
}

static gpointer cancel_later(gpointer data) {
  g_usleep(5000); /* so that the command mostly runs by then; either order must do */
  fake_call_cancel(data);
  return NULL;
}

static void test_cancel(void) {
  struct run run;
  run_begin(&run, script_cancellable, NULL);
  run.observer.started = NULL;
  run.observer.user = &run;
  run.observer.output = cancel_from_output;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(run.call.message, ==, "cancelled");
  g_assert_cmpstr(run.seen.out->str, ==, "hello");
  check_still_good(&run);
  run_end(&run);
}

/* The cancel may come before the command is asked for: then the guest is never told. */
static void script_cancellable_or_not(int fd, void *data) {
  (void)data;
  if (!fake_greet(fd)) {
    return;
  }
  struct fake_frame frame;
  while (fake_receive(fd, &frame)) {
    if (frame.header.kind == GUEST_CANCEL) {
      fake_send_done(fd, frame.header.request, SANDHOST_CANCELLED, "", NULL, 0);
    }
    fake_frame_clear(&frame);
  }
}

/* Wakes the wait by its descriptor, or, without one, by being asked now and then. */
static void cancel_from_thread(gboolean with_descriptor) {
  struct run run;
  run_begin(&run, script_cancellable_or_not, NULL);
  if (!with_descriptor) {
    close(run.call.cancel_fd);
    run.call.cancel_fd = -1;
  }
  GThread *thread = g_thread_new("cancel", cancel_later, &run.call);
  int32_t status = run_execute(&run);
  g_thread_join(thread);
  g_assert_cmpint(status, ==, SANDHOST_CANCELLED);
  run_end(&run);
}

static void test_cancel_from_another_thread(void) {
  cancel_from_thread(TRUE);
}

static void test_cancel_without_descriptor(void) {
  cancel_from_thread(FALSE);
}

static void test_cancelled_before(void) {
  struct run run;
  run_begin(&run, script_cancellable_or_not, NULL);
  fake_call_cancel(&run.call);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_CANCELLED);
  g_assert_cmpint(run.seen.started, ==, 0);
  run_end(&run);
}

static void test_deadline(void) {
  struct run run;
  run_begin(&run, script_cancellable_or_not, NULL);
  run.call.deadline = fake_now() + 30 * FAKE_MILLISECOND;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_TIMEOUT);
  g_assert_cmpstr(run.call.message, ==, "the deadline passed");
  run_end(&run);
}

static void test_cancel_without_answer(void) {
  struct run run;
  run_begin(&run, script_hello_output, NULL);
  run.session.client->timing.cancel_grace = 30 * FAKE_MILLISECOND;
  run.observer.started = NULL;
  run.observer.user = &run;
  run.observer.output = cancel_from_output;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_LOST);
  g_assert_cmpstr(run.call.message, ==, "it did not answer");
  run_end(&run);
}

static int32_t refuse_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  return -1;
}

static void test_stopped_by_observer(void) {
  struct run run;
  run_begin(&run, script_cancellable, NULL);
  run.observer.output = refuse_output;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_CANCELLED);
  g_assert_cmpstr(run.call.message, ==, "the receiver of the output stopped");
  check_still_good(&run);
  run_end(&run);
}

static void test_limit_ignored(void) {
  struct run run;
  run_begin(&run, script_hello_output, NULL);
  run.session.client->timing.limit_grace = 30 * FAKE_MILLISECOND;
  run.request.limit = FAKE_MILLISECOND;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_LOST);
  g_assert_cmpstr(run.call.message, ==,
                  "Command exceeded its time limit and the sandbox was stopped");
  g_assert_cmpstr(run.call.reports[SANDHOST_REPORT_LOST], ==,
                  "Command exceeded its time limit and the sandbox was stopped");
  g_assert_cmpstr(run.seen.out->str, ==, "hello");
  run_end(&run);
}

/* A guest that ignores the limit and never stops talking is caught as well. */
static void script_chatter(int fd, void *data) {
  (void)data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  struct pollfd closed = {.fd = fd, .events = POLLRDHUP};
  while (poll(&closed, 1, 0) == 0) {
    fake_send_data(fd, GUEST_OUT, open.request, "x");
    g_usleep(200);
  }
}

static void test_limit_ignored_while_talking(void) {
  struct run run;
  run_begin(&run, script_chatter, NULL);
  run.session.client->timing.limit_grace = 30 * FAKE_MILLISECOND;
  run.request.limit = FAKE_MILLISECOND;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_LOST);
  g_assert_cmpstr(run.call.message, ==,
                  "Command exceeded its time limit and the sandbox was stopped");
  run_end(&run);
}

/* ---- Signals --------------------------------------------------------------------------------- */

static void script_signalled(int fd, void *data) {
  (void)data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  struct fake_frame frame;
  fake_send_u32(fd, GUEST_STARTED, open.request, 1);
  g_assert_true(fake_receive(fd, &frame));
  g_assert_cmpuint(frame.header.kind, ==, GUEST_SIGNAL);
  g_assert_cmpuint(frame.header.request, ==, open.request);
  int32_t signal = (int32_t)guest_get_u32(frame.payload->data);
  fake_frame_clear(&frame);
  fake_send_ended(fd, open.request, SANDHOST_ENDED_SIGNAL, 0, signal, 0, 0);
  fake_wait_for_end(fd);
}

static void signal_from_started(void *user, uint64_t execution) {
  struct run *run = user;
  struct sandhost_call call;
  fake_call_init(&call);
  g_assert_cmpint(guest_client_signal(run->session.client, &call, execution + 256, 10), ==,
                  SANDHOST_NOT_FOUND);
  g_assert_cmpstr(call.message, ==, "the command is not running");
  g_assert_cmpint(guest_client_signal(run->session.client, &call, execution, 0), ==,
                  SANDHOST_INVALID);
  g_assert_cmpint(guest_client_signal(run->session.client, &call, execution, 10), ==, SANDHOST_OK);
  fake_call_clear(&call);
  run->seen.execution = execution;
}

static void test_signal(void) {
  struct run run;
  run_begin(&run, script_signalled, NULL);
  run.observer.user = &run;
  run.observer.started = signal_from_started;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_OK);
  g_assert_cmpint(run.result.signal, ==, 10);
  g_assert_cmpint(guest_client_signal(run.session.client, &run.call, run.seen.execution, 10), ==,
                  SANDHOST_NOT_FOUND);
  run_end(&run);
}

/* ---- Input ----------------------------------------------------------------------------------- */

#define INPUT_TOTAL ((size_t)3 * 1024 * 1024)

/* Takes stdin to its end, gives credit for it, and answers with how much it was. */
static void script_input(int fd, void *data) {
  size_t *total = data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  struct fake_frame frame;
  size_t unpaid = 0;
  fake_send_u32(fd, GUEST_STARTED, open.request, 1);
  for (;;) {
    g_assert_true(fake_receive(fd, &frame));
    g_assert_cmpuint(frame.header.channel, ==, GUEST_IN);
    uint8_t kind = frame.header.kind;
    unpaid += frame.payload->len;
    *total += frame.payload->len;
    g_assert_cmpuint(unpaid, <=, GUEST_WINDOW);
    fake_frame_clear(&frame);
    if (kind == GUEST_END) {
      break;
    }
    g_assert_cmpuint(kind, ==, GUEST_DATA);
    if (unpaid > GUEST_WINDOW / 2) {
      fake_send_u32(fd, GUEST_CREDIT, open.request, (uint32_t)unpaid);
      unpaid = 0;
    }
  }
  fake_send_ended(fd, open.request, SANDHOST_ENDED_EXIT, 0, 0, 0, 0);
  fake_wait_for_end(fd);
}

struct input {
  struct fake_observed seen;
  int fd; /* to poll; or -1 */
  size_t left;
  int waits; /* how often it has nothing, after all of left is gone, before its end */
};

static int64_t give_input(void *user, void *buffer, size_t length) {
  struct input *input = user;
  if (input->left > 0) {
    size_t part = MIN(length, input->left);
    memset(buffer, 'i', part);
    input->left -= part;
    return (int64_t)part;
  }
  if (input->fd >= 0) {
    char byte;
    ssize_t count = read(input->fd, &byte, 1);
    if (count == 1) {
      memcpy(buffer, &byte, 1);
    }
    return count < 0 ? -1 : count;
  }
  return input->waits-- > 0 ? -1 : 0;
}

static int32_t give_input_fd(void *user) {
  const struct input *input = user;
  return input->fd;
}

static void run_with_input(struct run *run, struct input *input) {
  run->request.flags = SANDHOST_EXECUTE_STDIN;
  run->observer.user = input;
  run->observer.started = NULL;
  run->observer.input = give_input;
  run->observer.input_fd = give_input_fd;
  g_assert_cmpint(run_execute(run), ==, SANDHOST_OK);
}

static void test_input(void) {
  size_t total = 0;
  struct input input = {.fd = -1, .left = INPUT_TOTAL, .waits = 3};
  struct run run;
  run_begin(&run, script_input, &total);
  run_with_input(&run, &input);
  run_end(&run);
  g_assert_cmpuint(total, ==, INPUT_TOTAL);
}

static gpointer write_slowly(gpointer data) {
  int fd = GPOINTER_TO_INT(data);
  for (int i = 0; i < 5; i++) {
    g_usleep(2000);
    g_assert_cmpint(write(fd, "x", 1), ==, 1);
  }
  close(fd);
  return NULL;
}

static void test_input_from_descriptor(void) {
  size_t total = 0;
  int fds[2];
  struct run run;
  g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
  g_assert_cmpint(fcntl(fds[0], F_SETFL, O_NONBLOCK), ==, 0);
  struct input input = {.fd = fds[0]};
  run_begin(&run, script_input, &total);
  GThread *thread = g_thread_new("input", write_slowly, GINT_TO_POINTER(fds[1]));
  run_with_input(&run, &input);
  g_thread_join(thread);
  run_end(&run);
  close(fds[0]);
  g_assert_cmpuint(total, ==, 5);
}

static void test_input_without_functions(void) {
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.request.flags = SANDHOST_EXECUTE_STDIN;
  run_check_invalid(&run, "the observer lacks a function that the command needs");
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/control/cancel", test_cancel);
  g_test_add_func("/support/control/cancel-from-another-thread", test_cancel_from_another_thread);
  g_test_add_func("/support/control/cancel-without-descriptor", test_cancel_without_descriptor);
  g_test_add_func("/support/control/cancelled-before", test_cancelled_before);
  g_test_add_func("/support/control/deadline", test_deadline);
  g_test_add_func("/support/control/cancel-without-answer", test_cancel_without_answer);
  g_test_add_func("/support/control/stopped-by-observer", test_stopped_by_observer);
  g_test_add_func("/support/control/limit-ignored", test_limit_ignored);
  g_test_add_func("/support/control/limit-ignored-while-talking", test_limit_ignored_while_talking);
  g_test_add_func("/support/control/signal", test_signal);
  g_test_add_func("/support/control/input", test_input);
  g_test_add_func("/support/control/input-from-descriptor", test_input_from_descriptor);
  g_test_add_func("/support/control/input-without-functions", test_input_without_functions);
  return g_test_run();
}
