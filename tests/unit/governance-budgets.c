/* SPDX-License-Identifier: Apache-2.0 */
/* governance-budgets.c: what a budget may say, in its own words where it may not; the hash; the older kind. */
#include "base/clock.h"
#include "base/ids.h"
#include "base/millionths.h"
#include "governance-fixture.h"
#include "governance/budgets.h"
#include "governance/gate.h"

typedef struct {
  const char *text;
  const char *wanted;
} Refusal;

static void test_refusals(void) {
  static const Refusal CASES[] = {
      {"{'request': [{'meter': 'tokens', 'limit': 1}]}",
       "budget meter must be one of: model_cost_usd, model_tokens, model_calls, tool_calls, "
       "sandbox_seconds, subagent_runs; got 'tokens'"},
      {"{'request': [{'meter': 5, 'limit': 1}]}",
       "budget meter must be one of: model_cost_usd, model_tokens, model_calls, tool_calls, "
       "sandbox_seconds, subagent_runs; got '5'"},
      {"{'request': [{'meter': 'tool_calls', 'limit': 1, 'window': 'week'}]}",
       "budget window must be one of: total, day, month; got 'week'"},
      {"{'request': [{'meter': 'tool_calls', 'limit': 1, 'on_exhausted': 'stop'}]}",
       "budget on_exhausted must be one of: pause, terminate; got 'stop'"},
      {"{'request': [{'meter': 'tool_calls', 'limit': 0}]}",
       "budget limit must be greater than zero"},
      {"{'request': [{'meter': 'tool_calls', 'limit': -1.5}]}",
       "budget limit must be greater than zero"},
      {"{'request': [{'meter': 'sandbox_seconds', 'limit': 0.0000015}]}",
       "budget limit must have at most six digits behind the point"},
      {"{'request': [{'meter': 'tool_calls', 'limit': true}]}",
       "budget limit must be a number of at most 9000000000000"},
      {"{'request': [{'meter': 'tool_calls'}]}",
       "budget limit must be a number of at most 9000000000000"},
      {"{'request': [{'meter': 'tool_calls', 'limit': 1, 'warn_at': 0}]}",
       "budget warn_at must be a fraction above 0 and at most 1"},
      {"{'request': [{'meter': 'tool_calls', 'limit': 1, 'warn_at': 1.01}]}",
       "budget warn_at must be a fraction above 0 and at most 1"},
      {"{'request': [{'meter': 'tool_calls', 'limit': 1, 'warn_at': 'x'}]}",
       "budget warn_at must be a fraction above 0 and at most 1"},
      {"{'agent': {}}", "budgets.agent must be a list of budget limits"},
      {"{'session': [{'meter': 'tool_calls', 'limit': 1},"
       " {'meter': 'tool_calls', 'limit': 2, 'window': 'day'}]}",
       "budgets.session sets tool_calls more than once"},
      {"{'application': [{'meter': 'tool_calls', 'limit': 1}]}",
       "budgets.application_id is required to budget an application: it names the deployment or "
       "tenant the budget belongs to"},
      {"{'application_id': 5, 'application': []}",
       "budgets.application_id must be a non-empty string, got 5"},
      {"{'request': [5]}", "budgets.request[0] must be an object"},
      {"{'request': [{'meter': 'tool_calls', 'limit': 1, 'max': 2}]}",
       "budgets.request[0] has unknown keys: max. Allowed keys: limit, meter, on_exhausted, "
       "warn_at, window"},
      {"{'run': []}", "budgets has unknown keys: run. Allowed keys: agent, application, "
                      "application_id, request, session"},
      {"5", "budgets must be an object"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) object = fixture_json(CASES[i].text);
    g_assert_null(budgets_new(object, &error));
    g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
    g_assert_cmpstr(error->message, ==, CASES[i].wanted);
  }
}

static void test_values(void) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object =
      fixture_json("{'application_id': 'shop', 'request': [{'meter': 'tool_calls', 'limit': 3}],"
                   " 'application': [{'meter': 'model_cost_usd', 'limit': 0.25, 'window': 'month',"
                   "                  'warn_at': 0.5, 'on_exhausted': 'terminate'}]}");
  g_autoptr(Budgets) budgets = budgets_new(object, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(budgets->application_id, ==, "shop");
  g_assert_cmpuint(budgets->limits->len, ==, 2);
  const BudgetLimit *wide = &g_array_index(budgets->limits, BudgetLimit, 0);
  const BudgetLimit *narrow = &g_array_index(budgets->limits, BudgetLimit, 1);
  g_assert_cmpint(wide->scope, ==, BUDGET_APPLICATION);
  g_assert_cmpint(wide->meter, ==, BUDGET_MODEL_COST_USD);
  g_assert_cmpint(wide->window, ==, BUDGET_MONTH);
  g_assert_cmpint(wide->limit, ==, 250000);
  g_assert_cmpint(wide->warn_at, ==, 500000);
  g_assert_false(wide->pauses);
  g_assert_cmpint(narrow->scope, ==, BUDGET_REQUEST);
  g_assert_cmpint(narrow->window, ==, BUDGET_TOTAL);
  g_assert_cmpint(narrow->limit, ==, 3 * MILLIONTHS);
  g_assert_cmpint(narrow->warn_at, ==, 800000);
  g_assert_true(narrow->pauses);
}

static void test_windows(void) {
  gint64 wall = 1767225599 * CLOCK_SECOND; /* 2025-12-31T23:59:59Z */
  g_assert_cmpint(budget_window_start(BUDGET_TOTAL, wall), ==, 0);
  g_assert_cmpint(budget_window_start(BUDGET_DAY, wall), ==, 1767139200 * CLOCK_SECOND);
  g_assert_cmpint(budget_window_start(BUDGET_MONTH, wall), ==, 1764547200 * CLOCK_SECOND);
  g_assert_cmpint(budget_window_start(BUDGET_DAY, wall + CLOCK_SECOND), ==,
                  1767225600 * CLOCK_SECOND);
}

/* ---- In a policy ------------------------------------------------------------------------------------------------- */

#define LIMITS "{'request': [{'meter': 'tool_calls', 'limit': 3}]}"

static void test_policy(void) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) limits = fixture_json(LIMITS);
  g_autoptr(JsonObject) nothing = fixture_json("{'request': []}");
  g_autoptr(Policy) bare = fixture_policy("{}");
  g_autoptr(Policy) other = fixture_policy("{}");
  g_autoptr(Policy) own = fixture_policy("{'budgets': " LIMITS "}");
  g_assert_null(policy_budgets(bare));
  g_assert_cmpuint(policy_budgets(own)->limits->len, ==, 1);
  g_assert_cmpstr(policy_hash(bare), !=, policy_hash(own));

  /* From outside they count as if they stood in it. */
  policy_set_budgets(bare, nothing, &error);
  g_assert_no_error(error);
  g_assert_null(policy_budgets(bare));
  g_assert_cmpstr(policy_hash(bare), ==, policy_hash(other));
  policy_set_budgets(bare, limits, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(policy_hash(bare), ==, policy_hash(own));

  g_assert_false(policy_set_budgets(own, limits, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==,
                  "governance_config.budgets cannot be set together with budgets inside the "
                  "policy; remove one of them");
}

/* ---- The older kind ---------------------------------------------------------------------------------------------- */

/* Asks about so many things at once. NULL: allowed. Owned. */
static char *ask(Policy *policy, guint count) {
  g_autoptr(GError) error = NULL;
  const GateHooks hooks = {0};
  g_autoptr(Gate) gate = gate_new(policy, &hooks, TRUE, FALSE);
  g_autoptr(GPtrArray) requests =
      g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  for (guint i = 0; i < count; i++) {
    g_ptr_array_add(requests, policy_request_new("a.thing", RISK_LOW));
  }
  if (gate_authorize(gate, requests, NULL, &error)) {
    return NULL;
  }
  return g_strdup_printf("%s: %s", sandhost_error_governance_code(error), error->message);
}

static void check_ask(Policy *policy, guint count, const char *wanted) {
  g_autofree char *got = ask(policy, count);
  g_assert_cmpstr(got, ==, wanted);
}

static void test_older_requests(void) {
  g_autoptr(Policy) policy = fixture_policy("{'budget': {'max_requests': 3}, 'rules': {"
                                            "'allow': [{'rule_id': 'a', 'capability': 'a.*'}]}}");
  check_ask(policy, 2, NULL);
  check_ask(policy, 1, NULL);
  check_ask(policy, 1, "budget_exceeded: Policy request budget exceeded.");
}

static void test_older_cost(void) {
  g_autoptr(Policy) policy = fixture_policy("{'mode': 'permissive', 'budget': {'max_cost': 0.5}}");
  check_ask(policy, 1, NULL);
  policy_count(policy, 0, 499999);
  check_ask(policy, 1, NULL);
  policy_count(policy, 0, 1);
  check_ask(policy, 1, "budget_exceeded: Policy cost budget exceeded.");
}

static void test_older_refused_is_free(void) {
  g_autoptr(Policy) policy =
      fixture_policy("{'mode': 'permissive', 'budget': {'max_requests': 1}, 'rules': {"
                     "'deny': [{'rule_id': 'd', 'capability': 'a.*'}]}}");
  check_ask(policy, 1, "policy_denied: Matched deny policy rule.");
  check_ask(policy, 1, "policy_denied: Matched deny policy rule.");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/governance/budgets/refusals", test_refusals);
  g_test_add_func("/governance/budgets/values", test_values);
  g_test_add_func("/governance/budgets/windows", test_windows);
  g_test_add_func("/governance/budgets/policy", test_policy);
  g_test_add_func("/governance/budgets/older-requests", test_older_requests);
  g_test_add_func("/governance/budgets/older-cost", test_older_cost);
  g_test_add_func("/governance/budgets/older-refused-is-free", test_older_refused_is_free);
  return g_test_run();
}
