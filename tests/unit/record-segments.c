/* SPDX-License-Identifier: Apache-2.0 */
/* record-segments.c: a run that was resumed, cut into its segments and told whole. */
#include <string.h>

#include "base/error.h"
#include "record/trajectory-segments.h"

static JsonObject *quoted(const char *text) {
  g_autoptr(GError) error = NULL;
  g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
  JsonObject *value = json_parse("test", json, strlen(json), &error);
  g_assert_no_error(error);
  return value;
}

#define STARTED(ID, MORE)                                                                          \
  "{'type':'tool_call_started','metadata':{'tool_call_id':'" ID "','tool_name':'execute'" MORE     \
  "},'payload':{'arguments':{'command':'true'}}},"
#define ENDED(ID, OUTCOME)                                                                         \
  "{'type':'tool_call_completed','metadata':{'tool_call_id':'" ID "','outcome':'" OUTCOME "'}},"
#define RAN(ID, EXECUTION)                                                                         \
  "{'type':'sandbox_exec_started','metadata':{'tool_call_id':'" ID "','execution_id':'" EXECUTION  \
  "','purpose':'command'}},"                                                                       \
  "{'type':'sandbox_exec_completed','metadata':{'tool_call_id':'" ID                               \
  "','execution_id':'" EXECUTION "','purpose':'command','exit_code':0}},"
#define SESSION                                                                                    \
  "{'type':'sandbox_session_created','metadata':{'sandbox_session_id':'s'}},"                      \
  "{'type':'sandbox_session_closed','metadata':{'sandbox_session_id':'s','duration_ms':1500.0}},"
#define RUN_ENDED(STATUS) "{'type':'run_ended','metadata':{'status':'" STATUS "','reason':null}}"
#define RESUMED(TRACE) "{'type':'run_resumed','metadata':{'trace_id':'" TRACE "','attempt':2}},"

/* One call goes well; another waits, is decided, cut off, and ends in the third segment. */
static const char EVENTS[] = "[{'type':'run_started'}," STARTED("call_1", "") RAN(
    "call_1", "exec_1") ENDED("call_1", "success") STARTED("call_2", "")
    ENDED("call_2", "awaiting_approval") SESSION RUN_ENDED(
        "awaiting_approval") ",{'type':'approval_resolved','metadata':{}}," RESUMED("trace_second")
        STARTED("call_2", ",'resumed':true") "{'type':'run_interrupted','metadata':{'cause':'gone'}"
                                             "}," RESUMED("trace_third")
                                                 STARTED("call_2", ",'resumed':true")
                                                     RAN("call_2", "exec_2")
                                                         ENDED("call_2", "error")
                                                             SESSION RUN_ENDED("failed") "]";

static JsonObject *run_of(const char *events_text, const char *status) {
  g_autoptr(JsonObject) events = quoted(events_text);
  JsonObject *run = quoted("{'run_id':'run_1','trace_id':'trace_first','status':null,"
                           "'created_at':'2026-01-31T12:00:00.000000Z',"
                           "'ended_at':'2026-01-31T12:01:00.000000Z',"
                           "'header':{'agent_name':'analyst','provider':'docker'}}");
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    g_autofree char *at = g_strdup_printf("2026-01-31T12:00:%02u.000000Z", (guint)i % 60);
    json_add_int(json_object_array_get_idx(events, i), "seq", (gint64)i + 1);
    json_add_text(json_object_array_get_idx(events, i), "at", at);
  }
  json_add_text(run, "status", status);
  json_add_take(run, "events", g_steal_pointer(&events));
  return run;
}

static JsonObject *at(JsonObject *array, gsize index) {
  g_assert_cmpuint(index, <, json_object_array_length(array));
  return json_object_array_get_idx(array, index);
}

static void assert_json(JsonObject *value, const char *expected) {
  g_autofree char *text = json_text(value);
  g_autofree char *wanted = g_strdelimit(g_strdup(expected), "'", '"');
  g_assert_cmpstr(text, ==, wanted);
}

static JsonObject *story_of(const char *events, const char *status) {
  g_autoptr(JsonObject) run = run_of(events, status);
  g_autoptr(JsonObject) life = quoted("{'attempt':3,'approvals':[{'approval_id':'a'}]}");
  return trajectory_of_run(run, life);
}

/* How often each event's id stands in the text of the segments. */
static void count_ids(const char *text, guint *counts, gsize most) {
  for (const char *found = text; (found = strstr(found, "\"event_")); found++) {
    guint64 number = g_ascii_strtoull(found + strlen("\"event_"), NULL, 10);
    if (number > 0 && number <= most) {
      counts[number - 1]++;
    }
  }
}

static void test_cut(void) {
  static const char *const TRACES[] = {"trace_first", "trace_second", "trace_third"};
  static const char *const STATUSES[] = {"awaiting_approval", "interrupted", "failed"};
  static const gsize COUNTS[] = {11, 3, 8};
  g_autoptr(JsonObject) run = run_of(EVENTS, "failed");
  g_autoptr(JsonObject) segments = trajectory_segments(run);
  g_assert_cmpuint(json_object_array_length(segments), ==, 3);
  for (gsize i = 0; i < 3; i++) {
    JsonObject *segment = at(segments, i);
    g_assert_cmpstr(json_get_text(segment, "trace_id"), ==, TRACES[i]);
    g_assert_cmpstr(json_get_text(segment, "status"), ==, STATUSES[i]);
    g_assert_cmpuint(json_object_array_length(json_get(segment, "events")), ==, COUNTS[i]);
    g_assert_cmpuint(json_object_array_length(json_get(segment, "other_trace_ids")), ==, 2);
  }
  g_assert_cmpstr(json_get_text(at(segments, 1), "created_at"), ==, "2026-01-31T12:00:11.000000Z");
  g_assert_cmpstr(json_get_text(at(segments, 1), "ended_at"), ==, "2026-01-31T12:00:13.000000Z");
}

static void test_each_once(void) {
  enum { EVENT_COUNT = 22 };
  guint counts[EVENT_COUNT] = {0};
  g_autoptr(JsonObject) story = story_of(EVENTS, "failed");
  g_autofree char *text = json_text(json_get(story, "segments"));
  count_ids(text, counts, EVENT_COUNT);
  for (gsize i = 0; i < EVENT_COUNT; i++) {
    g_assert_cmpuint(counts[i], ==, 1);
  }
}

static void test_story(void) {
  g_autoptr(JsonObject) story = story_of(EVENTS, "failed");
  JsonObject *totals = json_get(story, "totals");
  g_assert_cmpstr(json_get_text(story, "status"), ==, "failed");
  g_assert_cmpint(json_get_int(story, "attempt", 0), ==, 3);
  assert_json(json_get(totals, "tool_calls"), "{'total':2,'by_outcome':{'success':1,'error':1}}");
  assert_json(json_get(totals, "executions"),
              "{'sessions':2,'commands':2,'failed':0,'timed_out':0}");
  assert_json(json_get(totals, "steps"), "1");
  assert_json(json_get(totals, "duration_ms"), "57000.000"); /* what it ran, not what it waited */
  assert_json(json_get(totals, "estimated_cost_usd"), "null");
  assert_json(json_get(story, "approvals"), "[{'approval_id':'a'}]");
  assert_json(json_get(json_get(story, "usage"), "tool_calls"), "2");
  assert_json(json_get(json_get(story, "usage"), "sandbox_seconds"), "3.000");
  g_assert_cmpuint(json_object_array_length(json_get(story, "previous_attempts")), ==, 2);
  JsonObject *calls = json_get(story, "tool_calls");
  g_assert_cmpuint(json_object_array_length(calls), ==, 2);
  g_assert_cmpstr(json_get_text(at(calls, 1), "outcome"), ==, "error");
  g_assert_cmpstr(json_get_text(at(calls, 1), "state"), ==, "completed");
  g_assert_false(json_object_object_get_ex(at(calls, 1), "began", NULL));
}

static void test_steps(void) {
  static const gboolean RESUMED_STEPS[] = {FALSE, TRUE, TRUE};
  g_autoptr(JsonObject) story = story_of(EVENTS, "failed");
  for (gsize i = 0; i < 3; i++) {
    JsonObject *segment = at(json_get(story, "segments"), i);
    JsonObject *step = at(json_get(json_get(segment, "trajectory"), "steps"), 0);
    g_assert_cmpint(json_get_bool(step, "resumed", -1), ==, RESUMED_STEPS[i]);
    g_assert_true(json_get_bool(segment, "trace_kept", FALSE));
  }
  /* The second one was cut off, the others have their end; the numbers of none have a hole. */
  JsonObject *second = json_get(at(json_get(story, "segments"), 1), "trajectory");
  g_assert_cmpstr(json_get_text(second, "evidence_status"), ==, "partial");
  assert_json(json_get(second, "capture_gaps"),
              "[{'type':'tool_call','id':'call_2','state':'missing'}]");
  JsonObject *third = json_get(at(json_get(story, "segments"), 2), "trajectory");
  assert_json(json_get(third, "capture_gaps"), "[]");
}

/* A call that is open is told as that, and one that waits as waiting. */
static void test_open(void) {
  g_autoptr(JsonObject) story =
      story_of("[{'type':'run_started'}," STARTED("call_1", "") STARTED("call_2", "")
                   ENDED("call_2", "awaiting_approval") RUN_ENDED("awaiting_approval") "]",
               "awaiting_approval");
  JsonObject *calls = json_get(story, "tool_calls");
  g_assert_cmpstr(json_get_text(at(calls, 0), "state"), ==, "started");
  g_assert_cmpstr(json_get_text(at(calls, 1), "state"), ==, "awaiting_approval");
  assert_json(json_get(json_get(story, "totals"), "tool_calls"),
              "{'total':2,'by_outcome':{'unknown':1,'awaiting_approval':1}}");
  assert_json(json_get(json_get(story, "usage"), "tool_calls"), "0");
}

static void assert_chosen(JsonObject *run, const char *which, const char *trace) {
  g_autoptr(GError) error = NULL;
  g_autoptr(JsonObject) segment = trajectory_segment(run, which, &error);
  if (trace) {
    g_assert_no_error(error);
    g_assert_cmpstr(json_get_text(segment, "trace_id"), ==, trace);
    return;
  }
  g_autofree char *text =
      g_strdup_printf("run run_1 has no segment %s; it has 3", which ? which : "");
  g_assert_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND);
  g_assert_cmpstr(error->message, ==, text);
}

static void test_choose(void) {
  g_autoptr(JsonObject) run = run_of(EVENTS, "failed");
  assert_chosen(run, NULL, "trace_third");
  assert_chosen(run, "last", "trace_third");
  assert_chosen(run, "first", "trace_first");
  assert_chosen(run, "2", "trace_second");
  assert_chosen(run, "trace_second", "trace_second");
  assert_chosen(run, "trace_se", "trace_second");
  assert_chosen(run, "trace_", NULL);
  assert_chosen(run, "0", NULL);
  assert_chosen(run, "4", NULL);
  assert_chosen(run, "", NULL);
}

/* What a stranger may have written into the file ends in no crash. */
static void test_damaged(void) {
  g_autoptr(JsonObject) story =
      story_of("[{'type':'run_resumed','metadata':null},{'type':'run_resumed'},{'type':null},"
               "{'type':'tool_call_started','metadata':{'tool_call_id':7}}]",
               "completed");
  g_autofree char *text = trajectory_run_text(story);
  g_assert_cmpuint(json_object_array_length(json_get(story, "segments")), ==, 3);
  g_assert_nonnull(strstr(text, "segment 3, -: completed"));
}

static void test_text(void) {
  g_autoptr(JsonObject) story = story_of(EVENTS, "failed");
  g_autofree char *text = trajectory_run_text(story);
  g_autofree char *summary = trajectory_run_summary(story);
  g_assert_nonnull(strstr(text, "run run_1\n  status    failed\n  segments  3\n"));
  g_assert_nonnull(strstr(text, "\nsegment 2, trace_second: interrupted\n"));
  g_assert_true(g_str_has_suffix(
      text, "\ntotals: {'sessions': 2, 'commands': 2, 'failed': 0, 'timed_out': 0}\n"));
  g_assert_true(g_str_has_suffix(
      summary, "\ntotals: {'sessions': 2, 'commands': 2, 'failed': 0, 'timed_out': 0}\n"));
}

/* One that was never resumed is told as its only segment. */
static void test_one(void) {
  g_autoptr(JsonObject) run = run_of("[{'type':'run_started'}," STARTED("call_1", "")
                                         ENDED("call_1", "success") RUN_ENDED("completed") "]",
                                     "completed");
  g_autoptr(JsonObject) story = trajectory_of_run(run, NULL);
  g_autoptr(JsonObject) trajectory = trajectory_new(run);
  g_autofree char *whole = trajectory_run_text(story);
  g_autofree char *one = trajectory_text(trajectory);
  g_assert_cmpstr(whole, ==, one);
  g_assert_cmpint(json_get_int(story, "attempt", 0), ==, 1);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/segments/cut", test_cut);
  g_test_add_func("/segments/each-once", test_each_once);
  g_test_add_func("/segments/story", test_story);
  g_test_add_func("/segments/steps", test_steps);
  g_test_add_func("/segments/open", test_open);
  g_test_add_func("/segments/choose", test_choose);
  g_test_add_func("/segments/damaged", test_damaged);
  g_test_add_func("/segments/text", test_text);
  g_test_add_func("/segments/one", test_one);
  return g_test_run();
}
