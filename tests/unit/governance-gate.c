/* SPDX-License-Identifier: Apache-2.0 */
/* governance-gate.c: a batch is decided and recorded as a whole before anything happens
 * (behaviour 4.3, 4.6, 4.8, 8.4). */
#include "governance-fixture.h"

#include "governance/gate.h"

/* What the hooks saw and how they answer. */
typedef struct {
  GString *record;        /* "capability effect reason_code; " for each */
  GPtrArray *ids;         /* decision ids as recorded */
  GString *asked;         /* "capability " for each */
  const char *approver;   /* NULL: nobody answers */
  const char *only;       /* the one capability that is answered; NULL: each */
  const char *unrecorded; /* the capability whose record fails; NULL: none */
  gboolean silent;        /* it fails without a word */
} Desk;

static gboolean take_down(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                          GError **error) {
  Desk *desk = user;
  g_string_append_printf(desk->record, "%s %s %s; ", request->capability,
                         effect_name(decision->effect), decision->reason_code);
  g_ptr_array_add(desk->ids, g_strdup(decision->decision_id));
  g_assert_cmpstr(decision->request_id, ==, request->request_id);
  if (g_strcmp0(desk->unrecorded, request->capability) != 0) {
    return TRUE;
  }
  if (!desk->silent) {
    g_set_error_literal(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD, "the disk is full");
  }
  return FALSE;
}

static char *reply(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                   char **ret_refusal) {
  (void)ret_refusal;
  Desk *desk = user;
  g_assert_cmpint(decision->effect, ==, EFFECT_ASK);
  g_string_append_printf(desk->asked, "%s ", request->capability);
  gboolean answers = !desk->only || strcmp(desk->only, request->capability) == 0;
  return answers ? g_strdup(desk->approver) : NULL;
}

static void set_up(Desk *desk, gconstpointer data) {
  (void)data;
  *desk = (Desk){.record = g_string_new(NULL),
                 .asked = g_string_new(NULL),
                 .ids = g_ptr_array_new_with_free_func(g_free)};
}

static void tear_down(Desk *desk, gconstpointer data) {
  (void)data;
  g_string_free(desk->record, TRUE);
  g_string_free(desk->asked, TRUE);
  g_ptr_array_unref(desk->ids);
}

static const char RULES[] =
    "{'mode': 'strict', 'rules': {"
    "'deny': [{'rule_id': 'd', 'capability': 'deny*', 'reason': 'No.'},"
    " {'rule_id': 'd2', 'capability': 'deny2', 'reason': 'Never.'}],"
    "'ask': [{'rule_id': 'k', 'capability': 'ask*', 'reason': 'May it?'},"
    " {'rule_id': 'k2', 'capability': 'askstrict', 'constraints': {'strict_telemetry': true}}],"
    "'allow': [{'rule_id': 'a', 'capability': 'allow*'},"
    " {'rule_id': 's', 'capability': 'allowstrict', 'constraints': {'strict_telemetry': true}},"
    " {'rule_id': 'b', 'capability': 'allowbox', 'constraints': {'sandbox_required': true}}]}}";

static Gate *gate_of(Desk *desk, const char *text, gboolean isolated, gboolean approval_fails) {
  const GateHooks hooks = {.user = desk, .record = take_down, .answer = reply};
  g_autoptr(Policy) policy = fixture_policy(text);
  return gate_new(policy, &hooks, isolated, approval_fails);
}

static GPtrArray *batch_of(const char *capabilities) {
  g_auto(GStrv) names = g_strsplit(capabilities, " ", -1);
  GPtrArray *requests = g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  for (gsize i = 0; names[i]; i++) {
    g_ptr_array_add(requests, policy_request_new(names[i], RISK_LOW));
  }
  return requests;
}

static void passes(Gate *gate, const char *capabilities) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) requests = batch_of(capabilities);
  gboolean ok = gate_authorize(gate, requests, NULL, &error);
  g_assert_no_error(error);
  g_assert_true(ok);
}

static void refused(Gate *gate, const char *capabilities, SandhostError code, const char *wanted) {
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) requests = batch_of(capabilities);
  g_autoptr(GPtrArray) decisions = NULL;
  g_assert_false(gate_authorize(gate, requests, &decisions, &error));
  g_assert_error(error, SANDHOST_ERROR, (int)code);
  g_assert_cmpstr(error->message, ==, wanted);
  g_assert_cmpuint(decisions->len, ==, requests->len);
}

/* ---- A batch -------------------------------------------------------------------------------- */

static void test_all_allowed(Desk *desk, gconstpointer data) {
  (void)data;
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  g_autoptr(GPtrArray) requests = batch_of("allow1 allow2");
  g_autoptr(GPtrArray) decisions = NULL;
  g_assert_true(gate_authorize(gate, requests, &decisions, NULL));
  g_assert_cmpuint(decisions->len, ==, 2);
  const PolicyDecision *second = g_ptr_array_index(decisions, 1);
  const PolicyRequest *request = g_ptr_array_index(requests, 1);
  g_assert_cmpstr(second->request_id, ==, request->request_id);
  g_assert_cmpstr(desk->record->str, ==,
                  "allow1 allow matched_allow; allow2 allow matched_allow; ");
}

static void test_empty_batch(Desk *desk, gconstpointer data) {
  (void)data;
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  g_autoptr(GPtrArray) requests = g_ptr_array_new();
  g_autoptr(GPtrArray) decisions = NULL;
  g_assert_true(gate_authorize(gate, requests, &decisions, NULL));
  g_assert_cmpuint(decisions->len, ==, 0);
  g_assert_cmpstr(desk->record->str, ==, "");
}

static void test_first_deny_refuses_after_all_are_recorded(Desk *desk, gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  g_autoptr(Gate) gate = gate_of(desk, RULES, FALSE, FALSE);
  refused(gate, "ask1 allowbox deny1 deny2 allow1", SANDHOST_ERROR_POLICY_DENIED, "No.");
  g_assert_cmpstr(desk->record->str, ==,
                  "ask1 ask matched_ask; allowbox allow matched_allow; deny1 deny matched_deny; "
                  "deny2 deny matched_deny; allow1 allow matched_allow; ");
  g_assert_cmpstr(desk->asked->str, ==, "");
}

static void test_strict_fall_through(Desk *desk, gconstpointer data) {
  (void)data;
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  refused(gate, "allow1 other", SANDHOST_ERROR_UNKNOWN_CAPABILITY,
          "Denied by strict policy: no rule matches this other request.");
}

static void test_undecidable_is_refused(Desk *desk, gconstpointer data) {
  (void)data;
  g_autoptr(Gate) gate = gate_of(desk, "{'mode': 'permissive'}", TRUE, FALSE);
  g_autoptr(GPtrArray) requests =
      g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  g_autoptr(GError) error = NULL;
  g_ptr_array_add(requests, policy_request_new("", RISK_LOW));
  g_assert_false(gate_authorize(gate, requests, NULL, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_EVALUATION);
  g_assert_cmpstr(error->message, ==, "The request names no capability, so it cannot be decided.");
  g_assert_cmpstr(desk->record->str, ==, " deny policy_error; ");
}

static void test_without_hooks(Desk *desk, gconstpointer data) {
  (void)data;
  (void)desk;
  const GateHooks hooks = {.user = NULL};
  g_autoptr(Policy) policy = fixture_policy(RULES);
  g_autoptr(Gate) gate = gate_new(policy, &hooks, TRUE, FALSE);
  passes(gate, "allow1");
  refused(gate, "ask1", SANDHOST_ERROR_APPROVAL_REQUIRED, "May it?");
  g_assert_true(gate_policy(gate) == policy);
}

static void test_ungoverned(Desk *desk, gconstpointer data) {
  (void)data;
  const GateHooks hooks = {.user = desk, .record = take_down, .answer = reply};
  g_autoptr(Gate) gate = gate_new(NULL, &hooks, FALSE, TRUE);
  g_autoptr(GPtrArray) requests = batch_of("deny1 ask1");
  g_autoptr(GPtrArray) decisions = NULL;
  g_assert_true(gate_authorize(gate, requests, &decisions, NULL));
  g_assert_cmpuint(decisions->len, ==, 2);
  const PolicyDecision *decision = g_ptr_array_index(decisions, 0);
  g_assert_cmpint(decision->effect, ==, EFFECT_ALLOW);
  g_assert_null(gate_policy(gate));

  g_autoptr(PolicyDecision) listing = NULL;
  g_assert_true(gate_authorize_sync(gate, g_ptr_array_index(requests, 0), NULL, &listing, NULL));
  g_assert_cmpint(listing->effect, ==, EFFECT_ALLOW);
  g_assert_true(gate_permits(gate, g_ptr_array_index(requests, 0), NULL));
  g_assert_cmpstr(desk->record->str, ==, "");
  g_assert_cmpstr(desk->asked->str, ==, "");
}

/* ---- A sandbox is required ------------------------------------------------------------------ */

#define BOX "Policy requires routing through the sandbox execution boundary."

static void test_sandbox_required(Desk *desk, gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  g_autoptr(Gate) gate = gate_of(desk, RULES, FALSE, FALSE);
  refused(gate, "ask1 allowbox", SANDHOST_ERROR_SANDBOX_REQUIRED, BOX);
  g_assert_cmpstr(desk->record->str, ==,
                  "ask1 ask matched_ask; allowbox allow matched_allow; "
                  "allowbox deny sandbox_required; ");
  g_assert_cmpstr(desk->asked->str, ==, ""); /* before anybody is asked */
}

static void test_sandbox_required_and_there(Desk *desk, gconstpointer data) {
  (void)data;
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  passes(gate, "allowbox");
}

/* ---- Asks ----------------------------------------------------------------------------------- */

static void test_answered_ask(Desk *desk, gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  g_autoptr(GPtrArray) requests = batch_of("ask1");
  g_autoptr(GPtrArray) decisions = NULL;
  g_assert_true(gate_authorize(gate, requests, &decisions, NULL));
  const PolicyDecision *decision = g_ptr_array_index(decisions, 0);
  g_assert_cmpint(decision->effect, ==, EFFECT_ALLOW);
  g_assert_cmpstr(decision->reason_code, ==, "approved");
  g_assert_cmpstr(decision->reason, ==, "Approved by ada");
  g_assert_cmpstr(decision->approved_by, ==, "ada");
  g_assert_cmpstr(decision->matched_rule_ids[0], ==, "k");
  g_assert_null(decision->matched_rule_ids[1]);
  g_assert_cmpstr(desk->record->str, ==, "ask1 ask matched_ask; ask1 allow approved; ");
  g_assert_cmpuint(desk->ids->len, ==, 2);
  g_assert_cmpstr(desk->ids->pdata[0], !=, desk->ids->pdata[1]);
  g_assert_cmpstr(desk->ids->pdata[1], ==, decision->decision_id);
}

static void test_asks_are_answered_in_order_after_all_are_recorded(Desk *desk, gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  passes(gate, "ask1 allow1 ask2 ask3");
  g_assert_cmpstr(desk->record->str, ==,
                  "ask1 ask matched_ask; allow1 allow matched_allow; ask2 ask matched_ask; "
                  "ask3 ask matched_ask; ask1 allow approved; ask2 allow approved; "
                  "ask3 allow approved; ");
  g_assert_cmpstr(desk->asked->str, ==, "ask1 ask2 ask3 ");
}

static void test_first_unanswered_ask_refuses(Desk *desk, gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  desk->only = "ask1";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  refused(gate, "ask1 ask2 ask3", SANDHOST_ERROR_APPROVAL_REQUIRED, "May it?");
  g_assert_cmpstr(desk->asked->str, ==, "ask1 ask2 ");
}

static void test_approval_fails_asks_nobody(Desk *desk, gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, TRUE);
  refused(gate, "ask1 ask2", SANDHOST_ERROR_APPROVAL_REQUIRED, "May it?");
  g_assert_cmpstr(desk->record->str, ==, "ask1 ask matched_ask; ask2 ask matched_ask; ");
  g_assert_cmpstr(desk->asked->str, ==, "");
}

/* Of each ask a person has said earlier: nothing, or that ask2 may not be. */
static GateAnswer remember(void *user, const PolicyRequest *request,
                           const PolicyDecision *decision) {
  (void)user;
  (void)decision;
  if (strcmp(request->capability, "ask2") != 0) {
    return (GateAnswer){.verdict = GATE_NOTHING};
  }
  return (GateAnswer){.verdict = GATE_DENIED,
                      .approval_id = g_strdup("approval_1"),
                      .by = g_strdup("bob"),
                      .text = NULL};
}

static void test_what_was_denied_is_refused_before_the_rest_is_asked(Desk *desk,
                                                                     gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  const GateHooks hooks = {.user = desk, .record = take_down, .answer = reply, .recall = remember};
  g_autoptr(Policy) policy = fixture_policy(RULES);
  g_autoptr(Gate) gate = gate_new(policy, &hooks, TRUE, FALSE);
  refused(gate, "ask1 ask2 ask3", SANDHOST_ERROR_POLICY_DENIED, "Denied by bob");
  g_assert_cmpstr(desk->asked->str, ==, "");
  g_assert_cmpstr(desk->record->str, ==,
                  "ask1 ask matched_ask; ask2 ask matched_ask; ask3 ask matched_ask; "
                  "ask2 deny denied; ");
}

static void test_outlook(Desk *desk, gconstpointer data) {
  static const struct {
    const char *batch;
    Effect with_sandbox;
    Effect without;
  } CASES[] = {
      {"allow1 allow2", EFFECT_ALLOW, EFFECT_ALLOW}, {"allow1 ask1 allow2", EFFECT_ASK, EFFECT_ASK},
      {"ask1 ask2 deny1", EFFECT_DENY, EFFECT_DENY}, {"deny1 ask1", EFFECT_DENY, EFFECT_DENY},
      {"ask1 other", EFFECT_DENY, EFFECT_DENY},      {"ask1 allowbox", EFFECT_ASK, EFFECT_DENY},
  };
  (void)data;
  desk->approver = "ada";
  g_autoptr(Gate) inside = gate_of(desk, RULES, TRUE, FALSE);
  g_autoptr(Gate) outside = gate_of(desk, RULES, FALSE, FALSE);
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(GPtrArray) requests = batch_of(CASES[i].batch);
    g_assert_cmpint(gate_outlook(inside, requests), ==, CASES[i].with_sandbox);
    g_assert_cmpint(gate_outlook(outside, requests), ==, CASES[i].without);
  }
  g_assert_cmpstr(desk->record->str, ==, "");
  g_assert_cmpstr(desk->asked->str, ==, "");
}

static void test_interactive_fall_through_is_asked(Desk *desk, gconstpointer data) {
  (void)data;
  g_autoptr(Gate) gate = gate_of(desk, "{}", TRUE, FALSE);
  refused(gate, "x", SANDHOST_ERROR_APPROVAL_REQUIRED, "Unknown capability requires approval.");
  desk->approver = "ada";
  passes(gate, "x");
}

/* ---- The record ----------------------------------------------------------------------------- */

static void test_unrecorded_is_ignored_unless_strict(Desk *desk, gconstpointer data) {
  (void)data;
  desk->unrecorded = "allow1";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  passes(gate, "allow1");
}

static void test_strict_record_fails_the_batch(Desk *desk, gconstpointer data) {
  (void)data;
  desk->unrecorded = "allowstrict";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  refused(gate, "allowstrict allow1 ask1", SANDHOST_ERROR_RECORD, "the disk is full");
  g_assert_cmpstr(desk->record->str, ==,
                  "allowstrict allow matched_allow; allow1 allow matched_allow; "
                  "ask1 ask matched_ask; ");
  g_assert_cmpstr(desk->asked->str, ==, "");
}

static void test_strict_record_that_fails_twice(Desk *desk, gconstpointer data) {
  (void)data;
  desk->unrecorded = "allowstrict";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  refused(gate, "allowstrict allowstrict", SANDHOST_ERROR_RECORD, "the disk is full");
}

static void test_strict_record_that_fails_without_a_word(Desk *desk, gconstpointer data) {
  (void)data;
  desk->unrecorded = "allowstrict";
  desk->silent = TRUE;
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  refused(gate, "allowstrict", SANDHOST_ERROR_RECORD, "the decision could not be recorded");
}

static void test_deny_is_told_before_a_failed_record(Desk *desk, gconstpointer data) {
  (void)data;
  desk->unrecorded = "allowstrict";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  refused(gate, "allowstrict deny1", SANDHOST_ERROR_POLICY_DENIED, "No.");
}

static void test_strict_record_of_an_ask(Desk *desk, gconstpointer data) {
  (void)data;
  desk->approver = "ada";
  desk->unrecorded = "askstrict";
  g_autoptr(Gate) gate = gate_of(desk, RULES, TRUE, FALSE);
  refused(gate, "askstrict", SANDHOST_ERROR_RECORD, "the disk is full");
  g_assert_cmpstr(desk->asked->str, ==, "");
}

/* ---- The listing after a command ------------------------------------------------------------ */

#define SYNC "sandbox.workspace.sync"

/* The listing after an allowed command; wanted_line is its decision. */
static void syncs(Desk *desk, const char *policy, gboolean wanted, const char *wanted_line) {
  char command_id[] = "authreq_of_the_command";
  const PolicyDecision command = {
      .request_id = command_id, .effect = EFFECT_ALLOW, .reason_code = "approved"};
  g_autoptr(Gate) gate = gate_of(desk, policy, TRUE, FALSE);
  g_autoptr(PolicyRequest) request = policy_request_new(SYNC, RISK_LOW);
  g_autoptr(PolicyDecision) decision = NULL;
  g_autoptr(GError) error = NULL;
  desk->approver = "ada";
  g_string_truncate(desk->record, 0);
  gboolean ok = gate_authorize_sync(gate, request, &command, &decision, &error);
  g_autofree char *line = fixture_line(decision);
  g_assert_cmpint(ok, ==, wanted);
  g_assert_cmpstr(line, ==, wanted_line);
  if (!wanted) {
    g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED);
    g_assert_cmpstr(error->message, ==, decision->reason);
  }
  g_autofree char *recorded =
      g_strdup_printf(SYNC " %s %s; ", effect_name(decision->effect), decision->reason_code);
  g_assert_cmpstr(desk->record->str, ==, recorded);
  g_assert_cmpstr(desk->asked->str, ==, "");
  gboolean follows = strstr(decision->reason, "authreq_of_the_command") != NULL;
  g_assert_cmpint(follows, ==, strcmp(decision->reason_code, "follows_command") == 0);
}

static void test_sync_denied(Desk *desk, gconstpointer data) {
  (void)data;
  syncs(desk,
        "{'mode': 'permissive', 'rules': {'deny': [{'rule_id': 'a', 'capability': 'sandbox.*'"
        "}]}}",
        FALSE, "deny matched_deny a");
}

static void test_sync_asked(Desk *desk, gconstpointer data) {
  (void)data;
  syncs(desk, "{'rules': {'ask': [{'rule_id': 'a', 'capability': '*', 'reason': 'May it?'}]}}",
        FALSE, "ask matched_ask a");
}

static void test_sync_allowed(Desk *desk, gconstpointer data) {
  (void)data;
  syncs(desk,
        "{'mode': 'strict', 'rules': {'allow': [{'rule_id': 'a', 'capability': 'sandbox.*'}]}}",
        TRUE, "allow matched_allow a");
}

static void test_sync_follows_the_command_in_every_mode(Desk *desk, gconstpointer data) {
  (void)data;
  static const char *const MODES[] = {"permissive", "interactive", "strict"};
  for (gsize i = 0; i < G_N_ELEMENTS(MODES); i++) {
    g_autofree char *policy = g_strdup_printf(
        "{'mode': '%s', 'rules': {'allow': [{'rule_id': 'a', 'capability': 'process.exec'}]}}",
        MODES[i]);
    syncs(desk, policy, TRUE, "allow follows_command ");
  }
}

static void test_sync_follows_a_refusal_too(Desk *desk, gconstpointer data) {
  (void)data;
  g_autoptr(Gate) gate = gate_of(desk, "{'mode': 'permissive'}", TRUE, FALSE);
  g_autoptr(PolicyRequest) request = policy_request_new(SYNC, RISK_LOW);
  g_autoptr(PolicyRequest) other = policy_request_new("process.exec", RISK_HIGH);
  g_autoptr(Policy) strict = fixture_policy("{'mode': 'strict'}");
  g_autoptr(PolicyDecision) command = policy_decide(strict, other);
  g_autoptr(GError) error = NULL;
  g_assert_false(gate_authorize_sync(gate, request, command, NULL, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_POLICY_DENIED);
}

static void test_sync_needs_the_sandbox_that_a_rule_wants(Desk *desk, gconstpointer data) {
  (void)data;
  static const char POLICY[] = "{'rules': {'allow': [{'rule_id': 'a', 'capability': '*',"
                               " 'constraints': {'sandbox_required': true}}]}}";
  const PolicyDecision command = {.effect = EFFECT_ALLOW};
  g_autoptr(Gate) gate = gate_of(desk, POLICY, FALSE, FALSE);
  g_autoptr(PolicyRequest) request = policy_request_new(SYNC, RISK_LOW);
  g_autoptr(GError) error = NULL;
  g_assert_false(gate_authorize_sync(gate, request, &command, NULL, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_SANDBOX_REQUIRED);
  g_assert_cmpstr(error->message, ==, BOX);
  g_assert_cmpstr(desk->record->str, ==, SYNC " deny sandbox_required; ");
}

static void test_sync_that_must_be_on_record(Desk *desk, gconstpointer data) {
  (void)data;
  static const char POLICY[] = "{'rules': {'allow': [{'rule_id': 'a', 'capability': '*',"
                               " 'constraints': {'strict_telemetry': true}}]}}";
  const PolicyDecision command = {.effect = EFFECT_ALLOW};
  desk->unrecorded = SYNC;
  g_autoptr(Gate) gate = gate_of(desk, POLICY, TRUE, FALSE);
  g_autoptr(PolicyRequest) request = policy_request_new(SYNC, RISK_LOW);
  g_autoptr(GError) error = NULL;
  g_assert_false(gate_authorize_sync(gate, request, &command, NULL, &error));
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_RECORD);
  g_assert_cmpstr(error->message, ==, "the disk is full");
}

/* ---- A workspace file ----------------------------------------------------------------------- */

static void test_permits_only_an_allow(Desk *desk, gconstpointer data) {
  (void)data;
  static const struct {
    const char *capability;
    gboolean permitted;
    const char *code;
  } CASES[] = {{"allow1", TRUE, "matched_allow"},
               {"ask1", FALSE, "matched_ask"},
               {"deny1", FALSE, "matched_deny"},
               {"other", FALSE, "unknown_capability"},
               {"allowbox", FALSE, "sandbox_required"}};
  desk->approver = "ada";
  g_autoptr(Gate) gate = gate_of(desk, RULES, FALSE, FALSE);
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(PolicyRequest) request = policy_request_new(CASES[i].capability, RISK_LOW);
    g_autoptr(PolicyDecision) decision = NULL;
    g_assert_cmpint(gate_permits(gate, request, &decision), ==, CASES[i].permitted);
    g_assert_cmpstr(decision->reason_code, ==, CASES[i].code);
    g_assert_cmpint(gate_permits(gate, request, NULL), ==, CASES[i].permitted);
  }
  g_assert_cmpstr(desk->record->str, ==, "");
  g_assert_cmpstr(desk->asked->str, ==, "");
}

/* ---- Threads -------------------------------------------------------------------------------- */

static gboolean count_record(void *user, const PolicyRequest *request,
                             const PolicyDecision *decision, GError **error) {
  (void)error;
  g_autoptr(JsonObject) asked = policy_request_json(request);
  g_autoptr(JsonObject) decided = policy_decision_json(decision);
  g_free(json_text(asked));
  g_free(json_text(decided));
  g_atomic_int_inc((gint *)user);
  return TRUE;
}

static char *always(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                    char **ret_refusal) {
  (void)ret_refusal;
  (void)user;
  (void)request;
  (void)decision;
  return g_strdup("ada");
}

#define ROUNDS 200

static gpointer work(gpointer data) {
  Gate *gate = data;
  for (int i = 0; i < ROUNDS; i++) {
    g_autoptr(GPtrArray) requests = batch_of("allow1 ask1");
    g_autoptr(JsonObject) policy = policy_json(gate_policy(gate));
    g_free(json_text(policy));
    g_assert_true(gate_authorize(gate, requests, NULL, NULL));
  }
  return NULL;
}

static void test_many_threads(Desk *desk, gconstpointer data) {
  (void)data;
  (void)desk;
  gint count = 0;
  const GateHooks hooks = {.user = &count, .record = count_record, .answer = always};
  g_autoptr(Policy) policy = fixture_policy(RULES);
  g_autoptr(Gate) gate = gate_new(policy, &hooks, TRUE, FALSE);
  GThread *threads[4];
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    threads[i] = g_thread_new("gate", work, gate);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(threads); i++) {
    g_thread_join(threads[i]);
  }
  g_assert_cmpint(count, ==, (gint)G_N_ELEMENTS(threads) * ROUNDS * 3);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
  g_test_add("/governance/gate/" name, Desk, NULL, set_up, function, tear_down)
  ADD("batch/allowed", test_all_allowed);
  ADD("batch/empty", test_empty_batch);
  ADD("batch/first-deny", test_first_deny_refuses_after_all_are_recorded);
  ADD("batch/strict", test_strict_fall_through);
  ADD("batch/undecidable", test_undecidable_is_refused);
  ADD("hooks/none", test_without_hooks);
  ADD("ungoverned", test_ungoverned);
  ADD("sandbox/missing", test_sandbox_required);
  ADD("sandbox/there", test_sandbox_required_and_there);
  ADD("ask/answered", test_answered_ask);
  ADD("ask/order", test_asks_are_answered_in_order_after_all_are_recorded);
  ADD("ask/unanswered", test_first_unanswered_ask_refuses);
  ADD("ask/approval-fails", test_approval_fails_asks_nobody);
  ADD("ask/denied-earlier", test_what_was_denied_is_refused_before_the_rest_is_asked);
  ADD("ask/outlook", test_outlook);
  ADD("ask/interactive", test_interactive_fall_through_is_asked);
  ADD("record/ignored", test_unrecorded_is_ignored_unless_strict);
  ADD("record/strict", test_strict_record_fails_the_batch);
  ADD("record/strict-twice", test_strict_record_that_fails_twice);
  ADD("record/strict-silent", test_strict_record_that_fails_without_a_word);
  ADD("record/strict-ask", test_strict_record_of_an_ask);
  ADD("record/deny-first", test_deny_is_told_before_a_failed_record);
  ADD("sync/denied", test_sync_denied);
  ADD("sync/asked", test_sync_asked);
  ADD("sync/allowed", test_sync_allowed);
  ADD("sync/follows", test_sync_follows_the_command_in_every_mode);
  ADD("sync/follows-refusal", test_sync_follows_a_refusal_too);
  ADD("sync/sandbox", test_sync_needs_the_sandbox_that_a_rule_wants);
  ADD("sync/strict", test_sync_that_must_be_on_record);
  ADD("permits", test_permits_only_an_allow);
  ADD("threads", test_many_threads);
#undef ADD
  return g_test_run();
}
