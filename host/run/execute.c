/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c: one command from the door to the sandbox and back. Read execute_run at the end first: the steps
 * stand there in order.
 */
#include "run/execute.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "governance/requests.h"
#include "run/observation.h"
#include "run/output.h"
#include "run/run-private.h"

/* How long the steps around the command may take; the command's own limit is not charged for them. */
#define CREATE_SECONDS 900 /* an image may have to be pulled */
#define COPY_SECONDS 60
#define MOST_DENIALS 200 /* files whose refusal is told one by one */
/* Bytes that are written to the record without waiting for what follows. */
#define LARGE_OUTPUT 65536
#define BACKSTOP_SECONDS 15 /* past the command's limit; a provider gives up before that */

typedef struct {
  Run *run;
  const ExecuteCall *request;
  char *id;     /* call_... */
  char *script; /* the command as sh gets it */
  JsonObject *args;
  gint64 limit; /* seconds */
  Gate *gate;
  GPtrArray *approvals;     /* ids of earlier answers that this call stands on */
  gboolean waits;           /* its asks were put down for a person */
  PolicyDecision *decision; /* that of the command itself */
  Session *session;
  char *execution_id;
  BridgeReport *report;   /* NULL: nothing is copied */
  guint files_allowed[2]; /* read, write: told in one summary */
  JsonObject *files_denied;

  Output out;
  Output err;
  /* What is kept, once the command has ended. */
  JsonObject *stdout_text;
  JsonObject *stderr_text;
  JsonObject *stdout_kept; /* what the record has of it beside the text; NULL: nothing */
  JsonObject *stderr_kept;
  gboolean large; /* it is a matter of memory */
  gboolean stdout_cut;
  gboolean stderr_cut;
  gboolean stopped; /* the door's output function said so */
  struct sandhost_result result;
  gint64 started;
  gboolean timed_out;
  gboolean lost;
} Call;

static CallScope scope_for(const Call *call, gint64 seconds) {
  const RunHooks *hooks = &call->run->hooks;
  return (CallScope){
      .deadline = clock_deadline(seconds * CLOCK_SECOND),
      .cancel = hooks->cancel,
      .progress = hooks->progress,
      .user = hooks->user,
  };
}

static JsonObject *facts_of(const Call *call) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "tool_call_id", call->id);
  return facts;
}

/* ---- 1. Asking ---------------------------------------------------------------------------------------- */

static gboolean record_decision(void *user, const PolicyRequest *request,
                                const PolicyDecision *decision, GError **error) {
  Call *call = user;
  (void)error; /* cannot fail here: the flush before the next step tells */

  JsonObject *asked = facts_of(call);
  json_add_text(asked, "capability", request->capability);
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "request", policy_request_json(request));
  journal_add(call->run->journal, "policy_request_created", asked, payload);

  JsonObject *facts = facts_of(call);
  json_add_text(facts, "effect", effect_name(decision->effect));
  json_add_text(facts, "capability", request->capability);
  json_add_text(facts, "reason_code", decision->reason_code);
  json_add_take(facts, "matched_rule_ids",
                json_from_strv((const char *const *)decision->matched_rule_ids));
  json_add_text(facts, "approval_id", decision->approval_id);
  json_add_text(facts, "approved_by", decision->approved_by);
  json_add_text(facts, "denied_by", decision->denied_by);
  JsonObject *output = json_object_new_object();
  json_add_take(output, "decision", policy_decision_json(decision));
  g_autofree char *type = g_strdup_printf("policy_decision_%s", effect_name(decision->effect));
  journal_add(call->run->journal, type, facts, output);
  return TRUE;
}

static char *answer_ask(void *user, const PolicyRequest *request, const PolicyDecision *decision) {
  Run *run = ((Call *)user)->run;
  if (!run->hooks.answer) {
    return NULL;
  }
  pthread_mutex_lock(&run->answering);
  char *approver = run->hooks.answer(run->hooks.user, request, decision);
  pthread_mutex_unlock(&run->answering);
  return approver;
}

static gboolean has_id(GPtrArray *ids, const char *id) {
  return g_ptr_array_find_with_equal_func(ids, id, g_str_equal, NULL);
}

/* An answer holds for the whole call, so for a second sandbox of it too; it is used once, with the command. */
static GateAnswer recall_answer(void *user, const PolicyRequest *request,
                                const PolicyDecision *decision) {
  Call *call = user;
  GateAnswer answer = pause_recall(call->run, call->id, call->args, request, decision);
  if (answer.verdict == GATE_APPROVED && !has_id(call->approvals, answer.approval_id)) {
    g_ptr_array_add(call->approvals, g_strdup(answer.approval_id));
  }
  return answer;
}

static gboolean suspend_asks(void *user, GPtrArray *requests, GPtrArray *decisions,
                             GError **error) {
  Call *call = user;
  call->waits = pause_suspend(call->run, call->id, call->args, requests, decisions, error);
  return call->waits;
}

static Gate *gate_for(Call *call) {
  const Harness *harness = call->run->harness;
  const GateHooks hooks = {
      .user = call,
      .record = record_decision,
      .answer = call->run->pauses && !call->run->hooks.answer ? NULL : answer_ask,
      .recall = recall_answer,
      .suspend = call->run->pauses ? suspend_asks : NULL,
  };
  return gate_new(harness->policy, &hooks, provider_instance_isolates(harness->instance),
                  harness->config->approval_fails);
}

static gboolean authorize_one(Call *call, PolicyRequest *take_request,
                              PolicyDecision **ret_decision, GError **error) {
  g_autoptr(GPtrArray) requests =
      g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  g_ptr_array_add(requests, take_request);
  g_autoptr(GPtrArray) decisions = NULL;
  if (!gate_authorize(call->gate, requests, &decisions, error)) {
    return FALSE;
  }
  if (ret_decision) {
    *ret_decision = g_ptr_array_steal_index(decisions, 0);
  }
  return TRUE;
}

static gboolean authorize_manifest(Call *call, GError **error) {
  g_autoptr(GPtrArray) requests = request_manifest(call->run->harness->config->manifest);
  return requests->len == 0 || gate_authorize(call->gate, requests, NULL, error);
}

static gboolean authorize_command(Call *call, GError **error) {
  const char *const argv[] = {"sh", "-c", call->script, NULL};
  gboolean isolated = provider_instance_isolates(call->run->harness->instance);
  return authorize_one(call, request_command(argv, isolated), &call->decision, error);
}

/* ---- 2. A sandbox --------------------------------------------------------------------------------------- */

static gboolean permit_file(void *copier, gboolean write, const char *path, GError **error) {
  Call *call = copier;
  (void)error;
  g_autoptr(PolicyRequest) request = request_file(write, path);
  g_autoptr(PolicyDecision) decision = NULL;
  if (gate_permits(call->gate, request, &decision)) {
    call->files_allowed[write ? 1 : 0]++;
    return TRUE;
  }
  if (json_object_array_length(call->files_denied) < MOST_DENIALS) {
    record_decision(call, request, decision, NULL);
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
    run->session = session_open(run->harness, run->journal, run->id, permit_file, &scope, error);
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
  if (!authorize_one(call, request_execute(), NULL, error)) {
    return FALSE;
  }
  pthread_mutex_lock(&run->opening);
  gboolean opens = !run->session || session_is_lost(run->session);
  gboolean ok = (!opens || authorize_manifest(call, error)) && authorize_command(call, error) &&
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

static gboolean is_cancel(const GError *error) {
  return provider_error_is(error, SANDHOST_CANCELLED);
}

/* A sandbox that cannot take the files is replaced once: it may have died since the last command. */
static gboolean copy_in(Call *call, GError **error) {
  if (!call->session->bridge) {
    return TRUE;
  }
  g_autoptr(GError) failure = NULL;
  call->report = bridge_report_new();
  if (copy(call, FALSE, &failure)) {
    return TRUE;
  }
  if (failure->domain != PROVIDER_ERROR || is_cancel(failure)) {
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
  }
  session_mark_lost(call->session);
  g_clear_pointer(&call->session, session_unref);
  g_clear_pointer(&call->report, bridge_report_free);
  call->report = bridge_report_new();

  pthread_mutex_lock(&call->run->opening);
  gboolean ok = authorize_manifest(call, error) && join_session(call, error);
  pthread_mutex_unlock(&call->run->opening);
  return ok && copy(call, FALSE, error);
}

static void skip_everything(Call *call, const GError *failure) {
  if (provider_error_is(failure, SANDHOST_LOST) || session_is_lost(call->session)) {
    session_mark_lost(call->session);
    bridge_report_skip(call->report, "*", "the sandbox was lost before its files were copied back");
  } else if (failure->domain == PROVIDER_ERROR) {
    bridge_report_skip(call->report, ".", "could not list the sandbox files");
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

static void record_sync(Call *call) {
  JsonObject *facts = observation_sync(call->report);
  json_add_text(facts, "tool_call_id", call->id);
  json_add_text(facts, "sandbox_session_id", call->session ? call->session->id : NULL);
  json_add_int(facts, "reads_allowed", call->files_allowed[0]);
  json_add_int(facts, "writes_allowed", call->files_allowed[1]);
  json_add_take(facts, "denied", json_object_get(call->files_denied));
  journal_add(call->run->journal, "sandbox_workspace_sync", facts, NULL);
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
  output_add(stream == SANDHOST_STDERR ? &call->err : &call->out, data, length);
  if (call->request->output && !call->request->output(call->request->user, stream, data, length)) {
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

static JsonObject *execution_facts(const Call *call) {
  JsonObject *facts = facts_of(call);
  json_add_text(facts, "sandbox_session_id", call->session->id);
  json_add_text(facts, "execution_id", call->execution_id);
  json_add_text(facts, "sandbox_provider", provider_instance_name(call->run->harness->instance));
  json_add_text(facts, "command_name", "sh");
  json_add_int(facts, "argc", 3);
  json_add_int(facts, "timeout_seconds", call->limit);
  json_add_text(facts, "purpose", "command");
  json_add_text(facts, "decision_id", call->decision->decision_id);
  json_add_take(facts, "matched_rule_ids",
                json_from_strv((const char *const *)call->decision->matched_rule_ids));
  return facts;
}

static JsonObject *argv_json(const Call *call) {
  const char *const argv[] = {"sh", "-c", call->script, NULL};
  return json_from_strv(argv);
}

static void record_started(Call *call) {
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "command", argv_json(call));
  journal_add(call->run->journal, "sandbox_exec_started", execution_facts(call), payload);
}

/* null for a command of which nobody knows how it ended. */
static JsonObject *exit_code_json(const Call *call, const GError *failure) {
  return failure && !call->lost ? NULL : json_object_new_int(call->result.exit_code);
}

/* The bytes become text, once, and are let go. */
static void settle_output(Call *call) {
  call->stdout_cut = output_truncated(&call->out, call->result.stdout_bytes);
  call->stderr_cut = output_truncated(&call->err, call->result.stderr_bytes);
  call->large = call->out.kept->len + call->err.kept->len > LARGE_OUTPUT;
  call->stdout_kept = output_seal(&call->out, call->stdout_cut);
  call->stderr_kept = output_seal(&call->err, call->stderr_cut);
  call->stdout_text = output_text(&call->out, call->stdout_cut);
  call->stderr_text = output_text(&call->err, call->stderr_cut);
  output_clear(&call->out);
  output_clear(&call->err);
}

/* What the command prints is kept beyond what its result holds. Returns the limit, in bytes. */
static guint64 keep_output(Call *call) {
  const Run *run = call->run;
  guint64 keep = run->record ? run->harness->config->keep_output_bytes : 0;
  if (keep > 0) {
    output_keep(&call->out, record_output_new(run->record, run->id, call->execution_id, 1, keep));
    output_keep(&call->err, record_output_new(run->record, run->id, call->execution_id, 2, keep));
  }
  return keep;
}

static void record_ended(Call *call, gint64 duration, const GError *failure) {
  JsonObject *facts = execution_facts(call);
  json_add_take(facts, "exit_code", exit_code_json(call, failure));
  json_add_bool(facts, "timed_out", call->timed_out);
  json_add_double(facts, "duration_ms", (double)duration / (double)CLOCK_MILLISECOND);
  json_add_int(facts, "stdout_bytes", (gint64)MAX(call->out.total, call->result.stdout_bytes));
  json_add_int(facts, "stderr_bytes", (gint64)MAX(call->err.total, call->result.stderr_bytes));
  json_add_bool(facts, "stdout_truncated", call->stdout_cut);
  json_add_bool(facts, "stderr_truncated", call->stderr_cut);
  if (call->stdout_kept) {
    json_add_take(facts, "stdout_kept", json_object_get(call->stdout_kept));
  }
  if (call->stderr_kept) {
    json_add_take(facts, "stderr_kept", json_object_get(call->stderr_kept));
  }
  json_add_bool(facts, "session_terminated", call->lost);
  json_add_int(facts, "signal", call->result.signal);
  json_add_text(facts, "error", failure ? failure->message : NULL);
  json_add_double(facts, "user_ms", (double)call->result.user_time / (double)CLOCK_MILLISECOND);
  json_add_double(facts, "system_ms", (double)call->result.system_time / (double)CLOCK_MILLISECOND);
  json_add_int(facts, "max_rss_bytes", (gint64)call->result.max_rss);

  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "command", argv_json(call));
  json_add_take(payload, "exit_code", exit_code_json(call, failure));
  json_add_take(payload, "stdout", json_object_get(call->stdout_text));
  json_add_take(payload, "stderr", json_object_get(call->stderr_text));
  gboolean good =
      !failure && call->result.ended == SANDHOST_ENDED_EXIT && call->result.exit_code == 0;
  journal_add(call->run->journal, good ? "sandbox_exec_completed" : "sandbox_exec_failed", facts,
              payload);
}

/* A sandbox that went away under the command, and one whose provider did not keep the limit, are an end of the
 * command: 137, as a kill. Anything else that went wrong stays an error. */
static gboolean settle_failure(Call *call, GError *failure) {
  gboolean overrun = provider_error_is(failure, SANDHOST_TIMEOUT);
  if (!overrun && !provider_error_is(failure, SANDHOST_LOST)) {
    return FALSE;
  }
  session_mark_lost(call->session);
  call->lost = TRUE;
  call->timed_out = overrun || clock_now() - call->started >= call->limit * CLOCK_SECOND;
  call->result.ended = SANDHOST_ENDED_SIGNAL;
  call->result.exit_code = 137;
  call->result.signal = 9;
  return TRUE;
}

static gboolean run_command(Call *call, GError **error) {
  record_started(call);
  if (!journal_commit(call->run->journal, call->approvals, error)) {
    return FALSE;
  }
  const struct sandhost_text argv[] = {
      {.data = "sh", .length = 2},
      {.data = "-c", .length = 2},
      {.data = call->script, .length = strlen(call->script)},
  };
  const guint64 keep = keep_output(call);
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
  record_ended(call, duration, failure);
  if (call->large) {
    journal_flush(call->run->journal,
                  NULL); /* lest it be held twice; what fails here fails again at the end */
  }
  if (!settled) {
    g_propagate_error(error, g_steal_pointer(&failure));
  }
  return settled;
}

/* ---- 6. Telling ------------------------------------------------------------------------------------------- */

static const char *outcome_name(ExecuteEnd end, int exit_code, gboolean waits) {
  switch (end) {
  case EXECUTE_FINISHED:
    return exit_code == 0 ? "success" : "error";
  case EXECUTE_TIMED_OUT:
  case EXECUTE_LOST:
  case EXECUTE_FAILED:
    return "error";
  case EXECUTE_WAITING: /* denied where nothing is kept to be answered later */
    return waits ? "awaiting_approval" : "denied";
  case EXECUTE_DENIED:
    return "denied";
  case EXECUTE_UNKNOWN:
    return "unknown";
  case EXECUTE_REJECTED:
    return "rejected";
  case EXECUTE_CANCELLED:
    return "cancelled";
  }
  return "error";
}

static JsonObject *without(JsonObject *object, const char *const *keys) {
  JsonObject *copy = json_object_new_object();
  json_object_object_foreach(object, key, value) {
    if (!g_strv_contains(keys, key)) {
      json_add_take(copy, key, json_object_get(value));
    }
  }
  return copy;
}

/* What a command printed is on record with its execution already, and is not kept twice: the trajectory puts it back. */
static JsonObject *observation_for_record(JsonObject *observation) {
  static const char *const DATA[] = {"data", NULL};
  static const char *const STREAMS[] = {"stdout", "stderr", NULL};
  JsonObject *data = json_get(observation, "data");
  if (!json_get(data, "stdout")) {
    return json_object_get(observation);
  }
  JsonObject *copy = without(observation, DATA);
  json_add_take(copy, "data", without(data, STREAMS));
  return copy;
}

static void record_call_ended(Run *run, const char *call_id, const ExecuteOutcome *outcome,
                              gboolean waits) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "tool_call_id", call_id);
  json_add_text(facts, "tool_name", "execute");
  json_add_text(facts, "outcome", outcome_name(outcome->end, outcome->exit_code, waits));
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "observation", observation_for_record(outcome->observation));
  journal_add(run->journal, "tool_call_completed", facts, payload);
}

static ExecuteEnd end_of_error(const Call *call, const GError *error) {
  if (call->stopped || is_cancel(error) || cancel_raised(call->run->hooks.cancel)) {
    return EXECUTE_CANCELLED;
  }
  if (g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_APPROVAL_REQUIRED)) {
    return call->run->harness->config->approval_fails ? EXECUTE_DENIED : EXECUTE_WAITING;
  }
  return sandhost_error_governance_code(error) ? EXECUTE_DENIED : EXECUTE_FAILED;
}

/* Only what this call has put down: another one may have, at the same time. */
static void tell_waiting(const Call *call, const GError *error, ExecuteOutcome *ret_outcome) {
  g_autoptr(JsonObject) waiting = run_waiting(call->run);
  JsonObject *own = json_object_new_array();
  for (gsize i = 0; i < json_object_array_length(waiting); i++) {
    JsonObject *approval = json_object_array_get_idx(waiting, i);
    if (g_strcmp0(json_get_text(approval, "tool_call_id"), call->id) == 0) {
      json_object_array_add(own, json_object_get(approval));
    }
  }
  ret_outcome->end = EXECUTE_WAITING;
  ret_outcome->exit_code = -1;
  ret_outcome->observation = observation_error(call->args, error->message, NULL);
  json_add_text(ret_outcome->observation, "status", "awaiting_approval");
  json_add_take(ret_outcome->observation, "approvals", own);
}

static void tell_error(const Call *call, const GError *error, ExecuteOutcome *ret_outcome) {
  if (call->waits) {
    tell_waiting(call, error, ret_outcome);
    return;
  }
  ret_outcome->end = end_of_error(call, error);
  ret_outcome->exit_code = -1;
  ret_outcome->observation = observation_error(
      call->args,
      ret_outcome->end == EXECUTE_CANCELLED ? "Tool execution cancelled" : error->message,
      sandhost_error_governance_code(error));
  if (ret_outcome->end == EXECUTE_CANCELLED) {
    json_add_text(ret_outcome->observation, "error_type", "cancelled");
  }
}

static void tell_result(const Call *call, ExecuteOutcome *ret_outcome) {
  const ObservationFacts facts = {
      .result = &call->result,
      .stdout_text = call->stdout_text,
      .stderr_text = call->stderr_text,
      .stdout_cut = call->stdout_cut,
      .stderr_cut = call->stderr_cut,
      .limit = call->limit,
      .isolated = provider_instance_isolates(call->run->harness->instance),
      .lost = call->lost ? session_lost_reason(call->session) : NULL,
      .timed_out = call->timed_out,
      .report = call->report,
  };
  ret_outcome->end = call->lost        ? EXECUTE_LOST
                     : call->timed_out ? EXECUTE_TIMED_OUT
                                       : EXECUTE_FINISHED;
  ret_outcome->exit_code = call->result.exit_code;
  ret_outcome->observation = observation_result(call->args, &facts);
}

static void record_call_started(Run *run, const char *call_id, JsonObject *args, JsonObject *tag,
                                gboolean resumed) {
  JsonObject *facts = json_object_new_object();
  json_add_text(facts, "tool_call_id", call_id);
  json_add_text(facts, "tool_name", "execute");
  if (tag) {
    json_add_take(facts, "tag", json_object_get(tag));
  }
  if (resumed) {
    json_add_bool(facts, "resumed", TRUE);
  }
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "arguments", json_object_get(args));
  journal_add(run->journal, "tool_call_started", facts, payload);
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

/* sh would take a command that begins with - or + for its own options; a space before it changes nothing else. */
char *execute_script(const char *command) {
  return g_strconcat(*command == '-' || *command == '+' ? " " : "", command, NULL);
}

static void call_init(Call *call, Run *run, const ExecuteCall *request) {
  guint64 cap = provider_instance_max_output(run->harness->instance);
  gint64 most = run->harness->config->tool_call_timeout;
  *call = (Call){
      .run = run,
      .request = request,
      .id = request->tool_call_id ? g_strdup(request->tool_call_id) : id_new("call"),
      .approvals = g_ptr_array_new_with_free_func(g_free),
      .execution_id = id_new("exec"),
      .script = execute_script(request->command),
      .args = args_of(request),
      .limit = CLAMP(request->timeout ? request->timeout : EXECUTE_DEFAULT_TIMEOUT, 1, most),
      .files_denied = json_object_new_array(),
      .result = {.size = sizeof call->result},
  };
  call->gate = gate_for(call);
  output_init(&call->out, cap);
  output_init(&call->err, cap);
}

static void call_clear(Call *call) {
  session_unref(call->session);
  gate_free(call->gate);
  g_ptr_array_unref(call->approvals);
  policy_decision_free(call->decision);
  bridge_report_free(call->report);
  json_object_put(call->files_denied);
  json_object_put(call->args);
  json_object_put(call->stdout_text);
  json_object_put(call->stderr_text);
  json_object_put(call->stdout_kept);
  json_object_put(call->stderr_kept);
  output_clear(&call->out);
  output_clear(&call->err);
  g_free(call->script);
  g_free(call->execution_id);
  g_free(call->id);
}

static gboolean is_blank(const char *command) {
  return command[strspn(command, " \t\r\n")] == '\0';
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
    execute_reject(run, call.args, "The run waits for an approval; no command is begun.",
                   ret_outcome);
    call_clear(&call);
    return;
  }
  record_call_started(run, call.id, call.args, request->tag, request->tool_call_id != NULL);
  gboolean ran =
      authorize_and_join(&call, &error) && copy_in(&call, &error) && run_command(&call, &error);
  if (ran && call.report && !call.lost) {
    copy_back(&call);
  }
  if (call.report) {
    record_sync(&call);
    ret_outcome->sync = observation_sync(call.report);
  }
  if (ran) {
    tell_result(&call, ret_outcome);
  } else {
    tell_error(&call, error, ret_outcome);
  }
  record_call_ended(run, call.id, ret_outcome, call.waits);

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
  record_call_started(run, id, arguments, NULL, FALSE);
  record_call_ended(run, id, ret_outcome, FALSE);
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
  record_call_ended(run, tool_call_id, ret_outcome, FALSE);
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
