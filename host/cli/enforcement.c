/* SPDX-License-Identifier: Apache-2.0 */
/* enforcement.c: the settings of the contract, in the order in which they are shown. */
#include "cli/enforcement.h"

const Enforcement ENFORCEMENT[ENFORCEMENT_COUNT] = {
    {SANDHOST_SETTING_NETWORK_OFF, "net-off", "network_off", "network off"},
    {SANDHOST_SETTING_NETWORK_ON, "net-on", "network_on", "network on"},
    {SANDHOST_SETTING_ALLOWED_HOSTS, "allow", "allowed_hosts", "a network host allowlist"},
    {SANDHOST_SETTING_DENIED_HOSTS, "deny", "denied_hosts", "blocking named hosts"},
    {SANDHOST_SETTING_IMAGE, "image", "image", "an image"},
    {SANDHOST_SETTING_CPU, "cpu", "cpu", "a CPU limit"},
    {SANDHOST_SETTING_MEMORY, "memory", "memory", "a memory limit"},
    {SANDHOST_SETTING_PIDS, "pids", "pids", "a process limit"},
    {SANDHOST_SETTING_GPU, "gpu", "gpu", "a GPU"},
    {SANDHOST_SETTING_LIFETIME, "life", "lifetime", "a sandbox lifetime"},
    {SANDHOST_SETTING_MOUNT, "mount", "mount", "a workspace mount"},
    {SANDHOST_SETTING_SECRETS, "secrets", "secrets", "delivering secrets"},
    {SANDHOST_SETTING_ENVIRONMENT, "env", "environment", "plain environment"},
    {SANDHOST_SETTING_SNAPSHOT, "snap", "snapshot", "snapshots"},
    {SANDHOST_SETTING_FILES, "files", "files", "hiding this machine's files"},
};

const char *enforcement_word(guint32 level) {
  if (level >= SANDHOST_LEVEL_ENFORCED) {
    return "yes";
  }
  if (level >= SANDHOST_LEVEL_CHECKED) {
    return "checked";
  }
  return level >= SANDHOST_LEVEL_FORWARDED ? "forward" : "-";
}

guint32 enforcement_declared(const struct sandhost_provider *table, guint32 setting) {
  if (table->enforces_count == 0) {
    return SANDHOST_LEVEL_ENFORCED;
  }
  gboolean can_be = setting != SANDHOST_SETTING_SECRETS; /* nothing carries one */
  for (gsize i = 0; can_be && i < table->enforces_count; i++) {
    if (table->enforces[i].setting == setting) {
      return table->enforces[i].level;
    }
  }
  return SANDHOST_LEVEL_NONE;
}
