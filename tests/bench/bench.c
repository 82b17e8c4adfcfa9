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
#include "floors.h"
#include "governance-bench.h"
#include "ratio.h"
#include "record-bench.h"
#include "record/record.h"
#include "run/execute.h"

static guint rounds = 60;
static const char *folder; /* scratch, removed at the end */
static const char *program = TEST_BUILD_DIR "/bin/sandhost";

/* ---- Floors ---------------------------------------------------------------------------------------------------------- */

static const char *sh_true[] = {"sh", "-c", "true", NULL};
static const char *bwrap_true[] = {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "true", NULL};

static gint64 spawn_floor(void *user) {
  return floor_spawn(user);
}

static gint64 bwrap_and_spawn(void *user) {
  (void)user;
  gint64 a = floor_spawn(bwrap_true);
  gint64 b = floor_spawn(sh_true);
  return a < 0 || b < 0 ? -1 : a + b;
}

/* ---- Ours ------------------------------------------------------------------------------------------------------------ */

typedef struct {
  ProviderRegistry *registry;
  Harness *harness;
  Record *record;
  Run *run;
  Sandbox *sandbox;
} Subject;

static Config *config_for(const char *workspace) {
  Config *config = config_new_default();
  g_free(config->provider);
  config->provider = g_strdup("bubblewrap");
  g_free(config->files_dir);
  config->files_dir = g_strdup(workspace);
  config->max_files = 100000;
  config->max_copy_bytes = G_GUINT64_CONSTANT(1) << 30;
  return config;
}

static void subject_open(Subject *subject, const char *workspace) {
  g_autoptr(GError) error = NULL;
  g_autofree char *record = g_build_filename(folder, "record.db", NULL);
  subject->registry = provider_registry_new();
  subject->harness = harness_new(config_for(workspace), subject->registry, &error);
  g_assert_no_error(error);
  subject->record = record_open(record, &error);
  g_assert_no_error(error);
  const RunHooks hooks = {0};
  subject->run = run_start(subject->harness, subject->record, &hooks, &error);
  g_assert_no_error(error);
}

static void subject_close(Subject *subject) {
  run_end(subject->run, "completed", NULL, NULL);
  record_close(subject->record);
  harness_free(subject->harness);
  provider_registry_free(subject->registry);
}

static gint64 execute_line(Run *run, const char *line) {
  const ExecuteCall call = {.command = line};
  ExecuteOutcome outcome;
  gint64 from = clock_now();
  execute_run(run, &call, &outcome);
  gint64 took = clock_now() - from;
  gboolean ok = outcome.end == EXECUTE_FINISHED && outcome.exit_code == 0;
  execute_outcome_clear(&outcome);
  return ok ? took : -1;
}

static gint64 whole_command(void *user) {
  const Subject *subject = user;
  return execute_line(subject->run, "true");
}

static int32_t ignore_output(void *user, uint32_t stream, const void *data, size_t length) {
  (void)user;
  (void)stream;
  (void)data;
  (void)length;
  return SANDHOST_OK;
}

static void ignore_start(void *user, uint64_t execution) {
  (void)user;
  (void)execution;
}

/* The provider's part alone: no policy, no bridge, no record. */
static gint64 bare_command(void *user) {
  const Subject *subject = user;
  const struct sandhost_text argv[] = {{"sh", 2}, {"-c", 2}, {"true", 4}};
  const struct sandhost_execute request = {
      .size = sizeof request, .argv = argv, .argc = 3, .limit = 60 * CLOCK_SECOND};
  const struct sandhost_observer observer = {
      .size = sizeof observer, .started = ignore_start, .output = ignore_output};
  struct sandhost_result result = {.size = sizeof result};
  const CallScope scope = {.deadline = G_MAXINT64};
  gint64 from = clock_now();
  gboolean ok = sandbox_execute(subject->sandbox, &scope, &request, &observer, &result, NULL);
  return ok && result.exit_code == 0 ? clock_now() - from : -1;
}

static gint64 open_and_end(void *user) {
  const Subject *subject = user;
  const CallScope scope = {.deadline = G_MAXINT64};
  static guint number;
  g_autofree char *key = g_strdup_printf("sandbox_bench%u", number++);
  gint64 from = clock_now();
  Sandbox *sandbox = sandbox_create(subject->harness->instance, subject->harness->config->manifest,
                                    key, "run_bench", &scope, NULL);
  gint64 took = clock_now() - from;
  if (!sandbox) {
    return -1;
  }
  sandbox_end(sandbox, NULL);
  return took;
}

static gint64 exec_process(void *user) {
  return floor_spawn(user);
}

/* ---- The workspace --------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *files;
  const char *copy;
} Folders;

static gint64 copy_floor(void *user) {
  const Folders *folders = user;
  return floor_copy(folders->files, folders->copy);
}

static gint64 walk_floor(void *user) {
  return floor_stat_walk(user);
}

/* A fresh run whose first command has every file copied in; what the sandbox and the command cost is taken off by
 * timing a second command in it. */
static gint64 files_in(void *user) {
  const Folders *folders = user;
  Subject subject = {0};
  subject_open(&subject, folders->files);
  g_autofree char *empty = g_build_filename(folder, "none", NULL);
  gint64 first = execute_line(subject.run, "true");
  gint64 second = execute_line(subject.run, "true");
  subject_close(&subject);
  Subject bare = {0};
  subject_open(&bare, empty);
  gint64 start = execute_line(bare.run, "true");
  subject_close(&bare);
  return first < 0 || second < 0 || start < 0 ? -1 : first - start;
}

/* A command that rewrites every file, so that all come back; the same command writing to /tmp is taken off. */
static gint64 files_out(void *user) {
  const Folders *folders = user;
  static guint number;
  Subject subject = {0};
  subject_open(&subject, folders->copy);
  execute_line(subject.run, "true");
  g_autofree char *write = g_strdup_printf(
      "for d in 0 1 2 3 4; do mkdir -p n%u/d$d; cp -r d$d/. n%u/d$d; done", number, number);
  g_autofree char *elsewhere = g_strdup_printf(
      "for d in 0 1 2 3 4; do mkdir -p /tmp/d$d; cp -r d$d/. /tmp/d$d; done; rm -r /tmp/*");
  number++;
  gint64 beside = execute_line(subject.run, elsewhere);
  gint64 out = execute_line(subject.run, write);
  subject_close(&subject);
  g_autofree char *clean = g_strdup_printf("rm -rf '%s'/n*", folders->copy);
  if (system(clean) != 0 || beside < 0 || out < 0) {
    return -1;
  }
  return out - beside;
}

static void bench_workspace(void) {
  g_autofree char *files = g_build_filename(folder, "files", NULL);
  g_autofree char *copy = g_build_filename(folder, "copy", NULL);
  g_autofree char *many = g_build_filename(folder, "many", NULL);
  floor_fill(files, 500, 40000);
  floor_fill(copy, 500, 40000);
  floor_fill(many, 10000, 100);
  g_autofree char *to = g_build_filename(folder, "floor", NULL);
  Folders in = {.files = files, .copy = to};
  Folders out = {.files = files, .copy = copy};
  ratio_compare("500 files, 20 MB in / read, tar and write them", (Meter){files_in, &in},
                (Meter){copy_floor, &in}, 1.5, MAX(rounds / 6, 3));
  ratio_compare("500 files, 20 MB out / read, tar and write them", (Meter){files_out, &out},
                (Meter){copy_floor, &in}, 1.5, MAX(rounds / 6, 3));

  Subject subject = {0};
  subject_open(&subject, many);
  execute_line(subject.run, "true");
  Subject nothing = {0};
  g_autofree char *empty = g_build_filename(folder, "none", NULL);
  subject_open(&nothing, empty);
  execute_line(nothing.run, "true");
  guint times = MAX(rounds / 3, 3);
  g_autofree double *extra = g_new0(double, times);
  g_autofree double *walks = g_new0(double, times);
  for (guint i = 0; i < times; i++) {
    extra[i] =
        (double)(execute_line(subject.run, "true") - execute_line(nothing.run, "true")) / 1e6;
    walks[i] = (double)walk_floor(many) / 1e6;
  }
  double ours = ratio_median(extra, times);
  double walk = ratio_median(walks, times);
  /* Both sides are walked: the workspace before the command, the sandbox after it. */
  printf("%-62s %9.3f %9.3f %7.2f  <= %.2f  %s\n",
         "nothing changed in 10,000 files / two bare stat walks", ours, 2 * walk, ours / (2 * walk),
         2.0, ours <= 4 * walk ? "ok" : "MISSED");
  subject_close(&subject);
  subject_close(&nothing);
}

/* ---- Many at once ------------------------------------------------------------------------------------------------------ */

#define CROWD 50

static gpointer one_of_crowd(gpointer data) {
  const Subject *subject = data;
  Subject mine = {.harness = subject->harness};
  const CallScope scope = {.deadline = G_MAXINT64};
  g_autofree char *key = g_strdup_printf("sandbox_crowd%p", (void *)g_thread_self());
  mine.sandbox = sandbox_create(subject->harness->instance, subject->harness->config->manifest, key,
                                "run_bench", &scope, NULL);
  if (!mine.sandbox) {
    return GINT_TO_POINTER(1);
  }
  gint64 took = bare_command(&mine);
  sandbox_end(mine.sandbox, NULL);
  return GINT_TO_POINTER(took < 0);
}

static gpointer one_bare(gpointer data) {
  (void)data;
  return GINT_TO_POINTER(floor_spawn(bwrap_true) < 0 || floor_spawn(sh_true) < 0);
}

static gint64 crowd_of(GThreadFunc work, void *user) {
  GThread *threads[CROWD];
  gboolean failed = FALSE;
  gint64 from = clock_now();
  for (guint i = 0; i < CROWD; i++) {
    threads[i] = g_thread_new("crowd", work, user);
  }
  for (guint i = 0; i < CROWD; i++) {
    failed = g_thread_join(threads[i]) != NULL || failed;
  }
  return failed ? -1 : clock_now() - from;
}

static gint64 crowd(void *user) {
  return crowd_of(one_of_crowd, user);
}

static gint64 bare_crowd(void *user) {
  return crowd_of(one_bare, user);
}

/* ---- The table ---------------------------------------------------------------------------------------------------------- */

static void print_memory(void) {
  static const char GIGABYTES[] = "head -c 2000000000 /dev/zero";
  int status = 0;
  /* One of their own: what follows must not have a long record to write to. */
  g_autofree char *record = g_build_filename(folder, "gigabytes.db", NULL);
  const char *const argv[] = {program,     "exec", "-q", "--json",  "--record", record,
                              "--timeout", "120",  "--", GIGABYTES, NULL};
  const char *const live[] = {program,     "exec", "-q", "--record", record,
                              "--timeout", "120",  "--", GIGABYTES,  NULL};
  gint64 kept = floor_peak_memory(argv, &status);
  gint64 from = clock_now();
  gint64 shown = floor_peak_memory(live, &status);
  gint64 took = clock_now() - from;
  ratio_print_figure("host memory while a command prints 2 GB, result kept", (double)kept / 1e6,
                     "MB", 16);
  ratio_print_figure("host memory while a command prints 2 GB, shown live", (double)shown / 1e6,
                     "MB", 16);
  ratio_print_figure("2 GB of output to this side", 2e9 / ((double)took / 1e9) / 1e6, "MB/s", 0);
  struct stat facts;
  if (stat(TEST_GUEST_DIR "/sandhost-guest-x86_64", &facts) == 0) {
    ratio_print_figure("size of the guest", (double)facts.st_size / 1e3, "KB", 1500);
  }
}

/* ---- Memory of sessions ------------------------------------------------------------------------------------------------ */

static void bench_sessions(void) {
  static const char WHAT[] = "50 sessions of one process: its own memory for each";
  g_autofree char *empty = g_build_filename(folder, "none", NULL);
  Subject first = {0};
  subject_open(&first, empty);
  execute_line(first.run, "true");
  Sandbox *crowd[CROWD] = {NULL};
  const CallScope scope = {.deadline = G_MAXINT64};
  guint count = 0;
  gint64 before = ratio_own_memory();
  for (; count < CROWD; count++) {
    g_autofree char *key = g_strdup_printf("sandbox_session%u", count);
    crowd[count] = sandbox_create(first.harness->instance, first.harness->config->manifest, key,
                                  "run_bench", &scope, NULL);
    Subject mine = {.sandbox = crowd[count]};
    if (!crowd[count] || bare_command(&mine) < 0) {
      break;
    }
  }
  gint64 after = ratio_own_memory();
  if (count < CROWD) {
    ratio_leave_out(WHAT, "a sandbox could not be made");
  } else {
    ratio_print_figure(WHAT, (double)(after - before) / 1024 / CROWD, "KB", 20);
  }
  for (guint i = 0; i < CROWD && crowd[i]; i++) {
    sandbox_end(crowd[i], NULL);
  }
  subject_close(&first);
}

/* ---- Beside @anthropic-ai/sandbox-runtime ------------------------------------------------------------------------------ */

/* Writes a file into the scratch folder; its path is owned. */
static char *scratch_file(const char *name, const char *content) {
  char *path = g_build_filename(folder, name, NULL);
  g_file_set_contents(path, content, -1, NULL);
  return path;
}

/* The median of a command in an open session of its library, as it says on stdout in milliseconds; below 0: it does
 * not. */
static double runtime_command(const char *package) {
  static const char SCRIPT[] =
      "import { spawn } from 'node:child_process';\n"
      "const { SandboxManager } = await import(process.argv[2] + '/dist/index.js');\n"
      "await SandboxManager.initialize({network: {allowedDomains: [], deniedDomains: []},\n"
      "  filesystem: {denyRead: [], allowWrite: ['.'], denyWrite: []}});\n"
      "const times = [];\n"
      "for (let i = 0; i < 16; i++) {\n"
      "  const from = performance.now();\n"
      "  const line = await SandboxManager.wrapWithSandbox('true');\n"
      "  const code = await new Promise((done) =>\n"
      "    spawn(line, {shell: true, stdio: 'ignore'}).on('exit', done));\n"
      "  if (code !== 0) process.exit(1);\n"
      "  if (i > 0) times.push(performance.now() - from);\n"
      "}\n"
      "console.log(times.sort((a, b) => a - b)[7]);\n"
      "await SandboxManager.reset();\n"
      "process.exit(0);\n";
  g_autofree char *script = scratch_file("each.mjs", SCRIPT);
  g_autofree char *out = NULL;
  const char *argv[] = {"node", script, package, NULL};
  union {
    const char **given;
    char **wanted; /* GLib does not write to them */
  } words = {.given = argv};
  int status = 0;
  if (!g_spawn_sync(NULL, words.wanted, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL,
                    NULL, NULL, &out, NULL, &status, NULL) ||
      status != 0) {
    return -1;
  }
  return g_ascii_strtod(out, NULL);
}

typedef struct {
  const char *package; /* NULL: reason says why there is none */
  const char *reason;
  char *record;
  char *cli;
  char *settings;
  const char *ours[8];
  const char *theirs[6];
} Beside;

static void beside_init(Beside *beside) {
  const char *reason = g_getenv("SANDHOST_BENCH_NO_RUNTIME");
  beside->package = g_getenv("SANDHOST_BENCH_RUNTIME");
  beside->reason = reason ? reason : "./bench installs it";
  beside->record = g_build_filename(folder, "runtime.db", NULL);
  beside->cli = g_build_filename(beside->package ? beside->package : "", "dist", "cli.js", NULL);
  beside->settings =
      scratch_file("runtime.json", "{\"network\": {\"allowedDomains\": [], \"deniedDomains\": []}, "
                                   "\"filesystem\": {\"denyRead\": [], \"allowWrite\": [\".\"], "
                                   "\"denyWrite\": []}}");
  const char *const ours[] = {program,        "exec", "-q",   "--record",
                              beside->record, "--",   "true", NULL};
  const char *const theirs[] = {"node", beside->cli, "--settings", beside->settings, "true", NULL};
  memcpy(beside->ours, ours, sizeof ours);
  memcpy(beside->theirs, theirs, sizeof theirs);
}

static void beside_clear(Beside *beside) {
  g_free(beside->record);
  g_free(beside->cli);
  g_free(beside->settings);
}

/* First of all, as print_memory. */
static void print_peaks(const Beside *beside) {
  int status = 0;
  ratio_print_figure("one command, whole process: peak memory of sandhost",
                     (double)floor_peak_memory(beside->ours, &status) / 1e6, "MB", 0);
  if (beside->package) {
    ratio_print_figure("one command, whole process: peak memory of sandbox-runtime",
                       (double)floor_peak_memory(beside->theirs, &status) / 1e6, "MB", 0);
  }
}

static void bench_runtime(Beside *beside) {
  static const char WHOLE[] = "sandhost exec -- true, whole process / sandbox-runtime";
  static const char EACH[] = "sandbox-runtime's library, each command";
  if (!beside->package) {
    ratio_leave_out(WHOLE, beside->reason);
    ratio_leave_out(EACH, beside->reason);
    return;
  }
  ratio_compare(WHOLE, (Meter){exec_process, beside->ours}, (Meter){exec_process, beside->theirs},
                0, MAX(rounds / 6, 3));
  double each = runtime_command(beside->package);
  if (each < 0) {
    ratio_leave_out(EACH, "it failed");
  } else {
    ratio_print_figure(EACH, each, "ms", 0);
  }
}

static void bench_commands(void) {
  g_autofree char *record = g_build_filename(folder, "record.db", NULL);
  const char *process_words[] = {program, "exec", "-q", "--record", record, "--", "true", NULL};
  g_autofree char *empty = g_build_filename(folder, "none", NULL);
  Subject subject = {0};
  subject_open(&subject, empty);
  execute_line(subject.run, "true");
  const CallScope scope = {.deadline = G_MAXINT64};
  subject.sandbox = sandbox_create(subject.harness->instance, subject.harness->config->manifest,
                                   "sandbox_bench", "run_bench", &scope, NULL);
  g_assert_nonnull(subject.sandbox);

  ratio_compare("sandhost exec -- true / bwrap true + sh -c true",
                (Meter){exec_process, process_words}, (Meter){bwrap_and_spawn, NULL}, 3.0, rounds);
  ratio_compare("command in an open sandbox / sh -c true", (Meter){bare_command, &subject},
                (Meter){spawn_floor, sh_true}, 1.3, rounds * 3);
  ratio_compare("the same with policy, sync and record / sh -c true",
                (Meter){whole_command, &subject}, (Meter){spawn_floor, sh_true}, 2.5, rounds * 3);
  ratio_compare("open a sandbox / bwrap true", (Meter){open_and_end, &subject},
                (Meter){spawn_floor, bwrap_true}, 1.6, rounds);
  ratio_compare("50 sandboxes at once, a command each / 50 bare ones", (Meter){crowd, &subject},
                (Meter){bare_crowd, NULL}, 1.3, MAX(rounds / 6, 3));
  sandbox_end(subject.sandbox, NULL);
  subject_close(&subject);
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
  Beside beside = {0};
  beside_init(&beside);
  print_peaks(&beside);
  print_memory(); /* first: a child's peak counts what this process held when it was started */
  ratio_print_head("bubblewrap", "floor ms");
  bench_commands();
  bench_record(folder, rounds);
  bench_workspace();
  bench_sessions();
  bench_runtime(&beside);
  bench_governance();
  beside_clear(&beside);
  g_autofree char *clean = g_strdup_printf("rm -rf '%s'", scratch);
  return system(clean) == 0 ? 0 : 1;
}
