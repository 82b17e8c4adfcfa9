/* SPDX-License-Identifier: Apache-2.0 */
/* run-approvals.c: what is decided about an ask, once and for good, and who may go on with a run: every refusal in its
 * own words. */
#include "approvals-fixture.h"
#include "governance/gate.h"
#include "record/record-private.h"

/* ---- The ask ----------------------------------------------------------------------------------------------------- */

static void test_fields(Place *place, gconstpointer unused) {
  static const char *const FIELDS[] = {
      "approval_id", "request_digest",  "status",
      "capability",  "target",          "risk_level",
      "reason",      "tool_name",       "tool_provider",
      "tool_server", "tool_call_id",    "arguments_digest",
      "created_at",  "expires_at",      "approver",
      "note",        "decided_at",      "edited_arguments",
      "decision",    "used_at",         "used_for_approval_id",
      "policy_hash", "manifest_digest", "original_request_digest",
  };
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", APPROVAL_DEFAULT_SECONDS);
  g_autoptr(JsonObject) approval = only_approval(record);
  for (gsize i = 0; i < G_N_ELEMENTS(FIELDS); i++) {
    g_assert_true(json_object_object_get_ex(approval, FIELDS[i], NULL));
  }
  g_assert_cmpstr(json_get_text(approval, "status"), ==, "pending");
  g_assert_cmpstr(json_get_text(approval, "run_status"), ==, "running");
}

static char *digest_for(const char *command, const char *surface) {
  const char *const argv[] = {"sh", "-c", command, NULL};
  g_autoptr(PolicyRequest) request = request_command(argv, TRUE);
  g_autoptr(JsonObject) arguments = json_of("{\"command\": \"same\"}");
  g_free(request->execution_surface);
  request->execution_surface = g_strdup(surface);
  return approval_request_digest(request, arguments);
}

static void test_digest(void) {
  g_autofree char *first = digest_for("ls", "sandbox");
  g_autofree char *same = digest_for("ls", "host");
  g_autofree char *other = digest_for("ls ", "sandbox");
  g_assert_cmpstr(first, ==, same); /* the surface is left out on purpose */
  g_assert_cmpstr(first, !=, other);
}

static void test_digest_of_role(void) {
  g_autoptr(JsonObject) object =
      json_of("{\"network_policy\": {\"default\": \"deny\","
              " \"allowed_hosts\": [\"a\"], \"denied_hosts\": [\"a\"]}}");
  g_autoptr(GError) error = NULL;
  g_autoptr(Manifest) manifest = manifest_new(object, &error);
  g_assert_no_error(error);
  g_autoptr(GPtrArray) requests = request_manifest(manifest);
  g_assert_cmpuint(requests->len, ==, 2);
  g_autofree char *allowed = approval_request_digest(g_ptr_array_index(requests, 0), NULL);
  g_autofree char *denied = approval_request_digest(g_ptr_array_index(requests, 1), NULL);
  g_assert_cmpstr(allowed, !=, denied);
}

/* ---- The gate ---------------------------------------------------------------------------------------------------- */

typedef struct {
  GString *told;       /* what was recorded */
  guint suspensions;   /* how often asks were put down */
  guint asks;          /* how many the last time */
  const char *recalls; /* the capability about which something was decided; NULL: none */
  GateVerdict verdict;
  const char *note;
} Desk;

static gboolean take_down(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                          GError **error) {
  Desk *desk = user;
  (void)error;
  g_string_append_printf(desk->told, "%s %s %s|", request->capability,
                         effect_name(decision->effect), decision->reason_code);
  return TRUE;
}

static GateAnswer recall(void *user, const PolicyRequest *request, const PolicyDecision *decision) {
  const Desk *desk = user;
  (void)decision;
  if (g_strcmp0(desk->recalls, request->capability) != 0) {
    return (GateAnswer){.verdict = GATE_NOTHING};
  }
  return (GateAnswer){.verdict = desk->verdict,
                      .approval_id = g_strdup(APPROVAL),
                      .by = g_strdup("alice"),
                      .text = g_strdup(desk->note)};
}

static gboolean put_down(void *user, GPtrArray *requests, GPtrArray *decisions, GError **error) {
  Desk *desk = user;
  (void)error;
  g_assert_cmpuint(requests->len, ==, decisions->len);
  for (guint i = 0; i < decisions->len; i++) {
    const PolicyDecision *decision = g_ptr_array_index(decisions, i);
    g_assert_nonnull(decision->approval_id);
  }
  desk->suspensions++;
  desk->asks = decisions->len;
  return TRUE;
}

/* Asks about two things that the policy asks about. Returns the error's text, owned; NULL: allowed. */
static char *ask_gate(Desk *desk, gboolean fails, int *ret_code) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = json_of("{\"mode\": \"interactive\", \"rules\": {}}");
  g_autoptr(Policy) policy = policy_new(object, &error);
  g_assert_no_error(error);
  const GateHooks hooks = {
      .user = desk, .record = take_down, .recall = recall, .suspend = put_down};
  g_autoptr(Gate) gate = gate_new(policy, &hooks, TRUE, fails);
  g_autoptr(GPtrArray) requests =
      g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  g_ptr_array_add(requests, policy_request_new("a.one", RISK_LOW));
  g_ptr_array_add(requests, policy_request_new("a.two", RISK_LOW));
  gboolean ok = gate_authorize(gate, requests, NULL, &error);
  *ret_code = ok ? -1 : error->code;
  return ok ? NULL : g_strdup(error->message);
}

static void check_gate(Desk desk, gboolean fails, int code, const char *text, guint suspensions,
                       guint asks, const char *told) {
  int got = 0;
  desk.told = g_string_new(NULL);
  g_autofree char *message = ask_gate(&desk, fails, &got);
  g_assert_cmpstr(message, ==, text);
  g_assert_cmpint(got, ==, code);
  g_assert_cmpuint(desk.suspensions, ==, suspensions);
  g_assert_cmpuint(desk.asks, ==, asks);
  g_assert_cmpstr(desk.told->str, ==, told);
  g_string_free(desk.told, TRUE);
}

#define BOTH_ASKS "a.one ask unknown_capability|a.two ask unknown_capability|"

static void test_gate_suspends_once(void) {
  check_gate((Desk){0}, FALSE, SANDHOST_ERROR_APPROVAL_REQUIRED,
             "Unknown capability requires approval.", 1, 2, BOTH_ASKS);
}

static void test_gate_fails(void) {
  check_gate((Desk){.recalls = "a.one", .verdict = GATE_APPROVED}, TRUE,
             SANDHOST_ERROR_APPROVAL_REQUIRED, "Unknown capability requires approval.", 0, 0,
             BOTH_ASKS);
}

static void test_gate_recalls(void) {
  /* What is decided is not asked again; the rest waits. */
  check_gate((Desk){.recalls = "a.one", .verdict = GATE_APPROVED}, FALSE,
             SANDHOST_ERROR_APPROVAL_REQUIRED, "Unknown capability requires approval.", 1, 1,
             BOTH_ASKS "a.one allow approved|");
  check_gate((Desk){.recalls = "a.one", .verdict = GATE_DENIED, .note = "not now"}, FALSE,
             SANDHOST_ERROR_POLICY_DENIED, "Denied by alice: not now", 0, 0,
             BOTH_ASKS "a.one deny denied|");
  check_gate((Desk){.recalls = "a.two", .verdict = GATE_DENIED}, FALSE,
             SANDHOST_ERROR_POLICY_DENIED, "Denied by alice", 0, 0, BOTH_ASKS "a.two deny denied|");
  check_gate((Desk){.recalls = "a.one", .verdict = GATE_EXPIRED, .note = "noon"}, FALSE,
             SANDHOST_ERROR_APPROVAL_EXPIRED,
             "The approval expired at noon before anybody decided.", 0, 0,
             BOTH_ASKS "a.one deny expired_policy|");
}

/* What is recorded of an answer: its code, its words, whose it was, and that it was that approval. */
static gboolean take_words(void *user, const PolicyRequest *request, const PolicyDecision *decision,
                           GError **error) {
  Desk *desk = user;
  (void)request;
  (void)error;
  if (decision->effect != EFFECT_ASK) {
    g_string_append_printf(desk->told, "%s %s|%s|approved_by %s, denied_by %s|%s",
                           effect_name(decision->effect), decision->reason_code, decision->reason,
                           decision->approved_by ? decision->approved_by : "-",
                           decision->denied_by ? decision->denied_by : "-", decision->approval_id);
  }
  return TRUE;
}

static void check_words(GateVerdict verdict, const char *note, const char *told) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) object = json_of("{\"mode\": \"interactive\", \"rules\": {}}");
  g_autoptr(Policy) policy = policy_new(object, &error);
  g_assert_no_error(error);
  Desk desk = {.told = g_string_new(NULL), .recalls = "a.one", .verdict = verdict, .note = note};
  const GateHooks hooks = {
      .user = &desk, .record = take_words, .recall = recall, .suspend = put_down};
  g_autoptr(Gate) gate = gate_new(policy, &hooks, TRUE, FALSE);
  g_autoptr(GPtrArray) requests =
      g_ptr_array_new_with_free_func((GDestroyNotify)policy_request_free);
  g_ptr_array_add(requests, policy_request_new("a.one", RISK_LOW));
  g_assert_cmpint(gate_authorize(gate, requests, NULL, &error), ==, verdict == GATE_APPROVED);
  g_assert_cmpstr(desk.told->str, ==, told);
  g_string_free(desk.told, TRUE);
}

static void test_words_of_an_answer(void) {
  check_words(GATE_APPROVED, NULL,
              "allow approved|Approved by alice|approved_by alice, denied_by -|" APPROVAL);
  check_words(GATE_APPROVED, "once",
              "allow approved|Approved by alice: once|approved_by alice, denied_by -|" APPROVAL);
  check_words(GATE_DENIED, NULL,
              "deny denied|Denied by alice|approved_by -, denied_by alice|" APPROVAL);
  check_words(GATE_DENIED, "no",
              "deny denied|Denied by alice: no|approved_by -, denied_by alice|" APPROVAL);
  check_words(GATE_EXPIRED, "noon",
              "deny expired_policy|The approval expired at noon before anybody decided.|"
              "approved_by -, denied_by system|" APPROVAL);
}

/* ---- Deciding ---------------------------------------------------------------------------------------------------- */

static void test_bad_decisions(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) edited = json_of("{\"command\": \"true\"}");
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", 100);
  refuse_decision(record, RUN, APPROVAL, "maybe", "alice", NULL, SANDHOST_ERROR_CONFIG,
                  "decision must be 'approve' or 'deny'");
  refuse_decision(record, RUN, APPROVAL, "approve", NULL, NULL, SANDHOST_ERROR_CONFIG,
                  "approver is required");
  refuse_decision(record, RUN, APPROVAL, "approve", " ", NULL, SANDHOST_ERROR_CONFIG,
                  "approver is required");
  refuse_decision(record, RUN, APPROVAL, "approve", "a\nb", NULL, SANDHOST_ERROR_CONFIG,
                  "approver must be one line without control characters");
  refuse_decision(record, RUN, APPROVAL, "approve", "a\xff", NULL, SANDHOST_ERROR_CONFIG,
                  "approver must be valid UTF-8 of at most 256 bytes");
  refuse_decision(record, RUN, APPROVAL, "deny", "alice", edited, SANDHOST_ERROR_CONFIG,
                  "arguments can only be edited when approving");
  refuse_decision(record, "run_x", APPROVAL, "approve", "alice", NULL, SANDHOST_ERROR_NOT_FOUND,
                  "No run run_x");
  refuse_decision(record, RUN, "approval_x", "approve", "alice", NULL, SANDHOST_ERROR_NOT_FOUND,
                  "No approval approval_x on run " RUN);
  g_autoptr(JsonObject) approval = only_approval(record);
  g_assert_cmpstr(json_get_text(approval, "status"), ==, "pending");
}

static void test_bad_arguments(Place *place, gconstpointer unused) {
  static const struct {
    const char *json;
    const char *text;
  } CASES[] = {
      {"[]", "arguments must be a JSON object with command and timeout"},
      {"{\"command\": \"a\", \"cmd\": 1}",
       "arguments has the unknown key 'cmd'; execute takes command and timeout"},
      {"{\"timeout\": 3}", "arguments.command must be a non-empty string"},
      {"{\"command\": \" \"}", "arguments.command must be a non-empty string"},
      {"{\"command\": \"a\", \"timeout\": 0}", "arguments.timeout must be between 1 and 1000"},
      {"{\"command\": \"a\", \"timeout\": \"3\"}", "arguments.timeout must be between 1 and 1000"},
  };
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", 100);
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(JsonObject) arguments = json_of(CASES[i].json);
    refuse_decision(record, RUN, APPROVAL, "approve", "alice", arguments, SANDHOST_ERROR_CONFIG,
                    CASES[i].text);
  }
}

static void test_final(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", 100);
  decide(record, "deny", "no");
  refuse_decision(record, RUN, APPROVAL, "approve", "bob", NULL, SANDHOST_ERROR_CONFLICT,
                  "Approval " APPROVAL " is already denied");
  g_autoptr(JsonObject) approval = only_approval(record);
  g_assert_cmpstr(json_get_text(approval, "approver"), ==, "alice");
  g_assert_cmpstr(json_get_text(approval, "note"), ==, "no");
  g_assert_cmpuint(count_events(record, "approval_resolved"), ==, 1);
}

static void test_expired(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", -1);
  g_autoptr(JsonObject) approval = only_approval(record);
  g_assert_cmpstr(json_get_text(approval, "status"), ==, "expired");
  g_autofree char *text =
      g_strdup_printf("Approval " APPROVAL " expired at %s", json_get_text(approval, "expires_at"));
  for (int i = 0; i < 2; i++) { /* also once it is written down as that */
    refuse_decision(record, RUN, APPROVAL, "approve", "alice", NULL, SANDHOST_ERROR_CONFLICT, text);
  }
  g_assert_cmpuint(count_events(record, "approval_resolved"), ==, 1);
  end_waiting(record);
  take(record, "owner_2", NULL); /* the run is not stranded */
}

static void test_edited(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) edited = json_of("{\"command\": \"-ls\"}");
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "rm", 100);
  resume_decide(record, RUN, APPROVAL, "approve", "alice", NULL, edited, NULL, &error);
  g_assert_no_error(error);

  const char *const argv[] = {"sh", "-c", " -ls", NULL}; /* as execute makes it */
  g_autoptr(PolicyRequest) request = request_command(argv, TRUE);
  g_autofree char *digest = approval_request_digest(request, edited);
  g_autoptr(JsonObject) approval = only_approval(record);
  g_assert_cmpstr(json_get_text(approval, "request_digest"), ==, digest);
  g_assert_cmpstr(json_get_text(approval, "original_request_digest"), !=, digest);
}

/* ---- Using ------------------------------------------------------------------------------------------------------- */

static void test_used_once(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", 100);
  use(record, "owner_1", "Approval " APPROVAL " is already pending");
  decide(record, "approve", NULL);
  end_waiting(record);
  take(record, "owner_2", NULL);
  use(record, "owner_1", "Run " RUN " was ended, or taken over, from outside");
  use(record, "owner_2", NULL);
  use(record, "owner_2", "Approval " APPROVAL " is already used");
  g_assert_cmpuint(count_events(record, "sandbox_exec_started"), ==, 1);
  check_verified(record, "[]");
  refuse_decision(record, RUN, APPROVAL, "deny", "bob", NULL, SANDHOST_ERROR_CONFLICT,
                  "Approval " APPROVAL " is already used");
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

static void test_resume_refusals(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  take(record, "owner_2", "No run " RUN);
  begin_life(record, TRUE);
  take(record, "owner_2", "Run " RUN " is running in this process (its heartbeat is current)");
  suspend(record, APPROVAL, "ls", 100);
  suspend(record, "approval_2", "ls", 100);
  end_waiting(record);
  take(record, "owner_2", "Run " RUN " is still waiting for approval: " APPROVAL ", approval_2");
  decide(record, "approve", NULL);
  take(record, "owner_2", "Run " RUN " is still waiting for approval: approval_2");
  g_autoptr(GError) error = NULL;
  resume_decide(record, RUN, "approval_2", "deny", "bob", NULL, NULL, NULL, &error);
  g_assert_no_error(error);
  take(record, "owner_2", NULL);
  take(record, "owner_3", "Run " RUN " is running in this process (its heartbeat is current)");
  record_end_life(record, RUN, "owner_2", "completed", NULL, &error);
  g_assert_no_error(error);
  take(record, "owner_3", "Run " RUN " is completed; only a waiting or stopped run can resume");
}

static void test_no_request(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, FALSE);
  end_waiting(record);
  take(record, "owner_2", "Run " RUN " cannot be resumed: its request was never stored");
}

static void test_lapsed_lease(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) header = json_of("{\"agent_name\": \"a\"}");
  g_autoptr(JsonObject) request = json_of("{\"surface\": \"exec\"}");
  g_autoptr(Record) record = open_record(place->path);
  const RecordLife life = {.owner = "owner_1", .lease_seconds = 0, .request = request};
  record_begin_life(record, RUN, "trace_1", header, &life, &error);
  g_assert_no_error(error);
  take(record, "owner_2", NULL);
  g_autoptr(JsonObject) run = read_run(record, RUN);
  g_assert_cmpstr(json_get_text(json_get(event_at(run, 1), "metadata"), "cause"), ==,
                  "recovered_after_lapsed_lease");

  /* Who held it before learns of it, and writes no more. */
  gboolean held = TRUE;
  record_heartbeat(record, RUN, "owner_1", TRUE, &held, &error);
  g_assert_no_error(error);
  g_assert_false(held);
  g_assert_false(record_end_life(record, RUN, "owner_1", "completed", NULL, &error));
  g_assert_cmpstr(error->message, ==, "Run " RUN " was ended, or taken over, from outside");
}

/* The end and what came before it are one commit: both, or neither. */
static void test_end_with_events(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  const RecordEnd end = {.status = "completed"};
  g_autoptr(JsonObject) events = json_of("[{\"type\": \"sandbox_session_closed\", \"at\": 1}]");
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  g_assert_false(record_end_life_after(record, RUN, "owner_2", events, &end, &error));
  g_assert_cmpstr(error->message, ==, "Run " RUN " was ended, or taken over, from outside");
  g_clear_error(&error);
  g_autoptr(JsonObject) before = read_run(record, RUN);
  g_assert_cmpuint(json_object_array_length(json_get(before, "events")), ==, 1);

  record_end_life_after(record, RUN, "owner_1", events, &end, &error);
  g_assert_no_error(error);
  g_autoptr(JsonObject) run = read_run(record, RUN);
  g_assert_cmpstr(json_get_text(run, "status"), ==, "completed");
  g_assert_cmpstr(json_get_text(event_at(run, 1), "type"), ==, "sandbox_session_closed");
  g_assert_cmpstr(json_get_text(event_at(run, 2), "type"), ==, "run_ended");
}

/* A begin that does not wait for the disk is there for everybody, and what comes after it waits again. */
static void test_lazy_begin(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) header = json_of("{\"agent_name\": \"a\"}");
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(Record) other = open_record(place->path);
  const RecordLife life = {.owner = "owner_1", .lease_seconds = 60, .lazy = TRUE};
  record_begin_life(record, RUN, "trace_1", header, &life, &error);
  g_assert_no_error(error);
  g_autoptr(JsonObject) run = read_run(other, RUN);
  g_assert_cmpstr(json_get_text(run, "status"), ==, "running");

  sqlite3_stmt *statement = NULL;
  g_assert_cmpint(sqlite3_prepare_v2(record->db, "PRAGMA synchronous", -1, &statement, NULL), ==,
                  SQLITE_OK);
  g_assert_cmpint(sqlite3_step(statement), ==, SQLITE_ROW);
  g_assert_cmpint(sqlite3_column_int(statement, 0), ==, 2); /* FULL */
  sqlite3_finalize(statement);
}

static void test_abandoned(Place *place, gconstpointer unused) {
  (void)unused;
  g_autoptr(GError) error = NULL;
  gboolean changed = FALSE;
  g_autoptr(Record) record = open_record(place->path);
  begin_life(record, TRUE);
  suspend(record, APPROVAL, "ls", 100);
  end_waiting(record);
  record_abandon(record, RUN, "timeout", "too long", &changed, &error);
  g_assert_no_error(error);
  g_assert_true(changed);
  record_abandon(record, RUN, "failed", "again", &changed, &error);
  g_assert_no_error(error);
  g_assert_false(changed);
  g_autoptr(JsonObject) life = record_life(record, RUN, &error);
  g_assert_no_error(error);
  g_assert_cmpstr(json_get_text(life, "status"), ==, "timeout");
  assert_json(json_get(life, "error"), "{\"type\":\"RunEndedOutside\",\"message\":\"too long\"}");
  g_autoptr(JsonObject) waiting = record_approvals(record, NULL, FALSE, &error);
  assert_json(waiting, "[]");
}

/* ---- What remains ------------------------------------------------------------------------------------------------ */

static void check_remains(const char *events, Remains remains, const char *reported) {
  g_autofree char *text = g_strdup_printf(
      "{\"events\": [{\"type\": \"tool_call_started\", \"metadata\": {\"tool_call_id\": \"c\","
      " \"tag\": 7}, \"payload\": {\"arguments\": {\"command\": \"ls\"}}}%s]}",
      events);
  g_autoptr(JsonObject) run = json_of(text);
  g_autoptr(JsonObject) approvals = json_of("[]");
  g_autoptr(GPtrArray) calls = resume_calls(run, approvals, NULL);
  g_assert_cmpuint(calls->len, ==, 1);
  const ResumeCall *call = g_ptr_array_index(calls, 0);
  g_assert_cmpint(call->remains, ==, remains);
  g_assert_cmpstr(call->reported, ==, reported);
  g_assert_cmpint(json_object_get_int(call->tag), ==, 7);
}

static void test_remains(void) {
#define EVENT(type, rest)                                                                          \
  ", {\"type\": \"" type "\", \"metadata\": {\"tool_call_id\": \"c\"" rest "}}"
  check_remains("", REMAINS_AGAIN, NULL);
  check_remains(EVENT("tool_call_completed", ", \"outcome\": \"awaiting_approval\""), REMAINS_AGAIN,
                NULL);
  check_remains(EVENT("sandbox_exec_started", ""), REMAINS_UNKNOWN, NULL);
  check_remains(EVENT("sandbox_exec_started", "") EVENT("sandbox_exec_failed", ""), REMAINS_UNKNOWN,
                "error");
  check_remains(EVENT("sandbox_exec_started", "") EVENT("sandbox_exec_completed", ""),
                REMAINS_UNKNOWN, "success");
  check_remains(EVENT("sandbox_exec_started", "")
                    EVENT("tool_call_completed", ", \"outcome\": \"success\""),
                REMAINS_DONE, NULL);
#undef EVENT
}

/* What a call that waits needs to be run goes with the commit that ends its run for good, whoever ends it. */
static void check_sealed_at_end(Place *place, const char *status, gboolean kept) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Record) record = open_record(place->path);
  g_autoptr(JsonObject) approval = ask_for(APPROVAL, "ls", APPROVAL_DEFAULT_SECONDS);
  g_autoptr(JsonObject) events = json_object_new_array();
  g_autoptr(GPtrArray) approvals = g_ptr_array_new();
  json_add_take(approval, APPROVAL_SEALED, json_of("{\"command\": \"x secret\"}"));
  g_ptr_array_add(approvals, approval);
  begin_life(record, TRUE);
  record_suspend(record, RUN, "owner_1", approvals, NULL, events, &error);
  g_assert_no_error(error);
  record_end_life(record, RUN, "owner_1", status, NULL, &error);
  g_assert_no_error(error);
  g_autoptr(JsonObject) left = only_approval(record);
  g_assert_cmpint(json_get(left, APPROVAL_SEALED) != NULL, ==, kept);
}

static void test_sealed_stays(Place *place, gconstpointer status) {
  check_sealed_at_end(place, status, TRUE);
}

static void test_sealed_goes(Place *place, gconstpointer status) {
  check_sealed_at_end(place, status, FALSE);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
#define ADD(name, function)                                                                        \
  g_test_add("/run/approvals/" name, Place, NULL, place_make, function, place_remove)
  ADD("fields", test_fields);
  g_test_add_func("/run/approvals/digest", test_digest);
  g_test_add_func("/run/approvals/digest-of-role", test_digest_of_role);
  g_test_add_func("/run/approvals/gate-suspends-once", test_gate_suspends_once);
  g_test_add_func("/run/approvals/gate-fails", test_gate_fails);
  g_test_add_func("/run/approvals/gate-recalls", test_gate_recalls);
  g_test_add_func("/run/approvals/words", test_words_of_an_answer);
  ADD("bad-decisions", test_bad_decisions);
  ADD("bad-arguments", test_bad_arguments);
  ADD("final", test_final);
  ADD("expired", test_expired);
  ADD("edited", test_edited);
  ADD("used-once", test_used_once);
  ADD("resume-refusals", test_resume_refusals);
  ADD("no-request", test_no_request);
  ADD("lapsed-lease", test_lapsed_lease);
  ADD("end-with-events", test_end_with_events);
  ADD("lazy-begin", test_lazy_begin);
  ADD("abandoned", test_abandoned);
#define ADD_END(name, status, function)                                                            \
  g_test_add("/run/approvals/sealed-" name, Place, status, place_make, function, place_remove)
  ADD_END("waits", "awaiting_approval", test_sealed_stays);
  ADD_END("interrupted", "interrupted", test_sealed_stays);
  ADD_END("completed", "completed", test_sealed_goes);
  ADD_END("cancelled", "cancelled", test_sealed_goes);
  g_test_add_func("/run/approvals/remains", test_remains);
  return g_test_run();
}
