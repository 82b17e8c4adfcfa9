/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole-bench.c: a whole process that runs one command that does nothing, by each way there is, in turn.
 *
 * Ratios are the others' to ours, pair by pair. Memory is the peak of the largest process that somebody waited for: of
 * docker's command it is the client's, and the engine's is nowhere in it.
 * DOCKER_HOST is a private engine that has the image busybox (tests/engine/run starts one); SANDHOST_BENCH_NO_ENGINE:
 * why there is none. SANDHOST_BENCH_RUNTIME, SANDHOST_BENCH_NO_RUNTIME: the same of @anthropic-ai/sandbox-runtime.
 * Usage: sandhost-bench-whole [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "floors.h"
#include "ratio.h"
#include "runtime.h"

#define WORDS 12
#define MOST_TIMES 1000u

static const char program[] = TEST_BUILD_DIR "/bin/sandhost";
static const char config_text[] =
    "{\"governance_config\": {\"sandbox_config\": {\"provider\": \"docker\","
    " \"options\": {\"image\": \"busybox\"}}}}";

typedef struct {
  const char *name;
  const char *words[WORDS];
  const char *missing; /* why it takes no part; NULL: it does */
  gboolean failed;
  double times[MOST_TIMES]; /* ms */
  double peaks[MOST_TIMES]; /* bytes */
  double ratios[MOST_TIMES];
  double peak_ratios[MOST_TIMES];
} Way;

/* The first is ours. */
static void take_turns(Way *const *ways, guint count, guint times) {
  for (guint turn = 0; turn <= times; turn++) { /* one more, which does not count */
    for (guint i = 0; i < count; i++) {
      Way *way = ways[i];
      gint64 peak = -1;
      gint64 took = way->missing || way->failed ? -1 : floor_measure(way->words, &peak);
      way->failed = way->failed || (!way->missing && took <= 0);
      if (turn > 0 && took > 0) {
        way->times[turn - 1] = (double)took / 1e6;
        way->peaks[turn - 1] = (double)peak;
        way->ratios[turn - 1] = way->times[turn - 1] / ways[0]->times[turn - 1];
        way->peak_ratios[turn - 1] = way->peaks[turn - 1] / ways[0]->peaks[turn - 1];
      }
    }
    if (ways[0]->failed) {
      return; /* nothing to hold the others against */
    }
  }
}

static void print_way(Way *way, guint times) {
  if (way->missing) {
    ratio_leave_out(way->name, way->missing);
  } else if (way->failed) {
    g_autofree char *complaint = floor_complaint(way->words);
    printf("%-62s failed: %s\n", way->name, complaint ? complaint : "now it does not");
  } else {
    printf("%-62s %9.3f %9.2f %9.2f %9.2f\n", way->name, ratio_median(way->times, times),
           ratio_median(way->ratios, times), ratio_median(way->peaks, times) / 1e6,
           ratio_median(way->peak_ratios, times));
  }
  fflush(stdout);
}

static Way *way_new(const char *name, const char *const *words, const char *missing) {
  Way *way = g_new0(Way, 1);
  way->name = name;
  way->missing = missing;
  for (guint i = 0; words[i]; i++) {
    way->words[i] = words[i];
  }
  return way;
}

static void bench_whole(const char *scratch, guint times) {
  const char *no_engine = g_getenv("SANDHOST_BENCH_NO_ENGINE");
  const char *no_package = NULL;
  const char *package = runtime_package(&no_package);
  g_autofree char *client = g_find_program_in_path("docker");
  g_autofree char *record = g_build_filename(scratch, "record.db", NULL);
  g_autofree char *config = g_build_filename(scratch, "docker.json", NULL);
  g_autofree char *cli = g_build_filename(package ? package : "", "dist", "cli.js", NULL);
  g_autofree char *settings = runtime_settings(scratch);
  if (!no_engine && !g_getenv("DOCKER_HOST")) {
    no_engine = "tests/engine/run starts an engine";
  }
  g_file_set_contents(config, config_text, -1, NULL);
  const char *const ours[] = {program, "exec", "-q", "--record", record, "--", "true", NULL};
  const char *const bare[] = {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "sh",
                              "-c",    "true",          NULL};
  const char *const in_container[] = {program,    "exec", "-q", "-y",   "-c", config,
                                      "--record", record, "--", "true", NULL};
  const char *const run[] = {"docker", "run",  "--rm", "--network=none", "busybox", "sh",
                             "-c",     "true", NULL};
  const char *const runtime[] = {"node", cli, "--settings", settings, "true", NULL};
  Way *const ways[] = {
      way_new("sandhost exec -- true, bubblewrap (ours)", ours, NULL),
      way_new("a bare bwrap with sh -c true", bare, NULL),
      way_new("sandhost exec -- true, docker", in_container, no_engine),
      way_new("docker run --rm", run,
              no_engine ? no_engine
              : client  ? NULL
                        : "docker's own command is not installed"),
      way_new("sandbox-runtime", runtime, package ? NULL : no_package),
  };
  printf("\n%-62s %9s %9s %9s %9s\n", "whole process, one command", "ms", "to ours", "MB",
         "to ours");
  take_turns(ways, G_N_ELEMENTS(ways), times);
  for (guint i = 0; i < G_N_ELEMENTS(ways); i++) {
    print_way(ways[i], times);
    g_free(ways[i]);
  }
}

int main(int argc, char **argv) {
  guint rounds = 60;
  if (argc > 1) {
    rounds = (guint)g_ascii_strtoull(argv[1], NULL, 10);
    rounds = CLAMP(rounds, 3, MOST_TIMES);
  }
  g_autofree char *scratch = g_dir_make_tmp("sandhost-bench-XXXXXX", NULL);
  g_setenv("SANDHOST_STATE_DIR", scratch, TRUE);
  if (chdir(scratch) != 0) {
    return 1;
  }
  bench_whole(scratch, MAX(rounds / 3, 5));
  g_autofree char *clean = g_strdup_printf("rm -rf '%s'", scratch);
  return system(clean) == 0 ? 0 : 1;
}
