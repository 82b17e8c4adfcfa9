/* SPDX-License-Identifier: Apache-2.0 */
/* providers.c: sandhost providers, which there are and what each enforces; or one of them with its options. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static const struct {
  guint32 setting;
  const char *heading; /* of a column */
  const char *words;
} SETTINGS[] = {
    {SANDHOST_SETTING_NETWORK_OFF, "net-off", "network off"},
    {SANDHOST_SETTING_NETWORK_ON, "net-on", "network on"},
    {SANDHOST_SETTING_ALLOWED_HOSTS, "allow", "a network host allowlist"},
    {SANDHOST_SETTING_DENIED_HOSTS, "deny", "blocking named hosts"},
    {SANDHOST_SETTING_IMAGE, "image", "an image"},
    {SANDHOST_SETTING_CPU, "cpu", "a CPU limit"},
    {SANDHOST_SETTING_MEMORY, "memory", "a memory limit"},
    {SANDHOST_SETTING_PIDS, "pids", "a process limit"},
    {SANDHOST_SETTING_GPU, "gpu", "a GPU"},
    {SANDHOST_SETTING_LIFETIME, "life", "a sandbox lifetime"},
    {SANDHOST_SETTING_MOUNT, "mount", "a workspace mount"},
    {SANDHOST_SETTING_SECRETS, "secrets", "delivering secrets"},
    {SANDHOST_SETTING_ENVIRONMENT, "env", "plain environment"},
    {SANDHOST_SETTING_SNAPSHOT, "snap", "snapshots"},
    {SANDHOST_SETTING_FILES, "files", "hiding this machine's files"},
};

static const char *level_word(guint32 level) {
  if (level >= SANDHOST_LEVEL_ENFORCED) {
    return "yes";
  }
  if (level >= SANDHOST_LEVEL_CHECKED) {
    return "checked";
  }
  return level >= SANDHOST_LEVEL_FORWARDED ? "forward" : "-";
}

/* As the code declares it; what this machine lowers is told by providers NAME. */
static guint32 declared_level(const struct sandhost_provider *table, guint32 setting) {
  if (table->enforces_count == 0) {
    return SANDHOST_LEVEL_ENFORCED;
  }
  for (gsize i = 0; i < table->enforces_count; i++) {
    if (table->enforces[i].setting == setting) {
      return table->enforces[i].level;
    }
  }
  return SANDHOST_LEVEL_NONE;
}

static void print_one(ProviderRegistry *registry, const char *name, const char *file) {
  g_autoptr(GError) error = NULL;
  const Provider *provider = provider_registry_load(registry, name, &error);
  if (!provider) {
    printf("%-12s refused: %s\n", name, error->message);
    return;
  }
  const struct sandhost_provider *table = provider_table(provider);
  printf("%-12s %-9s", name, table->version);
  for (gsize i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
    printf(" %-*s", (int)strlen(SETTINGS[i].heading) < 7 ? 7 : (int)strlen(SETTINGS[i].heading),
           table->enforces_count == 0 ? "trusted"
                                      : level_word(declared_level(table, SETTINGS[i].setting)));
  }
  printf(" %s\n", file);
}

static int list_all(ProviderRegistry *registry) {
  g_auto(GStrv) names = NULL;
  g_auto(GStrv) files = NULL;
  provider_registry_list(registry, &names, &files);
  printf("%-12s %-9s", "NAME", "VERSION");
  for (gsize i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
    printf(" %-7s", SETTINGS[i].heading);
  }
  printf(" FILE\n");
  for (gsize i = 0; names[i]; i++) {
    print_one(registry, names[i], files[i]);
  }
  return 0;
}

static const char *type_word(guint32 type) {
  switch (type) {
  case SANDHOST_OPTION_BOOLEAN:
    return "true or false";
  case SANDHOST_OPTION_INTEGER:
    return "whole number";
  case SANDHOST_OPTION_SIZE:
    return "size";
  case SANDHOST_OPTION_LIST:
    return "list";
  case SANDHOST_OPTION_MAP:
    return "object";
  default:
    return "text";
  }
}

static void print_options(const struct sandhost_provider *table) {
  printf("\noptions (governance_config.sandbox_config.options):\n");
  if (table->option_count == 0) {
    printf("  none\n");
  }
  for (gsize i = 0; i < table->option_count; i++) {
    const struct sandhost_option *option = &table->options[i];
    printf("  %-26s %s\n", option->name, option->help);
    printf("  %-26s %s%s, default %s", "", type_word(option->type),
           option->flags & SANDHOST_OPTION_REQUIRED ? ", required" : "",
           option->fallback ? option->fallback : "none");
    if (option->choices) {
      printf(", one of %s", option->choices);
    }
    if (option->environment) {
      printf(", else $%s", option->environment);
    }
    printf("\n");
  }
}

/* Opens the provider without options to learn what this machine gives it; one with required options cannot be. */
static void print_enforcement(ProviderRegistry *registry, Provider *provider) {
  g_autoptr(ProviderInstance) instance = provider_instance_open(registry, provider, NULL, NULL);
  printf("\nenforces%s:\n", instance ? " here" : "");
  for (gsize i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
    guint32 setting = SETTINGS[i].setting;
    guint32 level = instance ? provider_instance_level(instance, setting)
                             : declared_level(provider_table(provider), setting);
    const char *why = instance ? provider_instance_lowered(instance, setting) : NULL;
    printf("  %-28s %s%s%s%s\n", SETTINGS[i].words,
           strcmp(level_word(level), "-") ? level_word(level) : "no", why ? " (" : "",
           why ? why : "", why ? ")" : "");
  }
}

static int tell_one(ProviderRegistry *registry, const char *name) {
  g_autoptr(GError) error = NULL;
  Provider *provider = provider_registry_load(registry, name, &error);
  if (!provider) {
    return cli_fail(error);
  }
  const struct sandhost_provider *table = provider_table(provider);
  const char *file = provider_file(provider);
  printf("%s %s: %s\n", table->name, table->version, table->summary);
  printf("file: %s\n", file ? file : "built in");
  printf("commands run: %s\n", table->flags & SANDHOST_PROVIDER_HOST_SURFACE
                                   ? "on this machine, not isolated"
                                   : "in a sandbox");
  print_options(table);
  print_enforcement(registry, provider);
  return 0;
}

int cli_providers(int argc, char **argv) {
  const GOptionEntry entries[] = {{0}};
  if (!cli_parse(&argc, &argv, "[NAME]",
                 "Lists the sandbox providers and what each enforces; with NAME, its options and "
                 "what it enforces "
                 "on this machine.",
                 entries)) {
    return EXIT_USAGE;
  }
  if (argc > 2) {
    cli_complain("providers takes one name, got '%s' too", argv[2]);
    return EXIT_USAGE;
  }
  g_autoptr(ProviderRegistry) registry = provider_registry_new();
  return argc == 2 ? tell_one(registry, argv[1]) : list_all(registry);
}
