/* SPDX-License-Identifier: Apache-2.0 */
/* governance-requests.c: what the runtime asks, and with which target and risk (behaviour 2.1, 4.8,
 * 4.9). */
#include "governance-fixture.h"

#include "governance/requests.h"

/* Everything that a request says, in one line, without its id. Nulls are left out. */
static char *tell(const PolicyRequest *request) {
  g_autoptr(JsonObject) object = policy_request_json(request);
  GString *line = g_string_new(NULL);
  g_string_append_printf(line, "%s %s %s", request->capability, risk_name(request->risk),
                         request->actor);
  g_string_append_printf(line, " provider=%s surface=%s",
                         request->provider ? request->provider : "-",
                         request->execution_surface ? request->execution_surface : "-");
  if (request->has_target) {
    json_object_object_foreach(json_get(object, "target"), key, value) {
      if (value) {
        g_string_append_printf(line, " %s=%s", key, json_object_get_string(value));
      }
    }
  }
  if (request->metadata) {
    g_autofree char *metadata = json_text(request->metadata);
    g_string_append_printf(line, " %s", metadata);
  }
  return g_string_free(line, FALSE);
}

static void says(const PolicyRequest *request, const char *wanted) {
  g_autofree char *line = tell(request);
  g_assert_cmpstr(line, ==, wanted);
}

static void asks(const char *manifest_text, const char *const *wanted) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = fixture_json(manifest_text);
  g_autoptr(Manifest) manifest = manifest_new(object, &error);
  g_assert_no_error(error);
  g_autoptr(GPtrArray) requests = request_manifest(manifest);
  for (guint i = 0; i < requests->len; i++) {
    g_assert_nonnull(wanted[i]);
    says(g_ptr_array_index(requests, i), wanted[i]);
  }
  g_assert_null(wanted[requests->len]);
}

static void test_execute(void) {
  g_autoptr(PolicyRequest) request = request_execute();
  says(request, "sandbox.execute low agent provider=sandbox surface=sandbox tool_name=execute");
}

static void test_command_in_a_sandbox(void) {
  static const char *const ARGV[] = {"sh", "-c", "echo secret", NULL};
  g_autoptr(PolicyRequest) request = request_command(ARGV, TRUE);
  g_autofree char *line = tell(request);
  g_assert_true(g_str_has_prefix(
      line, "process.exec high agent provider=sandbox surface=sandbox resource=sh {"));
  g_assert_null(strstr(line, "secret"));
}

static void test_command_on_the_host(void) {
  static const char *const ARGV[] = {"sh", "-c", "ls", NULL};
  g_autoptr(PolicyRequest) request = request_command(ARGV, FALSE);
  g_assert_cmpstr(request->execution_surface, ==, "host");
}

/* The digest was taken with another program, of ["sh","-c","echo caf\u00e9 \"x\""]. */
static void test_command_metadata(void) {
  static const char *const ARGV[] = {"sh", "-c", "echo caf\xc3\xa9 \"x\"", NULL};
  g_autoptr(PolicyRequest) request = request_command(ARGV, TRUE);
  g_autofree char *metadata = json_text(request->metadata);
  g_assert_cmpstr(metadata, ==,
                  "{\"command\":{\"name\":\"sh\",\"argc\":3,\"digest\":"
                  "\"26c81482a20ce47d30a21dabfa1b81e3f81c50d76741b07b02598efb6dbd054b\","
                  "\"programs\":[\"echo\"],\"opaque\":false}}");
  g_assert_cmpstr(request->command->commands[0].words[1], ==, "caf\xc3\xa9");
}

static void test_sync(void) {
  g_autoptr(PolicyRequest) request = request_sync();
  says(request, "sandbox.workspace.sync low runtime provider=sandbox surface=sandbox "
                "resource=sandhost-guest {\"purpose\":\"workspace_sync\"}");
}

static void test_file(void) {
  g_autoptr(PolicyRequest) reads = request_file(FALSE, "files/a b.txt");
  g_autoptr(PolicyRequest) writes = request_file(TRUE, "a");
  says(reads, "workspace.files.read low agent provider=- surface=workspace path=files/a b.txt");
  says(writes, "workspace.files.write medium agent provider=- surface=workspace path=a");
}

static void test_manifest_that_asks_nothing(void) {
  static const char *const NOTHING[] = {NULL};
  asks("{}", NOTHING);
  asks(
      "{'working_dir': '/srv', 'network_policy': {'default': 'deny'}, 'environment': {'plain': {}},"
      " 'resources': {'gpu': false}, 'lifecycle': {'cleanup': 'never'}}",
      NOTHING);
}

static void test_no_manifest(void) {
  g_autoptr(Manifest) manifest = manifest_new(NULL, NULL);
  g_autoptr(GPtrArray) requests = request_manifest(manifest);
  g_assert_cmpuint(requests->len, ==, 0);
}

static void test_whole_manifest_in_the_order_of_its_fields(void) {
  static const char *const WANTED[] = {
      "sandbox.image.use medium agent provider=sandbox surface=sandbox resource=debian:12",
      "sandbox.network.configure high agent provider=sandbox surface=sandbox host=* "
      "{\"mode\":\"allow\"}",
      "sandbox.network.configure medium agent provider=sandbox surface=sandbox host=a.example "
      "{\"mode\":\"allow\"}",
      "sandbox.network.configure medium agent provider=sandbox surface=sandbox host=*.b.example "
      "{\"mode\":\"allow\"}",
      "sandbox.network.configure medium agent provider=sandbox surface=sandbox host=c.example "
      "{\"mode\":\"deny\"}",
      "sandbox.environment.set medium agent provider=sandbox surface=sandbox "
      "{\"plain_keys\":[\"ALPHA\",\"ZULU\"]}",
      "secret.use medium agent provider=sandbox surface=sandbox resource=vault/key",
      "sandbox.resources.set medium agent provider=sandbox surface=sandbox "
      "{\"cpu\":\"1.5\",\"memory\":\"64m\",\"gpu\":true}",
      "sandbox.filesystem.mount high agent provider=sandbox surface=sandbox path=/data "
      "resource=/srv/data {\"mode\":\"read_write\"}",
      NULL};
  asks("{'workspace_mount': {'mode': 'read_write', 'target': '/data', 'source': '/srv/data'},"
       " 'resources': {'gpu': true, 'memory': '64m', 'cpu': '1.5'},"
       " 'environment': {'secret_refs': ['vault/key'], 'plain': {'ZULU': 'hidden', 'ALPHA': 'x'}},"
       " 'network_policy': {'default': 'allow', 'allowed_hosts': ['A.example', '*.b.example'],"
       " 'denied_hosts': ['c.example']}, 'image': 'debian:12'}",
       WANTED);
}

static void test_read_only_mount(void) {
  static const char *const WANTED[] = {
      "sandbox.filesystem.mount medium agent provider=sandbox surface=sandbox path=/data "
      "resource=/srv {\"mode\":\"read_only\"}",
      NULL};
  asks("{'workspace_mount': {'source': '/srv', 'target': '/data'}}", WANTED);
}

static void test_one_resource(void) {
  static const char *const WANTED[] = {
      "sandbox.resources.set medium agent provider=sandbox surface=sandbox "
      "{\"cpu\":null,\"memory\":\"1g\",\"gpu\":false}",
      NULL};
  asks("{'resources': {'memory': '1g'}}", WANTED);
}

/* The policy of the first source document, asked with the runtime's own requests. */
static void test_strict_with_sandbox(void) {
  static const char *const ARGV[] = {"sh", "-c", "python -c \"print(6*7)\"", NULL};
  g_autoptr(Policy) policy =
      fixture_policy("{'name': 'strict-with-sandbox', 'mode': 'strict', 'rules': {'allow': ["
                     " {'rule_id': 'use_execute', 'capability': 'sandbox.execute'},"
                     " {'rule_id': 'sandbox_setup', 'capability': 'sandbox.*'},"
                     " {'rule_id': 'commands_in_the_sandbox', 'capability': 'process.exec',"
                     "  'conditions': {'execution_surface': 'sandbox'}}]}}");
  g_autoptr(PolicyRequest) execute = request_execute();
  g_autoptr(PolicyRequest) command = request_command(ARGV, TRUE);
  g_autoptr(PolicyRequest) on_host = request_command(ARGV, FALSE);
  g_autoptr(PolicyRequest) sync = request_sync();
  g_autoptr(PolicyRequest) file = request_file(TRUE, "a");
  fixture_decides(policy, execute, "allow matched_allow use_execute,sandbox_setup");
  fixture_decides(policy, command, "allow matched_allow commands_in_the_sandbox");
  fixture_decides(policy, sync, "allow matched_allow sandbox_setup");
  fixture_decides(policy, on_host, "deny unknown_capability ");
  fixture_decides(policy, file, "deny unknown_capability ");
}

/* The rules that the first source document adds for files. */
static void test_file_rules(void) {
  g_autoptr(Policy) policy =
      fixture_policy("{'mode': 'strict', 'rules': {'allow': ["
                     " {'rule_id': 'files_in', 'capability': 'workspace.files.read'},"
                     " {'rule_id': 'files_out', 'capability': 'workspace.files.write',"
                     "  'target': {'path': 'outputs/*'}}]}}");
  g_autoptr(PolicyRequest) reads = request_file(FALSE, "sales.csv");
  g_autoptr(PolicyRequest) inside = request_file(TRUE, "outputs/deep/total.txt");
  g_autoptr(PolicyRequest) outside = request_file(TRUE, "total.txt");
  fixture_decides(policy, reads, "allow matched_allow files_in");
  fixture_decides(policy, inside, "allow matched_allow files_out");
  fixture_decides(policy, outside, "deny unknown_capability ");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/governance/requests/" name, function)
  ADD("execute", test_execute);
  ADD("command/sandbox", test_command_in_a_sandbox);
  ADD("command/host", test_command_on_the_host);
  ADD("command/metadata", test_command_metadata);
  ADD("sync", test_sync);
  ADD("file", test_file);
  ADD("manifest/nothing", test_manifest_that_asks_nothing);
  ADD("manifest/none", test_no_manifest);
  ADD("manifest/whole", test_whole_manifest_in_the_order_of_its_fields);
  ADD("manifest/read-only-mount", test_read_only_mount);
  ADD("manifest/one-resource", test_one_resource);
  ADD("strict-with-sandbox", test_strict_with_sandbox);
  ADD("file-rules", test_file_rules);
#undef ADD
  return g_test_run();
}
