/* SPDX-License-Identifier: Apache-2.0 */
/* providers.c: sandhost providers, which there are and what each enforces; or one of them with its options. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/apart.h"
#include "cli/cli.h"
#include "cli/enforcement.h"
#include "provider/text.h"

/* One of them, and where what is told of it goes. */
typedef struct {
  ProviderRegistry *registry;
  const char *name;
  const char *file; /* NULL: not looked for yet */
  GString *text;
} Subject;

static void add(const Subject *subject, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void add(const Subject *subject, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  g_string_append_vprintf(subject->text, format, arguments);
  va_end(arguments);
}

/* {text}, or {error, usage}: what cannot be told, and whether that is the caller's own mistake. */
static JsonObject *answer(const Subject *subject, const GError *error) {
  JsonObject *object = json_object_new_object();
  json_add_text(object, "text", error ? NULL : subject->text->str);
  json_add_text(object, "error", error ? error->message : NULL);
  json_add_bool(object, "usage",
                error && g_error_matches(error, SANDHOST_ERROR, SANDHOST_ERROR_CONFIG));
  return object;
}

/* ---- The list ---------------------------------------------------------------------------------------------------- */

/* The heading's width, at least 7. */
static int column_width(gsize index) {
  return MAX(7, (int)strlen(ENFORCEMENT[index].heading));
}

static JsonObject *look_for_row(void *user) {
  const Subject *subject = user;
  g_autoptr(GError) error = NULL;
  const Provider *provider = provider_registry_load(subject->registry, subject->name, &error);
  apart_loaded();
  if (!provider) {
    return answer(subject, error);
  }
  const struct sandhost_provider *table = provider_table(provider);
  add(subject, "%-12s %-9s", subject->name, table->version);
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    add(subject, " %-*s", column_width(i),
        table->enforces_count == 0
            ? "trusted"
            : enforcement_word(enforcement_declared(table, ENFORCEMENT[i].setting)));
  }
  add(subject, " %s", subject->file);
  return answer(subject, NULL);
}

static void print_one(ProviderRegistry *registry, const char *name, const char *file) {
  g_autoptr(GString) text = g_string_new(NULL);
  Subject subject = {.registry = registry, .name = name, .file = file, .text = text};
  const Apart apart = {.look = look_for_row, .user = &subject};
  g_autofree char *why = NULL;
  g_autoptr(JsonObject) found = apart_look(&apart, &why);
  const char *error = json_get_text(found, "error");
  if (!found) {
    printf("%-12s refused: %s: %s\n", name, file, why);
  } else if (error) {
    printf("%-12s refused: %s\n", name, error);
  } else {
    printf("%s\n", json_get_text(found, "text"));
  }
}

/* Whoever looks for one that is not in the list finds it here. */
static void print_misnamed(ProviderRegistry *registry) {
  g_auto(GStrv) files = provider_registry_misnamed(registry);
  for (gsize i = 0; files[i]; i++) {
    g_autofree char *shown = text_clean_string(files[i], TEXT_MAX_BYTES);
    g_autofree char *fault = provider_registry_name_fault(files[i]);
    printf("%-12s refused: provider file %s refused: %s\n", "-", shown, fault);
  }
}

static int list_all(ProviderRegistry *registry) {
  g_auto(GStrv) names = NULL;
  g_auto(GStrv) files = NULL;
  provider_registry_list(registry, &names, &files);
  printf("%-12s %-9s", "NAME", "VERSION");
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    printf(" %-*s", column_width(i), ENFORCEMENT[i].heading);
  }
  printf(" FILE\n");
  for (gsize i = 0; names[i]; i++) {
    print_one(registry, names[i], files[i]);
  }
  print_misnamed(registry);
  return 0;
}

/* ---- One of them ------------------------------------------------------------------------------------------------- */

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

static void add_options(const Subject *subject, const struct sandhost_provider *table) {
  add(subject, "\noptions (governance_config.sandbox_config.options):\n");
  if (table->option_count == 0) {
    add(subject, "  none\n");
  }
  for (gsize i = 0; i < table->option_count; i++) {
    const struct sandhost_option *option = &table->options[i];
    add(subject, "  %-26s %s\n", option->name, option->help);
    add(subject, "  %-26s %s%s, default %s", "", type_word(option->type),
        option->flags & SANDHOST_OPTION_REQUIRED ? ", required" : "",
        option->fallback ? option->fallback : "none");
    if (option->choices) {
      add(subject, ", one of %s", option->choices);
    }
    if (option->environment) {
      add(subject, ", else $%s", option->environment);
    }
    add(subject, "\n");
  }
}

/* Opens the provider without options to learn what this machine gives it; one with required options cannot be. */
static void add_enforcement(const Subject *subject, Provider *provider) {
  g_autoptr(ProviderInstance) instance =
      provider_instance_open(subject->registry, provider, NULL, NULL);
  add(subject, "\nenforces%s:\n", instance ? " here" : "");
  for (gsize i = 0; i < ENFORCEMENT_COUNT; i++) {
    guint32 setting = ENFORCEMENT[i].setting;
    guint32 level = instance ? provider_instance_level(instance, setting)
                             : enforcement_declared(provider_table(provider), setting);
    const char *why = instance ? provider_instance_lowered(instance, setting) : NULL;
    add(subject, "  %-28s %s%s%s%s\n", ENFORCEMENT[i].words,
        strcmp(enforcement_word(level), "-") ? enforcement_word(level) : "no", why ? " (" : "",
        why ? why : "", why ? ")" : "");
  }
}

static JsonObject *look_at_all_of_it(void *user) {
  const Subject *subject = user;
  g_autoptr(GError) error = NULL;
  Provider *provider = provider_registry_load(subject->registry, subject->name, &error);
  apart_loaded();
  if (!provider) {
    return answer(subject, error);
  }
  const struct sandhost_provider *table = provider_table(provider);
  const char *file = provider_file(provider);
  add(subject, "%s %s: %s\n", table->name, table->version, table->summary);
  add(subject, "file: %s\n", file ? file : "built in");
  add(subject, "commands run: %s\n",
      table->flags & SANDHOST_PROVIDER_HOST_SURFACE ? "on this machine, not isolated"
                                                    : "in a sandbox");
  add_options(subject, table);
  add_enforcement(subject, provider);
  return answer(subject, NULL);
}

/* The file of a provider, as it would be loaded. Owned; NULL: there is none. */
static char *file_of(ProviderRegistry *registry, const char *name) {
  g_auto(GStrv) names = NULL;
  g_auto(GStrv) files = NULL;
  provider_registry_list(registry, &names, &files);
  for (gsize i = 0; names[i]; i++) {
    if (strcmp(names[i], name) == 0) {
      return g_strdup(files[i]);
    }
  }
  return NULL;
}

static int tell_one(ProviderRegistry *registry, const char *name) {
  g_autoptr(GString) text = g_string_new(NULL);
  Subject subject = {.registry = registry, .name = name, .text = text};
  const Apart apart = {.look = look_at_all_of_it, .user = &subject};
  g_autofree char *why = NULL;
  g_autoptr(JsonObject) found = apart_look(&apart, &why);
  const char *error = json_get_text(found, "error");
  if (!found) {
    g_autofree char *file = file_of(registry, name);
    cli_complain("%s: %s", file ? file : name, why);
    return EXIT_SANDHOST;
  }
  if (error) {
    cli_complain("%s", error);
    return json_get_bool(found, "usage", FALSE) ? EXIT_USAGE : EXIT_SANDHOST;
  }
  printf("%s", json_get_text(found, "text"));
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
  g_autoptr(ProviderRegistry) registry = cli_registry();
  return argc == 2 ? tell_one(registry, argv[1]) : list_all(registry);
}
