/* SPDX-License-Identifier: Apache-2.0 */
/* check-process.c: what a provider leaves behind in the process of its host: descriptors, and what it must not change. */
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"

/* ---- Descriptors ----------------------------------------------------------------------------------------------------- */

/* The first rounds may fill what is kept for later ones. */
#define WARM_ROUNDS 2
#define ROUNDS 4
#define PATIENCE_TRIES 200
#define PATIENCE_STEP                                                                              \
  10000 /* microseconds: what ends in a thread of the provider closes a little late */

/* Of the files that are open, those that an exec keeps where keeps_only; without standard input, output and error. */
static guint count_open(gboolean keeps_only) {
  guint count = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) {
    return 0;
  }
  const struct dirent *entry = NULL;
  while ((entry = readdir(folder))) {
    gint64 fd = 0;
    if (g_ascii_string_to_signed(entry->d_name, 10, 3, G_MAXINT, &fd, NULL) &&
        fd != dirfd(folder)) {
      int flags = fcntl((int)fd, F_GETFD);
      count += flags >= 0 && !(keeps_only && (flags & FD_CLOEXEC)) ? 1 : 0;
    }
  }
  closedir(folder);
  return count;
}

/* What this program was started with, before anything of a provider is loaded. */
static guint given;

static void __attribute__((constructor)) count_given(void) {
  given = count_open(TRUE);
}

/* How many more there are than before, once it has become quiet. */
static guint grown(gboolean keeps_only, guint before) {
  guint now = count_open(keeps_only);
  for (int i = 0; i < PATIENCE_TRIES && now > before; i++) {
    g_usleep(PATIENCE_STEP);
    now = count_open(keeps_only);
  }
  return now > before ? now - before : 0;
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
  guint before = count_open(FALSE);
  for (int i = 0; i < ROUNDS; i++) {
    one_sandbox(subject);
  }
  guint more = grown(FALSE, before);
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
    before = i == WARM_ROUNDS ? count_open(FALSE) : before;
    one_command(&box);
  }
  guint more = grown(FALSE, before);
  if (more >= ROUNDS) {
    wrong(verdict, "%u more descriptors are open after %d more commands", more, ROUNDS);
  }
  box_close(&box, verdict);
}

/* ---- Children ---------------------------------------------------------------------------------------------------------- */

/* ") S 1234 ...", behind a name that may hold anything. As the first process of its namespace this one gets orphans of
 * whatever was ended, whom nobody else could wait for: of its zombies none is known to be the provider's. */
static gboolean is_child(const char *stat) {
  const char *behind = strrchr(stat, ')');
  return behind && strlen(behind) > 4 && strtol(behind + 4, NULL, 10) == getpid() &&
         !(behind[2] == 'Z' && getpid() == 1);
}

/* Of this process, those that live and those that nobody has waited for. */
static guint count_children(void) {
  guint count = 0;
  DIR *folder = opendir("/proc");
  const struct dirent *entry = NULL;
  while (folder && (entry = readdir(folder))) {
    g_autofree char *path = g_build_filename("/proc", entry->d_name, "stat", NULL);
    g_autofree char *text = NULL;
    if (g_ascii_isdigit(entry->d_name[0]) && g_file_get_contents(path, &text, NULL, NULL)) {
      count += is_child(text) ? 1 : 0;
    }
  }
  if (folder) {
    closedir(folder);
  }
  return count;
}

static void check_children(Subject *subject, Verdict *verdict) {
  for (int i = 0; i < WARM_ROUNDS; i++) {
    one_sandbox(subject);
  }
  guint before = count_children();
  for (int i = 0; i < ROUNDS; i++) {
    one_sandbox(subject);
  }
  guint now = count_children();
  for (int i = 0; i < PATIENCE_TRIES && now >= before + ROUNDS; i++) {
    g_usleep(PATIENCE_STEP);
    now = count_children();
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
  guint more = grown(TRUE, given);
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

/* ---- What belongs to the process -------------------------------------------------------------------------------------- */

typedef struct {
  char *folder;
  char *locale;
  char **environment;
  mode_t umask;
  sigset_t mask;
  struct sigaction actions[NSIG];
} State;

static void state_take(State *ret_state) {
  *ret_state = (State){.folder = g_get_current_dir(),
                       .locale = g_strdup(setlocale(LC_ALL, NULL)),
                       .environment = g_get_environ(),
                       .umask = umask(022)};
  umask(ret_state->umask);
  pthread_sigmask(SIG_SETMASK, NULL, &ret_state->mask);
  for (int i = 1; i < NSIG; i++) {
    sigaction(i, NULL, &ret_state->actions[i]); /* the few that nobody may handle stay zero */
  }
}

static void state_clear(State *state) {
  g_free(state->folder);
  g_free(state->locale);
  g_strfreev(state->environment);
}

/* The first signal whose handler or place in the mask differs; 0: none. */
static int signal_that_differs(const State *a, const State *b, gboolean masks) {
  for (int i = 1; i < NSIG; i++) {
    if (masks ? sigismember(&a->mask, i) != sigismember(&b->mask, i)
              : a->actions[i].sa_handler != b->actions[i].sa_handler) {
      return i;
    }
  }
  return 0;
}

static void compare(const State *before, const State *after, Verdict *verdict) {
  int handled = signal_that_differs(before, after, FALSE);
  int masked = signal_that_differs(before, after, TRUE);
  if (strcmp(before->folder, after->folder) != 0) {
    wrong(verdict, "the working directory became %s", after->folder);
  } else if (before->umask != after->umask) {
    wrong(verdict, "the umask became %04o", after->umask);
  } else if (strcmp(before->locale, after->locale) != 0) {
    wrong(verdict, "the locale became %s", after->locale);
  } else if (!g_strv_equal((const char *const *)before->environment,
                           (const char *const *)after->environment)) {
    wrong(verdict, "the environment was changed");
  } else if (handled) {
    wrong(verdict, "there is another handler for %s", strsignal(handled));
  } else if (masked) {
    wrong(verdict, "the calling thread's signal mask was changed for %s", strsignal(masked));
  }
}

/* For the checks that follow. */
static void put_back(const State *before, const State *after) {
  for (int i = 1; i < NSIG; i++) {
    if (before->actions[i].sa_handler != after->actions[i].sa_handler) {
      sigaction(i, &before->actions[i], NULL);
    }
  }
  pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
  umask(before->umask);
  setlocale(LC_ALL, before->locale);
  int moved = chdir(before->folder);
  (void)moved;
}

static void check_state(Subject *subject, Verdict *verdict) {
  State before;
  State after;
  state_take(&before);
  one_sandbox(subject);
  state_take(&after);
  compare(&before, &after, verdict);
  put_back(&before, &after);
  state_clear(&before);
  state_clear(&after);
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
    {"process: left as it was",
     "a provider changes no working directory, umask, locale, environment, signal handler or mask",
     check_state},
    {0},
};
