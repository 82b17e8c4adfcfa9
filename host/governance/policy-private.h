/* SPDX-License-Identifier: Apache-2.0 */
/* policy-private.h: a policy as it is held: plain data, made once, never changed. */
#ifndef SANDHOST_GOVERNANCE_POLICY_PRIVATE_H
#define SANDHOST_GOVERNANCE_POLICY_PRIVATE_H

#include "governance/budgets.h"
#include "governance/command-match.h"
#include "governance/pattern.h"
#include "governance/policy.h"

#define POLICY_NO_OBJECT "Policy file must contain an object at the top level."

typedef struct {
  char *rule_id;
  Effect effect;
  Pattern capability;
  char *reason; /* NULL: none */

  /* target; PATTERN_NONE: not named */
  Pattern path;
  Pattern target_host;
  Pattern resource;
  Pattern tool_name;
  Pattern target_mcp_server;

  /* conditions; NULL, 0 or PATTERN_NONE: not named */
  guint risks; /* bit per Risk */
  char *provider;
  char *execution_surface;
  char *mcp_server;
  char *method;
  Pattern host;
  char **data_classes;
  char **exclude_surfaces;
  char **exclude_capabilities; /* globs */

  CommandMatcher *command; /* NULL: not about what a command runs */

  gboolean sandbox_required;
  gboolean strict_telemetry;
  gint64 approval_expires_seconds;
} PolicyRule;

/* Which rules of one list can match at all, found by what most of them state in full. */
typedef struct PolicyIndex PolicyIndex;

struct Policy {
  gint references; /* atomic */
  char *id;
  char *name;
  char *profile; /* NULL: not a built-in one */
  char *file;    /* where it was read, links resolved; NULL: in place */
  char *hash;
  PolicyMode mode;
  JsonObject *source;  /* a copy of what was given, with the defaults; only read */
  GPtrArray *rules[3]; /* PolicyRule *, by Effect */
  PolicyIndex *index[3];
  Budgets *budgets; /* NULL: none */

  /* The older budget, which is counted here for as long as the policy lives; -1: no limit. */
  gint64 max_requests;
  gint64 max_cost; /* millionths of a dollar */
  gint64 requests; /* atomic */
  gint64 cost;     /* atomic */
};

PolicyRule *policy_rule_new(const char *rule_id, Effect effect, const char *capability);
void policy_rule_free(PolicyRule *rule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PolicyRule, policy_rule_free)

/* A copy that shares nothing with value: json-c counts references without a lock, and printing a
 * value writes to it, so one that several threads see may not be shared. NULL for NULL. Owned. */
JsonObject *policy_copy_json(JsonObject *value);

/* Reads rules and mode of a policy object, which is copied. profile: its built-in name, or NULL. tried:
 * as for command_matcher_try. */
Policy *policy_read(JsonObject *source, const char *profile, GPtrArray *tried, GError **error);

/* The object in a policy file, and where that is with its links resolved, both owned. discovered: nobody
 * named it, so it may not be a link. Refusals of 4.12 but those of what it says. */
JsonObject *policy_file_read(const char *path, const char *project_root,
                             const char *const *agent_dirs, gboolean discovered, char **ret_place,
                             GError **error);
/* "Invalid policy file: {path} ({failure})". */
void policy_file_refuse(const char *path, const GError *failure, GError **error);

/* Whether one rule, which allows or asks, matches nothing that another one does not, constraints included. */
gboolean policy_rule_covers(const PolicyRule *wide, const PolicyRule *narrow);
/* The first part of narrow in which it is wider ("conditions.method", ...); NULL: it is covered. Constant. */
const char *policy_rule_wider_in(const PolicyRule *wide, const PolicyRule *narrow);

/* policy-budget.c: reads budget and budgets of a policy object. */
gboolean policy_read_budgets(Policy *policy, JsonObject *source, GError **error);

/* The hash of what a policy says (behaviour 4.11). Owned. */
char *policy_compute_hash(JsonObject *source);

/* The source of a built-in profile, or NULL. Owned. */
JsonObject *policy_profile_source(const char *name);

/* Made once the list is whole; keeps borrowed pointers into its rules. Returns owned. */
PolicyIndex *policy_index_new(const GPtrArray *rules);
void policy_index_free(PolicyIndex *index);

/* The first part of the rule that the request does not meet ("capability", "target.path", ...), its
 * command matcher left aside; NULL: it meets all. Constant. */
const char *policy_rule_misses(const PolicyRule *rule, const PolicyRequest *request);

/* The places, in ascending order, of the rules of one list that match the request (behaviour 4.2, 5.1);
 * of allow rules with a command matcher, only where together they cover the whole line. NULL where there
 * are none. Returns owned. */
GArray *policy_match(const Policy *policy, Effect effect, const PolicyRequest *request);

/* Whether a rule with a command matcher meets the request, its matcher left aside. */
gboolean policy_names_commands(const Policy *policy, const PolicyRequest *request);

/* Why no command matcher can judge what the request runs; NULL: it can. Borrowed. */
const char *policy_request_opaque(const PolicyRequest *request);

#endif
