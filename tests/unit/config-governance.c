/* SPDX-License-Identifier: Apache-2.0 */
/* config-governance.c: governance_config: which policy, which sandbox, which files; and every
 * refusal. */
#include "config-fixture.h"

static Config *read_governance(const char *text) {
  g_autofree char *whole = g_strdup_printf("{\"agent_config\": {\"governance_config\": %s}}", text);
  return fixture_read(whole);
}

/* The truth table of behaviour 1.2. */
static void test_effective_policy(void) {
  static const struct {
    const char *text;
    const char *profile;
    gboolean governed;
    gboolean given;
  } CASES[] = {
      {"{}", "permissive-dev", TRUE, FALSE},
      {"{\"profile\": \"strict-production\"}", "strict-production", TRUE, FALSE},
      {"{\"enabled\": true}", "interactive-dev", TRUE, TRUE},
      {"{\"enabled\": true, \"profile\": \"permissive-dev\"}", "permissive-dev", TRUE, TRUE},
      {"{\"enabled\": true, \"policy\": {}}", NULL, TRUE, TRUE},
      {"{\"policy\": {}}", NULL, TRUE, FALSE},
      {"{\"policy\": {}, \"profile\": \"interactive-dev\"}", NULL, TRUE, FALSE},
      {"{\"policy_path\": \"p.json\"}", NULL, TRUE, FALSE},
      {"{\"enabled\": true, \"policy\": null, \"policy_path\": null}", "interactive-dev", TRUE,
       TRUE},
      {"{\"enabled\": false}", NULL, FALSE, TRUE},
      {"{\"enabled\": false, \"profile\": \"strict-production\"}", NULL, FALSE, TRUE},
      {"{\"enabled\": false, \"policy\": {}}", NULL, FALSE, TRUE},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(Config) config = read_governance(CASES[i].text);
    g_assert_cmpstr(config->profile, ==, CASES[i].profile);
    g_assert_cmpint(config->governed, ==, CASES[i].governed);
    g_assert_cmpint(config->enabled_was_given, ==, CASES[i].given);
  }
}

static void test_paths(void) {
  g_autofree char *here = g_get_current_dir();
  g_autofree char *policy = g_build_filename(here, "p", "q.json", NULL);
  g_autoptr(Config) config =
      read_governance("{\"policy_path\": \"p/q.json\", \"project_root\": \"/x/../y\"}");
  g_assert_cmpstr(config->policy_path, ==, policy);
  g_assert_cmpstr(config->project_root, ==, "/y");
}

static void test_flags(void) {
  g_autoptr(Config) config =
      read_governance("{\"approval_mode\": \"fail\", \"allow_test_sandbox_runtime\": true, "
                      "\"allow_static_high_risk_approvals\": true, \"budgets\": {}, "
                      "\"sandbox_runtime\": null, \"approval_resolver\": null}");
  g_assert_true(config->approval_fails);
  g_assert_true(config->allow_test_runtime);
  g_autoptr(Config) other = read_governance("{\"approval_mode\": \"suspend\"}");
  g_assert_false(other->approval_fails);
}

static void test_sandbox(void) {
  g_autoptr(Config) named = read_governance("{\"sandbox_config\": \"none\"}");
  g_assert_cmpstr(named->provider, ==, "none");
  g_assert_null(named->provider_options);
  g_autoptr(Config) whole = read_governance(
      "{\"sandbox_config\": {\"provider\": \"e2b\", \"options\": {\"timeout_seconds\": 300}}}");
  g_assert_cmpstr(whole->provider, ==, "e2b");
  g_assert_cmpint(json_get_int(whole->provider_options, "timeout_seconds", 0), ==, 300);
  g_autoptr(Config) bare = read_governance("{\"sandbox_config\": {\"provider\": \"docker\"}}");
  g_assert_cmpstr(bare->provider, ==, "docker");
  g_assert_null(bare->provider_options);
  g_autoptr(Config) none = read_governance("{\"sandbox_config\": null}");
  g_assert_null(none->provider);
}

static void test_bridge(void) {
  g_autoptr(Config) config = read_governance(
      "{\"workspace_bridge\": {\"include\": [\"src/*\", \"data/*.csv\"], \"exclude\": "
      "[\"data/archive/*\"], \"max_files\": 100000, \"max_file_bytes\": 1073741824, "
      "\"max_copy_bytes\": 4294967296}}");
  fixture_strv(config->include, "src/*|data/*.csv");
  fixture_strv(config->exclude, "data/archive/*");
  g_assert_cmpuint(config->max_files, ==, 100000);
  g_assert_cmpuint(config->max_file_bytes, ==, 1073741824);
  g_assert_cmpuint(config->max_copy_bytes, ==, G_GUINT64_CONSTANT(4294967296));
  g_autoptr(Config) empty = read_governance("{\"workspace_bridge\": {\"include\": []}}");
  fixture_strv(empty->include, "");
}

static void test_manifest_given(void) {
  g_autoptr(Config) config =
      read_governance("{\"sandbox_manifest\": {\"network_policy\": {\"default\": \"allow\"}}}");
  g_assert_true(config->manifest_was_given);
  g_assert_true(config->manifest->network);
  g_autoptr(Config) none = read_governance("{\"sandbox_manifest\": null}");
  g_assert_false(none->manifest_was_given);
  g_assert_false(none->manifest->network);
}

static void test_shape(void) {
  static const ConfigRefusal CASES[] = {
      {"[]", "governance_config must be a dict"},
      {"\"x\"", "governance_config must be a dict"},
      {"true", "governance_config must be a dict"},
      {"{\"polcy\": {}, \"mode\": 1}",
       "governance_config has unknown keys: mode, polcy. Allowed keys: "
       "allow_static_high_risk_approvals, allow_test_sandbox_runtime, approval_mode, "
       "approval_resolver, approver_check, budgets, enabled, policy, policy_path, profile, "
       "project_root, "
       "sandbox_config, sandbox_manifest, sandbox_runtime, workspace_bridge"},
      {"{\"enabled\": 1}", "governance_config.enabled must be a boolean"},
      {"{\"enabled\": \"true\"}", "governance_config.enabled must be a boolean"},
      {"{\"enabled\": null}", "governance_config.enabled must be a boolean"},
      {"{\"allow_static_high_risk_approvals\": 0}",
       "governance_config.allow_static_high_risk_approvals must be a boolean"},
      {"{\"allow_test_sandbox_runtime\": \"yes\"}",
       "governance_config.allow_test_sandbox_runtime must be a boolean"},
      {"{\"approval_mode\": \"ask\"}",
       "governance_config.approval_mode must be 'suspend' or 'fail'"},
      {"{\"approval_mode\": true}", "governance_config.approval_mode must be 'suspend' or 'fail'"},
      {"{\"approval_mode\": null}", "governance_config.approval_mode must be 'suspend' or 'fail'"},
      {"{\"approval_resolver\": {}}", "governance_config.approval_resolver: a resolver can only be "
                                      "given by a program; remove it"},
  };
  fixture_refused("{\"governance_config\": ", "}", CASES, G_N_ELEMENTS(CASES));
}

static void test_policy_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"profile\": \"permissive\"",
       "governance_config.profile must be one of {'permissive-dev', 'interactive-dev', "
       "'strict-production'}"},
      {"\"profile\": 1", "governance_config.profile must be one of {'permissive-dev', "
                         "'interactive-dev', 'strict-production'}"},
      {"\"enabled\": false, \"profile\": \"x\"",
       "governance_config.profile must be one of {'permissive-dev', 'interactive-dev', "
       "'strict-production'}"},
      {"\"policy\": {}, \"policy_path\": \"p.json\"",
       "governance_config cannot set both policy and policy_path"},
      {"\"policy\": \"p.json\"", "governance_config.policy must be a dict or PolicyEnvelope"},
      {"\"policy\": []", "governance_config.policy must be a dict or PolicyEnvelope"},
      {"\"policy_path\": 1", "governance_config.policy_path must be a string or path-like"},
      {"\"policy_path\": \"\"", "governance_config.policy_path must be a string or path-like"},
      {"\"project_root\": []", "governance_config.project_root must be a string or path-like"},
      {"\"budgets\": []", "governance_config.budgets must be a dict"},
  };
  fixture_refused("{\"governance_config\": {", "}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_sandbox_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"sandbox_config\": \"docker\", \"sandbox_runtime\": {}",
       "governance_config cannot set both sandbox_runtime and sandbox_config"},
      {"\"sandbox_runtime\": {}",
       "governance_config.sandbox_runtime: a runtime object can only be given by a program, see "
       "sandhost.h; name a provider in governance_config.sandbox_config"},
      {"\"sandbox_config\": 3", "governance_config.sandbox_config must be a dict or string"},
      {"\"sandbox_config\": [\"docker\"]",
       "governance_config.sandbox_config must be a dict or string"},
      {"\"sandbox_config\": {\"provider\": \"docker\", \"image\": \"x\", \"api_key\": \"k\"}",
       "governance_config.sandbox_config has unknown keys: api_key, image. Allowed keys: options, "
       "provider"},
      {"\"sandbox_config\": \"dokcer\"",
       "governance_config.sandbox_config.provider must be a registered sandbox "
       "provider: " FIXTURE_PROVIDER_LIST},
      {"\"sandbox_config\": \"\"",
       "governance_config.sandbox_config.provider must be a registered sandbox "
       "provider: " FIXTURE_PROVIDER_LIST},
      {"\"sandbox_config\": {}",
       "governance_config.sandbox_config.provider must be a registered sandbox "
       "provider: " FIXTURE_PROVIDER_LIST},
      {"\"sandbox_config\": {\"provider\": 7}",
       "governance_config.sandbox_config.provider must be a registered sandbox "
       "provider: " FIXTURE_PROVIDER_LIST},
      {"\"sandbox_config\": {\"provider\": \"e2b\", \"options\": \"sk-secret\"}",
       "governance_config.sandbox_config.options must be an object"},
  };
  fixture_refused("{\"governance_config\": {", "}}", CASES, G_N_ELEMENTS(CASES));
}

/* The list names what the configuration registers, in its place and once. */
static void test_registered_names(void) {
  static const ConfigRefusal CASES[] = {
      {"\"x\"", "governance_config.sandbox_config.provider must be a registered sandbox provider: "
                "bubblewrap, daytona, docker, e2b, http, local, local_test, mine, modal, none, "
                "vercel"},
  };
  fixture_refused("{\"register_sandbox_provider\": {\"mine\": \"/m.so\", \"docker\": \"/d.so\"}, "
                  "\"governance_config\": {\"sandbox_config\": ",
                  "}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_bridge_refused(void) {
  static const char SHAPE[] = "governance_config.workspace_bridge must be a dict with 'include' "
                              "and/or 'exclude' lists of glob patterns";
  static const char INCLUDE[] =
      "governance_config.workspace_bridge.include must be a list of glob strings";
  static const char EXCLUDE[] =
      "governance_config.workspace_bridge.exclude must be a list of glob strings";
  const ConfigRefusal cases[] = {
      {"[]", SHAPE},
      {"\"*\"", SHAPE},
      {"{\"includes\": []}",
       "governance_config.workspace_bridge has unknown keys: includes. Allowed keys: exclude, "
       "include, max_copy_bytes, max_file_bytes, max_files"},
      {"{\"include\": \"*.py\"}", INCLUDE},
      {"{\"include\": [1]}", INCLUDE},
      {"{\"include\": [\"\"]}", INCLUDE},
      {"{\"include\": null}", INCLUDE},
      {"{\"exclude\": {}}", EXCLUDE},
      {"{\"exclude\": [\"a\", null]}", EXCLUDE},
      {"{\"max_files\": 0}",
       "governance_config.workspace_bridge.max_files must be between 1 and 100000, got 0"},
      {"{\"max_files\": 100001}",
       "governance_config.workspace_bridge.max_files must be between 1 and 100000, got 100001"},
      {"{\"max_files\": 5.0}",
       "governance_config.workspace_bridge.max_files must be an integer, got 5.0"},
      {"{\"max_file_bytes\": 1073741825}",
       "governance_config.workspace_bridge.max_file_bytes must be between 1 and 1073741824, got "
       "1073741825"},
      {"{\"max_copy_bytes\": -1}",
       "governance_config.workspace_bridge.max_copy_bytes must be between 1 and 4294967296, got "
       "-1"},
  };
  fixture_refused("{\"governance_config\": {\"workspace_bridge\": ", "}}", cases,
                  G_N_ELEMENTS(cases));
}

/* What a person would write first, with each provider. */
static void test_samples(void) {
  static const struct {
    const char *text;
    const char *provider;
    const char *profile;
    gboolean network;
  } CASES[] = {
      {"{\"enabled\": true, \"profile\": \"interactive-dev\", \"sandbox_config\": {\"provider\": "
       "\"docker\"}}",
       "docker", "interactive-dev", FALSE},
      {"{\"enabled\": true, \"policy\": {\"mode\": \"strict\", \"rules\": {\"allow\": []}}, "
       "\"sandbox_config\": {\"provider\": \"docker\"}}",
       "docker", NULL, FALSE},
      {"{\"sandbox_config\": {\"provider\": \"docker\"}, \"workspace_bridge\": {\"include\": "
       "[\"src/*\", \"data/*.csv\"], \"exclude\": [\"data/archive/*\"]}}",
       "docker", "permissive-dev", FALSE},
      {"{\"enabled\": true, \"profile\": \"interactive-dev\", \"sandbox_config\": {\"provider\": "
       "\"docker\"}, \"sandbox_manifest\": {\"network_policy\": {\"default\": \"allow\"}}}",
       "docker", "interactive-dev", TRUE},
      {"{\"sandbox_config\": {\"provider\": \"docker\"}, \"sandbox_manifest\": {\"environment\": "
       "{\"plain\": {\"APP_ENV\": \"test\"}}}}",
       "docker", "permissive-dev", FALSE},
      {"{\"sandbox_config\": {\"provider\": \"e2b\", \"options\": {\"timeout_seconds\": 300}}}",
       "e2b", "permissive-dev", FALSE},
      {"{\"sandbox_config\": {\"provider\": \"docker\", \"options\": {\"image\": "
       "\"python:3.12-slim\"}}}",
       "docker", "permissive-dev", FALSE},
      {"{\"sandbox_config\": {\"provider\": \"daytona\"}, \"sandbox_manifest\": "
       "{\"network_policy\": {\"default\": \"allow\"}}}",
       "daytona", "permissive-dev", TRUE},
      {"{\"sandbox_config\": {\"provider\": \"modal\"}, \"sandbox_manifest\": {\"network_policy\": "
       "{\"default\": \"deny\", \"allowed_hosts\": [\"pypi.org\", \"*.pythonhosted.org\"]}}}",
       "modal", "permissive-dev", FALSE},
      {"{\"sandbox_config\": {\"provider\": \"http\", \"options\": {\"base_url\": "
       "\"https://sandboxes.example.com\", \"token\": \"...\"}}}",
       "http", "permissive-dev", FALSE},
      {"{\"enabled\": true, \"policy\": {}, \"sandbox_config\": {\"provider\": \"local\"}, "
       "\"sandbox_manifest\": {\"working_dir\": \"/srv/app\", \"network_policy\": {\"default\": "
       "\"allow\"}}}",
       "local", NULL, TRUE},
      {"{\"sandbox_config\": \"local_test\", \"allow_test_sandbox_runtime\": true}", "local_test",
       "permissive-dev", FALSE},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(Config) config = read_governance(CASES[i].text);
    g_assert_cmpstr(config->provider, ==, CASES[i].provider);
    g_assert_cmpstr(config->profile, ==, CASES[i].profile);
    g_assert_cmpint(config->manifest->network, ==, CASES[i].network);
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/governance/effective-policy", test_effective_policy);
  g_test_add_func("/governance/paths", test_paths);
  g_test_add_func("/governance/flags", test_flags);
  g_test_add_func("/governance/sandbox", test_sandbox);
  g_test_add_func("/governance/bridge", test_bridge);
  g_test_add_func("/governance/manifest-given", test_manifest_given);
  g_test_add_func("/governance/shape", test_shape);
  g_test_add_func("/governance/policy-refused", test_policy_refused);
  g_test_add_func("/governance/sandbox-refused", test_sandbox_refused);
  g_test_add_func("/governance/registered-names", test_registered_names);
  g_test_add_func("/governance/bridge-refused", test_bridge_refused);
  g_test_add_func("/governance/samples", test_samples);
  return g_test_run();
}
