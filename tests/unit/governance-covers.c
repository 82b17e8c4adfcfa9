/* SPDX-License-Identifier: Apache-2.0 */
/* governance-covers.c: a rule that another one covers matches nothing that the other does not: rules and requests
 * put together of few texts, so that they meet often. */
#include "governance-fixture.h"

#include "governance/policy-private.h"

#define PAIRS 10000
#define REQUESTS 60

static const char *const GLOBS[] = {"a.b", "a.*", "a.b*", "*", "a?b", "[a].b", "a.b.c", "*.b"};
static const char *const TEXTS[] = {"a.b", "a.c", "a.b.c", "a-b", "[a].b", "c.b", "b", ""};
static const char *const SURFACES[] = {"sandbox", "host", "workspace"};
static const char *const RISKS[] = {"low", "medium", "high", "critical"};
static const char *const CLASSES[] = {"x", "y", "z"};

#define PICK(rand, list) ((list)[g_rand_int_range(rand, 0, G_N_ELEMENTS(list))])

/* Once in so many times. */
static gboolean maybe(GRand *rand, gint32 times) {
  return g_rand_int_range(rand, 0, times) == 0;
}

static void add_some(GRand *rand, gint32 times, JsonObject *object, const char *key,
                     const char *const *texts, gsize count) {
  JsonObject *list = json_object_new_array();
  for (gsize i = 0; i < count; i++) {
    if (maybe(rand, times)) {
      json_object_array_add(list, json_object_new_string(texts[i]));
    }
  }
  if (json_object_array_length(list) > 0) {
    json_add_take(object, key, list);
  } else {
    json_object_put(list);
  }
}

/* Each part once in so many times: a rule of few parts is wide. */
static Policy *random_rule(GRand *rand, gint32 times) {
  g_autoptr(GError) error = NULL;
  static const char *const TARGETS[] = {"path", "host", "resource", "tool_name", "mcp_server"};
  static const char *const EQUALS[] = {"provider", "mcp_server", "method"};
  JsonObject *target = json_object_new_object();
  JsonObject *conditions = json_object_new_object();
  for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
    if (maybe(rand, times)) {
      json_add_text(target, TARGETS[i], PICK(rand, GLOBS));
    }
  }
  for (gsize i = 0; i < G_N_ELEMENTS(EQUALS); i++) {
    if (maybe(rand, times)) {
      json_add_text(conditions, EQUALS[i], PICK(rand, CLASSES));
    }
  }
  if (maybe(rand, times)) {
    json_add_text(conditions, "host", PICK(rand, GLOBS));
  }
  if (maybe(rand, times)) {
    json_add_text(conditions, "execution_surface", PICK(rand, SURFACES));
  }
  add_some(rand, times, conditions, "risk_level", RISKS, G_N_ELEMENTS(RISKS));
  add_some(rand, times, conditions, "data_classes", CLASSES, G_N_ELEMENTS(CLASSES));
  add_some(rand, times, conditions, "exclude_execution_surface", SURFACES, G_N_ELEMENTS(SURFACES));
  add_some(rand, times, conditions, "exclude_capability", GLOBS, G_N_ELEMENTS(GLOBS));
  g_autoptr(JsonObject) source = fixture_json("{'rules': {'allow': [{'rule_id': 'r'}]}}");
  JsonObject *rule = json_object_array_get_idx(json_get(json_get(source, "rules"), "allow"), 0);
  json_add_text(rule, "capability", PICK(rand, GLOBS));
  json_add_take(rule, "target", target);
  json_add_take(rule, "conditions", conditions);
  Policy *policy = policy_new(source, &error);
  g_assert_no_error(error);
  return policy;
}

static PolicyRequest *random_request(GRand *rand) {
  PolicyRequest *request = policy_request_new(PICK(rand, TEXTS), RISK_LOW);
  char **const PARTS[] = {&request->target_path,       &request->target_host,
                          &request->target_resource,   &request->target_tool_name,
                          &request->target_mcp_server, &request->host};
  char **const EQUALS[] = {&request->provider, &request->mcp_server, &request->method};
  request->risk = (Risk)g_rand_int_range(rand, RISK_LOW, RISK_CRITICAL + 1);
  request->has_target = g_rand_boolean(rand);
  for (gsize i = 0; i < G_N_ELEMENTS(PARTS); i++) {
    *PARTS[i] = g_rand_boolean(rand) ? g_strdup(PICK(rand, TEXTS)) : NULL;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(EQUALS); i++) {
    *EQUALS[i] = g_rand_boolean(rand) ? g_strdup(PICK(rand, CLASSES)) : NULL;
  }
  request->execution_surface = g_rand_boolean(rand) ? g_strdup(PICK(rand, SURFACES)) : NULL;
  if (g_rand_boolean(rand)) {
    const char *const classes[] = {PICK(rand, CLASSES), NULL};
    request->data_classes = g_strdupv((char **)(gsize)classes);
  }
  return request;
}

static const PolicyRule *rule_of(const Policy *policy) {
  return g_ptr_array_index(policy->rules[EFFECT_ALLOW], 0);
}

static void test_what_is_covered_is_no_wider(void) {
  GRand *rand = g_rand_new_with_seed(7);
  guint covered = 0;
  guint met = 0;
  for (guint pair = 0; pair < PAIRS; pair++) {
    g_autoptr(Policy) wide = random_rule(rand, 12);
    g_autoptr(Policy) narrow = random_rule(rand, 5);
    if (!policy_rule_covers(rule_of(wide), rule_of(narrow))) {
      continue;
    }
    covered++;
    for (guint i = 0; i < REQUESTS; i++) {
      g_autoptr(PolicyRequest) request = random_request(rand);
      if (!policy_rule_misses(rule_of(narrow), request)) {
        met++;
        g_assert_null(policy_rule_misses(rule_of(wide), request));
      }
    }
  }
  g_rand_free(rand);
  /* Else nothing was shown. */
  g_test_message("%u covered, %u met", covered, met);
  g_assert_cmpuint(covered, >, 20);
  g_assert_cmpuint(met, >, 20);
}

static void test_every_rule_covers_itself(void) {
  GRand *rand = g_rand_new_with_seed(8);
  for (guint i = 0; i < 500; i++) {
    g_autoptr(Policy) policy = random_rule(rand, 3);
    g_assert_true(policy_rule_covers(rule_of(policy), rule_of(policy)));
  }
  g_rand_free(rand);
}

/* One that is bound to a sandbox, or to the record, is wider without that. */
static void test_constraints(void) {
  static const char *const CONSTRAINTS[] = {"sandbox_required", "strict_telemetry",
                                            "audit_required"};
  g_autoptr(Policy) plain = fixture_rules("strict", "allow", "{'rule_id': 'a', 'capability': 'x'}");
  for (gsize i = 0; i < G_N_ELEMENTS(CONSTRAINTS); i++) {
    g_autofree char *text = g_strdup_printf(
        "{'rule_id': 'a', 'capability': 'x', 'constraints': {'%s': true}}", CONSTRAINTS[i]);
    g_autoptr(Policy) bound = fixture_rules("strict", "allow", text);
    g_assert_true(policy_rule_covers(rule_of(plain), rule_of(bound)));
    g_assert_false(policy_rule_covers(rule_of(bound), rule_of(plain)));
    g_assert_true(policy_rule_covers(rule_of(bound), rule_of(bound)));
  }
}

static void test_commands(void) {
  g_autoptr(Policy) any =
      fixture_rules("strict", "allow", "{'rule_id': 'a', 'capability': 'process.exec'}");
  g_autoptr(Policy) some =
      fixture_rules("strict", "allow",
                    "{'rule_id': 'a', 'capability': 'process.exec', 'command': {'program': 'ls'}}");
  g_assert_true(policy_rule_covers(rule_of(any), rule_of(some)));
  g_assert_false(policy_rule_covers(rule_of(some), rule_of(any)));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/covers/" name, function)
  ADD("no-wider", test_what_is_covered_is_no_wider);
  ADD("itself", test_every_rule_covers_itself);
  ADD("constraints", test_constraints);
  ADD("commands", test_commands);
#undef ADD
  return g_test_run();
}
