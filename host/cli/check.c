/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: sandhost check, a configuration read, checked and held against its provider, with nothing started. */
#include <stdio.h>

#include "cli/cli.h"

static void print_checked(const Harness *harness) {
  const Config *config = harness->config;
  const char *profile = harness->policy ? policy_profile(harness->policy) : NULL;
  printf("provider: %s\n", config->provider ? config->provider : "none configured");
  const char *file = harness->policy && config->profile ? policy_file(harness->policy) : NULL;
  if (file) {
    printf("policy: %s, narrowed by %s\n", config->profile, file);
  } else {
    printf("policy: %s\n", !harness->policy ? "off" : profile ? profile : "your own");
  }
  printf("network: %s\n", config->manifest->network ? "allow" : "deny");
  printf("workspace: %s\n", config->enable_workspace_files ? config->files_dir : "not copied");

  g_autoptr(JsonObject) warnings = harness_warnings(harness);
  for (gsize i = 0; i < json_object_array_length(warnings); i++) {
    JsonObject *warning = json_object_array_get_idx(warnings, i);
    cli_complain("warning: %s: %s", json_get_text(warning, "code"),
                 json_get_text(warning, "message"));
  }
  g_autoptr(GError) why = NULL;
  if (!harness_executes(harness, &why)) {
    printf("execute: no: %s\n", why->message);
  } else {
    printf("execute: yes\n");
  }
}

int cli_check(int argc, char **argv) {
  CliRunOptions options = {0};
  g_autoptr(ProviderRegistry) registry = NULL;
  g_autoptr(GError) error = NULL;
  gboolean tool = FALSE;
  const GOptionEntry entries[] = {
      {"tool", 0, 0, G_OPTION_ARG_NONE, &tool,
       "Print the execute tool as it is declared to a model", NULL},
      {0},
  };
  if (!cli_parse(&argc, &argv, "FILE", "Checks a configuration without running anything.",
                 entries)) {
    return EXIT_USAGE;
  }
  if (argc != 2) {
    cli_complain("check takes one configuration file");
    return EXIT_USAGE;
  }
  options.config = g_strdup(argv[1]);
  g_autoptr(Harness) harness = cli_harness(&options, &registry, &error);
  cli_run_options_clear(&options);
  if (!harness) {
    cli_fail(error);
    return EXIT_USAGE;
  }
  if (!tool) {
    print_checked(harness);
    return 0;
  }
  if (!harness_executes(harness, &error)) {
    return cli_fail(error);
  }
  g_autoptr(JsonObject) declaration = execute_declaration(harness);
  g_autofree char *text = json_text(declaration);
  printf("%s\n", text);
  return 0;
}
