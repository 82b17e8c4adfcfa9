/* SPDX-License-Identifier: Apache-2.0 */
/* approvals-fixture.h: a run that asks, in a fresh record, and short ways to answer it and go on. */
#ifndef SANDHOST_TESTS_APPROVALS_FIXTURE_H
#define SANDHOST_TESTS_APPROVALS_FIXTURE_H

#include "base/clock.h"
#include "governance/approvals.h"
#include "governance/requests.h"
#include "record-fixture.h"
#include "record/approvals.h"
#include "record/record-verify.h"
#include "run/resume.h"

#define RUN "run_00000000000000000000000000000001"
#define APPROVAL "approval_00000000000000000000000000000001"

/* A run of this process, with the owner "owner_1". */
static inline void begin_life(Record *record, gboolean request) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) header = json_of("{\"agent_name\": \"a\"}");
  g_autoptr(JsonObject) asked = json_of("{\"surface\": \"exec\", \"command\": \"ls\"}");
  const RecordLife life = {
      .owner = "owner_1", .lease_seconds = 60, .request = request ? asked : NULL};
  record_begin_life(record, RUN, "trace_1", header, &life, &error);
  g_assert_no_error(error);
}

/* The ask for a command, waiting for so many seconds. Owned. */
static inline JsonObject *ask_for(const char *id, const char *command, gint64 seconds) {
  const char *const argv[] = {"sh", "-c", command, NULL};
  g_autoptr(PolicyRequest) request = request_command(argv, TRUE);
  PolicyDecision decision = {.policy_hash = g_strdup("hash"),
                             .reason = g_strdup("Who knows."),
                             .approval_id = g_strdup(id)};
  g_autoptr(JsonObject) arguments = json_object_new_object();
  json_add_text(arguments, "command", command);
  const ApprovalCall call = {.tool_call_id = "call_1",
                             .arguments = arguments,
                             .manifest_digest = "manifest",
                             .now = clock_wall() +
                                    (seconds - APPROVAL_DEFAULT_SECONDS) * CLOCK_SECOND};
  JsonObject *approval = approval_new(request, &decision, &call);
  g_free(decision.policy_hash);
  g_free(decision.reason);
  g_free(decision.approval_id);
  return approval;
}

static inline void suspend(Record *record, const char *id, const char *command, gint64 seconds) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) approval = ask_for(id, command, seconds);
  g_autoptr(JsonObject) events = events_asking(approval);
  g_autoptr(GPtrArray) approvals = g_ptr_array_new();
  g_ptr_array_add(approvals, approval);
  record_suspend(record, RUN, "owner_1", approvals, NULL, events, &error);
  g_assert_no_error(error);
}

static inline void end_waiting(Record *record) {
  g_autoptr(GError) error = NULL;
  record_end_life(record, RUN, "owner_1", "awaiting_approval", NULL, &error);
  g_assert_no_error(error);
}

static inline void decide(Record *record, const char *decision, const char *note) {
  g_autoptr(GError) error = NULL;
  resume_decide(record, RUN, APPROVAL, decision, "alice", note, NULL, NULL, &error);
  g_assert_no_error(error);
}

static inline void refuse_decision(Record *record, const char *run, const char *approval,
                                   const char *decision, const char *approver,
                                   JsonObject *arguments, int code, const char *text) {
  g_autoptr(GError) error = NULL;
  g_assert_false(
      resume_decide(record, run, approval, decision, approver, NULL, arguments, NULL, &error));
  g_assert_error(error, SANDHOST_ERROR, code);
  g_assert_cmpstr(error->message, ==, text);
}

/* The one approval of the run. Owned. */
static inline JsonObject *only_approval(Record *record) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) approvals = record_approvals(record, RUN, TRUE, &error);
  g_assert_no_error(error);
  g_assert_cmpuint(json_object_array_length(approvals), ==, 1);
  return json_object_get(json_object_array_get_idx(approvals, 0));
}

static inline void take(Record *record, const char *owner, const char *text) {
  g_autoptr(GError) error = NULL;
  gboolean ok = record_take(record, RUN, owner, "trace_2", 60, NULL, &error);
  g_assert_cmpstr(error ? error->message : NULL, ==, text);
  g_assert_cmpint(ok, ==, text == NULL);
}

/* Uses the approval for a step of owner_2. */
static inline void use(Record *record, const char *owner, const char *text) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) ids = g_ptr_array_new();
  g_autoptr(JsonObject) events = json_of("[{\"type\": \"sandbox_exec_started\"}]");
  g_ptr_array_add(ids, (gpointer)(gsize)APPROVAL);
  gboolean ok = record_commit(record, RUN, owner, ids, events, &error);
  g_assert_cmpstr(error ? error->message : NULL, ==, text);
  g_assert_cmpint(ok, ==, text == NULL);
}

static inline gsize count_events(Record *record, const char *type) {
  g_autoptr(JsonObject) run = read_run(record, RUN);
  JsonObject *events = json_get(run, "events");
  gsize count = 0;
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    count += g_strcmp0(json_get_text(json_object_array_get_idx(events, i), "type"), type) == 0;
  }
  return count;
}

/* What record verify says of the run. */
static inline void check_verified(Record *record, const char *faults) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) verdict = record_verify_run(record, RUN, &error);
  g_assert_no_error(error);
  assert_json(json_get(verdict, "faults"), faults);
}

#endif
