/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c: a person's decision on its way into the record, and the state of a run's calls as its events tell it. */
#include "run/resume.h"

#include <string.h>

#include "base/error.h"
#include "base/millionths.h"
#include "governance/approvals.h"
#include "governance/requests.h"
#include "run/execute.h"
#include "run/typed.h"

#define MOST_NOTE 4096
#define MOST_TIMEOUT 1000 /* the configuration's own limit holds beside it when the call runs */

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

typedef struct {
  JsonObject *arguments;
  JsonObject *shown; /* NULL: nothing is to be taken out of them */
  char *argv_digest;
} Edit;

static void put_edit(void *user, JsonObject *approval) {
  const Edit *edit = user;
  approval_edit(approval, edit->arguments, edit->argv_digest);
  if (edit->shown) {
    json_add_take(approval, APPROVAL_SEALED_EDIT, json_object_get(edit->arguments));
    json_add_take(approval, "edited_arguments", json_object_get(edit->shown));
  }
}

/* The digest that the gate will find when it asks about the edited command. Owned. */
static char *argv_digest_of(const char *command) {
  g_autofree char *script = request_script(command);
  const char *const argv[] = {"sh", "-c", script, NULL};
  g_autoptr(PolicyRequest) request = request_command(argv, TRUE);
  return g_strdup(json_get_text(json_get(request->metadata, "command"), "digest"));
}

static gboolean refuse(GError **error, const char *text) {
  g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG, text);
  return FALSE;
}

static gboolean check_who(const char *approver, const char *note, GError **error) {
  return approver_check_name(approver, error) &&
         approver_check_text("note", note, MOST_NOTE, error);
}

static gboolean check_decision(const char *decision, const char *approver, const char *note,
                               JsonObject *arguments, GError **error) {
  gboolean approves = g_strcmp0(decision, "approve") == 0;
  if (!approves && g_strcmp0(decision, "deny") != 0) {
    return refuse(error, "decision must be 'approve' or 'deny'");
  }
  if (!check_who(approver, note, error)) {
    return FALSE;
  }
  if (arguments && !approves) {
    return refuse(error, "arguments can only be edited when approving");
  }
  return !arguments || approval_check_arguments(arguments, MOST_TIMEOUT, error);
}

/* The approval, where a decision about it could count. One that is not pending any more is left to record_decide, which
 * has the words for it; it never is pending again. FALSE: *error. */
static gboolean find_pending(JsonObject *life, const char *run_id, const char *approval_id,
                             JsonObject **ret_approval, GError **error) {
  static const char *const OPEN[] = {"running", "interrupted", "awaiting_approval",
                                     "awaiting_budget", NULL};
  JsonObject *approvals = json_get(life, "approvals");
  const char *status = json_get_text(life, "status");
  gboolean goes_on = status && g_strv_contains(OPEN, status);
  for (gsize i = 0; i < json_object_array_length(approvals); i++) {
    JsonObject *approval = json_object_array_get_idx(approvals, i);
    if (g_strcmp0(json_get_text(approval, "approval_id"), approval_id) == 0) {
      gboolean pending = g_strcmp0(json_get_text(approval, "status"), "pending") == 0 && goes_on;
      *ret_approval = pending ? approval : NULL;
      return TRUE;
    }
  }
  g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND, "No approval %s on run %s",
              approval_id, run_id);
  return FALSE;
}

static gboolean check_approver(JsonObject *life, const char *run_id, const char *approval_id,
                               const ResumeDecision *decision, GError **error) {
  JsonObject *approval = NULL;
  if (!find_pending(life, run_id, approval_id, &approval, error)) {
    return FALSE;
  }
  if (!approval) {
    return TRUE;
  }
  g_autoptr(JsonObject) question = json_object_new_object();
  json_add_text(question, "run_id", run_id);
  json_add_text(question, "approval_id", approval_id);
  json_add_text(question, "decision", decision->decision);
  json_add_text(question, "approver", decision->approver);
  json_add_text(question, "note", decision->note);
  json_add_take(question, "arguments", json_object_get(decision->arguments));
  json_add_take(question, "approval", approval_told(approval));
  return approver_allows(json_get(life, "request"), decision->hook, question, error);
}

gboolean resume_decide_as(Record *record, const char *run_id, const char *approval_id,
                          const ResumeDecision *decision, JsonObject **ret_approval,
                          GError **error) {
  JsonObject *arguments = decision->arguments;
  if (!check_decision(decision->decision, decision->approver, decision->note, arguments, error)) {
    return FALSE;
  }
  g_autoptr(JsonObject) life = record_life(record, run_id, error);
  if (!life || !check_approver(life, run_id, approval_id, decision, error)) {
    return FALSE;
  }
  g_autoptr(Typed) typed = typed_new(life, decision->known);
  g_autofree char *approver = typed_text(typed, decision->approver);
  g_autofree char *note = typed_text(typed, decision->note);
  g_autofree char *digest = arguments ? argv_digest_of(json_get_text(arguments, "command")) : NULL;
  g_autoptr(JsonObject) shown = arguments ? typed_arguments(typed, arguments) : NULL;
  Edit edit = {.arguments = arguments, .shown = shown, .argv_digest = digest};
  const RecordDecision stored = {
      .approve = strcmp(decision->decision, "approve") == 0,
      .approver = approver,
      .note = note && *note ? note : NULL,
      .edit = arguments ? put_edit : NULL,
      .user = &edit,
  };
  return record_decide(record, run_id, approval_id, &stored, ret_approval, error);
}

gboolean resume_decide(Record *record, const char *run_id, const char *approval_id,
                       const char *decision, const char *approver, const char *note,
                       JsonObject *arguments, JsonObject **ret_approval, GError **error) {
  const ResumeDecision whole = {
      .decision = decision, .approver = approver, .note = note, .arguments = arguments};
  return resume_decide_as(record, run_id, approval_id, &whole, ret_approval, error);
}

/* Those that wait, of one id or of all. Owned. */
static JsonObject *pending_budgets(JsonObject *life, const char *request_id) {
  JsonObject *pending = json_object_new_array();
  JsonObject *requests = json_get(life, "budget_requests");
  for (gsize i = 0; i < json_object_array_length(requests); i++) {
    JsonObject *request = json_object_array_get_idx(requests, i);
    if (g_strcmp0(json_get_text(request, "status"), "pending") == 0 &&
        (!request_id || g_strcmp0(json_get_text(request, "request_id"), request_id) == 0)) {
      json_object_array_add(pending, json_object_get(request));
    }
  }
  return pending;
}

/* Where nothing waits, record_decide_budget has the words for it. */
static gboolean check_granter(JsonObject *life, const char *run_id, const char *request_id,
                              const RecordBudgetDecision *decision, const ApproverHook *hook,
                              GError **error) {
  g_autoptr(JsonObject) pending = pending_budgets(life, request_id);
  if (json_object_array_length(pending) == 0) {
    return TRUE;
  }
  g_autoptr(JsonObject) question = json_object_new_object();
  json_add_text(question, "run_id", run_id);
  json_add_text(question, "approval_id", NULL);
  json_add_text(question, "decision", decision->grants ? "grant" : "deny");
  json_add_text(question, "approver", decision->approver);
  json_add_text(question, "note", decision->note);
  json_add_take(question, "amount", decision->amount ? millionths_json(decision->amount) : NULL);
  json_add_take(question, "budget_requests", json_object_get(pending));
  return approver_allows(json_get(life, "request"), hook, question, error);
}

gboolean resume_decide_budget(Record *record, const char *run_id, const char *request_id,
                              const RecordBudgetDecision *decision, const ApproverHook *hook,
                              const Privacy *known, JsonObject **ret_requests, GError **error) {
  RecordBudgetDecision stored = *decision;
  if (!check_who(decision->approver, decision->note, error)) {
    return FALSE;
  }
  if (decision->amount < 0) {
    return refuse(error, "amount must be greater than zero");
  }
  if (decision->amount > MILLIONTHS_MOST) {
    return refuse(error, "amount must be at most " MILLIONTHS_MOST_TEXT);
  }
  g_autoptr(JsonObject) life = record_life(record, run_id, error);
  if (!life || !check_granter(life, run_id, request_id, decision, hook, error)) {
    return FALSE;
  }
  g_autoptr(Typed) typed = typed_new(life, known);
  g_autofree char *approver = typed_text(typed, decision->approver);
  g_autofree char *note = typed_text(typed, decision->note);
  stored.approver = approver;
  stored.note = note && *note ? note : NULL;
  return record_decide_budget(record, run_id, request_id, &stored, ret_requests, error);
}

gboolean resume_abandon(Record *record, const char *run_id, const char *status, const char *reason,
                        const Privacy *known, gboolean *ret_changed, GError **error) {
  g_autoptr(JsonObject) life = record_life(record, run_id, error);
  if (!life) {
    return FALSE;
  }
  g_autoptr(Typed) typed = typed_new(life, known);
  g_autofree char *told = typed_text(typed, reason);
  return record_abandon(record, run_id, status, told, ret_changed, error);
}

/* ---- What remains ------------------------------------------------------------------------------------------------ */

static void call_free(ResumeCall *call) {
  g_free(call->tool_call_id);
  json_object_put(call->arguments);
  json_object_put(call->tag);
  g_free(call->reported);
  g_free(call);
}

static ResumeCall *find(const GPtrArray *calls, const char *id) {
  for (guint i = calls->len; i-- > 0;) {
    ResumeCall *call = g_ptr_array_index(calls, i);
    if (g_strcmp0(call->tool_call_id, id) == 0) {
      return call;
    }
  }
  return NULL;
}

static void begin_call(GPtrArray *calls, const char *id, JsonObject *event) {
  ResumeCall *call = g_new0(ResumeCall, 1);
  call->tool_call_id = g_strdup(id);
  call->arguments = json_object_get(json_get(json_get(event, "payload"), "arguments"));
  call->tag = json_object_get(json_get(json_get(event, "metadata"), "tag"));
  call->withheld = json_get_text(json_get(event, "payload"), "capture") != NULL;
  g_ptr_array_add(calls, call);
}

static gboolean waits(const char *outcome) {
  static const char *const OPEN[] = {"awaiting_approval", "awaiting_budget", "interrupted", NULL};
  return outcome && g_strv_contains(OPEN, outcome);
}

static void take_event(GPtrArray *calls, JsonObject *event) {
  const char *type = json_get_text(event, "type");
  JsonObject *facts = json_get(event, "metadata");
  const char *id = json_get_text(facts, "tool_call_id");
  ResumeCall *call = id ? find(calls, id) : NULL;
  if (g_strcmp0(type, "tool_call_started") == 0 && id && !call) {
    begin_call(calls, id, event);
  } else if (!call) {
    return;
  } else if (g_strcmp0(type, "sandbox_exec_started") == 0) {
    call->remains = REMAINS_UNKNOWN;
  } else if (g_strcmp0(type, "sandbox_exec_completed") == 0 ||
             g_strcmp0(type, "sandbox_exec_failed") == 0) {
    g_free(call->reported);
    call->reported = g_strdup(strcmp(type, "sandbox_exec_completed") == 0 ? "success" : "error");
  } else if (g_strcmp0(type, "tool_call_completed") == 0 &&
             !waits(json_get_text(facts, "outcome"))) {
    call->remains = REMAINS_DONE;
  }
}

static void set_arguments(ResumeCall *call, JsonObject *arguments) {
  json_object_put(call->arguments);
  call->arguments = json_object_get(arguments);
  call->withheld = FALSE;
}

/* A call that waits for a budget is kept whole where its events are not. */
static void apply_sealed(GPtrArray *calls, JsonObject *sealed) {
  if (!json_object_is_type(sealed, json_type_object)) {
    return;
  }
  json_object_object_foreach(sealed, id, arguments) {
    ResumeCall *call = find(calls, id);
    if (call && call->remains == REMAINS_AGAIN && arguments) {
      set_arguments(call, arguments);
    }
  }
}

/* A call that waits is kept whole with its approval, whatever of it is recorded. */
static void apply_approvals(GPtrArray *calls, JsonObject *approvals) {
  for (gsize i = 0; i < json_object_array_length(approvals); i++) {
    JsonObject *approval = json_object_array_get_idx(approvals, i);
    ResumeCall *call = find(calls, json_get_text(approval, "tool_call_id"));
    JsonObject *sealed = json_get(approval, APPROVAL_SEALED);
    JsonObject *arguments = sealed ? sealed : json_get(approval, "arguments");
    gboolean used = g_strcmp0(json_get_text(approval, "status"), "used") == 0;
    if (call && call->remains == REMAINS_AGAIN && arguments && !used) {
      set_arguments(call, arguments);
    }
  }
}

/* The newest edit that a person approved and nobody used yet. */
static void apply_edits(GPtrArray *calls, JsonObject *approvals) {
  for (gsize i = 0; i < json_object_array_length(approvals); i++) {
    JsonObject *approval = json_object_array_get_idx(approvals, i);
    JsonObject *sealed = json_get(approval, APPROVAL_SEALED_EDIT);
    JsonObject *edited = sealed ? sealed : json_get(approval, "edited_arguments");
    ResumeCall *call = find(calls, json_get_text(approval, "tool_call_id"));
    if (edited && call && g_strcmp0(json_get_text(approval, "status"), "approved") == 0) {
      set_arguments(call, edited);
    }
  }
}

GPtrArray *resume_calls(JsonObject *run, JsonObject *approvals, JsonObject *sealed) {
  GPtrArray *calls = g_ptr_array_new_with_free_func((GDestroyNotify)call_free);
  JsonObject *events = json_get(run, "events");
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    take_event(calls, json_object_array_get_idx(events, i));
  }
  apply_sealed(calls, sealed);
  apply_approvals(calls, approvals);
  apply_edits(calls, approvals);
  return calls;
}

GPtrArray *resume_find_calls(Record *record, const char *run_id, JsonObject **ret_run,
                             GError **error) {
  g_autoptr(JsonObject) run = record_run(record, run_id, error);
  g_autoptr(JsonObject) approvals = run ? record_approvals(record, run_id, TRUE, error) : NULL;
  g_autoptr(JsonObject) sealed = approvals ? record_sealed_calls(record, run_id, error) : NULL;
  if (!sealed) {
    return NULL;
  }
  GPtrArray *calls = resume_calls(run, approvals, sealed);
  *ret_run = g_steal_pointer(&run);
  return calls;
}

gboolean resume_request_is_redacted(JsonObject *request) {
  return json_get_bool(request, "redacted", FALSE);
}

gboolean resume_lost_sandbox(JsonObject *run) {
  JsonObject *events = json_get(run, "events");
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    const char *type = json_get_text(json_object_array_get_idx(events, i), "type");
    if (g_strcmp0(type, "sandbox_session_created") == 0) {
      return TRUE;
    }
  }
  return FALSE;
}
