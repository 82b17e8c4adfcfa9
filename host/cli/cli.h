/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h: what the commands of the sandhost program share: options, messages, exit codes. */
#ifndef SANDHOST_CLI_CLI_H
#define SANDHOST_CLI_CLI_H

#include "cli/progress.h"
#include "record/record.h"
#include "run/execute.h"
#include "run/run.h"

/* Exit codes of sandhost itself; a command that ran gives its own. */
#define EXIT_USAGE 2      /* bad command line or configuration; nothing was started */
#define EXIT_WAITING 123  /* the policy asks, and nobody answered */
#define EXIT_SANDHOST 125 /* the sandbox, the record or the workspace failed */
#define EXIT_DENIED 126   /* the policy refused */

/* One entry of the command table. run gets argv from the command's own name on. */
typedef struct {
  const char *name;
  const char *summary;
  int (*run)(int argc, char **argv);
} CliCommand;

int cli_exec(int argc, char **argv);
int cli_session(int argc, char **argv);
int cli_shell(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_runs(int argc, char **argv);
int cli_record(int argc, char **argv);
int cli_providers(int argc, char **argv);
int cli_provider(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_cleanup(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_approvals(int argc, char **argv);
int cli_approve(int argc, char **argv);
int cli_deny(int argc, char **argv);
int cli_budgets(int argc, char **argv);
int cli_grant(int argc, char **argv);
int cli_resume(int argc, char **argv);
int cli_cancel(int argc, char **argv);
int cli_abandon(int argc, char **argv);
int cli_policy(int argc, char **argv);

/* In one line, in which nothing moves a cursor or hides; controls become spaces. Returns owned. */
char *cli_one_line(const char *text);
/* "sandhost: " and the message on stderr, in one line without control characters. */
void cli_complain(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The same for an error; returns EXIT_USAGE for a CONFIG error, else EXIT_SANDHOST. */
int cli_fail(const GError *error);
/* The same where a run was to go on; EXIT_WAITING for one that waits for somebody, whoever found out first. */
int cli_fail_resume(const GError *error);

/* Parses with GLib's option parser: stops at the first word that is no option; --help prints and ends the program.
 * FALSE: complained already. entries is a zero-ended table. */
gboolean cli_parse(int *argc, char ***argv, const char *usage, const char *summary,
                   const GOptionEntry *entries);
/* The same, with options before and behind the words. */
gboolean cli_parse_mixed(int *argc, char ***argv, const char *usage, const char *summary,
                         const GOptionEntry *entries);

/* The options that choose what runs where. */
typedef struct {
  char *config;    /* file */
  char *workspace; /* folder */
  char *provider;
  char *record;     /* file */
  char *session;    /* what several runs belong to */
  char *agent;      /* whose runs they are */
  gboolean yes;     /* answers every ask */
  gboolean verbose; /* tells every line of progress */
} CliRunOptions;
#define CLI_RUN_OPTIONS(options)                                                                     \
  {"config",                                                                                         \
   'c',                                                                                              \
   0,                                                                                                \
   G_OPTION_ARG_FILENAME,                                                                            \
   &(options).config,                                                                                \
   "Configuration file (sandhost.json(5))",                                                          \
   "F"},                                                                                             \
      {"workspace",                                                                                  \
       'w',                                                                                          \
       0,                                                                                            \
       G_OPTION_ARG_FILENAME,                                                                        \
       &(options).workspace,                                                                         \
       "Folder whose files go in and come back",                                                     \
       "DIR"},                                                                                       \
      {"provider",                                                                                   \
       'p',                                                                                          \
       0,                                                                                            \
       G_OPTION_ARG_STRING,                                                                          \
       &(options).provider,                                                                          \
       "Sandbox provider (default bubblewrap)",                                                      \
       "NAME"},                                                                                      \
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &(options).record, "File that keeps the record", "F"}, \
      {"session",                                                                                    \
       0,                                                                                            \
       0,                                                                                            \
       G_OPTION_ARG_STRING,                                                                          \
       &(options).session,                                                                           \
       "What the run belongs to, for session budgets",                                               \
       "ID"},                                                                                        \
      {"agent",                                                                                      \
       0,                                                                                            \
       0,                                                                                            \
       G_OPTION_ARG_STRING,                                                                          \
       &(options).agent,                                                                             \
       "Whose run it is (default: the configuration's name)",                                        \
       "NAME"},                                                                                      \
      {"yes",                                                                                        \
       'y',                                                                                          \
       0,                                                                                            \
       G_OPTION_ARG_NONE,                                                                            \
       &(options).yes,                                                                               \
       "Allow once whatever the policy asks about",                                                  \
       NULL},                                                                                        \
  {                                                                                                  \
    "verbose", 'v', 0, G_OPTION_ARG_NONE, &(options).verbose,                                        \
        "Tell every step of making the sandbox", NULL                                                \
  }
void cli_run_options_clear(CliRunOptions *options);

/* A registry whose plugins may not take for ever to load (last-words.h). Owned. */
ProviderRegistry *cli_registry(void);

/* A configuration with the options' provider and workspace laid over it. With neither a file nor a provider: the default
 * one. registry is borrowed. NULL: *error. */
Config *cli_config(const CliRunOptions *options, ProviderRegistry *registry, GError **error);

/* The file of the record that the options or the configuration (NULL: none) name, else the default one. Owned. */
char *cli_record_path(const CliRunOptions *options, const Config *config);

/* A configuration with the options laid over it, checked, as a harness. registry is made. NULL: *error. */
Harness *cli_harness(const CliRunOptions *options, ProviderRegistry **ret_registry, GError **error);

/* A run and what it stands on, for a door. */
typedef struct CliRun CliRun;
struct CliRun {
  ProviderRegistry *registry;
  Harness *harness;
  Record *record;
  Cancel *cancel; /* raised by SIGINT, SIGTERM, SIGHUP */
  gboolean yes;
  gboolean asks_terminal; /* a person at the terminal may answer an ask */
  gboolean refused;       /* a person at the terminal said no */
  Progress progress;
  void (*warned)(CliRun *run,
                 const char *line); /* as RunHooks.warn, beside stderr; NULL: nobody else */
  Run *run;
  gboolean ended; /* cli_run_finish ended it */
};

/* What a run is to be: a new one with a request that begins it again (NULL: it cannot go on later), or one that goes
 * on. All borrowed. */
typedef struct {
  JsonObject *request;
  const char *resume;                            /* id */
  gboolean unannounced;                          /* as RunHooks */
  void (*warned)(CliRun *run, const char *line); /* as in CliRun */
} CliPurpose;

/* Starts a run or goes on with one; installs the signal handlers. FALSE: complained already, *ret_exit is the exit
 * code. */
gboolean cli_run_begin(CliRun *run, const CliRunOptions *options, const CliPurpose *purpose,
                       gboolean asks_terminal, int *ret_exit);

/* What begins a run again: {surface, cwd, config, config_digest, workspace, provider, session, agent}. Returns owned. */
JsonObject *cli_request_new(const CliRunOptions *options, const char *surface);
/* The other way: the options of a stored request, owned by the caller. The program goes to the folder in which the run
 * was begun. What differs from then is told. */
gboolean cli_request_open(JsonObject *request, CliRunOptions *ret_options, GError **error);
/* What the configuration that a run was begun with holds as credentials, for who types something about that run. NULL: it
 * cannot be read any more, or there is none. Returns owned. */
Privacy *cli_request_privacy(Record *record, const char *run_id);

/* Tells what a run waits for and what to do about it, on stderr. */
void cli_tell_waiting(const char *run_id, JsonObject *approvals);
/* The same of a budget request. */
void cli_tell_budget(const char *run_id, JsonObject *request);

/* Go on with a run of theirs; options are those of its request. Return the exit code. */
int cli_exec_resume(const CliRunOptions *options, const char *run_id, JsonObject *request,
                    gboolean json, gboolean quiet);
int cli_session_resume(const CliRunOptions *options, const char *run_id, gboolean stream);
/* Ends it with the status; what could not be written is told. FALSE then. */
gboolean cli_run_finish(CliRun *run, const char *status, const char *reason);
/* Frees what cli_run_begin made; only for a finished or never begun run. */
void cli_run_clear(CliRun *run);
/* From here on SIGINT, SIGTERM and SIGHUP raise cancel, which is borrowed; NULL: they raise nothing. */
void cli_install_signals(Cancel *cancel);
/* The signal that raised cancel, or 0. */
int cli_caught_signal(void);

/* The exit code for an outcome, and the run's status. */
int cli_exit_code(const ExecuteOutcome *outcome);
const char *cli_run_status(const ExecuteOutcome *outcome);

/* Writes everything to a descriptor, whatever it takes. FALSE: the other end is gone. */
gboolean cli_write(int fd, const void *data, gsize length);
/* The same to stdout, for what gives text in pieces; user is not used. */
gboolean cli_put_stdout(void *user, const void *data, gsize length);
/* Flushes what was printed. errno of whatever could not be written to standard output; 0: nothing, or nobody reads it
 * any more, which is the reader's own matter. */
int cli_stdout_fault(void);
/* The same of what cli_write was given for standard error. */
int cli_stderr_fault(void);
/* "could not write standard ...: why", of either; NULL: neither has a fault. Owned. */
char *cli_output_fault(void);

/* Says so where a command will get less time than it was given: most is the configuration's tool_call_timeout. */
void cli_tell_shortened(gint64 timeout, gint64 most);

/* A whole number within bounds, or a complaint that names the option. */
gboolean cli_number(const char *option, const char *text, gint64 least, gint64 most,
                    gint64 *ret_number);

#endif
