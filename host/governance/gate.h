/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h: the one way through which everything that has an effect passes. It decides a batch of requests
 * (behaviour 4.3), has each decision recorded, checks sandbox_required, and gets asks answered.
 *
 * This is the seam of the governance room: a person's approval, a durable pause or a budget come in
 * behind gate_authorize, not in its callers.
 */
#ifndef SANDHOST_GOVERNANCE_GATE_H
#define SANDHOST_GOVERNANCE_GATE_H

#include "governance/policy.h"

typedef struct Gate Gate;

/* What a person has said about an ask, earlier. */
typedef enum { GATE_NOTHING, GATE_APPROVED, GATE_DENIED, GATE_EXPIRED } GateVerdict;
typedef struct {
  GateVerdict verdict;
  char
      *approval_id; /* owned by whoever receives the answer, as the others; NULL for GATE_NOTHING */
  char *by;         /* the approver; NULL for GATE_EXPIRED */
  char *text;       /* the note; for GATE_EXPIRED when it expired; NULL: none */
} GateAnswer;

/* Both may be called from several threads at once, and not while the gate holds a lock: it has none. */
typedef struct {
  void *user;
  /* Writes one request and its decision down. FALSE with an error fails the batch when a matched rule
   * has strict_telemetry, else is ignored. */
  gboolean (*record)(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                     GError **error);
  /* Answers an ask now: the approver's name (owned by the caller) to allow it once, or NULL: nobody
   * answers, or with *ret_refusal (owned by the caller): whoever did may not, and the ask is denied with this reason. NULL
   * function: nobody ever answers. May block. */
  char *(*answer)(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                  char **ret_refusal);
  /* What was decided earlier about exactly this ask. NULL function: nothing. */
  GateAnswer (*recall)(void *user, const PolicyRequest *request, const PolicyDecision *decision);
  /* Used where nobody answers: writes the asks of a batch down, all at once and durably, so that a person can decide
   * them later; each decision has the approval_id under which. FALSE with an error: they are not written. NULL
   * function: an ask that nobody answers is refused and forgotten. */
  gboolean (*suspend)(void *user, GPtrArray *requests, GPtrArray *decisions, GError **error);
} GateHooks;

/* Takes a reference to policy; NULL: not governed, everything is allowed with nothing recorded. hooks is
 * copied. isolated: what runs is a sandbox, so sandbox_required holds. Returns owned. */
Gate *gate_new(Policy *policy, const GateHooks *hooks, gboolean isolated, gboolean approval_fails);
void gate_free(Gate *gate);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Gate, gate_free)

const Policy *gate_policy(const Gate *gate);

/* Decides every request of the batch, in order, and records each. TRUE when all are allowed; then, and
 * also on failure, *ret_decisions (may be NULL) is an owned array of PolicyDecision in the order of the
 * requests. Errors: POLICY_DENIED, UNKNOWN_CAPABILITY, APPROVAL_REQUIRED, SANDBOX_REQUIRED, BUDGET_EXCEEDED,
 * POLICY_EVALUATION with the text for the model. An allowed ask is recorded a second time as allow,
 * reason code "approved", reason "Approved by {name}" or "Approved by {name}: {note}"; a refused one as deny, "denied"
 * with "Denied by {name}: {note}", or "expired_policy" (APPROVAL_EXPIRED); one that wants a sandbox where there is
 * none, as deny, reason code "sandbox_required". Thread-safe. */
gboolean gate_authorize(Gate *gate, GPtrArray *requests, GPtrArray **ret_decisions, GError **error);

/* What the rules alone make of a batch, with nothing recorded and nobody asked: deny where one of it is certain to be
 * refused, else ask where one is asked about, else allow. Thread-safe. */
Effect gate_outlook(const Gate *gate, const GPtrArray *requests);

/* The same for the listing after a command (4.8): command is the decision of the command, which the
 * listing follows where no rule names it. An ask is told as POLICY_DENIED and never answered. */
gboolean gate_authorize_sync(Gate *gate, PolicyRequest *request, const PolicyDecision *command,
                             PolicyDecision **ret_decision, GError **error);

/* Whether a workspace file may be read or written (8.4): deny, strict and ask all mean no. Not recorded
 * here; *ret_decision may be NULL. */
gboolean gate_permits(Gate *gate, const PolicyRequest *request, PolicyDecision **ret_decision);

/* What a gate would make of one request without asking anybody: the policy's decision, or that of
 * sandbox_required where isolated is FALSE; for the listing, which comes after an allowed command alone,
 * follows_command where no rule names it. Nothing is recorded. Returns owned. */
PolicyDecision *gate_preview(const Policy *policy, const PolicyRequest *request, gboolean isolated);

#endif
