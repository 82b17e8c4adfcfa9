/* SPDX-License-Identifier: Apache-2.0 */
/* run-approver.c: the program that is asked about an approver: what it is told, what its end means, and where it may
 * lie. The function of a program that embeds sandhost is asked in api-approvals.c. */
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "run/approver.h"

#define UNKNOWN_END "its exit code is lost, since SIGCHLD is ignored or handled elsewhere"
#define LONG 600 /* seconds that nothing here needs */

typedef struct {
  char *root;
  char *program;
} Fixture;

static void set_up(Fixture *fixture, gconstpointer data) {
  (void)data;
  fixture->root = g_dir_make_tmp("sandhost-approver-XXXXXX", NULL);
  fixture->program = g_build_filename(fixture->root, "check", NULL);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
  const char *const words[] = {"rm", "-rf", fixture->root, NULL};
  (void)data;
  g_assert_true(g_spawn_sync(NULL, (char **)(gsize)words, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                             NULL, NULL, NULL, NULL));
  g_free(fixture->root);
  g_free(fixture->program);
}

static void write_program(const char *path, const char *script) {
  g_autofree char *text = g_strconcat("#!/bin/sh\n", script, "\n", NULL);
  g_assert_true(g_file_set_contents(path, text, -1, NULL));
  g_assert_cmpint(g_chmod(path, 0755), ==, 0);
}

static gboolean ask(const Fixture *fixture, const char *script, gint64 seconds, GError **error) {
  const char *const argv[] = {fixture->program, "an argument", NULL};
  g_autoptr(JsonObject) question = json_object_new_object();
  json_add_text(question, "approver", "alice");
  json_add_text(question, "note", "two\nlines");
  write_program(fixture->program, script);
  return approver_ask_program(argv, question, seconds, NULL, error);
}

static void assert_no(const Fixture *fixture, const char *script, const char *text) {
  g_autoptr(GError) error = NULL;
  g_assert_false(ask(fixture, script, LONG, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED);
  g_assert_cmpstr(error->message, ==, text);
}

static void test_yes(Fixture *fixture, gconstpointer data) {
  g_autoptr(GError) error = NULL;
  g_autofree char *heard = g_build_filename(fixture->root, "heard", NULL);
  g_autofree char *script =
      g_strdup_printf("{ cat; pwd; echo \"$1\"; } > '%s'; echo ignored >&2", heard);
  g_autofree char *content = NULL;
  (void)data;
  g_assert_true(ask(fixture, script, LONG, &error));
  g_assert_no_error(error);
  g_assert_true(g_file_get_contents(heard, &content, NULL, NULL));
  g_assert_cmpstr(content, ==,
                  "{\"approver\":\"alice\",\"note\":\"two\\nlines\"}\n/\nan argument\n");
}

static void test_no(Fixture *fixture, gconstpointer data) {
  (void)data;
  assert_no(fixture, "echo ' not on call '; echo ' not on call ' >&2; echo more >&2; exit 3",
            "not on call");
  g_autofree char *silent = g_strdup_printf("%s ended with 3", fixture->program);
  assert_no(fixture, "exit 3", silent);
  assert_no(fixture, "cat >/dev/null; echo no end >&2; exit 1", "no end");
}

/* Neither a question that is not read, nor a flood, nor a child that stays keeps us. */
static void test_rude(Fixture *fixture, gconstpointer data) {
  g_autoptr(GError) error = NULL;
  (void)data;
  g_autofree char *bounded = g_strnfill(4096, 'x');
  assert_no(fixture, "head -c 1000000 /dev/zero | tr '\\0' 'x' >&2; exit 1", bounded);
  assert_no(fixture, "sleep 1000 & echo no >&2; exit 1", "no");
  g_assert_true(ask(fixture, "sleep 1000 & exit 0", LONG, &error));
  g_assert_no_error(error);
}

static void assert_cannot(const Fixture *fixture, const char *script, gint64 seconds,
                          const char *why) {
  g_autoptr(GError) error = NULL;
  g_autofree char *text = g_strdup_printf(
      "the approver check %s could not be asked: %s; nothing was decided", fixture->program, why);
  g_assert_false(ask(fixture, script, seconds, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED);
  g_assert_cmpstr(error->message, ==, text);
}

static void test_no_answer(Fixture *fixture, gconstpointer data) {
  (void)data;
  assert_cannot(fixture, "kill -TERM $$", LONG, "it was ended by signal 15");
  /* With everything it started. */
  g_autofree char *child = g_build_filename(fixture->root, "child", NULL);
  g_autofree char *script = g_strdup_printf(
      "sleep 1000 & echo $! > '%s.new'; mv '%s.new' '%s'; wait", child, child, child);
  assert_cannot(fixture, script, 2, "it gave no answer within 2 seconds");
  g_autofree char *pid = NULL;
  g_assert_true(g_file_get_contents(child, &pid, NULL, NULL));
  g_autofree char *status = g_strdup_printf("/proc/%s/cmdline", g_strstrip(pid));
  gint64 deadline = clock_deadline(60 * CLOCK_SECOND);
  g_autofree char *left = NULL;
  do { /* a killed one is on the list until its new parent looks; its command line is empty then */
    g_clear_pointer(&left, g_free);
    gsize length = 0;
    if (!g_file_get_contents(status, &left, &length, NULL) || length == 0) {
      return;
    }
    g_usleep(10000);
  } while (clock_now() < deadline);
  g_assert_not_reached();
}

/* ---- The place --------------------------------------------------------------------------------------------------- */

static JsonObject *stored_at(const Fixture *fixture, const char *program, const char *argument) {
  JsonObject *stored = json_object_new_object();
  const char *const argv[] = {program, argument, NULL};
  g_autofree char *agents = g_build_filename(fixture->root, "agents", NULL);
  const char *const folders[] = {agents, NULL};
  json_add_take(stored, "argv", json_from_strv(argv));
  json_add_text(stored, "project_root", fixture->root);
  json_add_take(stored, "agent_dirs", json_from_strv(folders));
  return stored;
}

static void assert_place(const Fixture *fixture, const char *program, const char *argument,
                         const char *named, const char *why) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) stored = stored_at(fixture, program, argument);
  gboolean ok = approver_check_place(stored, &error);
  if (!why) {
    g_assert_no_error(error);
    g_assert_true(ok);
    return;
  }
  g_autofree char *text = g_strdup_printf("governance_config.approver_check: %s: %s", named, why);
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==, text);
  g_assert_false(ok);
}

static char *in_folder(const Fixture *fixture, const char *folder) {
  g_autofree char *path = g_build_filename(fixture->root, folder, NULL);
  g_assert_cmpint(g_mkdir_with_parents(path, 0755), ==, 0);
  char *program = g_build_filename(path, "check", NULL);
  write_program(program, "exit 0");
  return program;
}

static void test_place(Fixture *fixture, gconstpointer data) {
  static const char AGENTS[] = "it is inside an agent-writable directory";
  g_autofree char *good = in_folder(fixture, "ops");
  g_autofree char *agents = in_folder(fixture, "agents");
  g_autofree char *named = in_folder(fixture, "workspace/ops");
  g_autofree char *link = g_build_filename(fixture->root, "link", NULL);
  g_autofree char *way = g_build_filename(fixture->root, "agents", "link", NULL);
  g_autofree char *missing = g_build_filename(fixture->root, "missing", NULL);
  (void)data;
  g_assert_cmpint(symlink(agents, link), ==, 0);
  g_assert_cmpint(symlink(good, way), ==, 0);
  assert_place(fixture, good, "an argument", NULL, NULL);
  assert_place(fixture, "/bin/sh", good, NULL, NULL);
  assert_place(fixture, agents, NULL, agents, AGENTS);
  assert_place(fixture, named, NULL, named, AGENTS);
  assert_place(fixture, link, NULL, link, AGENTS);
  assert_place(fixture, way, NULL, way, AGENTS);
  assert_place(fixture, "/bin/sh", agents, agents, AGENTS);
  assert_place(fixture, missing, NULL, missing, "No such file or directory");
  assert_place(fixture, fixture->root, NULL, fixture->root, "it is not a regular file");
  g_assert_cmpint(g_chmod(good, 0757), ==, 0);
  assert_place(fixture, good, NULL, good, "it is writable by others (mode 0757)");
  g_assert_cmpint(g_chmod(good, 0644), ==, 0);
  assert_place(fixture, good, NULL, good, "it cannot be executed");
}

/* Outside the project, in the machine's own folder for anybody's files. */
static void test_outside(Fixture *fixture, gconstpointer data) {
  g_autofree char *program = in_folder(fixture, "ops");
  g_autofree char *root = g_build_filename(fixture->root, "project", NULL);
  g_autoptr(JsonObject) stored = stored_at(fixture, program, NULL);
  g_autoptr(GError) error = NULL;
  (void)data;
  json_add_text(stored, "project_root", root);
  gboolean in_tmp = strstr(fixture->root, "/tmp/") != NULL;
  g_assert_cmpint(approver_check_place(stored, &error), ==, !in_tmp);
}

static gboolean refuse_all(void *user, JsonObject *question, char **ret_refusal) {
  (void)question;
  *ret_refusal = g_strdup(user);
  return FALSE;
}

static void test_hook(void) {
  g_autoptr(JsonObject) question = json_object_new_object();
  json_add_text(question, "approver", "mallory");
  const ApproverHook says = {.ask = refuse_all, .user = (void *)(gsize) "un\033known"};
  const ApproverHook silent = {.ask = refuse_all};
  g_autoptr(GError) said = NULL;
  g_autoptr(GError) nothing = NULL;
  g_assert_true(approver_allows(NULL, NULL, question, NULL));
  g_assert_false(approver_allows(NULL, &says, question, &said));
  g_assert_cmpstr(said->message, ==, "Approver mallory is refused: un known");
  g_assert_error(said, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED);
  g_assert_false(approver_allows(NULL, &silent, question, &nothing));
  g_assert_cmpstr(nothing->message, ==, "Approver mallory is refused: no reason is given");
}

/* A process may have been started with its children's ends ignored: then nobody can tell yes from no. */
static void test_unknown_end(Fixture *fixture, gconstpointer data) {
  (void)data;
  signal(SIGCHLD, SIG_IGN);
  assert_cannot(fixture, "exit 1", LONG, UNKNOWN_END);
  assert_cannot(fixture, "exit 0", LONG, UNKNOWN_END);
  signal(SIGCHLD, SIG_DFL);
}

#define ADD(path, function)                                                                        \
  g_test_add("/approver/" path, Fixture, NULL, set_up, function, tear_down)

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  ADD("program/yes", test_yes);
  ADD("program/no", test_no);
  ADD("program/rude", test_rude);
  ADD("program/no-answer", test_no_answer);
  ADD("program/unknown-end", test_unknown_end);
  ADD("place/rule", test_place);
  ADD("place/outside", test_outside);
  g_test_add_func("/approver/hook", test_hook);
  return g_test_run();
}
