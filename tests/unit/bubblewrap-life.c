/* SPDX-License-Identifier: Apache-2.0 */
/* bubblewrap-life.c: how bubblewrap sandboxes begin, end, get lost, and what is said when they cannot begin. */
#include "bubblewrap-fixture.h"

#include <sys/prctl.h>
#include <sys/resource.h>

struct started {
  struct sandhost_sandbox *sandbox;
  GArray *tree; /* processes; owned */
};

/* With a control group, where there can be one. */
static struct started start_with_tree(struct sandhost_instance *instance) {
  struct started started = {0};
  struct box box = {.instance = instance};
  struct wish wish = {0};
  g_autofree char *ref = NULL;
  if (box_enforces(&box, SANDHOST_SETTING_MEMORY)) {
    wish.memory_bytes = (uint64_t)256 << 20;
  }
  g_assert_cmpint(plugin_try_create(instance, &wish, &started.sandbox, NULL, &ref), ==,
                  SANDHOST_OK);
  plugin_expect(started.sandbox, "setsid sleep 1000 >/dev/null 2>&1 & echo started", "started\n");
  started.tree = tree_of(pid_of_ref(ref));
  g_assert_cmpuint(started.tree->len, >=, 3);
  return started;
}

/* The folders of control groups that this program's sandboxes are in, as far as there are any. */
static guint count_groups(void) {
  static const char *const controllers[] = {"memory", "cpu", "pids"};
  guint count = 0;
  g_autofree char *self = NULL;
  g_assert_true(g_file_get_contents("/proc/self/cgroup", &self, NULL, NULL));
  for (size_t i = 0; i < G_N_ELEMENTS(controllers); i++) {
    g_autofree char *mark = g_strdup_printf(":%s:", controllers[i]);
    const char *line = strstr(self, mark);
    if (!line) {
      continue;
    }
    line += strlen(mark);
    g_autofree char *own = g_strndup(line, strcspn(line, "\n"));
    g_autofree char *folder =
        g_build_filename("/sys/fs/cgroup", controllers[i], own, "sandhost", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir)) != NULL;) {
      g_autofree char *path = g_build_filename(folder, name, NULL);
      count += g_file_test(path, G_FILE_TEST_IS_DIR) && g_str_has_prefix(name, "test-") ? 1 : 0;
    }
  }
  return count;
}

/* ---- Ends ------------------------------------------------------------------------------------- */

static void test_terminate_leaves_nothing(void) {
  plugin_start();
  guint groups_before = count_groups();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct started started = start_with_tree(instance);
  int bwrap = g_array_index(started.tree, int, 0);
  plugin_end(started.sandbox);
  g_assert_cmpint(waitpid(bwrap, NULL, WNOHANG), ==, -1);
  g_assert_cmpint(errno, ==, ECHILD);
  wait_until_gone(started.tree);
  g_assert_cmpuint(count_groups(), ==, groups_before);
  g_array_unref(started.tree);
  plugin->close(instance);
  plugin_stop();
}

static void test_release_without_terminate(void) {
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct started started = start_with_tree(instance);
  plugin->release(started.sandbox);
  wait_until_gone(started.tree);
  g_array_unref(started.tree);
  plugin->close(instance);
  plugin_stop();
}

static void test_terminate_twice(void) {
  struct box box = box_new();
  struct sandhost_call call;
  fake_call_init(&call);
  g_assert_cmpint(plugin->terminate(&call, box.sandbox), ==, SANDHOST_OK);
  fake_call_clear(&call);
  box_end(&box);
}

static void expect_lost(struct sandhost_sandbox *sandbox, const char *reason) {
  g_auto(Ran) ran = plugin_run(sandbox, "echo alive");
  g_assert_cmpint(ran.status, ==, SANDHOST_LOST);
  g_assert_cmpstr(ran.message, ==, reason);
  g_assert_cmpstr(ran.lost, ==, reason);
}

/* bwrap's end becomes the guest's end by a signal, which a command may be quicker than. */
static void run_until_lost(struct sandhost_sandbox *sandbox) {
  for (int tries = 0; tries < 10000; tries++) {
    g_auto(Ran) ran = plugin_run(sandbox, "echo alive");
    if (ran.status != SANDHOST_OK) {
      return;
    }
  }
}

/* Kills the process at this place of the tree and looks at what is said. */
static void lose(guint index) {
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct started started = start_with_tree(instance);
  g_assert_cmpint(kill(g_array_index(started.tree, int, index), SIGKILL), ==, 0);
  run_until_lost(started.sandbox);
  expect_lost(started.sandbox, "it was killed");
  expect_lost(started.sandbox, "it was killed");
  plugin_end(started.sandbox);
  wait_until_gone(started.tree);
  g_array_unref(started.tree);
  plugin->close(instance);
  plugin_stop();
}

static void test_bwrap_is_killed(void) {
  lose(0);
}

static void test_guest_is_killed(void) {
  lose(1);
}

static gpointer run_long(gpointer data) {
  Ran *ran = g_new(Ran, 1);
  *ran = plugin_run(data, "sleep 1000");
  return ran;
}

static void test_lost_under_a_command(void) {
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct started started = start_with_tree(instance);
  GThread *thread = g_thread_new("runs", run_long, started.sandbox);
  plugin_expect(started.sandbox, "until grep -q sleep /proc/[0-9]*/comm; do :; done", "");
  g_assert_cmpint(kill(g_array_index(started.tree, int, 1), SIGKILL), ==, 0);
  Ran *ran = g_thread_join(thread);
  g_assert_cmpint(ran->status, ==, SANDHOST_LOST);
  g_assert_cmpstr(ran->lost, ==, "it was killed");
  ran_clear(ran);
  g_free(ran);
  plugin_end(started.sandbox);
  g_array_unref(started.tree);
  plugin->close(instance);
  plugin_stop();
}

/* ---- The host dies ----------------------------------------------------------------------------
 * These tell whether everything ends, each time at the same point; hence the long patience, for a machine that is busy.
 * Within which time, at points all over a run, is what tests/e2e/kills.sh is for: it can tell a slow end from a machine
 * that lets nobody end. */

/* Forks a host with a sandbox, which writes the numbers of the sandbox's processes and waits to be killed.
 * Returns its number. */
static pid_t start_host(GArray **ret_tree) {
  int ends[2];
  g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
  pid_t pid = fork();
  g_assert_cmpint(pid, >=, 0);
  if (pid == 0) {
    plugin_start();
    struct started started = start_with_tree(bubblewrap_open(&(struct settings){0}));
    size_t length = started.tree->len * sizeof(int);
    if (write(ends[1], started.tree->data, length) != (ssize_t)length) {
      _exit(1);
    }
    close(ends[1]);
    for (;;) {
      pause();
    }
  }
  close(ends[1]);
  *ret_tree = g_array_new(FALSE, FALSE, sizeof(int));
  int number = 0;
  while (read(ends[0], &number, sizeof number) == sizeof number) {
    g_array_append_val(*ret_tree, number);
  }
  close(ends[0]);
  g_assert_cmpuint((*ret_tree)->len, >=, 3);
  return pid;
}

static void kill_host(pid_t pid) {
  int status = 0;
  g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
  g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
  g_assert_true(WIFSIGNALED(status));
}

static void test_host_is_killed(void) {
  GArray *tree = NULL;
  guint groups_before = count_groups();
  kill_host(start_host(&tree));
  wait_until_gone(tree);
  g_array_unref(tree);
  /* The next host removes the group that is left. */
  struct box box = box_new();
  box_end(&box);
  g_assert_cmpuint(count_groups(), ==, groups_before);
}

static void test_host_is_killed_while_the_guest_hangs(void) {
  GArray *tree = NULL;
  pid_t host = start_host(&tree);
  g_assert_cmpint(kill(g_array_index(tree, int, 1), SIGSTOP), ==, 0);
  kill_host(host);
  wait_until_gone(tree);
  g_array_unref(tree);
}

/* How long a host needs from its fork to its sandbox, on this machine and just now. Microseconds. */
static int64_t time_of_create(void) {
  int64_t began = fake_now();
  GArray *tree = NULL;
  pid_t host = start_host(&tree);
  int64_t took = fake_now() - began;
  kill_host(host);
  wait_until_gone(tree);
  g_array_unref(tree);
  return took / 1000;
}

/* Whatever bwrap was at, nothing stays. What is orphaned becomes ours, so that it can be counted. */
static void test_host_is_killed_while_it_creates(void) {
  const int64_t whole = time_of_create();
  const int points = 24;
  g_assert_cmpint(prctl(PR_SET_CHILD_SUBREAPER, 1), ==, 0);
  for (int point = 0; point < points; point++) {
    pid_t pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
      plugin_start();
      plugin_create(bubblewrap_open(&(struct settings){0}), &(struct wish){0});
      for (;;) {
        pause();
      }
    }
    g_usleep((gulong)(whole * point / points));
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    int64_t until = fake_now() + PLUGIN_PATIENCE;
    while (waitpid(-1, NULL, WNOHANG) >= 0) {
      g_assert_cmpint(fake_now(), <, until);
      g_usleep(200);
    }
    g_assert_cmpint(errno, ==, ECHILD);
  }
  g_assert_cmpint(prctl(PR_SET_CHILD_SUBREAPER, 0), ==, 0);
}

static void test_terminate_while_the_guest_hangs(void) {
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct started started = start_with_tree(instance);
  g_assert_cmpint(kill(g_array_index(started.tree, int, 1), SIGSTOP), ==, 0);
  plugin_end(started.sandbox);
  wait_until_gone(started.tree);
  g_array_unref(started.tree);
  plugin->close(instance);
  plugin_stop();
}

/* ---- Threads ---------------------------------------------------------------------------------- */

static gpointer create_one(gpointer data) {
  return plugin_create(data, &(struct wish){0});
}

static void test_outlives_the_thread_that_made_it(void) {
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  GThread *thread = g_thread_new("creates", create_one, instance);
  struct sandhost_sandbox *sandbox = g_thread_join(thread);
  plugin_expect(sandbox, "sleep 0.1; echo alive", "alive\n");
  plugin_end(sandbox);
  plugin->close(instance);
  plugin_stop();
}

static gpointer live_once(gpointer data) {
  struct sandhost_sandbox *sandbox = plugin_create(data, &(struct wish){0});
  plugin_expect(sandbox, "echo one > file; cat file", "one\n");
  plugin_end(sandbox);
  return NULL;
}

static void at_once(struct sandhost_instance *instance, GThread **threads, size_t count) {
  for (size_t i = 0; i < count; i++) {
    threads[i] = g_thread_new("lives", live_once, instance);
  }
  for (size_t i = 0; i < count; i++) {
    g_thread_join(threads[i]);
  }
}

static void test_twenty_at_once(void) {
  GThread *threads[20];
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  at_once(instance, threads, G_N_ELEMENTS(threads));
  plugin->close(instance);
  plugin_stop();
}

static rlim_t count_descriptors(void) {
  rlim_t count = 0;
  g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
  while (g_dir_read_name(dir)) {
    count++;
  }
  return count;
}

/* What a sandbox is made of is open while it starts, which few of them do at the same time. */
static void test_many_at_once_with_few_descriptors(void) {
  enum { MANY = 60, EACH = 6, FEW_STARTS = 150 };
  GThread *threads[MANY];
  struct rlimit before;
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
  struct rlimit few = {.rlim_cur = count_descriptors() + MANY * EACH + FEW_STARTS,
                       .rlim_max = before.rlim_max};
  g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &few), ==, 0);
  at_once(instance, threads, MANY);
  g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
  plugin->close(instance);
  plugin_stop();
}

/* ---- It cannot begin -------------------------------------------------------------------------- */

static void expect_refusal(const struct settings *settings, const struct wish *wish, int32_t status,
                           const char *expected) {
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *message = NULL;
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(settings);
  g_assert_cmpint(plugin_try_create(instance, wish, &sandbox, &message, NULL), ==, status);
  g_assert_cmpstr(message, ==, expected);
  plugin->close(instance);
  plugin_stop();
}

static void test_bwrap_is_missing(void) {
  expect_refusal(&(struct settings){.bwrap = "/nowhere/bwrap"}, &(struct wish){0},
                 SANDHOST_UNAVAILABLE,
                 "bubblewrap is not at /nowhere/bwrap; install it with: apt install bubblewrap, or "
                 "set the bubblewrap sandbox option 'bwrap' to where it is");
}

static void test_guest_is_missing(void) {
  expect_refusal(&(struct settings){.guest_dir = "/nowhere"}, &(struct wish){0},
                 SANDHOST_UNAVAILABLE,
                 "the program sandhost-guest for this machine is not installed");
}

/* A program in place of bwrap; its path is owned by the caller, who removes its folder. */
static char *write_program(const char *script, char **ret_folder) {
  *ret_folder = g_dir_make_tmp("sandhost-bwrap-XXXXXX", NULL);
  g_assert_cmpint(g_chmod(*ret_folder, 0755), ==, 0);
  char *path = g_build_filename(*ret_folder, "bwrap", NULL);
  g_assert_true(g_file_set_contents(path, script, -1, NULL));
  g_assert_cmpint(g_chmod(path, 0755), ==, 0);
  return path;
}

static void test_bwrap_fails(void) {
  g_autofree char *folder = NULL;
  g_autofree char *bwrap = write_program(
      "#!/bin/sh\nprintf 'bwrap: the \\033[1mmoon\\007 is full\\nmore\\n' >&2\nexit 1\n", &folder);
  guint groups_before = count_groups();
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *message = NULL;
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){.bwrap = bwrap});
  g_assert_cmpint(plugin_try_create(instance, &(struct wish){0}, &sandbox, &message, NULL), ==,
                  SANDHOST_UNAVAILABLE);
  g_assert_true(g_str_has_prefix(message, "bubblewrap could not make the sandbox: the "));
  g_assert_true(g_str_has_suffix(message, " is full"));
  g_assert_null(strpbrk(message, "\033\007\n"));
  g_assert_cmpuint(count_groups(), ==, groups_before);
  plugin->close(instance);
  plugin_stop();
  plugin_remove(folder);
}

static void test_older_bwrap(void) {
  g_autofree char *folder = NULL;
  g_autofree char *bwrap =
      write_program("#!/bin/sh\n"
                    "if tr '\\0' '\\n' < /proc/self/fd/3 | grep -q -x -e --disable-userns; then\n"
                    "  echo 'bwrap: Unknown option --disable-userns' >&2\n"
                    "  exit 1\n"
                    "fi\n"
                    "exec bwrap \"$@\"\n",
                    &folder);
  struct box box = box_with(&(struct settings){.bwrap = bwrap}, &(struct wish){0});
  plugin_expect(box.sandbox, "echo works", "works\n");
  box_end(&box);
  plugin_remove(folder);
}

static void test_guest_that_its_user_cannot_reach(void) {
  g_autofree char *folder = g_dir_make_tmp("sandhost-guest-XXXXXX", NULL);
  g_autofree char *inner = g_build_filename(folder, "guest", NULL);
  g_assert_cmpint(g_mkdir(inner, 0755), ==, 0);
  plugin_copy_guest(inner); /* folder stays at 0700 */
  struct box box = box_with(&(struct settings){.guest_dir = inner}, &(struct wish){0});
  plugin_expect(box.sandbox, "echo works", "works\n");
  box_end(&box);
  plugin_remove(folder);
}

static void test_key_that_is_taken(void) {
  const struct wish wish = {.key = "test-taken", .memory_bytes = (uint64_t)256 << 20};
  struct box box = box_new();
  struct sandhost_sandbox *second = NULL;
  g_autofree char *message = NULL;
  if (!box_enforces(&box, SANDHOST_SETTING_MEMORY)) {
    box_end(&box);
    box_skip_without("memory");
    return;
  }
  struct sandhost_sandbox *first = plugin_create(box.instance, &wish);
  g_assert_cmpint(plugin_try_create(box.instance, &wish, &second, &message, NULL), ==,
                  SANDHOST_EXISTS);
  g_assert_cmpstr(message, ==, "a sandbox with the key test-taken exists already");
  plugin_expect(first, "echo unharmed", "unharmed\n");
  plugin_end(first);
  box_end(&box);
}

static void test_cancelled_create(void) {
  struct sandhost_call call;
  struct sandhost_sandbox *sandbox = NULL;
  guint groups_before = count_groups();
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct sandhost_network network = {.size = sizeof network, .mode = SANDHOST_NETWORK_DENY};
  struct sandhost_create request = {.size = sizeof request,
                                    .key = fake_to_text("test-cancelled"),
                                    .working_dir = fake_to_path("/workspace"),
                                    .network = &network};
  fake_call_init(&call);
  fake_call_cancel(&call);
  g_assert_cmpint(plugin->create(&call, instance, &request, &sandbox), ==, SANDHOST_CANCELLED);
  fake_call_clear(&call);
  g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1);
  g_assert_cmpint(errno, ==, ECHILD);
  g_assert_cmpuint(count_groups(), ==, groups_before);
  plugin->close(instance);
  plugin_stop();
}

static void test_unkept_request(void) {
  struct sandhost_call call;
  struct sandhost_sandbox *sandbox = NULL;
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct sandhost_network network = {.size = sizeof network, .mode = SANDHOST_NETWORK_DENY};
  struct sandhost_create request = {.size = sizeof request,
                                    .working_dir = fake_to_path("/workspace"),
                                    .image = fake_to_text("debian"),
                                    .network = &network};
  fake_call_init(&call);
  g_assert_cmpint(plugin->create(&call, instance, &request, &sandbox), ==, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(call.message, ==, "this sandbox cannot have an image");
  fake_call_clear(&call);
  plugin->close(instance);
  plugin_stop();
}

/* ---- What it says of itself ------------------------------------------------------------------- */

static void test_levels(void) {
  struct sandhost_call call;
  uint32_t levels[16] = {0};
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  fake_call_init(&call);
  g_assert_cmpint(plugin->enforces_now(&call, instance, levels, plugin->enforces_count), ==,
                  SANDHOST_OK);
  guint lowered = 0;
  for (size_t i = 0; i < plugin->enforces_count; i++) {
    g_autofree char *kind =
        g_strdup_printf("%u ", SANDHOST_REPORT_LOWERED + plugin->enforces[i].setting);
    gboolean told = lowered < call.lowered->len &&
                    g_str_has_prefix(g_ptr_array_index(call.lowered, lowered), kind);
    g_assert_cmpuint(levels[i], ==, told ? SANDHOST_LEVEL_NONE : SANDHOST_LEVEL_ENFORCED);
    lowered += told ? 1 : 0;
  }
  g_assert_cmpuint(lowered, ==, call.lowered->len);
  fake_call_clear(&call);
  plugin->close(instance);
}

static const struct {
  const char *name;
  void (*test)(void);
} tests[] = {
    {"terminate-leaves-nothing", test_terminate_leaves_nothing},
    {"release-without-terminate", test_release_without_terminate},
    {"terminate-twice", test_terminate_twice},
    {"bwrap-is-killed", test_bwrap_is_killed},
    {"guest-is-killed", test_guest_is_killed},
    {"lost-under-a-command", test_lost_under_a_command},
    {"host-is-killed", test_host_is_killed},
    {"host-is-killed-while-the-guest-hangs", test_host_is_killed_while_the_guest_hangs},
    {"host-is-killed-while-it-creates", test_host_is_killed_while_it_creates},
    {"terminate-while-the-guest-hangs", test_terminate_while_the_guest_hangs},
    {"outlives-the-thread-that-made-it", test_outlives_the_thread_that_made_it},
    {"twenty-at-once", test_twenty_at_once},
    {"many-at-once-with-few-descriptors", test_many_at_once_with_few_descriptors},
    {"bwrap-is-missing", test_bwrap_is_missing},
    {"guest-is-missing", test_guest_is_missing},
    {"bwrap-fails", test_bwrap_fails},
    {"older-bwrap", test_older_bwrap},
    {"guest-that-its-user-cannot-reach", test_guest_that_its_user_cannot_reach},
    {"key-that-is-taken", test_key_that_is_taken},
    {"cancelled-create", test_cancelled_create},
    {"unkept-request", test_unkept_request},
    {"levels", test_levels},
};

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  plugin_load("bubblewrap");
  for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
    plugin_add_test(tests[i].name, &tests[i].test);
  }
  int result = g_test_run();
  plugin_unload();
  return result;
}
