/* SPDX-License-Identifier: Apache-2.0 */
/* governance-hash.c: the same hash for the same policy, another for another (behaviour 4.11). */
#include "governance-fixture.h"

static char *hash_of(const char *text) {
  g_autoptr(Policy) policy = fixture_policy(text);
  return g_strdup(policy_hash(policy));
}

static void same(const char *a, const char *b) {
  g_autofree char *one = hash_of(a);
  g_autofree char *two = hash_of(b);
  g_test_message("%s | %s", a, b);
  g_assert_cmpstr(one, ==, two);
}

static void differ(const char *a, const char *b) {
  g_autofree char *one = hash_of(a);
  g_autofree char *two = hash_of(b);
  g_test_message("%s | %s", a, b);
  g_assert_cmpstr(one, !=, two);
}

static const char RULE[] = "{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x'}]}}";

/* SHA-256 of the canonical text, taken with another program: the hash never changes unnoticed. */
static void test_value(void) {
  g_autofree char *hash = hash_of("{'name': 'caf\xc3\xa9', 'mode': 'strict'}");
  g_assert_cmpstr(hash, ==, "430ba875763c8a8f6b235d7646cbc12a747e6fc64cb6b9eb30b248aa400b12fc");
}

static void test_order_of_keys(void) {
  same("{'name': 'n', 'mode': 'strict'}", "{'mode': 'strict', 'name': 'n'}");
  same(RULE, "{'rules': {'deny': [{'capability': 'x', 'rule_id': 'a'}]}}");
}

static void test_what_says_nothing(void) {
  same(RULE, "{'budgets': null, 'budget': {}, 'metadata': {}, 'rules': {'allow': [], 'ask': null,"
             " 'deny': [{'rule_id': 'a', 'capability': 'x', 'target': {}, 'conditions':"
             " {'host': null}, 'reason': null, 'metadata': {'deep': {'deeper': []}}}]}}");
}

static void test_defaults(void) {
  same("{}", "{'version': '1', 'name': 'default-policy', 'mode': 'interactive'}");
}

static void test_order_of_rules(void) {
  differ("{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x'}, {'rule_id': 'b',"
         " 'capability': 'x'}]}}",
         "{'rules': {'deny': [{'rule_id': 'b', 'capability': 'x'}, {'rule_id': 'a',"
         " 'capability': 'x'}]}}");
}

static void test_every_part_counts(void) {
  differ(RULE, "{'rules': {'ask': [{'rule_id': 'a', 'capability': 'x'}]}}");
  differ(RULE, "{'rules': {'deny': [{'rule_id': 'b', 'capability': 'x'}]}}");
  differ(RULE, "{'rules': {'deny': [{'rule_id': 'a', 'capability': 'y'}]}}");
  differ(RULE, "{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x', 'reason': 'r'}]}}");
  differ(RULE, "{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x', 'target':"
               " {'path': 'p'}}]}}");
  differ(RULE, "{'rules': {'deny': [{'rule_id': 'a', 'capability': 'x', 'constraints':"
               " {'sandbox_required': true}}]}}");
  differ("{}", "{'mode': 'strict'}");
  differ("{}", "{'name': 'n'}");
  differ("{}", "{'metadata': {'owner': 'me'}}");
}

/* A generated id is new each time; a given one is the author's. */
static void test_policy_id(void) {
  g_autoptr(Policy) one = fixture_policy("{}");
  g_autoptr(Policy) two = fixture_policy("{}");
  g_assert_cmpstr(policy_id(one), !=, policy_id(two));
  g_assert_cmpstr(policy_hash(one), ==, policy_hash(two));
  differ("{}", "{'policy_id': 'mine'}");
  differ("{'policy_id': 'yours'}", "{'policy_id': 'mine'}");
}

static void test_profiles(void) {
  g_autoptr(Policy) permissive = policy_new_profile("permissive-dev");
  g_autoptr(Policy) again = policy_new_profile("permissive-dev");
  g_autoptr(Policy) interactive = policy_new_profile("interactive-dev");
  g_autoptr(Policy) strict = policy_new_profile("strict-production");
  g_assert_cmpstr(policy_hash(permissive), ==, policy_hash(again));
  g_assert_cmpstr(policy_hash(permissive), !=, policy_hash(interactive));
  g_assert_cmpstr(policy_hash(interactive), !=, policy_hash(strict));
  g_assert_cmpstr(policy_hash(strict), !=, policy_hash(permissive));
}

static void test_shape(void) {
  g_autofree char *hash = hash_of(RULE);
  g_assert_cmpuint(strlen(hash), ==, 64);
  g_assert_cmpuint(strspn(hash, "0123456789abcdef"), ==, 64);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/governance/hash/value", test_value);
  g_test_add_func("/governance/hash/key-order", test_order_of_keys);
  g_test_add_func("/governance/hash/empty", test_what_says_nothing);
  g_test_add_func("/governance/hash/defaults", test_defaults);
  g_test_add_func("/governance/hash/rule-order", test_order_of_rules);
  g_test_add_func("/governance/hash/every-part", test_every_part_counts);
  g_test_add_func("/governance/hash/policy-id", test_policy_id);
  g_test_add_func("/governance/hash/profiles", test_profiles);
  g_test_add_func("/governance/hash/shape", test_shape);
  return g_test_run();
}
