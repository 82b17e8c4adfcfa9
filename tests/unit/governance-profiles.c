/* SPDX-License-Identifier: Apache-2.0 */
/* governance-profiles.c: what each built-in policy says about each capability (behaviour 4.10). */
#include "governance-fixture.h"

typedef struct {
  const char *capability;
  Risk risk;
  const char *surface; /* NULL: none */
  const char *permissive;
  const char *interactive;
} Row;

#define DENIED "deny matched_deny "
#define ASKED "ask matched_ask "
#define ALLOWED "allow matched_allow "

static const Row ROWS[] = {
    {"sandbox.execute", RISK_LOW, "sandbox", ALLOWED "allow_sandbox_setup",
     ALLOWED "allow_sandbox_setup"},
    {"process.exec", RISK_HIGH, "sandbox", ALLOWED "allow_sandboxed_execution",
     ALLOWED "allow_sandboxed_execution"},
    {"process.exec", RISK_HIGH, "host", DENIED "deny_unrestricted_process_exec",
     ASKED "ask_process_exec,ask_high_risk"},
    {"process.exec", RISK_HIGH, NULL, DENIED "deny_unrestricted_process_exec",
     ASKED "ask_process_exec,ask_high_risk"},
    {"sandbox.image.use", RISK_MEDIUM, "sandbox", ALLOWED "allow_sandbox_setup",
     ALLOWED "allow_sandbox_setup"},
    {"sandbox.network.configure", RISK_HIGH, "sandbox", ASKED "ask_sandbox_network",
     ASKED "ask_sandbox_network"},
    {"sandbox.network.configure", RISK_MEDIUM, "sandbox", ASKED "ask_sandbox_network",
     ASKED "ask_sandbox_network"},
    {"sandbox.environment.set", RISK_MEDIUM, "sandbox", ALLOWED "allow_sandbox_setup",
     ALLOWED "allow_sandbox_setup"},
    {"sandbox.resources.set", RISK_MEDIUM, "sandbox", ALLOWED "allow_sandbox_setup",
     ALLOWED "allow_sandbox_setup"},
    {"sandbox.filesystem.mount", RISK_HIGH, "sandbox", ASKED "ask_sandbox_host_mount",
     ASKED "ask_sandbox_host_mount"},
    {"sandbox.filesystem.cwd", RISK_MEDIUM, "sandbox", ALLOWED "allow_sandbox_setup",
     ALLOWED "allow_sandbox_setup"},
    {"sandbox.workspace.sync", RISK_LOW, "sandbox", ALLOWED "allow_sandbox_setup",
     ALLOWED "allow_sandbox_setup"},
    {"workspace.files.read", RISK_LOW, "workspace", ALLOWED "allow_local_dev_workspace",
     ALLOWED "allow_workspace"},
    {"workspace.files.write", RISK_MEDIUM, "workspace", ALLOWED "allow_local_dev_workspace",
     ALLOWED "allow_workspace"},
    {"workspace.files.move", RISK_MEDIUM, "workspace", ALLOWED "allow_local_dev_workspace",
     ALLOWED "allow_workspace"},
    {"workspace.files.delete", RISK_HIGH, "workspace", ALLOWED "allow_local_dev_workspace",
     ASKED "ask_high_risk"},
    {"workspace.files.clear", RISK_CRITICAL, "workspace", ALLOWED "allow_local_dev_workspace",
     ASKED "ask_high_risk"},
    {"workspace.files.call", RISK_LOW, "workspace", ALLOWED "allow_local_dev_workspace",
     ALLOWED "allow_workspace"},
    {"workspace.artifacts.read", RISK_LOW, "artifact", ALLOWED "allow_local_dev_workspace",
     ALLOWED "allow_workspace"},
    {"tool.local.call", RISK_LOW, "tool", ALLOWED "allow_local_tools", ALLOWED "allow_local_tools"},
    {"tool.mcp.call", RISK_LOW, "mcp", ALLOWED "allow_configured_mcp_tools",
     ASKED "ask_mcp_tool_call"},
    {"mcp.server.start", RISK_MEDIUM, "mcp", ALLOWED "allow_configured_mcp_servers",
     ASKED "ask_mcp_server_start"},
    {"mcp.server.connect", RISK_LOW, "mcp", ALLOWED "allow_configured_mcp_servers",
     ASKED "ask_mcp_server_start"},
    {"network.http.get", RISK_LOW, "network", DENIED "deny_unrestricted_network_egress",
     ASKED "ask_network_egress"},
    {"network.http.post", RISK_MEDIUM, "network", DENIED "deny_unrestricted_network_egress",
     ASKED "ask_network_egress"},
    {"package.install", RISK_HIGH, "host", DENIED "deny_unrestricted_package_install",
     ASKED "ask_package_install,ask_high_risk"},
    {"filesystem.read", RISK_LOW, "filesystem", DENIED "deny_unrestricted_host_filesystem_access",
     "ask unknown_capability "},
    {"filesystem.delete", RISK_HIGH, "filesystem",
     DENIED "deny_unrestricted_host_filesystem_access", ASKED "ask_high_risk"},
    {"secret.use", RISK_MEDIUM, "secret_broker", DENIED "deny_unconfigured_secret_broker_use",
     ASKED "ask_secret_broker_use"},
    {"secret.read", RISK_CRITICAL, "secret", DENIED "deny_raw_secret_read",
     DENIED "deny_raw_secret_read"},
    {"subagent.spawn", RISK_MEDIUM, "subagent", ALLOWED "allow_subagent_spawn",
     ASKED "ask_subagent_spawn"},
    {"background.task.create", RISK_MEDIUM, "background", ALLOWED "allow_background_execution",
     ASKED "ask_background_execution"},
    {"background.run.read", RISK_LOW, "background", ALLOWED "allow_background_execution",
     ASKED "ask_background_execution"},
    {"skill.script.run", RISK_HIGH, "host", ALLOWED "allow_skill_scripts",
     ALLOWED "allow_skill_scripts"},
    {"skill.files.read", RISK_LOW, NULL, ALLOWED "allow_skill_scripts",
     ALLOWED "allow_skill_scripts"},
    {"code.run", RISK_LOW, "code", ALLOWED "allow_code_mode", ALLOWED "allow_code_mode"},
    {"memory.read", RISK_LOW, "memory", ALLOWED "allow_memory_and_telemetry",
     ALLOWED "allow_memory"},
    {"telemetry.write", RISK_LOW, "telemetry", ALLOWED "allow_telemetry",
     ALLOWED "allow_telemetry"},
    {"telemetry.governance.write", RISK_LOW, "telemetry", ALLOWED "allow_telemetry",
     ALLOWED "allow_telemetry"},
    {"never.heard.of", RISK_LOW, NULL, "allow unknown_capability ", "ask unknown_capability "},
    {"never.heard.of", RISK_HIGH, NULL, "allow unknown_capability ", ASKED "ask_high_risk"},
    {"never.heard.of", RISK_HIGH, "sandbox", "allow unknown_capability ",
     "ask unknown_capability "},
};

static const char *strict_wanted(const char *capability) {
  if (strcmp(capability, "secret.read") == 0) {
    return DENIED "deny_raw_secret_read";
  }
  return g_str_has_prefix(capability, "telemetry.governance.") ? ALLOWED
             "allow_governance_telemetry"
                                                               : "deny unknown_capability ";
}

static void test_matrix(void) {
  g_autoptr(Policy) permissive = policy_new_profile("permissive-dev");
  g_autoptr(Policy) interactive = policy_new_profile("interactive-dev");
  g_autoptr(Policy) strict = policy_new_profile("strict-production");
  for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
    g_autoptr(PolicyRequest) request = policy_request_new(ROWS[i].capability, ROWS[i].risk);
    request->execution_surface = g_strdup(ROWS[i].surface);
    g_test_message("%s %s", ROWS[i].capability, ROWS[i].surface ? ROWS[i].surface : "");
    fixture_decides(permissive, request, ROWS[i].permissive);
    fixture_decides(interactive, request, ROWS[i].interactive);
    fixture_decides(strict, request, strict_wanted(ROWS[i].capability));
  }
}

static void test_protected_data_is_denied_everywhere(void) {
  static const char *const PROFILES[] = {"permissive-dev", "interactive-dev", "strict-production"};
  static const char *const CLASSES[] = {"credential", "system_prompt"};
  for (gsize i = 0; i < G_N_ELEMENTS(PROFILES); i++) {
    g_autoptr(Policy) policy = policy_new_profile(PROFILES[i]);
    for (gsize at = 0; at < G_N_ELEMENTS(CLASSES); at++) {
      g_autoptr(PolicyRequest) request = policy_request_new("tool.local.call", RISK_LOW);
      request->data_classes = g_strsplit(CLASSES[at], " ", -1);
      fixture_decides(policy, request, DENIED "deny_credential_or_system_prompt_flow");
      g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
      g_assert_cmpstr(decision->reason, ==,
                      "Credential and system prompt data require a brokered boundary.");
    }
  }
}

static void test_commands_stay_in_the_sandbox(void) {
  static const char *const PROFILES[] = {"permissive-dev", "interactive-dev"};
  for (gsize i = 0; i < G_N_ELEMENTS(PROFILES); i++) {
    g_autoptr(Policy) policy = policy_new_profile(PROFILES[i]);
    g_autoptr(PolicyRequest) request = policy_request_new("process.exec", RISK_HIGH);
    request->execution_surface = g_strdup("sandbox");
    g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
    g_assert_true(decision->sandbox_required);
  }
}

static void test_reasons(void) {
  static const char *const REASONS[][2] = {
      {"secret.use", "Brokered secret use needs explicit policy."},
      {"process.exec", "Host process execution needs explicit policy."},
      {"filesystem.read", "Host filesystem access needs explicit policy."},
      {"network.http.get", "Network egress needs explicit policy."},
      {"package.install", "Package installation needs explicit policy."},
      {"sandbox.network.configure", "Turning the sandbox network on needs approval."},
      {"sandbox.filesystem.mount", "Mounting host files into the sandbox needs approval."},
      {"secret.read", "Matched deny policy rule."},
      {"tool.local.call", "Matched allow policy rule."},
  };
  g_autoptr(Policy) policy = policy_new_profile("permissive-dev");
  for (gsize i = 0; i < G_N_ELEMENTS(REASONS); i++) {
    g_autoptr(PolicyRequest) request = policy_request_new(REASONS[i][0], RISK_LOW);
    g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
    g_assert_cmpstr(decision->reason, ==, REASONS[i][1]);
  }
}

static void test_names_and_modes(void) {
  g_autoptr(Policy) permissive = policy_new_profile("permissive-dev");
  g_autoptr(Policy) interactive = policy_new_profile("interactive-dev");
  g_autoptr(Policy) strict = policy_new_profile("strict-production");
  g_assert_cmpstr(policy_profile(permissive), ==, "permissive-dev");
  g_assert_cmpstr(policy_profile(interactive), ==, "interactive-dev");
  g_assert_cmpstr(policy_profile(strict), ==, "strict-production");
  g_assert_cmpint(policy_mode(permissive), ==, MODE_PERMISSIVE);
  g_assert_cmpint(policy_mode(interactive), ==, MODE_INTERACTIVE);
  g_assert_cmpint(policy_mode(strict), ==, MODE_STRICT);
  g_assert_null(policy_new_profile("permissive"));
  g_assert_null(policy_new_profile(""));
  g_assert_null(policy_new_profile(NULL));
}

/* A person may take a profile as the beginning of a policy. */
static void test_can_be_written_down_and_read(void) {
  static const char *const PROFILES[] = {"permissive-dev", "interactive-dev", "strict-production"};
  for (gsize i = 0; i < G_N_ELEMENTS(PROFILES); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Policy) policy = policy_new_profile(PROFILES[i]);
    g_autoptr(JsonObject) object = policy_json(policy);
    g_autoptr(Policy) again = policy_new(object, &error);
    g_assert_no_error(error);
    g_assert_cmpint(policy_mode(again), ==, policy_mode(policy));
    g_assert_null(policy_profile(again));
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/governance/profiles/matrix", test_matrix);
  g_test_add_func("/governance/profiles/protected-data", test_protected_data_is_denied_everywhere);
  g_test_add_func("/governance/profiles/sandbox-required", test_commands_stay_in_the_sandbox);
  g_test_add_func("/governance/profiles/reasons", test_reasons);
  g_test_add_func("/governance/profiles/names", test_names_and_modes);
  g_test_add_func("/governance/profiles/written-down", test_can_be_written_down_and_read);
  return g_test_run();
}
