/* SPDX-License-Identifier: Apache-2.0 */
/* api.c: libsandhost as a program sees it, on local_test: no sandbox is needed here. embed.sh uses a real one. */
#include <glib.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>

#include "base/json.h"
#include "linked-provider.h"
#include "remove-tree.h"
#include "sandhost.h"

#define TEST_CONFIG(MORE)                                                                          \
  "{\"governance_config\": {\"sandbox_config\": \"local_test\","                                   \
  " \"allow_test_sandbox_runtime\": true" MORE "}}"

/* A rule that asks about every command. */
#define ASK                                                                                        \
  ", \"policy\": {\"mode\": \"permissive\", \"rules\": {\"ask\": [{\"rule_id\": \"look\","         \
  " \"capability\": \"process.exec\", \"reason\": \"look first\"}]}}"

/* ---- Fixture ---------------------------------------------------------------------------------------------------- */

typedef struct {
  char *folder;
  char *record;
  sandhost *host;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  guint inside; /* handlers that wait now */
  gboolean open;
  GString *seen; /* what hooks were told */
  const char *approver;
  int stop; /* what the output hook returns */
} Fixture;

static struct sandhost_settings settings_of(const Fixture *fixture) {
  return (struct sandhost_settings){.size = sizeof(struct sandhost_settings),
                                    .record = fixture->record};
}

static void set_up(Fixture *fixture, gconstpointer data) {
  (void)data;
  fixture->folder = g_dir_make_tmp("sandhost-api-XXXXXX", NULL);
  fixture->record = g_build_filename(fixture->folder, "record.db", NULL);
  fixture->seen = g_string_new(NULL);
  pthread_mutex_init(&fixture->lock, NULL);
  pthread_cond_init(&fixture->changed, NULL);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_close(fixture->host);
  remove_tree(fixture->folder);
  g_string_free(fixture->seen, TRUE);
  pthread_mutex_destroy(&fixture->lock);
  pthread_cond_destroy(&fixture->changed);
  g_free(fixture->record);
  g_free(fixture->folder);
}

static void open_host(Fixture *fixture, const char *config) {
  const struct sandhost_settings settings = settings_of(fixture);
  char *error = NULL;
  int status = sandhost_open(config, &settings, &fixture->host, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_OK);
}

/* Frees the error and forgets it. */
static void assert_refused(int status, int wanted, char **error, const char *text) {
  g_assert_cmpstr(*error, ==, text);
  g_assert_cmpint(status, ==, wanted);
  sandhost_free(g_steal_pointer(error));
}

static sandhost_run *start(Fixture *fixture, const struct sandhost_hooks *hooks) {
  sandhost_run *run = NULL;
  char *error = NULL;
  int status = sandhost_run_start(fixture->host, hooks, &run, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_OK);
  return run;
}

static JsonObject *parse(char *take_text) {
  g_autoptr(GError) error = NULL;
  JsonObject *object = json_parse("the text", take_text, strlen(take_text), &error);
  g_assert_no_error(error);
  sandhost_free(take_text);
  return object;
}

static JsonObject *execute(sandhost_run *run, const char *command, int timeout) {
  char *result = NULL;
  char *error = NULL;
  int status = sandhost_execute(run, command, timeout, &result, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_OK);
  return parse(result);
}

static void end(sandhost_run *run) {
  g_assert_cmpint(sandhost_run_end(run, NULL, NULL, NULL), ==, SANDHOST_STATUS_OK);
}

static void assert_message(JsonObject *result, const char *text) {
  g_assert_cmpstr(json_get_text(result, "status"), ==, "error");
  g_assert_cmpstr(json_get_text(result, "message"), ==, text);
}

/* ---- Handlers and hooks ----------------------------------------------------------------------------------------- */

static int say(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  (void)user;
  *ret_stdout = strdup(argv[2]);
  *ret_stderr = strdup("a warning");
  return 3;
}

/* Returns when both commands are in their handlers, which no command that waits for another one would see. */
static int meet(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  Fixture *fixture = user;
  (void)ret_stderr;
  pthread_mutex_lock(&fixture->lock);
  fixture->inside++;
  pthread_cond_broadcast(&fixture->changed);
  while (fixture->inside < 2) {
    pthread_cond_wait(&fixture->changed, &fixture->lock);
  }
  pthread_mutex_unlock(&fixture->lock);
  *ret_stdout = strdup(argv[2]);
  return 0;
}

/* Returns when the test opens. */
static int wait_open(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  Fixture *fixture = user;
  (void)argv;
  (void)ret_stdout;
  (void)ret_stderr;
  pthread_mutex_lock(&fixture->lock);
  fixture->inside++;
  pthread_cond_broadcast(&fixture->changed);
  while (!fixture->open) {
    pthread_cond_wait(&fixture->changed, &fixture->lock);
  }
  fixture->inside--;
  pthread_cond_broadcast(&fixture->changed);
  pthread_mutex_unlock(&fixture->lock);
  return 0;
}

static void wait_inside(Fixture *fixture, guint wanted) {
  pthread_mutex_lock(&fixture->lock);
  while (fixture->inside != wanted) {
    pthread_cond_wait(&fixture->changed, &fixture->lock);
  }
  pthread_mutex_unlock(&fixture->lock);
}

static void open_gate(Fixture *fixture) {
  pthread_mutex_lock(&fixture->lock);
  fixture->open = TRUE;
  pthread_cond_broadcast(&fixture->changed);
  pthread_mutex_unlock(&fixture->lock);
}

static const char *on_ask(void *user, const struct sandhost_ask *ask) {
  Fixture *fixture = user;
  g_assert_cmpuint(ask->size, ==, sizeof *ask);
  g_assert_true(g_str_has_prefix(ask->run_id, "run_"));
  g_string_append_printf(fixture->seen, "%s|%s|%s", ask->capability, ask->risk, ask->reason);
  g_autoptr(JsonObject) request = parse(strdup(ask->request));
  g_assert_cmpstr(json_get_text(request, "capability"), ==, ask->capability);
  return fixture->approver;
}

static int on_output(void *user, const char *command, int stream, const void *data, size_t length) {
  Fixture *fixture = user;
  g_string_append_printf(fixture->seen, "[%s %d %.*s]", command, stream, (int)length,
                         (const char *)data);
  return fixture->stop;
}

static struct sandhost_hooks hooks_of(Fixture *fixture) {
  return (struct sandhost_hooks){.size = sizeof(struct sandhost_hooks), .user = fixture};
}

static void handle(Fixture *fixture, sandhost_test_handler handler) {
  char *error = NULL;
  int status = sandhost_add_test_command(fixture->host, "sh", handler, fixture, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_OK);
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

static void test_version(Fixture *fixture, gconstpointer data) {
  (void)fixture;
  (void)data;
  g_assert_cmpstr(sandhost_version(), ==, "0.1.0");
}

static void test_bad_json(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  int status = sandhost_open("[]", NULL, &fixture->host, &error);
  assert_refused(status, SANDHOST_STATUS_CONFIG, &error, "the configuration must be an object");
  g_assert_null(fixture->host);
  status = sandhost_open("{", NULL, &fixture->host, &error);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_CONFIG);
  g_assert_true(g_str_has_prefix(error, "the configuration is not valid JSON: "));
  g_assert_null(strchr(error, '\n'));
  sandhost_free(error);
}

static void test_null(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  assert_refused(sandhost_open(NULL, NULL, NULL, &error), SANDHOST_STATUS_INVALID, &error,
                 "ret_host must not be NULL");
  assert_refused(sandhost_check(NULL, NULL, &error), SANDHOST_STATUS_INVALID, &error,
                 "host must not be NULL");
  assert_refused(sandhost_execute(NULL, "true", 0, NULL, &error), SANDHOST_STATUS_INVALID, &error,
                 "run, command and ret_result must not be NULL");
  g_assert_cmpint(sandhost_run_end(NULL, NULL, NULL, NULL), ==, SANDHOST_STATUS_INVALID);
  g_assert_null(sandhost_tool(NULL, NULL));
  g_assert_null(sandhost_run_id(NULL));
  sandhost_cancel(NULL);
  sandhost_close(NULL);
  sandhost_free(NULL);
  (void)fixture;
}

static void test_sizes(Fixture *fixture, gconstpointer data) {
  (void)data;
  static const char TEXT[] = "settings->size is not one that this libsandhost knows";
  char *error = NULL;
  struct {
    struct sandhost_settings known;
    const char *later;
  } longer = {.known = {.size = sizeof longer}};
  struct sandhost_settings unset = {0};
  assert_refused(sandhost_open(NULL, &unset, &fixture->host, &error), SANDHOST_STATUS_INVALID,
                 &error, TEXT);
  longer.later = "x";
  assert_refused(sandhost_open(NULL, &longer.known, &fixture->host, &error),
                 SANDHOST_STATUS_INVALID, &error, TEXT);
  unset.size = 4097;
  assert_refused(sandhost_open(NULL, &unset, &fixture->host, &error), SANDHOST_STATUS_INVALID,
                 &error, TEXT);
  longer.later = NULL;
  g_assert_cmpint(sandhost_open(NULL, &longer.known, &fixture->host, NULL), ==, SANDHOST_STATUS_OK);
}

/* ---- The check -------------------------------------------------------------------------------------------------- */

static void test_check(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *warnings = NULL;
  open_host(fixture, TEST_CONFIG(""));
  g_assert_cmpint(sandhost_check(fixture->host, &warnings, NULL), ==, SANDHOST_STATUS_OK);
  g_assert_cmpstr(warnings, ==, "[]");
  sandhost_free(warnings);
}

static void test_check_refuses(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  open_host(fixture, "{\"governance_config\": {\"sandbox_config\": \"dokcer\"}}");
  int status = sandhost_check(fixture->host, NULL, &error);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_CONFIG);
  g_assert_true(g_str_has_prefix(
      error, "governance_config.sandbox_config.provider must be a registered sandbox provider: "));
  sandhost_free(error);
}

static void test_settings_are_checked(Fixture *fixture, gconstpointer data) {
  (void)data;
  struct sandhost_settings settings = settings_of(fixture);
  char *error = NULL;
  settings.workspace = "/nonexistent";
  g_assert_cmpint(sandhost_open(TEST_CONFIG(""), &settings, &fixture->host, NULL), ==, 0);
  assert_refused(sandhost_check(fixture->host, NULL, &error), SANDHOST_STATUS_CONFIG, &error,
                 "settings->workspace /nonexistent is not a folder");
  sandhost_close(g_steal_pointer(&fixture->host));

  settings = settings_of(fixture);
  settings.provider = "dokcer";
  g_assert_cmpint(sandhost_open(NULL, &settings, &fixture->host, NULL), ==, 0);
  g_assert_cmpint(sandhost_check(fixture->host, NULL, &error), ==, SANDHOST_STATUS_CONFIG);
  g_assert_true(
      g_str_has_prefix(error, "settings->provider must be a registered sandbox provider: "));
  sandhost_free(error);
}

static void test_tool(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, TEST_CONFIG(""));
  g_autoptr(JsonObject) tool = parse(sandhost_tool(fixture->host, NULL));
  g_assert_cmpstr(json_get_text(tool, "name"), ==, "execute");
}

static void test_no_tool(Fixture *fixture, gconstpointer data) {
  (void)data;
  static const char WHY[] = "the provider none runs no commands; choose another one";
  char *error = NULL;
  sandhost_run *run = NULL;
  open_host(fixture, "{\"governance_config\": {\"sandbox_config\": \"none\"}}");
  g_assert_null(sandhost_tool(fixture->host, &error));
  g_assert_cmpstr(error, ==, WHY);
  sandhost_free(error);
  assert_refused(sandhost_run_start(fixture->host, NULL, &run, &error), SANDHOST_STATUS_CONFIG,
                 &error, WHY);
  g_assert_null(run);
}

/* ---- Providers -------------------------------------------------------------------------------------------------- */

#define LINKED_CONFIG                                                                              \
  "{\"enable_workspace_files\": false,"                                                            \
  " \"governance_config\": {\"sandbox_config\": {\"provider\": \"linked\"}}}"

/* The name is refused until it is registered; then the same host works. */
static void test_linked_provider(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, LINKED_CONFIG);
  g_assert_cmpint(sandhost_check(fixture->host, NULL, NULL), ==, SANDHOST_STATUS_CONFIG);
  char *error = NULL;
  int status = register_sandbox_provider(fixture->host, "linked", linked_entry, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_OK);

  sandhost_run *run = start(fixture, NULL);
  g_autoptr(JsonObject) result = execute(run, "anything", 0);
  g_assert_cmpstr(json_get_text(json_get(result, "data"), "stdout"), ==, "linked in");
  end(run);
}

static void test_linked_provider_has_its_own_name(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  open_host(fixture, NULL);
  assert_refused(register_sandbox_provider(fixture->host, "other", linked_entry, &error),
                 SANDHOST_STATUS_CONFIG, &error,
                 "provider other refused: its name 'linked' differs from the registered 'other'");
}

static void test_provider_file(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  open_host(fixture, "{\"governance_config\": {\"sandbox_config\": \"mine\"}}");
  assert_refused(register_sandbox_provider_file(fixture->host, "mine", "mine.so", &error),
                 SANDHOST_STATUS_CONFIG, &error,
                 "the file of provider 'mine' must be an absolute path: mine.so");
  g_assert_cmpint(
      register_sandbox_provider_file(fixture->host, "mine", "/nonexistent/mine.so", NULL), ==,
      SANDHOST_STATUS_OK);
  g_assert_cmpint(sandhost_check(fixture->host, NULL, &error), <, 0);
  g_assert_true(g_str_has_prefix(error, "provider file /nonexistent/mine.so refused: "));
  sandhost_free(error);
}

static void test_too_late(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  open_host(fixture, TEST_CONFIG(""));
  g_assert_cmpint(sandhost_check(fixture->host, NULL, NULL), ==, SANDHOST_STATUS_OK);
  assert_refused(register_sandbox_provider(fixture->host, "linked", linked_entry, &error),
                 SANDHOST_STATUS_STATE, &error,
                 "a provider must be registered before the host is checked or used");
}

/* ---- Commands --------------------------------------------------------------------------------------------------- */

static void test_handler(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, TEST_CONFIG(""));
  handle(fixture, say);
  sandhost_run *run = start(fixture, NULL);
  g_autoptr(JsonObject) result = execute(run, "hello", 0);
  JsonObject *inside = json_get(result, "data");
  assert_message(result, "Command exited with 3");
  g_assert_cmpstr(json_get_text(result, "run_id"), ==, sandhost_run_id(run));
  g_assert_true(g_str_has_prefix(json_get_text(result, "trace_id"), "trace_"));
  g_assert_cmpint(json_get_int(inside, "exit_code", -1), ==, 3);
  g_assert_cmpstr(json_get_text(inside, "stdout"), ==, "hello");
  g_assert_cmpstr(json_get_text(inside, "stderr"), ==, "a warning");
  end(run);
}

static void test_no_call(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, TEST_CONFIG(""));
  handle(fixture, say);
  sandhost_run *run = start(fixture, NULL);
  g_autoptr(JsonObject) empty = execute(run, "  ", 0);
  g_autoptr(JsonObject) negative = execute(run, "true", -1);
  g_autoptr(JsonObject) bytes = execute(run, "echo \xff", 0);
  assert_message(empty, "The command is empty.");
  assert_message(negative, "timeout must be a whole number of seconds between 1 and 180");
  assert_message(bytes, "command must be valid UTF-8");
  end(run);
}

static void test_output(Fixture *fixture, gconstpointer data) {
  (void)data;
  struct sandhost_hooks hooks = hooks_of(fixture);
  hooks.output = on_output;
  open_host(fixture, TEST_CONFIG(""));
  handle(fixture, say);
  sandhost_run *run = start(fixture, &hooks);
  json_object_put(execute(run, "hello", 0));
  g_assert_cmpstr(fixture->seen->str, ==, "[hello 1 hello][hello 2 a warning]");
  end(run);
}

static void test_output_stops(Fixture *fixture, gconstpointer data) {
  (void)data;
  struct sandhost_hooks hooks = hooks_of(fixture);
  hooks.output = on_output;
  fixture->stop = 1;
  open_host(fixture, TEST_CONFIG(""));
  handle(fixture, say);
  sandhost_run *run = start(fixture, &hooks);
  g_autoptr(JsonObject) result = execute(run, "hello", 0);
  assert_message(result, "Tool execution cancelled");
  g_assert_cmpstr(json_get_text(result, "error_type"), ==, "cancelled");
  end(run);
}

static void test_answer(Fixture *fixture, gconstpointer data) {
  (void)data;
  struct sandhost_hooks hooks = hooks_of(fixture);
  hooks.answer = on_ask;
  fixture->approver = "ada";
  open_host(fixture, TEST_CONFIG(ASK));
  handle(fixture, say);
  sandhost_run *run = start(fixture, &hooks);
  g_autoptr(JsonObject) result = execute(run, "hello", 0);
  assert_message(result, "Command exited with 3");
  g_assert_cmpstr(fixture->seen->str, ==, "process.exec|high|look first");

  char *text = NULL;
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  end(run);
  g_assert_cmpint(sandhost_trajectory(fixture->host, id, &text, NULL), ==, SANDHOST_STATUS_OK);
  g_assert_nonnull(strstr(text, "\"approved_by\":\"ada\""));
  sandhost_free(text);
}

/* A name that sandhost_approve would refuse answers nothing, and is in no record. */
static void test_unfit_answer(Fixture *fixture, gconstpointer data) {
  struct sandhost_hooks hooks = hooks_of(fixture);
  hooks.answer = on_ask;
  fixture->approver = data;
  open_host(fixture, TEST_CONFIG(ASK));
  handle(fixture, say);
  sandhost_run *run = start(fixture, &hooks);
  g_autoptr(JsonObject) result = execute(run, "hello", 0);
  const char *message = json_get_text(result, "error");
  g_assert_nonnull(strstr(message ? message : json_object_to_json_string(result),
                          "The answer does not count: approver must be "));
  g_assert_null(json_get(result, "data"));
  char *text = NULL;
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  end(run);
  g_assert_cmpint(sandhost_trajectory(fixture->host, id, &text, NULL), ==, SANDHOST_STATUS_OK);
  g_assert_null(strstr(text, "mallory"));
  sandhost_free(text);
}

static void test_no_answer(Fixture *fixture, gconstpointer data) {
  (void)data;
  struct sandhost_hooks hooks = hooks_of(fixture);
  hooks.answer = on_ask;
  fixture->approver = data; /* NULL or "" */
  open_host(fixture, TEST_CONFIG(ASK));
  handle(fixture, say);
  sandhost_run *run = start(fixture, &hooks);
  g_autoptr(JsonObject) result = execute(run, "hello", 0);
  g_assert_cmpstr(json_get_text(result, "governance_error_code"), ==, "approval_required");
  g_assert_null(json_get(result, "data"));
  end(run);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

static gpointer execute_hello(gpointer run) {
  return execute(run, "hello", 0);
}

static void test_side_by_side(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, TEST_CONFIG(""));
  handle(fixture, meet);
  sandhost_run *run = start(fixture, NULL);
  GThread *threads[] = {g_thread_new("one", execute_hello, run),
                        g_thread_new("two", execute_hello, run)};
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    g_autoptr(JsonObject) result = g_thread_join(threads[i]);
    g_assert_cmpstr(json_get_text(result, "status"), ==, "success");
  }
  end(run);
}

static int on_output_count(void *user, const char *command, int stream, const void *data,
                           size_t length) {
  Fixture *fixture = user;
  (void)command;
  (void)stream;
  (void)data;
  (void)length;
  pthread_mutex_lock(&fixture->lock);
  fixture->inside++;
  pthread_cond_broadcast(&fixture->changed);
  pthread_mutex_unlock(&fixture->lock);
  return 0;
}

static gpointer execute_wait(gpointer run) {
  return execute(run, "wait", 0);
}

static void test_cancel(Fixture *fixture, gconstpointer data) {
  (void)data;
  struct sandhost_hooks hooks = hooks_of(fixture);
  hooks.output = on_output_count;
  open_host(fixture, LINKED_CONFIG);
  g_assert_cmpint(register_sandbox_provider(fixture->host, "linked", linked_entry, NULL), ==,
                  SANDHOST_STATUS_OK);
  sandhost_run *run = start(fixture, &hooks);
  GThread *thread = g_thread_new("one", execute_wait, run);
  wait_inside(fixture, 1);
  sandhost_cancel(run);
  g_autoptr(JsonObject) result = g_thread_join(thread);
  assert_message(result, "Tool execution cancelled");
  g_autoptr(JsonObject) later = execute(run, "hello", 0);
  assert_message(later, "Tool execution cancelled");
  g_assert_cmpuint(fixture->inside, ==, 1); /* the later one never began */
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  end(run);

  char *text = NULL;
  g_assert_cmpint(sandhost_trajectory(fixture->host, id, &text, NULL), ==, SANDHOST_STATUS_OK);
  g_autoptr(JsonObject) trajectory = parse(text);
  g_assert_cmpstr(json_get_text(trajectory, "status"), ==, "cancelled");
}

static gpointer end_in_thread(gpointer run) {
  end(run);
  return NULL;
}

static void test_end_waits(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, TEST_CONFIG(""));
  handle(fixture, wait_open);
  sandhost_run *run = start(fixture, NULL);
  GThread *thread = g_thread_new("one", execute_hello, run);
  wait_inside(fixture, 1);
  GThread *ending = g_thread_new("end", end_in_thread, run);
  open_gate(fixture);
  g_autoptr(JsonObject) result = g_thread_join(thread);
  g_assert_cmpstr(json_get_text(result, "status"), ==, "success");
  g_thread_join(ending);
}

/* ---- Ends ------------------------------------------------------------------------------------------------------- */

static void test_close_before_end(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture, TEST_CONFIG(""));
  handle(fixture, say);
  sandhost_run *run = start(fixture, NULL);
  sandhost_close(g_steal_pointer(&fixture->host));
  g_autoptr(JsonObject) result = execute(run, "hello", 0);
  assert_message(result, "Command exited with 3");
  end(run);
}

static void test_status(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  char *text = NULL;
  open_host(fixture, TEST_CONFIG(""));
  sandhost_run *run = start(fixture, NULL);
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  assert_refused(sandhost_run_end(run, "done", "because", &error), SANDHOST_STATUS_INVALID, &error,
                 "status must be completed, failed or cancelled; the run is recorded as failed");
  g_assert_cmpint(sandhost_trajectory(fixture->host, id, &text, NULL), ==, SANDHOST_STATUS_OK);
  g_autoptr(JsonObject) trajectory = parse(text);
  g_assert_cmpstr(json_get_text(trajectory, "status"), ==, "failed");
}

static void test_no_such_run(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *error = NULL;
  char *text = NULL;
  open_host(fixture, NULL);
  assert_refused(sandhost_trajectory(fixture->host, "run_00000000", &text, &error),
                 SANDHOST_STATUS_NOT_FOUND, &error, "No run run_00000000");
  g_assert_null(text);
}

static void test_no_record(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_run *run = NULL;
  g_assert_true(g_file_set_contents(fixture->record, "no database at all, but text", -1, NULL));
  open_host(fixture, TEST_CONFIG(""));
  g_assert_cmpint(sandhost_run_start(fixture->host, NULL, &run, NULL), ==, SANDHOST_STATUS_RECORD);
  g_assert_null(run);
}

#define ADD(path, function) ADD_WITH(path, NULL, function)
#define ADD_WITH(path, data, function)                                                             \
  g_test_add("/api/" path, Fixture, data, set_up, function, tear_down)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("version", test_version);
  ADD("open/bad-json", test_bad_json);
  ADD("open/null", test_null);
  ADD("open/sizes", test_sizes);
  ADD("check/good", test_check);
  ADD("check/refuses", test_check_refuses);
  ADD("check/settings", test_settings_are_checked);
  ADD("check/tool", test_tool);
  ADD("check/no-tool", test_no_tool);
  ADD("provider/linked", test_linked_provider);
  ADD("provider/name", test_linked_provider_has_its_own_name);
  ADD("provider/file", test_provider_file);
  ADD("provider/too-late", test_too_late);
  ADD("execute/handler", test_handler);
  ADD("execute/no-call", test_no_call);
  ADD("execute/output", test_output);
  ADD("execute/output-stops", test_output_stops);
  ADD("execute/answer", test_answer);
  ADD_WITH("execute/answer-of-two-lines", "mallory\nada", test_unfit_answer);
  ADD_WITH("execute/answer-of-bytes", "mallory\xff", test_unfit_answer);
  ADD("execute/no-answer", test_no_answer);
  ADD_WITH("execute/empty-answer", "", test_no_answer);
  ADD("threads/side-by-side", test_side_by_side);
  ADD("threads/cancel", test_cancel);
  ADD("threads/end-waits", test_end_waits);
  ADD("end/close-before-end", test_close_before_end);
  ADD("end/status", test_status);
  ADD("record/no-such-run", test_no_such_run);
  ADD("record/broken", test_no_record);
  return g_test_run();
}
