/* SPDX-License-Identifier: Apache-2.0 */
/* provider-example.c: the SDK's example keeps what it promises. */
#include <signal.h>

#include "provider-files.h"

static void test_example_limit(void) {
  Zoo zoo = example_open();
  Command command = command_new();
  const struct sandhost_execute settings = {.limit = 100 * CLOCK_MILLISECOND};
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "sleep 60", &settings));
  g_assert_cmpuint(command.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(command.result.exit_code, ==, 137);
  command_clear(&command);
  example_close(&zoo);
}

static void test_example_input(void) {
  Zoo zoo = example_open();
  Command command = command_new();
  command.input = "through a pipe";
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "cat", NULL));
  g_assert_cmpstr(command.out->str, ==, "through a pipe");
  command_clear(&command);
  example_close(&zoo);
}

static void test_example_not_found(void) {
  Zoo zoo = example_open();
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "no-such-program", NULL));
  g_assert_cmpint(command.result.exit_code, ==, 127);
  g_assert_cmpstr(command.err->str, ==, "no-such-program: No such file or directory\n");
  command_clear(&command);
  example_close(&zoo);
}

/* The pid that a command wrote into a file. */
static pid_t pid_in(Sandbox *sandbox, const char *name) {
  g_autofree char *text = get(sandbox, name);
  g_assert_nonnull(text);
  pid_t pid = (pid_t)g_ascii_strtoll(text, NULL, 10);
  g_assert_cmpint(pid, >, 1);
  return pid;
}

static gboolean is_alive(pid_t pid) {
  return kill(pid, 0) == 0;
}

static void test_example_left_behind(void) {
  Zoo zoo = example_open();
  gint64 before = clock_now();
  shell(zoo.sandbox, "sleep 60 & echo $! >one; setsid sh -c 'echo $$ >two; exec sleep 60' & "
                     "while ! test -s two; do sleep 0.01; done");
  g_assert_cmpint(clock_now() - before, <, 30 * CLOCK_SECOND); /* its pipes are not waited for */
  shell(zoo.sandbox, "true"); /* keepers that are still needed are not forgotten */
  pid_t one = pid_in(zoo.sandbox, "one");
  pid_t two = pid_in(zoo.sandbox, "two");
  g_assert_true(is_alive(one) && is_alive(two));
  g_autofree char *folder = g_strdup(zoo.folder);
  g_autofree char *kept = g_build_filename(folder, "one", NULL);
  sandbox_end(zoo.sandbox, NULL);
  zoo.sandbox = NULL;
  g_assert_false(is_alive(one) || is_alive(two));       /* reaped by then, too */
  g_assert_true(g_file_test(kept, G_FILE_TEST_EXISTS)); /* the folder is not the sandbox's */
  example_close(&zoo);
}

/* What a limit ends is the command's own tree, and nothing of the command before. */
static void test_example_limit_tree(void) {
  Zoo zoo = example_open();
  shell(zoo.sandbox, "sleep 60 >/dev/null 2>&1 & echo $! >before");
  g_autofree char *script = g_build_filename(zoo.folder, "script", NULL);
  g_assert_true(
      g_file_set_contents(script,
                          "trap '' TERM; setsid sh -c 'echo $$ >two; exec sleep 60' &\n"
                          "(sleep 60 & echo $! >one)\n"
                          "while ! test -s two; do sleep 0.01; done; echo ready >&2; wait",
                          -1, NULL));
  Command command = command_new();
  const struct sandhost_execute settings = {.limit = 2 * CLOCK_SECOND};
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "sh script", &settings));
  g_assert_cmpuint(command.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpstr(command.err->str, ==, "ready\n");
  g_assert_false(is_alive(pid_in(zoo.sandbox, "one")) || is_alive(pid_in(zoo.sandbox, "two")));
  g_assert_true(is_alive(pid_in(zoo.sandbox, "before")));
  command_clear(&command);
  example_close(&zoo);
}

/* More children than one read of the kernel's list gives, and more than one round of killing. */
static void test_example_limit_crowd(void) {
  Zoo zoo = example_open();
  g_autofree char *script = g_build_filename(zoo.folder, "script", NULL);
  g_assert_true(g_file_set_contents(
      script,
      "i=0; while [ $i -lt 1000 ]; do (sleep 61.5 & sleep 61.5) & i=$((i+1)); done\n"
      "echo ready; while :; do (:) & done",
      -1, NULL));
  Command command = command_new();
  command.answer = SANDHOST_CANCELLED; /* to its first output */
  g_assert_false(command_run(&command, zoo.sandbox, minute(), "sh script", NULL));
  g_assert_error(command.error, PROVIDER_ERROR, SANDHOST_CANCELLED);
  command_clear(&command);
  sandbox_end(zoo.sandbox,
              NULL); /* waits for what the two seconds of a cancel were too short for */
  zoo.sandbox = NULL;
  const char *const argv[] = {"pgrep", "-fx", "sleep 61[.]5", NULL};
  g_autofree char *left = NULL;
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                             &left, NULL, NULL, NULL));
  g_assert_cmpstr(left, ==, "");
  example_close(&zoo);
}

static void test_example_keeper_killed(void) {
  Zoo zoo = example_open();
  g_autofree char *script = g_build_filename(zoo.folder, "script", NULL);
  g_assert_true(g_file_set_contents(script, "kill -KILL $PPID; sleep 0.2", -1, NULL));
  g_autofree char *message = command_refusal(zoo.sandbox, "sh script", SANDHOST_LOST);
  g_assert_nonnull(strstr(message, "something killed the command's keeper"));
  example_close(&zoo);
}

/* A word of 128 KiB and more is no word: the script comes another way, with its name, its words and no descriptor. */
static void test_example_long_script(void) {
  Zoo zoo = example_open();
  GString *script = g_string_new("echo $0 $1 $#; ls /proc/self/fd | wc -l; exit 7 #");
  while (script->len < 200000) {
    g_string_append(script, " long");
  }
  const struct sandhost_text argv[] = {
      {"sh", 2}, {"-c", 2}, {script->str, script->len}, {"name", 4}, {"word", 4}};
  const struct sandhost_execute request = {
      .size = sizeof request, .argv = argv, .argc = G_N_ELEMENTS(argv)};
  Command command = command_new();
  const struct sandhost_observer observer = {
      .size = sizeof observer, .user = &command, .output = command_output};
  struct sandhost_result result = {0};
  g_autoptr(GError) error = NULL;
  sandbox_execute(zoo.sandbox, minute(), &request, &observer, &result, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(command.out->str, ==, "name word 1\n4\n"); /* 4: that of ls on the folder */
  g_assert_cmpint(result.exit_code, ==, 7);
  command_clear(&command);
  g_string_free(script, TRUE);
  example_close(&zoo);
}

static void test_example_no_folder(void) {
  Zoo zoo = example_open();
  g_autofree char *missing = g_build_filename(zoo.folder, "missing", NULL);
  const struct sandhost_execute settings = {.cwd = {.data = missing, .length = strlen(missing)}};
  Command command = command_new();
  g_assert_true(command_run(&command, zoo.sandbox, minute(), "true", &settings));
  g_autofree char *complaint = g_strdup_printf("%s: No such file or directory\n", missing);
  g_assert_cmpint(command.result.exit_code, ==, 126);
  g_assert_cmpstr(command.err->str, ==, complaint);
  command_clear(&command);
  example_close(&zoo);
}

static void test_example_no_working_dir(void) {
  Zoo zoo = example_open();
  g_autoptr(Manifest) manifest = manifest_of(
      "{\"network_policy\":{\"default\":\"allow\"},\"working_dir\":\"/no/such/folder\"}");
  g_autoptr(GError) error = NULL;
  g_assert_null(sandbox_create(zoo.instance, manifest, "k", "r", minute(), &error));
  g_assert_error(error, PROVIDER_ERROR, SANDHOST_NOT_FOUND);
  g_assert_nonnull(strstr(error->message, "create it, or set sandbox_manifest.working_dir"));
  example_close(&zoo);
}

static void test_example_stays_inside(void) {
  Zoo zoo = example_open();
  shell(zoo.sandbox, "ln -s /etc out; ln -s /etc/passwd secret");
  static const char *const names[] = {"out/passwd", "secret", "../x", "out"};
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = g_strdup_printf("%s/%s", zoo.folder, names[i]);
    Stream stream = stream_new();
    const struct sandhost_sink sink = {.size = sizeof sink, .user = &stream, .write = stream_write};
    GError *error = NULL;
    g_assert_false(sandbox_read_file(zoo.sandbox, minute(), path, &sink, &error));
    g_assert_error(error, PROVIDER_ERROR, SANDHOST_INVALID);
    g_clear_error(&error);
    g_byte_array_append(stream.bytes, (const guint8 *)"x", 1);
    const struct sandhost_source source = {
        .size = sizeof source, .user = &stream, .read = stream_read};
    g_assert_false(sandbox_write_file(zoo.sandbox, minute(), path, 0644, &source, &error));
    g_assert_error(error, PROVIDER_ERROR, SANDHOST_INVALID);
    g_clear_error(&error);
    g_byte_array_unref(stream.bytes);
  }
  example_close(&zoo);
}

/* What another plugin of this process leaves open, closed on exec or not, is in no command of this one. */
static void test_example_inherits_nothing(void) {
  g_autofree char *secret = g_build_filename(g_get_tmp_dir(), "zoo-secret-XXXXXX", NULL);
  int fd = g_mkstemp(secret);
  g_assert_cmpint(fd, >=, 0);
  close(fd);
  g_setenv("LEAK_FILE", secret, TRUE);
  Zoo leaking = zoo_open("leak");
  g_unsetenv("LEAK_FILE");
  Zoo zoo = example_open();
  shell(zoo.sandbox, "ls -l /proc/self/fd >open");
  g_autofree char *open_inside = get(zoo.sandbox, "open");
  g_assert_nonnull(strstr(open_inside, "/proc/"));
  g_assert_null(strstr(open_inside, secret));
  example_close(&zoo);
  zoo_close(&leaking);
  g_unlink(secret);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/example/" name, function)
  TEST("example-limit", test_example_limit);
  TEST("example-input", test_example_input);
  TEST("example-not-found", test_example_not_found);
  TEST("example-left-behind", test_example_left_behind);
  TEST("example-limit-tree", test_example_limit_tree);
  TEST("example-limit-crowd", test_example_limit_crowd);
  TEST("example-keeper-killed", test_example_keeper_killed);
  TEST("example-long-script", test_example_long_script);
  TEST("example-no-folder", test_example_no_folder);
  TEST("example-no-working-dir", test_example_no_working_dir);
  TEST("example-stays-inside", test_example_stays_inside);
  TEST("example-inherits-nothing", test_example_inherits_nothing);
  return g_test_run();
}
