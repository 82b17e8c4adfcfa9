/* SPDX-License-Identifier: Apache-2.0 */
/* support-run.h: one command through a client whose guest follows a script. */
#ifndef SANDHOST_TESTS_SUPPORT_RUN_H
#define SANDHOST_TESTS_SUPPORT_RUN_H

#include "fake-guest.h"

struct run {
  struct fake_session session;
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_text argument;
  struct sandhost_execute request;
  struct sandhost_observer observer;
  struct sandhost_result result;
};

FAKE_UNUSED static void run_begin(struct run *run, fake_script script, void *data) {
  memset(run, 0, sizeof *run);
  fake_session_start(&run->session, script, data);
  fake_call_init(&run->call);
  fake_observed_init(&run->seen);
  run->argument = fake_to_text("true");
  run->request =
      (struct sandhost_execute){.size = sizeof run->request, .argv = &run->argument, .argc = 1};
  run->observer = fake_observer(&run->seen);
  run->result = (struct sandhost_result){.size = sizeof run->result};
}

FAKE_UNUSED static int32_t run_execute(struct run *run) {
  return guest_client_execute(run->session.client, &run->call, &run->request, &run->observer,
                              &run->result);
}

FAKE_UNUSED static void run_end(struct run *run) {
  fake_session_end(&run->session);
  fake_observed_clear(&run->seen);
  fake_call_clear(&run->call);
}

/* Runs a command that the client itself must refuse, and ends the run. */
FAKE_UNUSED static void run_check_invalid(struct run *run, const char *message) {
  g_assert_cmpint(run_execute(run), ==, SANDHOST_INVALID);
  g_assert_cmpstr(run->call.message, ==, message);
  g_assert_null(guest_client_lost_reason(run->session.client));
  g_assert_cmpint(run->seen.started, ==, 0);
  run_end(run);
}

/* Greets and does nothing more. */
FAKE_UNUSED static void script_greet_only(int fd, void *data) {
  (void)data;
  if (fake_greet(fd)) {
    fake_wait_for_end(fd);
  }
}

/* Starts a command that says hello and never ends. */
FAKE_UNUSED static void script_hello_output(int fd, void *data) {
  (void)data;
  if (fake_greet(fd)) {
    struct guest_frame open = fake_expect_open(fd, NULL);
    fake_send_u32(fd, GUEST_STARTED, open.request, 1);
    fake_send_data(fd, GUEST_OUT, open.request, "hello");
    fake_wait_for_end(fd);
  }
}

#endif
