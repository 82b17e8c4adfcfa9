/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c: sandhost exec, a run of one command. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command-line.h"
#include "cli/input.h"
#include "cli/result.h"
#include "record/record-output.h"
#include "record/trajectory-segments.h"
#include "run/resume.h"
#include "run/story.h"

typedef struct {
  CliRunOptions run;
  char *timeout;
  gboolean json;
  gboolean input;
  gboolean quiet;
} ExecOptions;

typedef struct {
  CliRun run; /* first */
  Result result;
} ExecRun;

/* The first member of an ExecRun is the run. */
static void keep_warning(CliRun *run, const char *line) {
  ExecRun *exec = (ExecRun *)run;
  result_warn(&exec->result, line);
}

static void on_started(void *user, guint64 execution) {
  CliRun *run = user;
  (void)execution;
  progress_end(&run->progress);
}

static gboolean show_output(void *user, guint32 stream, const void *data, gsize length) {
  (void)user;
  return cli_write(stream == SANDHOST_STDERR ? STDERR_FILENO : STDOUT_FILENO, data, length);
}

/* Called only when poll says that stdin is readable, or where it always is: a read does not wait then. A command whose
 * input cannot be read is not left to work with half of it. */
static gint64 take_input(void *user, void *buffer, gsize length) {
  const CliRun *run = user;
  ssize_t count = input_read(buffer, length);
  if (count >= 0 || input_goes_on(count)) {
    return count;
  }
  cancel_raise(run->cancel);
  return 0;
}

static gint32 input_fd(void *user) {
  (void)user;
  return STDIN_FILENO;
}

/* What the command itself cannot say: why there is no result, that it was cut short, what was not copied. */
static void explain(const CliRun *run, const char *id, gboolean interrupted,
                    const ExecuteOutcome *outcome) {
  const char *message = json_get_text(outcome->observation, "message");
  gboolean by_memory = json_get(json_get(outcome->observation, "data"), "killed_by") != NULL;
  if (message && (outcome->end != EXECUTE_FINISHED || by_memory)) {
    cli_complain("%s", message);
  }
  const char *unrecorded = json_get_text(outcome->observation, "record_error");
  if (unrecorded) {
    cli_complain("the end of the command is not on record: %s", unrecorded);
  }
  const char *notice = json_get_text(outcome->observation, "notice");
  if (notice) {
    cli_complain("%s", notice);
  }
  JsonObject *approvals = json_get(outcome->observation, "approvals");
  JsonObject *budget = json_get(outcome->observation, "budget_request");
  if (approvals) {
    cli_tell_waiting(id, approvals);
  } else if (budget) {
    cli_tell_budget(id, budget);
  } else if (outcome->end == EXECUTE_WAITING) {
    cli_complain("%s", run->refused ? "refused at the terminal"
                                    : "nobody was there to answer; --yes allows it once");
  }
  if (interrupted) {
    cli_complain("the command had not begun; sandhost resume %s goes on", id);
  }
  JsonObject *skipped = json_get(outcome->sync, "skipped");
  for (gsize i = 0; skipped && i < json_object_array_length(skipped); i++) {
    JsonObject *skip = json_object_array_get_idx(skipped, i);
    cli_complain("%s: %s", json_get_text(skip, "path"), json_get_text(skip, "reason"));
  }
}

static void print_summary(Record *record, const char *id) {
  g_autoptr(JsonObject) story = story_outline(record, id, NULL);
  if (!story) {
    return;
  }
  g_autofree char *summary = trajectory_run_summary(story);
  cli_write(STDERR_FILENO, summary, strlen(summary));
}

/* Tells how the call ended and ends the run with it. Takes the outcome. */
static int finish(ExecRun *exec, const ExecOptions *options, ExecuteOutcome *outcome,
                  const char *notice) {
  CliRun *run = &exec->run;
  gboolean refused = run->refused && outcome->end == EXECUTE_WAITING;
  int code = refused ? EXIT_DENIED : cli_exit_code(outcome);
  /* Then nothing that failed matters: neither the call nor what could not be written any more. */
  gboolean lost = run_is_lost(run->run, outcome->end != EXECUTE_FINISHED);
  gboolean interrupted = run_is_interrupted(run->run);
  g_autofree char *id = g_strdup(run_id(run->run));
  if (lost) {
    code = EXIT_SANDHOST;
  }
  if (notice && outcome->end != EXECUTE_WAITING) {
    json_add_text(outcome->observation, "notice", notice);
  }
  if (options->json) {
    result_hold(&exec->result, execute_outcome_json(run->run, outcome), run->cancel);
  }
  g_autofree char *unread = input_fault();
  g_autofree char *fault = unread ? g_strdup(unread)
                           : outcome->end == EXECUTE_CANCELLED && !cli_caught_signal()
                               ? cli_output_fault()
                               : NULL;
  if (fault) {
    code = EXIT_SANDHOST;
  }
  if (unread) {
    cli_complain("%s", unread);
  }
  if (!lost && !options->json) {
    explain(run, id, interrupted, outcome);
  }
  const char *status = run_is_paused(run->run) ? "awaiting_approval"
                       : unread                ? "failed"
                                               : cli_run_status(outcome);
  const char *reason = strcmp(status, "completed") == 0 ? NULL
                       : fault ? fault /* where stderr is what is full, nobody else can tell */
                               : json_get_text(outcome->observation, "message");
  gboolean finished = cli_run_finish(run, status, reason);
  result_print(&exec->result);               /* main tells when this cannot be written */
  if (options->json && cli_stdout_fault()) { /* whoever waits for it is not left without its name */
    cli_complain("run %s", id);
    if (!lost) {
      explain(run, id, interrupted, outcome);
    }
  }
  if (finished && !options->json && !options->quiet && outcome->end != EXECUTE_WAITING) {
    print_summary(run->record, id);
  }
  execute_outcome_clear(outcome);
  return finished || code != 0 ? code : EXIT_SANDHOST;
}

static int exec_in(ExecRun *exec, const ExecOptions *options, const char *command, gint64 timeout,
                   const char *tool_call_id, const char *notice) {
  CliRun *run = &exec->run;
  const ExecuteCall call = {
      .command = command,
      .timeout = timeout,
      .tool_call_id = tool_call_id,
      .user = run,
      .started = on_started,
      .output = options->json ? NULL : show_output,
      .input = options->input ? take_input : NULL,
      .input_fd = options->input ? input_fd : NULL,
      .last = TRUE,
  };
  ExecuteOutcome outcome;
  execute_run(run->run, &call, &outcome);
  progress_end(&run->progress);
  return finish(exec, options, &outcome, notice);
}

/* As cli_run_begin. */
static gboolean begin(ExecRun *exec, const ExecOptions *options, const CliRunOptions *run,
                      const CliPurpose *purpose, int *ret_exit) {
  if (options->input && !input_is_readable()) {
    *ret_exit = EXIT_SANDHOST;
    return FALSE;
  }
  result_init(&exec->result);
  if (cli_run_begin(&exec->run, run, purpose, !options->json && !options->input, ret_exit)) {
    return TRUE;
  }
  result_clear(&exec->result);
  return FALSE;
}

static void end(ExecRun *exec) {
  cli_run_clear(&exec->run);
  result_clear(&exec->result);
}

static JsonObject *request_of(const ExecOptions *options, const char *command, gint64 timeout) {
  JsonObject *request = cli_request_new(&options->run, "exec");
  json_add_text(request, "command", command);
  json_add_int(request, "timeout", timeout);
  json_add_bool(request, "input", options->input);
  return request;
}

static int exec_command(const ExecOptions *options, const char *const *words) {
  ExecRun exec;
  int code = EXIT_SANDHOST;
  gint64 timeout = 0;
  if (!words[0]) {
    cli_complain("no command given; usage: sandhost exec [OPTIONS] -- COMMAND [ARG ...]");
    return EXIT_USAGE;
  }
  if (options->timeout && !cli_number("--timeout", options->timeout, 1, 1000, &timeout)) {
    return EXIT_USAGE;
  }
  g_autofree char *command = command_line_join(words);
  if (!command[strspn(command, " \t\r\n")]) {
    cli_complain("The command is empty.");
    return EXIT_USAGE;
  }
  g_autoptr(JsonObject) request = request_of(options, command, timeout);
  const CliPurpose purpose = {.request = request, .unannounced = TRUE, .warned = keep_warning};
  if (!begin(&exec, options, &options->run, &purpose, &code)) {
    return code;
  }
  code = exec_in(&exec, options, command, timeout, NULL, NULL);
  end(&exec);
  return code;
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

/* What the run's one call was told, in whichever segment it ended; NULL: nothing. Owned. */
static JsonObject *recorded_observation(JsonObject *recorded) {
  g_autoptr(JsonObject) segments = trajectory_segments(recorded);
  JsonObject *observation = NULL;
  for (gsize i = json_object_array_length(segments); !observation && i-- > 0;) {
    g_autoptr(JsonObject) trajectory = trajectory_new(json_object_array_get_idx(segments, i));
    JsonObject *step = json_object_array_get_idx(json_get(trajectory, "steps"), 0);
    JsonObject *calls = json_get(step, "tool_calls");
    JsonObject *call = calls ? json_object_array_get_idx(calls, 0) : NULL;
    JsonObject *content = json_get(json_get(call, "observation"), "content");
    if (content) {
      json_object_deep_copy(content, &observation, NULL);
    }
  }
  return observation;
}

/* The result as it was recorded; it is told, not made again. */
static void tell_again(JsonObject *recorded, ExecuteOutcome *ret_outcome) {
  JsonObject *observation = recorded_observation(recorded);
  JsonObject *content = observation;
  JsonObject *data = json_get(content, "data");
  gint64 code = json_get_int(data, "exit_code", EXIT_SANDHOST);
  *ret_outcome =
      (ExecuteOutcome){.end = data                                              ? EXECUTE_FINISHED
                              : json_get_text(content, "governance_error_code") ? EXECUTE_DENIED
                                                                                : EXECUTE_FAILED,
                       .exit_code = (int)(code & 0xff),
                       .observation = observation ? observation : json_object_new_object()};
}

static void put_stream(const ExecuteOutcome *outcome, int fd, const char *key) {
  JsonObject *text = json_get(json_get(outcome->observation, "data"), key);
  if (text) {
    cli_write(fd, json_object_get_string(text), (gsize)json_object_get_string_len(text));
  }
}

static int refuse_withheld(CliRun *run, const char *id) {
  cli_complain("run %s: %s", id, RESUME_WITHHELD_TEXT);
  cli_run_finish(run, "failed", RESUME_WITHHELD_TEXT);
  return EXIT_SANDHOST;
}

static int go_on(ExecRun *exec, const ExecOptions *options, JsonObject *request, const char *id) {
  CliRun *run = &exec->run;
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) recorded = NULL;
  g_autoptr(GPtrArray) calls = resume_find_calls(run->record, id, &recorded, &error);
  if (!calls) {
    cli_run_finish(run, "interrupted", error->message);
    return cli_fail(error);
  }
  const char *notice = resume_lost_sandbox(recorded) ? RESUME_RESET_TEXT : NULL;
  if (calls->len == 0 && resume_request_is_redacted(request)) {
    return refuse_withheld(run, id);
  }
  if (calls->len == 0) {
    return exec_in(exec, options, json_get_text(request, "command"),
                   json_get_int(request, "timeout", 0), NULL, notice);
  }
  const ResumeCall *call = g_ptr_array_index(calls, 0);
  if (call->remains == REMAINS_AGAIN) {
    /* The request of a run of one command is kept as it was, where no credential was in it. */
    JsonObject *arguments = call->withheld ? request : call->arguments;
    if (call->withheld && resume_request_is_redacted(request)) {
      return refuse_withheld(run, id);
    }
    return exec_in(exec, options, json_get_text(arguments, "command"),
                   json_get_int(arguments, "timeout", 0), call->tool_call_id, notice);
  }
  ExecuteOutcome outcome;
  if (call->remains == REMAINS_UNKNOWN) {
    execute_unknown(run->run, call->tool_call_id, call->arguments, call->reported, &outcome);
  } else if (!record_restore_outputs(run->record, recorded, &error)) {
    cli_run_finish(run, "failed", error->message);
    return cli_fail(error);
  } else {
    tell_again(recorded, &outcome);
    if (!options->json) {
      put_stream(&outcome, STDOUT_FILENO, "stdout");
      put_stream(&outcome, STDERR_FILENO, "stderr");
    }
  }
  return finish(exec, options, &outcome, notice);
}

int cli_exec_resume(const CliRunOptions *options, const char *run_id, JsonObject *request,
                    gboolean json, gboolean quiet) {
  const ExecOptions own = {
      .json = json, .quiet = quiet, .input = json_get_bool(request, "input", FALSE)};
  const CliPurpose purpose = {.resume = run_id, .warned = keep_warning};
  ExecRun exec;
  int code = EXIT_SANDHOST;
  if (!begin(&exec, &own, options, &purpose, &code)) {
    return code;
  }
  code = go_on(&exec, &own, request, run_id);
  end(&exec);
  return code;
}

int cli_exec(int argc, char **argv) {
  ExecOptions options = {0};
  const GOptionEntry entries[] = {
      CLI_RUN_OPTIONS(options.run),
      {"timeout", 't', 0, G_OPTION_ARG_STRING, &options.timeout,
       "Most seconds for the command (default 60)", "S"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json,
       "Print the whole result as one JSON object", NULL},
      {"stdin", 'i', 0, G_OPTION_ARG_NONE, &options.input, "Give the command this program's stdin",
       NULL},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &options.quiet, "No summary on stderr", NULL},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse(&argc, &argv, "-- COMMAND [ARG ...]",
                "Runs one command in a fresh sandbox and ends with its exit code. One word is a "
                "line for sh; "
                "several words are taken as they are.",
                entries)) {
    code = exec_command(&options, (const char *const *)argv + 1);
  }
  cli_run_options_clear(&options.run);
  g_free(options.timeout);
  return code;
}
