/* SPDX-License-Identifier: Apache-2.0 */
/* config-manifest.c: sandbox_manifest: its fields, its string rules, its sizes, and every
 * refusal. */
#include "config-fixture.h"

static Manifest *read_manifest(const char *text) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = fixture_json(text);
  Manifest *manifest = manifest_new(object, &error);
  g_assert_no_error(error);
  return manifest;
}

static void check_refused(const ConfigRefusal *cases, gsize count) {
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": {", "}}}", cases, count);
}

static void test_defaults(void) {
  g_autoptr(JsonObject) empty = json_object_new_object();
  JsonObject *const inputs[] = {NULL, empty};
  for (gsize i = 0; i < G_N_ELEMENTS(inputs); i++) {
    g_autoptr(Manifest) manifest = manifest_new(inputs[i], NULL);
    g_assert_null(manifest->image);
    g_assert_cmpstr(manifest->working_dir, ==, "/workspace");
    g_assert_false(manifest->network);
    fixture_strv(manifest->allowed_hosts, "");
    fixture_strv(manifest->denied_hosts, "");
    fixture_strv(manifest->environment_names, "");
    fixture_strv(manifest->environment_values, "");
    fixture_strv(manifest->secret_refs, "");
    g_assert_null(manifest->cpu);
    g_assert_null(manifest->memory);
    g_assert_false(manifest->gpu);
    g_assert_cmpint(manifest->lifetime_seconds, ==, 0);
    g_assert_null(manifest->mount);
    g_assert_cmpstr(manifest->cleanup, ==, "always");
    g_assert_false(manifest->snapshot);
  }
}

static void test_all(void) {
  g_autoptr(Manifest) manifest = read_manifest(
      "{\"image\": \"python:3.12-slim\", \"working_dir\": \" /w//%41/./b\\\\c/ \","
      " \"network_policy\": {\"default\": \"allow\", \"allowed_hosts\": [\"PyPI.org\", "
      "\"*.Example.com\"], \"denied_hosts\": [\"10.0.0.1\"]},"
      " \"environment\": {\"plain\": {\"B\": \"2\", \"A_1\": 1, \"_c\": true, \"D\": \"\"}, "
      "\"secret_refs\": [\"vault/key\"]},"
      " \"resources\": {\"cpu\": \"0.5\", \"memory\": \"512m\", \"gpu\": true, "
      "\"timeout_seconds\": 600},"
      " \"workspace_mount\": {\"source\": \"/src/\", \"target\": \"/mnt\", \"mode\": "
      "\"read_write\"},"
      " \"lifecycle\": {\"cleanup\": \"on_success\", \"snapshot\": true}}");
  g_assert_cmpstr(manifest->image, ==, "python:3.12-slim");
  g_assert_cmpstr(manifest->working_dir, ==, "/w/A/b/c");
  g_assert_true(manifest->network);
  fixture_strv(manifest->allowed_hosts, "pypi.org|*.example.com");
  fixture_strv(manifest->denied_hosts, "10.0.0.1");
  fixture_strv(manifest->environment_names, "A_1|B|D|_c");
  fixture_strv(manifest->environment_values, "1|2||true");
  fixture_strv(manifest->secret_refs, "vault/key");
  g_assert_cmpstr(manifest->cpu, ==, "0.5");
  g_assert_cmpuint(manifest->cpu_millis, ==, 500);
  g_assert_cmpstr(manifest->memory, ==, "512m");
  g_assert_cmpuint(manifest->memory_bytes, ==, 512u << 20);
  g_assert_true(manifest->gpu);
  g_assert_cmpint(manifest->lifetime_seconds, ==, 600);
  g_assert_cmpstr(manifest->mount->source, ==, "/src");
  g_assert_cmpstr(manifest->mount->target, ==, "/mnt");
  g_assert_true(manifest->mount->writable);
  g_assert_cmpstr(manifest->cleanup, ==, "on_success");
  g_assert_true(manifest->snapshot);
}

static void test_optional(void) {
  g_autoptr(Manifest) manifest = read_manifest(
      "{\"image\": null, \"workspace_mount\": null, \"resources\": {\"cpu\": null, \"memory\": "
      "null, \"timeout_seconds\": null}}");
  g_assert_null(manifest->image);
  g_assert_null(manifest->mount);
  g_assert_null(manifest->cpu);
  g_autoptr(Manifest) mount =
      read_manifest("{\"workspace_mount\": {\"source\": \"/s\", \"target\": \"/t\"}}");
  g_assert_false(mount->mount->writable);
  g_autoptr(Manifest) numbers =
      read_manifest("{\"resources\": {\"cpu\": 1.5, \"memory\": 1048576}}");
  g_assert_cmpstr(numbers->cpu, ==, "1.5");
  g_assert_cmpuint(numbers->cpu_millis, ==, 1500);
  g_assert_cmpuint(numbers->memory_bytes, ==, 1048576);
}

static void test_sizes(void) {
  static const struct {
    const char *text;
    guint64 bytes; /* 0: refused */
  } CASES[] = {
      {"1", 1},
      {"512", 512},
      {"512b", 512},
      {"1k", 1024},
      {"1KB", 1024},
      {"64m", 67108864},
      {"64Mb", 67108864},
      {"1G", 1073741824},
      {"1.5g", 1610612736},
      {"0.5k", 512},
      {"0.0001g", 107374},
      {"1.0000000009999k", 1024},
      {"8589934590g", G_GUINT64_CONSTANT(8589934590) << 30},
      {"8589934592g", 0},
      {"9223372036854775807", 0},
      {"99999999999999999999", 0},
      {"", 0},
      {"0", 0},
      {"0g", 0},
      {"0.0g", 0},
      {"-1", 0},
      {"+1", 0},
      {"1.5", 0},
      {"1.5b", 0},
      {"1.g", 0},
      {".5g", 0},
      {"1e9", 0},
      {"1t", 0},
      {"1gg", 0},
      {"1g ", 0},
      {" 1g", 0},
      {"1 g", 0},
      {"1bb", 0},
      {"0x10", 0},
      {"g", 0},
      {"inf", 0},
      {"nan", 0},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    guint64 bytes = 7;
    gboolean ok = manifest_parse_size(CASES[i].text, &bytes);
    g_test_message("%s", CASES[i].text);
    g_assert_cmpint(ok, ==, CASES[i].bytes != 0);
    g_assert_cmpuint(bytes, ==, ok ? CASES[i].bytes : 7);
  }
}

static void test_cpus(void) {
  static const struct {
    const char *text;
    guint64 millis; /* 0: refused */
  } CASES[] = {
      {"2", 2000},
      {"0.5", 500},
      {"0.001", 1},
      {"1.2345", 1234},
      {"1000000", 1000000000},
      {"0", 0},
      {"0.0", 0},
      {"0.0009", 0},
      {"-1", 0},
      {"", 0},
      {"two", 0},
      {"1e3", 0},
      {"2.", 0},
      {".5", 0},
      {"2 ", 0},
      {"2m", 0},
      {"nan", 0},
      {"1000001", 0},
      {"99999999999999999999", 0},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    guint64 millis = 7;
    gboolean ok = manifest_parse_cpu(CASES[i].text, &millis);
    g_test_message("%s", CASES[i].text);
    g_assert_cmpint(ok, ==, CASES[i].millis != 0);
    g_assert_cmpuint(millis, ==, ok ? CASES[i].millis : 7);
  }
}

static void test_keys_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"imag\": \"x\"",
       "sandbox_manifest has unknown keys: imag. Allowed keys: environment, image, lifecycle, "
       "network_policy, resources, working_dir, workspace_mount"},
      {"\"network_policy\": {\"mode\": \"deny\"}",
       "sandbox_manifest.network_policy has unknown keys: mode. Allowed keys: allowed_hosts, "
       "default, denied_hosts"},
      {"\"environment\": {\"APP\": \"x\"}",
       "sandbox_manifest.environment has unknown keys: APP. Allowed keys: plain, secret_refs"},
      {"\"resources\": {\"disk\": 1}",
       "sandbox_manifest.resources has unknown keys: disk. Allowed keys: cpu, gpu, memory, "
       "timeout_seconds"},
      {"\"workspace_mount\": {\"path\": \"/a\"}",
       "sandbox_manifest.workspace_mount has unknown keys: path. Allowed keys: mode, source, "
       "target"},
      {"\"lifecycle\": {\"x\": 1}",
       "sandbox_manifest.lifecycle has unknown keys: x. Allowed keys: cleanup, snapshot"},
      {"\"filesystem_policy\": {}",
       "sandbox_manifest.filesystem_policy was removed: no provider applied it; use "
       "workspace_bridge to choose the files that go in and out"},
      {"\"provider\": \"docker\"", "sandbox_manifest.provider is not a field of a manifest; set "
                                   "governance_config.sandbox_config.provider"},
      {"\"sandbox_id\": \"x\"",
       "sandbox_manifest.sandbox_id is not a field of a manifest; the provider of "
       "governance_config.sandbox_config names its sandboxes"},
  };
  check_refused(CASES, G_N_ELEMENTS(CASES));
}

static void test_types_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"image\": \"\"", "sandbox_manifest.image must be a non-empty string, got ''"},
      {"\"image\": \"  \"", "sandbox_manifest.image must be a non-empty string, got '  '"},
      {"\"image\": 3", "sandbox_manifest.image must be a non-empty string, got 3"},
      {"\"working_dir\": 3", "sandbox_manifest.working_dir must be a string, got 3"},
      {"\"network_policy\": \"deny\"", "sandbox_manifest.network_policy must be an object"},
      {"\"network_policy\": {\"default\": \"on\"}",
       "sandbox_manifest.network_policy.default must be one of: deny, allow, got 'on'"},
      {"\"network_policy\": {\"default\": true}",
       "sandbox_manifest.network_policy.default must be one of: deny, allow, got True"},
      {"\"network_policy\": {\"allowed_hosts\": \"a.com\"}",
       "sandbox_manifest.network_policy.allowed_hosts must be a list of strings"},
      {"\"network_policy\": {\"denied_hosts\": [1]}",
       "sandbox_manifest.network_policy.denied_hosts must be a list of strings"},
      {"\"environment\": []", "sandbox_manifest.environment must be an object"},
      {"\"environment\": {\"plain\": \"secret\"}",
       "sandbox_manifest.environment.plain must be an object"},
      {"\"environment\": {\"plain\": {\"A\": [\"secret\"]}}",
       "sandbox_manifest.environment.plain.A must be a string"},
      {"\"environment\": {\"plain\": {\"A\": null}}",
       "sandbox_manifest.environment.plain.A must be a string"},
      {"\"environment\": {\"secret_refs\": [{}]}",
       "sandbox_manifest.environment.secret_refs must be a list of strings"},
      {"\"resources\": 1", "sandbox_manifest.resources must be an object"},
      {"\"resources\": {\"memory\": \"x\"}",
       "sandbox_manifest.resources.memory must be a positive size such as 512m or 1g, got 'x'"},
      {"\"resources\": {\"memory\": 0}",
       "sandbox_manifest.resources.memory must be a positive size such as 512m or 1g, got 0"},
      {"\"resources\": {\"memory\": true}",
       "sandbox_manifest.resources.memory must be a positive size such as 512m or 1g, got True"},
      {"\"resources\": {\"cpu\": \"-1\"}", "sandbox_manifest.resources.cpu must be a positive "
                                           "number of CPUs such as 2 or 0.5, got '-1'"},
      {"\"resources\": {\"cpu\": []}", "sandbox_manifest.resources.cpu must be a positive number "
                                       "of CPUs such as 2 or 0.5, got a list"},
      {"\"resources\": {\"gpu\": \"yes\"}", "sandbox_manifest.resources.gpu must be a boolean"},
      {"\"resources\": {\"timeout_seconds\": 0}",
       "sandbox_manifest.resources.timeout_seconds must be between 1 and 31622400, got 0"},
      {"\"resources\": {\"timeout_seconds\": \"5\"}",
       "sandbox_manifest.resources.timeout_seconds must be an integer, got '5'"},
      {"\"workspace_mount\": \"/src\"", "sandbox_manifest.workspace_mount must be an object"},
      {"\"workspace_mount\": {\"source\": \"/s\", \"target\": \"/t\", \"mode\": \"rw\"}",
       "sandbox_manifest.workspace_mount.mode must be one of: read_only, read_write, got 'rw'"},
      {"\"lifecycle\": {\"cleanup\": \"later\"}",
       "sandbox_manifest.lifecycle.cleanup must be one of: always, on_success, never, got "
       "'later'"},
      {"\"lifecycle\": {\"snapshot\": null}",
       "sandbox_manifest.lifecycle.snapshot must be a boolean"},
  };
  check_refused(CASES, G_N_ELEMENTS(CASES));
  static const ConfigRefusal WHOLE[] = {
      {"[]", "sandbox_manifest must be an object"},
      {"\"x\"", "sandbox_manifest must be an object"},
  };
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": ", "}}", WHOLE,
                  G_N_ELEMENTS(WHOLE));
}

static void test_paths_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"\"", "sandbox path is required"},
      {"\"  \"", "sandbox path is required"},
      {"\"/a%00b\"", "sandbox path contains a null byte"},
      {"\"work\"", "sandbox path must be absolute: work"},
      {"\"./work\"", "sandbox path must be absolute: ./work"},
      {"\"C:\\\\work\"", "sandbox path must be absolute: C:/work"},
      {"\"/a/../b\"", "sandbox path escapes allowed scope: /a/../b"},
      {"\"/a/%2e%2E/b\"", "sandbox path escapes allowed scope: /a/../b"},
      {"\"/a\\\\..\\\\b\"", "sandbox path escapes allowed scope: /a/../b"},
      {"\"/..\"", "sandbox path escapes allowed scope: /.."},
      {"\"/a%ff\"", "sandbox path must be UTF-8: /a%ff"},
  };
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": {\"working_dir\": ", "}}}", CASES,
                  G_N_ELEMENTS(CASES));
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": {\"workspace_mount\": "
                  "{\"source\": \"/s\", \"target\": ",
                  "}}}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_paths_accepted(void) {
  static const struct {
    const char *text;
    const char *wanted;
  } CASES[] = {
      {"/b", "/b"},         {"//a///b//", "/a/b"},
      {"/a/.", "/a"},       {"/a/..b/c..", "/a/..b/c.."},
      {"/a%2Fb", "/a/b"},   {"/100%", "/100%"},
      {"/a%zzb", "/a%zzb"}, {"/a%252e", "/a%2e"},
      {"/a b", "/a b"},     {"/caf%C3%A9", "/caf\xc3\xa9"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(JsonObject) object = json_object_new_object();
    json_add_text(object, "working_dir", CASES[i].text);
    g_autoptr(Manifest) manifest = manifest_new(object, NULL);
    g_assert_cmpstr(manifest->working_dir, ==, CASES[i].wanted);
  }
}

/* What no system has as a folder of a sandbox is refused before one is made. */
static void test_places_refused(void) {
  g_autofree char *name = g_strnfill(255, 'a');
  g_autofree char *long_name = g_strconcat("\"/", name, "a/b\"", NULL);
  g_autoptr(GString) path = g_string_new("\"");
  for (guint i = 0; i < 16; i++) {
    g_string_append_printf(path, "/%s", name);
  }
  g_autofree char *longest = g_strndup(path->str + 1, 4095);
  g_string_append_c(path, '"'); /* 16 names of 256 bytes with their slash: 4096 */
  static const char *const WHERE[] = {"working_dir", "workspace_mount.target"};
  static const char *const BEFORE[] = {
      "{\"governance_config\": {\"sandbox_manifest\": {\"working_dir\": ",
      "{\"governance_config\": {\"sandbox_manifest\": {\"workspace_mount\": {\"source\": \"/s\", "
      "\"target\": "};
  for (gsize i = 0; i < G_N_ELEMENTS(WHERE); i++) {
    g_autofree char *root =
        g_strdup_printf("sandbox_manifest.%s cannot be /; name a folder below it", WHERE[i]);
    g_autofree char *wide = g_strdup_printf("sandbox_manifest.%s must have folders whose names are "
                                            "at most 255 bytes long, got 256",
                                            WHERE[i]);
    g_autofree char *deep =
        g_strdup_printf("sandbox_manifest.%s must be at most 4095 bytes long, got 4096", WHERE[i]);
    const ConfigRefusal cases[] = {{"\"/\"", root},    {"\"//\"", root},  {"\"/./%2e/\"", root},
                                   {"\"\\\\\"", root}, {long_name, wide}, {path->str, deep}};
    fixture_refused(BEFORE[i], i == 0 ? "}}}" : "}}}}", cases, G_N_ELEMENTS(cases));
  }
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_text(object, "working_dir", longest);
  g_autoptr(Manifest) manifest = manifest_new(object, NULL);
  g_assert_cmpstr(manifest->working_dir, ==, longest);
}

/* With variables of so many bytes each, name and = and value; NULL: *error. */
static Manifest *with_variables(guint count, gsize bytes, GError **error) {
  g_autoptr(JsonObject) object = json_object_new_object();
  JsonObject *environment = json_object_new_object();
  JsonObject *plain = json_object_new_object();
  for (guint i = 0; i < count; i++) {
    g_autofree char *name = g_strdup_printf("BIG%u", i);
    g_autofree char *value = g_strnfill(bytes - strlen(name) - 1, 'v');
    json_add_text(plain, name, value);
  }
  json_add_take(environment, "plain", plain);
  json_add_take(object, "environment", environment);
  return manifest_new(object, error);
}

/* Linux gives a program no longer variable, and no more of them; who is told so gets no value to see. */
static void test_large_environment(void) {
  static const struct {
    guint count;
    gsize bytes;
    const char *wanted; /* NULL: accepted */
  } CASES[] = {
      {1, 131071, NULL},
      {7, 131071, NULL},
      {1, 131072,
       "environment variable BIG0 is too long: with its name it may have 131071 bytes, got 131072; "
       "put long text into a file of the workspace"},
      {8, 131071,
       "sandbox_manifest.environment.plain is too large: its variables may take 1048576 bytes, got "
       "1048640; put long text into a file of the workspace"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Manifest) manifest = with_variables(CASES[i].count, CASES[i].bytes, &error);
    g_assert_cmpstr(error ? error->message : NULL, ==, CASES[i].wanted);
    g_assert_true((manifest == NULL) == (CASES[i].wanted != NULL));
  }
}

static void test_mount_sources(void) {
  static const ConfigRefusal CASES[] = {
      {"\"\"", "workspace mount source is required"},
      {"null", "workspace mount source is required"},
      {"\"/a%00\"", "workspace mount source contains a null byte"},
      {"\"s3://b/%00\"", "workspace mount source contains a null byte"},
      {"\"https://user:pw@host/x\"", "workspace mount source must not contain credentials"},
      {"\"s3://key@bucket\"", "workspace mount source must not contain credentials"},
      {"\"src\"", "workspace mount source must be absolute or URI: src"},
      {"\"s3:bucket\"", "workspace mount source must be absolute or URI: s3:bucket"},
      {"\"://x/y\"", "workspace mount source must be absolute or URI: ://x/y"},
      {"\"1x://x/y\"", "workspace mount source must be absolute or URI: 1x://x/y"},
      {"\"s3://\"", "workspace mount source must be absolute or URI: s3://"},
      {"\"file:///etc\"", "workspace mount source must be absolute or URI: file:///etc"},
      {"\"/a/../b\"", "workspace mount source escapes allowed scope: /a/../b"},
      {"\"/a://b/../c\"", "workspace mount source escapes allowed scope: /a://b/../c"},
      {"\"s3://b/../c\"", "workspace mount source escapes allowed scope: s3://b/../c"},
      {"\"s3://b/%2e%2e/c\"", "workspace mount source escapes allowed scope: s3://b/%2e%2e/c"},
  };
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": {\"workspace_mount\": "
                  "{\"target\": \"/t\", \"source\": ",
                  "}}}}", CASES, G_N_ELEMENTS(CASES));
  g_autoptr(Manifest) uri = read_manifest(
      "{\"workspace_mount\": {\"source\": \" s3://bucket/a%20b@c \", \"target\": \"/t\"}}");
  g_assert_cmpstr(uri->mount->source, ==, "s3://bucket/a%20b@c");
}

static void test_hosts_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"\"", "network host pattern is required"},
      {"\" \"", "network host pattern is required"},
      {"\"*\"", "invalid network host pattern: *"},
      {"\"*.\"", "invalid network host pattern: *."},
      {"\"*.*\"", "invalid network host pattern: *.*"},
      {"\"*a.com\"", "invalid network host pattern: *a.com"},
      {"\"a.*.com\"", "invalid network host pattern: a.*.com"},
      {"\"HTTPS://A.com\"", "invalid network host pattern: https://a.com"},
      {"\"a.com/x\"", "invalid network host pattern: a.com/x"},
      {"\"a.com\\\\x\"", "invalid network host pattern: a.com\\x"},
      {"\"u@a.com\"", "invalid network host pattern: u@a.com"},
      {"\"a b.com\"", "invalid network host pattern: a b.com"},
      {"\"a..com\"", "invalid network host pattern: a..com"},
      {"\"-a.com\"", "invalid network host pattern: -a.com"},
      {"\"a.com\\n\\nb\"", "invalid network host pattern: a.com\n\nb"},
      {"\"a.com:443\"", "network host pattern must not include a port: a.com:443"},
      {"\"*.A.com:80\"", "network host pattern must not include a port: *.a.com:80"},
  };
  fixture_refused(
      "{\"governance_config\": {\"sandbox_manifest\": {\"network_policy\": {\"allowed_hosts\": [",
      "]}}}}", CASES, G_N_ELEMENTS(CASES));
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": {\"network_policy\": "
                  "{\"denied_hosts\": [\"ok.com\", ",
                  "]}}}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_environment_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"1A\": \"x\"", "invalid sandbox environment variable name: 1A"},
      {"\"\": \"x\"", "invalid sandbox environment variable name: "},
      {"\"A-B\": \"x\"", "invalid sandbox environment variable name: A-B"},
      {"\"A=B\": \"x\"", "invalid sandbox environment variable name: A=B"},
      {"\"A\\n\": \"x\"", "invalid sandbox environment variable name: A\n"},
      {"\"\\u00c9\": \"x\"", "invalid sandbox environment variable name: \xc3\x89"},
  };
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": {\"environment\": {\"plain\": {",
                  "}}}}}", CASES, G_N_ELEMENTS(CASES));
}

static void test_secret_refs_refused(void) {
  static const ConfigRefusal CASES[] = {
      {"\"\"", "sandbox secret ref is required"},
      {"\"a b\"", "sandbox secret ref must not contain whitespace or null bytes"},
      {"\"a\\n\"", "sandbox secret ref must not contain whitespace or null bytes"},
      {"\"a/../b\"", "sandbox secret ref escapes allowed scope: a/../b"},
      {"\"..\"", "sandbox secret ref escapes allowed scope: .."},
  };
  fixture_refused("{\"governance_config\": {\"sandbox_manifest\": {\"environment\": "
                  "{\"secret_refs\": [\"ok\", ",
                  "]}}}}", CASES, G_N_ELEMENTS(CASES));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/manifest/defaults", test_defaults);
  g_test_add_func("/manifest/all", test_all);
  g_test_add_func("/manifest/optional", test_optional);
  g_test_add_func("/manifest/sizes", test_sizes);
  g_test_add_func("/manifest/cpus", test_cpus);
  g_test_add_func("/manifest/keys-refused", test_keys_refused);
  g_test_add_func("/manifest/types-refused", test_types_refused);
  g_test_add_func("/manifest/paths-refused", test_paths_refused);
  g_test_add_func("/manifest/paths-accepted", test_paths_accepted);
  g_test_add_func("/manifest/places-refused", test_places_refused);
  g_test_add_func("/manifest/large-environment", test_large_environment);
  g_test_add_func("/manifest/mount-sources", test_mount_sources);
  g_test_add_func("/manifest/hosts-refused", test_hosts_refused);
  g_test_add_func("/manifest/environment-refused", test_environment_refused);
  g_test_add_func("/manifest/secret-refs-refused", test_secret_refs_refused);
  return g_test_run();
}
