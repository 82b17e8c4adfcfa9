/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c: one command from the door to the sandbox and back. Read execute_run at the end first: the steps
 * stand there in order.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "governance/requests.h"
#include "run/execute-private.h"
#include "run/guarded.h"
#include "run/observation.h"

/* How long the steps around the command may take; the command's own limit is not charged for them. */
#define CREATE_SECONDS 900 /* an image may have to be pulled */
#define COPY_SECONDS 60
#define MOST_DENIALS 200 /* files whose refusal is told one by one */
/* Bytes that are written to the record without waiting for what follows. */
#define LARGE_OUTPUT 65536
#define BACKSTOP_SECONDS 15 /* past the command's limit; a provider gives up before that */

static CallScope scope_for(const Call *call, gint64 seconds) {
  const RunHooks *hooks = &call->run->hooks;
  return (CallScope){
      .deadline = clock_deadline(seconds * CLOCK_SECOND),
      .cancel = hooks->cancel,
      .progress = hooks->progress,
      .user = hooks->user,
  };
}

/* ---- 2. A sandbox --------------------------------------------------------------------------------------- */

static gboolean permit_file(void *copier, gboolean write, const char *path, GError **error) {
  Call *call = copier;
  (void)error;
  if (write && guarded_is(call->run->harness, path)) {
    return FALSE; /* whatever the rules say */
  }
  g_autoptr(PolicyRequest) request = request_file(write, path);
  g_autoptr(PolicyDecision) decision = NULL;
  if (gate_permits(call->gate, request, &decision)) {
    call->files_allowed[write ? 1 : 0]++;
    return TRUE;
  }
  if (json_object_array_length(call->files_denied) < MOST_DENIALS) {
    call_record_decision(call, request, decision, NULL);
    json_object_array_add(call->files_denied, json_object_new_string(path));
  }
  return FALSE;
}

/* The run's session with a reference for this call, opened when there is none or the last one is lost. */
static gboolean join_session(Call *call, GError **error) {
  Run *run = call->run;
  if (run->session && session_is_lost(run->session)) {
    g_clear_pointer(&run->session, session_unref);
  }
  if (!run->session) {
    if (!journal_flush(run->journal, error)) {
      return FALSE;
    }
    const CallScope scope = scope_for(call, CREATE_SECONDS);
    const SessionEar ear = {
        .slow = run->hooks.slow, .warn = run->hooks.warn, .user = run->hooks.user};
    run->session = session_open(run->harness, run->journal, run->id, run->folder, permit_file, &ear,
                                &scope, error);
    if (!run->session) {
      return FALSE;
    }
  }
  call->session = session_ref(run->session);
  return TRUE;
}

/* The manifest is asked about before there is a sandbox, and the command before one is made for it. */
static gboolean authorize_and_join(Call *call, GError **error) {
  Run *run = call->run;
  pthread_mutex_lock(&run->opening);
  gboolean opens = !run->session || session_is_lost(run->session);
  pthread_mutex_unlock(&run->opening);
  if (!call_look_ahead(call, opens, error) ||
      !call_authorize(call, request_execute(), NULL, error)) {
    return FALSE;
  }
  pthread_mutex_lock(&run->opening);
  opens = !run->session || session_is_lost(run->session);
  gboolean ok = (!opens || call_authorize_manifest(call, error)) &&
                call_authorize_command(call, error) && budget_look(call, error) &&
                join_session(call, error);
  pthread_mutex_unlock(&run->opening);
  return ok;
}

/* ---- 3. and 5. The workspace ------------------------------------------------------------------------------ */

static gboolean copy(Call *call, gboolean back, GError **error) {
  Session *session = call->session;
  const CallScope scope = scope_for(call, COPY_SECONDS);
  SessionTransport reach = {.session = session, .scope = &scope};
  const BridgeTransport transport = session_transport(&reach);

  pthread_mutex_lock(&call->run->copying);
  session->copier = call;
  gboolean ok = back ? bridge_copy_back(session->bridge, &transport, call->report, error)
                     : bridge_copy_in(session->bridge, &transport, call->report, error);
  session->copier = NULL;
  pthread_mutex_unlock(&call->run->copying);
  return ok;
}

static gboolean copy_to_session(Call *call, GError **error) {
  g_clear_pointer(&call->report, bridge_report_free);
  if (!call->session->bridge) {
    return TRUE;
  }
  call->report = bridge_report_new();
  return copy(call, FALSE, error);
}

static gboolean replace_session(Call *call, GError **error) {
  session_mark_lost(call->session);
  g_clear_pointer(&call->session, session_unref);
  pthread_mutex_lock(&call->run->opening);
  gboolean ok = call_authorize_manifest(call, error) && join_session(call, error);
  pthread_mutex_unlock(&call->run->opening);
  return ok;
}

/* A sandbox that cannot take the files is replaced once: it may have died since the last command. So is one that
 * another command lost meanwhile, although nothing had to be copied: the command would not run in it. */
static gboolean copy_in(Call *call, GError **error) {
  g_autoptr(GError) failure = NULL;
  if (copy_to_session(call, &failure) && !session_is_lost(call->session)) {
    return TRUE;
  }
  if (failure && (failure->domain != PROVIDER_ERROR || call_is_cancel(failure))) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  return replace_session(call, error) && copy_to_session(call, error);
}

/* The reason is told where it is more than that the sandbox is gone. */
static void skip_lost(Call *call, const GError *failure) {
  static const char lost[] = "the sandbox was lost before its files were copied back";
  g_autofree char *reason = provider_error_is(failure, SANDHOST_PROTOCOL)
                                ? g_strdup_printf("%s (%s)", lost, failure->message)
                                : NULL;
  session_mark_lost(call->session);
  bridge_report_skip(call->report, "*", reason ? reason : lost);
}

static void skip_everything(Call *call, const GError *failure) {
  if (provider_error_is(failure, SANDHOST_LOST) || session_is_lost(call->session)) {
    skip_lost(call, failure);
  } else if (failure->domain == PROVIDER_ERROR) {
    g_autofree char *reason =
        g_strdup_printf("could not list the sandbox files: %s", failure->message);
    bridge_report_skip(call->report, ".", reason);
  } else {
    bridge_report_skip(call->report, "*", failure->message);
  }
}

/* Never fails the call: the command has run, and its result stands. */
static void copy_back(Call *call) {
  g_autoptr(GError) failure = NULL;
  g_autoptr(PolicyRequest) listing = request_sync();
  if (!gate_authorize_sync(call->gate, listing, call->decision, NULL, &failure)) {
    g_autofree char *reason = g_strdup_printf("the policy refused the runtime's listing of the "
                                              "sandbox's files (sandbox.workspace.sync), so "
                                              "nothing was copied back: %s",
                                              failure->message);
    bridge_report_skip(call->report, "*", reason);
  } else if (!copy(call, TRUE, &failure)) {
    skip_everything(call, failure);
  }
}

/* ---- 4. The command ------------------------------------------------------------------------------------- */

static void on_started(void *user, uint64_t execution) {
  const Call *call = user;
  if (call->request->started) {
    call->request->started(call->request->user, execution);
  }
}

static int32_t on_output(void *user, uint32_t stream, const void *data, size_t length) {
  Call *call = user;
  Output *output = stream == SANDHOST_STDERR ? &call->err : &call->out;
  output_add(output, data, length);
  if (output->stopped) {
    call->stopped = TRUE;
    return SANDHOST_CANCELLED;
  }
  return SANDHOST_OK;
}

static int64_t on_input(void *user, void *buffer, size_t length) {
  const Call *call = user;
  return call->request->input(call->request->user, buffer, length);
}

static int32_t on_input_fd(void *user) {
  const Call *call = user;
  return call->request->input_fd(call->request->user);
}

/* The bytes become text, once, and are let go. */
static void settle_output(Call *call) {
  output_watch_remove(call->run->outputs, &call->out);
  output_watch_remove(call->run->outputs, &call->err);
  output_finish(&call->out, call->result.stdout_bytes);
  output_finish(&call->err, call->result.stderr_bytes);
  call->stdout_cut = output_truncated(&call->out, call->result.stdout_bytes);
  call->stderr_cut = output_truncated(&call->err, call->result.stderr_bytes);
  call->stdout_kept = output_seal(&call->out, call->stdout_cut);
  call->stderr_kept = output_seal(&call->err, call->stderr_cut);
  call->stdout_offloaded = output_offload(&call->out, call->stdout_cut);
  call->stderr_offloaded = output_offload(&call->err, call->stderr_cut);
  call->redacted = output_is_redacted(&call->out, call->stdout_offloaded != NULL) ||
                   output_is_redacted(&call->err, call->stderr_offloaded != NULL);
  call->large = (call->stdout_offloaded ? 0 : call->out.kept->len) +
                    (call->stderr_offloaded ? 0 : call->err.kept->len) >
                LARGE_OUTPUT;
  call->stdout_text = output_text(&call->out, call->stdout_cut);
  call->stderr_text = output_text(&call->err, call->stderr_cut);
  output_clear(&call->out);
  output_clear(&call->err);
}

/* What the command prints is kept beyond what its result holds. Returns the limit, in bytes. */
static guint64 keep_output(Call *call) {
  const Run *run = call->run;
  guint64 keep = run->record ? run->harness->config->keep_output_bytes : 0;
  const CaptureConfig *capture = &run->harness->config->capture;
  keep = capture->results ? keep : 0;
  if (keep > 0) {
    guint64 text = capture->offload_bytes;
    output_keep(&call->out, record_output_new(run->record, run->id, call->execution_id, 1, keep),
                text);
    output_keep(&call->err, record_output_new(run->record, run->id, call->execution_id, 2, keep),
                text);
    output_watch_add(run->outputs, &call->out);
    output_watch_add(run->outputs, &call->err);
  }
  return keep;
}

/* Whoever follows the command sees what the others see. */
static void follow_output(Call *call) {
  OutputFollower follower = {.put = call->request->output, .user = call->request->user};
  follower.stream = SANDHOST_STDOUT;
  output_follow(&call->out, &follower);
  follower.stream = SANDHOST_STDERR;
  output_follow(&call->err, &follower);
}

/* A sandbox that went away before the command was begun is an error: nothing has an end. */
static void tell_not_started(GError *failure) {
  char *text = g_strdup_printf("The sandbox was lost before this command was started (%s). It was "
                               "not started; the next command runs in a fresh sandbox with the "
                               "workspace files copied in again.",
                               failure->message);
  g_free(failure->message);
  failure->message = text;
}

/* A sandbox that went away under the command, or was given up because its guest broke the protocol, and one whose
 * provider did not keep the limit, are an end of the command: 137, as a kill. Anything else that went wrong stays an
 * error. */
static gboolean settle_failure(Call *call, GError *failure) {
  gboolean overrun = provider_error_is(failure, SANDHOST_TIMEOUT);
  gboolean lost = provider_error_is(failure, SANDHOST_LOST) ||
                  (session_is_lost(call->session) && !call_is_cancel(failure));
  if (!overrun && !lost) {
    return FALSE;
  }
  session_mark_lost(call->session);
  if (!overrun && provider_error_details(failure).did_not_happen) {
    call->not_started = TRUE;
    tell_not_started(failure);
    return FALSE;
  }
  call->lost = TRUE;
  call->timed_out = overrun || clock_now() - call->started >= call->limit * CLOCK_SECOND;
  call->result.ended = SANDHOST_ENDED_SIGNAL;
  call->result.exit_code = 137;
  call->result.signal = 9;
  return TRUE;
}

static gboolean run_command(Call *call, GError **error) {
  if (!budget_begin(call, call_command_event(call), error)) {
    return FALSE;
  }
  call->begun = TRUE;
  const struct sandhost_text argv[] = {
      {.data = "sh", .length = 2},
      {.data = "-c", .length = 2},
      {.data = call->script, .length = strlen(call->script)},
  };
  const guint64 keep = keep_output(call);
  follow_output(call);
  const struct sandhost_execute request = {
      .size = sizeof request,
      .argv = argv,
      .argc = G_N_ELEMENTS(argv),
      .limit = call->limit * CLOCK_SECOND,
      .max_output_bytes = call->request->output ? 0 : MAX(call->out.max, keep),
      .flags = call->request->input ? SANDHOST_EXECUTE_STDIN : 0,
  };
  const struct sandhost_observer observer = {
      .size = sizeof observer,
      .user = call,
      .started = on_started,
      .output = on_output,
      .input = call->request->input ? on_input : NULL,
      .input_fd = call->request->input ? on_input_fd : NULL,
  };
  const CallScope scope = scope_for(call, call->limit + BACKSTOP_SECONDS);

  g_autoptr(GError) failure = NULL;
  g_atomic_int_inc(&call->session->commands);
  call->started = clock_now();
  gboolean ok =
      sandbox_execute(call->session->sandbox, &scope, &request, &observer, &call->result, &failure);
  gint64 duration = clock_now() - call->started;
  call->timed_out = ok && call->result.ended == SANDHOST_ENDED_LIMIT;
  gboolean settled = ok || settle_failure(call, failure);
  settle_output(call);
  budget_ended(call);
  call_record_command_ended(call, duration, failure);
  if (call->large) {
    journal_flush(call->run->journal,
                  NULL); /* lest it be held twice; what fails here fails again at the end */
  }
  if (!settled) {
    g_propagate_error(error, g_steal_pointer(&failure));
  }
  return settled;
}

/* ---- The call ----------------------------------------------------------------------------------------------- */

static JsonObject *args_of(const ExecuteCall *request) {
  JsonObject *args = json_object_new_object();
  json_add_text(args, "command", request->command);
  if (request->timeout) {
    json_add_int(args, "timeout", request->timeout);
  }
  return args;
}

static void free_json(void *value) {
  json_object_put(value);
}

static void call_init(Call *call, Run *run, const ExecuteCall *request) {
  guint64 cap = provider_instance_max_output(run->harness->instance);
  gint64 most = run->harness->config->tool_call_timeout;
  *call = (Call){
      .run = run,
      .request = request,
      .id = request->tool_call_id ? g_strdup(request->tool_call_id) : id_new("call"),
      .approvals = g_ptr_array_new_with_free_func(g_free),
      .answered = g_ptr_array_new_with_free_func(free_json),
      .execution_id = id_new("exec"),
      .script = request_script(request->command),
      .args = args_of(request),
      .limit = CLAMP(request->timeout ? request->timeout : EXECUTE_DEFAULT_TIMEOUT, 1, most),
      .files_denied = json_object_new_array(),
      .result = {.size = sizeof call->result},
  };
  call->gate = call_gate(call);
  output_init(&call->out, cap);
  output_init(&call->err, cap);
  output_guard(&call->out, run->harness->privacy);
  output_guard(&call->err, run->harness->privacy);
}

static void call_clear(Call *call) {
  session_unref(call->session);
  gate_free(call->gate);
  g_ptr_array_unref(call->approvals);
  g_ptr_array_unref(call->answered);
  policy_decision_free(call->decision);
  policy_request_free(call->command);
  bridge_report_free(call->report);
  json_object_put(call->budget_request);
  json_object_put(call->files_denied);
  json_object_put(call->args);
  json_object_put(call->stdout_text);
  json_object_put(call->stderr_text);
  json_object_put(call->stdout_kept);
  json_object_put(call->stderr_kept);
  json_object_put(call->stdout_offloaded);
  json_object_put(call->stderr_offloaded);
  output_clear(&call->out);
  output_clear(&call->err);
  g_free(call->script);
  g_free(call->execution_id);
  g_free(call->id);
}

static gboolean is_blank(const char *command) {
  return command[strspn(command, " \t\r\n")] == '\0';
}

/* What the caller is told passes a border too: a provider's message may name what nobody is to read. */
static void hide(const Run *run, JsonObject **told) {
  if (*told && !privacy_is_idle(run->harness->privacy, PRIVACY_RESULT)) {
    JsonObject *made = privacy_json(run->harness->privacy, PRIVACY_RESULT, *told, FALSE, NULL);
    json_object_put(*told);
    *told = made;
  }
}

/* For a call that is to go on when the run is resumed, as what it is recorded until then; NULL: it has ended. */
static const char *what_remains(const Call *call, const ExecuteOutcome *outcome) {
  Run *run = call->run;
  if (call->waits) {
    return "awaiting_approval";
  }
  if (outcome->end == EXECUTE_CANCELLED && !call->begun && run->hooks.keeps && run->decided) {
    g_atomic_int_set(&run->interrupted, 1);
    return "interrupted";
  }
  return call->budget_request ? "awaiting_budget" : NULL;
}

void execute_run(Run *run, const ExecuteCall *request, ExecuteOutcome *ret_outcome) {
  g_autoptr(GError) error = NULL;
  Call call;
  *ret_outcome = (ExecuteOutcome){.exit_code = -1};
  call_init(&call, run, request);

  if (is_blank(request->command)) {
    execute_reject(run, call.args, "The command is empty.", ret_outcome);
    call_clear(&call);
    return;
  }
  if (run_is_paused(run) && !request->tool_call_id) { /* another call of it has met an ask */
    g_autoptr(JsonObject) asks = run_waiting(run);
    execute_reject(run, call.args,
                   json_object_array_length(asks) > 0
                       ? "The run waits for an approval; no command is begun."
                       : "The run waits for a budget decision; no command is begun.",
                   ret_outcome);
    call_clear(&call);
    return;
  }
  call_tell_shortened(&call);
  call_record_started(run, call.id, call.args, request->tag, request->tool_call_id != NULL);
  gboolean ran = !budget_refuse_exhausted(run, &error) && authorize_and_join(&call, &error) &&
                 copy_in(&call, &error) && run_command(&call, &error);
  if (ran && call.report && !call.lost) {
    copy_back(&call);
  }
  if (call.report) {
    call_record_sync(&call);
    ret_outcome->sync = observation_sync(call.report);
  }
  if (ran) {
    call_tell_result(&call, ret_outcome);
  } else {
    call_tell_error(&call, error, ret_outcome);
  }
  call_record_ended(run, call.id, ret_outcome, what_remains(&call, ret_outcome));
  hide(run, &ret_outcome->observation);
  hide(run, &ret_outcome->sync);

  if (request->last && call.session) {
    sandbox_end_begin(call.session->sandbox); /* whoever lets go of the session waits for it */
  }
  g_autoptr(GError) unrecorded = NULL;
  if (!journal_flush(run->journal, &unrecorded) && ran) {
    json_add_text(ret_outcome->observation, "record_error", unrecorded->message);
  }
  call_clear(&call);
}

void execute_reject(Run *run, JsonObject *arguments, const char *message,
                    ExecuteOutcome *ret_outcome) {
  g_autofree char *id = id_new("call");
  *ret_outcome = (ExecuteOutcome){
      .end = EXECUTE_REJECTED,
      .exit_code = -1,
      .observation = observation_error(arguments, message, NULL),
  };
  call_record_started(run, id, arguments, NULL, FALSE);
  call_record_ended(run, id, ret_outcome, NULL);
  hide(run, &ret_outcome->observation);
  journal_flush(run->journal, NULL);
}

void execute_unknown(Run *run, const char *tool_call_id, JsonObject *arguments,
                     const char *reported, ExecuteOutcome *ret_outcome) {
  g_autofree char *message =
      reported ? g_strdup_printf("The call finished (it reported %s) and its result was lost. It "
                                 "was not repeated.",
                                 reported)
               : g_strdup("The call was interrupted and may or may not have taken effect. It was "
                          "not repeated.");
  *ret_outcome = (ExecuteOutcome){
      .end = EXECUTE_UNKNOWN,
      .exit_code = -1,
      .observation = observation_error(arguments, message, NULL),
  };
  json_add_text(ret_outcome->observation, "error_type", "unknown_outcome");
  call_record_started(run, tool_call_id, arguments, NULL, TRUE); /* here is where it ends */
  call_record_ended(run, tool_call_id, ret_outcome, NULL);
  hide(run, &ret_outcome->observation);
  journal_flush(run->journal, NULL);
}

void execute_withheld(Run *run, const char *tool_call_id, JsonObject *arguments,
                      const char *message, ExecuteOutcome *ret_outcome) {
  *ret_outcome = (ExecuteOutcome){
      .end = EXECUTE_REJECTED,
      .exit_code = -1,
      .observation = observation_error(arguments, message, NULL),
  };
  call_record_ended(run, tool_call_id, ret_outcome, NULL);
  hide(run, &ret_outcome->observation);
  journal_flush(run->journal, NULL);
}

void execute_outcome_clear(ExecuteOutcome *outcome) {
  g_clear_pointer(&outcome->observation, json_object_put);
  g_clear_pointer(&outcome->sync, json_object_put);
}

gboolean execute_signal(Run *run, guint64 execution, int signal_number, GError **error) {
  pthread_mutex_lock(&run->opening);
  g_autoptr(Session) session = run->session ? session_ref(run->session) : NULL;
  pthread_mutex_unlock(&run->opening);
  if (!session) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "no command is running");
    return FALSE;
  }
  const CallScope scope = {.deadline = clock_deadline(5 * CLOCK_SECOND)};
  return sandbox_signal(session->sandbox, &scope, execution, signal_number, error);
}
