/* SPDX-License-Identifier: Apache-2.0 */
/* governance-request-json.c: requests that come back out of a record, and requests in a person's words. */
#include "governance-fixture.h"

#include "governance/requests.h"

#define ID "authreq_00000000000000000000000000000001"
#define NAMES "'request_id': '" ID "', 'capability': 'x', 'actor': 'agent', 'risk_level': 'low'"

/* ---- Out of the record ----------------------------------------------------------------------- */

static void comes_back(const PolicyRequest *request) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) before = policy_request_json(request);
  g_autoptr(PolicyRequest) read = policy_request_from_json(before, &error);
  g_assert_no_error(error);
  g_assert_null(read->command);
  g_assert_cmpint(read->has_target, ==, request->has_target);
  g_autoptr(JsonObject) after = policy_request_json(read);
  g_autofree char *one = json_text(before);
  g_autofree char *other = json_text(after);
  g_assert_cmpstr(one, ==, other);
}

static void test_comes_back(void) {
  static const char *const ARGV[] = {"sh", "-c", "git push", NULL};
  static const char *const CLASSES[] = {"credential", "pii", NULL};
  g_autoptr(PolicyRequest) execute = request_execute();
  g_autoptr(PolicyRequest) command = request_command(ARGV, FALSE);
  g_autoptr(PolicyRequest) sync = request_sync();
  g_autoptr(PolicyRequest) file = request_file(TRUE, "a \xc3\xa9");
  g_autoptr(PolicyRequest) bare = policy_request_new("network.http.get", RISK_CRITICAL);
  bare->data_classes = g_strdupv((char **)(gsize)CLASSES);
  bare->method = g_strdup("GET");
  bare->host = g_strdup("a.example");
  bare->mcp_server = g_strdup("m");
  comes_back(execute);
  comes_back(command);
  comes_back(sync);
  comes_back(file);
  comes_back(bare);
}

static void test_is_decided_as_before(void) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Policy) policy = policy_new_profile("interactive-dev");
  g_autoptr(PolicyRequest) request = policy_request_new("sandbox.network.configure", RISK_HIGH);
  g_autoptr(JsonObject) recorded = policy_request_json(request);
  g_autoptr(PolicyRequest) read = policy_request_from_json(recorded, &error);
  g_assert_no_error(error);
  fixture_decides(policy, read, "ask matched_ask ask_sandbox_network,ask_high_risk");
}

static void test_missing_members_are_null(void) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = fixture_json("{" NAMES "}");
  g_autoptr(PolicyRequest) request = policy_request_from_json(object, &error);
  g_assert_no_error(error);
  g_assert_false(request->has_target);
  g_assert_null(request->provider);
  g_assert_null(request->data_classes);
  g_assert_null(request->metadata);
}

static void damaged(JsonObject *object, const char *what) {
  g_autoptr(GError) error = NULL;
  g_autofree char *wanted = g_strconcat("the recorded request is damaged: ", what, NULL);
  g_assert_null(policy_request_from_json(object, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_FAILED);
  g_assert_cmpstr(error->message, ==, wanted);
}

static void test_damaged(void) {
  static const struct {
    const char *text;
    const char *what;
  } CASES[] = {
      {"[]", "it is no object"},
      {"'x'", "it is no object"},
      {"null", "it is no object"},
      {"{}", "request_id is no id of a request"},
      {"{" NAMES ", 'effect': 'allow'}", "'effect' is no key of it"},
      {"{" NAMES ", 'provider': 1}", "provider is no text"},
      {"{" NAMES ", 'execution_surface': ['sandbox']}", "execution_surface is no text"},
      {"{" NAMES ", 'method': {}}", "method is no text"},
      {"{" NAMES ", 'host': true}", "host is no text"},
      {"{" NAMES ", 'mcp_server': 0}", "mcp_server is no text"},
      {"{" NAMES ", 'target': 'a'}", "target is no object"},
      {"{" NAMES ", 'target': {'paths': 'a'}}", "'paths' is no key of it"},
      {"{" NAMES ", 'target': {'path': 7}}", "path is no text"},
      {"{" NAMES ", 'data_classes': 'credential'}", "data_classes is no list of texts"},
      {"{" NAMES ", 'data_classes': ['credential', 1]}", "data_classes is no list of texts"},
      {"{" NAMES ", 'metadata': []}", "metadata is no object"},
      {"{'request_id': 'authreq_1', 'capability': 'x', 'actor': 'agent', 'risk_level': 'low'}",
       "request_id is no id of a request"},
      {"{'request_id': '" ID "', 'capability': '', 'actor': 'agent', 'risk_level': 'low'}",
       "capability is empty"},
      {"{'request_id': '" ID "', 'actor': 'agent', 'risk_level': 'low'}", "capability is empty"},
      {"{'request_id': '" ID "', 'capability': 'x', 'risk_level': 'low'}",
       "actor is nobody's name"},
      {"{'request_id': '" ID "', 'capability': 'x', 'actor': 'root', 'risk_level': 'low'}",
       "actor is nobody's name"},
      {"{'request_id': '" ID "', 'capability': 'x', 'actor': 'agent'}", "risk_level is none"},
      {"{'request_id': '" ID "', 'capability': 'x', 'actor': 'agent', 'risk_level': 'Low'}",
       "risk_level is none"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(JsonObject) object = fixture_json(CASES[i].text);
    g_test_message("%s", CASES[i].text);
    damaged(object, CASES[i].what);
  }
}

/* Whoever reads it as a C string would see another capability than whoever reads the record. */
static void test_nul_in_a_text(void) {
  g_autoptr(JsonObject) object = fixture_json("{" NAMES "}");
  json_add_take(object, "capability", json_object_new_string_len("process.exec\0.not", 17));
  damaged(object, "capability is no text");
}

/* ---- In a person's words --------------------------------------------------------------------- */

static PolicyRequest *told(const char *text) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = fixture_json(text);
  PolicyRequest *request = request_told(object, "request", &error);
  g_assert_no_error(error);
  return request;
}

/* The same as the runtime asks, but for the id. */
static void is_the_runtimes(const char *text, const PolicyRequest *wanted) {
  g_autoptr(PolicyRequest) request = told(text);
  g_autoptr(JsonObject) one = policy_request_json(request);
  g_autoptr(JsonObject) other = policy_request_json(wanted);
  json_object_object_del(one, "request_id");
  json_object_object_del(other, "request_id");
  g_autofree char *one_text = json_text(one);
  g_autofree char *other_text = json_text(other);
  g_assert_cmpstr(one_text, ==, other_text);
}

static void test_told_as_the_runtime_asks(void) {
  static const char *const ARGV[] = {"sh", "-c", "git push", NULL};
  g_autoptr(GError) error = NULL;
  g_autoptr(PolicyRequest) execute = request_execute();
  g_autoptr(PolicyRequest) command = request_command(ARGV, TRUE);
  g_autoptr(PolicyRequest) on_host = request_command(ARGV, FALSE);
  g_autoptr(PolicyRequest) sync = request_sync();
  g_autoptr(PolicyRequest) reads = request_file(FALSE, "a");
  g_autoptr(PolicyRequest) writes = request_file(TRUE, "a");
  g_autoptr(JsonObject) object =
      fixture_json("{'image': 'debian:12', 'environment': {'secret_refs': ['key']}}");
  g_autoptr(Manifest) manifest = manifest_new(object, &error);
  g_assert_no_error(error);
  g_autoptr(GPtrArray) asked = request_manifest(manifest);
  g_assert_cmpuint(asked->len, ==, 2);
  is_the_runtimes("{'capability': 'sandbox.execute'}", execute);
  is_the_runtimes("{'command': 'git push'}", command);
  is_the_runtimes("{'capability': 'process.exec', 'command': 'git push'}", command);
  is_the_runtimes("{'command': 'git push', 'surface': 'host'}", on_host);
  is_the_runtimes("{'capability': 'sandbox.workspace.sync'}", sync);
  is_the_runtimes("{'capability': 'workspace.files.read', 'path': 'a'}", reads);
  is_the_runtimes("{'capability': 'workspace.files.write', 'path': 'a'}", writes);
  is_the_runtimes("{'capability': 'sandbox.image.use', 'resource': 'debian:12'}",
                  g_ptr_array_index(asked, 0));
  is_the_runtimes("{'capability': 'secret.use', 'resource': 'key'}", g_ptr_array_index(asked, 1));
}

static void test_told_risks(void) {
  static const struct {
    const char *text;
    Risk risk;
  } CASES[] = {
      {"{'capability': 'sandbox.network.configure', 'host': '*'}", RISK_HIGH},
      {"{'capability': 'sandbox.network.configure', 'host': 'a.example'}", RISK_MEDIUM},
      {"{'capability': 'sandbox.network.configure', 'host': '*', 'risk': 'low'}", RISK_LOW},
      {"{'capability': 'workspace.files.clear'}", RISK_CRITICAL},
      {"{'capability': 'secret.read'}", RISK_CRITICAL},
      {"{'capability': 'package.install'}", RISK_HIGH},
      {"{'capability': 'network.http.post'}", RISK_MEDIUM},
      {"{'capability': 'memory.something'}", RISK_LOW},
      {"{'capability': 'process.exec'}", RISK_HIGH},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(PolicyRequest) request = told(CASES[i].text);
    g_test_message("%s", CASES[i].text);
    g_assert_cmpint(request->risk, ==, CASES[i].risk);
  }
}

static void test_told_in_full(void) {
  g_autoptr(PolicyRequest) request =
      told("{'capability': 'tool.mcp.call', 'tool_name': 't', 'mcp_server': 'm', 'provider': 'p',"
           " 'surface': 'mcp', 'method': 'GET', 'data_classes': ['a', 'b'], 'resource': 'r'}");
  g_assert_true(request->has_target);
  g_assert_cmpstr(request->target_tool_name, ==, "t");
  g_assert_cmpstr(request->target_mcp_server, ==, "m");
  g_assert_cmpstr(request->mcp_server, ==, "m");
  g_assert_cmpstr(request->provider, ==, "p");
  g_assert_cmpstr(request->execution_surface, ==, "mcp");
  g_assert_cmpstr(request->method, ==, "GET");
  g_assert_cmpstr(request->target_resource, ==, "r");
  g_assert_cmpstr(request->data_classes[1], ==, "b");
  g_autoptr(PolicyRequest) secret = told("{'capability': 'secret.read'}");
  g_assert_cmpstr(secret->data_classes[0], ==, "credential");
}

/* Nobody knows what it runs: where a rule is about that, there is no decision. */
static void test_lacks_command(void) {
  g_autoptr(Policy) plain =
      fixture_rules("strict", "allow", "{'rule_id': 'a', 'capability': 'process.exec'}");
  g_autoptr(Policy) sandboxed =
      fixture_rules("strict", "deny",
                    "{'rule_id': 'a', 'capability': 'process.exec', 'command': {'program': 'rm'},"
                    " 'conditions': {'execution_surface': 'sandbox'}}");
  g_autoptr(PolicyRequest) unknown = told("{'capability': 'process.exec'}");
  g_autoptr(PolicyRequest) known = told("{'command': 'ls'}");
  g_autoptr(PolicyRequest) on_host = told("{'capability': 'process.exec', 'surface': 'host'}");
  g_autoptr(PolicyRequest) other = told("{'capability': 'sandbox.execute'}");
  g_assert_false(policy_lacks_command(plain, unknown));
  g_assert_true(policy_lacks_command(sandboxed, unknown));
  g_assert_false(policy_lacks_command(sandboxed, known));
  g_assert_false(policy_lacks_command(sandboxed, on_host));
  g_assert_false(policy_lacks_command(sandboxed, other));
}

static void test_told_wrongly(void) {
  static const struct {
    const char *text;
    const char *wanted;
  } CASES[] = {
      {"{}", "request needs a capability or a command"},
      {"{'capability': '', 'command': 'ls'}",
       "request.capability must be a non-empty string, got ''"},
      {"{'capability': 'x', 'Path': 'a'}",
       "request has unknown keys: Path. Allowed keys: capability, command, data_classes, host, "
       "mcp_server, method, path, provider, resource, risk, surface, tool_name"},
      {"{'command': 'ls', 'surface': 'sanbox'}",
       "request.surface: 'sanbox' is no execution surface. Surfaces: artifact, background, code, "
       "filesystem, host, mcp, memory, network, sandbox, secret, secret_broker, serve, subagent, "
       "telemetry, tool, workspace"},
      {"{'capability': 'x', 'data_classes': 'a'}",
       "request.data_classes must be a list of strings"},
      {"{'capability': 'proces.exec'}",
       "request.capability: 'proces.exec' is no known capability; did you mean 'process.exec'?"},
      {"{'capability': 'x'}", "request.capability: 'x' is no known capability"},
      {"{'capability': 'process.exec', 'surface': 'moon'}",
       "request.surface: 'moon' is no execution surface. Surfaces: artifact, background, code, "
       "filesystem, host, mcp, memory, network, sandbox, secret, secret_broker, serve, subagent, "
       "telemetry, tool, workspace"},
      {"{'capability': 'sandbox.execute', 'command': 'ls'}",
       "request.command goes with process.exec, not with sandbox.execute"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) object = fixture_json(CASES[i].text);
    g_test_message("%s", CASES[i].text);
    g_assert_null(request_told(object, "request", &error));
    g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
    g_assert_cmpstr(error->message, ==, CASES[i].wanted);
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/request-json/" name, function)
  ADD("comes-back", test_comes_back);
  ADD("decided", test_is_decided_as_before);
  ADD("missing", test_missing_members_are_null);
  ADD("damaged", test_damaged);
  ADD("nul", test_nul_in_a_text);
  ADD("told/runtime", test_told_as_the_runtime_asks);
  ADD("told/risks", test_told_risks);
  ADD("told/full", test_told_in_full);
  ADD("told/lacks-command", test_lacks_command);
  ADD("told/wrongly", test_told_wrongly);
#undef ADD
  return g_test_run();
}
