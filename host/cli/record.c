/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: sandhost record, the record as a whole: verify and prune. */
#include <string.h>

#include "base/error.h"
#include "base/repr.h"
#include "cli/cli.h"
#include "cli/record-prune.h"
#include "cli/recorded.h"
#include "record/record-verify.h"

/* ---- Verify ---------------------------------------------------------------------------------------------- */

typedef struct {
  JsonObject *runs;  /* array of what record_verify_run says */
  JsonObject *whole; /* what record_verify_runs says; NULL: only some runs are looked into */
  gsize counts[3];
} Verdict;
static const char *const STATES[] = {"whole", "damaged", "not_chained"};

static gboolean verify_one(Record *record, const char *id, Verdict *verdict, GError **error) {
  JsonObject *run = record_verify_run(record, id, error);
  if (!run) {
    return FALSE;
  }
  for (gsize i = 0; i < G_N_ELEMENTS(STATES); i++) {
    verdict->counts[i] += g_strcmp0(json_get_text(run, "state"), STATES[i]) == 0 ? 1 : 0;
  }
  json_object_array_add(verdict->runs, run);
  return TRUE;
}

static gboolean verify_named(Record *record, char **names, Verdict *verdict, GError **error) {
  for (; *names; names++) {
    g_autofree char *id = record_resolve(record, *names, error);
    if (!id || !verify_one(record, id, verdict, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean verify_all(Record *record, Verdict *verdict, GError **error) {
  verdict->whole = record_verify_runs(record, error);
  JsonObject *ids = json_get(verdict->whole, "runs");
  for (gsize i = 0; ids && i < json_object_array_length(ids); i++) {
    const char *id = json_object_get_string(json_object_array_get_idx(ids, i));
    g_autoptr(GError) failure = NULL;
    if (!verify_one(record, id, verdict, &failure) &&
        !g_error_matches(failure, SANDHOST_ERROR,
                         SANDHOST_ERROR_NOT_FOUND)) { /* pruned meanwhile */
      g_propagate_error(error, g_steal_pointer(&failure));
      return FALSE;
    }
  }
  return verdict->whole != NULL;
}

static void print_faults(const char *of, const char *key, JsonObject *faults) {
  for (gsize i = 0; i < json_object_array_length(faults); i++) {
    JsonObject *fault = json_object_array_get_idx(faults, i);
    gint64 number = json_get_int(fault, key, 0);
    g_autofree char *which =
        number > 0 ? g_strdup_printf(" %s %" G_GINT64_FORMAT, key, number) : g_strdup("");
    g_autofree char *what = g_strdelimit(g_strdup(json_get_text(fault, "what")), "_", ' ');
    const char *detail = json_get_text(fault, "detail");
    g_autofree char *line = g_strdup_printf("%s:%s %s%s%s%s", of, which, what, detail ? " (" : "",
                                            detail ? detail : "", detail ? ")" : "");
    g_autofree char *shown = cli_one_line(line);
    recorded_print(shown);
  }
}

static void print_verdict(const Verdict *verdict) {
  for (gsize i = 0; i < json_object_array_length(verdict->runs); i++) {
    JsonObject *run = json_object_array_get_idx(verdict->runs, i);
    print_faults(json_get_text(run, "run_id"), "event", json_get(run, "faults"));
  }
  g_autofree char *counts =
      g_strdup_printf("%" G_GSIZE_FORMAT " runs whole, %" G_GSIZE_FORMAT
                      " damaged, %" G_GSIZE_FORMAT " not chained (older than the chains)",
                      verdict->counts[0], verdict->counts[1], verdict->counts[2]);
  if (!verdict->whole) {
    recorded_print(counts);
    return;
  }
  print_faults("record", "run", json_get(verdict->whole, "faults"));
  g_autofree char *line = g_strdup_printf("%s, %" G_GINT64_FORMAT " pruned; head %s", counts,
                                          json_get_int(verdict->whole, "pruned", 0),
                                          json_get_text(verdict->whole, "head"));
  recorded_print(line);
}

static void print_verdict_json(const Verdict *verdict, gboolean good) {
  g_autoptr(JsonObject) result = json_object_new_object();
  json_add_bool(result, "whole", good);
  json_add_take(result, "runs", json_object_get(verdict->runs));
  json_add_text(result, "head", json_get_text(verdict->whole, "head"));
  json_add_take(result, "pruned", json_object_get(json_get(verdict->whole, "pruned")));
  json_add_take(result, "faults", json_object_get(json_get(verdict->whole, "faults")));
  recorded_print_json(result);
}

static gboolean verdict_is_good(const Verdict *verdict) {
  JsonObject *faults = json_get(verdict->whole, "faults");
  return verdict->counts[1] == 0 && (!faults || json_object_array_length(faults) == 0);
}

static int verify(const char *path, char **names, gboolean json) {
  g_autoptr(GError) error = NULL;
  Verdict verdict = {.runs = json_object_new_array()};
  g_autoptr(Record) record = recorded_open(path, &error);
  gboolean done = record && (*names ? verify_named(record, names, &verdict, &error)
                                    : verify_all(record, &verdict, &error));
  gboolean good = done && verdict_is_good(&verdict);
  if (done && json) {
    print_verdict_json(&verdict, good);
  } else if (done) {
    print_verdict(&verdict);
  }
  json_object_put(verdict.runs);
  json_object_put(verdict.whole);
  return !done ? cli_fail(error) : good ? 0 : 1;
}

static int cli_record_verify(int argc, char **argv) {
  g_autofree char *record = NULL;
  gboolean json = FALSE;
  const GOptionEntry entries[] = {
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &record, "File that keeps the record", "F"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "Print one JSON object", NULL},
      {0},
  };
  return cli_parse_mixed(
             &argc, &argv, "[RUN ...]",
             "Finds events and runs that were altered, removed or put elsewhere. Exit 0: the "
             "record is what was written; 1: it is not.",
             entries)
             ? verify(record, argv + 1, json)
             : EXIT_USAGE;
}

/* ---- The command ----------------------------------------------------------------------------------------- */

int cli_record(int argc, char **argv) {
  char verify_name[] = "record verify";
  char prune_name[] = "record prune";
  if (argc > 1 && strcmp(argv[1], "verify") == 0) {
    argv[1] = verify_name;
    return cli_record_verify(argc - 1, argv + 1);
  }
  if (argc > 1 && strcmp(argv[1], "prune") == 0) {
    argv[1] = prune_name;
    return cli_record_prune(argc - 1, argv + 1);
  }
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    recorded_print(
        "Usage: sandhost record verify [--json] [RUN ...]\n"
        "       sandhost record prune [--older-than SPAN] [--keep N] [--max-bytes SIZE] "
        "[--dry-run]\n\n"
        "sandhost record verify --help and sandhost record prune --help tell the options.");
    return 0;
  }
  cli_complain("usage: sandhost record verify|prune; sandhost record --help tells more");
  return EXIT_USAGE;
}
