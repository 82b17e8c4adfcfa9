/* SPDX-License-Identifier: Apache-2.0 */
/* run.c: from the command line's options to a run that commands can be executed in, and back. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/shown.h"
#include "cli/cli.h"
#include "cli/last-words.h"
#include "config/check.h"
#include "provider/file-check.h"

/* ---- Signals: the one thing that must be global ------------------------------------------------------------ */

static Cancel *volatile signalled;
static volatile sig_atomic_t caught;

static void on_signal(int number) {
  caught = number;
  if (signalled) {
    cancel_raise(signalled);
  }
}

int cli_caught_signal(void) {
  return caught;
}

void cli_install_signals(Cancel *cancel) {
  static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = on_signal};
  signalled = cancel;
  for (gsize i = 0; i < G_N_ELEMENTS(SIGNALS); i++) {
    sigaction(SIGNALS[i], &action, NULL);
  }
}

/* ---- Configuration ------------------------------------------------------------------------------------------- */

/* "bubblewrap, none": what could be used at once, as far as can be told without loading it. Owned. */
static char *installed(ProviderRegistry *registry) {
  g_auto(GStrv) names = NULL;
  g_auto(GStrv) files = NULL;
  provider_registry_list(registry, &names, &files);
  g_autoptr(GPtrArray) usable = g_ptr_array_new();
  for (gsize i = 0; names[i]; i++) {
    if (!g_path_is_absolute(files[i]) || file_may_load(files[i])) {
      g_ptr_array_add(usable, names[i]);
    }
  }
  g_ptr_array_add(usable, NULL);
  return check_join((const char *const *)usable->pdata, ", ");
}

static gboolean choose_provider(Config *config, const char *name, ProviderRegistry *registry,
                                const char *const *known, GError **error) {
  if (!g_strv_contains(known, name) && !g_hash_table_contains(config->registered, name)) {
    g_autofree char *list = check_join(known, ", ");
    g_autofree char *here = installed(registry);
    g_set_error(
        error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
        "--provider must be a registered sandbox provider: %s; installed here: %s; a file of "
        "your own is used through SANDHOST_PLUGIN_PATH (the folder of sandhost-NAME.so) or "
        "register_sandbox_provider of a configuration, and proven by sandhost provider test "
        "FILE",
        list, here);
    return FALSE;
  }
  if (config->provider && config->provider_options && strcmp(config->provider, name) != 0) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "--provider %s cannot be used with the options of %s in "
                "governance_config.sandbox_config.options",
                name, config->provider);
    return FALSE;
  }
  g_free(config->provider);
  config->provider = g_strdup(name);
  return TRUE;
}

static gboolean choose_workspace(Config *config, const char *folder, GError **error) {
  if (!g_file_test(folder, G_FILE_TEST_IS_DIR)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "--workspace %s is not a folder",
                folder);
    return FALSE;
  }
  g_free(config->files_dir);
  config->files_dir = g_canonicalize_filename(folder, NULL);
  return TRUE;
}

/* A name that the command line puts over the configuration's. */
static gboolean choose_name(const char *option, const char *text, char **name, GError **error) {
  if (text && !text[strspn(text, " \t\r\n")]) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, "%s must not be empty", option);
    return FALSE;
  }
  if (text && !config_name_is_good(text)) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "%s must be valid UTF-8 of at most %u bytes", option, CONFIG_MAX_NAME);
    return FALSE;
  }
  if (text) {
    g_free(*name);
    *name = g_strdup(text);
  }
  return TRUE;
}

/* What depends on the current folder is not looked into, which is said once. */
static void warn_of_relative_folders(void) {
  static gboolean told = FALSE;
  const char *path = secure_getenv("SANDHOST_PLUGIN_PATH");
  g_auto(GStrv) folders = g_strsplit(path ? path : "", ":", -1);
  for (gsize i = 0; !told && folders[i]; i++) {
    if (*folders[i] && !g_path_is_absolute(folders[i])) {
      cli_complain("SANDHOST_PLUGIN_PATH must have absolute paths; '%s' is not looked into",
                   folders[i]);
      told = TRUE;
    }
  }
}

ProviderRegistry *cli_registry(void) {
  warn_of_relative_folders();
  ProviderRegistry *registry = provider_registry_new();
  provider_registry_watch_loads(registry, &last_words_of_loads);
  return registry;
}

Config *cli_config(const CliRunOptions *options, ProviderRegistry *registry, GError **error) {
  g_auto(GStrv) names = provider_registry_names(registry);
  const char *const *known = (const char *const *)names;
  g_autoptr(Config) config =
      options->config ? config_load(options->config, known, error) : config_new_default();
  if (!config) {
    return NULL;
  }
  const char *provider = options->provider;
  if (!provider && !options->config) {
    provider = "bubblewrap";
  }
  if ((provider && !choose_provider(config, provider, registry, known, error)) ||
      (options->workspace && !choose_workspace(config, options->workspace, error)) ||
      !choose_name("--session", options->session, &config->session_id, error) ||
      !choose_name("--agent", options->agent, &config->agent_name, error)) {
    return NULL;
  }
  return g_steal_pointer(&config);
}

char *cli_record_path(const CliRunOptions *options, const Config *config) {
  const char *configured = options->record ? options->record : config ? config->record_path : NULL;
  return configured ? g_strdup(configured) : record_default_path();
}

Harness *cli_harness(const CliRunOptions *options, ProviderRegistry **ret_registry,
                     GError **error) {
  g_autoptr(ProviderRegistry) registry = cli_registry();
  Config *config = cli_config(options, registry, error);
  Harness *harness = config ? harness_new(config, registry, error) : NULL;
  if (harness) {
    *ret_registry = g_steal_pointer(&registry);
  }
  return harness;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static const char *target_of(const PolicyRequest *request) {
  if (request->target_host) {
    return request->target_host;
  }
  if (request->target_path) {
    return request->target_path;
  }
  return request->target_resource ? request->target_resource : "";
}

/* All that is allowed by a yes. Owned. */
static char *question_of(const PolicyRequest *request, const PolicyDecision *decision,
                         const char *command) {
  g_autofree char *asked =
      g_strdup_printf("%s %s | %s", request->capability, target_of(request), decision->reason);
  g_autofree char *line = cli_one_line(asked);
  g_auto(GStrv) lines = shown_lines(command);
  GString *question = g_string_new(NULL);
  g_string_append_printf(question, "sandhost: %s\n", line);
  for (char **part = lines; *part; part++) {
    g_string_append_printf(question, "  command: %s\n", *part);
  }
  g_string_append(question, "Allow it once? [y/N] ");
  return g_string_free(question, FALSE);
}

/* Asks the person at the terminal; anything but y or yes is no. */
static char *ask_terminal(const PolicyRequest *request, const PolicyDecision *decision,
                          const char *command, gboolean *ret_refused) {
  int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (tty < 0) {
    return NULL;
  }
  g_autofree char *question = question_of(request, decision, command);
  char answer[16] = "";
  ssize_t length =
      cli_write(tty, question, strlen(question)) ? read(tty, answer, sizeof answer - 1) : -1;
  close(tty);
  g_strstrip(answer);
  gboolean yes = length > 0 &&
                 (g_ascii_strcasecmp(answer, "y") == 0 || g_ascii_strcasecmp(answer, "yes") == 0);
  *ret_refused = !yes;
  return yes ? g_strdup(g_get_user_name()) : NULL;
}

static char *answer(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                    const char *command) {
  CliRun *run = user;
  if (run->yes) {
    return g_strdup("--yes");
  }
  progress_end(&run->progress);
  return run->asks_terminal ? ask_terminal(request, decision, command, &run->refused) : NULL;
}

static void progress(void *user, const char *line) {
  CliRun *run = user;
  progress_tell(&run->progress, line);
}

static void slow(void *user, const char *line) {
  CliRun *run = user;
  progress_end(&run->progress);
  cli_complain("%s", line);
}

/* Told however quiet it is to be: a sandbox that is left may cost money. */
static void warn(void *user, const char *line) {
  CliRun *run = user;
  slow(run, line);
  if (run->warned) {
    run->warned(run, line);
  }
}

/* ---- The run ------------------------------------------------------------------------------------------------------ */

/* The way out, behind whatever is wrong with the record. */
static void hint_at_place(GError **error) {
  if (error && *error) {
    g_autofree char *text = g_strdup_printf(
        "%s; --record FILE or SANDHOST_STATE_DIR names another place", (*error)->message);
    g_free((*error)->message);
    (*error)->message = g_steal_pointer(&text);
  }
}

static gboolean has_terminal(void) {
  int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (tty >= 0) {
    close(tty);
  }
  return tty >= 0;
}

static gboolean begin(CliRun *run, const CliRunOptions *options, const CliPurpose *purpose,
                      GError **error) {
  run->harness = cli_harness(options, &run->registry, error);
  if (!run->harness || !harness_executes(run->harness, error)) {
    return FALSE;
  }
  g_autofree char *path = cli_record_path(options, run->harness->config);
  run->record = record_open(path, error);
  if (!run->record) {
    hint_at_place(error);
    return FALSE;
  }
  run->cancel = cancel_new();
  cli_install_signals(run->cancel);
  /* Where nobody answers, and the run can go on later, it waits. */
  gboolean waits =
      (purpose->request || purpose->resume) && !run->yes && !(run->asks_terminal && has_terminal());
  const RunHooks hooks = {
      .answer = waits ? NULL : answer,
      .progress = progress,
      .slow = slow,
      .warn = warn,
      .user = run,
      .cancel = run->cancel,
      .request = purpose->request,
      .unannounced = purpose->unannounced,
      .keeps = TRUE,
  };
  run->run = purpose->resume ? run_resume(run->harness, run->record, purpose->resume, &hooks, error)
                             : run_start(run->harness, run->record, &hooks, error);
  return run->run != NULL;
}

gboolean cli_run_begin(CliRun *run, const CliRunOptions *options, const CliPurpose *purpose,
                       gboolean asks_terminal, int *ret_exit) {
  g_autoptr(GError) error = NULL;
  *run = (CliRun){.yes = options->yes, .asks_terminal = asks_terminal, .warned = purpose->warned};
  progress_init(&run->progress, options->verbose);
  if (begin(run, options, purpose, &error)) {
    return TRUE;
  }
  *ret_exit = cli_fail_resume(error);
  cli_run_clear(run);
  return FALSE;
}

gboolean cli_run_finish(CliRun *run, const char *status, const char *reason) {
  g_autoptr(GError) error = NULL;
  gboolean ok = run_end(g_steal_pointer(&run->run), status, reason, &error);
  if (!ok) {
    cli_complain("%s", error->message);
  }
  run->ended = TRUE;
  return ok;
}

void cli_run_clear(CliRun *run) {
  signalled = NULL;
  progress_clear(&run->progress);
  if (run->ended) {
    run_retain(run->harness, run->record);
  }
  g_clear_pointer(&run->record, record_close);
  g_clear_pointer(&run->harness, harness_free);
  g_clear_pointer(&run->registry, provider_registry_free);
  g_clear_pointer(&run->cancel, cancel_unref);
}
