/* SPDX-License-Identifier: Apache-2.0 */
/* providers.c: sandhost providers, which there are and what each enforces; or one of them with its options. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/enforcement.h"

static void print_one(ProviderRegistry *registry, const char *name, const char *file) {
  g_autoptr(GError) error = NULL;
  const Provider *provider = provider_registry_load(registry, name, &error);
  if (!provider) {
    printf("%-12s refused: %s\n", name, error->message);
    return;
  }
  const struct sandhost_provider *table = provider_table(provider);
  printf("%-12s %-9s", name, table->version);
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    printf(" %-*s",
           (int)strlen(ENFORCEMENT[i].heading) < 7 ? 7 : (int)strlen(ENFORCEMENT[i].heading),
           table->enforces_count == 0
               ? "trusted"
               : enforcement_word(enforcement_declared(table, ENFORCEMENT[i].setting)));
  }
  printf(" %s\n", file);
}

static int list_all(ProviderRegistry *registry) {
  g_auto(GStrv) names = NULL;
  g_auto(GStrv) files = NULL;
  provider_registry_list(registry, &names, &files);
  printf("%-12s %-9s", "NAME", "VERSION");
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    printf(" %-7s", ENFORCEMENT[i].heading);
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
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    guint32 setting = ENFORCEMENT[i].setting;
    guint32 level = instance ? provider_instance_level(instance, setting)
                             : enforcement_declared(provider_table(provider), setting);
    const char *why = instance ? provider_instance_lowered(instance, setting) : NULL;
    printf("  %-28s %s%s%s%s\n", ENFORCEMENT[i].words,
           strcmp(enforcement_word(level), "-") ? enforcement_word(level) : "no", why ? " (" : "",
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
