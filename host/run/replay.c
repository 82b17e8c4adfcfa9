/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c: the requests of a recorded run, each with the decision that the policy alone had made of it, and
 * decided again.
 *
 * A request is recorded again each time that something is decided about it: by the policy, by the sandbox that
 * a rule requires, by a budget, by a person. The first two are compared. The text of a command stands in the arguments of
 * its call, and is believed only where it has the digest of the command that was decided.
 */
#include "run/replay.h"

#include <string.h>

#include "base/error.h"
#include "governance/gate.h"
#include "governance/requests.h"
#include "run/execute.h"

/* What every marker of something taken out of the record begins with. */
#define MARKER "[REDACTED"

typedef struct {
  const Policy *policy;
  gboolean isolated;
  gboolean by_rules;
  GHashTable *commands; /* tool call -> its command, as its newest beginning has it */
  GHashTable *by_id;    /* request -> Replayed; borrowed from found */
  GPtrArray *found;
} Replay;

static void replayed_free(Replayed *replayed) {
  g_free(replayed->at);
  g_free(replayed->tool_call_id);
  policy_request_free(replayed->request);
  g_free(replayed->reason_code);
  g_strfreev(replayed->rule_ids);
  policy_decision_free(replayed->decision);
  g_free(replayed->why);
  g_free(replayed);
}

static Replayed *add(Replay *replay, JsonObject *event) {
  Replayed *replayed = g_new0(Replayed, 1);
  replayed->at = g_strdup(json_get_text(event, "at"));
  replayed->tool_call_id = g_strdup(json_get_text(json_get(event, "metadata"), "tool_call_id"));
  g_ptr_array_add(replay->found, replayed);
  return replayed;
}

static void set_why(Replayed *replayed, const char *why) {
  if (!replayed->why) {
    replayed->why = g_strdup(why);
  }
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static void note_command(Replay *replay, JsonObject *event) {
  const char *call = json_get_text(json_get(event, "metadata"), "tool_call_id");
  JsonObject *arguments = json_get(json_get(event, "payload"), "arguments");
  const char *command = json_get_text(arguments, "command");
  if (call) {
    g_hash_table_replace(replay->commands, g_strdup(call), g_strdup(command));
  }
}

/* What the request runs, where the text on record is that of just this command. */
static void find_command(const Replay *replay, Replayed *replayed) {
  PolicyRequest *request = replayed->request;
  const char *digest = json_get_text(json_get(request->metadata, "command"), "digest");
  const char *text =
      replayed->tool_call_id ? g_hash_table_lookup(replay->commands, replayed->tool_call_id) : NULL;
  if (!digest || !text) {
    return;
  }
  g_autofree char *script = request_script(text);
  const char *const argv[] = {"sh", "-c", script, NULL};
  g_autoptr(PolicyRequest) read = request_command(argv, TRUE);
  if (g_strcmp0(json_get_text(json_get(read->metadata, "command"), "digest"), digest) == 0) {
    request->command = g_steal_pointer(&read->command);
  } else if (!strstr(text, MARKER)) { /* else it is as good as not recorded */
    set_why(replayed, "the recorded text is not that of the command that was decided");
  }
}

/* Rules would be held against the marker. What they do not look at may be one. */
static gboolean is_redacted(const PolicyRequest *request) {
  g_autoptr(JsonObject) object = policy_request_json(request);
  json_object_object_del(object, "metadata");
  return strstr(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE), MARKER) !=
         NULL;
}

static const char *why_no_request(JsonObject *event) {
  return json_get_bool(event, "damaged", FALSE) ? "its event is damaged"
                                                : "the request was not recorded";
}

/* The same request once more is nothing new, and must say the same. */
static gboolean is_known(const Replay *replay, const PolicyRequest *request) {
  Replayed *before = g_hash_table_lookup(replay->by_id, request->request_id);
  if (!before) {
    return FALSE;
  }
  g_autoptr(JsonObject) first = policy_request_json(before->request);
  g_autoptr(JsonObject) second = policy_request_json(request);
  g_autofree char *one = json_canonical(first);
  g_autofree char *other = json_canonical(second);
  if (strcmp(one, other) != 0) {
    set_why(before, "two recorded requests have its id");
  }
  return TRUE;
}

static void read_request(Replay *replay, JsonObject *event) {
  g_autoptr(GError) error = NULL;
  JsonObject *recorded = json_get(json_get(event, "payload"), "request");
  if (!recorded) {
    set_why(add(replay, event), why_no_request(event));
    return;
  }
  g_autoptr(PolicyRequest) request = policy_request_from_json(recorded, &error);
  if (!request) {
    set_why(add(replay, event), error->message);
    return;
  }
  if (is_known(replay, request)) {
    return;
  }
  Replayed *replayed = add(replay, event);
  replayed->request = g_steal_pointer(&request);
  if (is_redacted(replayed->request)) {
    set_why(replayed, "a part of the request was redacted");
  }
  find_command(replay, replayed);
  g_hash_table_insert(replay->by_id, replayed->request->request_id, replayed);
}

/* ---- Decisions --------------------------------------------------------------------------------------------------- */

/* What came after the rules, from a person or from a budget. */
static gboolean is_no_rules(const char *reason_code) {
  static const char *const CODES[] = {"approved", "denied", "expired_policy", "budget_exceeded",
                                      NULL};
  return g_strv_contains(CODES, reason_code);
}

static gboolean read_effect(const char *name, Effect *ret_effect) {
  for (Effect effect = EFFECT_DENY; effect <= EFFECT_ALLOW; effect++) {
    if (g_strcmp0(name, effect_name(effect)) == 0) {
      *ret_effect = effect;
      return TRUE;
    }
  }
  return FALSE;
}

static gboolean is_text_list(JsonObject *value) {
  gboolean ok = json_object_is_type(value, json_type_array);
  for (gsize i = 0; ok && i < json_object_array_length(value); i++) {
    ok = json_object_is_type(json_object_array_get_idx(value, i), json_type_string);
  }
  return ok;
}

static void read_decision(Replay *replay, JsonObject *event) {
  JsonObject *recorded = json_get(json_get(event, "payload"), "decision");
  const char *id = json_get_text(recorded, "request_id");
  const char *code = json_get_text(recorded, "reason_code");
  JsonObject *rules = json_get(recorded, "matched_rule_ids");
  Replayed *replayed = id ? g_hash_table_lookup(replay->by_id, id) : NULL;
  if (!recorded) {
    return; /* its request lacks one then */
  }
  if (!replayed) {
    set_why(add(replay, event), "the request was not recorded");
    return;
  }
  if (code && is_no_rules(code)) {
    return;
  }
  if (!code || !is_text_list(rules) ||
      !read_effect(json_get_text(recorded, "effect"), &replayed->effect)) {
    set_why(replayed, "its recorded decision is damaged");
    return;
  }
  g_free(replayed->reason_code);
  g_strfreev(replayed->rule_ids);
  replayed->decided = TRUE;
  replayed->reason_code = g_strdup(code);
  replayed->rule_ids = json_get_strv(rules);
}

/* ---- Again ------------------------------------------------------------------------------------------------------- */

static gboolean differs(const Replay *replay, const Replayed *replayed) {
  const PolicyDecision *decision = replayed->decision;
  if (replayed->effect != decision->effect) {
    return TRUE;
  }
  return replay->by_rules && (strcmp(replayed->reason_code, decision->reason_code) != 0 ||
                              !g_strv_equal((const char *const *)replayed->rule_ids,
                                            (const char *const *)decision->matched_rule_ids));
}

static void decide(const Replay *replay, Replayed *replayed) {
  const PolicyRequest *request = replayed->request;
  gboolean lacks = request && policy_lacks_command(replay->policy, request);
  replayed->verdict = REPLAY_UNDECIDABLE;
  if (request && !replayed->decided) {
    set_why(replayed, "no decision by a rule was recorded");
  } else if (lacks) {
    set_why(replayed, "command text was not recorded");
  }
  if (replayed->why) {
    return;
  }
  replayed->decision = gate_preview(replay->policy, request, replay->isolated);
  replayed->verdict = differs(replay, replayed) ? REPLAY_DIFFERS : REPLAY_SAME;
}

static void read_event(Replay *replay, JsonObject *event) {
  const char *type = json_get_text(event, "type");
  if (g_strcmp0(type, "tool_call_started") == 0) {
    note_command(replay, event);
  } else if (g_strcmp0(type, "policy_request_created") == 0) {
    read_request(replay, event);
  } else if (type && g_str_has_prefix(type, "policy_decision_")) {
    read_decision(replay, event);
  }
}

GPtrArray *replay_run(const Policy *policy, JsonObject *run, gboolean by_rules) {
  JsonObject *events = json_get(run, "events");
  Replay replay = {
      .policy = policy,
      .isolated = json_get_bool(json_get(run, "header"), "isolated", TRUE),
      .by_rules = by_rules,
      .commands = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
      .by_id = g_hash_table_new(g_str_hash, g_str_equal),
      .found = g_ptr_array_new_with_free_func((GDestroyNotify)replayed_free),
  };
  for (gsize i = 0;
       json_object_is_type(events, json_type_array) && i < json_object_array_length(events); i++) {
    read_event(&replay, json_object_array_get_idx(events, i));
  }
  for (guint i = 0; i < replay.found->len; i++) {
    decide(&replay, g_ptr_array_index(replay.found, i));
  }
  g_hash_table_unref(replay.commands);
  g_hash_table_unref(replay.by_id);
  return replay.found;
}
