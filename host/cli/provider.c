/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c: sandhost provider test FILE.so, the conformance suite. It is a program of its own, which knows the
 * contract and of this host only its door, so that it judges a provider by the contract alone. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static int run_suite(int argc, char **argv) {
  g_autoptr(ProviderRegistry) registry = cli_registry();
  g_autofree char *suite =
      g_build_filename(provider_registry_guest_dir(registry), "sandhost-conformance", NULL);
  char self[] = "sandhost"; /* its messages are ours */
  g_autoptr(GPtrArray) words = g_ptr_array_new();
  g_ptr_array_add(words, self);
  for (int i = 1; i < argc; i++) {
    g_ptr_array_add(words, argv[i]);
  }
  g_ptr_array_add(words, NULL);
  execv(suite, (char **)words->pdata);
  cli_complain("cannot run the conformance suite %s: %s", suite, g_strerror(errno));
  return EXIT_SANDHOST;
}

int cli_provider(int argc, char **argv) {
  if (argc >= 3 && strcmp(argv[1], "test") == 0) {
    return run_suite(argc - 1, argv + 1);
  }
  cli_complain("usage: sandhost provider test FILE.so [--option NAME=VALUE]... [--working-dir DIR] "
               "[--only TEXT]... [--patience SECONDS] [--progress]");
  return EXIT_USAGE;
}
