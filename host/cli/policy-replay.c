/* SPDX-License-Identifier: Apache-2.0 */
/* policy-replay.c: sandhost policy replay, what a policy would have made of the runs on record. */
#include <string.h>

#include "base/error.h"
#include "base/repr.h"
#include "cli/policy.h"
#include "cli/recorded.h"
#include "governance/command-tell.h"
#include "run/replay.h"

#define MOST_SHOWN 200 /* characters of a command; --json has all of it */
#define EXIT_DIFFERS 1
#define EXIT_UNDECIDED 3 /* nothing differs, but not everything could be decided */

typedef struct {
  char *config;
  char *record;
  gboolean json;
  gboolean by_rules;
} ReplayOptions;

typedef struct {
  const Policy *policy;
  const ReplayOptions *options;
  gsize counts[3]; /* by ReplayVerdict */
  JsonObject *differences;
  JsonObject *undecidable;
} Tally;

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

/* "process.exec 'git push'"; a command by its own text, where that is known. Owned. */
static char *asked_of(const Replayed *replayed) {
  if (!replayed->request) {
    return g_strdup("a request");
  }
  if (!replayed->request->command) {
    return policy_asked(replayed->request);
  }
  g_autofree char *whole = command_summary(replayed->request->command);
  g_autofree char *summary = g_utf8_strlen(whole, -1) > MOST_SHOWN
                                 ? g_utf8_substring(whole, 0, MOST_SHOWN)
                                 : g_strdup(whole);
  g_autofree char *line = repr_text(summary);
  return g_strdup_printf("%s %s", replayed->request->capability, line);
}

static void say(const char *run_id, const Replayed *replayed) {
  g_autofree char *asked = asked_of(replayed);
  const char *at = replayed->at ? replayed->at : "-";
  if (replayed->verdict == REPLAY_UNDECIDABLE) {
    policy_say("%s %s %s: not decidable: %s", run_id, at, asked, replayed->why);
    return;
  }
  const PolicyDecision *now = replayed->decision;
  g_autofree char *before =
      policy_effect_by(replayed->effect, replayed->reason_code, replayed->rule_ids);
  g_autofree char *after = policy_effect_by(now->effect, now->reason_code, now->matched_rule_ids);
  policy_say("%s %s %s: %s -> %s", run_id, at, asked, before, after);
}

static JsonObject *item_json(const char *run_id, const Replayed *replayed) {
  const PolicyRequest *request = replayed->request;
  JsonObject *item = json_object_new_object();
  json_add_text(item, "run_id", run_id);
  json_add_text(item, "at", replayed->at);
  json_add_text(item, "tool_call_id", replayed->tool_call_id);
  json_add_take(item, "request", request ? policy_request_json(request) : NULL);
  if (request && request->command) {
    g_autofree char *summary = command_summary(request->command);
    json_add_text(item, "command", summary);
  } else {
    json_add_take(item, "command", NULL);
  }
  if (replayed->verdict == REPLAY_UNDECIDABLE) {
    json_add_text(item, "why", replayed->why);
    return item;
  }
  JsonObject *before = json_object_new_object();
  json_add_text(before, "effect", effect_name(replayed->effect));
  json_add_text(before, "reason_code", replayed->reason_code);
  json_add_take(before, "matched_rule_ids",
                json_from_strv((const char *const *)replayed->rule_ids));
  json_add_take(item, "before", before);
  json_add_take(item, "after", policy_decision_json(replayed->decision));
  return item;
}

static void tell(Tally *tally, const char *run_id, const Replayed *replayed) {
  tally->counts[replayed->verdict]++;
  if (replayed->verdict == REPLAY_SAME) {
    return;
  }
  if (!tally->options->json) {
    say(run_id, replayed);
    return;
  }
  json_object_array_add(replayed->verdict == REPLAY_DIFFERS ? tally->differences
                                                            : tally->undecidable,
                        item_json(run_id, replayed));
}

static void tell_end(const Tally *tally) {
  gsize differ = tally->counts[REPLAY_DIFFERS];
  gsize undecidable = tally->counts[REPLAY_UNDECIDABLE];
  gsize again = tally->counts[REPLAY_SAME] + differ;
  if (!tally->options->json) {
    g_autofree char *left =
        undecidable ? g_strdup_printf(", %zu not decidable", undecidable) : NULL;
    policy_say("%zu decided again, %zu would differ%s", again, differ, left ? left : "");
    return;
  }
  g_autoptr(JsonObject) object = json_object_new_object();
  json_add_take(object, "policy", policy_subject_json(tally->policy));
  json_add_int(object, "decided", (gint64)again);
  json_add_int(object, "differ", (gint64)differ);
  json_add_int(object, "not_decidable", (gint64)undecidable);
  json_add_take(object, "differences", json_object_get(tally->differences));
  json_add_take(object, "undecided", json_object_get(tally->undecidable));
  recorded_print_json(object);
}

/* ---- The runs ---------------------------------------------------------------------------------------------------- */

static gboolean replay_one(Tally *tally, Record *record, const char *id, GError **error) {
  g_autoptr(JsonObject) run = record_run(record, id, error);
  if (!run) {
    return FALSE;
  }
  g_autoptr(GPtrArray) found = replay_run(tally->policy, run, tally->options->by_rules);
  for (guint i = 0; i < found->len; i++) {
    tell(tally, id, g_ptr_array_index(found, i));
  }
  return TRUE;
}

static gboolean replay_named(Tally *tally, Record *record, char **names, GError **error) {
  for (; *names; names++) {
    g_autofree char *id = record_resolve(record, *names, error);
    if (!id || !replay_one(tally, record, id, error)) {
      return FALSE;
    }
  }
  return TRUE;
}

/* The oldest first. One that is pruned meanwhile is none. */
static gboolean replay_all(Tally *tally, Record *record, GError **error) {
  g_autoptr(JsonObject) runs = record_runs(record, G_MAXUINT, error);
  for (gsize i = runs ? json_object_array_length(runs) : 0; i-- > 0;) {
    const char *id = json_get_text(json_object_array_get_idx(runs, i), "run_id");
    g_autoptr(GError) failure = NULL;
    if (!replay_one(tally, record, id, &failure) &&
        !g_error_matches(failure, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND)) {
      g_propagate_error(error, g_steal_pointer(&failure));
      return FALSE;
    }
  }
  return runs != NULL;
}

static int replay(const ReplayOptions *options, char **names) {
  g_auto(PolicySubject) subject = {0};
  g_autoptr(GError) error = NULL;
  if (!policy_subject_open(&subject, options->config, NULL, &error)) {
    return cli_fail(error);
  }
  const CliRunOptions place = {.record = options->record};
  g_autofree char *path = cli_record_path(&place, subject.config);
  g_autoptr(Record) record = recorded_open(path, &error);
  Tally tally = {.policy = subject.policy,
                 .options = options,
                 .differences = json_object_new_array(),
                 .undecidable = json_object_new_array()};
  gboolean done = record && (*names ? replay_named(&tally, record, names, &error)
                                    : replay_all(&tally, record, &error));
  if (done) {
    tell_end(&tally);
  }
  json_object_put(tally.differences);
  json_object_put(tally.undecidable);
  if (!done) {
    return cli_fail(error);
  }
  return tally.counts[REPLAY_DIFFERS]       ? EXIT_DIFFERS
         : tally.counts[REPLAY_UNDECIDABLE] ? EXIT_UNDECIDED
                                            : 0;
}

int cli_policy_replay(int argc, char **argv) {
  ReplayOptions options = {0};
  const GOptionEntry entries[] = {
      {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options.config,
       "Configuration file, or a policy file", "F"},
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &options.record, "File that keeps the record", "F"},
      {"rules", 0, 0, G_OPTION_ARG_NONE, &options.by_rules,
       "Another rule or reason is a difference too, not only another effect", NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "Print one JSON object", NULL},
      {0},
  };
  int code = EXIT_USAGE;
  if (cli_parse_mixed(
          &argc, &argv, "[RUN ...]",
          "Decides again, under another policy, what was asked in the runs on record. Exit 0: "
          "nothing "
          "would differ; 1: something would; 3: nothing would, but some could not be decided.",
          entries)) {
    code = replay(&options, argv + 1);
  }
  g_free(options.config);
  g_free(options.record);
  return code;
}
