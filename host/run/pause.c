/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c: the asks of a run that wait for a person, and what became of those of its earlier segments. */
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/ids.h"
#include "governance/approvals.h"
#include "run/run-private.h"

/* What the sandbox is, and who makes it: an answer about one holds for no other. */
char *pause_manifest_digest(const Config *config) {
  g_autoptr(JsonObject) whole = json_object_new_object();
  JsonObject *governance = json_get(config->agent_config, "governance_config");
  json_add_text(whole, "provider", config->provider);
  json_add_take(whole, "options", json_object_get(config->provider_options));
  json_add_take(whole, "manifest", json_object_get(json_get(governance, "sandbox_manifest")));
  g_autofree char *text = json_canonical(whole);
  return digest_hex(text, strlen(text));
}

/* ---- What was decided -------------------------------------------------------------------------------------------- */

static gboolean has(JsonObject *approval, const char *key, const char *value) {
  return g_strcmp0(json_get_text(approval, key), value) == 0;
}

/* Whether it was asked for this call, and about the same thing. */
static gboolean is_about(JsonObject *approval, const char *call_id, JsonObject *asked) {
  return has(approval, "tool_call_id", call_id) &&
         json_object_equal(json_get(approval, "asked"), asked);
}

static gboolean binds(const Run *run, JsonObject *approval, const char *digest,
                      const PolicyDecision *decision) {
  return has(approval, "request_digest", digest) &&
         has(approval, "policy_hash", decision->policy_hash) &&
         has(approval, "manifest_digest", run->manifest_digest);
}

static GateVerdict verdict_of(JsonObject *approval) {
  if (has(approval, "status", "approved")) {
    return GATE_APPROVED;
  }
  if (has(approval, "status", "denied")) {
    return GATE_DENIED;
  }
  /* One that was decided and then superseded counts for nothing. */
  return has(approval, "status", "expired") && !json_get(approval, "decision") ? GATE_EXPIRED
                                                                               : GATE_NOTHING;
}

GateAnswer pause_recall(const Run *run, const char *call_id, JsonObject *args,
                        const PolicyRequest *request, const PolicyDecision *decision) {
  gsize count = run->decided ? json_object_array_length(run->decided) : 0;
  g_autofree char *digest = count > 0 ? approval_request_digest(request, args) : NULL;
  for (gsize i = count; i-- > 0;) { /* the newest word counts */
    JsonObject *approval = json_object_array_get_idx(run->decided, i);
    GateVerdict verdict = verdict_of(approval);
    if (verdict != GATE_NOTHING && has(approval, "tool_call_id", call_id) &&
        binds(run, approval, digest, decision)) {
      const char *text = json_get_text(approval, verdict == GATE_EXPIRED ? "expires_at" : "note");
      return (GateAnswer){
          .verdict = verdict,
          .approval_id = g_strdup(json_get_text(approval, "approval_id")),
          .by = g_strdup(json_get_text(approval, "approver")),
          .text = g_strdup(text),
      };
    }
  }
  return (GateAnswer){.verdict = GATE_NOTHING};
}

/* ---- What waits -------------------------------------------------------------------------------------------------- */

/* An answer that was given about the same thing and does not fit any more is over, and whoever decides now is told. */
static void supersede(const Run *run, const char *call_id, const PolicyRequest *request,
                      PolicyDecision *decision, GPtrArray *superseded) {
  g_autoptr(JsonObject) asked = approval_asked(request);
  gsize count = run->decided ? json_object_array_length(run->decided) : 0;
  for (gsize i = 0; i < count; i++) {
    JsonObject *approval = json_object_array_get_idx(run->decided, i);
    if (!has(approval, "status", "approved") || !is_about(approval, call_id, asked)) {
      continue;
    }
    const char *id = json_get_text(approval, "approval_id");
    const char *why = !has(approval, "policy_hash", decision->policy_hash)      ? "policy"
                      : !has(approval, "manifest_digest", run->manifest_digest) ? "sandbox"
                                                                                : "call";
    char *reason = g_strdup_printf("%s (approval %s was given for another %s and does not count)",
                                   decision->reason, id, why);
    g_free(decision->reason);
    decision->reason = reason;
    g_ptr_array_add(superseded, g_strdup(id));
  }
}

static void record_created(Run *run, JsonObject *approval) {
  static const char *const FACTS[] = {"approval_id", "tool_call_id",    "capability",
                                      "risk_level",  "expires_at",      "request_id",
                                      "policy_hash", "manifest_digest", "request_digest"};
  JsonObject *facts = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(FACTS); i++) {
    json_add_take(facts, FACTS[i], json_object_get(json_get(approval, FACTS[i])));
  }
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "command", json_object_get(json_get(approval, "command")));
  journal_add(run->journal, "approval_request_created", facts, payload);
}

/* What is stored of the command is shown to people, so no credential is in it; the call itself is kept beside it where
 * it differs, since it must be run again just as it was asked about. That one is gone once it was used. */
static void seal(const Run *run, JsonObject *approval) {
  const Privacy *privacy = run->harness->privacy;
  JsonObject *arguments = json_get(approval, "arguments");
  JsonObject *command = json_get(approval, "command");
  const char *summary = json_get_text(command, "summary");
  gboolean changed = FALSE;
  JsonObject *shown = capture_arguments(privacy, PRIVACY_NOWHERE, arguments, &changed);
  if (changed) {
    json_add_take(approval, APPROVAL_SEALED, json_object_get(arguments));
    json_add_take(approval, "arguments", json_object_get(shown));
  }
  g_autofree char *other = summary ? privacy_command(privacy, PRIVACY_NOWHERE, summary) : NULL;
  if (other) {
    json_add_text(command, "summary", other);
  }
  gboolean personal = FALSE;
  json_object_put(capture_arguments(privacy, PRIVACY_TELEMETRY, shown, &personal));
  if (!run->harness->config->capture.inputs || personal) {
    json_add_bool(approval, APPROVAL_UNRECORDED, TRUE);
  }
  json_object_put(shown);
}

JsonObject *pause_answered(const Run *run, const char *call_id, JsonObject *args,
                           const PolicyRequest *request, const PolicyDecision *decision,
                           const char *approver) {
  const ApprovalCall call = {.tool_call_id = call_id,
                             .arguments = args,
                             .manifest_digest = run->manifest_digest,
                             .now = clock_wall()};
  g_autofree char *now = clock_format(call.now);
  JsonObject *approval = approval_new(request, decision, &call);
  seal(run, approval);
  if (!decision->approval_id) { /* nobody needed one so far */
    g_autofree char *id = id_new("approval");
    json_add_text(approval, "approval_id", id);
  }
  json_add_text(approval, "status", "approved");
  json_add_text(approval, "decision", "approve");
  json_add_text(approval, "approver", approver);
  json_add_text(approval, "decided_at", now);
  return approval;
}

void pause_record_answered(Run *run, JsonObject *approval) {
  static const char *const FACTS[] = {"approval_id", "tool_call_id",  "capability",
                                      "status",      "approver",      "note",
                                      "decision",    "request_digest"};
  JsonObject *facts = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(FACTS); i++) {
    json_add_take(facts, FACTS[i], json_object_get(json_get(approval, FACTS[i])));
  }
  record_created(run, approval);
  journal_add(run->journal, "approval_resolved", facts, NULL);
}

static void free_json(void *value) {
  json_object_put(value);
}

gboolean pause_suspend(Run *run, const char *call_id, JsonObject *args, GPtrArray *requests,
                       GPtrArray *decisions, GError **error) {
  g_autoptr(GPtrArray) approvals = g_ptr_array_new_with_free_func(free_json);
  g_autoptr(GPtrArray) superseded = g_ptr_array_new_with_free_func(g_free);
  if (strlen(json_object_to_json_string(args)) > PAUSE_MOST_ARGUMENTS) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_APPROVAL_REQUIRED,
                        "The command is too long to wait for an approval.");
    return FALSE;
  }
  const ApprovalCall call = {.tool_call_id = call_id,
                             .arguments = args,
                             .manifest_digest = run->manifest_digest,
                             .now = clock_wall()};
  for (guint i = 0; i < decisions->len; i++) {
    PolicyDecision *decision = g_ptr_array_index(decisions, i);
    const PolicyRequest *request = g_ptr_array_index(requests, i);
    supersede(run, call_id, request, decision, superseded);
    JsonObject *approval = approval_new(request, decision, &call);
    seal(run, approval);
    g_ptr_array_add(approvals, approval);
    record_created(run, approval);
  }
  if (!journal_suspend(run->journal, approvals, superseded, error)) {
    return FALSE;
  }
  pthread_mutex_lock(&run->pausing);
  for (guint i = 0; i < approvals->len; i++) {
    /* A copy that the call's thread shares nothing with. */
    g_autoptr(JsonObject) shown = approval_shown(g_ptr_array_index(approvals, i));
    JsonObject *copy = NULL;
    json_object_deep_copy(shown, &copy, NULL);
    json_object_array_add(run->waiting, copy);
  }
  pthread_mutex_unlock(&run->pausing);
  return TRUE;
}

gboolean run_is_paused(Run *run) {
  pthread_mutex_lock(&run->pausing);
  gboolean paused = json_object_array_length(run->waiting) > 0 ||
                    json_object_array_length(run->waiting_budgets) > 0;
  pthread_mutex_unlock(&run->pausing);
  return paused;
}

JsonObject *run_waiting(Run *run) {
  JsonObject *copy = NULL;
  pthread_mutex_lock(&run->pausing);
  json_object_deep_copy(run->waiting, &copy, NULL);
  pthread_mutex_unlock(&run->pausing);
  return copy;
}
