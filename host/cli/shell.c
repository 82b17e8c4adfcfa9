/* SPDX-License-Identifier: Apache-2.0 */
/* shell.c: sandhost shell, a run of many commands for a person at a terminal. Each line is a command of its own;
 * files stay between lines, the shell's own state (cd, variables) does not. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/input.h"

typedef struct {
  CliRun run;
  guint64 execution; /* of the command that runs; 0: none. Guarded by lock */
  pthread_mutex_t lock;
  gboolean ended;    /* of the interrupter; guarded by lock */
  GByteArray *input; /* read and not yet a line */
} Shell;

#define MAX_LINE (16u << 20)

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

/* ---- Lines ------------------------------------------------------------------------------------------------- */

/* Waits for input and the run's end at once: a signal that comes just before the wait is not lost. FALSE at the end. */
static gboolean read_more(Shell *shell) {
  struct pollfd watched[] = {
      {.fd = STDIN_FILENO, .events = POLLIN},
      {.fd = cancel_fd(shell->run.cancel), .events = POLLIN},
  };
  if (poll(watched, G_N_ELEMENTS(watched), -1) < 0) {
    return errno == EINTR;
  }
  if (watched[1].revents) {
    return FALSE;
  }
  guint8 chunk[4096];
  ssize_t count = input_read(chunk, sizeof chunk);
  if (count > 0) {
    g_byte_array_append(shell->input, chunk, (guint)count);
  }
  if (shell->input->len > MAX_LINE) {
    cli_complain("the line is longer than 16 MiB");
    return FALSE;
  }
  return input_goes_on(count);
}

/* Without its end; NULL: no more. The last one may have none. Owned. */
static char *next_line(Shell *shell) {
  GByteArray *input = shell->input;
  const guint8 *end = NULL;
  while (!(end = input->len > 0 ? memchr(input->data, '\n', input->len) : NULL)) {
    if (!read_more(shell)) {
      break;
    }
  }
  g_autofree char *fault = end ? NULL : input_fault(); /* nobody knows how the line goes on */
  if (cancel_raised(shell->run.cancel) || input->len == 0 || fault ||
      (!end && input->len > MAX_LINE)) {
    return NULL;
  }
  guint length = end ? (guint)(end - input->data) : input->len;
  char *line = g_strndup((const char *)input->data, length);
  g_byte_array_remove_range(input, 0, end ? length + 1 : length);
  return g_strchomp(line);
}

/* A budget has ended the run. */
static gboolean is_over(const Shell *shell) {
  g_autofree char *exhausted = run_exhausted(shell->run.run);
  return exhausted != NULL;
}

static void read_lines(Shell *shell, gint64 timeout) {
  gboolean terminal = isatty(STDIN_FILENO);
  while (!is_over(shell)) {
    if (terminal) {
      fputs("sandhost> ", stderr);
    }
    g_autofree char *line = next_line(shell);
    if (!line || strcmp(line, "exit") == 0) {
      break;
    }
    if (*line) {
      run_line(shell, line, timeout);
    }
  }
  if (terminal) {
    fputs("\n", stderr);
  }
}

/* NULL: no thread can be had, which is told. */
static GThread *start_interrupter(Shell *shell) {
  g_autoptr(GError) error = NULL;
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  /* Every thread inherits it; interrupter waits for it. */
  pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
  pthread_mutex_init(&shell->lock, NULL);
  GThread *thread = g_thread_try_new("interrupter", interrupter, shell, &error);
  if (!thread) {
    cli_complain("%s", error->message);
    pthread_mutex_destroy(&shell->lock);
  }
  return thread;
}

static void stop_interrupter(Shell *shell, GThread *thread) {
  pthread_mutex_lock(&shell->lock);
  shell->ended = TRUE;
  pthread_mutex_unlock(&shell->lock);
  kill(getpid(), SIGINT);
  g_thread_join(thread);
}

static int shell_run(const CliRunOptions *options, gint64 timeout) {
  Shell shell = {0};
  int code = EXIT_SANDHOST;
  const CliPurpose purpose = {0};
  if (!input_is_readable()) {
    return code;
  }
  GThread *thread = start_interrupter(&shell); /* before there is a run that could not have one */
  if (!thread) {
    return code;
  }
  if (!cli_run_begin(&shell.run, options, &purpose, TRUE, &code)) {
    stop_interrupter(&shell, thread);
    pthread_mutex_destroy(&shell.lock);
    return code;
  }
  shell.input = g_byte_array_new();
  read_lines(&shell, timeout);
  g_byte_array_unref(shell.input);
  stop_interrupter(&shell, thread);
  gboolean cancelled = cancel_raised(shell.run.cancel);
  gboolean over = is_over(&shell);
  g_autofree char *fault = input_fault();
  if (fault) {
    cli_complain("%s", fault);
  }
  const char *status = cancelled ? "cancelled" : fault ? "failed" : "completed";
  gboolean finished = cli_run_finish(&shell.run, status, fault);
  cli_run_clear(&shell.run);
  pthread_mutex_destroy(&shell.lock);
  if (cancelled && cli_caught_signal()) {
    return 128 + cli_caught_signal();
  }
  return !finished || fault || cli_stderr_fault() ? EXIT_SANDHOST : over ? EXIT_DENIED : 0;
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
