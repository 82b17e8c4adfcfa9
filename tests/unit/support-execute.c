/* SPDX-License-Identifier: Apache-2.0 */
/* support-execute.c: one command at a time through a client, with a guest that does as it is told. */
#include "support-run.h"

/* ---- Output and results ---------------------------------------------------------------------- */

/* Sends one byte at a time, so that headers and payloads are cut everywhere. */
static void script_split(int fd, void *data) {
  (void)data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  int pair[2];
  g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ==, 0);
  fake_send_u32(pair[1], GUEST_STARTED, open.request, 42);
  fake_send_data(pair[1], GUEST_OUT, open.request, "Hello, ");
  fake_send_data(pair[1], GUEST_ERR, open.request, "bad ");
  fake_send_data(pair[1], GUEST_OUT, open.request, "world\n");
  fake_send_data(pair[1], GUEST_ERR, open.request, "thing\n");
  fake_send(pair[1], GUEST_DATA, GUEST_OUT, open.request, NULL, 0);
  fake_send(pair[1], GUEST_END, GUEST_OUT, open.request, NULL, 0);
  fake_send_ended(pair[1], open.request, SANDHOST_ENDED_EXIT, 3, 0, 13, 10);
  close(pair[1]);
  unsigned char byte;
  while (fake_read_all(pair[0], &byte, 1)) {
    fake_write_all(fd, &byte, 1);
  }
  close(pair[0]);
  fake_wait_for_end(fd);
}

static void test_split_output(void) {
  struct run run;
  run_begin(&run, script_split, NULL);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_OK);
  g_assert_cmpstr(run.seen.out->str, ==, "Hello, world\n");
  g_assert_cmpstr(run.seen.err->str, ==, "bad thing\n");
  g_assert_cmpint(run.seen.started, ==, 1);
  g_assert_cmpuint(run.seen.execution, !=, 0);
  g_assert_cmpuint(run.result.size, ==, sizeof run.result);
  g_assert_cmpuint(run.result.ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpint(run.result.exit_code, ==, 3);
  g_assert_cmpint(run.result.signal, ==, 0);
  g_assert_cmpuint(run.result.stdout_bytes, ==, 13);
  g_assert_cmpuint(run.result.stderr_bytes, ==, 10);
  g_assert_cmpint(run.result.duration, ==, 1000);
  g_assert_cmpint(run.result.user_time, ==, 200);
  g_assert_cmpint(run.result.system_time, ==, 100);
  g_assert_cmpuint(run.result.max_rss, ==, 4096);
  g_assert_cmpint(run.call.status, ==, 0);
  run_end(&run);
}

struct ending {
  uint32_t ended;
  int32_t signal;
};

static void script_ending(int fd, void *data) {
  const struct ending *ending = data;
  if (fake_greet(fd)) {
    struct guest_frame open = fake_expect_open(fd, NULL);
    fake_send_ended(fd, open.request, ending->ended, 0, ending->signal, 0, 0);
    fake_wait_for_end(fd);
  }
}

static void test_ended_by_signal(void) {
  struct ending ending = {SANDHOST_ENDED_SIGNAL, 15};
  struct run run;
  run_begin(&run, script_ending, &ending);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_OK);
  g_assert_cmpuint(run.result.ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(run.result.signal, ==, 15);
  g_assert_cmpint(run.result.exit_code, ==, 143);
  g_assert_cmpint(run.seen.started, ==, 0); /* this guest never said so */
  run_end(&run);
}

static void test_ended_by_limit(void) {
  struct ending ending = {SANDHOST_ENDED_LIMIT, 9};
  struct run run;
  run_begin(&run, script_ending, &ending);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_OK);
  g_assert_cmpuint(run.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(run.result.exit_code, ==, 137);
  run_end(&run);
}

/* A host of a later release has longer structs; what is behind stays as it is. */
static void test_larger_structs(void) {
  struct ending ending = {SANDHOST_ENDED_EXIT, 0};
  struct {
    struct sandhost_result result;
    uint64_t later;
  } larger = {.result = {.size = sizeof larger}, .later = 77};
  struct run run;
  run_begin(&run, script_ending, &ending);
  run.request.size += 64;
  run.observer.size += 64;
  g_assert_cmpint(guest_client_execute(run.session.client, &run.call, &run.request, &run.observer,
                                       &larger.result),
                  ==, SANDHOST_OK);
  g_assert_cmpuint(larger.result.size, ==, sizeof larger);
  g_assert_cmpuint(larger.result.ended, ==, SANDHOST_ENDED_EXIT);
  g_assert_cmpuint(larger.later, ==, 77);
  run_end(&run);
}

/* ---- What is asked of the guest -------------------------------------------------------------- */

static void script_keep_parameters(int fd, void *data) {
  GByteArray *parameters = data;
  if (fake_greet(fd)) {
    struct guest_frame open = fake_expect_open(fd, parameters);
    g_assert_cmpuint(open.channel, ==, GUEST_EXECUTE);
    fake_send_ended(fd, open.request, SANDHOST_ENDED_EXIT, 0, 0, 0, 0);
    fake_wait_for_end(fd);
  }
}

static void expect_bytes(struct guest_reader *reader, const char *expected,
                         size_t expected_length) {
  size_t length;
  const char *bytes = guest_read_bytes(reader, &length);
  g_assert_cmpuint(length, ==, expected_length);
  g_assert_true(memcmp(bytes, expected, length) == 0);
}

static void test_parameters(void) {
  GByteArray *parameters = g_byte_array_new();
  struct sandhost_text argv[] = {fake_to_text("printf"), fake_to_text(""), fake_to_text("\xff\n")};
  struct sandhost_pair environment[] = {{fake_to_text("A"), fake_to_text("1=2")},
                                        {fake_to_text("B"), fake_to_text("")}};
  struct run run;
  run_begin(&run, script_keep_parameters, parameters);
  run.request.argv = argv;
  run.request.argc = G_N_ELEMENTS(argv);
  run.request.environment = environment;
  run.request.environment_count = G_N_ELEMENTS(environment);
  run.request.limit = 5000000000;
  run.request.max_output_bytes = 99;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_OK);
  run_end(&run);
  struct guest_reader reader = {.data = parameters->data, .left = parameters->len};
  g_assert_cmpuint(guest_read_u32(&reader), ==, 0);
  g_assert_cmpuint(guest_read_u64(&reader), ==, 5000000000);
  g_assert_cmpuint(guest_read_u64(&reader), ==, 99);
  expect_bytes(&reader, "/workspace", 10);
  g_assert_cmpuint(guest_read_u32(&reader), ==, 3);
  expect_bytes(&reader, "printf", 6);
  expect_bytes(&reader, "", 0);
  expect_bytes(&reader, "\xff\n", 2);
  g_assert_cmpuint(guest_read_u32(&reader), ==, 2);
  expect_bytes(&reader, "A=1=2", 5);
  expect_bytes(&reader, "B=", 2);
  g_assert_cmpuint(reader.left, ==, 0);
  g_assert_cmpint(reader.bad, ==, 0);
  g_byte_array_unref(parameters);
}

/* 3 MB go in a dozen frames, more than the socket holds at once. */
static void test_large_parameters(void) {
  const size_t size = 3000000;
  GByteArray *parameters = g_byte_array_new();
  g_autofree char *script = g_malloc(size);
  for (size_t i = 0; i < size; i++) {
    script[i] = (char)('a' + i % 23);
  }
  struct sandhost_text argv[] = {fake_to_text("sh"), fake_to_text("-c"), {script, size}};
  struct run run;
  run_begin(&run, script_keep_parameters, parameters);
  run.request.argv = argv;
  run.request.argc = G_N_ELEMENTS(argv);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_OK);
  run_end(&run);
  struct guest_reader reader = {.data = parameters->data, .left = parameters->len};
  (void)guest_read_raw(&reader, 20);
  expect_bytes(&reader, "/workspace", 10);
  g_assert_cmpuint(guest_read_u32(&reader), ==, 3);
  expect_bytes(&reader, "sh", 2);
  expect_bytes(&reader, "-c", 2);
  expect_bytes(&reader, script, size);
  g_assert_cmpuint(guest_read_u32(&reader), ==, 0);
  g_assert_cmpuint(reader.left, ==, 0);
  g_byte_array_unref(parameters);
}

static void test_invalid_flags(void) {
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.request.flags = 0x80;
  run_check_invalid(&run, "the command has a flag that this provider does not know");
}

static void test_invalid_empty(void) {
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.request.argc = 0;
  run_check_invalid(&run, "the command is empty");
  run_begin(&run, script_greet_only, NULL);
  run.argument.length = 0;
  run_check_invalid(&run, "the command is empty");
}

static void test_invalid_nul(void) {
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.argument = (struct sandhost_text){"a\0b", 3};
  run_check_invalid(&run, "an argument of the command holds a NUL");
}

static void test_invalid_variable(void) {
  struct sandhost_pair pair = {fake_to_text("A=B"), fake_to_text("1")};
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.request.environment = &pair;
  run.request.environment_count = 1;
  run_check_invalid(&run, "a variable of the command has no sensible name or value");
}

static void test_invalid_size(void) {
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.request.size = 8;
  run_check_invalid(&run, "the request to execute is smaller than it ever was");
  run_begin(&run, script_greet_only, NULL);
  run.result.size = 8;
  run_check_invalid(&run, "the result is smaller than it ever was");
}

static void test_invalid_too_large(void) {
  g_autofree char *large = g_strnfill(GUEST_MAX_PARAMETERS - 50, 'x');
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.argument = fake_to_text(large);
  run_check_invalid(&run, "the command and its variables are larger than 16777216 bytes");
}

static void test_invalid_cwd(void) {
  struct run run;
  run_begin(&run, script_greet_only, NULL);
  run.request.cwd = fake_to_path("here");
  run_check_invalid(&run, "the working directory of the command is not an absolute path");
}

static void script_refuse(int fd, void *data) {
  if (fake_greet(fd)) {
    struct guest_frame open = fake_expect_open(fd, NULL);
    fake_send_done(fd, open.request, *(const int32_t *)data, "no \x1b[31m\xff way", NULL, 0);
    fake_wait_for_end(fd);
  }
}

static void test_refused_by_guest(void) {
  int32_t status = SANDHOST_UNSUPPORTED;
  struct run run;
  run_begin(&run, script_refuse, &status);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(run.call.message, ==, "no  [31m\xef\xbf\xbd way");
  g_assert_null(guest_client_lost_reason(run.session.client));
  run_end(&run);
}

/* It is not for the guest to say that the sandbox is lost. */
static void test_status_that_a_guest_cannot_know(void) {
  int32_t status = SANDHOST_LOST;
  struct run run;
  run_begin(&run, script_refuse, &status);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_INTERNAL);
  run_end(&run);
}

/* ---- Credit ---------------------------------------------------------------------------------- */

#define CREDITED_TOTAL ((size_t)20 * 1024 * 1024)

/* Sends 20 MB, never more than the window and what credit it got. */
static void script_credited(int fd, void *data) {
  size_t *credits = data;
  if (!fake_greet(fd)) {
    return;
  }
  struct guest_frame open = fake_expect_open(fd, NULL);
  g_autofree char *zeros = g_malloc0(GUEST_MAX_FRAME);
  size_t allowed = GUEST_WINDOW;
  for (size_t left = CREDITED_TOTAL; left > 0;) {
    if (allowed == 0) {
      struct fake_frame frame;
      g_assert_true(fake_receive(fd, &frame));
      g_assert_cmpuint(frame.header.kind, ==, GUEST_CREDIT);
      g_assert_cmpuint(frame.header.request, ==, open.request);
      g_assert_cmpuint(frame.payload->len, ==, 4);
      allowed += guest_get_u32(frame.payload->data);
      g_assert_cmpuint(allowed, <=, GUEST_WINDOW);
      (*credits)++;
      fake_frame_clear(&frame);
      continue;
    }
    size_t part = MIN(MIN(left, allowed), (size_t)GUEST_MAX_FRAME - 7);
    fake_send(fd, GUEST_DATA, GUEST_OUT, open.request, zeros, part);
    left -= part;
    allowed -= part;
  }
  fake_send_ended(fd, open.request, SANDHOST_ENDED_EXIT, 0, 0, CREDITED_TOTAL, 0);
  fake_wait_for_end(fd);
}

static void test_credit(void) {
  size_t credits = 0;
  struct run run;
  run_begin(&run, script_credited, &credits);
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_OK);
  g_assert_cmpuint(run.seen.out->len, ==, CREDITED_TOTAL);
  run_end(&run);
  /* In batches: a quarter of the window each. */
  g_assert_cmpuint(credits, >, 0);
  g_assert_cmpuint(credits, <=, CREDITED_TOTAL / (GUEST_WINDOW / 4));
}

static void test_more_than_max_output(void) {
  struct run run;
  run_begin(&run, script_hello_output, NULL);
  run.request.max_output_bytes = 4;
  g_assert_cmpint(run_execute(&run), ==, SANDHOST_PROTOCOL);
  g_assert_cmpstr(run.call.message, ==, "it broke the protocol: more output than it was asked for");
  run_end(&run);
}

int main(int argc, char **argv) {
  fake_main_begin(argv);
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/support/execute/split-output", test_split_output);
  g_test_add_func("/support/execute/ended-by-signal", test_ended_by_signal);
  g_test_add_func("/support/execute/ended-by-limit", test_ended_by_limit);
  g_test_add_func("/support/execute/larger-structs", test_larger_structs);
  g_test_add_func("/support/execute/parameters", test_parameters);
  g_test_add_func("/support/execute/large-parameters", test_large_parameters);
  g_test_add_func("/support/execute/invalid/flags", test_invalid_flags);
  g_test_add_func("/support/execute/invalid/empty", test_invalid_empty);
  g_test_add_func("/support/execute/invalid/nul", test_invalid_nul);
  g_test_add_func("/support/execute/invalid/variable", test_invalid_variable);
  g_test_add_func("/support/execute/invalid/size", test_invalid_size);
  g_test_add_func("/support/execute/invalid/too-large", test_invalid_too_large);
  g_test_add_func("/support/execute/invalid/cwd", test_invalid_cwd);
  g_test_add_func("/support/execute/refused-by-guest", test_refused_by_guest);
  g_test_add_func("/support/execute/status-that-a-guest-cannot-know",
                  test_status_that_a_guest_cannot_know);
  g_test_add_func("/support/execute/credit", test_credit);
  g_test_add_func("/support/execute/more-than-max-output", test_more_than_max_output);
  return g_test_run();
}
