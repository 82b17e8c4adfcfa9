/* SPDX-License-Identifier: Apache-2.0 */
/* governance-fixture.h: policies as text, and decisions as one line each. Included once by each
 * test program; JSON is written with ' for ". */
#ifndef SANDHOST_TESTS_GOVERNANCE_FIXTURE_H
#define SANDHOST_TESTS_GOVERNANCE_FIXTURE_H

#include <string.h>

#include "base/error.h"
#include "governance/policy.h"

static inline JsonObject *fixture_json(const char *text) {
  g_autoptr(GError) error = NULL;
  g_autofree char *quoted = g_strdelimit(g_strdup(text), "'", '"');
  JsonObject *value = json_parse("fixture", quoted, strlen(quoted), &error);
  g_assert_no_error(error);
  return value;
}

static inline Policy *fixture_policy(const char *text) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) source = fixture_json(text);
  Policy *policy = policy_new(source, &error);
  g_assert_no_error(error);
  g_assert_nonnull(policy);
  return policy;
}

/* A policy of one list with these rules. */
static inline Policy *fixture_rules(const char *mode, const char *list, const char *rules) {
  g_autofree char *text =
      g_strdup_printf("{'mode': '%s', 'rules': {'%s': [%s]}}", mode, list, rules);
  return fixture_policy(text);
}

/* "effect reason_code rule,rule". Owned. */
static inline char *fixture_line(const PolicyDecision *decision) {
  g_autofree char *ids = g_strjoinv(",", decision->matched_rule_ids);
  return g_strdup_printf("%s %s %s", effect_name(decision->effect), decision->reason_code, ids);
}

static inline void fixture_decides(const Policy *policy, const PolicyRequest *request,
                                   const char *wanted) {
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  g_autofree char *line = fixture_line(decision);
  g_assert_cmpstr(line, ==, wanted);
}

/* Whether the policy's only rule matches the request. */
static inline gboolean fixture_matches(const Policy *policy, const PolicyRequest *request) {
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  gboolean matched = decision->matched_rule_ids[0] != NULL;
  g_assert_cmpint(policy_names(policy, request), ==, matched);
  return matched;
}

#endif
