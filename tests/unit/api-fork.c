/* SPDX-License-Identifier: Apache-2.0 */
/* api-fork.c: what a child of a program with libsandhost has of its parent's hosts, which is nothing, and of its own. */
#include <glib.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remove-tree.h"
#include "sandhost.h"

#define CONFIG                                                                                     \
  "{\"governance_config\": {\"sandbox_config\": \"local_test\","                                   \
  " \"allow_test_sandbox_runtime\": true}}"
#define INHERITED                                                                                  \
  "the handle belongs to the process that this one was forked from; a child opens its own host"
#define SPOILT                                                                                     \
  "this process was forked from one whose host was in use: fork before the first host is "         \
  "opened, or execute a new program"
#define CHILDREN 20

/* ---- Fixture ---------------------------------------------------------------------------------------------------- */

typedef struct {
  char *folder;
  char *record;
  char *other; /* a record of a child's own */
  sandhost *host;
  gint stop; /* atomic */
} Fixture;

static void set_up(Fixture *fixture, gconstpointer data) {
  (void)data;
  fixture->folder = g_dir_make_tmp("sandhost-fork-XXXXXX", NULL);
  fixture->record = g_build_filename(fixture->folder, "record.db", NULL);
  fixture->other = g_build_filename(fixture->folder, "other.db", NULL);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_close(fixture->host);
  remove_tree(fixture->folder);
  g_free(fixture->other);
  g_free(fixture->record);
  g_free(fixture->folder);
}

static int say(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  (void)user;
  (void)ret_stderr;
  *ret_stdout = strdup(argv[2]);
  return 0;
}

/* Nothing here asserts: a child must not tell TAP. Returns a status. */
static int open_at(const char *record, sandhost **ret_host, char **ret_error) {
  const struct sandhost_settings settings = {.size = sizeof settings, .record = record};
  int status = sandhost_open(CONFIG, &settings, ret_host, ret_error);
  return status ? status : sandhost_add_test_command(*ret_host, "sh", say, NULL, ret_error);
}

static gboolean says_hello(sandhost_run *run) {
  char *result = NULL;
  gboolean ok = sandhost_execute(run, "hello", 0, &result, NULL) == SANDHOST_STATUS_OK &&
                strstr(result, "\"stdout\":\"hello\"");
  sandhost_free(result);
  return ok;
}

static gboolean works(sandhost *host) {
  sandhost_run *run = NULL;
  gboolean ok = sandhost_run_start(host, NULL, &run, NULL) == SANDHOST_STATUS_OK && says_hello(run);
  return run && sandhost_run_end(run, NULL, NULL, NULL) == SANDHOST_STATUS_OK && ok;
}

static void open_host(Fixture *fixture) {
  char *error = NULL;
  int status = open_at(fixture->record, &fixture->host, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_OK);
}

static sandhost_run *start(Fixture *fixture) {
  sandhost_run *run = NULL;
  char *error = NULL;
  sandhost_run_start(fixture->host, NULL, &run, &error);
  g_assert_cmpstr(error, ==, NULL);
  return run;
}

/* The line that went wrong is what the child exits with. */
#define CHECK(CONDITION)                                                                           \
  do {                                                                                             \
    if (!(CONDITION)) {                                                                            \
      g_printerr("%s:%d: %s\n", __FILE__, __LINE__, #CONDITION);                                   \
      _exit(1);                                                                                    \
    }                                                                                              \
  } while (0)
#define CHECK_REFUSED(CALL, TEXT)                                                                  \
  do {                                                                                             \
    char *error = NULL;                                                                            \
    CHECK((CALL) == SANDHOST_STATUS_STATE);                                                        \
    CHECK(g_strcmp0(error, TEXT) == 0);                                                            \
    sandhost_free(error);                                                                          \
  } while (0)

static void assert_went_well(pid_t child) {
  int status = 0;
  g_assert_cmpint(child, >, 0);
  g_assert_cmpint(waitpid(child, &status, 0), ==, child);
  g_assert_true(WIFEXITED(status));
  g_assert_cmpint(WEXITSTATUS(status), ==, 0);
}

/* ---- What is inherited ------------------------------------------------------------------------------------------- */

static const struct sandhost_provider *no_entry(const struct sandhost_host *host) {
  (void)host;
  return NULL;
}

static void check_host_is_refused(sandhost *host) {
  char *text = NULL;
  char *why = NULL;
  sandhost_run *run = NULL;
  CHECK(!sandhost_tool(host, &why) && strcmp(why, INHERITED) == 0);
  sandhost_free(why);
  CHECK_REFUSED(sandhost_check(host, NULL, &error), INHERITED);
  CHECK_REFUSED(register_sandbox_provider(host, "x", no_entry, &error), INHERITED);
  CHECK_REFUSED(register_sandbox_provider_file(host, "x", "/x.so", &error), INHERITED);
  CHECK_REFUSED(sandhost_add_test_command(host, "x", say, NULL, &error), INHERITED);
  CHECK_REFUSED(sandhost_run_start(host, NULL, &run, &error), INHERITED);
  CHECK_REFUSED(sandhost_resume(host, "run_00000000", NULL, &run, &error), INHERITED);
  CHECK_REFUSED(sandhost_approvals(host, NULL, 0, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_approve(host, "r", "a", "me", NULL, NULL, NULL, &error), INHERITED);
  CHECK_REFUSED(sandhost_deny(host, "r", "a", "me", NULL, NULL, &error), INHERITED);
  CHECK_REFUSED(sandhost_abandon(host, "r", NULL, NULL, NULL, &error), INHERITED);
  CHECK_REFUSED(sandhost_budgets(host, NULL, 0, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_grant(host, "r", NULL, "me", NULL, 0, NULL, &error), INHERITED);
  CHECK_REFUSED(sandhost_deny_budget(host, "r", NULL, "me", NULL, NULL, &error), INHERITED);
  CHECK_REFUSED(sandhost_trajectory(host, "run_00000000", &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_run_trajectory(host, "run_00000000", &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_runs(host, NULL, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_record_verify(host, NULL, &text, &error), INHERITED);
  CHECK(!text && !run);
}

static void check_run_is_refused(sandhost_run *run, const char *id) {
  char *text = NULL;
  CHECK_REFUSED(sandhost_execute(run, "hello", 0, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_execute_tagged(run, "t", "hello", 0, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_execute_stopped(run, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_run_waiting(run, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_run_charge(run, "model_calls", 1, SANDHOST_CHARGE_SPEND, &error),
                INHERITED);
  CHECK_REFUSED(sandhost_run_hold(run, "model_calls", 1, &text, &error), INHERITED);
  CHECK_REFUSED(sandhost_run_settle(run, "hold", 1, &error), INHERITED);
  CHECK(strcmp(sandhost_run_id(run), id) == 0);
  sandhost_cancel(run);
  CHECK_REFUSED(sandhost_run_end(run, NULL, NULL, &error), INHERITED);
  CHECK(!text);
}

/* A child is told so by each function, and the parent's run goes on as if there had been none. */
static void test_inherited(Fixture *fixture, gconstpointer data) {
  (void)data;
  char *text = NULL;
  open_host(fixture);
  sandhost_run *run = start(fixture);
  g_assert_true(says_hello(run));
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  pid_t child = fork();
  if (child == 0) {
    check_host_is_refused(fixture->host);
    check_run_is_refused(run, id);
    sandhost_close(fixture->host);
    _exit(0);
  }
  assert_went_well(child);
  g_assert_true(says_hello(run));
  g_assert_cmpint(sandhost_run_end(run, NULL, NULL, NULL), ==, SANDHOST_STATUS_OK);
  g_assert_cmpint(sandhost_trajectory(fixture->host, id, &text, NULL), ==, SANDHOST_STATUS_OK);
  g_assert_nonnull(strstr(text, "\"status\":\"completed\""));
  g_assert_null(strstr(text, "cancelled\":1"));
  sandhost_free(text);
}

/* ---- What a child has of its own --------------------------------------------------------------------------------- */

static void *use_record(void *user) {
  Fixture *fixture = user;
  while (!g_atomic_int_get(&fixture->stop)) {
    if (!works(fixture->host)) {
      return fixture;
    }
  }
  return NULL;
}

/* What hung: SQLite's table of locks is inherited with its locks taken. */
static void test_record_in_use(Fixture *fixture, gconstpointer data) {
  (void)data;
  pthread_t thread;
  void *failed = NULL;
  open_host(fixture);
  g_assert_true(works(fixture->host));
  g_assert_cmpint(pthread_create(&thread, NULL, use_record, fixture), ==, 0);
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    if (child == 0) {
      sandhost *own = NULL;
      CHECK_REFUSED(open_at(fixture->other, &own, &error), SPOILT);
      CHECK(!own);
      _exit(0);
    }
    assert_went_well(child);
  }
  g_atomic_int_set(&fixture->stop, 1);
  g_assert_cmpint(pthread_join(thread, &failed), ==, 0);
  g_assert_null(failed);
}

/* Forks where locks of the library are held: in the middle of a registration. */
static const struct sandhost_provider *fork_within(const struct sandhost_host *host) {
  (void)host;
  pid_t child = fork();
  if (child == 0) {
    sandhost *own = NULL;
    CHECK_REFUSED(open_at("/nonexistent", &own, &error), SPOILT);
    _exit(0);
  }
  assert_went_well(child);
  return NULL;
}

static void test_within(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture);
  g_assert_cmpint(register_sandbox_provider(fixture->host, "x", fork_within, NULL), <, 0);
  g_assert_true(works(fixture->host));
}

/* Nor may its own child. */
static void test_grandchild(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture);
  g_assert_true(works(fixture->host));
  pid_t child = fork();
  if (child == 0) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      sandhost *own = NULL;
      CHECK_REFUSED(open_at(fixture->other, &own, &error), SPOILT);
      CHECK_REFUSED(sandhost_check(fixture->host, NULL, &error), INHERITED);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
    _exit(0);
  }
  assert_went_well(child);
}

static void fork_and_work(const Fixture *fixture) {
  pid_t child = fork();
  if (child == 0) {
    sandhost *own = NULL;
    CHECK(open_at(fixture->other, &own, NULL) == SANDHOST_STATUS_OK);
    CHECK(works(own));
    sandhost_close(own);
    _exit(0);
  }
  assert_went_well(child);
}

/* A record that is closed leaves nothing behind. */
static void test_record_closed(Fixture *fixture, gconstpointer data) {
  (void)data;
#ifdef __SANITIZE_THREAD__
  g_test_skip("the thread sanitizer allows no thread in a child of a program that has some");
  return;
#endif
  open_host(fixture);
  g_assert_true(works(fixture->host));
  sandhost_close(g_steal_pointer(&fixture->host));
  fork_and_work(fixture);
}

/* A host that nothing was asked of has no record yet. */
static void test_record_not_open(Fixture *fixture, gconstpointer data) {
  (void)data;
  open_host(fixture);
  fork_and_work(fixture);
  g_assert_true(works(fixture->host));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(NAME, FUNCTION)                                                                        \
  g_test_add("/api/fork/" NAME, Fixture, NULL, set_up, FUNCTION, tear_down)
  ADD("record-not-open", test_record_not_open);
  ADD("record-closed", test_record_closed);
  ADD("within", test_within);
  ADD("inherited", test_inherited);
  ADD("record-in-use", test_record_in_use);
  ADD("grandchild", test_grandchild);
  return g_test_run();
}
