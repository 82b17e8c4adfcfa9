/* SPDX-License-Identifier: Apache-2.0 */
/* policy-private.h: a policy as it is held: plain data, made once, never changed. */
#ifndef SANDHOST_GOVERNANCE_POLICY_PRIVATE_H
#define SANDHOST_GOVERNANCE_POLICY_PRIVATE_H

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

  gboolean sandbox_required;
  gboolean strict_telemetry;
  gint64 approval_expires_seconds;
} PolicyRule;

struct Policy {
  gint references; /* atomic */
  char *id;
  char *name;
  char *profile; /* NULL: not a built-in one */
  char *hash;
  PolicyMode mode;
  JsonObject *source;  /* a copy of what was given, with the defaults; only read */
  GPtrArray *rules[3]; /* PolicyRule *, by Effect */
};

PolicyRule *policy_rule_new(const char *rule_id, Effect effect, const char *capability);
void policy_rule_free(PolicyRule *rule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PolicyRule, policy_rule_free)

/* A copy that shares nothing with value: json-c counts references without a lock, and printing a
 * value writes to it, so one that several threads see may not be shared. NULL for NULL. Owned. */
JsonObject *policy_copy_json(JsonObject *value);

/* Reads rules and mode of a policy object, which is copied. profile: its built-in name, or NULL. */
Policy *policy_read(JsonObject *source, const char *profile, GError **error);

/* The hash of what a policy says (behaviour 4.11). Owned. */
char *policy_compute_hash(JsonObject *source);

/* The source of a built-in profile, or NULL. Owned. */
JsonObject *policy_profile_source(const char *name);

gboolean policy_rule_matches(const PolicyRule *rule, const PolicyRequest *request);

#endif
