/* SPDX-License-Identifier: Apache-2.0 */
/* run-resume.c: what a resumed run does of each call, where the record has not all of it. */
#include "run/resume.h"

static JsonObject *parse(const char *text) {
  JsonObject *value = json_tokener_parse(text);
  g_assert_nonnull(value);
  return value;
}

/* The one call of a run whose event is started, with these approvals. Owned by *ret_calls. */
static const ResumeCall *call_of(const char *payload, const char *approvals,
                                 GPtrArray **ret_calls) {
  g_autofree char *text = g_strdup_printf("{\"events\": [{\"type\": \"tool_call_started\", "
                                          "\"metadata\": {\"tool_call_id\": \"call_1\"},"
                                          " \"payload\": %s}]}",
                                          payload);
  g_autoptr(JsonObject) run = parse(text);
  g_autoptr(JsonObject) list = parse(approvals);
  *ret_calls = resume_calls(run, list, NULL);
  g_assert_cmpuint((*ret_calls)->len, ==, 1);
  return g_ptr_array_index(*ret_calls, 0);
}

static void check(const char *payload, const char *approvals, const char *command,
                  gboolean withheld) {
  g_autoptr(GPtrArray) calls = NULL;
  const ResumeCall *call = call_of(payload, approvals, &calls);
  g_assert_cmpint(call->remains, ==, REMAINS_AGAIN);
  g_assert_cmpstr(json_get_text(call->arguments, "command"), ==, command);
  g_assert_cmpint(call->withheld, ==, withheld);
}

static void test_arguments(void) {
  static const char WHOLE[] = "{\"arguments\": {\"command\": \"ls\"}}";
  static const char PART[] =
      "{\"arguments\": {\"command\": \"[REDACTED]\"}, \"capture\": \"redacted\"}";
  check(WHOLE, "[]", "ls", FALSE);
  check(PART, "[]", "[REDACTED]", TRUE);
  /* The approval has it as it is to be run. */
  check(PART,
        "[{\"tool_call_id\": \"call_1\", \"status\": \"approved\", \"arguments\": {\"command\": "
        "\"ls\"}}]",
        "ls", FALSE);
  check(PART,
        "[{\"tool_call_id\": \"call_1\", \"status\": \"denied\", \"arguments\": {\"command\": \"x "
        "[..]\"},"
        "  \"sealed_arguments\": {\"command\": \"x secret\"}}]",
        "x secret", FALSE);
  /* Another call's, and one that was used: what is left of that one is only for people. */
  check(PART,
        "[{\"tool_call_id\": \"call_2\", \"status\": \"approved\", \"arguments\": {\"command\": "
        "\"ls\"}}]",
        "[REDACTED]", TRUE);
  check(PART,
        "[{\"tool_call_id\": \"call_1\", \"status\": \"used\", \"arguments\": {\"command\": "
        "\"ls\"}}]",
        "[REDACTED]", TRUE);
  /* What a person put in its place counts. */
  check(
      PART,
      "[{\"tool_call_id\": \"call_1\", \"status\": \"approved\", \"arguments\": {\"command\": "
      "\"a\"},"
      "  \"sealed_arguments\": {\"command\": \"b\"}, \"edited_arguments\": {\"command\": \"c\"}}]",
      "c", FALSE);
}

static void test_request(void) {
  g_autoptr(JsonObject) whole = parse("{\"command\": \"ls\"}");
  g_autoptr(JsonObject) part = parse("{\"command\": \"[..]\", \"redacted\": true}");
  g_assert_false(resume_request_is_redacted(whole));
  g_assert_true(resume_request_is_redacted(part));
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/run/resume/arguments", test_arguments);
  g_test_add_func("/run/resume/request", test_request);
  return g_test_run();
}
