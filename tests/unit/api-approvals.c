/* SPDX-License-Identifier: Apache-2.0 */
/* api-approvals.c: runs of a program that wait, are decided and go on, as the program sees them; on local_test. A second
 * host on the same record stands for the next process. */
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>

#include "record/approvals.h"
#include "remove-tree.h"
#include "sandhost.h"

/* Everything about commands asks, the rest is allowed. */
#define CONFIG                                                                                     \
  "{\"governance_config\": {\"sandbox_config\": \"local_test\","                                   \
  " \"allow_test_sandbox_runtime\": true, \"policy\": {\"mode\": \"permissive\", \"rules\":"       \
  " {\"ask\": [{\"rule_id\": \"look\", \"capability\": \"process.exec\","                          \
  " \"reason\": \"look first\"}]}}}}"
#define FREE                                                                                       \
  "{\"governance_config\": {\"sandbox_config\": \"local_test\","                                   \
  " \"allow_test_sandbox_runtime\": true}}"

typedef struct {
  char *folder;
  char *record;
  sandhost *host;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  GString *ran; /* the commands, each ended by ; */
  guint
      together; /* how many commands have to be in their handlers before one comes back; 0: none */
  guint inside;
  GString *asked;      /* what check_approver was told */
  const char *refusal; /* what it says; "": nothing */
} Fixture;

static int handle(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  Fixture *fixture = user;
  (void)ret_stderr;
  pthread_mutex_lock(&fixture->lock);
  g_string_append_printf(fixture->ran, "%s;", argv[2]);
  fixture->inside++;
  pthread_cond_broadcast(&fixture->changed);
  while (fixture->inside < fixture->together) {
    pthread_cond_wait(&fixture->changed, &fixture->lock);
  }
  pthread_mutex_unlock(&fixture->lock);
  *ret_stdout = strdup(argv[2]);
  return 0;
}

static int check_approver(void *user, const struct sandhost_decision *decision,
                          char **ret_refusal) {
  Fixture *fixture = user;
  g_assert_null(*ret_refusal);
  g_string_append_printf(fixture->asked, "%s %s %s|", decision->decision, decision->approver,
                         decision->note ? decision->note : "-");
  g_assert_nonnull(strstr(decision->approval, "\"capability\":\"process.exec\""));
  g_assert_true(g_str_has_prefix(decision->run_id, "run_"));
  g_assert_true(g_str_has_prefix(decision->approval_id, "approval_"));
  if (decision->arguments) {
    g_string_append(fixture->asked, decision->arguments);
  }
  if (!fixture->refusal) {
    return 0;
  }
  *ret_refusal = *fixture->refusal ? strdup(fixture->refusal) : NULL;
  return 1;
}

static sandhost *open_host(Fixture *fixture, const char *config, gboolean checks) {
  const struct sandhost_settings settings = {.size = sizeof settings,
                                             .record = fixture->record,
                                             .check_approver = checks ? check_approver : NULL,
                                             .user = fixture};
  sandhost *host = NULL;
  char *error = NULL;
  sandhost_open(config, &settings, &host, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpint(sandhost_add_test_command(host, "sh", handle, fixture, NULL), ==, 0);
  return host;
}

static void set_up(Fixture *fixture, gconstpointer config) {
  fixture->folder = g_dir_make_tmp("sandhost-api-approvals-XXXXXX", NULL);
  fixture->record = g_build_filename(fixture->folder, "record.db", NULL);
  fixture->ran = g_string_new(NULL);
  fixture->asked = g_string_new(NULL);
  pthread_mutex_init(&fixture->lock, NULL);
  pthread_cond_init(&fixture->changed, NULL);
  fixture->host = open_host(fixture, config ? config : CONFIG, FALSE);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
  (void)data;
  sandhost_close(fixture->host);
  remove_tree(fixture->folder);
  g_string_free(fixture->ran, TRUE);
  g_string_free(fixture->asked, TRUE);
  pthread_mutex_destroy(&fixture->lock);
  pthread_cond_destroy(&fixture->changed);
  g_free(fixture->record);
  g_free(fixture->folder);
}

/* ---- Short ways -------------------------------------------------------------------------------------------------- */

static void assert_refused(int status, int wanted, char **error, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
static void assert_refused(int status, int wanted, char **error, const char *format, ...) {
  va_list words;
  va_start(words, format);
  g_autofree char *text = g_strdup_vprintf(format, words);
  va_end(words);
  g_assert_cmpstr(*error, ==, text);
  g_assert_cmpint(status, ==, wanted);
  sandhost_free(g_steal_pointer(error));
}

/* Takes both; the status must be OK. */
static JsonObject *parse(int status, char *take_text, char *take_error) {
  g_autoptr(GError) error = NULL;
  g_assert_cmpstr(take_error, ==, NULL);
  g_assert_cmpint(status, ==, SANDHOST_STATUS_OK);
  JsonObject *object = json_parse("the text", take_text, strlen(take_text), &error);
  g_assert_no_error(error);
  sandhost_free(take_text);
  return object;
}

/* What the function gives with these arguments, all but the last two. */
#define PARSE(function, ...)                                                                       \
  ({                                                                                               \
    char *given = NULL;                                                                            \
    char *refusal = NULL;                                                                          \
    int outcome = function(__VA_ARGS__, &given, &refusal);                                         \
    parse(outcome, given, refusal);                                                                \
  })

static sandhost_run *start(sandhost *host, const char *request) {
  const struct sandhost_hooks hooks = {.size = sizeof hooks, .request = request};
  sandhost_run *run = NULL;
  char *error = NULL;
  sandhost_run_start(host, &hooks, &run, &error);
  g_assert_cmpstr(error, ==, NULL);
  return run;
}

static sandhost_run *resume(sandhost *host, const char *id) {
  sandhost_run *run = NULL;
  char *error = NULL;
  sandhost_resume(host, id, NULL, &run, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_cmpstr(sandhost_run_id(run), ==, id);
  return run;
}

static void end(sandhost_run *run) {
  char *error = NULL;
  sandhost_run_end(run, NULL, NULL, &error);
  g_assert_cmpstr(error, ==, NULL);
}

static JsonObject *at(JsonObject *array, gsize index) {
  g_assert_cmpuint(index, <, json_object_array_length(array));
  return json_object_array_get_idx(array, index);
}

static void assert_json(JsonObject *value, const char *wanted) {
  g_autofree char *text = json_text(value);
  g_assert_cmpstr(text, ==, wanted);
}

/* A run that waits for the command, ended. Both ids are owned. */
static char *wait_with(Fixture *fixture, const char *command, char **ret_approval) {
  sandhost_run *run = start(fixture->host, "{\"task\": 7}");
  char *id = g_strdup(sandhost_run_id(run));
  g_autoptr(JsonObject) result = PARSE(sandhost_execute, run, command, 9);
  JsonObject *approvals = json_get(result, "approvals");
  g_assert_cmpstr(json_get_text(result, "status"), ==, "awaiting_approval");
  g_assert_true(json_object_object_get_ex(result, "response", NULL));
  g_assert_cmpuint(json_object_array_length(approvals), ==, 1);
  *ret_approval = g_strdup(json_get_text(at(approvals, 0), "approval_id"));
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "");
  return id;
}

static JsonObject *stopped(sandhost_run *run) {
  return PARSE(sandhost_execute_stopped, run);
}

static void approve(sandhost *host, const char *id, const char *approval) {
  char *error = NULL;
  sandhost_approve(host, id, approval, "alice", NULL, NULL, NULL, &error);
  g_assert_cmpstr(error, ==, NULL);
}

/* ---- A whole life ------------------------------------------------------------------------------------------------ */

static void assert_story(sandhost *host, const char *id, const char *trace) {
  g_autoptr(JsonObject) story = PARSE(sandhost_run_trajectory, host, id);
  g_autoptr(JsonObject) last = PARSE(sandhost_trajectory, host, id);
  JsonObject *segments = json_get(story, "segments");
  const char *first_trace = json_get_text(at(segments, 0), "trace_id");
  g_autoptr(JsonObject) first = PARSE(sandhost_trajectory, host, first_trace);
  JsonObject *calls = json_get(story, "tool_calls");
  g_assert_cmpuint(json_object_array_length(segments), ==, 2);
  g_assert_cmpstr(json_get_text(at(segments, 1), "trace_id"), ==, trace);
  g_assert_cmpstr(json_get_text(last, "trace_id"), ==, trace);
  g_assert_cmpstr(json_get_text(last, "status"), ==, "completed");
  g_assert_cmpstr(json_get_text(first, "status"), ==, "suspended");
  assert_json(json_get(json_get(story, "totals"), "tool_calls"),
              "{\"total\":1,\"by_outcome\":{\"success\":1}}");
  g_assert_cmpuint(json_object_array_length(calls), ==, 1);
  g_assert_cmpstr(json_get_text(at(json_get(story, "approvals"), 0), "status"), ==, "used");
}

static void test_life(Fixture *fixture, gconstpointer data) {
  g_autofree char *approval = NULL;
  g_autofree char *id = wait_with(fixture, "hello", &approval);
  char *error = NULL;
  sandhost_run *run = NULL;
  (void)data;
  assert_refused(sandhost_resume(fixture->host, id, NULL, &run, &error), SANDHOST_STATUS_STATE,
                 &error, "Run %s is still waiting for approval: %s", id, approval);
  g_autoptr(JsonObject) waiting = PARSE(sandhost_approvals, fixture->host, NULL, 0);
  g_assert_cmpuint(json_object_array_length(waiting), ==, 1);
  g_assert_cmpstr(json_get_text(at(waiting, 0), "run_id"), ==, id);
  g_assert_cmpstr(json_get_text(at(waiting, 0), "run_status"), ==, "awaiting_approval");
  g_assert_false(json_object_object_get_ex(at(waiting, 0), "asked", NULL));

  sandhost_close(fixture->host); /* the next process */
  fixture->host = open_host(fixture, CONFIG, FALSE);
  g_autoptr(JsonObject) decided =
      PARSE(sandhost_approve, fixture->host, id, approval, "alice", "fine", NULL);
  g_assert_cmpstr(json_get_text(decided, "status"), ==, "approved");
  g_assert_cmpstr(json_get_text(decided, "note"), ==, "fine");
  run = resume(fixture->host, id);
  g_assert_cmpstr(sandhost_run_request(run), ==, "{\"task\":7}");
  g_autoptr(JsonObject) left = stopped(run);
  g_autofree char *trace = g_strdup(json_get_text(left, "trace_id"));
  JsonObject *result = at(json_get(left, "results"), 0);
  g_assert_cmpstr(json_get_text(result, "status"), ==, "success");
  g_assert_cmpstr(json_get_text(json_get(result, "data"), "stdout"), ==, "hello");
  assert_json(json_get(result, "arguments"), "{\"command\":\"hello\",\"timeout\":9}");
  g_assert_true(g_str_has_prefix(json_get_text(result, "tool_call_id"), "call_"));
  assert_json(json_get(left, "notice"), "null");
  g_autoptr(JsonObject) nothing = stopped(run);
  assert_json(json_get(nothing, "results"), "[]");
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "hello;");
  assert_story(fixture->host, id, trace);
  assert_refused(sandhost_resume(fixture->host, id, NULL, &run, &error), SANDHOST_STATUS_STATE,
                 &error, "Run %s is completed; only a waiting or stopped run can resume", id);
}

static void test_deny(Fixture *fixture, gconstpointer data) {
  g_autofree char *approval = NULL;
  g_autofree char *id = wait_with(fixture, "hello", &approval);
  char *error = NULL;
  (void)data;
  sandhost_deny(fixture->host, id, approval, "carol", "not today", NULL, &error);
  g_assert_cmpstr(error, ==, NULL);
  sandhost_run *run = resume(fixture->host, id);
  g_autoptr(JsonObject) left = stopped(run);
  JsonObject *result = at(json_get(left, "results"), 0);
  g_assert_cmpstr(json_get_text(result, "message"), ==, "Denied by carol: not today");
  g_assert_cmpstr(json_get_text(result, "governance_error_code"), ==, "policy_denied");
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "");
}

static void test_edit(Fixture *fixture, gconstpointer data) {
  g_autofree char *approval = NULL;
  g_autofree char *id = wait_with(fixture, "hello", &approval);
  char *error = NULL;
  (void)data;
  sandhost_approve(fixture->host, id, approval, "alice", NULL, "{\"command\": \"other\"}", NULL,
                   &error);
  g_assert_cmpstr(error, ==, NULL);
  sandhost_run *run = resume(fixture->host, id);
  g_autoptr(JsonObject) left = stopped(run);
  g_assert_cmpstr(fixture->ran->str, ==, "other;");
  assert_json(json_get(at(json_get(left, "results"), 0), "arguments"), "{\"command\":\"other\"}");
  end(run);
}

/* A resumed run may wait again, and a run that waits begins nothing. */
static void test_again(Fixture *fixture, gconstpointer data) {
  g_autofree char *approval = NULL;
  g_autofree char *id = wait_with(fixture, "one", &approval);
  (void)data;
  approve(fixture->host, id, approval);
  sandhost_run *run = resume(fixture->host, id);
  json_object_put(stopped(run));
  g_autoptr(JsonObject) second = PARSE(sandhost_execute, run, "two", 0);
  g_autofree char *other =
      g_strdup(json_get_text(at(json_get(second, "approvals"), 0), "approval_id"));
  g_autoptr(JsonObject) third = PARSE(sandhost_execute, run, "three", 0);
  g_assert_cmpstr(json_get_text(third, "message"), ==,
                  "The run waits for an approval; no command is begun.");
  end(run);
  approve(fixture->host, id, other);
  run = resume(fixture->host, id);
  g_autoptr(JsonObject) left = stopped(run);
  g_assert_cmpstr(json_get_text(left, "notice"), ==,
                  "The sandbox was reset when the run resumed: files outside the workspace, "
                  "installed packages and running processes are gone.");
  end(run);
  g_assert_cmpstr(fixture->ran->str, ==, "one;two;");
}

static void test_cancelled(Fixture *fixture, gconstpointer data) {
  sandhost_run *run = start(fixture->host, "{}");
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  (void)data;
  json_object_put(PARSE(sandhost_execute, run, "hello", 0));
  sandhost_cancel(run);
  end(run);
  g_autoptr(JsonObject) runs = PARSE(sandhost_runs, fixture->host, "{\"status\": \"cancelled\"}");
  g_assert_cmpstr(json_get_text(at(runs, 0), "run_id"), ==, id);
  g_autoptr(JsonObject) waiting = PARSE(sandhost_approvals, fixture->host, NULL, 0);
  assert_json(waiting, "[]");
}

/* What the program calls a call comes back with its result, whichever process runs it. */
static void test_tag(Fixture *fixture, gconstpointer data) {
  sandhost_run *run = start(fixture->host, "{}");
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  g_autofree char *blank = g_strnfill(1025, ' ');
  char *error = NULL;
  char *text = NULL;
  (void)data;
  assert_refused(sandhost_execute_tagged(run, blank, "hello", 0, &text, &error),
                 SANDHOST_STATUS_INVALID, &error, "tag must be valid UTF-8 of at most 1024 bytes");
  assert_refused(sandhost_execute_tagged(run, "\xff", "hello", 0, &text, &error),
                 SANDHOST_STATUS_INVALID, &error, "tag must be valid UTF-8 of at most 1024 bytes");
  g_autoptr(JsonObject) result = PARSE(sandhost_execute_tagged, run, "toolu_\"1", "hello", 0);
  const char *approval = json_get_text(at(json_get(result, "approvals"), 0), "approval_id");
  g_assert_cmpstr(json_get_text(result, "tag"), ==, "toolu_\"1");
  end(run);
  approve(fixture->host, id, approval);
  run = resume(fixture->host, id);
  g_autoptr(JsonObject) left = stopped(run);
  g_assert_cmpstr(json_get_text(at(json_get(left, "results"), 0), "tag"), ==, "toolu_\"1");
  end(run);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void test_decide_refuses(Fixture *fixture, gconstpointer data) {
  static const char NOBODY[] = "run_00000000000000000000000000000000";
  g_autofree char *approval = NULL;
  g_autofree char *id = wait_with(fixture, "hello", &approval);
  sandhost *host = fixture->host;
  char *error = NULL;
  (void)data;
  assert_refused(sandhost_approve(host, id, approval, NULL, NULL, NULL, NULL, &error),
                 SANDHOST_STATUS_INVALID, &error, "approver is required");
  assert_refused(sandhost_deny(host, id, approval, " ", NULL, NULL, &error),
                 SANDHOST_STATUS_INVALID, &error, "approver is required");
  assert_refused(sandhost_approve(host, id, approval, "a", NULL, "[]", NULL, &error),
                 SANDHOST_STATUS_INVALID, &error, "arguments must be a JSON object");
  assert_refused(sandhost_approve(host, id, approval, "a", NULL, "{\"shell\": 1}", NULL, &error),
                 SANDHOST_STATUS_INVALID, &error,
                 "arguments has the unknown key 'shell'; execute takes command and timeout");
  assert_refused(sandhost_approve(host, NOBODY, approval, "a", NULL, NULL, NULL, &error),
                 SANDHOST_STATUS_NOT_FOUND, &error, "No run %s", NOBODY);
  assert_refused(sandhost_approve(host, id, "approval_0", "a", NULL, NULL, NULL, &error),
                 SANDHOST_STATUS_NOT_FOUND, &error, "No approval approval_0 on run %s", id);
  assert_refused(sandhost_approve(host, id, NULL, "a", NULL, NULL, NULL, &error),
                 SANDHOST_STATUS_INVALID, &error, "host, run_id and approval_id must not be NULL");
  approve(host, id, approval);
  assert_refused(sandhost_deny(host, id, approval, "bob", NULL, NULL, &error),
                 SANDHOST_STATUS_STATE, &error, "Approval %s is already approved", approval);
}

static void test_approver(Fixture *fixture, gconstpointer data) {
  g_autofree char *approval = NULL;
  g_autofree char *id = wait_with(fixture, "hello", &approval);
  char *error = NULL;
  (void)data;
  sandhost_close(fixture->host);
  sandhost *host = fixture->host = open_host(fixture, CONFIG, TRUE);
  fixture->refusal = "not on call";
  assert_refused(sandhost_approve(host, id, approval, "mallory", "now", NULL, NULL, &error),
                 SANDHOST_STATUS_DENIED, &error, "Approver mallory is refused: not on call");
  fixture->refusal = "";
  assert_refused(sandhost_deny(host, id, approval, "mallory", NULL, NULL, &error),
                 SANDHOST_STATUS_DENIED, &error, "Approver mallory is refused: no reason is given");
  g_autoptr(JsonObject) waiting = PARSE(sandhost_approvals, host, id, 0);
  g_assert_cmpuint(json_object_array_length(waiting), ==, 1);
  fixture->refusal = NULL;
  json_object_put(
      PARSE(sandhost_approve, host, id, approval, "alice", NULL, "{\"command\": \"other\"}"));
  g_assert_cmpstr(fixture->asked->str, ==,
                  "approve mallory now|deny mallory -|approve alice -|{\"command\":\"other\"}");
  /* Nobody is asked about what cannot be decided any more. */
  assert_refused(sandhost_deny(host, id, approval, "bob", NULL, NULL, &error),
                 SANDHOST_STATUS_STATE, &error, "Approval %s is already approved", approval);
  g_assert_null(strstr(fixture->asked->str, "bob"));
}

static void test_abandon(Fixture *fixture, gconstpointer data) {
  g_autofree char *approval = NULL;
  g_autofree char *id = wait_with(fixture, "hello", &approval);
  char *error = NULL;
  char *status = NULL;
  sandhost_run *run = NULL;
  (void)data;
  assert_refused(sandhost_abandon(fixture->host, id, "done", NULL, NULL, &error),
                 SANDHOST_STATUS_INVALID, &error, "status must be cancelled, failed or timeout");
  assert_refused(sandhost_abandon(fixture->host, "run_00000000", NULL, NULL, NULL, &error),
                 SANDHOST_STATUS_NOT_FOUND, &error, "No run run_00000000");
  for (int i = 0; i < 2; i++) { /* the second time it stays as it is */
    sandhost_abandon(fixture->host, id, i ? NULL : "timeout", NULL, &status, &error);
    g_assert_cmpstr(error, ==, NULL);
    g_assert_cmpstr(status, ==, "timeout");
    sandhost_free(g_steal_pointer(&status));
  }
  assert_refused(sandhost_resume(fixture->host, id, NULL, &run, &error), SANDHOST_STATUS_STATE,
                 &error, "Run %s is timeout; only a waiting or stopped run can resume", id);
}

static void test_request(Fixture *fixture, gconstpointer data) {
  struct sandhost_hooks hooks = {.size = sizeof hooks, .request = "[]"};
  g_autofree char *blank = g_strnfill((1 << 20) + 1, ' ');
  char *error = NULL;
  sandhost_run *run = NULL;
  (void)data;
  assert_refused(sandhost_run_start(fixture->host, &hooks, &run, &error), SANDHOST_STATUS_INVALID,
                 &error, "hooks->request must be a JSON object");
  hooks.request = blank;
  assert_refused(sandhost_run_start(fixture->host, &hooks, &run, &error), SANDHOST_STATUS_INVALID,
                 &error, "hooks->request is longer than 1 MiB");
  /* Hooks of a program that does not know of it: nothing waits. */
  hooks.size = offsetof(struct sandhost_hooks, request);
  hooks.request = "{}";
  sandhost_run_start(fixture->host, &hooks, &run, &error);
  g_assert_cmpstr(error, ==, NULL);
  g_assert_null(sandhost_run_request(run));
  g_autoptr(JsonObject) result = PARSE(sandhost_execute, run, "hello", 0);
  g_assert_cmpstr(json_get_text(result, "governance_error_code"), ==, "approval_required");
  end(run);
  g_assert_null(sandhost_run_request(NULL));
}

/* ---- A process that died ------------------------------------------------------------------------------------------ */

#define DEAD "run_00000000000000000000000000000001"

/* A run as it is found once its process is gone. */
static void leave_run(const Fixture *fixture, const char *surface, const char *events_text) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = record_open(fixture->record, &error);
  g_assert_no_error(error);
  g_autoptr(JsonObject) header = json_object_new_object();
  g_autoptr(JsonObject) request = json_object_new_object();
  g_autoptr(JsonObject) events = json_parse("events", events_text, strlen(events_text), &error);
  json_add_text(request, "surface", surface);
  const RecordLife life = {.owner = "owner_1", .lease_seconds = 60, .request = request};
  record_begin_life(record, DEAD, "trace_1", header, &life, &error);
  record_append_many(record, DEAD, events, &error);
  record_end_life(record, DEAD, "owner_1", "interrupted", NULL, &error);
  g_assert_no_error(error);
}

#define CALL(ID, COMMAND)                                                                          \
  "{\"type\": \"tool_call_started\", \"metadata\": {\"tool_call_id\": \"" ID "\"},"                \
  " \"payload\": {\"arguments\": {\"command\": \"" COMMAND "\"}}}"
#define ABOUT(TYPE, ID) "{\"type\": \"" TYPE "\", \"metadata\": {\"tool_call_id\": \"" ID "\"}}"

/* What was never begun runs, all at once; what had begun is not repeated; what is known is not told again. */
static void test_dead(Fixture *fixture, gconstpointer data) {
  (void)data;
  leave_run(
      fixture, "api",
      "[" CALL("call_1", "begun") "," ABOUT("sandbox_exec_started", "call_1") "," CALL(
          "call_2", "a") "," CALL("call_3", "b") "," CALL("call_4",
                                                          "known") "," ABOUT("tool_call_completed",
                                                                             "call_4") "]");
  fixture->together = 2;
  sandhost_run *run = resume(fixture->host, DEAD);
  g_assert_null(sandhost_run_request(run));
  g_autoptr(JsonObject) left = stopped(run);
  JsonObject *results = json_get(left, "results");
  g_assert_cmpuint(json_object_array_length(results), ==, 3);
  g_assert_cmpstr(json_get_text(at(results, 0), "tool_call_id"), ==, "call_1");
  g_assert_cmpstr(json_get_text(at(results, 0), "error_type"), ==, "unknown_outcome");
  g_assert_cmpstr(json_get_text(json_get(at(results, 1), "data"), "stdout"), ==, "a");
  g_assert_cmpstr(json_get_text(json_get(at(results, 2), "data"), "stdout"), ==, "b");
  end(run);
  g_autoptr(JsonObject) story = PARSE(sandhost_run_trajectory, fixture->host, DEAD);
  JsonObject *calls = json_get(story, "tool_calls");
  g_assert_cmpuint(json_object_array_length(calls), ==, 4);
  g_assert_cmpstr(json_get_text(at(calls, 0), "outcome"), ==, "unknown");
}

static void test_not_ours(Fixture *fixture, gconstpointer data) {
  char *error = NULL;
  sandhost_run *run = NULL;
  (void)data;
  leave_run(fixture, "session", "[]");
  assert_refused(
      sandhost_resume(fixture->host, DEAD, NULL, &run, &error), SANDHOST_STATUS_STATE, &error,
      "Run " DEAD " was begun by sandhost session; sandhost resume " DEAD " goes on with it");
}

/* One of several that go on with a run wins, and the others are told. */
static void test_live(Fixture *fixture, gconstpointer data) {
  char *error = NULL;
  sandhost_run *other = NULL;
  (void)data;
  leave_run(fixture, "api", "[]");
  sandhost_run *run = resume(fixture->host, DEAD);
  assert_refused(sandhost_resume(fixture->host, DEAD, NULL, &other, &error), SANDHOST_STATUS_STATE,
                 &error, "Run " DEAD " is running in this process (its heartbeat is current)");
  end(run);
}

/* ---- The record --------------------------------------------------------------------------------------------------- */

static void test_runs(Fixture *fixture, gconstpointer data) {
  static const char *const BAD[][2] = {
      {"[]", "filter must be a JSON object"},
      {"{\"stauts\": 1}",
       "filter has unknown keys: stauts. Allowed keys: limit, provider, since, status"},
      {"{\"limit\": 0}", "filter.limit must be between 1 and 100000, got 0"},
      {"{\"since\": \"yesterday\"}", "filter.since must be a time such as 2026-01-31T12:00:00Z"},
  };
  char *error = NULL;
  char *text = NULL;
  (void)data;
  for (gsize i = 0; i < G_N_ELEMENTS(BAD); i++) {
    assert_refused(sandhost_runs(fixture->host, BAD[i][0], &text, &error), SANDHOST_STATUS_INVALID,
                   &error, "%s", BAD[i][1]);
  }
  g_assert_cmpint(sandhost_runs(fixture->host, "{\"status\": \"x\"}", &text, NULL), ==,
                  SANDHOST_STATUS_INVALID);
  end(start(fixture->host, NULL));
  sandhost_run *run = start(fixture->host, NULL);
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  end(run);
  g_autoptr(JsonObject) all = PARSE(sandhost_runs, fixture->host, NULL);
  g_autoptr(JsonObject) one =
      PARSE(sandhost_runs, fixture->host,
            "{\"limit\": 1, \"provider\": \"local_test\", \"since\": \"2020-01-01T00:00:00Z\"}");
  g_autoptr(JsonObject) none =
      PARSE(sandhost_runs, fixture->host, "{\"since\": \"2200-01-01T00:00:00Z\"}");
  g_assert_cmpuint(json_object_array_length(all), ==, 2);
  g_assert_cmpuint(json_object_array_length(one), ==, 1);
  g_assert_cmpstr(json_get_text(at(one, 0), "run_id"), ==, id);
  assert_json(none, "[]");
}

static void test_verify(Fixture *fixture, gconstpointer data) {
  sandhost_run *run = start(fixture->host, NULL);
  g_autofree char *id = g_strdup(sandhost_run_id(run));
  char *error = NULL;
  char *text = NULL;
  (void)data;
  end(run);
  g_autoptr(JsonObject) all = PARSE(sandhost_record_verify, fixture->host, NULL);
  g_autoptr(JsonObject) one = PARSE(sandhost_record_verify, fixture->host, id);
  assert_json(json_get(all, "whole"), "true");
  assert_json(json_get(all, "faults"), "[]");
  assert_json(json_get(one, "whole"), "true");
  assert_json(json_get(one, "head"), "null");
  g_assert_cmpstr(json_get_text(at(json_get(one, "runs"), 0), "state"), ==, "whole");
  assert_refused(sandhost_record_verify(fixture->host, "run_00000000", &text, &error),
                 SANDHOST_STATUS_NOT_FOUND, &error, "No run run_00000000");
  assert_refused(sandhost_trajectory(fixture->host, "trace_0", &text, &error),
                 SANDHOST_STATUS_NOT_FOUND, &error, "No trace trace_0");
}

#define ADD(path, function) ADD_WITH(path, NULL, function)
#define ADD_WITH(path, config, function)                                                           \
  g_test_add("/api-approvals/" path, Fixture, config, set_up, function, tear_down)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("life", test_life);
  ADD("deny", test_deny);
  ADD("edit", test_edit);
  ADD("again", test_again);
  ADD("cancelled", test_cancelled);
  ADD("tag", test_tag);
  ADD("refuses/decision", test_decide_refuses);
  ADD("refuses/approver", test_approver);
  ADD("refuses/request", test_request);
  ADD("abandon", test_abandon);
  ADD_WITH("dead/calls", FREE, test_dead);
  ADD_WITH("dead/not-ours", FREE, test_not_ours);
  ADD_WITH("dead/live", FREE, test_live);
  ADD("record/runs", test_runs);
  ADD("record/verify", test_verify);
  return g_test_run();
}
