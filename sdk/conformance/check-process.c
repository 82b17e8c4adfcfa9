/* SPDX-License-Identifier: Apache-2.0 */
/* check-process.c: what a provider leaves behind in the process of its host: descriptors and children. */
#include <fcntl.h>
#include <unistd.h>

#include "descriptors.h"
#include "guard.h"
#include "suite.h"

/* ---- Descriptors ----------------------------------------------------------------------------------------------------- */

/* The first rounds may fill what is kept for later ones. */
#define WARM_ROUNDS 2
#define ROUNDS 4

/* What this program was started with, before anything of a provider is loaded. */
static guint given;

static void __attribute__((constructor)) count_given(void) {
  given = descriptors_open(TRUE);
}

/* Whether it works is what the other checks look at: here it may fail. */
static void one_command(Box *box) {
  Ran ran;
  run_script(box, "echo one", NULL, &ran);
  ran_clear(&ran);
}

static void one_sandbox(Subject *subject) {
  Box box;
  Verdict scrap = {0};
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, &scrap)) {
    one_command(&box);
    box_close(&box, &scrap);
  }
  g_free(scrap.wrong);
  g_free(scrap.skipped);
}

static void check_sandboxes(Subject *subject, Verdict *verdict) {
  for (int i = 0; i < WARM_ROUNDS; i++) {
    one_sandbox(subject);
  }
  guint before = descriptors_open(FALSE);
  for (int i = 0; i < ROUNDS; i++) {
    one_sandbox(subject);
  }
  guint more = descriptors_grown(FALSE, before);
  if (more >= ROUNDS) {
    wrong(verdict, "%u more descriptors are open after %d more sandboxes", more, ROUNDS);
  }
}

static void check_commands(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  guint before = 0;
  for (int i = 0; i < WARM_ROUNDS + ROUNDS; i++) {
    before = i == WARM_ROUNDS ? descriptors_open(FALSE) : before;
    one_command(&box);
  }
  guint more = descriptors_grown(FALSE, before);
  if (more >= ROUNDS) {
    wrong(verdict, "%u more descriptors are open after %d more commands", more, ROUNDS);
  }
  box_close(&box, verdict);
}

/* ---- Children ---------------------------------------------------------------------------------------------------------- */

static void check_children(Subject *subject, Verdict *verdict) {
  for (int i = 0; i < WARM_ROUNDS; i++) {
    one_sandbox(subject);
  }
  guint before = guard_count_children();
  for (int i = 0; i < ROUNDS; i++) {
    one_sandbox(subject);
  }
  guint now = guard_count_children();
  for (int i = 0; i < PATIENCE_TRIES && now >= before + ROUNDS; i++) {
    g_usleep(PATIENCE_STEP);
    now = guard_count_children();
  }
  if (now >= before + ROUNDS) {
    wrong(verdict, "%u more processes are children of this one after %d more sandboxes",
          now - before, ROUNDS);
  }
}

/* ---- What another program gets ------------------------------------------------------------------------------------------ */

/* The instance was opened long ago: what it holds counts as well. */
static void check_closed_on_exec(Subject *subject, Verdict *verdict) {
  Box box;
  if (!box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    return;
  }
  one_command(&box);
  guint more = descriptors_grown(TRUE, given);
  if (more > 0) {
    wrong(verdict, "%u descriptors are not closed when another program is begun", more);
  }
  box_close(&box, verdict);
}

/* One of this program's own that an exec would keep, where no shell looks for one of its own. */
#define STRAY 200

static void check_not_inside(Subject *subject, Verdict *verdict) {
  Box box;
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int stray = null >= 0 ? dup2(null, STRAY) : -1;
  if (null >= 0) {
    close(null);
  }
  if (stray < 0) {
    skipped(verdict, "no descriptor %d can be had here", STRAY);
    return;
  }
  if (box_open(&box, subject, SANDHOST_NETWORK_DENY, verdict)) {
    want_run(&box, "test ! -e /proc/self/fd/200 && test ! -e /dev/fd/200 && echo none", 0, "none\n",
             verdict);
    box_close(&box, verdict);
  }
  close(stray);
}

const Check PROCESS_CHECKS[] = {
    {"process: sandboxes leave no descriptor",
     "what is opened for a sandbox is closed when it is released", check_sandboxes},
    {"process: commands leave no descriptor",
     "what is opened for a command is closed when it has ended", check_commands},
    {"process: sandboxes leave no child",
     "terminate destroys all that runs for the sandbox, and waits for what it ended",
     check_children},
    {"process: closed on exec", "every descriptor is opened with O_CLOEXEC", check_closed_on_exec},
    {"process: nothing inherited", "no descriptor of the host is open in a command",
     check_not_inside},
    {0},
};
