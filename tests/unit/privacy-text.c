/* SPDX-License-Identifier: Apache-2.0 */
/* privacy-text.c: text, commands and JSON on their way to a border. */
#include <string.h>

#include "privacy/command-forms.h"
#include "privacy/privacy.h"

#define M CREDENTIAL_MARKER

static Privacy *privacy_of(const char *agent_text) {
  PrivacyConfig config;
  CaptureConfig capture;
  g_autoptr(JsonObject) agent = json_tokener_parse(agent_text);
  const char *const declared[] = {"sk-\"quoted\"-key", "plainsecret1", NULL};
  privacy_config_init(&config, &capture);
  privacy_config_read(&config, &capture, agent);
  Privacy *privacy = privacy_new(&config, declared, NULL);
  privacy_config_clear(&config);
  return privacy;
}

static void check_command(const char *command, const char *wanted) {
  g_autofree char *got = command_forms_redact(command);
  g_assert_cmpstr(got ? got : command, ==, wanted);
}

static void test_forms(void) {
  check_command("curl --api-key=abc http://x", "curl --api-key=" M " http://x");
  check_command("tool --api-key abc -v", "tool --api-key " M " -v");
  check_command("tool --api-key -v", "tool --api-key -v");
  check_command("TOKEN=abc make", "TOKEN=" M " make");
  check_command("export GITHUB_TOKEN='a b'; run", "export GITHUB_TOKEN='" M "'; run");
  check_command("DB_PASSWORD=\"x y\" run", "DB_PASSWORD=\"" M "\" run");
  check_command("curl -H 'Authorization: Bearer abc.def' u",
                "curl -H 'Authorization: Bearer " M "' u");
  check_command("curl -H \"Authorization: Basic dXNlcg==\" u",
                "curl -H \"Authorization: Basic " M "\" u");
  check_command("curl -H 'X-Api-Key: abc' u", "curl -H 'X-Api-Key: " M "' u");
  check_command("echo bearer abcdefghijkl1", "echo bearer " M);
  check_command("curl -d '{\"password\": \"x y\", \"n\": 1}'",
                "curl -d '{\"password\": \"" M "\", \"n\": 1}'");
  check_command("curl -d \"{\\\"token\\\":\\\"abc\\\"}\"",
                "curl -d \"{\\\"token\\\":\\\"" M "\\\"}\"");
  check_command("git clone https://me:abc@host/x", "git clone https://me:" M "@host/x");
  check_command("A_TOKEN=x B_TOKEN=y", "A_TOKEN=" M " B_TOKEN=" M);
  check_command("PGPASSWORD=abc psql", "PGPASSWORD=" M " psql");
  check_command("MYTOKEN=abc run", "MYTOKEN=" M " run");
  /* A word of several parts, as a shell joins it; nothing that does something is hidden with it. */
  check_command("TOKEN=VALUE\"ABC\"DEF run", "TOKEN=" M " run");
  check_command("TOKEN=VALUE'A B'DEF run", "TOKEN=" M " run");
  check_command("TOKEN=\"ABC\"DEF run", "TOKEN=" M " run");
  check_command("tool --password=VALUE\\ ABCDEF -v", "tool --password=" M " -v");
  check_command("tool --password VALUE\\ ABCDEF -v", "tool --password " M " -v");
  check_command("sh -c \"TOKEN=abc\" && run \"x\"", "sh -c \"TOKEN=" M "\" && run \"x\"");
  check_command("sh -c 'TOKEN=abc' && run 'x'", "sh -c 'TOKEN=" M "' && run 'x'");
  check_command("TOKEN=abc\"$(run)\"", "TOKEN=" M "\"$(run)\"");
  check_command("TOKEN=abc'; run; '", "TOKEN=" M "'; run; '");
  check_command("# it's\nsh -c 'TOKEN=abc' 'x'", "# it's\nsh -c 'TOKEN=" M "' 'x'");
  check_command("TOKEN=abc\\", "TOKEN=" M "\\");
  check_command("TOKEN='never closed", "TOKEN='" M);
  check_command("PASSWORD='$ecret' run", "PASSWORD='" M "' run");
  check_command("PASSWORD=$'s\\'e\\x41' run", "PASSWORD=$'" M "' run");
  check_command("PASSWORD=\"a\\\"b\" run", "PASSWORD=\"" M "\" run");
  check_command("PASSWORD=a\\$b\\ c run", "PASSWORD=" M " run");
  check_command("curl -d '{\"password\": \"a\\\"b\"}'", "curl -d '{\"password\": \"" M "\"}'");
  check_command("curl -d \"{\\\"password\\\": \\\"a b\\\"}\"",
                "curl -d \"{\\\"password\\\": \\\"" M "\\\"}\"");
  check_command("printf 'TOKEN=abc\\nMODE=fast\\n'", "printf 'TOKEN=" M "\\nMODE=fast\\n'");
  static const char *const KEPT[] = {
      "TOKEN=$TOKEN make",
      "TOKEN=$(cat key) make",
      "TOKEN=\"$TOKEN\" make",
      "TOKEN= make",
      "make --max-tokens=5",
      "cat token.txt",
      "echo the bearer tokens",
      "curl https://host:8080/x",
      "git clone https://me@host/x",
      "grep -r token src",
      "MODE=fast make",
      "std::token::next",
      "",
      "--",
      "=",
  };
  for (gsize i = 0; i < G_N_ELEMENTS(KEPT); i++) {
    check_command(KEPT[i], KEPT[i]);
  }
  g_autofree char *again = command_forms_redact("TOKEN=" M " x");
  g_assert_null(again);
}

static void test_command(void) {
  g_autoptr(Privacy) privacy = privacy_of("{}");
  g_autofree char *both =
      privacy_command(privacy, PRIVACY_NOWHERE, "TOKEN=x echo plainsecret1 a@b.de");
  g_assert_cmpstr(both, ==, "TOKEN=" M " echo " M " a@b.de");
  g_autofree char *told = privacy_command(privacy, PRIVACY_TELEMETRY, "echo a@b.de");
  g_assert_cmpstr(told, ==, "echo [REDACTED_EMAIL]");
  g_assert_null(privacy_command(privacy, PRIVACY_TELEMETRY, "echo hello"));
}

static void check_json(const Privacy *privacy, PrivacyBorder border, const char *text,
                       const char *wanted) {
  g_autoptr(JsonObject) value = json_tokener_parse(text);
  gboolean changed = FALSE;
  g_autoptr(JsonObject) made = privacy_json(privacy, border, value, FALSE, &changed);
  g_autofree char *got = json_text(made);
  g_autofree char *before = json_text(value);
  g_assert_cmpstr(got, ==, wanted);
  g_assert_cmpint(changed, ==, strcmp(before, wanted) != 0);
}

static void test_json(void) {
  g_autoptr(Privacy) privacy = privacy_of("{}");
  check_json(privacy, PRIVACY_TELEMETRY, "{\"a\":[1,2.5,null,true,\"x\"]}",
             "{\"a\":[1,2.5,null,true,\"x\"]}");
  check_json(privacy, PRIVACY_TELEMETRY, "{\"a\":{\"Api-Key\":5,\"TOKEN\":[\"x\"],\"token\":null}}",
             "{\"a\":{\"Api-Key\":\"[REDACTED]\",\"TOKEN\":\"[REDACTED]\",\"token\":null}}");
  check_json(privacy, PRIVACY_TELEMETRY, "[\"{\\\"k\\\":\\\"sk-\\\\\\\"quoted\\\\\\\"-key\\\"}\"]",
             "[\"{\\\"k\\\":\\\"" M "\\\"}\"]");
  check_json(privacy, PRIVACY_TELEMETRY, "{\"plainsecret1\":\"plainsecret1 a@b.de\"}",
             "{\"" M "\":\"" M " [REDACTED_EMAIL]\"}");
  check_json(privacy, PRIVACY_NOWHERE, "{\"token\":\"plainsecret1 a@b.de\"}",
             "{\"token\":\"" M " a@b.de\"}");
  check_json(privacy, PRIVACY_TELEMETRY,
             "{\"call_id\":\"4111111111111111\",\"sha256\":\"4111111111111111\",\"n\":"
             "\"4111111111111111\"}",
             "{\"call_id\":\"4111111111111111\",\"sha256\":\"4111111111111111\",\"n\":\"[REDACTED_"
             "CREDIT_CARD]\"}");
  check_json(privacy, PRIVACY_TELEMETRY, "\"a\\u0000plainsecret1\"", "\"a\\u0000" M "\"");
}

static void test_keep_names(void) {
  g_autoptr(Privacy) privacy =
      privacy_of("{\"telemetry_config\": {\"redact_keys\": [\"Type\", \"x-y\"]}}");
  g_autoptr(JsonObject) value =
      json_tokener_parse("{\"type\":\"a\",\"in\":{\"type\":1,\"X_Y\":2,\"token\":3}}");
  g_autoptr(JsonObject) made = privacy_json(privacy, PRIVACY_TELEMETRY, value, TRUE, NULL);
  g_autofree char *got = json_text(made);
  g_assert_cmpstr(
      got, ==,
      "{\"type\":\"a\",\"in\":{\"type\":\"[REDACTED]\",\"X_Y\":\"[REDACTED]\",\"token\":3}}");
}

static void test_borders(void) {
  g_autoptr(Privacy) plain = privacy_of("{}");
  g_assert_cmpuint(privacy_categories(plain, PRIVACY_TELEMETRY), ==, PERSONAL_ALL);
  g_assert_cmpuint(privacy_categories(plain, PRIVACY_STREAM), ==, 0);
  g_assert_cmpuint(privacy_categories(plain, PRIVACY_WORKSPACE), ==, 0);
  g_assert_cmpuint(privacy_categories(plain, PRIVACY_RESULT), ==, 0);
  g_autoptr(Privacy) some = privacy_of(
      "{\"privacy_config\": {\"redact_telemetry\": false, \"redact_public\": true,"
      " \"redact_stream\": true, \"redact_workspace\": true, \"categories\": [\"ssn\"]}}");
  g_assert_cmpuint(privacy_categories(some, PRIVACY_TELEMETRY), ==, 0);
  g_assert_cmpuint(privacy_categories(some, PRIVACY_STREAM), ==, PERSONAL_SSN);
  g_assert_cmpuint(privacy_categories(some, PRIVACY_WORKSPACE), ==, PERSONAL_SSN);
  g_assert_cmpuint(privacy_categories(some, PRIVACY_RESULT), ==, PERSONAL_SSN);
  g_autoptr(Privacy) off = privacy_of("{\"privacy_config\": {\"enabled\": false}}");
  g_assert_cmpuint(privacy_categories(off, PRIVACY_TELEMETRY), ==, 0);
  GString *text = privacy_text(off, PRIVACY_TELEMETRY, "plainsecret1", 12);
  g_assert_cmpstr(text->str, ==, M);
  g_string_free(text, TRUE);
}

static void test_capture(void) {
  static const struct {
    const char *telemetry;
    gboolean inputs;
    gboolean results;
  } CASES[] = {
      {"{}", TRUE, TRUE},
      {"{\"capture\": \"full\"}", TRUE, TRUE},
      {"{\"capture\": \"default\"}", FALSE, TRUE},
      {"{\"capture\": \"default\", \"record_inputs\": true}", TRUE, TRUE},
      {"{\"capture\": \"full\", \"record_inputs\": false}", FALSE, TRUE},
      {"{\"record_outputs\": false}", TRUE, FALSE},
      {"{\"record_tool_results\": false}", TRUE, FALSE},
      {"{\"record_outputs\": false, \"record_tool_results\": true}", TRUE, FALSE},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    PrivacyConfig config;
    CaptureConfig capture;
    g_autoptr(JsonObject) agent = json_object_new_object();
    json_add_take(agent, "telemetry_config", json_tokener_parse(CASES[i].telemetry));
    privacy_config_init(&config, &capture);
    privacy_config_read(&config, &capture, agent);
    g_assert_cmpint(capture.inputs, ==, CASES[i].inputs);
    g_assert_cmpint(capture.results, ==, CASES[i].results);
    privacy_config_clear(&config);
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/privacy/text/forms", test_forms);
  g_test_add_func("/privacy/text/command", test_command);
  g_test_add_func("/privacy/text/json", test_json);
  g_test_add_func("/privacy/text/keep-names", test_keep_names);
  g_test_add_func("/privacy/text/borders", test_borders);
  g_test_add_func("/privacy/text/capture", test_capture);
  return g_test_run();
}
