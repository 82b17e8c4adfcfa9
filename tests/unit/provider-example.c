/* SPDX-License-Identifier: Apache-2.0 */
/* provider-example.c: the SDK's example keeps what it promises. */
#include "provider-files.h"

static void test_example_limit(void) {
  Zoo zoo = zoo_open("example");
  Command command = command_new();
  const struct sandhost_execute settings = {.limit = 100 * CLOCK_MILLISECOND};
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "sleep 60", &settings));
  g_assert_cmpuint(command.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(command.result.exit_code, ==, 137);
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_example_input(void) {
  Zoo zoo = zoo_open("example");
  Command command = command_new();
  command.input = "through a pipe";
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "cat", NULL));
  g_assert_cmpstr(command.out->str, ==, "through a pipe");
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_example_not_found(void) {
  Zoo zoo = zoo_open("example");
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "no-such-program", NULL));
  g_assert_cmpint(command.result.exit_code, ==, 127);
  g_assert_cmpstr(command.err->str, ==, "no-such-program: No such file or directory\n");
  command_clear(&command);
  zoo_close(&zoo);
}

static void test_example_left_behind(void) {
  Zoo zoo = zoo_open("example");
  gint64 before = clock_now();
  shell(zoo.sandbox, "sleep 60 & echo $! >pid");
  g_assert_cmpint(clock_now() - before, <, 30 * CLOCK_SECOND); /* its pipes are not waited for */
  g_autofree char *pid = get(zoo.sandbox, "pid");
  g_autofree char *ref = g_strdup(sandbox_ref(zoo.sandbox));
  g_autofree char *proc = g_strdup_printf("/proc/%s/cmdline", g_strchomp(pid));
  g_assert_true(g_file_test(proc, G_FILE_TEST_EXISTS));
  zoo_close(&zoo);
  g_assert_false(g_file_test(ref, G_FILE_TEST_EXISTS));
  for (int i = 0; i < 500; i++) { /* killed; whoever inherits it reaps it soon */
    g_autofree char *cmdline = NULL;
    if (!g_file_get_contents(proc, &cmdline, NULL, NULL) || *cmdline == '\0') {
      return;
    }
    g_usleep(10000);
  }
  g_assert_not_reached();
}

static void test_example_stays_inside(void) {
  Zoo zoo = zoo_open("example");
  shell(zoo.sandbox, "ln -s /etc out; ln -s /etc/passwd secret");
  static const char *const names[] = {"out/passwd", "secret", "../x", "out"};
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = g_strdup_printf("/workspace/%s", names[i]);
    Stream stream = stream_new();
    const struct sandhost_sink sink = {.size = sizeof sink, .user = &stream, .write = stream_write};
    GError *error = NULL;
    g_assert_false(sandbox_read_file(zoo.sandbox, minute(), path, &sink, &error));
    g_assert_error(error, PROVIDER_ERROR, SANDHOST_INVALID);
    g_error_free(error);
    g_byte_array_unref(stream.bytes);
  }
  zoo_close(&zoo);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/example/" name, function)
  TEST("example-limit", test_example_limit);
  TEST("example-input", test_example_input);
  TEST("example-not-found", test_example_not_found);
  TEST("example-left-behind", test_example_left_behind);
  TEST("example-stays-inside", test_example_stays_inside);
  return g_test_run();
}
