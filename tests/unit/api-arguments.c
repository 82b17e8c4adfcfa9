/* SPDX-License-Identifier: Apache-2.0 */
/* api-arguments.c: what a program may give to libsandhost, and what it is told about the rest. On local_test. */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "remove-tree.h"
#include "sandhost.h"

#define CONFIG(MORE)                                                                               \
  "{" MORE "\"agent_config\": {\"governance_config\": {\"sandbox_config\": \"local_test\","        \
  " \"allow_test_sandbox_runtime\": true}}}"

typedef struct {
  char *folder;
  char *record;
  sandhost *host;
  int exit_code;
} Fixture;

static void set_up(Fixture *fixture, gconstpointer data) {
  (void)data;
  fixture->folder = g_dir_make_tmp("sandhost-arguments-XXXXXX", NULL);
  fixture->record = g_build_filename(fixture->folder, "record.db", NULL);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_close(fixture->host);
  remove_tree(fixture->folder);
  g_free(fixture->record);
  g_free(fixture->folder);
}

static void open_host(Fixture *fixture, const char *config) {
  const struct sandhost_settings settings = {.size = sizeof settings, .record = fixture->record};
  char *error = NULL;
  sandhost_open(config, &settings, &fixture->host, &error);
  g_assert_cmpstr(error, ==, NULL);
}

static void assert_refused(int status, int wanted, char **error, const char *text) {
  g_assert_cmpstr(*error, ==, text);
  g_assert_cmpint(status, ==, wanted);
  sandhost_free(g_steal_pointer(error));
}

/* The whole result of one command in a run of its own; owned. */
static char *execute(Fixture *fixture, int timeout) {
  sandhost_run *run = NULL;
  char *result = NULL;
  char *error = NULL;
  sandhost_run_start(fixture->host, NULL, &run, &error);
  g_assert_cmpstr(error, ==, NULL);
  sandhost_execute(run, "hello", timeout, &result, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(sandhost_run_end(run, NULL, NULL, NULL), ==, SANDHOST_STATUS_OK);
  return result;
}

static void assert_tells(const char *result, const char *wanted) {
  if (!strstr(result, wanted)) {
    g_error("not told: %s in %s", wanted, result);
  }
}

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

/* What is set and says nothing is a mistake, and not the current folder. */
static void test_empty(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  struct sandhost_settings settings = {.size = sizeof settings, .workspace = ""};
  assert_refused(sandhost_open(NULL, &settings, &fixture->host, &error), SANDHOST_STATUS_INVALID,
                 &error, "settings->workspace must not be empty");
  settings = (struct sandhost_settings){.size = sizeof settings, .record = ""};
  assert_refused(sandhost_open(NULL, &settings, &fixture->host, &error), SANDHOST_STATUS_INVALID,
                 &error, "settings->record must not be empty");
  settings = (struct sandhost_settings){.size = sizeof settings, .provider = ""};
  assert_refused(sandhost_open(NULL, &settings, &fixture->host, &error), SANDHOST_STATUS_INVALID,
                 &error, "settings->provider must not be empty");
}

static void test_half_member(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  const struct sandhost_settings settings = {.size = sizeof settings - 4};
  assert_refused(sandhost_open(NULL, &settings, &fixture->host, &error), SANDHOST_STATUS_INVALID,
                 &error, "settings->size is not one that this libsandhost knows");
  const struct sandhost_hooks hooks = {.size = offsetof(struct sandhost_hooks, request) + 1};
  sandhost_run *run = NULL;
  open_host(fixture, CONFIG(""));
  assert_refused(sandhost_run_start(fixture->host, &hooks, &run, &error), SANDHOST_STATUS_INVALID,
                 &error, "hooks->size is not one that this libsandhost knows");
}

/* Of a library that is far ahead of this one, and nothing new is used. */
static void test_much_longer(Fixture *fixture, gconstpointer data) {
  static struct {
    struct sandhost_settings known;
    char later[100000];
  } longer;
  char *error = NULL;
  (void)data;
  longer.known.size = sizeof longer;
  sandhost_open(NULL, &longer.known, &fixture->host, &error);
  g_assert_cmpstr(error, ==, NULL);
  sandhost_close(g_steal_pointer(&fixture->host));
  longer.later[sizeof longer.later - 1] = 1;
  assert_refused(sandhost_open(NULL, &longer.known, &fixture->host, &error),
                 SANDHOST_STATUS_INVALID, &error,
                 "settings->size is not one that this libsandhost knows");
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* Whether hooks or configuration say it, 256 bytes of a name are the most. */
static void test_names(Fixture *fixture, gconstpointer data) {
  (void)data;
  for (int length = 256; length <= 257; length++) {
    g_autofree char *name = g_strnfill((gsize)length, 'x');
    g_autofree char *session = g_strdup_printf(CONFIG("\"session_id\": \"%s\", "), name);
    g_autofree char *agent = g_strdup_printf(CONFIG("\"name\": \"%s\", "), name);
    const struct sandhost_hooks hooks = {.size = sizeof hooks, .session_id = name};
    char *error = NULL;
    sandhost_run *run = NULL;
    open_host(fixture, session);
    int status = sandhost_check(fixture->host, NULL, &error);
    g_assert_cmpstr(error, ==,
                    length > 256 ? "session_id must be at most 256 bytes long, and not blank"
                                 : NULL);
    g_assert_cmpint(status, ==, length > 256 ? SANDHOST_STATUS_CONFIG : SANDHOST_STATUS_OK);
    sandhost_free(g_steal_pointer(&error));
    sandhost_close(g_steal_pointer(&fixture->host));

    open_host(fixture, agent);
    sandhost_check(fixture->host, NULL, &error);
    g_assert_cmpstr(error, ==,
                    length > 256 ? "name must be at most 256 bytes long, and not blank" : NULL);
    sandhost_free(g_steal_pointer(&error));
    sandhost_close(g_steal_pointer(&fixture->host));

    open_host(fixture, CONFIG(""));
    status = sandhost_run_start(fixture->host, &hooks, &run, NULL);
    g_assert_cmpint(status, ==, length > 256 ? SANDHOST_STATUS_INVALID : SANDHOST_STATUS_OK);
    sandhost_run_end(run, NULL, NULL, NULL);
    sandhost_close(g_steal_pointer(&fixture->host));
  }
}

/* ---- Handlers ---------------------------------------------------------------------------------------------------- */

static int give_code(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  const Fixture *fixture = user;
  (void)argv;
  (void)ret_stderr;
  *ret_stdout = strdup("printed");
  return fixture->exit_code;
}

static void test_handler_names(Fixture *fixture, gconstpointer data) {
  static const char *const BAD[] = {"", "\xff"};
  char *error = NULL;
  (void)data;
  open_host(fixture, CONFIG(""));
  for (gsize i = 0; i < G_N_ELEMENTS(BAD); i++) {
    assert_refused(sandhost_add_test_command(fixture->host, BAD[i], give_code, fixture, &error),
                   SANDHOST_STATUS_INVALID, &error, "name must be valid UTF-8, and not empty");
  }
}

static void test_exit_codes(Fixture *fixture, gconstpointer data) {
  static const struct {
    int code;
    const char *told;
  } CASES[] = {
      {255, "\"exit_code\":255"},
      {999, "the handler of sh gave the exit code 999, which is none: it must be 0 to 255"},
      {-5, "the handler of sh gave the exit code -5, which is none: it must be 0 to 255"},
  };
  (void)data;
  open_host(fixture, CONFIG(""));
  sandhost_add_test_command(fixture->host, "sh", give_code, fixture, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    fixture->exit_code = CASES[i].code;
    g_autofree char *result = execute(fixture, 0);
    assert_tells(result, CASES[i].told);
    assert_tells(result, "\"status\":\"error\"");
  }
}

static int be_late(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  int code = give_code(user, argv, ret_stdout, ret_stderr);
  g_usleep(1100 * 1000);
  return code;
}

/* It is not interrupted, and its limit counts all the same. */
static void test_late(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, CONFIG(""));
  sandhost_add_test_command(fixture->host, "sh", be_late, fixture, NULL);
  g_autofree char *result = execute(fixture, 1);
  assert_tells(result, "\"status\":\"error\",\"data\":{\"exit_code\":137,\"stdout\":\"printed\"");
  assert_tells(result, "\"timed_out\":true");
  assert_tells(result, "\"message\":\"Command timed out after 1s\"");
  g_assert_null(strstr(result, "sandbox_lost"));
}

/* ---- A request --------------------------------------------------------------------------------------------------- */

/* What sandhost.h says of it: the value is kept, not its spelling; what JSON leaves open is refused. */
static void test_request(Fixture *fixture, gconstpointer data) {
  static const char *const GOOD[][2] = {
      {"{\n\"b\": 1.0, \"a\" : [1e2, \"\\u00e9\", 9223372036854775807]}",
       "{\"b\":1.0,\"a\":[1e2,\"\xc3\xa9\",9223372036854775807]}"},
      {" {} ", "{}"},
  };
  g_autofree char *down = g_strnfill(64, '[');
  g_autofree char *up = g_strnfill(64, ']');
  g_autofree char *deep = g_strdup_printf("{\"a\": %s%s}", down, up);
  const char *const BAD[] = {"{\"a\": 1, \"a\": 2}", "{\"a\": 18446744073709551616}", deep};
  (void)data;
  open_host(fixture, CONFIG(""));
  for (gsize i = 0; i < G_N_ELEMENTS(GOOD) + G_N_ELEMENTS(BAD); i++) {
    gboolean good = i < G_N_ELEMENTS(GOOD);
    const struct sandhost_hooks hooks = {
        .size = sizeof hooks, .request = good ? GOOD[i][0] : BAD[i - G_N_ELEMENTS(GOOD)]};
    sandhost_run *run = NULL;
    int status = sandhost_run_start(fixture->host, &hooks, &run, NULL);
    g_assert_cmpint(status, ==, good ? SANDHOST_STATUS_OK : SANDHOST_STATUS_INVALID);
    g_assert_cmpstr(sandhost_run_request(run), ==, good ? GOOD[i][1] : NULL);
    sandhost_run_end(run, NULL, NULL, NULL);
  }
}

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

/* A process near its limit is told so, and what to do. */
static void test_descriptors(Fixture *fixture, gconstpointer data) {
  struct rlimit before = {0};
  char *error = NULL;
  sandhost_run *run = NULL;
  (void)data;
  open_host(fixture, CONFIG(""));
  g_assert_cmpint(sandhost_check(fixture->host, NULL, NULL), ==, SANDHOST_STATUS_OK);
  int next = dup(0);
  close(next);
  g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &before), ==, 0);
  const struct rlimit none_left = {.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
  g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &none_left), ==, 0);
  int status = sandhost_run_start(fixture->host, NULL, &run, &error);
  g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &before), ==, 0);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_RECORD);
  g_autofree char *told = g_strdup_printf("; only %d files may be open at once: raise that", next);
  assert_tells(error, told);
  sandhost_free(error);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(NAME, FUNCTION)                                                                        \
  g_test_add("/api/arguments/" NAME, Fixture, NULL, set_up, FUNCTION, tear_down)
  ADD("empty", test_empty);
  ADD("half-member", test_half_member);
  ADD("much-longer", test_much_longer);
  ADD("names", test_names);
  ADD("handler-names", test_handler_names);
  ADD("exit-codes", test_exit_codes);
  ADD("late", test_late);
  ADD("request", test_request);
  ADD("descriptors", test_descriptors);
  return g_test_run();
}
