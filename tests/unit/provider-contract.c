/* SPDX-License-Identifier: Apache-2.0 */
/* provider-contract.c: what a provider enforces against what a manifest asks for, word by word. */
#include "linked-provider.h"
#include "provider-testing.h"

/* A provider that declares to enforce one thing that no manifest asks for, and so nothing. */
static const struct sandhost_enforces bare_enforces[] = {
    {SANDHOST_SETTING_PIDS, SANDHOST_LEVEL_ENFORCED},
};
static const struct sandhost_enforces net_enforces[] = {
    {SANDHOST_SETTING_NETWORK_OFF, SANDHOST_LEVEL_FORWARDED},
    {SANDHOST_SETTING_NETWORK_ON, SANDHOST_LEVEL_ENFORCED},
};

#define TABLE(NAME, ENFORCES)                                                                      \
  {                                                                                                \
    LINKED_PROVIDER(NAME, "for a test"), .enforces = (ENFORCES),                                   \
                                         .enforces_count = G_N_ELEMENTS(ENFORCES)                  \
  }

static const struct sandhost_provider *bare_entry(const struct sandhost_host *host) {
  static const struct sandhost_provider table = TABLE("bare", bare_enforces);
  (void)host;
  return &table;
}

static const struct sandhost_provider *net_entry(const struct sandhost_host *host) {
  static const struct sandhost_provider table = TABLE("net", net_enforces);
  (void)host;
  return &table;
}

static ProviderInstance *open_linked(ProviderRegistry *registry, const char *name,
                                     ProviderEntry entry) {
  g_autoptr(GError) error = NULL;
  g_assert_true(provider_registry_add_entry(registry, name, entry, &error));
  Provider *provider = provider_registry_load(registry, name, &error);
  g_assert_no_error(error);
  ProviderInstance *instance = provider_instance_open(registry, provider, NULL, &error);
  g_assert_no_error(error);
  return instance;
}

static void assert_refused(const char *name, ProviderEntry entry, const char *json,
                           const char *text) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance = open_linked(registry, name, entry);
  g_autoptr(Manifest) manifest = manifest_of(json);
  GError *error = NULL;
  g_assert_false(provider_instance_check(instance, manifest, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_assert_cmpstr(error->message, ==, text);
  g_error_free(error);
}

static void test_image(void) {
  assert_refused(
      "bare", bare_entry, "{\"image\":\"x\"}",
      "The bare sandbox does not enforce an image (image): bare runs on the host and has "
      "no image; remove it, or use a provider that runs one");
}

static void test_allowed_hosts(void) {
  assert_refused("net", net_entry, "{\"network_policy\":{\"allowed_hosts\":[\"a.b\"]}}",
                 "The net sandbox does not enforce a network host allowlist (allowed_hosts): use "
                 "network_policy default 'deny' or 'allow', or a provider that enforces one "
                 "(modal, http)");
}

static void test_denied_hosts(void) {
  assert_refused("net", net_entry, "{\"network_policy\":{\"denied_hosts\":[\"a.b\"]}}",
                 "The net sandbox does not enforce blocking named hosts (denied_hosts): use "
                 "network_policy default 'deny' with allowed_hosts on a provider that enforces "
                 "them, or the http provider with a service that does");
}

static void test_network_off(void) {
  assert_refused("bare", bare_entry, "{}",
                 "The bare sandbox does not enforce network off: bare runs on the host and cannot "
                 "cut its network; set network_policy default 'allow' with no host lists, or use "
                 "an isolating provider such as docker");
}

static void test_network_on(void) {
  assert_refused("bare", bare_entry, NULL,
                 "The bare sandbox does not enforce network on: leave network_policy default at "
                 "'deny', or use a provider that gives the network");
}

static void test_mount(void) {
  assert_refused("net", net_entry,
                 "{\"workspace_mount\":{\"source\":\"/srv/x\",\"target\":\"/workspace\"}}",
                 "The net sandbox does not enforce a workspace mount (workspace_mount): use the "
                 "workspace bridge, which copies files in and out on every provider, or the docker "
                 "provider");
}

static void test_secrets(void) {
  assert_refused("net", net_entry, "{\"environment\":{\"secret_refs\":[\"a\"]}}",
                 "The net sandbox does not enforce delivering secrets (environment.secret_refs): "
                 "put a value the command may see in environment.plain, or keep the secret out of "
                 "the sandbox and call the service from a tool instead");
}

static void test_resources(void) {
  assert_refused("net", net_entry, "{\"resources\":{\"cpu\":\"2\",\"memory\":\"1g\"}}",
                 "The net sandbox does not enforce a CPU limit (resources.cpu): leave it unset, or "
                 "use a provider that applies it");
  assert_refused("net", net_entry, "{\"resources\":{\"memory\":\"1g\",\"gpu\":true}}",
                 "The net sandbox does not enforce a memory limit (resources.memory): leave it "
                 "unset, or use a provider that applies it");
  assert_refused("net", net_entry, "{\"resources\":{\"gpu\":true,\"timeout_seconds\":5}}",
                 "The net sandbox does not enforce a GPU (resources.gpu): leave it unset, or use "
                 "the http provider with a service that provides one");
  assert_refused("net", net_entry, "{\"resources\":{\"timeout_seconds\":5}}",
                 "The net sandbox does not enforce a sandbox lifetime (resources.timeout_seconds): "
                 "set the provider's own timeout_seconds option in sandbox_config instead");
}

static void test_environment(void) {
  assert_refused("net", net_entry, "{\"environment\":{\"plain\":{\"A\":\"1\"}}}",
                 "The net sandbox does not enforce plain environment (environment.plain): leave it "
                 "empty, or use a provider that sets it");
}

static void test_kept(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance = open_linked(registry, "net", net_entry);
  g_autoptr(Manifest) off = manifest_of("{}");
  g_autoptr(Manifest) on = manifest_of(NULL);
  g_autoptr(GError) error = NULL;
  g_assert_true(provider_instance_check(instance, off, &error));
  g_assert_true(provider_instance_check(instance, on, &error));
  g_assert_no_error(error);
  g_assert_cmpuint(provider_instance_level(instance, SANDHOST_SETTING_NETWORK_OFF), ==,
                   SANDHOST_LEVEL_FORWARDED);
}

static void test_nothing_declared_is_trusted(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance =
      provider_instance_open(registry, provider_registry_load(registry, "good", NULL), NULL, NULL);
  g_autoptr(Manifest) manifest = manifest_of("{\"image\":\"x\",\"resources\":{\"gpu\":true}}");
  g_autoptr(GError) error = NULL;
  g_assert_true(provider_instance_check(instance, manifest, &error));
  g_assert_no_error(error);
  g_assert_cmpuint(provider_instance_level(instance, SANDHOST_SETTING_GPU), ==,
                   SANDHOST_LEVEL_ENFORCED);
}

static void test_lowered(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(JsonObject) options = json_object_new_object();
  json_add_text(options, "base_url", "x");
  g_autoptr(ProviderInstance) instance = provider_instance_open(
      registry, provider_registry_load(registry, "lowered", NULL), options, NULL);
  g_assert_cmpuint(provider_instance_level(instance, SANDHOST_SETTING_MEMORY), ==,
                   SANDHOST_LEVEL_NONE);
  g_assert_cmpuint(provider_instance_level(instance, SANDHOST_SETTING_NETWORK_ON), ==,
                   SANDHOST_LEVEL_ENFORCED);
  g_assert_cmpuint(provider_instance_level(instance, SANDHOST_SETTING_CPU), ==,
                   SANDHOST_LEVEL_FORWARDED);
  g_assert_cmpstr(provider_instance_lowered(instance, SANDHOST_SETTING_MEMORY), ==,
                  "there is no memory controller");
  g_assert_null(provider_instance_lowered(instance, SANDHOST_SETTING_CPU));
  g_autoptr(Manifest) manifest = manifest_of("{\"resources\":{\"memory\":\"1g\"}}");
  GError *error = NULL;
  g_assert_false(provider_instance_check(instance, manifest, &error));
  g_assert_cmpstr(error->message, ==,
                  "The lowered sandbox does not enforce a memory limit (resources.memory): leave "
                  "it unset, or use a provider that applies it (there is no memory controller)");
  g_error_free(error);
}

static void test_create_checks_again(void) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance = open_linked(registry, "bare", bare_entry);
  g_autoptr(Manifest) manifest = manifest_of("{}");
  const CallScope scope = scope_of(CLOCK_SECOND);
  GError *error = NULL;
  g_assert_null(sandbox_create(instance, manifest, "k", "r", &scope, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG);
  g_error_free(error);
}

/* ---- Mounts (behaviour 13.3) -------------------------------------------------------------------------- */

static void assert_mount(const char *source, const char *text) {
  g_autoptr(ProviderRegistry) registry = zoo_registry();
  g_autoptr(ProviderInstance) instance =
      provider_instance_open(registry, provider_registry_load(registry, "good", NULL), NULL, NULL);
  g_autofree char *json = g_strdup_printf(
      "{\"workspace_mount\":{\"source\":\"%s\",\"target\":\"/workspace\"}}", source);
  g_autoptr(Manifest) manifest = manifest_of(json);
  const CallScope scope = scope_of(CLOCK_SECOND);
  GError *error = NULL;
  g_assert_null(sandbox_create(instance, manifest, "k", "r", &scope, &error));
  g_assert_cmpstr(error->message, ==, text);
  g_error_free(error);
}

static void test_mounts_refused(void) {
  assert_mount("/", "/ must not be mounted into a sandbox: it is the host root");
  assert_mount("/etc", "/etc must not be mounted into a sandbox: it is inside /etc");
  assert_mount("/var", "/var must not be mounted into a sandbox: it contains /var/run");
  assert_mount("https://x/y",
               "https://x/y must not be mounted: the Good sandbox mounts local paths only");
}

static void test_mount_through_a_link(void) {
  char *folder = folder_new();
  g_autofree char *link = g_build_filename(folder, "harmless", NULL);
  g_assert_cmpint(symlink("/etc", link), ==, 0);
  g_autofree char *text =
      g_strdup_printf("%s must not be mounted into a sandbox: it is inside /etc", link);
  assert_mount(link, text);
  folder_remove(folder);
}

static void test_mount_with_credentials(void) {
  char *folder = folder_new();
  g_autofree char *inside = g_build_filename(folder, ".ssh", NULL);
  g_mkdir(inside, 0700);
  g_autofree char *holds =
      g_strdup_printf("%s must not be mounted into a sandbox: it contains %s", folder, inside);
  g_autofree char *is = g_strdup_printf(
      "%s must not be mounted into a sandbox: it is or is inside a credential directory", inside);
  assert_mount(folder, holds);
  assert_mount(inside, is);
  folder_remove(folder);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define TEST(name, function) g_test_add_func("/provider/contract/" name, function)
  TEST("image", test_image);
  TEST("allowed-hosts", test_allowed_hosts);
  TEST("denied-hosts", test_denied_hosts);
  TEST("network-off", test_network_off);
  TEST("network-on", test_network_on);
  TEST("mount", test_mount);
  TEST("secrets", test_secrets);
  TEST("resources", test_resources);
  TEST("environment", test_environment);
  TEST("kept", test_kept);
  TEST("nothing-declared-is-trusted", test_nothing_declared_is_trusted);
  TEST("lowered", test_lowered);
  TEST("create-checks-again", test_create_checks_again);
  TEST("mounts-refused", test_mounts_refused);
  TEST("mount-through-a-link", test_mount_through_a_link);
  TEST("mount-with-credentials", test_mount_with_credentials);
  return g_test_run();
}
