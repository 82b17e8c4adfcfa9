/* SPDX-License-Identifier: Apache-2.0 */
/* guest-greeting.c: how a session with sandhost-guest begins, and how it ends. */
#include "guest-raw.h"

static void begin_ungreeted(struct raw *raw) {
  g_autofree char *program = raw_program();
  const char *const argv[] = {program, NULL};
  memset(raw, 0, sizeof *raw);
  raw_spawn(raw, argv);
}

static void check_ended(struct raw *raw) {
  unsigned char byte;
  g_assert_false(raw_read(raw, &byte, 1));
  raw_end(raw);
}

static void test_greeting(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_ping(&raw, 0x1122334455667788);
  raw_end(&raw);
}

static void test_other_version(void) {
  struct raw raw;
  begin_ungreeted(&raw);
  raw_send_hello(&raw, GUEST_MAGIC, GUEST_VERSION + 1);
  g_assert_cmpuint(raw_take_hello(&raw), ==, GUEST_VERSION);
  check_ended(&raw);
}

static void test_other_magic(void) {
  struct raw raw;
  begin_ungreeted(&raw);
  raw_send_hello(&raw, 0x12345678, GUEST_VERSION);
  check_ended(&raw);
}

static void test_frame_before_hello(void) {
  struct raw raw;
  begin_ungreeted(&raw);
  raw_send(&raw, (struct guest_frame){.kind = GUEST_PING}, NULL);
  check_ended(&raw);
}

static void test_too_large_frame(void) {
  struct raw raw;
  unsigned char header[GUEST_HEADER];
  raw_begin(&raw);
  guest_frame_pack(header, (struct guest_frame){.length = GUEST_MAX_FRAME + 1, .kind = GUEST_PING});
  g_assert_cmpint(write(raw.fd, header, sizeof header), ==, (ssize_t)sizeof header);
  check_ended(&raw);
}

static void test_unknown_kind(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_send(&raw, (struct guest_frame){.kind = 77}, NULL);
  check_ended(&raw);
}

static void test_frame_in_pieces(void) {
  struct raw raw;
  unsigned char frame[GUEST_HEADER + 8];
  raw_begin(&raw);
  guest_frame_pack(frame, (struct guest_frame){.length = 8, .kind = GUEST_PING});
  guest_put_u64(frame + GUEST_HEADER, 42);
  for (size_t i = 0; i < sizeof frame; i++) {
    g_assert_cmpint(write(raw.fd, frame + i, 1), ==, 1);
    g_usleep(500);
  }
  while (raw.pong != 42) {
    g_assert_true(raw_step(&raw));
  }
  raw_end(&raw);
}

static void test_frame_of_nobody(void) {
  struct raw raw;
  raw_begin(&raw);
  raw_send_data(&raw, 9, "late", 4);
  raw_send_end(&raw, 9);
  raw_send_cancel(&raw, 9);
  raw_send_u32(&raw, GUEST_CREDIT, 9, 5);
  raw_send_u32(&raw, GUEST_SIGNAL, 9, SIGKILL);
  raw_ping(&raw, 1);
  g_assert_cmpuint(g_hash_table_size(raw.answers), ==, 0);
  raw_end(&raw);
}

static void test_unknown_operation(void) {
  struct raw raw;
  g_autoptr(GByteArray) none = g_byte_array_new();
  raw_begin(&raw);
  raw_open(&raw, 1, 99, none);
  g_assert_cmpint(raw_wait(&raw, 1)->status, ==, SANDHOST_UNSUPPORTED);
  raw_end(&raw);
}

/* Parameters that are cut off, or say what cannot be. */
static void test_malformed(void) {
  struct raw raw;
  g_autoptr(GByteArray) none = g_byte_array_new();
  raw_begin(&raw);
  for (uint32_t operation = GUEST_EXECUTE; operation <= GUEST_PROBE; operation++) {
    raw_open(&raw, operation, (uint8_t)operation, none);
    raw_send_end(&raw, operation);
    g_assert_cmpint(raw_wait(&raw, operation)->status, ==, SANDHOST_INVALID);
  }
  raw_execute(&raw, 20, (struct raw_command){.argv = (const char *const[]){NULL}});
  g_assert_cmpint(raw_wait(&raw, 20)->status, ==, SANDHOST_INVALID);
  raw_execute(&raw, 21, (struct raw_command){.argv = (const char *const[]){"", NULL}});
  g_assert_cmpint(raw_wait(&raw, 21)->status, ==, SANDHOST_INVALID);
  raw_execute(&raw, 22,
              (struct raw_command){.script = "true",
                                   .environment = (const char *const[]){"no equals sign", NULL}});
  g_assert_cmpint(raw_wait(&raw, 22)->status, ==, SANDHOST_INVALID);
  raw_execute(&raw, 23, (struct raw_command){.script = "true", .flags = 0x80});
  g_assert_cmpint(raw_wait(&raw, 23)->status, ==, SANDHOST_INVALID);
  raw_execute(&raw, 24, (struct raw_command){.script = "true", .cwd = "usr"});
  g_assert_cmpint(raw_wait(&raw, 24)->status, ==, SANDHOST_INVALID);
  raw_end(&raw);
}

/* More opens than one waits for the rest of their parameters; one is given up. */
static void test_opens_in_pieces(void) {
  enum { COUNT = 40 };
  struct raw raw;
  g_autoptr(GByteArray) parameters = g_byte_array_new();
  raw_begin(&raw);
  raw_put_text(parameters, "127.0.0.1");
  raw_put_u32(parameters, 0); /* no port: it is refused at once, but only when it is whole */
  raw_put_u64(parameters, 1);
  for (uint32_t at = 0; at < parameters->len; at++) {
    for (uint32_t id = 1; id <= COUNT; id++) {
      raw_send(&raw,
               (struct guest_frame){.length = 1,
                                    .kind = GUEST_OPEN,
                                    .channel = GUEST_PROBE,
                                    .flags = at + 1 < parameters->len ? GUEST_MORE : 0,
                                    .request = id},
               parameters->data + at);
    }
    if (at == 0) {
      raw_send(&raw,
               (struct guest_frame){.length = 1,
                                    .kind = GUEST_OPEN,
                                    .channel = GUEST_PROBE,
                                    .flags = GUEST_MORE,
                                    .request = 99},
               parameters->data);
      raw_send_cancel(&raw, 99);
    }
  }
  for (uint32_t id = 1; id <= COUNT; id++) {
    g_assert_cmpint(raw_wait(&raw, id)->status, ==, SANDHOST_INVALID);
  }
  g_assert_cmpint(raw_wait(&raw, 99)->status, ==, SANDHOST_CANCELLED);
  raw_end(&raw);
}

static void test_stream_that_is_none(void) {
  g_autofree char *program = raw_program();
  g_autofree char *line = g_strdup_printf("sh -c 'exec %s < /dev/null'", program);
  int status = 0;
  g_assert_true(g_spawn_command_line_sync(line, NULL, NULL, &status, NULL));
  g_assert_true(WIFEXITED(status));
}

static void test_options(void) {
  g_autofree char *program = raw_program();
  g_autofree char *version_line = g_strdup_printf("%s --version", program);
  g_autofree char *help_line = g_strdup_printf("%s --help", program);
  g_autofree char *out = NULL;
  g_autofree char *help = NULL;
  int status = 1;
  g_assert_true(g_spawn_command_line_sync(version_line, &out, NULL, &status, NULL));
  g_assert_cmpint(status, ==, 0);
  g_assert_cmpstr(out, ==, "sandhost-guest protocol 1\n");
  g_assert_true(g_spawn_command_line_sync(help_line, &help, NULL, &status, NULL));
  g_assert_cmpint(status, ==, 0);
  g_assert_true(g_str_has_prefix(help, "usage: sandhost-guest"));
}

/* Two pipes do as well as one socket. */
static void test_pipes(void) {
  struct raw raw;
  g_autofree char *program = raw_program();
  g_autofree char *script = g_strdup_printf("cat | %s | cat", program);
  const char *const argv[] = {"sh", "-c", script, NULL};
  memset(&raw, 0, sizeof raw);
  raw_spawn(&raw, argv);
  raw_send_hello(&raw, GUEST_MAGIC, GUEST_VERSION);
  g_assert_cmpuint(raw_take_hello(&raw), ==, GUEST_VERSION);
  g_assert_cmpstr(raw_run(&raw, 1, "echo through pipes")->out->str, ==, "through pipes\n");
  raw_end(&raw);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/guest/greeting/greeting", test_greeting);
  g_test_add_func("/guest/greeting/other-version", test_other_version);
  g_test_add_func("/guest/greeting/other-magic", test_other_magic);
  g_test_add_func("/guest/greeting/frame-before-hello", test_frame_before_hello);
  g_test_add_func("/guest/greeting/too-large-frame", test_too_large_frame);
  g_test_add_func("/guest/greeting/unknown-kind", test_unknown_kind);
  g_test_add_func("/guest/greeting/frame-in-pieces", test_frame_in_pieces);
  g_test_add_func("/guest/greeting/frame-of-nobody", test_frame_of_nobody);
  g_test_add_func("/guest/greeting/unknown-operation", test_unknown_operation);
  g_test_add_func("/guest/greeting/malformed", test_malformed);
  g_test_add_func("/guest/greeting/opens-in-pieces", test_opens_in_pieces);
  g_test_add_func("/guest/greeting/stream-that-is-none", test_stream_that_is_none);
  g_test_add_func("/guest/greeting/options", test_options);
  g_test_add_func("/guest/greeting/pipes", test_pipes);
  return g_test_run();
}
