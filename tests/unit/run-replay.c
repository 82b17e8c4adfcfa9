/* SPDX-License-Identifier: Apache-2.0 */
/* run-replay.c: the requests of a recorded run, decided again: what differs, what cannot be decided, and what a
 * record that somebody changed cannot bring about. */
#include "governance-fixture.h"

#include "base/ids.h"
#include "governance/gate.h"
#include "governance/requests.h"
#include "run/execute.h"
#include "run/replay.h"

/* A run as record_run gives it, growing. */
typedef struct {
  JsonObject *run;
  JsonObject *events;
  JsonObject *damage; /* the last event's request, to be spoilt; borrowed */
} Story;

static void story_begin(Story *story) {
  story->run = json_object_new_object();
  story->events = json_object_new_array();
  json_add_take(story->run, "events", story->events);
}

static void story_clear(Story *story) {
  json_object_put(story->run);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Story, story_clear)

static JsonObject *tell(Story *story, const char *type, const char *call, const char *key,
                        JsonObject *take_value) {
  JsonObject *event = json_object_new_object();
  JsonObject *metadata = json_object_new_object();
  JsonObject *payload = json_object_new_object();
  json_add_text(metadata, "tool_call_id", call);
  json_add_take(payload, key, take_value);
  json_add_text(event, "type", type);
  json_add_text(event, "at", "2026-01-31T12:00:00.000000Z");
  json_add_take(event, "metadata", metadata);
  json_add_take(event, "payload", payload);
  json_object_array_add(story->events, event);
  return event;
}

static void tell_call(Story *story, const char *call, const char *command) {
  JsonObject *arguments = json_object_new_object();
  json_add_text(arguments, "command", command);
  tell(story, "tool_call_started", call, "arguments", arguments);
}

static void tell_decision(Story *story, const char *call, const PolicyRequest *request,
                          const PolicyDecision *decision) {
  JsonObject *recorded = policy_request_json(request);
  story->damage = recorded;
  tell(story, "policy_request_created", call, "request", recorded);
  g_autofree char *type = g_strdup_printf("policy_decision_%s", effect_name(decision->effect));
  tell(story, type, call, "decision", policy_decision_json(decision));
}

/* The request as the policy decided it then. */
static void tell_asked(Story *story, const char *call, const Policy *policy,
                       const PolicyRequest *request) {
  g_autoptr(PolicyDecision) decision = policy_decide(policy, request);
  tell_decision(story, call, request, decision);
}

static PolicyRequest *command_of(const char *command) {
  g_autofree char *script = request_script(command);
  const char *const argv[] = {"sh", "-c", script, NULL};
  return request_command(argv, TRUE);
}

static void tell_command(Story *story, const char *call, const Policy *policy, const char *told,
                         const char *decided) {
  g_autoptr(PolicyRequest) request = command_of(decided);
  if (told) {
    tell_call(story, call, told);
  }
  tell_asked(story, call, policy, request);
}

/* "same", "allow a -> deny b", or why it is not decidable; one a line. */
static void replays(const Story *story, const Policy *policy, gboolean by_rules,
                    const char *wanted) {
  static const char *const NAMES[] = {"same", "differs", "undecidable"};
  g_autoptr(GPtrArray) found = replay_run(policy, story->run, by_rules);
  g_autoptr(GString) out = g_string_new(NULL);
  for (guint i = 0; i < found->len; i++) {
    const Replayed *replayed = g_ptr_array_index(found, i);
    g_assert_true((replayed->verdict == REPLAY_UNDECIDABLE) == (replayed->why != NULL));
    g_assert_true((replayed->verdict == REPLAY_UNDECIDABLE) == (replayed->decision == NULL));
    g_string_append_printf(out, "%s%s", i ? "\n" : "", NAMES[replayed->verdict]);
    if (replayed->why) {
      g_string_append_printf(out, ": %s", replayed->why);
    } else if (replayed->verdict == REPLAY_DIFFERS) {
      g_autofree char *before = g_strjoinv(",", replayed->rule_ids);
      g_autofree char *after = g_strjoinv(",", replayed->decision->matched_rule_ids);
      g_string_append_printf(out, ": %s %s %s -> %s %s %s", effect_name(replayed->effect),
                             replayed->reason_code, before, effect_name(replayed->decision->effect),
                             replayed->decision->reason_code, after);
    }
  }
  g_assert_cmpstr(out->str, ==, wanted);
}

#define COMMANDS "{'rule_id': 'commands', 'capability': 'process.exec'}"
#define OPEN "{'mode': 'strict', 'rules': {'allow': [" COMMANDS "]}}"
#define NO_RM                                                                                      \
  "{'mode': 'strict', 'rules': {'allow': [" COMMANDS "], 'deny': [{'rule_id': 'no_rm',"            \
  " 'capability': 'process.exec', 'command': {'program': 'rm'}}]}}"

static void test_commands(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) after = fixture_policy(NO_RM);
  story_begin(&story);
  tell_command(&story, "call_1", before, "ls", "ls");
  tell_command(&story, "call_2", before, "rm x", "rm x");
  tell_command(&story, "call_3", before, "ls > x", "ls > x");
  replays(&story, before, TRUE, "same\nsame\nsame");
  replays(&story, after, FALSE,
          "same\n"
          "differs: allow matched_allow commands -> deny matched_deny no_rm\n"
          "differs: allow matched_allow commands -> deny command_opaque ");
}

/* sh gets a blank before it, which the record's text has not. */
static void test_command_that_begins_like_an_option(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) after = fixture_policy(NO_RM);
  story_begin(&story);
  tell_command(&story, "call_1", before, "-x; rm y", "-x; rm y");
  replays(&story, after, FALSE, "differs: allow matched_allow commands -> deny matched_deny no_rm");
}

static void test_command_without_its_text(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) after = fixture_policy(NO_RM);
  story_begin(&story);
  tell_command(&story, "call_1", before, NULL, "ls");
  replays(&story, after, FALSE, "undecidable: command text was not recorded");
  /* Where no rule is about what runs, nothing needs it. */
  replays(&story, before, FALSE, "same");
}

/* An older text of the call, or another one's, is never taken for it. */
static void test_command_with_another_text(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) after = fixture_policy(NO_RM);
  story_begin(&story);
  tell_command(&story, "call_1", before, "ls", "rm x");
  tell_command(&story, "call_1", before, "rm x", "rm x");
  replays(&story, after, FALSE,
          "undecidable: the recorded text is not that of the command that was decided\n"
          "differs: allow matched_allow commands -> deny matched_deny no_rm");
}

/* A marker is neither the command nor a target. */
static void test_redacted(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) after = fixture_policy(NO_RM);
  g_autoptr(PolicyRequest) file = request_file(TRUE, "notes/[REDACTED_EMAIL].txt");
  story_begin(&story);
  tell_command(&story, "call_1", before, "rm [REDACTED:credential]", "rm 0123456789abcdef");
  tell_command(&story, "call_2", before, "echo '[REDACTED]'", "echo '[REDACTED]'");
  tell_asked(&story, "call_1", before, file);
  replays(&story, after, FALSE,
          "undecidable: command text was not recorded\nsame\n"
          "undecidable: a part of the request was redacted");
  replays(&story, before, FALSE, "same\nsame\nundecidable: a part of the request was redacted");
}

static PolicyDecision *persons(const PolicyRequest *request, Effect effect, const char *code) {
  PolicyDecision *decision = g_new0(PolicyDecision, 1);
  decision->decision_id = id_new("decision");
  decision->request_id = g_strdup(request->request_id);
  decision->effect = effect;
  decision->reason_code = code;
  decision->matched_rule_ids = g_new0(char *, 1);
  return decision;
}

/* What is compared is what the policy said before. */
static void test_persons_answers(void) {
  static const struct {
    Effect effect;
    const char *code;
  } ANSWERS[] = {
      {EFFECT_ALLOW, "approved"}, {EFFECT_DENY, "denied"}, {EFFECT_DENY, "expired_policy"}};
  g_autoptr(Policy) before = fixture_policy(
      "{'mode': 'strict', 'rules': {'ask': [{'rule_id': 'asks', 'capability': 'sandbox.*'}]}}");
  g_autoptr(Policy) after = fixture_policy(
      "{'mode': 'strict', 'rules': {'allow': [{'rule_id': 'ok', 'capability': 'sandbox.*'}]}}");
  for (gsize i = 0; i < G_N_ELEMENTS(ANSWERS); i++) {
    g_auto(Story) story = {0};
    g_autoptr(PolicyRequest) request = request_execute();
    g_autoptr(PolicyDecision) answer = persons(request, ANSWERS[i].effect, ANSWERS[i].code);
    story_begin(&story);
    tell_asked(&story, "call_1", before, request);
    tell_decision(&story, "call_1", request, answer);
    replays(&story, before, TRUE, "same");
    replays(&story, after, FALSE, "differs: ask matched_ask asks -> allow matched_allow ok");
  }
}

/* The listing goes with its command: that one is told, not both. */
static void test_listing_follows(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) closed = fixture_policy("{'mode': 'strict'}");
  g_autoptr(Policy) named = fixture_policy("{'mode': 'strict', 'rules': {'deny': [{'rule_id': "
                                           "'none_back', 'capability': 'sandbox.*'}]}}");
  g_autoptr(PolicyRequest) request = request_sync();
  g_autoptr(PolicyDecision) decision = gate_preview(before, request, TRUE);
  g_assert_cmpstr(decision->reason_code, ==, "follows_command");
  story_begin(&story);
  tell_decision(&story, "call_1", request, decision);
  replays(&story, before, TRUE, "same");
  replays(&story, closed, TRUE, "same");
  replays(&story, named, FALSE, "differs: allow follows_command  -> deny matched_deny none_back");
}

/* A rule that wants a sandbox decides as it did there. */
static void test_sandbox_required(void) {
  g_auto(Story) story = {0};
  g_autoptr(JsonObject) header = json_object_new_object();
  g_autoptr(Policy) policy =
      fixture_policy("{'mode': 'strict', 'rules': {'allow': [{'rule_id': 'a', 'capability': '*',"
                     " 'constraints': {'sandbox_required': true}}]}}");
  g_autoptr(PolicyRequest) request = request_execute();
  g_autoptr(PolicyDecision) refused = gate_preview(policy, request, FALSE);
  g_assert_cmpstr(refused->reason_code, ==, "sandbox_required");
  story_begin(&story);
  tell_asked(&story, "call_1", policy, request);
  tell_decision(&story, "call_1", request, refused);
  replays(&story, policy, FALSE, "differs: deny sandbox_required a -> allow matched_allow a");
  json_add_bool(header, "isolated", FALSE);
  json_add_take(story.run, "header", json_object_get(header));
  replays(&story, policy, TRUE, "same");
}

static void test_another_rule(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) after = fixture_policy(
      "{'mode': 'strict', 'rules': {'allow': [{'rule_id': 'other', 'capability': 'process.*'}]}}");
  story_begin(&story);
  tell_command(&story, "call_1", before, "ls", "ls");
  replays(&story, after, FALSE, "same");
  replays(&story, after, TRUE,
          "differs: allow matched_allow commands -> allow matched_allow other");
}

/* Two calls at once: what was decided is found by the request it is about. */
static void test_interleaved(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) before = fixture_policy(OPEN);
  g_autoptr(Policy) after = fixture_policy("{'mode': 'strict'}");
  g_autoptr(PolicyRequest) one = request_execute();
  g_autoptr(PolicyRequest) other = command_of("ls");
  g_autoptr(PolicyDecision) of_one = policy_decide(before, one);
  g_autoptr(PolicyDecision) of_other = policy_decide(before, other);
  story_begin(&story);
  tell(&story, "policy_request_created", "call_1", "request", policy_request_json(one));
  tell(&story, "policy_request_created", "call_2", "request", policy_request_json(other));
  tell(&story, "policy_decision_allow", "call_2", "decision", policy_decision_json(of_other));
  tell(&story, "policy_decision_deny", "call_1", "decision", policy_decision_json(of_one));
  replays(&story, after, FALSE,
          "same\ndiffers: allow matched_allow commands -> deny unknown_capability ");
}

/* ---- A record that is not whole ---------------------------------------------------------------------------------- */

static void test_nothing(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) policy = fixture_policy("{}");
  g_autoptr(JsonObject) empty = json_object_new_object();
  g_autoptr(GPtrArray) none = replay_run(policy, empty, FALSE);
  g_assert_cmpuint(none->len, ==, 0);
  story_begin(&story);
  json_object_array_add(story.events, NULL);
  json_object_array_add(story.events, json_object_new_string("x"));
  replays(&story, policy, FALSE, "");
}

static void test_missing_parts(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) policy = fixture_policy("{}");
  g_autoptr(PolicyRequest) request = request_execute();
  g_autoptr(PolicyRequest) lonely = request_execute();
  g_autoptr(PolicyDecision) decision = policy_decide(policy, lonely);
  story_begin(&story);
  tell(&story, "policy_request_created", "call_1", "capture", json_object_new_string("none"));
  tell(&story, "policy_decision_ask", "call_1", "capture", json_object_new_string("none"));
  JsonObject *event = tell(&story, "policy_request_created", "call_1", "x", NULL);
  json_add_take(event, "payload", NULL);
  json_add_bool(event, "damaged", TRUE);
  tell(&story, "policy_request_created", "call_1", "request", policy_request_json(request));
  tell(&story, "policy_decision_ask", "call_1", "decision", policy_decision_json(decision));
  replays(&story, policy, FALSE,
          "undecidable: the request was not recorded\n"
          "undecidable: its event is damaged\n"
          "undecidable: no decision by a rule was recorded\n"
          "undecidable: the request was not recorded");
}

static void test_damaged_request(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) policy = fixture_policy("{}");
  g_autoptr(PolicyRequest) request = request_execute();
  story_begin(&story);
  tell_asked(&story, "call_1", policy, request);
  json_add_text(story.damage, "actor", "root");
  replays(&story, policy, FALSE,
          "undecidable: the recorded request is damaged: actor is nobody's name\n"
          "undecidable: the request was not recorded");
}

static void test_damaged_decision(void) {
  static const char *const DAMAGED[] = {
      "{'effect': 'maybe', 'reason_code': 'x', 'matched_rule_ids': []",
      "{'effect': 'allow', 'matched_rule_ids': []",
      "{'effect': 'allow', 'reason_code': 'x', 'matched_rule_ids': {}",
      "{'effect': 'allow', 'reason_code': 'x', 'matched_rule_ids': [1]",
      "{'reason_code': 'x', 'matched_rule_ids': []",
  };
  g_autoptr(Policy) policy = fixture_policy("{}");
  for (gsize i = 0; i < G_N_ELEMENTS(DAMAGED); i++) {
    g_auto(Story) story = {0};
    g_autoptr(PolicyRequest) request = request_execute();
    g_autofree char *text =
        g_strdup_printf("%s, 'request_id': '%s'}", DAMAGED[i], request->request_id);
    story_begin(&story);
    tell(&story, "policy_request_created", "call_1", "request", policy_request_json(request));
    tell(&story, "policy_decision_allow", "call_1", "decision", fixture_json(text));
    replays(&story, policy, FALSE, "undecidable: its recorded decision is damaged");
  }
}

/* Nobody's decision is given to another request. */
static void test_two_requests_of_one_id(void) {
  g_auto(Story) story = {0};
  g_autoptr(Policy) policy = fixture_policy("{}");
  g_autoptr(PolicyRequest) request = request_execute();
  g_autoptr(PolicyRequest) other = request_sync();
  g_free(other->request_id);
  other->request_id = g_strdup(request->request_id);
  story_begin(&story);
  tell_asked(&story, "call_1", policy, request);
  tell_asked(&story, "call_1", policy, request);
  replays(&story, policy, FALSE, "same");
  tell_asked(&story, "call_1", policy, other);
  replays(&story, policy, FALSE, "undecidable: two recorded requests have its id");
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function) g_test_add_func("/run/replay/" name, function)
  ADD("commands", test_commands);
  ADD("commands/like-an-option", test_command_that_begins_like_an_option);
  ADD("commands/without-text", test_command_without_its_text);
  ADD("commands/another-text", test_command_with_another_text);
  ADD("redacted", test_redacted);
  ADD("answers", test_persons_answers);
  ADD("listing", test_listing_follows);
  ADD("sandbox-required", test_sandbox_required);
  ADD("another-rule", test_another_rule);
  ADD("interleaved", test_interleaved);
  ADD("hostile/nothing", test_nothing);
  ADD("hostile/missing", test_missing_parts);
  ADD("hostile/request", test_damaged_request);
  ADD("hostile/decision", test_damaged_decision);
  ADD("hostile/one-id", test_two_requests_of_one_id);
#undef ADD
  return g_test_run();
}
