/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local-test.c: local_test as a plugin, so that the conformance suite can judge it.
 *
 * local_test is built in: its handlers come with the host's own call, which no other host has. Here each call of the
 * suite becomes one of the host's, with two handlers that really run their command, and its failure and facts are
 * handed back. Nothing else is between the suite and the table.
 *
 * The suite's struct sandhost_call is not the host's: it only goes back to the suite's functions.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provider/call.h"
#include "provider/provider-private.h"
#include "provider/text.h"

static const struct sandhost_host *suite;
static const struct sandhost_provider *judged;
static TestCommands *commands;

/* ---- Handlers -------------------------------------------------------------------------------------------------- */

static int run_words(const char *const *argv, char **ret_stdout, char **ret_stderr) {
  int status = 0;
  g_autoptr(GError) error = NULL;
  if (!g_spawn_sync(g_getenv("JUDGED_FOLDER"), (char **)(gsize)argv, NULL, G_SPAWN_SEARCH_PATH,
                    NULL, NULL, ret_stdout, ret_stderr, &status, &error)) {
    *ret_stderr = g_strdup(error->message);
    return 126;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int handle(void *user, const char *const *argv, char **ret_stdout, char **ret_stderr) {
  (void)user;
  return run_words(argv, ret_stdout, ret_stderr);
}

/* A script may be longer than an argument. */
static int handle_script(void *user, const char *const *argv, char **ret_stdout,
                         char **ret_stderr) {
  g_autofree char *file = NULL;
  (void)user;
  int fd = g_file_open_tmp("judged-XXXXXX", &file, NULL);
  if (fd < 0) {
    return 126;
  }
  close(fd);
  const char *const words[] = {"sh", file, NULL};
  int code =
      g_file_set_contents(file, argv[2], -1, NULL) ? run_words(words, ret_stdout, ret_stderr) : 126;
  g_unlink(file);
  return code;
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

typedef struct {
  struct sandhost_call *theirs;
  struct sandhost_call ours;
} Pair;

static struct sandhost_call *begin(Pair *pair, struct sandhost_call *theirs) {
  g_autoptr(Cancel) cancel = cancel_new();
  CallScope scope = {.deadline = suite->deadline(theirs), .cancel = cancel};
  if (suite->cancelled(theirs)) {
    cancel_raise(cancel);
  }
  *pair = (Pair){.theirs = theirs};
  call_init(&pair->ours);
  call_begin(&pair->ours, &scope, commands);
  return &pair->ours;
}

static int32_t end(Pair *pair, int32_t status) {
  static const guint32 FACTS[] = {SANDHOST_REPORT_REF, SANDHOST_REPORT_LOST};
  call_finish(&pair->ours);
  for (gsize i = 0; i < G_N_ELEMENTS(FACTS); i++) {
    const char *fact = call_reported(&pair->ours, FACTS[i]);
    if (fact) {
      suite->report(pair->theirs, FACTS[i], text_of(fact));
    }
  }
  if (status != SANDHOST_OK) {
    suite->fail(pair->theirs, status, text_of(pair->ours.message ? pair->ours.message : ""));
  }
  call_end(&pair->ours);
  return status;
}

/* ---- The table ------------------------------------------------------------------------------------------------- */

static int32_t judged_open(struct sandhost_call *call, const struct sandhost_open *request,
                           struct sandhost_instance **ret_instance) {
  Pair pair;
  return end(&pair, judged->open(begin(&pair, call), request, ret_instance));
}

static int32_t judged_create(struct sandhost_call *call, struct sandhost_instance *instance,
                             const struct sandhost_create *request,
                             struct sandhost_sandbox **ret_sandbox) {
  Pair pair;
  return end(&pair, judged->create(begin(&pair, call), instance, request, ret_sandbox));
}

static int32_t judged_execute(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_execute *request,
                              const struct sandhost_observer *observer,
                              struct sandhost_result *ret_result) {
  Pair pair;
  return end(&pair, judged->execute(begin(&pair, call), sandbox, request, observer, ret_result));
}

static int32_t judged_read_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                struct sandhost_path path, const struct sandhost_sink *sink) {
  Pair pair;
  return end(&pair, judged->read_file(begin(&pair, call), sandbox, path, sink));
}

static int32_t judged_write_file(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                                 struct sandhost_path path, uint32_t mode,
                                 const struct sandhost_source *source) {
  Pair pair;
  return end(&pair, judged->write_file(begin(&pair, call), sandbox, path, mode, source));
}

static int32_t judged_terminate(struct sandhost_call *call, struct sandhost_sandbox *sandbox) {
  Pair pair;
  return end(&pair, judged->terminate(begin(&pair, call), sandbox));
}

static int32_t judged_changes(struct sandhost_call *call, struct sandhost_sandbox *sandbox,
                              const struct sandhost_changes *request,
                              const struct sandhost_entry_sink *sink) {
  Pair pair;
  return end(&pair, judged->changes(begin(&pair, call), sandbox, request, sink));
}

static void judged_stop(void) {
  g_clear_pointer(&commands, test_commands_unref);
}

const struct sandhost_provider *sandhost_provider_1(const struct sandhost_host *host) {
  static struct sandhost_provider table;
  suite = host;
  /* Before there are threads: the thread sanitizer does not see the lock under which GLib keeps it. */
  (void)g_get_tmp_dir();
  judged = builtin_local_test_entry(&call_host_table);
  commands = test_commands_new();
  test_commands_add(commands, "sh", handle_script, NULL);
  test_commands_add(commands, "printf", handle, NULL);
  table = *judged;
  table.open = judged_open;
  table.create = judged_create;
  table.execute = judged_execute;
  table.read_file = judged_read_file;
  table.write_file = judged_write_file;
  table.terminate = judged_terminate;
  table.changes = judged_changes;
  table.stop = judged_stop;
  return &table;
}
