/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.h: what a person decides about a waiting run, and what of a stopped one is still to be done (behaviour 6.3,
 * 6.6).
 *
 * The request that is stored with a run (RunHooks.request) is its door's own matter but for these members: surface
 * ("exec", "session", "api"), command and timeout (of "exec"), and approver_check (run/approver.h), which run_start adds.
 */
#ifndef SANDHOST_RUN_RESUME_H
#define SANDHOST_RUN_RESUME_H

#include "privacy/privacy.h"
#include "record/approvals.h"
#include "record/budgets.h"
#include "run/approver.h"

/* All texts of a person are recorded as run/typed.h has them; an edited call runs as it was typed.
 *
 * Decides one approval: decision is "approve" or "deny". note, and arguments (the edited call's), may be NULL. Errors: the
 * texts of behaviour 6.3, as CONFIG, NOT_FOUND and CONFLICT; those of approver_allows. ret_approval (may be NULL): what it has become; owned. */
gboolean resume_decide(Record *record, const char *run_id, const char *approval_id,
                       const char *decision, const char *approver, const char *note,
                       JsonObject *arguments, JsonObject **ret_approval, GError **error);

/* The same with the program's own word on who decides (run/approver.h). All borrowed. */
typedef struct {
  const char *decision;
  const char *approver;
  const char *note;         /* NULL */
  JsonObject *arguments;    /* NULL */
  const ApproverHook *hook; /* NULL */
  const Privacy *known;     /* as typed_new has it; NULL */
} ResumeDecision;
gboolean resume_decide_as(Record *record, const char *run_id, const char *approval_id,
                          const ResumeDecision *decision, JsonObject **ret_approval,
                          GError **error);

/* The same about the budget requests that a run waits for; request_id NULL: all of them; hook and known may be NULL. The question has
 * amount (null: what is missing) and budget_requests in the place of arguments and approval. Errors: CONFIG for what makes
 * no sense, those of approver_allows and record_decide_budget. */
gboolean resume_decide_budget(Record *record, const char *run_id, const char *request_id,
                              const RecordBudgetDecision *decision, const ApproverHook *hook,
                              const Privacy *known, JsonObject **ret_requests, GError **error);

/* record_abandon with a reason of a person's. */
gboolean resume_abandon(Record *record, const char *run_id, const char *status, const char *reason,
                        const Privacy *known, gboolean *ret_changed, GError **error);

typedef enum {
  REMAINS_AGAIN,   /* it waited, or was never begun: it is to be run */
  REMAINS_UNKNOWN, /* its command was begun, and its result is not there: never again */
  REMAINS_DONE,    /* its result is recorded */
} Remains;

typedef struct {
  char *tool_call_id;
  JsonObject *arguments; /* as they are to be run: edited ones where a person edited them */
  JsonObject *tag;
  Remains remains;
  char *reported;    /* REMAINS_UNKNOWN: how the command is known to have ended; NULL */
  gboolean withheld; /* something was taken out of the recorded arguments: they cannot be run */
} ResumeCall;

/* The calls of a run, in order. run is as record_run tells it, approvals as record_approvals does, sealed as
 * record_sealed_calls. Returns an owned array of ResumeCall *, which frees them. */
GPtrArray *resume_calls(JsonObject *run, JsonObject *approvals, JsonObject *sealed);
/* The same from the record itself; ret_run: what record_run tells; owned. NULL: *error. */
GPtrArray *resume_find_calls(Record *record, const char *run_id, JsonObject **ret_run,
                             GError **error);

/* Whether a stored request lacks what was taken out of its command; then that cannot be run again. */
gboolean resume_request_is_redacted(JsonObject *request);
#define RESUME_WITHHELD_TEXT                                                                       \
  "its command held what is not recorded (a credential, or what telemetry_config leaves out), so " \
  "it cannot be run again; run it anew"

/* Whether an earlier segment had a sandbox, so that what it held beside the workspace is gone. */
gboolean resume_lost_sandbox(JsonObject *run);

/* What whoever goes on is told then. */
#define RESUME_RESET_TEXT                                                                          \
  "The sandbox was reset when the run resumed: files outside the workspace, installed packages "   \
  "and running processes are gone."

#endif
