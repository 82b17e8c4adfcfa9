/* SPDX-License-Identifier: Apache-2.0 */
/* check-inherited.c: what a command has from the host's process, or from the command before it: neither signals nor
 * variables. */
#include <signal.h>
#include <string.h>

#include "suite.h"

/* ---- Signals --------------------------------------------------------------------------------------------------------- */

/* Each shell kills itself, unless the signal is ignored or blocked: then it says so. Not QUIT, which some shells ignore. */
#define SURVIVED                                                                                   \
  "ulimit -c 0; for s in HUP INT PIPE ALRM TERM USR1 USR2; do "                                    \
  "sh -c \"kill -$s \\$\\$; echo $s\"; done 2> /dev/null; true"

/* A host may ignore and block what it likes. */
static void check_signals(Subject *subject, Verdict *verdict) {
  Box box;
  sigset_t blocked;
  sigset_t before;
  struct sigaction old_pipe;
  struct sigaction old_hangup;
  const struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  sigaction(SIGPIPE, &ignore, &old_pipe);
  sigaction(SIGHUP, &ignore, &old_hangup);
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    want_run(&box, SURVIVED, 0, "", verdict);
    box_close(&box, verdict);
  }
  sigaction(SIGHUP, &old_hangup, NULL);
  sigaction(SIGPIPE, &old_pipe, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- Variables ------------------------------------------------------------------------------------------------------- */

#define VARIABLES "env | sed 's/=.*//' | sort"

static char *variables(Box *box, const RunOptions *options, Verdict *verdict) {
  Ran ran;
  run_script(box, VARIABLES, options, &ran);
  if (ran.status != SANDHOST_OK || ran.result.exit_code != 0) {
    wrong(verdict, "'" VARIABLES "': status %s, exit code %d, stderr '%.200s'",
          status_name(ran.status), ran.result.exit_code, ran.err->str);
  }
  char *names = g_strdup(ran.out->str);
  ran_clear(&ran);
  return names;
}

static void environment(Box *box, Verdict *verdict) {
  const struct sandhost_pair more[] = {{as_text("CONFORMANCE_MORE"), as_text("1")}};
  const RunOptions with = {.environment = more, .environment_count = 1};
  g_autofree char *before = variables(box, NULL, verdict);
  g_autofree char *during = variables(box, &with, verdict);
  g_autofree char *after = variables(box, NULL, verdict);
  g_auto(GStrv) parts = g_strsplit(during, "CONFORMANCE_MORE\n", -1);
  g_autofree char *rest = g_strjoinv("", parts);
  if (strcmp(before, after) != 0) {
    wrong(verdict, "the variables of two commands, with another between: '%.200s' and '%.200s'",
          before, after);
  } else if (g_strv_length(parts) != 2 || strcmp(rest, before) != 0) {
    wrong(verdict, "the variables of a command without and with one added: '%.200s' and '%.200s'",
          before, during);
  }
}

static void check_environment(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  environment(&box, verdict);
  box_close(&box, verdict);
}

const Check INHERITED_CHECKS[] = {
    {"execute: signals as usual",
     "no signal is ignored or blocked in a command, whatever the host ignores and blocks",
     check_signals},
    {"execute: variables", "a command's environment is the sandbox's and what is added for it",
     check_environment},
    {0},
};
