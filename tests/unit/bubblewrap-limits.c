/* SPDX-License-Identifier: Apache-2.0 */
/* bubblewrap-limits.c: what a command in a bubblewrap sandbox can use up, and what ends it. */
#include "bubblewrap-fixture.h"

#define MEBIBYTE ((int64_t)1 << 20)

static void expect_no_space(struct sandhost_sandbox *sandbox, const char *folder) {
  g_autofree char *script = g_strdup_printf("head -c 4000000 /dev/zero > %s/big", folder);
  g_autofree char *look = g_strdup_printf("[ $(stat -c %%s %s/big) -le 2097152 ]", folder);
  g_auto(Ran) ran = plugin_run(sandbox, script);
  g_assert_cmpint(ran.result.exit_code, ==, 1);
  g_assert_nonnull(strstr(ran.err, "No space left on device"));
  plugin_expect(sandbox, look, "");
}

static void test_folders_are_bounded(void) {
  struct settings settings = {.workdir_size = 2 * MEBIBYTE, .tmp_size = MEBIBYTE};
  struct box box = box_with(&settings, &(struct wish){0});
  expect_no_space(box.sandbox, "/workspace");
  expect_no_space(box.sandbox, "/tmp");
  expect_no_space(box.sandbox, "/dev/shm");
  box_end(&box);
}

/* ---- Memory ----------------------------------------------------------------------------------- */

static gboolean memory_is_limited(void) {
  struct box box = box_new();
  gboolean limited = box_enforces(&box, SANDHOST_SETTING_MEMORY);
  box_end(&box);
  return limited;
}

static void test_memory(void) {
  if (!memory_is_limited()) {
    box_skip_without("memory");
    return;
  }
  struct box box =
      box_with(&(struct settings){0}, &(struct wish){.memory_bytes = (uint64_t)(64 * MEBIBYTE)});
  const char *const eater[] = {"tail", "/dev/zero", NULL};
  g_auto(Ran) direct = plugin_run_argv(box.sandbox, eater, 0);
  g_assert_cmpuint(direct.result.ended, ==, SANDHOST_ENDED_MEMORY);
  g_assert_cmpint(direct.result.exit_code, ==, 137);
  g_assert_cmpint(direct.result.signal, ==, 0);
  g_auto(Ran) below_shell = plugin_run(box.sandbox, "tail /dev/zero; exit $?");
  g_assert_cmpuint(below_shell.result.ended, ==, SANDHOST_ENDED_MEMORY);
  /* A kill that memory has nothing to do with stays what it is. */
  g_auto(Ran) killed = plugin_run(box.sandbox, "kill -9 $$");
  g_assert_cmpuint(killed.result.ended, ==, SANDHOST_ENDED_SIGNAL);
  plugin_expect(box.sandbox, "echo still here", "still here\n");
  box_end(&box);
}

static void test_unlimitable_memory_is_refused(void) {
  if (memory_is_limited()) {
    plugin_skip("there are control groups for this user");
    return;
  }
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *message = NULL;
  g_assert_cmpint(plugin_try_create(instance, &(struct wish){.memory_bytes = 64 << 20}, &sandbox,
                                    &message, NULL),
                  ==, SANDHOST_UNSUPPORTED);
  g_assert_cmpstr(message, ==,
                  "this user cannot make a control group with such limits on this machine");
  plugin->close(instance);
  plugin_stop();
}

static void test_too_little_memory_to_start(void) {
  if (!memory_is_limited()) {
    box_skip_without("memory");
    return;
  }
  plugin_start();
  struct sandhost_instance *instance = bubblewrap_open(&(struct settings){0});
  struct sandhost_sandbox *sandbox = NULL;
  g_autofree char *message = NULL;
  g_assert_cmpint(
      plugin_try_create(instance, &(struct wish){.memory_bytes = 65536}, &sandbox, &message, NULL),
      ==, SANDHOST_LIMIT);
  g_assert_cmpstr(message, ==, "the memory limit of 65536 bytes is too small to start with");
  plugin->close(instance);
  plugin_stop();
}

/* ---- CPU and processes ------------------------------------------------------------------------ */

static void test_cpu(void) {
  struct box box = box_new();
  gboolean limited = box_enforces(&box, SANDHOST_SETTING_CPU);
  box_end(&box);
  if (!limited) {
    box_skip_without("cpu");
    return;
  }
  box = box_with(&(struct settings){0}, &(struct wish){.cpu_millis = 200});
  g_auto(Ran) ran =
      plugin_run(box.sandbox, "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done; echo done");
  g_assert_cmpstr(ran.out, ==, "done\n");
  g_assert_cmpint(ran.result.user_time, >, 100 * FAKE_MILLISECOND);
  g_assert_cmpint(ran.result.duration, >, 3 * (ran.result.user_time + ran.result.system_time));
  box_end(&box);
}

static void test_processes(void) {
  struct box box = box_with(&(struct settings){.pids_limit = 40}, &(struct wish){0});
  if (!box_enforces(&box, SANDHOST_SETTING_PIDS)) {
    box_end(&box);
    box_skip_without("pids");
    return;
  }
  /* The shell ends when it cannot fork, and counts without forking. */
  g_auto(Ran) ran = plugin_run(box.sandbox, "trap 'set -- /proc/[0-9]*; echo $#' EXIT; i=0; "
                                            "while [ $i -lt 100 ]; do sleep 1000 & "
                                            "i=$((i+1)); done 2>/dev/null");
  g_assert_cmpint(ran.result.exit_code, !=, 0);
  g_assert_cmpint(g_ascii_strtoll(ran.out, NULL, 10), <=, 40);
  g_assert_cmpint(g_ascii_strtoll(ran.out, NULL, 10), >=, 30);
  box_end(&box);
  /* Only now that the limit is known to hold. */
  box = box_with(&(struct settings){.pids_limit = 40}, &(struct wish){0});
  g_auto(Ran) bomb = plugin_run_limited(
      box.sandbox, "b() { b | b & }; b 2>/dev/null; while :; do :; done", 2 * PLUGIN_SECOND);
  g_assert_cmpuint(bomb.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_auto(Ran) after = plugin_run(box.sandbox, "set -- /proc/[0-9]*; [ $# -lt 12 ] && echo calm");
  g_assert_cmpstr(after.out, ==, "calm\n");
  box_end(&box);
}

/* ---- The time limit --------------------------------------------------------------------------- */

static void test_limit_kills_the_whole_tree(void) {
  struct box box = box_new();
  g_auto(Ran) ran = plugin_run_limited(
      box.sandbox,
      "echo before; setsid sh -c 'sleep 1001 & sleep 1002' & (setsid setsid sleep 1003 &); "
      "nohup sleep 1004 >/dev/null 2>&1 & sleep 1005",
      PLUGIN_SECOND / 2);
  g_assert_cmpint(ran.status, ==, SANDHOST_OK);
  g_assert_cmpuint(ran.result.ended, ==, SANDHOST_ENDED_LIMIT);
  g_assert_cmpint(ran.result.exit_code, ==, 137);
  g_assert_cmpstr(ran.out, ==, "before\n");
  plugin_expect(box.sandbox, "cat /proc/[0-9]*/comm | grep sleep; true", "");
  box_end(&box);
}

static void test_kill_of_everything(void) {
  struct box box = box_new();
  g_auto(Ran) ran = plugin_run(box.sandbox, "kill -9 -1; kill -9 1; kill -STOP 1");
  g_assert_cmpint(ran.status, ==, SANDHOST_OK);
  plugin_expect(box.sandbox, "echo still here", "still here\n");
  box_end(&box);
}

static const struct {
  const char *name;
  void (*test)(void);
} tests[] = {
    {"folders-are-bounded", test_folders_are_bounded},
    {"memory", test_memory},
    {"unlimitable-memory-is-refused", test_unlimitable_memory_is_refused},
    {"too-little-memory-to-start", test_too_little_memory_to_start},
    {"cpu", test_cpu},
    {"processes", test_processes},
    {"limit-kills-the-whole-tree", test_limit_kills_the_whole_tree},
    {"kill-of-everything", test_kill_of_everything},
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
