/* SPDX-License-Identifier: Apache-2.0 */
/* contract.c: a manifest is refused for the first thing that it asks for and the provider does not keep. */
#include "base/error.h"
#include "provider/sandbox.h"

typedef struct {
  guint32 setting;
  gboolean (*wanted)(const Manifest *manifest);
  const char *words;
  const char *advice; /* begins with the provider's name where own is TRUE */
  gboolean own;
} Row;

static gboolean wants_image(const Manifest *manifest) {
  return manifest->image != NULL;
}

static gboolean wants_allowed_hosts(const Manifest *manifest) {
  return manifest->allowed_hosts && manifest->allowed_hosts[0];
}

static gboolean wants_denied_hosts(const Manifest *manifest) {
  return manifest->denied_hosts && manifest->denied_hosts[0];
}

static gboolean wants_network_off(const Manifest *manifest) {
  return !manifest->network;
}

static gboolean wants_network_on(const Manifest *manifest) {
  return manifest->network;
}

static gboolean wants_mount(const Manifest *manifest) {
  return manifest->mount != NULL;
}

static gboolean wants_secrets(const Manifest *manifest) {
  return manifest->secret_refs && manifest->secret_refs[0];
}

static gboolean wants_cpu(const Manifest *manifest) {
  return manifest->cpu_millis != 0;
}

static gboolean wants_memory(const Manifest *manifest) {
  return manifest->memory_bytes != 0;
}

static gboolean wants_gpu(const Manifest *manifest) {
  return manifest->gpu;
}

static gboolean wants_lifetime(const Manifest *manifest) {
  return manifest->lifetime_seconds != 0;
}

static gboolean wants_environment(const Manifest *manifest) {
  return manifest->environment_names && manifest->environment_names[0];
}

/* In the order of refusal. */
static const Row ROWS[] = {
    {SANDHOST_SETTING_IMAGE, wants_image, "an image (image)",
     "runs on the host and has no image; remove it, or use a provider that runs one", TRUE},
    {SANDHOST_SETTING_ALLOWED_HOSTS, wants_allowed_hosts,
     "a network host allowlist (allowed_hosts)",
     "use network_policy default 'deny' or 'allow', or a provider that enforces one (modal, http)",
     FALSE},
    {SANDHOST_SETTING_DENIED_HOSTS, wants_denied_hosts, "blocking named hosts (denied_hosts)",
     "use network_policy default 'deny' with allowed_hosts on a provider that enforces them, or "
     "the http provider with a service that does",
     FALSE},
    {SANDHOST_SETTING_NETWORK_OFF, wants_network_off, "network off",
     "runs on the host and cannot cut its network; set network_policy default 'allow' with no "
     "host lists, or use an isolating provider such as docker",
     TRUE},
    {SANDHOST_SETTING_NETWORK_ON, wants_network_on, "network on",
     "leave network_policy default at 'deny', or use a provider that gives the network", FALSE},
    {SANDHOST_SETTING_MOUNT, wants_mount, "a workspace mount (workspace_mount)",
     "use the workspace bridge, which copies files in and out on every provider, or the docker "
     "provider",
     FALSE},
    {SANDHOST_SETTING_SECRETS, wants_secrets, "delivering secrets (environment.secret_refs)",
     "put a value the command may see in environment.plain, or keep the secret out of the sandbox "
     "and call the service from a tool instead",
     FALSE},
    {SANDHOST_SETTING_CPU, wants_cpu, "a CPU limit (resources.cpu)",
     "leave it unset, or use a provider that applies it", FALSE},
    {SANDHOST_SETTING_MEMORY, wants_memory, "a memory limit (resources.memory)",
     "leave it unset, or use a provider that applies it", FALSE},
    {SANDHOST_SETTING_GPU, wants_gpu, "a GPU (resources.gpu)",
     "leave it unset, or use the http provider with a service that provides one", FALSE},
    {SANDHOST_SETTING_LIFETIME, wants_lifetime, "a sandbox lifetime (resources.timeout_seconds)",
     "set the provider's own timeout_seconds option in sandbox_config instead", FALSE},
    {SANDHOST_SETTING_ENVIRONMENT, wants_environment, "plain environment (environment.plain)",
     "leave it empty, or use a provider that sets it", FALSE},
};

gboolean provider_instance_check(const ProviderInstance *instance, const Manifest *manifest,
                                 GError **error) {
  const char *name = provider_instance_name(instance);
  for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
    const Row *row = &ROWS[i];
    if (!row->wanted(manifest) ||
        provider_instance_level(instance, row->setting) != SANDHOST_LEVEL_NONE) {
      continue;
    }
    const char *why = provider_instance_lowered(instance, row->setting);
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG,
                "The %s sandbox does not enforce %s: %s%s%s%s%s%s", name, row->words,
                row->own ? name : "", row->own ? " " : "", row->advice, why ? " (" : "",
                why ? why : "", why ? ")" : "");
    return FALSE;
  }
  return TRUE;
}
