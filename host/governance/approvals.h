/* SPDX-License-Identifier: Apache-2.0 */
/*
 * approvals.h: an ask that waits for a person: what it holds, and what exactly a yes is good for (behaviour 6.2, 6.3).
 * Pure: data and digests, no clock and no store.
 *
 * An approval travels as a JSON object with the members of 6.2, request_id, policy_hash, manifest_digest, and two that
 * never leave the host: asked (what the digest covers) and command_argv_digest.
 */
#ifndef SANDHOST_GOVERNANCE_APPROVALS_H
#define SANDHOST_GOVERNANCE_APPROVALS_H

#include "governance/policy.h"

#define APPROVAL_DEFAULT_SECONDS 86400 /* how long one may wait where no rule says so */

/* Whose ask it is. */
typedef struct {
  const char *tool_call_id;
  JsonObject *arguments;       /* of the call; borrowed */
  const char *manifest_digest; /* what sandbox it was asked for */
  gint64 now;                  /* nanoseconds since 1970 */
} ApprovalCall;

/* A pending one, under decision->approval_id. Returns owned. */
JsonObject *approval_new(const PolicyRequest *request, const PolicyDecision *decision,
                         const ApprovalCall *call);

/* The part of a request that an approval is about: capability, actor, target, provider, method, host, MCP server. The
 * execution surface is no part of it. Returns owned. */
JsonObject *approval_asked(const PolicyRequest *request);

/* The digest (base/ask-digest.h) of a request as it stands, within a call. Returns owned. */
char *approval_request_digest(const PolicyRequest *request, JsonObject *arguments);

/* Puts other arguments into a pending approval: it is then good for the edited call, and only for that. argv_digest:
 * of the edited command. */
void approval_edit(JsonObject *approval, JsonObject *arguments, const char *argv_digest);

/* Whether the arguments are a call of execute: an object with command, and timeout between 1 and most. CONFIG. */
gboolean approval_check_arguments(JsonObject *arguments, gint64 most, GError **error);

/* As 6.2 has it, for whoever reads the record: without what only the host can use. Returns owned. */
JsonObject *approval_told(JsonObject *approval);
JsonObject *approvals_told(JsonObject *approvals);

/* As 6.1 shows it to whoever is to decide. Returns owned. */
JsonObject *approval_shown(JsonObject *approval);

#endif
