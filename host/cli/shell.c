/* SPDX-License-Identifier: Apache-2.0 */
/* shell.c: sandhost shell, a run of many commands for a person at a terminal. Each line is a command of its own;
 * files stay between lines, the shell's own state (cd, variables) does not. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

typedef struct {
  CliRun run;
  guint64 execution; /* of the command that runs; 0: none. Guarded by lock */
  pthread_mutex_t lock;
  gboolean ended; /* of the interrupter; guarded by lock */
} Shell;

static void on_started(void *user, guint64 execution) {
  Shell *shell = user;
  progress_end(&shell->run.progress);
  pthread_mutex_lock(&shell->lock);
  shell->execution = execution;
  pthread_mutex_unlock(&shell->lock);
}

static gboolean show_output(void *user, guint32 stream, const void *data, gsize length) {
  (void)user;
  return cli_write(stream == SANDHOST_STDERR ? STDERR_FILENO : STDOUT_FILENO, data, length);
}

/* Ctrl-C goes to the command that runs, not to the run: this thread takes the signal for the whole program. */
static gpointer interrupter(gpointer data) {
  Shell *shell = data;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGINT);
  for (;;) {
    int number = 0;
    sigwait(&wanted, &number);
    pthread_mutex_lock(&shell->lock);
    gboolean ended = shell->ended;
    guint64 execution = shell->execution;
    pthread_mutex_unlock(&shell->lock);
    if (ended) {
      return NULL;
    }
    if (execution) {
      execute_signal(shell->run.run, execution, SIGINT, NULL);
    } else {
      cli_write(STDERR_FILENO, "\n", 1);
    }
  }
}

static void tell(const ExecuteOutcome *outcome) {
  const char *message = json_get_text(outcome->observation, "message");
  if (message) {
    fprintf(stderr, "[%s]\n", message);
  }
  JsonObject *written = json_get(outcome->sync, "written");
  for (gsize i = 0; written && i < json_object_array_length(written); i++) {
    fprintf(stderr, "[copied back: %s]\n",
            json_object_get_string(json_object_array_get_idx(written, i)));
  }
  JsonObject *skipped = json_get(outcome->sync, "skipped");
  for (gsize i = 0; skipped && i < json_object_array_length(skipped); i++) {
    JsonObject *skip = json_object_array_get_idx(skipped, i);
    cli_complain("%s: %s", json_get_text(skip, "path"), json_get_text(skip, "reason"));
  }
}

static void run_line(Shell *shell, const char *line, gint64 timeout) {
  const ExecuteCall call = {.command = line,
                            .timeout = timeout,
                            .user = shell,
                            .started = on_started,
                            .output = show_output};
  ExecuteOutcome outcome;
  execute_run(shell->run.run, &call, &outcome);
  on_started(shell, 0);
  tell(&outcome);
  execute_outcome_clear(&outcome);
}

static void read_lines(Shell *shell, gint64 timeout) {
  gboolean terminal = isatty(STDIN_FILENO);
  char *line = NULL;
  size_t size = 0;
  while (!cancel_raised(shell->run.cancel)) {
    if (terminal) {
      fputs("sandhost> ", stderr);
    }
    ssize_t length = getline(&line, &size, stdin);
    if (length < 0) {
      if (errno == EINTR && !cancel_raised(shell->run.cancel)) {
        clearerr(stdin);
        continue;
      }
      break;
    }
    g_strchomp(line);
    if (strcmp(line, "exit") == 0) {
      break;
    }
    if (*line) {
      run_line(shell, line, timeout);
    }
  }
  free(line);
  if (terminal) {
    fputs("\n", stderr);
  }
}

static int shell_run(const CliRunOptions *options, gint64 timeout) {
  Shell shell = {0};
  int code = EXIT_SANDHOST;
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt,
                  NULL); /* every thread inherits it; interrupter waits for it */
  const CliPurpose purpose = {0};
  if (!cli_run_begin(&shell.run, options, &purpose, TRUE, &code)) {
    return code;
  }
  pthread_mutex_init(&shell.lock, NULL);
  GThread *thread = g_thread_new("interrupter", interrupter, &shell);
  read_lines(&shell, timeout);

  pthread_mutex_lock(&shell.lock);
  shell.ended = TRUE;
  pthread_mutex_unlock(&shell.lock);
  kill(getpid(), SIGINT);
  g_thread_join(thread);
  gboolean cancelled = cancel_raised(shell.run.cancel);
  gboolean finished = cli_run_finish(&shell.run, cancelled ? "cancelled" : "completed", NULL);
  cli_run_clear(&shell.run);
  pthread_mutex_destroy(&shell.lock);
  if (cancelled && cli_caught_signal()) {
    return 128 + cli_caught_signal();
  }
  return finished ? 0 : EXIT_SANDHOST;
}

int cli_shell(int argc, char **argv) {
  CliRunOptions options = {0};
  g_autofree char *timeout = NULL;
  gint64 seconds = 0;
  const GOptionEntry entries[] = {
      CLI_RUN_OPTIONS(options),
      {"timeout", 't', 0, G_OPTION_ARG_STRING, &timeout,
       "Most seconds for each command (default 60)", "S"},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse(&argc, &argv, NULL,
                "Runs each line that you type in one sandbox. Files stay between lines; cd and "
                "variables do not. "
                "Ctrl-C interrupts the command, exit or Ctrl-D ends the run.",
                entries)) {
    if (argc > 1) {
      cli_complain("shell takes no argument '%s'", argv[1]);
    } else if (!timeout || cli_number("--timeout", timeout, 1, 1000, &seconds)) {
      code = shell_run(&options, seconds);
    }
  }
  cli_run_options_clear(&options);
  return code;
}
