/* SPDX-License-Identifier: Apache-2.0 */
/* policy-budget.c: the budgets that a policy states, and the older kind that it counts itself (behaviour 4.2). */
#include "base/ids.h"
#include "base/millionths.h"
#include "config/check.h"
#include "governance/policy-private.h"

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static gboolean read_older(Policy *policy, JsonObject *budget, GError **error) {
  static const char *const KEYS[] = {"max_cost", "max_requests", NULL};
  JsonObject *requests = json_get(budget, "max_requests");
  JsonObject *cost = json_get(budget, "max_cost");
  if (budget && !json_object_is_type(budget, json_type_object)) {
    return check_refuse(error, "budget must be an object");
  }
  if (budget && !check_keys(budget, "budget", KEYS, error)) {
    return FALSE;
  }
  if (requests &&
      (!json_object_is_type(requests, json_type_int) || json_object_get_int64(requests) < 0)) {
    return check_refuse(error, "budget.max_requests must be a whole number of 0 or more");
  }
  policy->max_requests = requests ? json_object_get_int64(requests) : -1;
  policy->max_cost = -1;
  if (cost && (!millionths_read(cost, &policy->max_cost) || policy->max_cost < 0)) {
    return check_refuse(error, "budget.max_cost must be a number of 0 or more");
  }
  if (cost && !millionths_is_exact(cost)) {
    return check_refuse(error, "budget.max_cost must have at most six digits behind the point");
  }
  return TRUE;
}

/* An object that limits nothing is none. */
static gboolean read_limits(Policy *policy, JsonObject *object, GError **error) {
  g_autoptr(Budgets) budgets = budgets_new(object, error);
  if (!budgets) {
    return FALSE;
  }
  if (budgets->limits->len > 0) {
    policy->budgets = g_steal_pointer(&budgets);
  }
  return TRUE;
}

gboolean policy_read_budgets(Policy *policy, JsonObject *source, GError **error) {
  JsonObject *budgets = json_get(source, "budgets");
  return read_older(policy, json_get(source, "budget"), error) &&
         (!budgets || read_limits(policy, budgets, error));
}

gboolean policy_set_budgets(Policy *policy, JsonObject *object, GError **error) {
  if (policy->budgets) {
    return check_refuse(error, "governance_config.budgets cannot be set together with budgets "
                               "inside the policy; remove one of them");
  }
  if (!read_limits(policy, object, error)) {
    return FALSE;
  }
  if (policy->budgets) {
    json_add_take(policy->source, "budgets", policy_copy_json(object));
    g_free(policy->hash);
    policy->hash = policy_compute_hash(policy->source);
  }
  return TRUE;
}

const Budgets *policy_budgets(const Policy *policy) {
  return policy->budgets;
}

/* ---- The older kind ---------------------------------------------------------------------------------------------- */

void policy_count(Policy *policy, gint64 requests, gint64 cost) {
  __atomic_add_fetch(&policy->requests, requests, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&policy->cost, cost, __ATOMIC_SEQ_CST);
}

/* Which one is used up; NULL: none. Constant. */
static const char *used_up(const Policy *policy) {
  if (policy->max_requests >= 0 &&
      __atomic_load_n(&policy->requests, __ATOMIC_SEQ_CST) >= policy->max_requests) {
    return "Policy request budget exceeded.";
  }
  if (policy->max_cost >= 0 &&
      __atomic_load_n(&policy->cost, __ATOMIC_SEQ_CST) >= policy->max_cost) {
    return "Policy cost budget exceeded.";
  }
  return NULL;
}

PolicyDecision *policy_decide_by_budget(const Policy *policy, const PolicyRequest *request) {
  const char *reason = used_up(policy);
  if (!reason) {
    return NULL;
  }
  PolicyDecision *decision = g_new0(PolicyDecision, 1);
  decision->decision_id = id_new("decision");
  decision->request_id = g_strdup(request->request_id);
  decision->policy_id = g_strdup(policy->id);
  decision->policy_hash = g_strdup(policy->hash);
  decision->effect = EFFECT_DENY;
  decision->reason_code = "budget_exceeded";
  decision->reason = g_strdup(reason);
  decision->matched_rule_ids = g_new0(char *, 1);
  return decision;
}
