/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c: how fast sandhost is, as ratios against what the machine costs anyway.
 *
 * Ours and the floor are measured in turn (A B A B ...), so that a machine that slows down slows both; the median of
 * the pairwise ratios is what counts. Every goal stands in the table beside what was measured; nothing here passes or
 * fails. Usage: sandhost-bench [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "floor-rows.h"
#include "floors.h"
#include "governance-bench.h"
#include "ratio.h"
#include "record-bench.h"
#include "runtime.h"
#include "subject.h"
#include "workspace-rows.h"

#define CROWD 50
#define PRINT_2_GB "head -c 2000000000 /dev/zero"
#define PRINT_500_MB "head -c 500000000 /dev/zero"

/* What a command prints. */
typedef struct {
  const char *words[4];
  guint64 bytes;
} Printed;

static guint rounds = 60;
static const char *folder; /* scratch, removed at the end */
static const char program[] = TEST_BUILD_DIR "/bin/sandhost";

/* ---- Floors ---------------------------------------------------------------------------------------------------------- */

static const char *sh_true[] = {"sh", "-c", "true", NULL};
static const char *bwrap_true[] = {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "true", NULL};
static const char *bwrap_cat[] = {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "cat", NULL};
static Printed whole = {{"sh", "-c", PRINT_2_GB, NULL}, G_GUINT64_CONSTANT(2000000000)};
static Printed part = {{"sh", "-c", PRINT_500_MB, NULL}, G_GUINT64_CONSTANT(500000000)};

static gint64 spawn_floor(void *user) {
  return floor_spawn(user);
}

static gint64 bwrap_and_spawn(void *user) {
  (void)user;
  gint64 a = floor_spawn(bwrap_true);
  gint64 b = floor_spawn(sh_true);
  return a < 0 || b < 0 ? -1 : a + b;
}

static gint64 end_floor(void *user) {
  return floor_end(user);
}

static gint64 pipe_floor(void *user) {
  const Printed *printed = user;
  return floor_read_pipe(printed->words, printed->bytes);
}

static gint64 sockets_floor(void *user) {
  const Printed *printed = user;
  return floor_read_sockets(printed->words, printed->bytes);
}

/* ---- A sandbox ------------------------------------------------------------------------------------------------------- */

static gint64 whole_command(void *user) {
  return subject_line(user, "true");
}

static gint64 bare_command(void *user) {
  return sandbox_line(user, "true");
}

static gint64 open_sandbox(void *user) {
  gint64 from = clock_now();
  Sandbox *sandbox = subject_sandbox(user);
  gint64 took = clock_now() - from;
  if (!sandbox) {
    return -1;
  }
  sandbox_end(sandbox, NULL);
  return took;
}

/* Of one that has run a command, as any has. */
static gint64 end_sandbox(void *user) {
  Sandbox *sandbox = subject_sandbox(user);
  if (!sandbox || bare_command(sandbox) < 0) {
    sandbox_end(sandbox, NULL);
    return -1;
  }
  gint64 from = clock_now();
  gboolean ok = sandbox_end(sandbox, NULL);
  return ok ? clock_now() - from : -1;
}

/* ---- Many at once ------------------------------------------------------------------------------------------------------ */

/* The work of each, with users[i] or, without users, NULL. */
static gint64 crowd_of(GThreadFunc work, gpointer *users) {
  GThread *threads[CROWD];
  gboolean failed = FALSE;
  gint64 from = clock_now();
  for (guint i = 0; i < CROWD; i++) {
    threads[i] = g_thread_new("crowd", work, users ? users[i] : NULL);
  }
  for (guint i = 0; i < CROWD; i++) {
    failed = g_thread_join(threads[i]) != NULL || failed;
  }
  return failed ? -1 : clock_now() - from;
}

static gpointer one_session(gpointer data) {
  Sandbox *sandbox = subject_sandbox(data);
  gboolean failed = !sandbox || bare_command(sandbox) < 0;
  sandbox_end(sandbox, NULL);
  return GINT_TO_POINTER(failed);
}

static gpointer one_bare_session(gpointer data) {
  (void)data;
  return GINT_TO_POINTER(floor_spawn(bwrap_true) < 0 || floor_spawn(sh_true) < 0);
}

static gpointer one_command(gpointer data) {
  return GINT_TO_POINTER(bare_command(data) < 0);
}

static gpointer one_bare_command(gpointer data) {
  (void)data;
  return GINT_TO_POINTER(floor_spawn(sh_true) < 0);
}

static gint64 sessions_at_once(void *user) {
  gpointer users[CROWD];
  for (guint i = 0; i < CROWD; i++) {
    users[i] = user;
  }
  return crowd_of(one_session, users);
}

static gint64 bare_sessions_at_once(void *user) {
  (void)user;
  return crowd_of(one_bare_session, NULL);
}

static gint64 commands_at_once(void *user) {
  return crowd_of(one_command, user);
}

static gint64 bare_commands_at_once(void *user) {
  (void)user;
  return crowd_of(one_bare_command, NULL);
}

static void bench_open_crowd(const Subject *subject) {
  static const char COMMANDS[] = "50 open sandboxes, a command each at once / 50 sh -c true";
  static const char MEMORY[] = "50 sessions of one process: its own memory for each";
  Sandbox *crowd[CROWD] = {NULL};
  gpointer users[CROWD];
  guint count = 0;
  gint64 before = ratio_own_memory();
  for (; count < CROWD; count++) {
    crowd[count] = subject_sandbox(subject);
    users[count] = crowd[count];
    if (!crowd[count] || bare_command(crowd[count]) < 0) {
      break;
    }
  }
  gint64 after = ratio_own_memory();
  if (count < CROWD) {
    ratio_leave_out(COMMANDS, "a sandbox could not be made");
    ratio_leave_out(MEMORY, "a sandbox could not be made");
  } else {
    ratio_compare(COMMANDS, (Meter){commands_at_once, users}, (Meter){bare_commands_at_once, NULL},
                  0, MAX(rounds / 3, 5));
    ratio_print_figure(MEMORY, (double)(after - before) / 1024 / CROWD, "KB", 20);
  }
  for (guint i = 0; i < CROWD && crowd[i]; i++) {
    sandbox_end(crowd[i], NULL);
  }
}

/* ---- Bytes out --------------------------------------------------------------------------------------------------------- */

static gint64 sandbox_output(void *user) {
  return sandbox_line(user, PRINT_500_MB);
}

static void bench_output(Sandbox *sandbox) {
  /* One of their own: what follows must not have a long record to write to. */
  g_autofree char *record = g_build_filename(folder, "output.db", NULL);
  const char *kept[] = {program,     "exec", "-q", "--json",   "--record", record,
                        "--timeout", "300",  "--", PRINT_2_GB, NULL};
  const char *live[] = {program,     "exec", "-q", "--record", record,
                        "--timeout", "300",  "--", PRINT_2_GB, NULL};
  guint times = MAX(rounds / 6, 2);
  printf("\n%-62s %9s %9s %7s  goal\n", "bytes out", "ours MB/s", "MB/s", "ratio");
  ratio_compare_rate("500 MB out of an open sandbox / through a pipe",
                     (Meter){sandbox_output, sandbox}, (Meter){pipe_floor, &part}, part.bytes, 0,
                     times);
  ratio_compare_rate("500 MB out of an open sandbox / through a pair of sockets",
                     (Meter){sandbox_output, sandbox}, (Meter){sockets_floor, &part}, part.bytes, 0,
                     times);
  ratio_compare_rate("2 GB out of sandhost exec, shown live / through a pipe",
                     (Meter){spawn_floor, live}, (Meter){pipe_floor, &whole}, whole.bytes, 0,
                     MAX(rounds / 12, 1));
  gint64 kept_peak = -1;
  gint64 live_peak = -1;
  (void)floor_measure(kept, &kept_peak);
  (void)floor_measure(live, &live_peak);
  ratio_print_peak("host memory while a command prints 2 GB, result kept", kept_peak, 16);
  ratio_print_peak("host memory while a command prints 2 GB, shown live", live_peak, 16);
}

/* ---- The tables --------------------------------------------------------------------------------------------------------- */

/* Each command of an open session, ours with all that belongs to it. */
static void bench_runtime(Subject *subject) {
  static const char EACH[] = "a command in an open session, faster than sandbox-runtime's";
  const char *reason = NULL;
  const char *package = runtime_package(&reason);
  Runtime *runtime = package ? runtime_open(folder, package) : NULL;
  if (runtime) {
    ratio_compare_faster(EACH, (Meter){whole_command, subject}, (Meter){runtime_command, runtime},
                         0, rounds);
  } else {
    ratio_leave_out(EACH, package ? "its library does not come up" : reason);
  }
  runtime_close(runtime);
}

static void bench_commands(Subject *subject, Sandbox *sandbox) {
  g_autofree char *record = g_build_filename(folder, "record.db", NULL);
  const char *process_words[] = {program, "exec", "-q", "--record", record, "--", "true", NULL};
  ratio_print_head("bubblewrap", "floor ms");
  ratio_compare("sandhost exec -- true / bwrap true + sh -c true",
                (Meter){spawn_floor, process_words}, (Meter){bwrap_and_spawn, NULL}, 3.0, rounds);
  ratio_compare("command in an open sandbox / sh -c true", (Meter){bare_command, sandbox},
                (Meter){spawn_floor, sh_true}, 1.3, rounds * 3);
  ratio_compare("the same with policy, sync and record / sh -c true",
                (Meter){whole_command, subject}, (Meter){spawn_floor, sh_true}, 2.5, rounds * 3);
  bench_runtime(subject);
  ratio_compare("open a sandbox / bwrap true", (Meter){open_sandbox, subject},
                (Meter){spawn_floor, bwrap_true}, 1.6, rounds);
  ratio_compare("end a sandbox / end of a bwrap cat", (Meter){end_sandbox, subject},
                (Meter){end_floor, bwrap_cat}, 0, rounds);
  ratio_compare("50 sandboxes at once, a command each / 50 bare ones",
                (Meter){sessions_at_once, subject}, (Meter){bare_sessions_at_once, NULL}, 1.3,
                MAX(rounds / 3, 5));
  bench_open_crowd(subject);
}

static void print_guest(void) {
  struct stat facts;
  if (stat(TEST_GUEST_DIR "/sandhost-guest-x86_64", &facts) == 0) {
    ratio_print_figure("size of the guest", (double)facts.st_size / 1e3, "KB", 1500);
  }
}

static int bench_all(void) {
  g_autofree char *empty = g_build_filename(folder, "none", NULL);
  Subject subject = {0};
  subject_open(&subject, folder, empty);
  Sandbox *sandbox = subject_sandbox(&subject);
  gboolean ok = sandbox && subject_line(&subject, "true") > 0;
  if (ok) {
    bench_floors(folder, rounds);
    bench_commands(&subject, sandbox);
    bench_record(folder, rounds);
    bench_workspace(folder, rounds);
    print_guest();
    bench_output(sandbox);
    bench_governance();
  } else {
    fprintf(stderr, "sandhost-bench: no sandbox can be made here; sandhost doctor says why\n");
  }
  sandbox_end(sandbox, NULL);
  subject_close(&subject);
  return ok ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc > 1) {
    rounds = (guint)g_ascii_strtoull(argv[1], NULL, 10);
    rounds = CLAMP(rounds, 3, 1000);
  }
  g_autofree char *scratch = g_dir_make_tmp("sandhost-bench-XXXXXX", NULL);
  folder = scratch;
  g_setenv("SANDHOST_STATE_DIR", scratch, TRUE);
  if (chdir(scratch) != 0) {
    return 1;
  }
  int code = bench_all();
  g_autofree char *clean = g_strdup_printf("rm -rf '%s'", scratch);
  return system(clean) == 0 ? code : 1;
}
