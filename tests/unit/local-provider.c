/* SPDX-License-Identifier: Apache-2.0 */
/* local-provider.c: commands of the local provider run here, as this user, in the folder that was named. */
#include "plugin-fixture.h"

struct settings {
  const char *passthrough[3]; /* names; NULL ends */
  gboolean inherit;
  gboolean create_dir;
};

/* A folder of the test's own, and one sandbox in it. */
struct place {
  char *folder;
  struct sandhost_instance *instance;
  struct sandhost_sandbox *sandbox;
};

static struct sandhost_instance *local_open(const struct settings *settings) {
  struct sandhost_pair names[3] = {0};
  size_t count = 0;
  for (; count < G_N_ELEMENTS(names) && settings->passthrough[count]; count++) {
    names[count].name = fake_to_text(settings->passthrough[count]);
  }
  const struct sandhost_value values[] = {
      {.size = sizeof values[0],
       .type = SANDHOST_OPTION_LIST,
       .set = count > 0,
       .pairs = names,
       .pair_count = count},
      {.size = sizeof values[0],
       .type = SANDHOST_OPTION_BOOLEAN,
       .set = 1,
       .integer = settings->inherit},
      {.size = sizeof values[0],
       .type = SANDHOST_OPTION_BOOLEAN,
       .set = 1,
       .integer = settings->create_dir},
      {.size = sizeof values[0], .type = SANDHOST_OPTION_INTEGER, .set = 1, .integer = 1000000},
  };
  g_assert_cmpuint(plugin->option_count, ==, G_N_ELEMENTS(values));
  return plugin_open(values, plugin_guest_dir);
}

static struct place place_with(const struct settings *settings, const struct sandhost_pair *pairs,
                               size_t pair_count) {
  struct place place = {.folder = g_dir_make_tmp("sandhost-local-XXXXXX", NULL)};
  g_assert_nonnull(place.folder);
  plugin_start();
  place.instance = local_open(settings);
  place.sandbox = plugin_create(place.instance, &(struct wish){.working_dir = place.folder,
                                                               .network = TRUE,
                                                               .environment = pairs,
                                                               .environment_count = pair_count});
  return place;
}

static struct place place_new(void) {
  return place_with(&(struct settings){0}, NULL, 0);
}

static void place_end(struct place *place) {
  plugin_end(place->sandbox);
  plugin->close(place->instance);
  plugin_stop();
  g_assert_true(g_file_test(place->folder, G_FILE_TEST_IS_DIR)); /* never deleted */
  plugin_remove(place->folder);
  g_free(place->folder);
}

/* ---- Commands --------------------------------------------------------------------------------- */

static void test_runs_here(void) {
  struct place place = place_new();
  g_autofree char *real = realpath(place.folder, NULL);
  g_autofree char *expected = g_strdup_printf("%s\n%u\n", real, geteuid());
  plugin_expect(place.sandbox, "pwd; id -u; echo kept > file", expected);
  g_autofree char *path = g_build_filename(place.folder, "file", NULL);
  g_autofree char *content = NULL;
  g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
  g_assert_cmpstr(content, ==, "kept\n");
  place_end(&place);
}

static void test_exit_codes(void) {
  /* One that everybody may look into: a folder that may not be would make 126 of the 127. */
  g_setenv("PATH", "/usr/local/bin:/usr/bin:/bin", TRUE);
  struct place place = place_new();
  g_auto(Ran) three = plugin_run(place.sandbox, "echo out; echo err >&2; exit 3");
  g_assert_cmpint(three.result.exit_code, ==, 3);
  g_assert_cmpstr(three.out, ==, "out\n");
  g_assert_cmpstr(three.err, ==, "err\n");
  g_auto(Ran) killed = plugin_run(place.sandbox, "kill -KILL $$");
  g_assert_cmpuint(killed.result.ended, ==, SANDHOST_ENDED_SIGNAL);
  g_assert_cmpint(killed.result.exit_code, ==, 137);
  const char *const missing[] = {"no-such-program", NULL};
  g_auto(Ran) none = plugin_run_argv(place.sandbox, missing, 0);
  g_assert_cmpint(none.result.exit_code, ==, 127);
  g_assert_cmpstr(none.err, !=, "");
  plugin_expect(place.sandbox, "echo text > plain", "");
  const char *const plain[] = {"./plain", NULL};
  g_auto(Ran) refused = plugin_run_argv(place.sandbox, plain, 0);
  g_assert_cmpint(refused.result.exit_code, ==, 126);
  g_assert_cmpstr(refused.err, !=, "");
  place_end(&place);
}

static void test_stdin_is_closed(void) {
  struct place place = place_new();
  plugin_expect(place.sandbox, "cat; readlink /proc/self/fd/0", "/dev/null\n");
  place_end(&place);
}

static void test_no_descriptor_comes_along(void) {
  int leak = open("/dev/null", O_RDONLY); /* inheritable, on purpose */
  int high = fcntl(leak, F_DUPFD, 100);
  struct place place = place_new();
  const char *const argv[] = {"ls", "/proc/self/fd", NULL};
  g_auto(Ran) ran = plugin_run_argv(place.sandbox, argv, 0);
  g_assert_cmpstr(ran.out, ==, "0\n1\n2\n3\n"); /* 3 is the folder that ls reads */
  place_end(&place);
  close(leak);
  close(high);
}

/* Processes of this machine whose command line has the word. */
static guint count_processes(const char *word) {
  guint count = 0;
  g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
  for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
    g_autofree char *path = g_build_filename("/proc", name, "cmdline", NULL);
    g_autofree char *text = NULL;
    gsize length = 0;
    if (g_ascii_isdigit(name[0]) && g_file_get_contents(path, &text, &length, NULL) &&
        memmem(text, length, word, strlen(word))) {
      count++;
    }
  }
  return count;
}

/* The word marks the sleeps of one test: an amount of seconds that no other process sleeps for. */
static char *make_mark(void) {
  return g_strdup_printf("1000.%d%u", (int)getpid(), (unsigned int)(fake_now() % 1000000));
}

/* A script that leaves such a sleep behind, out of its session; owned. */
static char *make_sleeper(const char *mark) {
  return g_strdup_printf("setsid sleep %s >/dev/null 2>&1 & "
                         "until grep -qx sleep /proc/$!/comm; do :; done; echo started",
                         mark);
}

static void expect_no_processes(const char *mark) {
  int64_t until = fake_now() + PLUGIN_PATIENCE;
  while (count_processes(mark) > 0) {
    g_assert_cmpint(fake_now(), <, until);
    g_usleep(1000);
  }
}

static void test_limit_kills_the_whole_tree(void) {
  struct place place = place_new();
  g_autofree char *mark = make_mark();
  g_autofree char *script = g_strdup_printf(
      "echo before; setsid sh -c 'sleep %s & sleep %s' & (setsid setsid sleep %s &); "
      "sleep %s",
      mark, mark, mark, mark);
  g_auto(Ran) ran = plugin_run_limited(place.sandbox, script, PLUGIN_SECOND / 2);
  g_assert_cmpint(ran.status, ==, SANDHOST_OK);
  g_assert_cmpuint(ran.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(ran.result.exit_code, ==, 137);
  g_assert_cmpstr(ran.out, ==, "before\n");
  expect_no_processes(mark);
  place_end(&place);
}

static void test_terminate_kills_what_is_left(void) {
  struct place place = place_new();
  g_autofree char *mark = make_mark();
  g_autofree char *script = make_sleeper(mark);
  plugin_expect(place.sandbox, script, "started\n");
  g_assert_cmpuint(count_processes(mark), ==, 1);
  place_end(&place);
  expect_no_processes(mark);
}

static void test_host_is_killed(void) {
  g_autofree char *mark = make_mark();
  g_autofree char *script = make_sleeper(mark);
  g_autofree char *folder = NULL;
  int ends[2];
  g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
  pid_t pid = fork();
  g_assert_cmpint(pid, >=, 0);
  if (pid == 0) {
    struct place place = place_new();
    plugin_expect(place.sandbox, script, "started\n");
    if (write(ends[1], place.folder, strlen(place.folder)) < 0) {
      _exit(1);
    }
    close(ends[1]);
    for (;;) {
      pause();
    }
  }
  close(ends[1]);
  char buffer[256];
  ssize_t count = read(ends[0], buffer, sizeof buffer);
  g_assert_cmpint(count, >, 0);
  close(ends[0]);
  folder = g_strndup(buffer, (gsize)count);
  g_assert_cmpuint(count_processes(mark), ==, 1);
  g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
  g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
  expect_no_processes(mark);
  plugin_remove(folder);
}

/* ---- Variables -------------------------------------------------------------------------------- */

/* The names that a command sees, each followed by a space; owned. */
static char *names_seen(const struct place *place) {
  const char *const argv[] = {"env", NULL};
  g_auto(Ran) ran = plugin_run_argv(place->sandbox, argv, 0);
  g_auto(GStrv) lines = g_strsplit(ran.out, "\n", -1);
  GString *names = g_string_new(NULL);
  for (size_t i = 0; lines[i]; i++) {
    if (lines[i][0]) {
      g_string_append_printf(names, "%.*s ", (int)strcspn(lines[i], "="), lines[i]);
    }
  }
  return g_string_free(names, FALSE);
}

/* The nine that every command may have, all of them, and two that it may not. */
static void set_host_variables(void) {
  static const char *const names[] = {
      "HOME",   "USER", "LOGNAME",         "LANG",           "LC_ALL", "TERM",
      "TMPDIR", "TZ",   "SANDHOST_TEST_A", "SANDHOST_TEST_B"};
  static const char *const values[] = {"/tmp", "me",   "me",  "C", "C",
                                       "dumb", "/tmp", "UTC", "a", "b"};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    g_setenv(names[i], values[i], TRUE);
  }
}

static gboolean has_name(const char *names, const char *name) {
  g_auto(GStrv) list = g_strsplit(names, " ", -1);
  return g_strv_contains((const char *const *)list, name);
}

static void test_base_variables(void) {
  set_host_variables();
  struct place place = place_new();
  g_autofree char *names = names_seen(&place);
  g_auto(GStrv) list = g_strsplit(names, " ", -1);
  g_assert_cmpuint(g_strv_length(list), ==, 9 + 1); /* the last is empty */
  static const char *const expected[] = {"PATH",   "HOME", "USER",   "LOGNAME", "LANG",
                                         "LC_ALL", "TERM", "TMPDIR", "TZ"};
  for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
    g_assert_true(has_name(names, expected[i]));
  }
  place_end(&place);
}

static void test_passthrough_and_manifest(void) {
  const struct sandhost_pair pairs[] = {
      {.name = fake_to_text("PLAIN"), .value = fake_to_text("x=y z")},
      {.name = fake_to_text("LANG"), .value = fake_to_text("C.UTF-8")}};
  set_host_variables();
  struct place place =
      place_with(&(struct settings){.passthrough = {"SANDHOST_TEST_B", "NOT_THERE"}}, pairs, 2);
  g_autofree char *names = names_seen(&place);
  g_assert_true(has_name(names, "SANDHOST_TEST_B"));
  g_assert_false(has_name(names, "SANDHOST_TEST_A"));
  g_assert_false(has_name(names, "NOT_THERE"));
  plugin_expect(place.sandbox, "echo \"$PLAIN $LANG $TZ\"", "x=y z C.UTF-8 UTC\n");
  place_end(&place);
}

static void test_inherit(void) {
  set_host_variables();
  struct place place = place_with(&(struct settings){.inherit = TRUE}, NULL, 0);
  plugin_expect(place.sandbox, "echo $SANDHOST_TEST_A$SANDHOST_TEST_B", "ab\n");
  place_end(&place);
}

static void test_no_secret_by_default(void) {
  g_setenv("LLM_API_KEY", "secret", TRUE);
  struct place place = place_new();
  plugin_expect(place.sandbox, "echo ${LLM_API_KEY:-unset}", "unset\n");
  place_end(&place);
  g_unsetenv("LLM_API_KEY");
}

/* ---- The working directory -------------------------------------------------------------------- */

static int32_t try_create(const struct settings *settings, const char *dir, char **ret_message) {
  struct sandhost_sandbox *sandbox = NULL;
  plugin_start();
  struct sandhost_instance *instance = local_open(settings);
  int32_t status = plugin_try_create(instance, &(struct wish){.working_dir = dir, .network = TRUE},
                                     &sandbox, ret_message, NULL);
  if (status == SANDHOST_OK) {
    plugin_end(sandbox);
  }
  plugin->close(instance);
  plugin_stop();
  return status;
}

static void test_missing_dir(void) {
  g_autofree char *message = NULL;
  g_assert_cmpint(try_create(&(struct settings){0}, "/nowhere/app", &message), ==,
                  SANDHOST_NOT_FOUND);
  g_assert_cmpstr(message, ==,
                  "The local sandbox's working directory /nowhere/app does not exist; create it, "
                  "set sandbox_manifest.working_dir to one that does, or set the option "
                  "create_working_dir=true");
}

static void test_create_dir(void) {
  g_autofree char *message = NULL;
  g_autofree char *folder = g_dir_make_tmp("sandhost-local-XXXXXX", NULL);
  g_autofree char *dir = g_build_filename(folder, "a", "b", NULL);
  g_assert_cmpint(try_create(&(struct settings){.create_dir = TRUE}, dir, &message), ==,
                  SANDHOST_OK);
  g_assert_true(g_file_test(dir, G_FILE_TEST_IS_DIR));
  plugin_remove(folder);
}

static void test_dir_is_a_file(void) {
  g_autofree char *message = NULL;
  g_assert_cmpint(try_create(&(struct settings){0}, "/etc/passwd", &message), ==, SANDHOST_INVALID);
  g_assert_cmpstr(message, ==,
                  "the local sandbox's working directory /etc/passwd is not a directory");
}

static void test_network_off_is_refused(void) {
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *message = NULL;
  plugin_start();
  struct sandhost_instance *instance = local_open(&(struct settings){0});
  g_assert_cmpint(
      plugin_try_create(instance, &(struct wish){.working_dir = "/tmp"}, &sandbox, &message, NULL),
      ==, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(message, ==, "this sandbox cannot be without the network");
  plugin->close(instance);
  plugin_stop();
}

static void test_files_stay_below_it(void) {
  struct place place = place_new();
  g_autofree char *message = NULL;
  g_autofree char *content = NULL;
  g_autofree char *error = NULL;
  g_autofree char *inside = g_build_filename(place.folder, "a", "b", NULL);
  g_autofree char *link = g_build_filename(place.folder, "link", NULL);
  g_assert_cmpint(plugin_write(place.sandbox, inside, "text", &message), ==, SANDHOST_OK);
  g_assert_cmpint(plugin_read(place.sandbox, inside, &content), ==, SANDHOST_OK);
  g_assert_cmpstr(content, ==, "text");
  g_assert_cmpint(plugin_read(place.sandbox, "/etc/passwd", &error), ==, SANDHOST_INVALID);
  g_assert_cmpstr(error, ==, "Path /etc/passwd is outside the sandbox working directory");
  g_assert_cmpint(symlink("/etc/passwd", link), ==, 0);
  g_autofree char *through = NULL;
  g_assert_cmpint(plugin_read(place.sandbox, link, &through), ==, SANDHOST_INVALID);
  place_end(&place);
}

static void test_dir_behind_a_link(void) {
  g_autofree char *folder = g_dir_make_tmp("sandhost-local-XXXXXX", NULL);
  g_autofree char *real = g_build_filename(folder, "real", NULL);
  g_autofree char *link = g_build_filename(folder, "link", NULL);
  g_autofree char *file = g_build_filename(link, "file", NULL);
  g_autofree char *expected = g_strdup_printf("%s\n", real);
  g_autofree char *message = NULL;
  g_autofree char *content = NULL;
  g_assert_cmpint(g_mkdir(real, 0700), ==, 0);
  g_assert_cmpint(symlink("real", link), ==, 0);
  struct sandhost_instance *instance = local_open(&(struct settings){0});
  struct sandhost_sandbox *sandbox =
      plugin_create(instance, &(struct wish){.working_dir = link, .network = TRUE});
  plugin_expect(sandbox, "pwd", expected);
  g_assert_cmpint(plugin_write(sandbox, file, "text", &message), ==, SANDHOST_OK);
  g_assert_cmpint(plugin_read(sandbox, file, &content), ==, SANDHOST_OK);
  g_assert_cmpstr(content, ==, "text");
  plugin_end(sandbox);
  plugin->close(instance);
  plugin_remove(folder);
}

/* ---- What it says of itself ------------------------------------------------------------------- */

static void test_declares_what_it_is(void) {
  g_assert_cmpuint(plugin->flags, ==, SANDHOST_PROVIDER_HOST_SURFACE);
  g_assert_cmpuint(plugin->enforces_count, ==, 2);
  g_assert_cmpuint(plugin->enforces[0].setting, ==, SANDHOST_SETTING_NETWORK_ON);
  g_assert_cmpuint(plugin->enforces[0].level, ==, SANDHOST_LEVEL_ENFORCED);
  g_assert_cmpuint(plugin->enforces[1].setting, ==, SANDHOST_SETTING_ENVIRONMENT);
  g_assert_cmpuint(plugin->enforces[1].level, ==, SANDHOST_LEVEL_ENFORCED);
}

/* ---- A guest that breaks the protocol ---------------------------------------------------------- */

static void place_bad_guest(void) {
  g_autofree char *folder = g_build_filename(plugin_folder, "bad", NULL);
  g_assert_cmpint(g_mkdir(folder, 0755), ==, 0);
  plugin_copy_guests(TEST_BUILD_DIR "/bad-guest", folder);
}

/* The command that finds it has the error; this one and every later one report the loss, with the broken rule. */
static void test_bad_guest(void) {
  static const char reason[] = "it broke the protocol: a command started twice";
  g_autofree char *folder = g_build_filename(plugin_folder, "bad", NULL);
  g_autofree char *good = g_steal_pointer(&plugin_guest_dir);
  plugin_guest_dir = g_strdup(folder);
  struct place place = place_new();
  plugin_expect(place.sandbox, "true", "command 1 after 0 uploads\n");
  g_auto(Ran) broken = plugin_run(place.sandbox, "violate started-twice");
  g_assert_cmpint(broken.status, ==, SANDHOST_PROTOCOL);
  g_assert_cmpstr(broken.message, ==, reason);
  g_assert_cmpstr(broken.lost, ==, reason);
  g_auto(Ran) later = plugin_run(place.sandbox, "true");
  g_assert_cmpint(later.status, ==, SANDHOST_LOST);
  g_assert_cmpstr(later.message, ==, reason);
  g_assert_cmpstr(later.lost, ==, reason);
  place_end(&place);
  g_free(plugin_guest_dir);
  plugin_guest_dir = g_steal_pointer(&good);
}

static const struct {
  const char *name;
  void (*test)(void);
} tests[] = {
    {"runs-here", test_runs_here},
    {"exit-codes", test_exit_codes},
    {"stdin-is-closed", test_stdin_is_closed},
    {"no-descriptor-comes-along", test_no_descriptor_comes_along},
    {"limit-kills-the-whole-tree", test_limit_kills_the_whole_tree},
    {"terminate-kills-what-is-left", test_terminate_kills_what_is_left},
    {"host-is-killed", test_host_is_killed},
    {"base-variables", test_base_variables},
    {"passthrough-and-manifest", test_passthrough_and_manifest},
    {"inherit", test_inherit},
    {"no-secret-by-default", test_no_secret_by_default},
    {"missing-dir", test_missing_dir},
    {"create-dir", test_create_dir},
    {"dir-is-a-file", test_dir_is_a_file},
    {"network-off-is-refused", test_network_off_is_refused},
    {"files-stay-below-it", test_files_stay_below_it},
    {"dir-behind-a-link", test_dir_behind_a_link},
    {"declares-what-it-is", test_declares_what_it_is},
    {"bad-guest", test_bad_guest},
};

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  plugin_load("local");
  place_bad_guest();
  for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
    plugin_add_test(tests[i].name, &tests[i].test);
  }
  int result = g_test_run();
  plugin_unload();
  return result;
}
