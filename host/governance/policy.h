/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h: rules in, decisions out (behaviour 4). No I/O but policy_load and policy_discover, which read one file.
 *
 * A policy is immutable once made, but for what its older budget has counted, and may be used from any number of threads.
 */
#ifndef SANDHOST_GOVERNANCE_POLICY_H
#define SANDHOST_GOVERNANCE_POLICY_H

#include "base/json.h"
#include "governance/budgets.h"
#include "governance/command-match.h"

typedef enum { EFFECT_DENY, EFFECT_ASK, EFFECT_ALLOW } Effect;
typedef enum { RISK_LOW, RISK_MEDIUM, RISK_HIGH, RISK_CRITICAL } Risk;
typedef enum { MODE_PERMISSIVE, MODE_INTERACTIVE, MODE_STRICT } PolicyMode;

const char *effect_name(Effect effect); /* "deny", "ask", "allow" */
const char *risk_name(Risk risk);

/* What somebody wants to do. Strings are owned; NULL is null. has_target FALSE: no target object. */
typedef struct {
  char *request_id; /* authreq_... */
  char *capability;
  const char *actor; /* "agent" or "runtime"; constant */
  gboolean has_target;
  char *target_path;
  char *target_host;
  char *target_resource;
  char *target_tool_name;
  char *target_mcp_server;
  char *provider;
  char *execution_surface;
  Risk risk;
  char **data_classes; /* NULL: none */
  char *method;
  char *host;
  char *mcp_server;
  JsonObject *metadata; /* NULL: none */
  /* What it runs, for command rules; never recorded. NULL: nobody read it. */
  CommandLine *command;
} PolicyRequest;

/* Capability is copied, the id made; everything else is for the caller to fill. Returns owned. */
PolicyRequest *policy_request_new(const char *capability, Risk risk);
void policy_request_free(PolicyRequest *request);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PolicyRequest, policy_request_free)
/* As recorded (behaviour 4.1). Returns owned. */
JsonObject *policy_request_json(const PolicyRequest *request);
/* The other way, out of a record that anybody may have written: every member is of its type and its kind,
 * or the whole is refused (FAILED). What it runs is not recorded: command is NULL. Returns owned. */
PolicyRequest *policy_request_from_json(JsonObject *object, GError **error);

typedef struct {
  char *decision_id; /* decision_... */
  char *request_id;
  char *policy_id;
  char *policy_hash;
  Effect effect;
  const char *reason_code; /* constant: "matched_deny", "unknown_capability", ... */
  char *reason;
  char **matched_rule_ids; /* in file order; never NULL */
  /* Constraints of the matched rules, merged (4.6). */
  gboolean sandbox_required;
  gboolean strict_telemetry;
  gint64 approval_expires_seconds; /* 0: none said */
  char *approved_by;               /* set by whoever answered the ask; NULL */
  char *denied_by;                 /* the same for a no; "system" when it came too late; NULL */
  char *approval_id;               /* approval_...: the ask as it waits, or was decided; NULL */
} PolicyDecision;

void policy_decision_free(PolicyDecision *decision);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PolicyDecision, policy_decision_free)
JsonObject *policy_decision_json(const PolicyDecision *decision);

typedef struct Policy Policy;

/* One of "permissive-dev", "interactive-dev", "strict-production" (4.10). NULL for another name. */
Policy *policy_new_profile(const char *name);
/* A policy in place (4.1, 4.12): every refusal has the text of 4.12, and of 5.1 for command matchers. The
 * examples of its rules are tried. */
Policy *policy_new(JsonObject *object, GError **error);
/* A policy file below project_root; agent_dirs (NULL-terminated) are folders that the agent may write.
 * Refusals of 4.12. */
Policy *policy_load(const char *path, const char *project_root, const char *const *agent_dirs,
                    GError **error);
/* The same two where an example that fails is no refusal: each is added to examples (NULL: as above), which
 * frees its CommandExample *, in the order of the rules. */
Policy *policy_new_trying(JsonObject *object, GPtrArray *examples, GError **error);
Policy *policy_load_trying(const char *path, const char *project_root,
                           const char *const *agent_dirs, GPtrArray *examples, GError **error);
/* Where in a project root a policy file is looked for; NULL-terminated. */
extern const char *const POLICY_DISCOVERED_NAMES[];
/* A built-in policy, narrowed by omnicoreagent.policy.json or .omnicoreagent/policy.json in the project root
 * where there is one (4.12): the file's deny and ask rules come after the profile's, the stricter mode
 * counts, and its allow rules, where it has a list, replace the profile's. One that none of those covers
 * is refused; so is an ask rule about what a strict profile denies. examples: as for policy_new_trying. */
Policy *policy_discover(const char *profile, const char *project_root,
                        const char *const *agent_dirs, GPtrArray *examples, GError **error);
Policy *policy_ref(Policy *policy);
void policy_unref(Policy *policy);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Policy, policy_unref)

const char *policy_hash(const Policy *policy); /* 64 hex digits (4.11); borrowed */
const char *policy_id(const Policy *policy);
const char *policy_profile(const Policy *policy); /* NULL: not a built-in one */
const char *policy_file(const Policy *policy);    /* where it was read; NULL: from no file */
/* Whether the policy's file is folder, or lies in it, links resolved: who may write there chooses the policy. */
gboolean policy_file_is_below(const Policy *policy, const char *folder);
PolicyMode policy_mode(const Policy *policy);
/* The whole policy as JSON, for people and the record. Returns owned. */
JsonObject *policy_json(const Policy *policy);

/* The limits that runs under it have; NULL: none. Borrowed. */
const Budgets *policy_budgets(const Policy *policy);
/* Puts governance_config.budgets into a policy that nobody else has seen yet; they count for its hash. CONFIG for a wrong
 * shape, and where the policy has budgets of its own. object is borrowed. */
gboolean policy_set_budgets(Policy *policy, JsonObject *object, GError **error);

/* The older budget {max_requests, max_cost} of a policy: what is allowed is counted (cost in millionths of a dollar), and
 * once it is used up, a request is denied with "budget_exceeded". NULL: there is room. Returns owned. */
void policy_count(Policy *policy, gint64 requests, gint64 cost);
PolicyDecision *policy_decide_by_budget(const Policy *policy, const PolicyRequest *request);

/* Decides one request (4.2). Never fails: what cannot be decided is a deny with policy_error. */
PolicyDecision *policy_decide(const Policy *policy, const PolicyRequest *request);

/* One rule, and what it makes of a request. */
typedef struct {
  const char *rule_id; /* borrowed from the policy */
  Effect effect;
  gboolean matched;
  char *why_not; /* the first thing that keeps it from matching; NULL when matched */
} PolicyVerdict;

/* Every rule of the policy in the order in which it is considered: deny, ask, allow, each in file order.
 * Returns an owned array of PolicyVerdict *, which frees them. */
GPtrArray *policy_explain(const Policy *policy, const PolicyRequest *request);

/* [{code, message}]: what the policy says and its author hardly means. "unknown_capability": a rule about none that is
 * known; "target_never_matches"; "command_wrappers": rules about commands that allowed programs go round. Returns owned. */
JsonObject *policy_advice(const Policy *policy);

/* Whether a rule about commands could decide the request, and nobody read what it runs: then
 * policy_decide takes it for a command that cannot be read. */
gboolean policy_lacks_command(const Policy *policy, const PolicyRequest *request);

/* Whether any rule of any effect matches; for sandbox.workspace.sync (4.8). */
gboolean policy_names(const Policy *policy, const PolicyRequest *request);

#endif
