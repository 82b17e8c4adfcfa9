/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the sandhost program: finds the command and hands over. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/build.h"
#include "cli/cli.h"
#include "cli/last-words.h"

static const CliCommand COMMANDS[] = {
    {.name = "exec", .summary = "Run one command in a sandbox", .run = cli_exec},
    {.name = "session", .summary = "Run many: JSON lines in, JSON lines out", .run = cli_session},
    {.name = "shell", .summary = "Run many, for a person at a terminal", .run = cli_shell},
    {.name = "approvals", .summary = "List what waits for a person", .run = cli_approvals},
    {.name = "approve", .summary = "Allow once what a run waits for", .run = cli_approve},
    {.name = "deny", .summary = "Refuse what a run waits for", .run = cli_deny},
    {.name = "budgets", .summary = "List what was used of the budgets", .run = cli_budgets},
    {.name = "grant", .summary = "Give a run more of a budget", .run = cli_grant},
    {.name = "resume", .summary = "Go on with a waiting or stopped run", .run = cli_resume},
    {.name = "cancel", .summary = "End a run, wherever it is", .run = cli_cancel},
    {.name = "abandon",
     .summary = "End a run under another name than cancelled",
     .run = cli_abandon},
    {.name = "show", .summary = "Print the record of a run", .run = cli_show},
    {.name = "runs", .summary = "List the runs on record", .run = cli_runs},
    {.name = "record", .summary = "Verify the record, or prune it", .run = cli_record},
    {.name = "check",
     .summary = "Check a configuration without running anything",
     .run = cli_check},
    {.name = "policy",
     .summary = "Show, explain, test or replay a policy without running anything",
     .run = cli_policy},
    {.name = "doctor",
     .summary = "Tell what works on this machine, and what to do about the rest",
     .run = cli_doctor},
    {.name = "cleanup",
     .summary = "Remove sandboxes that a dead host left behind",
     .run = cli_cleanup},
    {.name = "providers",
     .summary = "List the sandbox providers, or tell of one",
     .run = cli_providers},
    {.name = "provider", .summary = "Prove a provider: provider test FILE.so", .run = cli_provider},
};

static void print_help(FILE *out) {
  fprintf(out, "Usage: sandhost COMMAND [OPTIONS]\n\n"
               "Runs the commands of an AI agent in a sandbox, asks a policy first, and keeps a "
               "record.\n\n");
  for (gsize i = 0; i < G_N_ELEMENTS(COMMANDS); i++) {
    fprintf(out, "  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
  }
  fprintf(out, "\nsandhost COMMAND --help tells the options; sandhost(1) the rest.\n");
}

/* A descriptor that is closed would be taken by the next file that is opened, which would then be written into. Nobody wants
 * what goes to a closed stderr; a closed stdout still refuses what is printed. */
static void hold_standard_descriptors(void) {
  static const int MODES[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < (int)G_N_ELEMENTS(MODES); fd++) {
    /* It gets the lowest number. */
    int held = fcntl(fd, F_GETFD) < 0 ? open("/dev/null", MODES[fd]) : fd;
    if (held < 0) {
      return; /* as it was */
    }
  } // cppcheck-suppress resourceLeak ; held to the end
}

int main(int argc, char **argv) {
  hold_standard_descriptors();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD,
         SIG_DFL); /* whoever started us may ignore it, and then the end of no child is known */
  /* A megabyte of output goes back to the system when it is told. */
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  if (argc < 2) {
    print_help(stderr);
    return EXIT_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
    print_help(stdout);
    return 0;
  }
  if (strcmp(name, "--version") == 0) {
    printf("sandhost %s\n", SANDHOST_VERSION);
    return 0;
  }
  last_words_begin();
  for (gsize i = 0; i < G_N_ELEMENTS(COMMANDS); i++) {
    if (strcmp(name, COMMANDS[i].name) == 0) {
      int code = COMMANDS[i].run(argc - 1, argv + 1);
      provider_stop_all();
      int fault = cli_stdout_fault();
      if (fault) {
        cli_complain("could not write standard output: %s", g_strerror(fault));
      }
      last_words_end();
      return fault && code == 0 ? EXIT_SANDHOST : code;
    }
  }
  last_words_end();
  cli_complain("unknown command '%s'; sandhost --help lists them", name);
  return EXIT_USAGE;
}
