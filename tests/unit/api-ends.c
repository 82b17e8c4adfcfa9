/* SPDX-License-Identifier: Apache-2.0 */
/* api-ends.c: what a program hears of a sandbox that does not end. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

#include "sandhost.h"

#define CONFIG                                                                                     \
  "{\"enable_workspace_files\": false,"                                                            \
  " \"governance_config\": {\"sandbox_config\": {\"provider\": \"stays\"}}}"

static void on_warning(void *user, const char *line) {
  g_string_append_printf(user, "[%s]", line);
}

static sandhost *open_host(const char *record) {
  const struct sandhost_settings settings = {.size = sizeof settings, .record = record};
  sandhost *host = NULL;
  char *error = NULL;
  sandhost_open(CONFIG, &settings, &host, &error);
  g_assert_cmpstr(error, ==, NULL);
  register_sandbox_provider_file(host, "stays", TEST_BUILD_DIR "/tests/plugins/sandhost-stays.so",
                                 &error);
  g_assert_cmpstr(error, ==, NULL);
  return host;
}

/* hooks_size: as a program says that was built with some version of the header. */
static void run_once(const char *record, size_t hooks_size, GString *seen) {
  const struct sandhost_hooks hooks = {.size = hooks_size, .user = seen, .warning = on_warning};
  sandhost *host = open_host(record);
  sandhost_run *run = NULL;
  char *error = NULL;
  char *result = NULL;
  sandhost_run_start(host, &hooks, &run, &error);
  g_assert_cmpstr(error, ==, NULL);
  sandhost_execute(run, "true", 0, &result, &error);
  g_assert_cmpstr(error, ==, NULL);
  sandhost_free(result);
  g_assert_cmpstr(seen->str, ==, "");
  for (int i = 0; i < 2; i++) { /* more than tool_call_timeout */
    sandhost_execute(run, "true", 500, &result, &error);
    g_assert_cmpstr(error, ==, NULL);
    sandhost_free(result);
  }
  g_assert_cmpint(sandhost_run_end(run, NULL, NULL, NULL), ==, SANDHOST_STATUS_OK);
  sandhost_close(host);
}

static void test_warning(void) {
  g_autofree char *folder = g_dir_make_tmp("sandhost-ends-XXXXXX", NULL);
  g_autofree char *record = g_build_filename(folder, "record.db", NULL);
  g_autoptr(GString) seen = g_string_new(NULL);
  g_autoptr(GString) nothing = g_string_new(NULL);
  run_once(record, sizeof(struct sandhost_hooks), seen);
  g_assert_cmpstr(seen->str, ==,
                  "[the timeout of 500 seconds is more than the configuration's tool_call_timeout; "
                  "the command may take 180]"
                  "[the stays sandbox good-1 may live on: the engine is away; sandhost cleanup "
                  "cannot find what this provider leaves]");
  run_once(record, offsetof(struct sandhost_hooks, warning), nothing);
  g_assert_cmpstr(nothing->str, ==, "");
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  for (const char *name = NULL; (name = g_dir_read_name(dir));) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_cmpint(g_unlink(path), ==, 0);
  }
  g_assert_cmpint(g_rmdir(folder), ==, 0);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/ends/warning", test_warning);
  return g_test_run();
}
