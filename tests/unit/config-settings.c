/* SPDX-License-Identifier: Apache-2.0 */
/* config-settings.c: the shape of the file, the settings of agent_config, and registered
 * providers. */
#include "config-fixture.h"

#include <glib/gstdio.h>
#include <unistd.h>

#include "config/check.h"

#define ALL_SETTINGS                                                                               \
  "enable_workspace_files, governance_config, guardrail_mode, max_steps, privacy_config, "         \
  "request_limit, run_lease_seconds, run_retention_days, telemetry_config, tool_call_timeout, "    \
  "tool_offload, total_tokens_limit, workspace_config"

static void check_defaults(const Config *config) {
  g_autofree char *here = g_get_current_dir();
  g_autofree char *workspace = g_build_filename(here, "workspace", NULL);
  g_autofree char *files = g_build_filename(workspace, "files", NULL);
  g_assert_cmpint(config->tool_call_timeout, ==, 180);
  g_assert_true(config->enable_workspace_files);
  g_assert_cmpstr(config->workspace_dir, ==, workspace);
  g_assert_cmpstr(config->files_dir, ==, files);
  g_assert_cmpstr(config->agent_name, ==, "sandhost");
  g_assert_true(config->governed);
  g_assert_false(config->enabled_was_given);
  g_assert_cmpstr(config->profile, ==, "permissive-dev");
  g_assert_null(config->policy);
  g_assert_null(config->policy_path);
  g_assert_cmpstr(config->project_root, ==, here);
  g_assert_false(config->approval_fails);
  g_assert_false(config->allow_test_runtime);
  g_assert_null(config->budgets);
  g_assert_null(config->provider);
  g_assert_null(config->provider_options);
  g_assert_false(config->manifest_was_given);
  g_assert_nonnull(config->manifest);
  g_assert_cmpstr(config->manifest->working_dir, ==, "/workspace");
  g_assert_null(config->include[0]);
  g_assert_null(config->exclude[0]);
  g_assert_cmpuint(config->max_files, ==, 500);
  g_assert_cmpuint(config->max_file_bytes, ==, 2000000);
  g_assert_cmpuint(config->max_copy_bytes, ==, 20000000);
  g_assert_cmpuint(g_hash_table_size(config->registered), ==, 0);
  g_assert_null(config->record_path);
}

static void test_defaults(void) {
  static const char *const EMPTY[] = {
      "{}", "{\"agent_config\": {}}", "{\"agent_config\": {\"governance_config\": {}}}",
      "{\"governance_config\": null, \"workspace_config\": null, \"telemetry_config\": null}"};
  g_autoptr(Config) config = config_new_default();
  check_defaults(config);
  g_assert_null(config->agent_config);
  for (gsize i = 0; i < G_N_ELEMENTS(EMPTY); i++) {
    g_autoptr(Config) read = fixture_read(EMPTY[i]);
    check_defaults(read);
    g_assert_nonnull(read->agent_config);
  }
}

static void test_all(void) {
  g_autoptr(Config) config = fixture_read(
      "{\"name\": \"reader\", \"model_config\": {\"provider\": \"openai\", \"model\": \"m\"},"
      " \"agent_config\": {\"tool_call_timeout\": 1000, \"enable_workspace_files\": false,"
      " \"workspace_config\": {\"workspace_dir\": \"/a/b/../c\", \"files_dir\": \"/tmp\"},"
      " \"max_steps\": 1, \"request_limit\": 0, \"total_tokens_limit\": 5000000000,"
      " \"run_lease_seconds\": 60, \"run_retention_days\": null, \"guardrail_mode\": \"off\","
      " \"tool_offload\": {\"enabled\": true, \"threshold_tokens\": 500, \"threshold_bytes\": 2000,"
      " \"max_preview_tokens\": 150, \"max_preview_lines\": 10},"
      " \"privacy_config\": {\"enabled\": true, \"redact_telemetry\": true, \"redact_memory\": "
      "false, \"redact_workspace\": false, \"redact_stream\": false, \"redact_public\": false, "
      "\"redact_model_io\": false, \"categories\": [\"email\", \"phone\", \"ssn\", "
      "\"credit_card\"]},"
      " \"telemetry_config\": {\"capture\": \"default\", \"record_inputs\": true, "
      "\"record_outputs\": true, \"record_model_prompts\": false, \"record_model_responses\": "
      "false, \"record_tool_results\": true, \"record_token_details\": true, \"storage\": "
      "\"auto\", \"storage_path\": \"/s/../t.db\", \"retention_days\": 7, "
      "\"payload_retention_days\": 7, \"max_payload_bytes\": 64000, \"strict\": false, "
      "\"redact_keys\": [\"token\"], \"keep_output_bytes\": 0, \"retention_max_bytes\": "
      "5000000}}}");
  g_assert_cmpstr(config->agent_name, ==, "reader");
  g_assert_cmpint(config->tool_call_timeout, ==, 1000);
  g_assert_false(config->enable_workspace_files);
  g_assert_cmpstr(config->workspace_dir, ==, "/a/c");
  g_assert_cmpstr(config->files_dir, ==, "/tmp");
  g_assert_cmpstr(config->record_path, ==, "/t.db");
  g_assert_cmpint(json_get_int(config->agent_config, "max_steps", 0), ==, 1);
  g_assert_cmpuint(config->keep_output_bytes, ==, 0);
  g_assert_cmpint(config->retention_days, ==, 7);
  g_assert_cmpint(config->retention_max_bytes, ==, 5000000);
}

static void test_relative_folders(void) {
  g_autofree char *here = g_get_current_dir();
  g_autoptr(Config) config =
      fixture_read("{\"workspace_config\": {\"workspace_dir\": \"w\"}, \"telemetry_config\": "
                   "{\"storage_path\": \"r.db\"}}");
  g_autofree char *files = g_build_filename(here, "w", "files", NULL);
  g_autofree char *record = g_build_filename(here, "r.db", NULL);
  g_assert_cmpstr(config->files_dir, ==, files);
  g_assert_cmpstr(config->record_path, ==, record);
}

static void test_shape(void) {
  static const ConfigRefusal CASES[] = {
      {"[]", "the configuration must be an object"},
      {"null", "the configuration must be an object"},
      {"\"docker\"", "the configuration must be an object"},
      {"{\"agent_config\": []}", "agent_config must be a dict or AgentConfig"},
      {"{\"agent_config\": null}", "agent_config must be a dict or AgentConfig"},
      {"{\"agent_config\": \"x\"}", "agent_config must be a dict or AgentConfig"},
      {"{\"agent_config\": {}, \"max_steps\": 5, \"x\": 1}",
       "the configuration has unknown keys: max_steps, x. Allowed keys: agent_config, "
       "model_config, name, register_sandbox_provider, session_id"},
      {"{\"model_config\": \"sk-secret\"}", "model_config must be an object"},
      {"{\"name\": \"\"}", "name must be a non-empty string"},
      {"{\"name\": 7}", "name must be a non-empty string"},
      {"{\"name\": \" \"}", "name must be at most 256 bytes long, and not blank"},
      {"{\"session_id\": \" \"}",
       "the configuration.session_id must be a non-empty string, got ' '"},
  };
  fixture_refused("", "", CASES, G_N_ELEMENTS(CASES));
}

static void test_unknown(void) {
  static const ConfigRefusal CASES[] = {
      {"\"tool_call_timout\": 5", "Unknown agent_config setting 'tool_call_timout'. Did you mean "
                                  "'tool_call_timeout'? Settings: " ALL_SETTINGS},
      {"\"governance\": {}", "Unknown agent_config setting 'governance'. Did you mean "
                             "'governance_config'? Settings: " ALL_SETTINGS},
      {"\"zzz\": 5", "Unknown agent_config setting 'zzz'. Settings: " ALL_SETTINGS},
      {"\"it's\": 5", "Unknown agent_config setting \"it's\". Settings: " ALL_SETTINGS},
      {"\"memory_config\": {}", "Unknown agent_config setting 'memory_config'. Did you mean "
                                "'telemetry_config'? Settings: " ALL_SETTINGS},
  };
  fixture_refused("{\"agent_config\": {", "}}", CASES, G_N_ELEMENTS(CASES));
  fixture_refused("{", "}", CASES, G_N_ELEMENTS(CASES));
}

static void test_numbers(void) {
  static const ConfigRefusal CASES[] = {
      {"\"tool_call_timeout\": 1", "tool_call_timeout must be between 2 and 1000, got 1"},
      {"\"tool_call_timeout\": 1001", "tool_call_timeout must be between 2 and 1000, got 1001"},
      {"\"tool_call_timeout\": -9", "tool_call_timeout must be between 2 and 1000, got -9"},
      {"\"tool_call_timeout\": \"x\"",
       "agent_config.tool_call_timeout must be an integer, got 'x'"},
      {"\"tool_call_timeout\": 2.0", "agent_config.tool_call_timeout must be an integer, got 2.0"},
      {"\"tool_call_timeout\": true",
       "agent_config.tool_call_timeout must be an integer, got True"},
      {"\"tool_call_timeout\": null",
       "agent_config.tool_call_timeout must be an integer, got None"},
      {"\"tool_call_timeout\": [\"sk-secret\"]",
       "agent_config.tool_call_timeout must be an integer, got a list"},
      {"\"tool_call_timeout\": \"0123456789012345678901234567890123456789012345678901234567890\"",
       "agent_config.tool_call_timeout must be an integer, got "
       "'01234567890123456789012345678901234567890123456789012345678..."},
      {"\"max_steps\": 0", "max_steps must be between 1 and 1000, got 0"},
      {"\"max_steps\": 1001", "max_steps must be between 1 and 1000, got 1001"},
      {"\"request_limit\": -1", "request_limit must be between 0 and 2147483647, got -1"},
      {"\"total_tokens_limit\": -1",
       "total_tokens_limit must be between 0 and 9223372036854775807, got -1"},
      {"\"run_lease_seconds\": 0", "run_lease_seconds must be between 1 and 86400, got 0"},
      {"\"run_retention_days\": 0", "run_retention_days must be between 1 and 36500, got 0"},
      {"\"run_retention_days\": 1.5",
       "agent_config.run_retention_days must be an integer or null, got 1.5"},
      {"\"tool_offload\": {\"threshold_bytes\": -1}",
       "agent_config.tool_offload.threshold_bytes must be between 0 and 2147483647, got -1"},
      {"\"telemetry_config\": {\"retention_days\": 0}",
       "agent_config.telemetry_config.retention_days must be between 1 and 36500, got 0"},
      {"\"telemetry_config\": {\"retention_max_bytes\": 999999}",
       "agent_config.telemetry_config.retention_max_bytes must be between 1000000 and "
       "9223372036854775807, got 999999"},
      {"\"telemetry_config\": {\"keep_output_bytes\": -1}",
       "agent_config.telemetry_config.keep_output_bytes must be between 0 and 1073741824, got -1"},
  };
  fixture_refused("{\"agent_config\": {", "}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_other_types(void) {
  static const ConfigRefusal CASES[] = {
      {"\"enable_workspace_files\": \"no\"",
       "agent_config.enable_workspace_files must be a boolean"},
      {"\"enable_workspace_files\": null", "agent_config.enable_workspace_files must be a boolean"},
      {"\"guardrail_mode\": \"on\"",
       "agent_config.guardrail_mode must be one of: full, input_only, off, got 'on'"},
      {"\"guardrail_mode\": null",
       "agent_config.guardrail_mode must be one of: full, input_only, off, got None"},
      {"\"tool_offload\": true", "agent_config.tool_offload must be an object"},
      {"\"tool_offload\": {\"on\": true}",
       "agent_config.tool_offload has unknown keys: on. Allowed keys: enabled, max_preview_lines, "
       "max_preview_tokens, threshold_bytes, threshold_tokens"},
      {"\"tool_offload\": {\"enabled\": 1}", "agent_config.tool_offload.enabled must be a boolean"},
      {"\"privacy_config\": []", "agent_config.privacy_config must be an object"},
      {"\"privacy_config\": {\"redact_memory\": \"x\"}",
       "agent_config.privacy_config.redact_memory must be a boolean"},
      {"\"privacy_config\": {\"categories\": \"email\"}",
       "agent_config.privacy_config.categories must be a list of strings"},
      {"\"privacy_config\": {\"categories\": [\"email\", \"fax\"]}",
       "categories[1] must be one of: credit_card, email, phone, ssn"},
      {"\"privacy_config\": {\"redact\": true}",
       "agent_config.privacy_config has unknown keys: redact. Allowed keys: categories, enabled, "
       "redact_memory, redact_model_io, redact_public, redact_stream, redact_telemetry, "
       "redact_workspace"},
      {"\"telemetry_config\": 1", "agent_config.telemetry_config must be an object"},
      {"\"telemetry_config\": {\"capture\": \"none\"}",
       "telemetry capture must be one of: default, full"},
      {"\"telemetry_config\": {\"capture\": 1}", "telemetry capture must be one of: default, full"},
      {"\"telemetry_config\": {\"storage\": \"s3\"}",
       "agent_config.telemetry_config.storage must be one of: auto, jsonl, memory, got 's3'"},
      {"\"telemetry_config\": {\"storage_path\": \"\"}",
       "agent_config.telemetry_config.storage_path must be a non-empty string, got ''"},
      {"\"telemetry_config\": {\"storage_path\": \"/\"}",
       "agent_config.telemetry_config.storage_path must be a file, got '/'"},
      {"\"telemetry_config\": {\"redact_keys\": [1]}",
       "agent_config.telemetry_config.redact_keys must be a list of strings"},
      {"\"telemetry_config\": {\"redact_keys\": [\"a\", \"\"]}",
       "agent_config.telemetry_config.redact_keys must be a list of non-empty strings"},
      {"\"telemetry_config\": {\"path\": \"x\"}",
       "agent_config.telemetry_config has unknown keys: path. Allowed keys: capture, "
       "keep_output_bytes, max_payload_bytes, payload_retention_days, record_inputs, "
       "record_model_prompts, "
       "record_model_responses, record_outputs, record_token_details, record_tool_results, "
       "redact_keys, retention_days, retention_max_bytes, storage, storage_path, strict"},
      {"\"telemetry_config\": {\"keep_output_bytes\": \"1M\"}",
       "agent_config.telemetry_config.keep_output_bytes must be an integer, got '1M'"},
      {"\"workspace_config\": \"w\"", "agent_config.workspace_config must be an object"},
      {"\"workspace_config\": {\"dir\": \"w\"}",
       "agent_config.workspace_config has unknown keys: dir. Allowed keys: files_dir, "
       "workspace_dir"},
      {"\"workspace_config\": {\"workspace_dir\": 5}",
       "agent_config.workspace_config.workspace_dir must be a non-empty string, got 5"},
      {"\"workspace_config\": {\"files_dir\": \"/does/not/exist\"}",
       "agent_config.workspace_config.files_dir must be a folder that exists, got "
       "'/does/not/exist'"},
  };
  fixture_refused("{\"agent_config\": {", "}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_register_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"[]", "register_sandbox_provider must be an object of names and .so files"},
      {"{\"Mine\": \"/x.so\"}",
       "register_sandbox_provider has the name 'Mine'; a name is a lower-case letter and up to 31 "
       "lower-case letters, digits, - or _"},
      {"{\"\": \"/x.so\"}",
       "register_sandbox_provider has the name ''; a name is a lower-case letter and up to 31 "
       "lower-case letters, digits, - or _"},
      {"{\"a23456789012345678901234567890123\": \"/x.so\"}",
       "register_sandbox_provider has the name 'a23456789012345678901234567890123'; a name is a "
       "lower-case letter and up to 31 lower-case letters, digits, - or _"},
      {"{\"a/b\": \"/x.so\"}",
       "register_sandbox_provider has the name 'a/b'; a name is a lower-case letter and up to 31 "
       "lower-case letters, digits, - or _"},
      {"{\"none\": \"/x.so\"}",
       "register_sandbox_provider.none is built in and cannot be replaced"},
      {"{\"local_test\": \"/x.so\"}",
       "register_sandbox_provider.local_test is built in and cannot be replaced"},
      {"{\"mine\": \"/x\"}", "register_sandbox_provider.mine must be the path of a .so file"},
      {"{\"mine\": 1}", "register_sandbox_provider.mine must be the path of a .so file"},
      {"{\"mine\": null}", "register_sandbox_provider.mine must be the path of a .so file"},
      {"{\"mine\": \"x.so\"}",
       "register_sandbox_provider.mine must be an absolute path, got 'x.so'"},
  };
  fixture_refused("{\"register_sandbox_provider\": ", "}", CASES, G_N_ELEMENTS(CASES));
}

static void test_register(void) {
  g_autoptr(Config) config = fixture_read(
      "{\"register_sandbox_provider\": {\"mine\": \"/p/./m.so\", \"docker\": \"/p/d.so\"},"
      " \"governance_config\": {\"sandbox_config\": \"mine\"}}");
  g_assert_cmpstr(g_hash_table_lookup(config->registered, "mine"), ==, "/p/m.so");
  g_assert_cmpstr(g_hash_table_lookup(config->registered, "docker"), ==, "/p/d.so");
  g_assert_cmpstr(config->provider, ==, "mine");
}

static void test_load(void) {
  g_autofree char *folder = g_dir_make_tmp("config-XXXXXX", NULL);
  g_autofree char *path = g_build_filename(folder, "c.json", NULL);
  g_autofree char *plugin = g_build_filename(folder, "sub", "m.so", NULL);
  g_autoptr(GError) error = NULL;
  g_assert_null(config_load(path, FIXTURE_PROVIDERS, &error));
  g_autofree char *missing = g_strdup_printf("could not read %s: No such file or directory", path);
  g_assert_cmpstr(error->message, ==, missing);
  g_clear_error(&error);

  g_assert_true(g_file_set_contents(
      path, "{\"register_sandbox_provider\": {\"mine\": \"sub/m.so\"}}", -1, NULL));
  g_autoptr(Config) config = config_load(path, FIXTURE_PROVIDERS, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(g_hash_table_lookup(config->registered, "mine"), ==, plugin);

  g_assert_true(g_file_set_contents(path, "null", -1, NULL));
  g_assert_null(config_load(path, FIXTURE_PROVIDERS, &error));
  g_assert_cmpstr(error->message, ==, "the configuration must be an object");
  g_clear_error(&error);

  g_assert_true(
      g_file_set_contents(path, "{\"agent_config\": {},\n\"agent_config\": {}}", -1, NULL));
  g_assert_null(config_load(path, FIXTURE_PROVIDERS, &error));
  g_autofree char *twice =
      g_strdup_printf("%s is not valid JSON: the repeated key 'agent_config' (line 2)", path);
  g_assert_cmpstr(error->message, ==, twice);
  g_unlink(path);
  g_rmdir(folder);
}

static void test_near(void) {
  static const char *const NAMES[] = {"max_steps", "run_lease_seconds", "tool_call_timeout", NULL};
  static const struct {
    const char *word;
    const char *wanted;
  } CASES[] = {
      {"max_step", "max_steps"},
      {"maxsteps", "max_steps"},
      {"steps", "max_steps"},
      {"tool_timeout", "tool_call_timeout"},
      {"lease_seconds", "run_lease_seconds"},
      {"timeout", NULL}, /* 14 of 24 letters */
      {"", NULL},
      {"x", NULL},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_assert_cmpstr(check_near(CASES[i].word, NAMES), ==, CASES[i].wanted);
  }
  g_autofree char *endless = g_strnfill(100000, 'm');
  g_assert_null(check_near(endless, NAMES));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/settings/defaults", test_defaults);
  g_test_add_func("/settings/all", test_all);
  g_test_add_func("/settings/relative-folders", test_relative_folders);
  g_test_add_func("/settings/shape", test_shape);
  g_test_add_func("/settings/unknown", test_unknown);
  g_test_add_func("/settings/numbers", test_numbers);
  g_test_add_func("/settings/other-types", test_other_types);
  g_test_add_func("/settings/register-refused", test_register_refused);
  g_test_add_func("/settings/register", test_register);
  g_test_add_func("/settings/load", test_load);
  g_test_add_func("/settings/near", test_near);
  return g_test_run();
}
