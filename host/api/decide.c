/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c: what waits for a person, and the person's word about it. */
#include <stdlib.h>

#include "api/api-private.h"
#include "api/callbacks.h"
#include "governance/approvals.h"
#include "run/resume.h"

static JsonObject *list(sandhost *host, const char *wanted, gboolean all, GError **error) {
  g_autofree char *id = NULL;
  Record *record = host_record_for(host, wanted, &id, error);
  if (!record) {
    return NULL;
  }
  g_autoptr(JsonObject) approvals = record_approvals(record, id, all, error);
  return approvals ? approvals_told(approvals) : NULL;
}

int sandhost_approvals(sandhost *host, const char *run_id, int all, char **ret_json,
                       char **ret_error) {
  g_autoptr(GError) error = NULL;
  if (!host || !ret_json) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host and ret_json must not be NULL", ret_error);
  }
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  g_autoptr(JsonObject) approvals = list(host, run_id, all != 0, &error);
  if (!approvals) {
    return api_fail(error, ret_error);
  }
  api_give(approvals, ret_json);
  return SANDHOST_STATUS_OK;
}

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

static char *member_text(JsonObject *question, const char *key) {
  JsonObject *value = json_get(question, key);
  return value ? json_text(value) : NULL;
}

/* The program's function, asked with the question as it reads it. */
static gboolean ask_program(void *user, JsonObject *question, char **ret_refusal) {
  const sandhost *host = user;
  g_autofree char *arguments = member_text(question, "arguments");
  g_autofree char *approval = member_text(question, "approval");
  g_autofree char *budgets = member_text(question, "budget_requests");
  g_autofree char *amount = member_text(question, "amount");
  const struct sandhost_decision decision = {
      .size = sizeof decision,
      .run_id = json_get_text(question, "run_id"),
      .approval_id = json_get_text(question, "approval_id"),
      .decision = json_get_text(question, "decision"),
      .approver = json_get_text(question, "approver"),
      .note = json_get_text(question, "note"),
      .arguments = arguments,
      .approval = approval,
      .budget_requests = budgets,
      .amount = amount,
  };
  char *refusal = NULL;
  gboolean yes = callback_approver(host->check_approver, host->user, &decision, &refusal) == 0;
  *ret_refusal = g_strdup(refusal);
  free(refusal);
  return yes;
}

ApproverHook api_approver(sandhost *host) {
  return (ApproverHook){.ask = host->check_approver ? ask_program : NULL, .user = host};
}

static gboolean decide(sandhost *host, const char *wanted, const char *approval_id,
                       const ResumeDecision *decision, JsonObject **ret_approval, GError **error) {
  Record *record = NULL;
  g_autofree char *id = host_find_run(host, wanted, &record, error);
  return id && resume_decide_as(record, id, approval_id, decision, ret_approval, error);
}

static int settle(sandhost *host, const char *run_id, const char *approval_id,
                  ResumeDecision decision, char **ret_approval, char **ret_error) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) approval = NULL;
  if (api_is_inherited(host->generation)) {
    return api_refuse_inherited(ret_error);
  }
  const ApproverHook hook = api_approver(host);
  decision.hook = &hook;
  decision.known = host_privacy(host);
  if (!decide(host, run_id, approval_id, &decision, &approval, &error)) {
    return api_fail_argument(error, ret_error);
  }
  g_autoptr(JsonObject) told = approval_told(approval);
  api_give(told, ret_approval);
  return SANDHOST_STATUS_OK;
}

int sandhost_approve(sandhost *host, const char *run_id, const char *approval_id,
                     const char *approver, const char *note, const char *arguments,
                     char **ret_approval, char **ret_error) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) edited = NULL;
  if (!host || !run_id || !approval_id) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host, run_id and approval_id must not be NULL",
                      ret_error);
  }
  if (!api_take_object("arguments", arguments, &edited, &error)) {
    return api_fail_argument(error, ret_error);
  }
  const ResumeDecision decision = {
      .decision = "approve", .approver = approver, .note = note, .arguments = edited};
  return settle(host, run_id, approval_id, decision, ret_approval, ret_error);
}

int sandhost_deny(sandhost *host, const char *run_id, const char *approval_id, const char *approver,
                  const char *note, char **ret_approval, char **ret_error) {
  if (!host || !run_id || !approval_id) {
    return api_refuse(SANDHOST_STATUS_INVALID, "host, run_id and approval_id must not be NULL",
                      ret_error);
  }
  const ResumeDecision decision = {.decision = "deny", .approver = approver, .note = note};
  return settle(host, run_id, approval_id, decision, ret_approval, ret_error);
}
