/* SPDX-License-Identifier: Apache-2.0 */
/* governance-file.c: which files may hold the policy (behaviour 4.12). */
#include "governance-fixture.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A fresh project; every path below it is removed with it. */
typedef struct {
  char *root;
} Project;

static const char GOOD[] = "{\"mode\": \"strict\"}";

static void set_up(Project *project, gconstpointer data) {
  (void)data;
  g_autoptr(GError) error = NULL;
  project->root = g_dir_make_tmp("governance-XXXXXX", &error);
  g_assert_no_error(error);
}

static void remove_tree(const char *path) {
  GDir *folder = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
  if (folder) {
    const char *name = NULL;
    while ((name = g_dir_read_name(folder))) {
      g_autofree char *inside = g_build_filename(path, name, NULL);
      remove_tree(inside);
    }
    g_dir_close(folder);
  }
  g_assert_cmpint(g_remove(path), ==, 0);
}

static void tear_down(Project *project, gconstpointer data) {
  (void)data;
  remove_tree(project->root);
  g_free(project->root);
}

/* The absolute path of a name in the project, its folders made. Owned. */
static char *place(const Project *project, const char *name) {
  char *path = g_build_filename(project->root, name, NULL);
  g_autofree char *folder = g_path_get_dirname(path);
  g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
  return path;
}

static char *write_file(const Project *project, const char *name, const char *content) {
  char *path = place(project, name);
  g_autoptr(GError) error = NULL;
  g_file_set_contents(path, content, -1, &error);
  g_assert_no_error(error);
  return path;
}

static void loads(const char *path, const char *root, const char *const *agent_dirs) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Policy) policy = policy_load(path, root, agent_dirs, &error);
  g_assert_no_error(error);
  g_assert_cmpint(policy_mode(policy), ==, MODE_STRICT);
  g_assert_null(policy_profile(policy));
}

/* wanted has %s where the path stands. */
static void refused(const char *path, const char *root, const char *const *agent_dirs,
                    const char *wanted) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GString) text = g_string_new(wanted);
  g_string_replace(text, "%s", path, 1);
  g_assert_null(policy_load(path, root, agent_dirs, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==, text->str);
}

#define WRITABLE "Policy file is inside an agent-writable directory: %s"
#define ESCAPES "Policy file escapes trusted project root: %s"

static void test_loads(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *top = write_file(project, "policy.json", GOOD);
  g_autofree char *deep = write_file(project, "etc/rules/policy.json", GOOD);
  loads(top, project->root, NULL);
  loads(deep, project->root, NULL);
}

static void test_root_with_a_slash_behind_it(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "policy.json", GOOD);
  g_autofree char *root = g_strconcat(project->root, "//", NULL);
  loads(path, root, NULL);
}

static void test_missing(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *none = place(project, "none.json");
  g_autofree char *yaml = place(project, "none.yaml");
  g_autofree char *file = write_file(project, "file", "x");
  g_autofree char *below = g_build_filename(file, "policy.json", NULL);
  refused(none, project->root, NULL, "Policy file not found: %s");
  refused(yaml, project->root, NULL, "Policy file not found: %s");
  refused(below, project->root, NULL, "Policy file not found: %s");
}

static void test_dangling_link(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *link = place(project, "link.json");
  g_assert_cmpint(symlink("nowhere", link), ==, 0);
  refused(link, project->root, NULL, "Policy file not found: %s");
}

static void test_outside_the_root(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "other/policy.json", GOOD);
  g_autofree char *root = place(project, "proj");
  g_autofree char *dotted = g_build_filename(root, "..", "other", "policy.json", NULL);
  g_assert_cmpint(g_mkdir(root, 0700), ==, 0);
  refused(path, root, NULL, ESCAPES);
  refused(dotted, root, NULL, ESCAPES);
}

/* /a/project2 is not below /a/project. */
static void test_root_is_no_prefix(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "project2/policy.json", GOOD);
  g_autofree char *root = place(project, "project");
  g_assert_cmpint(g_mkdir(root, 0700), ==, 0);
  refused(path, root, NULL, ESCAPES);
}

static void test_link_out_of_the_root(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "other/policy.json", GOOD);
  g_autofree char *link = place(project, "proj/policy.json");
  g_autofree char *root = g_path_get_dirname(link);
  g_assert_cmpint(symlink(path, link), ==, 0);
  refused(link, root, NULL, ESCAPES);
}

static void test_link_within_the_root(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "etc/policy.json", GOOD);
  g_autofree char *link = place(project, "policy.json");
  g_assert_cmpint(symlink(path, link), ==, 0);
  loads(link, project->root, NULL);
}

static void test_root_that_is_a_link(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "real/policy.json", GOOD);
  g_autofree char *root = place(project, "link");
  g_autofree char *through = g_build_filename(root, "policy.json", NULL);
  g_assert_cmpint(symlink("real", root), ==, 0);
  loads(through, root, NULL);
  loads(path, root, NULL);
}

static void test_names_of_agent_folders(Project *project, gconstpointer data) {
  (void)data;
  static const char *const NAMES[] = {"workspace", "workspaces", "artifact", "artifacts",
                                      "output",    "outputs",    "tmp",      "temp"};
  for (gsize i = 0; i < G_N_ELEMENTS(NAMES); i++) {
    g_autofree char *near = g_strdup_printf("%s/policy.json", NAMES[i]);
    g_autofree char *far = g_strdup_printf("a/%s/b/policy.json", NAMES[i]);
    g_autofree char *near_path = write_file(project, near, GOOD);
    g_autofree char *far_path = write_file(project, far, GOOD);
    refused(near_path, project->root, NULL, WRITABLE);
    refused(far_path, project->root, NULL, WRITABLE);
  }
}

/* A project below /tmp is no agent's folder, and a file is no folder. */
static void test_such_names_elsewhere(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "tmp/project/tmp.json", GOOD);
  g_autofree char *root = g_path_get_dirname(path);
  g_autofree char *similar = write_file(project, "tmp/project/outputs2/policy.json", GOOD);
  loads(path, root, NULL);
  loads(similar, root, NULL);
}

static void test_agents_own_folders(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "files/deep/policy.json", GOOD);
  g_autofree char *beside = write_file(project, "files2/policy.json", GOOD);
  g_autofree char *folder = g_build_filename(project->root, "files", NULL);
  g_autofree char *missing = g_build_filename(project->root, "missing", NULL);
  g_autofree char *link = g_build_filename(project->root, "link", NULL);
  g_assert_cmpint(symlink("files", link), ==, 0);
  const char *const dirs[] = {missing, folder, NULL};
  const char *const linked[] = {link, NULL};
  refused(path, project->root, dirs, WRITABLE);
  refused(path, project->root, linked, WRITABLE);
  loads(beside, project->root, dirs);
}

/* Who may change the link chooses the policy. */
static void test_link_in_an_agents_folder(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "etc/policy.json", GOOD);
  g_autofree char *named = place(project, "workspace/policy.json");
  g_autofree char *own = place(project, "files/policy.json");
  g_autofree char *folder = g_path_get_dirname(own);
  const char *const dirs[] = {folder, NULL};
  g_assert_cmpint(symlink(path, named), ==, 0);
  g_assert_cmpint(symlink(path, own), ==, 0);
  refused(named, project->root, NULL, WRITABLE);
  refused(own, project->root, dirs, WRITABLE);
}

static void test_extensions(Project *project, gconstpointer data) {
  (void)data;
  static const char YAML[] =
      "YAML policies are not supported. Use a JSON policy file or a policy in code.";
  g_autofree char *yaml = write_file(project, "policy.yaml", GOOD);
  g_autofree char *yml = write_file(project, "policy.yml", GOOD);
  g_autofree char *toml = write_file(project, "policy.toml", GOOD);
  g_autofree char *none = write_file(project, "a.json/policy", GOOD);
  refused(yaml, project->root, NULL, YAML);
  refused(yml, project->root, NULL, YAML);
  refused(toml, project->root, NULL, "Unsupported policy file extension: .toml");
  refused(none, project->root, NULL, "Unsupported policy file extension: none");
}

static void test_unreadable(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *folder = place(project, "folder.json");
  g_autofree char *pipe = place(project, "pipe.json");
  g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
  g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
  refused(folder, project->root, NULL, "Could not read policy file: %s (it is not a regular file)");
  refused(pipe, project->root, NULL, "Could not read policy file: %s (it is not a regular file)");
  g_autofree char *loop = place(project, "loop.json");
  g_autofree char *why = g_strdup_printf("Could not read policy file: %%s (%s)", g_strerror(ELOOP));
  g_assert_cmpint(symlink("loop.json", loop), ==, 0);
  refused(loop, project->root, NULL, why);
}

static void test_too_long(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "policy.json", GOOD);
  g_assert_cmpint(truncate(path, (off_t)JSON_MAX_BYTES + 1), ==, 0);
  refused(path, project->root, NULL, "Could not read policy file: %s (it is too long)");
}

static void test_not_json(Project *project, gconstpointer data) {
  (void)data;
  static const char *const TEXTS[] = {
      "",      "{",           "{'mode': 'strict'}",
      "{} {}", "{\"a\": 1,}", "{\"mode\": \"strict\", \"mode\": \"permissive\"}"};
  for (gsize i = 0; i < G_N_ELEMENTS(TEXTS); i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = write_file(project, "policy.json", TEXTS[i]);
    g_autofree char *start =
        g_strdup_printf("Invalid JSON policy file: %s (it is not valid JSON: ", path);
    g_assert_null(policy_load(path, project->root, NULL, &error));
    g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
    g_test_message("%s", error->message);
    g_assert_true(g_str_has_prefix(error->message, start));
  }
}

static void test_not_json_in_full(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "policy.json", "{\n\"mode\": strict}");
  g_autofree char *wanted = NULL;
  g_autoptr(GError) why = NULL;
  g_assert_null(json_parse("it", "{\n\"mode\": strict}", 17, &why));
  wanted = g_strdup_printf("Invalid JSON policy file: %%s (%s)", why->message);
  refused(path, project->root, NULL, wanted);
}

static void test_no_object(Project *project, gconstpointer data) {
  (void)data;
  static const char *const TEXTS[] = {"[]", "null", "\"strict\"", "1"};
  for (gsize i = 0; i < G_N_ELEMENTS(TEXTS); i++) {
    g_autofree char *path = write_file(project, "policy.json", TEXTS[i]);
    refused(path, project->root, NULL, "Policy file must contain an object at the top level.");
  }
}

static void test_bad_content(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, "policy.json", "{\"mode\": \"lax\"}");
  refused(path, project->root, NULL, "Invalid policy file: %s ('lax' is not a valid PolicyMode)");
}

static void test_hash_is_of_the_content_only(Project *project, gconstpointer data) {
  (void)data;
  g_autoptr(GError) error = NULL;
  g_autofree char *one = write_file(project, "one.json", GOOD);
  g_autofree char *two = write_file(project, "etc/two.json", GOOD);
  g_autoptr(Policy) first = policy_load(one, project->root, NULL, &error);
  g_assert_no_error(error);
  g_autoptr(Policy) second = policy_load(two, project->root, NULL, &error);
  g_assert_no_error(error);
  g_autoptr(Policy) in_place = fixture_policy("{'mode': 'strict'}");
  g_assert_cmpstr(policy_hash(first), ==, policy_hash(second));
  g_assert_cmpstr(policy_hash(first), ==, policy_hash(in_place));
}

/* ---- A file that nobody named ----------------------------------------------------------------- */

#define NAME "omnicoreagent.policy.json"
#define DEEP_NAME ".omnicoreagent/policy.json"
#define LINK "Auto-discovered policy file must not be a symlink: %s"

static void put_file(const Project *project, const char *name, const char *content) {
  g_free(write_file(project, name, content));
}

static Policy *discover(const Project *project, const char *profile) {
  g_autoptr(GError) error = NULL;
  Policy *policy = policy_discover(profile, project->root, NULL, NULL, &error);
  g_assert_no_error(error);
  return policy;
}

static void discovery_refused(const Project *project, const char *profile, const char *path,
                              const char *const *agent_dirs, const char *wanted) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GString) text = g_string_new(wanted);
  g_string_replace(text, "%s", path, 1);
  g_assert_null(policy_discover(profile, project->root, agent_dirs, NULL, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==, text->str);
}

static void decides(const Policy *policy, const char *capability, const char *surface,
                    const char *wanted) {
  g_autoptr(PolicyRequest) request = policy_request_new(capability, RISK_LOW);
  request->execution_surface = g_strdup(surface);
  fixture_decides(policy, request, wanted);
}

static void test_nothing_discovered(Project *project, gconstpointer data) {
  (void)data;
  g_autoptr(Policy) policy = discover(project, "interactive-dev");
  g_autoptr(Policy) profile = policy_new_profile("interactive-dev");
  g_assert_cmpstr(policy_profile(policy), ==, "interactive-dev");
  g_assert_cmpstr(policy_hash(policy), ==, policy_hash(profile));
  g_assert_null(policy_file(policy));
}

static void test_discovered_narrows(Project *project, gconstpointer data) {
  (void)data;
  put_file(project, NAME,
           "{\"mode\": \"permissive\", \"rules\": {\"deny\": [{\"rule_id\": \"d\", \"capability\": "
           "\"memory.*\"}], \"ask\": [{\"rule_id\": \"q\", \"capability\": \"workspace.*\"}]}}");
  g_autoptr(Policy) policy = discover(project, "interactive-dev");
  g_assert_cmpint(policy_mode(policy), ==, MODE_INTERACTIVE);
  g_assert_null(policy_profile(policy));
  g_assert_true(g_str_has_suffix(policy_file(policy), "/" NAME));
  decides(policy, "memory.read", NULL, "deny matched_deny d");
  decides(policy, "workspace.files.read", NULL, "ask matched_ask q");
  decides(policy, "secret.read", NULL, "deny matched_deny deny_raw_secret_read");
  decides(policy, "sandbox.execute", NULL, "allow matched_allow allow_sandbox_setup");
  decides(policy, "other", NULL, "ask unknown_capability ");
}

static void test_discovered_is_stricter(Project *project, gconstpointer data) {
  (void)data;
  put_file(project, DEEP_NAME, GOOD);
  g_autoptr(Policy) strict = discover(project, "permissive-dev");
  g_assert_cmpint(policy_mode(strict), ==, MODE_STRICT);
  decides(strict, "other", NULL, "deny unknown_capability ");
  /* A policy that says no mode is interactive. */
  put_file(project, NAME, "{}");
  g_autoptr(Policy) plain = discover(project, "permissive-dev");
  decides(plain, "other", NULL, "ask unknown_capability ");
}

static void test_discovered_allow_replaces(Project *project, gconstpointer data) {
  (void)data;
  put_file(project, NAME,
           "{\"rules\": {\"allow\": [{\"rule_id\": \"few\", \"capability\": \"sandbox.execute\"},"
           " {\"rule_id\": \"run\", \"capability\": \"process.exec\","
           " \"conditions\": {\"execution_surface\": \"sandbox\", \"risk_level\": [\"low\"]},"
           " \"constraints\": {\"sandbox_required\": true}}]}}");
  g_autoptr(Policy) policy = discover(project, "permissive-dev");
  decides(policy, "sandbox.execute", NULL, "allow matched_allow few");
  decides(policy, "process.exec", "sandbox", "allow matched_allow run");
  decides(policy, "memory.read", NULL, "ask unknown_capability ");
  put_file(project, NAME, "{\"rules\": {\"allow\": []}}");
  g_autoptr(Policy) empty = discover(project, "permissive-dev");
  decides(empty, "sandbox.execute", NULL, "ask unknown_capability ");
}

/* Whole rules are compared, not capabilities alone. */
static void test_discovered_broadens(Project *project, gconstpointer data) {
  (void)data;
  static const char SURFACE[] =
      "its conditions.execution_surface is wider than that of allow_sandboxed_execution";
  static const struct {
    const char *rule;
    const char *why;
  } RULES[] = {
      {"\"capability\": \"process.exec\"", SURFACE},
      {"\"capability\": \"process.exec\", \"conditions\": {\"execution_surface\": \"host\"}",
       SURFACE},
      {"\"capability\": \"process.exec\", \"conditions\": {\"execution_surface\": \"sandbox\"}",
       "its constraints.sandbox_required is wider than that of allow_sandboxed_execution"},
      {"\"capability\": \"process.exec\", \"constraints\": {\"sandbox_required\": true}", SURFACE},
      {"\"capability\": \"*\"", "no rule of the profile allows all of *"},
      {"\"capability\": \"sandbox*\"", "no rule of the profile allows all of sandbox*"},
      {"\"capability\": \"sandbox?execute\"",
       "no rule of the profile allows all of sandbox?execute"},
      {"\"capability\": \"[s]andbox.execute\"",
       "no rule of the profile allows all of [s]andbox.execute"},
      {"\"capability\": \"network.http.get\"",
       "no rule of the profile allows all of network.http.get"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(RULES); i++) {
    g_autofree char *text =
        g_strdup_printf("{\"rules\": {\"allow\": [{\"rule_id\": \"wide\", %s}]}}", RULES[i].rule);
    g_autofree char *path = write_file(project, NAME, text);
    g_autofree char *wanted = g_strdup_printf(
        "Auto-discovered policy allow rule broadens the default baseline: wide (%s; "
        "sandhost policy show --profile interactive-dev prints its rules)",
        RULES[i].why);
    g_test_message("%s", RULES[i].rule);
    discovery_refused(project, "interactive-dev", path, NULL, wanted);
  }
}

static void test_strict_profile_covers_nothing_else(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(
      project, NAME,
      "{\"rules\": {\"allow\": [{\"rule_id\": \"use\", \"capability\": \"sandbox.execute\"}]}}");
  discovery_refused(project, "strict-production", path, NULL,
                    "Auto-discovered policy allow rule broadens the default baseline: use (no rule "
                    "of the profile allows all of sandbox.execute; sandhost policy show --profile "
                    "strict-production prints its rules)");
}

/* Where nothing is allowed that no rule names, asking about it is more: a person, or --yes, may say yes. */
static void test_strict_profile_asks_about_nothing_else(Project *project, gconstpointer data) {
  (void)data;
  static const char *const WIDE[][2] = {
      {"*", "\"capability\": \"*\""},
      {"process.exec", "\"capability\": \"process.exec\""},
      {"process.exec", "\"capability\": \"process.exec\", \"command\": {\"program\": \"ls\"}"},
      {"telemetry.*", "\"capability\": \"telemetry.*\""}};
  for (gsize i = 0; i < G_N_ELEMENTS(WIDE); i++) {
    g_autofree char *text =
        g_strdup_printf("{\"rules\": {\"ask\": [{\"rule_id\": \"more\", %s}]}}", WIDE[i][1]);
    g_autofree char *wanted =
        g_strdup_printf("Auto-discovered policy ask rule broadens the default baseline: more (no "
                        "rule of the profile allows all of %s; sandhost policy show --profile "
                        "strict-production prints its rules)",
                        WIDE[i][0]);
    g_autofree char *path = write_file(project, NAME, text);
    g_test_message("%s", WIDE[i][1]);
    discovery_refused(project, "strict-production", path, NULL, wanted);
  }
  put_file(project, NAME,
           "{\"rules\": {\"ask\": [{\"rule_id\": \"q\", \"capability\": "
           "\"telemetry.governance.read\"}]}}");
  g_autoptr(Policy) policy = discover(project, "strict-production");
  decides(policy, "telemetry.governance.read", NULL, "ask matched_ask q");
  decides(policy, "process.exec", "sandbox", "deny unknown_capability ");
  /* Elsewhere what no rule names is asked about, or allowed, anyway. */
  put_file(project, NAME,
           "{\"mode\": \"strict\", \"rules\": {\"ask\": [{\"rule_id\": \"q\", \"capability\": "
           "\"*\"}]}}");
  g_autoptr(Policy) other = discover(project, "interactive-dev");
  decides(other, "other", NULL, "ask matched_ask q");
}

/* One that cannot be looked at is not none. */
static void test_discovered_unreachable(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *folder = g_build_filename(project->root, ".omnicoreagent", NULL);
  g_autofree char *path = g_build_filename(folder, "policy.json", NULL);
  g_assert_cmpint(symlink(".omnicoreagent", folder), ==, 0);
  discovery_refused(project, "interactive-dev", path, NULL, LINK);
  g_assert_cmpint(g_remove(folder), ==, 0);
  /* What is in the way of the folder is no policy. */
  put_file(project, ".omnicoreagent", "x");
  g_autoptr(Policy) policy = discover(project, "interactive-dev");
  g_assert_cmpstr(policy_profile(policy), ==, "interactive-dev");
}

static void test_discovered_link(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *file = write_file(project, "etc/policy.json", GOOD);
  g_autofree char *link = place(project, NAME);
  g_assert_cmpint(symlink(file, link), ==, 0);
  discovery_refused(project, "interactive-dev", link, NULL, LINK);
  g_assert_cmpint(g_remove(link), ==, 0);
  g_assert_cmpint(symlink("nowhere", link), ==, 0);
  discovery_refused(project, "interactive-dev", link, NULL, LINK);
  g_assert_cmpint(g_remove(link), ==, 0);
  /* Nor may its folder be one. */
  g_autofree char *folder = g_build_filename(project->root, ".omnicoreagent", NULL);
  g_autofree char *through = g_build_filename(folder, "policy.json", NULL);
  g_assert_cmpint(symlink("etc", folder), ==, 0);
  discovery_refused(project, "interactive-dev", through, NULL, LINK);
}

/* The root itself may be reached through links. */
static void test_discovered_below_a_linked_root(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *file = write_file(project, "real/" DEEP_NAME, GOOD);
  Project linked = {.root = g_build_filename(project->root, "link", NULL)};
  g_assert_cmpint(symlink("real", linked.root), ==, 0);
  g_autoptr(Policy) policy = discover(&linked, "interactive-dev");
  g_assert_cmpint(policy_mode(policy), ==, MODE_STRICT);
  g_assert_cmpstr(policy_file(policy), ==, file);
  g_free(linked.root);
}

static void test_discovered_in_an_agents_folder(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, NAME, GOOD);
  const char *const dirs[] = {project->root, NULL};
  discovery_refused(project, "interactive-dev", path, dirs, WRITABLE);
}

static void test_discovered_is_checked(Project *project, gconstpointer data) {
  (void)data;
  g_autofree char *path = write_file(project, NAME, "{\"mode\": \"lax\"}");
  discovery_refused(project, "interactive-dev", path, NULL,
                    "Invalid policy file: %s ('lax' is not a valid PolicyMode)");
  g_autofree char *again =
      write_file(project, NAME,
                 "{\"rules\": {\"ask\": [{\"rule_id\": \"deny_raw_secret_read\", \"capability\": "
                 "\"x\"}]}}");
  discovery_refused(project, "interactive-dev", again, NULL,
                    "Invalid policy file: %s (Duplicate policy rule_id: deny_raw_secret_read)");
  g_autofree char *no_object = write_file(project, NAME, "[]");
  discovery_refused(project, "interactive-dev", no_object, NULL,
                    "Policy file must contain an object at the top level.");
}

/* ---- Who may write it ------------------------------------------------------------------------- */

static void test_is_below(Project *project, gconstpointer data) {
  (void)data;
  g_autoptr(GError) error = NULL;
  g_autofree char *path = write_file(project, "etc/rules/policy.json", GOOD);
  g_autofree char *folder = g_build_filename(project->root, "etc", NULL);
  g_autofree char *beside = g_build_filename(project->root, "et", NULL);
  g_autofree char *link = g_build_filename(project->root, "link", NULL);
  g_autofree char *dotted = g_build_filename(project->root, "x", "..", "etc", NULL);
  g_assert_cmpint(symlink("etc", link), ==, 0);
  g_autoptr(Policy) policy = policy_load(path, project->root, NULL, &error);
  g_assert_no_error(error);
  g_assert_true(policy_file_is_below(policy, folder));
  g_assert_true(policy_file_is_below(policy, link));
  g_assert_true(policy_file_is_below(policy, dotted));
  g_assert_true(policy_file_is_below(policy, path));
  g_assert_true(policy_file_is_below(policy, "/"));
  g_assert_false(policy_file_is_below(policy, beside));
  g_autoptr(Policy) in_place = fixture_policy("{}");
  g_assert_false(policy_file_is_below(in_place, "/"));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
  g_test_add("/governance/file/" name, Project, NULL, set_up, function, tear_down)
  ADD("loads", test_loads);
  ADD("root/slash", test_root_with_a_slash_behind_it);
  ADD("root/outside", test_outside_the_root);
  ADD("root/prefix", test_root_is_no_prefix);
  ADD("root/link-out", test_link_out_of_the_root);
  ADD("root/link-within", test_link_within_the_root);
  ADD("root/is-a-link", test_root_that_is_a_link);
  ADD("missing", test_missing);
  ADD("missing/dangling", test_dangling_link);
  ADD("agent/names", test_names_of_agent_folders);
  ADD("agent/names-elsewhere", test_such_names_elsewhere);
  ADD("agent/folders", test_agents_own_folders);
  ADD("agent/link", test_link_in_an_agents_folder);
  ADD("extension", test_extensions);
  ADD("unreadable", test_unreadable);
  ADD("too-long", test_too_long);
  ADD("not-json", test_not_json);
  ADD("not-json/in-full", test_not_json_in_full);
  ADD("no-object", test_no_object);
  ADD("bad-content", test_bad_content);
  ADD("hash", test_hash_is_of_the_content_only);
  ADD("discovered/nothing", test_nothing_discovered);
  ADD("discovered/narrows", test_discovered_narrows);
  ADD("discovered/stricter", test_discovered_is_stricter);
  ADD("discovered/allow", test_discovered_allow_replaces);
  ADD("discovered/broadens", test_discovered_broadens);
  ADD("discovered/strict", test_strict_profile_covers_nothing_else);
  ADD("discovered/strict-asks", test_strict_profile_asks_about_nothing_else);
  ADD("discovered/unreachable", test_discovered_unreachable);
  ADD("discovered/link", test_discovered_link);
  ADD("discovered/linked-root", test_discovered_below_a_linked_root);
  ADD("discovered/agent", test_discovered_in_an_agents_folder);
  ADD("discovered/checked", test_discovered_is_checked);
  ADD("below", test_is_below);
#undef ADD
  return g_test_run();
}
