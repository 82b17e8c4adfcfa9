/* SPDX-License-Identifier: Apache-2.0 */
/* record-trajectory.c: the trajectory of a run, of every beginning of it, and the texts made of it. */
#include <string.h>

#include "record/trajectory.h"

/* JSON with ' in the place of ", for reading's sake. Returns owned. */
static JsonObject *quoted(const char *text) {
  g_autoptr(GError) error = NULL;
  g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
  JsonObject *value = json_parse("test", json, strlen(json), &error);
  g_assert_no_error(error);
  return value;
}

static JsonObject *event_of(JsonObject *run, gsize index) {
  JsonObject *events = json_get(run, "events");
  g_assert_cmpuint(index, <, json_object_array_length(events));
  return json_object_array_get_idx(events, index);
}

/* What one command writes, as the run room writes it. */
static const char EVENTS[] =
    "[{'type':'run_started','metadata':{'header':{}}},"
    "{'type':'tool_call_started','metadata':{'tool_call_id':'call_1','tool_name':'execute'},"
    " 'payload':{'arguments':{'command':'true'}}},"
    "{'type':'policy_request_created','metadata':{'tool_call_id':'call_1',"
    " 'capability':'sandbox.execute'},'payload':{'request':{'request_id':'req_1'}}},"
    "{'type':'policy_decision_allow','metadata':{'tool_call_id':'call_1','effect':'allow',"
    " 'capability':'sandbox.execute','reason_code':'matched_allow','matched_rule_ids':['r1'],"
    " 'approval_id':null,'approved_by':null,'denied_by':null},"
    " 'payload':{'decision':{'request_id':'req_1'}}},"
    "{'type':'policy_request_created','metadata':{'tool_call_id':'call_1',"
    " 'capability':'process.exec'},'payload':{'request':{'request_id':'req_2'}}},"
    "{'type':'policy_decision_ask','metadata':{'tool_call_id':'call_1','effect':'ask',"
    " 'capability':'process.exec','reason_code':'matched_ask','matched_rule_ids':['r2']},"
    " 'payload':{'decision':{'request_id':'req_2'}}},"
    "{'type':'policy_decision_allow','metadata':{'tool_call_id':'call_1','effect':'allow',"
    " 'capability':'process.exec','reason_code':'approved','matched_rule_ids':['r2'],"
    " 'approved_by':'ada'},'payload':{'decision':{'request_id':'req_2'}}},"
    "{'type':'sandbox_session_created','metadata':{'sandbox_session_id':'sandbox_1',"
    " 'sandbox_provider':'docker','sandbox_ref':'c0ffee','image':'python:3.12-slim',"
    " 'network':'deny','working_dir':'/workspace','network_isolation':'own'}},"
    "{'type':'sandbox_exec_started','metadata':{'tool_call_id':'call_1',"
    " 'sandbox_session_id':'sandbox_1','execution_id':'exec_0','purpose':'workspace_sync'},"
    " 'payload':{'command':['sh','-c','find .']}},"
    "{'type':'sandbox_exec_started','metadata':{'tool_call_id':'call_1',"
    " 'sandbox_session_id':'sandbox_1','execution_id':'exec_1','sandbox_provider':'docker',"
    " 'command_name':'sh','argc':3,'timeout_seconds':60,'purpose':'command','decision_id':'d1',"
    " 'matched_rule_ids':['r2']},'payload':{'command':['sh','-c','true']}},"
    "{'type':'sandbox_exec_completed','metadata':{'tool_call_id':'call_1',"
    " 'sandbox_session_id':'sandbox_1','execution_id':'exec_1','sandbox_provider':'docker',"
    " 'purpose':'command','matched_rule_ids':['r2'],'exit_code':0,'timed_out':false,"
    " 'duration_ms':1325.076,'stdout_bytes':3,'stderr_bytes':0,'stdout_truncated':false,"
    " 'stderr_truncated':false,'session_terminated':false,'signal':0,'error':null},"
    " 'payload':{'command':['sh','-c','true'],'exit_code':0,'stdout':'450','stderr':''}},"
    "{'type':'sandbox_workspace_sync','metadata':{'tool_call_id':'call_1',"
    " 'sandbox_session_id':'sandbox_1','copied_in':['sales.csv'],'written':['total.txt'],"
    " 'skipped':[{'path':'big','reason':'too big'}]}},"
    "{'type':'tool_call_completed','metadata':{'tool_call_id':'call_1','tool_name':'execute',"
    " 'outcome':'success'},'payload':{'observation':{'tool_name':'execute','status':'success',"
    " 'data':{'exit_code':0,'stdout':'450'},'message':null}}},"
    "{'type':'sandbox_session_closed','metadata':{'sandbox_session_id':'sandbox_1',"
    " 'sandbox_ref':'c0ffee','commands':1,'duration_ms':2000.5,'lost':false,'error':null}},"
    "{'type':'run_ended','metadata':{'status':'completed','reason':null}}]";

/* A run as record_run returns it: the first count events, numbered and one second apart. */
static JsonObject *run_of(const char *events_text, gsize count, const char *status) {
  g_autoptr(JsonObject) events = quoted(events_text);
  JsonObject *run = quoted("{'run_id':'run_1','trace_id':'trace_1','status':null,"
                           "'created_at':'2026-01-31T12:00:00.000000Z',"
                           "'ended_at':'2026-01-31T12:00:02.250000Z',"
                           "'header':{'agent_name':'analyst','provider':'docker',"
                           "'sandhost_version':'0.1.0','governance':{'enabled':true}}}");
  JsonObject *kept = json_object_new_array();
  for (gsize i = 0; i < MIN(count, json_object_array_length(events)); i++) {
    JsonObject *event = json_object_get(json_object_array_get_idx(events, i));
    g_autofree char *at = g_strdup_printf("2026-01-31T12:00:%02u.000000Z", (guint)i % 60);
    json_add_int(event, "seq", (gint64)i + 1);
    json_add_text(event, "at", at);
    json_object_array_add(kept, event);
  }
  json_add_text(run, "status", status);
  json_add_take(run, "events", kept);
  return run;
}

static JsonObject *trajectory_of(const char *events, const char *status) {
  g_autoptr(JsonObject) run = run_of(events, G_MAXSIZE, status);
  return trajectory_new(run);
}

static JsonObject *first_call(JsonObject *trajectory) {
  JsonObject *steps = json_get(trajectory, "steps");
  g_assert_cmpuint(json_object_array_length(steps), ==, 1);
  JsonObject *calls = json_get(json_object_array_get_idx(steps, 0), "tool_calls");
  g_assert_cmpuint(json_object_array_length(calls), >=, 1);
  return json_object_array_get_idx(calls, 0);
}

static void assert_json(JsonObject *value, const char *expected) {
  g_autofree char *text = json_text(value);
  g_autofree char *wanted = g_strdelimit(g_strdup(expected), "'", '"');
  g_assert_cmpstr(text, ==, wanted);
}

static void assert_keys(JsonObject *object, const char *names) {
  g_auto(GStrv) keys = g_strsplit(names, " ", -1);
  for (gsize i = 0; keys[i]; i++) {
    if (!json_object_object_get_ex(object, keys[i], NULL)) {
      g_error("the key %s is missing", keys[i]);
    }
  }
}

static void assert_all_keys(JsonObject *trajectory) {
  assert_keys(trajectory,
              "trajectory_version trace_id run_id session_id agent_id parent_trace_id status "
              "evidence_status incomplete execution_surface started_at ended_at versions tags "
              "provenance request harness steps final totals runtime_messages other_events "
              "tool_calls_outside_steps capture_gaps other_trace_ids_for_run");
  assert_keys(json_get(trajectory, "harness"), "agent model limits features tools governance "
                                               "privacy security_warnings fingerprints");
  assert_keys(json_get(trajectory, "totals"),
              "steps model_calls tokens estimated_cost_usd cost_complete tool_calls executions "
              "workspace_changes duration_ms including_subagents");
  JsonObject *steps = json_get(trajectory, "steps");
  for (gsize i = 0; i < json_object_array_length(steps); i++) {
    JsonObject *step = json_object_array_get_idx(steps, i);
    assert_keys(step, "step resumed status started_at ended_at duration_ms context model_calls "
                      "tool_calls runtime_messages other_events");
    JsonObject *calls = json_get(step, "tool_calls");
    for (gsize j = 0; j < json_object_array_length(calls); j++) {
      JsonObject *call = json_object_array_get_idx(calls, j);
      assert_keys(call, "tool_call_id tool_name provider server outcome rejection_reason "
                        "raw_arguments arguments result result_capture error observation "
                        "governance executions workspace_sync subagent code_calls reconnects");
      JsonObject *executions = json_get(call, "executions");
      for (gsize k = 0; k < json_object_array_length(executions); k++) {
        assert_keys(json_object_array_get_idx(executions, k),
                    "execution_id command exit_code timed_out duration_ms stdout stderr "
                    "stdout_bytes stderr_bytes stdout_truncated stderr_truncated "
                    "sandbox_provider sandbox_session_id matched_rule_ids");
      }
    }
  }
}

/* Adds what event_id, request_event_id and event_ids name, at any depth. */
static void collect_ids(JsonObject *value, GHashTable *seen) {
  if (json_object_is_type(value, json_type_array)) {
    for (gsize i = 0; i < json_object_array_length(value); i++) {
      collect_ids(json_object_array_get_idx(value, i), seen);
    }
  } else if (json_object_is_type(value, json_type_object)) {
    json_object_object_foreach(value, key, member) {
      if ((g_str_equal(key, "event_id") || g_str_equal(key, "request_event_id")) && member) {
        g_assert_true(g_hash_table_add(seen, g_strdup(json_object_get_string(member))));
      } else if (g_str_equal(key, "event_ids")) {
        for (gsize i = 0; i < json_object_array_length(member); i++) {
          const char *id = json_object_get_string(json_object_array_get_idx(member, i));
          g_assert_true(g_hash_table_add(seen, g_strdup(id)));
        }
      } else {
        collect_ids(member, seen);
      }
    }
  }
}

static void assert_each_once(JsonObject *trajectory, gsize count) {
  g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  collect_ids(trajectory, seen);
  g_assert_cmpuint(g_hash_table_size(seen), ==, count);
  for (gsize i = 1; i <= count; i++) {
    g_autofree char *id = g_strdup_printf("event_%" G_GSIZE_FORMAT, i);
    g_assert_true(g_hash_table_contains(seen, id));
  }
}

/* ---- Whole runs -------------------------------------------------------------------------------------- */

static void test_whole(void) {
  g_autoptr(JsonObject) trajectory = trajectory_of(EVENTS, "completed");
  JsonObject *call = first_call(trajectory);
  g_assert_cmpstr(json_get_text(trajectory, "trajectory_version"), ==,
                  "omnicoreagent.trajectory/v1");
  g_assert_cmpstr(json_get_text(trajectory, "status"), ==, "completed");
  g_assert_cmpstr(json_get_text(trajectory, "evidence_status"), ==, "complete");
  g_assert_false(json_get_bool(trajectory, "incomplete", TRUE));
  g_assert_cmpstr(json_get_text(trajectory, "agent_id"), ==, "analyst");
  g_assert_cmpstr(json_get_text(call, "outcome"), ==, "success");
  assert_json(json_get(call, "arguments"), "{'command':'true'}");
  assert_json(json_get(call, "result"), "{'exit_code':0,'stdout':'450'}");
  assert_json(json_get(json_get(trajectory, "totals"), "duration_ms"), "2250.000");
  assert_all_keys(trajectory);
  assert_each_once(trajectory, 15);
}

static void test_execution(void) {
  g_autoptr(JsonObject) trajectory = trajectory_of(EVENTS, "completed");
  JsonObject *executions = json_get(first_call(trajectory), "executions");
  g_assert_cmpuint(json_object_array_length(executions), ==, 1);
  JsonObject *execution = json_object_array_get_idx(executions, 0);
  assert_json(json_get(execution, "command"), "['sh','-c','true']");
  assert_json(json_get(execution, "duration_ms"), "1325.076");
  assert_json(json_get(execution, "matched_rule_ids"), "['r2']");
  g_assert_cmpstr(json_get_text(execution, "stdout"), ==, "450");
  g_assert_cmpstr(json_get_text(execution, "sandbox_provider"), ==, "docker");
  g_assert_cmpint(json_get_int(execution, "stdout_bytes", -1), ==, 3);
}

static void test_governance(void) {
  static const char *const EFFECTS[] = {"allow", "ask", "allow"};
  static const char *const REASONS[] = {"matched_allow", "matched_ask", "approved"};
  g_autoptr(JsonObject) trajectory = trajectory_of(EVENTS, "completed");
  JsonObject *governance = json_get(first_call(trajectory), "governance");
  g_assert_cmpuint(json_object_array_length(governance), ==, 3);
  for (gsize i = 0; i < 3; i++) {
    JsonObject *entry = json_object_array_get_idx(governance, i);
    assert_keys(entry, "event_id effect capability reason_code matched_rule_ids approval_id "
                       "approved_by denied_by");
    g_assert_cmpstr(json_get_text(entry, "effect"), ==, EFFECTS[i]);
    g_assert_cmpstr(json_get_text(entry, "reason_code"), ==, REASONS[i]);
  }
  g_assert_cmpstr(json_get_text(json_object_array_get_idx(governance, 2), "approved_by"), ==,
                  "ada");
}

static void test_error(void) {
  g_autoptr(JsonObject) trajectory = trajectory_of(
      "[{'type':'run_started'},{'type':'tool_call_started','metadata':{'tool_call_id':'c'}},"
      "{'type':'tool_call_completed','metadata':{'tool_call_id':'c','outcome':'denied'},"
      "'payload':{'observation':{'message':'No.','governance_error_code':'policy_denied'}}},"
      "{'type':'run_ended'}]",
      "failed");
  assert_json(json_get(first_call(trajectory), "error"),
              "{'type':'policy_denied','message':'No.'}");
}

static void test_statuses(void) {
  static const char *const CASES[][2] = {
      {"completed", "completed"}, {"failed", "failed"},      {"cancelled", "cancelled"},
      {"timeout", "timeout"},     {"running", "running"},    {"awaiting_approval", "suspended"},
      {"blocked", "failed"},      {"abandoned", "cancelled"}};
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(JsonObject) trajectory = trajectory_of(EVENTS, CASES[i][0]);
    g_assert_cmpstr(json_get_text(trajectory, "status"), ==, CASES[i][1]);
  }
}

/* ---- Runs cut off, and events out of place --------------------------------------------------------------- */

static void test_every_beginning(void) {
  for (gsize count = 0; count < 15; count++) {
    g_autoptr(JsonObject) run = run_of(EVENTS, count, "interrupted");
    g_autoptr(JsonObject) trajectory = trajectory_new(run);
    g_assert_cmpstr(json_get_text(trajectory, "status"), ==, "interrupted");
    g_assert_cmpstr(json_get_text(trajectory, "evidence_status"), ==,
                    count ? "partial" : "unknown");
    g_assert_true(json_get_bool(trajectory, "incomplete", FALSE));
    assert_all_keys(trajectory);
    assert_each_once(trajectory, count);

    g_autoptr(GError) error = NULL;
    g_autofree char *json = json_text(trajectory);
    g_autoptr(JsonObject) parsed = json_parse("trajectory", json, strlen(json), &error);
    g_assert_no_error(error);
    g_assert_true(json_object_is_type(parsed, json_type_object));
    g_autofree char *summary = trajectory_summary(trajectory);
    g_assert_true(g_str_has_suffix(summary, "}\n"));
    g_autofree char *text = trajectory_text(trajectory);
    g_assert_true(g_str_has_prefix(text, "run run_1\n"));
  }
}

/* Each event alone, and each left out: nothing is lost, whatever is missing. */
static void test_holes(void) {
  for (gsize gone = 0; gone < 15; gone++) {
    g_autoptr(JsonObject) run = run_of(EVENTS, G_MAXSIZE, "completed");
    JsonObject *events = json_get(run, "events");
    json_object_array_del_idx(events, gone, 1);
    for (gsize i = 0; i < 14; i++) {
      json_add_int(json_object_array_get_idx(events, i), "seq", (gint64)i + 1);
    }
    g_autoptr(JsonObject) trajectory = trajectory_new(run);
    assert_each_once(trajectory, 14);
    assert_all_keys(trajectory);
  }
}

static void test_repeated(void) {
  g_autoptr(JsonObject) run = run_of(EVENTS, G_MAXSIZE, "completed");
  JsonObject *events = json_get(run, "events");
  g_autoptr(JsonObject) again = run_of(EVENTS, G_MAXSIZE, "completed");
  for (gsize i = 0; i < 15; i++) {
    JsonObject *event = json_object_get(event_of(again, i));
    json_add_int(event, "seq", (gint64)i + 16);
    json_object_array_add(events, event);
  }
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  assert_each_once(trajectory, 30);
}

static void test_damaged(void) {
  g_autoptr(JsonObject) run = run_of(EVENTS, G_MAXSIZE, "completed");
  JsonObject *event = event_of(run, 10);
  json_add_take(event, "payload", NULL);
  json_add_bool(event, "damaged", TRUE);
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  g_assert_cmpstr(json_get_text(trajectory, "evidence_status"), ==, "partial");
  assert_json(json_get(trajectory, "capture_gaps"),
              "[{'type':'sandbox_exec_completed','id':'event_11','state':'missing'}]");
}

/* ---- Texts ------------------------------------------------------------------------------------------------ */

/* Character by character what the first source document prints. */
static void test_document(void) {
  static const char COMMAND[] =
      "python3 - <<'PY'\nimport csv\nfrom decimal import Decimal\nfrom pathlib import Path\n"
      "p = Path('sales.csv')\nwith p.open(newline='', encoding='utf-8') as f:\n"
      "    reader = csv.DictReader(f)\n    total = Decimal('0')\n    for row in reader:\n"
      "        val = row.get('amount', '').strip()\n        if val:\n"
      "            total += Decimal(val)\n"
      "Path('total.txt').write_text(str(total), encoding='utf-8')\nprint(total)\nPY";
  g_autoptr(JsonObject) run = run_of(EVENTS, G_MAXSIZE, "completed");
  for (gsize i = 9; i <= 10; i++) {
    const char *const argv[] = {"sh", "-c", COMMAND, NULL};
    json_add_take(json_get(event_of(run, i), "payload"), "command", json_from_strv(argv));
  }
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  g_autofree char *summary = trajectory_summary(trajectory);
  g_assert_cmpstr(
      summary, ==,
      "ran: ['sh', '-c', \"python3 - <<'PY'\\nimport csv\\nfrom decimal import Decimal\\nfrom "
      "pathlib import Path\\np = Path('sales.csv')\\nwith p.open(newline='', encoding='utf-8') as "
      "f:\\n    reader = csv.DictReader(f)\\n    total = Decimal('0')\\n    for row in reader:\\n  "
      "      val = row.get('amount', '').strip()\\n        if val:\\n            total += "
      "Decimal(val)\\nPath('total.txt').write_text(str(total), encoding='utf-8')\\nprint(total)"
      "\\nPY\"] | exit 0 | in docker | 1325.076 ms\n"
      "copied in: ['sales.csv'] | copied back: ['total.txt']\n"
      "totals: {'sessions': 1, 'commands': 1, 'failed': 0, 'timed_out': 0}\n");
}

/* A command that failed, one past its limit (which failed, too), one without an end. */
static void test_totals(void) {
  g_autoptr(JsonObject) trajectory = trajectory_of(
      "[{'type':'run_started'},{'type':'tool_call_started','metadata':{'tool_call_id':'c'}},"
      "{'type':'sandbox_exec_started','metadata':{'tool_call_id':'c','execution_id':'1'},"
      " 'payload':{'command':['a']}},"
      "{'type':'sandbox_exec_failed','metadata':{'tool_call_id':'c','execution_id':'1',"
      " 'exit_code':3,'timed_out':false,'duration_ms':1.5},'payload':{}},"
      "{'type':'sandbox_exec_started','metadata':{'tool_call_id':'c','execution_id':'2'},"
      " 'payload':{'command':['b']}},"
      "{'type':'sandbox_exec_failed','metadata':{'tool_call_id':'c','execution_id':'2',"
      " 'exit_code':137,'timed_out':true,'duration_ms':2},'payload':{}},"
      "{'type':'sandbox_exec_started','metadata':{'tool_call_id':'c','execution_id':'3'},"
      " 'payload':{'command':['c']}}]",
      "interrupted");
  g_autofree char *summary = trajectory_summary(trajectory);
  g_assert_cmpstr(summary, ==,
                  "ran: ['a'] | exit 3 | in docker | 1.500 ms\n"
                  "ran: ['b'] | exit 137 | in docker | 2.000 ms\n"
                  "ran: ['c'] | exit None | in docker | None ms\n"
                  "totals: {'sessions': 0, 'commands': 3, 'failed': 2, 'timed_out': 1}\n");
}

/* Nothing that a command prints moves the cursor, hides, or turns the text around. */
static void test_harmless(void) {
  g_autoptr(JsonObject) run = run_of(EVENTS, G_MAXSIZE, "completed");
  JsonObject *payload = json_get(event_of(run, 10), "payload");
  json_add_text(payload, "stdout",
                "a\x1b[31m\tb\r\xc2\x9b\xe2\x80\xae\xe2\x80\x8b"
                "end\nnext \xc3\xa4\x7f");
  json_add_text(json_get(event_of(run, 10), "metadata"), "sandbox_provider", "x\x1b]0;y\x07");
  json_add_text(json_get(event_of(run, 14), "metadata"), "reason", "why\nrun run_2");
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  g_autofree char *text = trajectory_text(trajectory);
  g_assert_nonnull(strstr(text, "| a\\x1b[31m\\x09b\\x0d\\x9b\\u202e\\u200bend\n"));
  g_assert_nonnull(strstr(text, "| next \xc3\xa4\\x7f\n"));
  g_assert_nonnull(strstr(text, "why\\x0arun run_2"));
  for (const char *at = text; *at; at++) {
    g_assert_true((guchar)*at >= 0x20 || *at == '\n');
    g_assert_true(*at != 0x7f);
  }
}

static void test_long_output(void) {
  g_autoptr(JsonObject) run = run_of(EVENTS, G_MAXSIZE, "completed");
  g_autofree char *line = g_strnfill(100000, 'x');
  json_add_text(json_get(event_of(run, 10), "payload"), "stdout", line);
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  g_autofree char *text = trajectory_text(trajectory);
  g_assert_cmpuint(strlen(text), <, 8000);
}

/* What is not as it was says so, and only then is the evidence partial. */
static void test_capture_states(void) {
  static const struct {
    const char *state;
    const char *evidence;
  } CASES[] = {{"available", "complete"}, {"offloaded", "complete"},
               {"redacted", "partial"},   {"not_recorded", "partial"},
               {"truncated", "partial"},  {"a word of its own", "complete"}};
  for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
    g_autoptr(JsonObject) run = run_of(EVENTS, 15, "completed");
    JsonObject *payload = json_get(event_of(run, 10), "payload");
    g_assert_cmpstr(json_get_text(payload, "stdout"), ==, "450");
    json_add_text(payload, "capture", CASES[i].state);
    g_autoptr(JsonObject) trajectory = trajectory_new(run);
    JsonObject *step = json_object_array_get_idx(json_get(trajectory, "steps"), 0);
    JsonObject *call = json_object_array_get_idx(json_get(step, "tool_calls"), 0);
    gboolean known = strchr(CASES[i].state, ' ') == NULL;
    g_assert_cmpstr(json_get_text(call, "result_capture"), ==,
                    known ? CASES[i].state : "available");
    g_assert_cmpstr(json_get_text(trajectory, "evidence_status"), ==, CASES[i].evidence);
  }
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/trajectory/whole", test_whole);
  g_test_add_func("/trajectory/capture-states", test_capture_states);
  g_test_add_func("/trajectory/execution", test_execution);
  g_test_add_func("/trajectory/governance", test_governance);
  g_test_add_func("/trajectory/error", test_error);
  g_test_add_func("/trajectory/statuses", test_statuses);
  g_test_add_func("/trajectory/every-beginning", test_every_beginning);
  g_test_add_func("/trajectory/holes", test_holes);
  g_test_add_func("/trajectory/repeated", test_repeated);
  g_test_add_func("/trajectory/damaged", test_damaged);
  g_test_add_func("/trajectory/document", test_document);
  g_test_add_func("/trajectory/totals", test_totals);
  g_test_add_func("/trajectory/harmless", test_harmless);
  g_test_add_func("/trajectory/long-output", test_long_output);
  return g_test_run();
}
