/* SPDX-License-Identifier: Apache-2.0 */
/* support-client.c: how a client greets, and how it is lost: broken rules, silence, the end. */
#include "violations.h"

/* ---- Greeting -------------------------------------------------------------------------------- */

struct greeting {
  uint32_t magic;
  uint32_t version;
  uint8_t spoil;
  uint32_t flags;
};

static void script_greeting(int fd, void *data) {
  const struct greeting *greeting = data;
  fake_greet_as(fd, greeting->magic, greeting->version, greeting->spoil, greeting->flags);
  fake_wait_for_end(fd);
}

/* Greets a guest that answers so; the error must be this one, and be there for later calls. */
static void check_refused(fake_script script, void *data, const char *reason) {
  struct fake_session session;
  struct sandhost_call call;
  gboolean is_init = 7;
  fake_session_begin(&session, script, data);
  fake_call_init(&call);
  g_assert_cmpint(guest_client_greet(session.client, &call, &is_init), ==, SANDHOST_PROTOCOL);
  g_assert_cmpint(is_init, ==, 7);
  g_assert_cmpstr(call.message, ==, reason);
  g_assert_cmpstr(call.reports[SANDHOST_REPORT_LOST], ==, reason);
  fake_call_clear(&call);
  fake_call_init(&call);
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_observed_init(&seen);
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_LOST);
  g_assert_cmpstr(call.message, ==, reason);
  g_assert_cmpstr(guest_client_lost_reason(session.client), ==, reason);
  fake_observed_clear(&seen);
  fake_call_clear(&call);
  fake_session_end(&session);
}

static void test_greeting_ok(void) {
  for (uint32_t flags = 0; flags <= GUEST_IS_INIT; flags++) {
    struct greeting greeting = {GUEST_MAGIC, GUEST_VERSION, 0, flags};
    struct fake_session session;
    struct sandhost_call call;
    gboolean is_init = 7;
    fake_session_begin(&session, script_greeting, &greeting);
    fake_call_init(&call);
    g_assert_cmpint(guest_client_greet(session.client, &call, &is_init), ==, SANDHOST_OK);
    g_assert_cmpint(is_init, ==, flags == GUEST_IS_INIT);
    g_assert_null(guest_client_lost_reason(session.client));
    fake_call_clear(&call);
    fake_session_end(&session);
  }
}

static void test_greeting_wrong_magic(void) {
  struct greeting greeting = {0x12345678, GUEST_VERSION, 0, 0};
  check_refused(script_greeting, &greeting,
                "it broke the protocol: what answered is not sandhost-guest");
}

static void test_greeting_wrong_version(void) {
  struct greeting greeting = {GUEST_MAGIC, 7, 0, 0};
  check_refused(script_greeting, &greeting,
                "it broke the protocol: the guest speaks version 7, this host version 1");
}

static void test_greeting_wrong_nonce(void) {
  struct greeting greeting = {GUEST_MAGIC, GUEST_VERSION, 1, 0};
  check_refused(script_greeting, &greeting,
                "it broke the protocol: a greeting that answers another");
}

static void script_text(int fd, void *data) {
  const char *text = data;
  fake_write_all(fd, text, strlen(text));
  fake_wait_for_end(fd);
}

static void test_greeting_of_another_program(void) {
  check_refused(script_text, (void *)(uintptr_t) "usage: something else entirely\n",
                "it broke the protocol: what answered is not sandhost-guest");
}

static void script_early(int fd, void *data) {
  (void)data;
  fake_send_u32(fd, GUEST_STARTED, 1, 1);
  fake_wait_for_end(fd);
}

static void test_greeting_not_first(void) {
  check_refused(script_early, NULL, "it broke the protocol: what answered is not sandhost-guest");
}

static void script_mute(int fd, void *data) {
  (void)data;
  fake_wait_for_end(fd);
}

static void test_greeting_silence(void) {
  struct fake_session session;
  struct sandhost_call call;
  fake_session_begin(&session, script_mute, NULL);
  session.client->timing.lost_after = 50 * FAKE_MILLISECOND;
  fake_call_init(&call);
  g_assert_cmpint(guest_client_greet(session.client, &call, NULL), ==, SANDHOST_LOST);
  g_assert_cmpstr(call.message, ==, "it did not answer");
  fake_call_clear(&call);
  fake_session_end(&session);
}

static void test_greeting_deadline(void) {
  struct fake_session session;
  struct sandhost_call call;
  fake_session_begin(&session, script_mute, NULL);
  fake_call_init(&call);
  call.deadline = fake_now() + 30 * FAKE_MILLISECOND;
  g_assert_cmpint(guest_client_greet(session.client, &call, NULL), ==, SANDHOST_TIMEOUT);
  g_assert_cmpstr(call.message, ==, "the deadline passed before the guest greeted");
  g_assert_cmpstr(guest_client_lost_reason(session.client), ==, "its greeting was not waited for");
  fake_call_clear(&call);
  fake_session_end(&session);
}

static void script_end(int fd, void *data) {
  (void)fd;
  (void)data;
}

static void test_greeting_end(void) {
  struct fake_session session;
  struct sandhost_call call;
  fake_session_begin(&session, script_end, NULL);
  fake_call_init(&call);
  g_assert_cmpint(guest_client_greet(session.client, &call, NULL), ==, SANDHOST_LOST);
  g_assert_cmpstr(call.message, ==, "it stopped");
  fake_call_clear(&call);
  fake_session_end(&session);
}

static void test_not_greeted(void) {
  struct fake_session session;
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_session_begin(&session, script_mute, NULL);
  fake_call_init(&call);
  fake_observed_init(&seen);
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_INTERNAL);
  g_assert_cmpstr(call.message, ==, "the guest was not greeted");
  fake_observed_clear(&seen);
  fake_call_clear(&call);
  fake_session_end(&session);
}

/* ---- Broken rules, while a command runs ------------------------------------------------------ */

static void script_violation(int fd, void *data) {
  const struct violation *violation = data;
  if (fake_greet(fd)) {
    struct guest_frame open = fake_expect_open(fd, NULL);
    violation->commit(fd, open.request);
    fake_wait_for_end(fd);
  }
}

static void test_violation(gconstpointer data) {
  struct violation violation = *(const struct violation *)data;
  g_autofree char *reason = g_strconcat("it broke the protocol: ", violation.reason, NULL);
  struct fake_session session;
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_session_start(&session, script_violation, &violation);
  fake_observed_init(&seen);
  fake_call_init(&call);
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_PROTOCOL);
  g_assert_cmpstr(call.message, ==, reason);
  g_assert_cmpstr(call.reports[SANDHOST_REPORT_LOST], ==, reason);
  g_assert_cmpuint(result.ended, ==, 0);
  fake_call_clear(&call);
  fake_call_init(&call);
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_LOST);
  g_assert_cmpstr(call.message, ==, reason);
  g_assert_cmpstr(call.reports[SANDHOST_REPORT_LOST], ==, reason);
  fake_call_clear(&call);
  fake_observed_clear(&seen);
  fake_session_end(&session);
}

/* ---- Credit ---------------------------------------------------------------------------------- */

/* Sends the whole window, and then, in a frame that is within every other bound, one byte. */
static void script_window(int fd, void *data) {
  (void)data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  g_autofree char *zeros = g_malloc0(GUEST_MAX_FRAME);
  for (size_t i = 0; i < GUEST_WINDOW / GUEST_MAX_FRAME; i++) {
    fake_send(fd, GUEST_DATA, GUEST_OUT, open.request, zeros, GUEST_MAX_FRAME);
  }
  fake_send(fd, GUEST_DATA, GUEST_OUT, open.request, zeros, 1);
  fake_wait_for_end(fd);
}

struct holding {
  GuestClient *client;
  GThread *other;
};

static gpointer run_true(gpointer data) {
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_call_init(&call);
  fake_observed_init(&seen);
  int32_t status = fake_execute(data, &call, argv, &seen, &result);
  fake_observed_clear(&seen);
  fake_call_clear(&call);
  return GINT_TO_POINTER(status);
}

/* Consumes nothing, so that no credit is given, until another request has read up to the violation. */
static int32_t hold_output(void *user, uint32_t stream, const void *data, size_t length) {
  struct holding *holding = user;
  (void)stream;
  (void)data;
  (void)length;
  if (!holding->other) {
    holding->other = g_thread_new("other", run_true, holding->client);
  }
  while (!guest_client_lost_reason(holding->client)) {
    g_usleep(1000);
  }
  return SANDHOST_OK;
}

static void test_window(void) {
  struct fake_session session;
  struct sandhost_call call;
  struct sandhost_text argument = fake_to_text("true");
  struct sandhost_execute request = {.size = sizeof request, .argv = &argument, .argc = 1};
  struct sandhost_result result = {.size = sizeof result};
  fake_session_start(&session, script_window, NULL);
  struct holding holding = {.client = session.client};
  struct sandhost_observer observer = {
      .size = sizeof observer, .user = &holding, .output = hold_output};
  fake_call_init(&call);
  int32_t status = guest_client_execute(session.client, &call, &request, &observer, &result);
  g_assert_cmpint(status, ==, SANDHOST_LOST);
  g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(holding.other)), ==, SANDHOST_PROTOCOL);
  g_assert_cmpstr(call.message, ==, "it broke the protocol: data beyond its window");
  fake_call_clear(&call);
  fake_session_end(&session);
}

/* ---- The end, silence, being told ------------------------------------------------------------ */

/* What may_have_happened is where nobody said it. */
#define NOT_SAID (-1)

static void script_end_at_once(int fd, void *data) {
  (void)data;
  fake_greet(fd); /* the end of the script closes the stream */
}

/* Nothing can be sent to it, while it has not ended; it has where this comes late, which is told in the same way. */
static gint deaf; /* atomic */

static void script_deaf_end(int fd, void *data) {
  (void)data;
  if (fake_greet(fd)) {
    shutdown(fd, SHUT_RD);
    g_atomic_int_set(&deaf, 1);
    g_usleep(200000);
  }
}

static void script_end_unread(int fd, void *data) {
  (void)data;
  if (fake_greet(fd)) {
    fake_expect_open(fd, NULL);
  }
}

/* A guest that is gone before it is asked has begun nothing, and that is said; not of one that may have. */
static void end_before(void (*script)(int fd, void *data), gboolean gone_before, int said) {
  struct fake_session session;
  const char *const argv[] = {"true", NULL};
  fake_session_start(&session, script, NULL);
  for (int i = 0; i < 2; i++) {
    struct sandhost_call call;
    struct fake_observed seen;
    struct sandhost_result result;
    fake_observed_init(&seen);
    fake_call_init(&call);
    call.may_have_happened = NOT_SAID;
    while (script == script_deaf_end && !g_atomic_int_get(&deaf)) {
      g_usleep(1000);
    }
    if (gone_before) { /* the client has not looked yet */
      ByteChannel *channel = session.client->channel;
      struct pollfd end = {.fd = channel->receive_fd(channel), .events = POLLRDHUP};
      g_assert_cmpint(poll(&end, 1, -1), ==, 1);
    }
    g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_LOST);
    g_assert_cmpstr(call.reports[SANDHOST_REPORT_LOST], ==, "it stopped");
    g_assert_cmpint(call.may_have_happened, ==, i == 0 ? said : 0);
    g_assert_cmpint(seen.started, ==, 0);
    fake_call_clear(&call);
    fake_observed_clear(&seen);
  }
  fake_session_end(&session);
}

static void test_end_before_command(void) {
  end_before(script_end_at_once, TRUE, 0);
}

static void test_end_of_deaf_guest(void) {
  end_before(script_deaf_end, FALSE, 0);
}

static void test_end_of_unanswered_command(void) {
  end_before(script_end_unread, FALSE, NOT_SAID);
}

static void script_end_in_command(int fd, void *data) {
  (void)data;
  if (fake_greet(fd)) {
    struct guest_frame open = fake_expect_open(fd, NULL);
    fake_send_u32(fd, GUEST_STARTED, open.request, 5);
    fake_send_data(fd, GUEST_OUT, open.request, "last words");
  }
}

static void test_end_in_command(void) {
  struct fake_session session;
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_session_start(&session, script_end_in_command, NULL);
  fake_observed_init(&seen);
  fake_call_init(&call);
  call.may_have_happened = NOT_SAID;
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_LOST);
  g_assert_cmpstr(call.message, ==, "it stopped");
  g_assert_cmpstr(call.reports[SANDHOST_REPORT_LOST], ==, "it stopped");
  g_assert_cmpint(call.may_have_happened, ==, NOT_SAID);
  g_assert_cmpstr(seen.out->str, ==, "last words");
  g_assert_cmpint(seen.started, ==, 1);
  fake_call_clear(&call);
  fake_observed_clear(&seen);
  fake_session_end(&session);
}

static void script_greet_only(int fd, void *data) {
  (void)data;
  if (fake_greet(fd)) {
    fake_wait_for_end(fd);
  }
}

static void test_silence(void) {
  struct fake_session session;
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_session_start(&session, script_greet_only, NULL);
  session.client->timing.ping_after = 20 * FAKE_MILLISECOND;
  session.client->timing.lost_after = 60 * FAKE_MILLISECOND;
  fake_observed_init(&seen);
  fake_call_init(&call);
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_LOST);
  g_assert_cmpstr(call.message, ==, "it did not answer");
  fake_call_clear(&call);
  fake_observed_clear(&seen);
  fake_session_end(&session);
}

/* A guest whose command is silent for longer than the client is patient, but which answers. */
static void script_pong(int fd, void *data) {
  (void)data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  for (unsigned i = 1; i <= 5; i++) {
    struct fake_frame frame;
    g_assert_true(fake_receive(fd, &frame));
    g_assert_cmpuint(frame.header.kind, ==, GUEST_PING);
    g_assert_cmpuint(frame.payload->len, ==, 8);
    fake_send(fd, GUEST_PONG, 0, 0, frame.payload->data, 8);
    fake_frame_clear(&frame);
  }
  fake_send_ended(fd, open.request, SANDHOST_ENDED_EXIT, 0, 0, 0, 0);
  fake_wait_for_end(fd);
}

static void test_ping(void) {
  struct fake_session session;
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_session_start(&session, script_pong, NULL);
  session.client->timing.ping_after = 10 * FAKE_MILLISECOND;
  session.client->timing.lost_after = 10000 * FAKE_MILLISECOND;
  fake_observed_init(&seen);
  fake_call_init(&call);
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_OK);
  fake_call_clear(&call);
  fake_observed_clear(&seen);
  fake_session_end(&session);
}

static gpointer lose_it(gpointer data) {
  guest_client_lose(data, "it was killed by signal 9");
  return NULL;
}

static void test_lose(void) {
  struct fake_session session;
  struct sandhost_call call;
  struct fake_observed seen;
  struct sandhost_result result;
  const char *const argv[] = {"true", NULL};
  fake_session_start(&session, script_greet_only, NULL);
  fake_observed_init(&seen);
  fake_call_init(&call);
  GThread *thread = g_thread_new("lose", lose_it, session.client);
  g_assert_cmpint(fake_execute(session.client, &call, argv, &seen, &result), ==, SANDHOST_LOST);
  g_thread_join(thread);
  g_assert_cmpstr(call.message, ==, "it was killed by signal 9");
  guest_client_lose(session.client, "something else");
  g_assert_cmpstr(guest_client_lost_reason(session.client), ==, "it was killed by signal 9");
  fake_call_clear(&call);
  fake_observed_clear(&seen);
  fake_session_end(&session);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/client/greeting/ok", test_greeting_ok);
  g_test_add_func("/support/client/greeting/wrong-magic", test_greeting_wrong_magic);
  g_test_add_func("/support/client/greeting/wrong-version", test_greeting_wrong_version);
  g_test_add_func("/support/client/greeting/wrong-nonce", test_greeting_wrong_nonce);
  g_test_add_func("/support/client/greeting/another-program", test_greeting_of_another_program);
  g_test_add_func("/support/client/greeting/not-first", test_greeting_not_first);
  g_test_add_func("/support/client/greeting/silence", test_greeting_silence);
  g_test_add_func("/support/client/greeting/deadline", test_greeting_deadline);
  g_test_add_func("/support/client/greeting/end", test_greeting_end);
  g_test_add_func("/support/client/not-greeted", test_not_greeted);
  for (size_t i = 0; i < G_N_ELEMENTS(violations); i++) {
    g_autofree char *path = g_strconcat("/support/client/violation/", violations[i].name, NULL);
    g_test_add_data_func(path, &violations[i], test_violation);
  }
  g_test_add_func("/support/client/violation/beyond-window", test_window);
  g_test_add_func("/support/client/end-in-command", test_end_in_command);
  g_test_add_func("/support/client/end-before-command", test_end_before_command);
  g_test_add_func("/support/client/end-of-deaf-guest", test_end_of_deaf_guest);
  g_test_add_func("/support/client/end-of-unanswered-command", test_end_of_unanswered_command);
  g_test_add_func("/support/client/silence", test_silence);
  g_test_add_func("/support/client/ping", test_ping);
  g_test_add_func("/support/client/lose", test_lose);
  return g_test_run();
}
