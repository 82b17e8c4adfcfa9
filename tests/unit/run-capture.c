/* SPDX-License-Identifier: Apache-2.0 */
/* run-capture.c: what is left of each event when it goes on record. */
#include "run/capture.h"

#include <string.h>

#define SECRET "sk-0123456789abcdefghij"
#define M CREDENTIAL_MARKER

typedef struct {
  Privacy *privacy;
  CaptureConfig config;
} Setting;

static Setting setting_of(const char *telemetry) {
  const char *const declared[] = {SECRET, NULL};
  PrivacyConfig config;
  Setting setting;
  g_autoptr(JsonObject) agent = json_object_new_object();
  json_add_take(agent, "telemetry_config", json_tokener_parse(telemetry));
  privacy_config_init(&config, &setting.config);
  privacy_config_read(&config, &setting.config, agent);
  setting.privacy = privacy_new(&config, declared, NULL);
  privacy_config_clear(&config);
  return setting;
}

static void check(const char *telemetry, const char *type, const char *payload,
                  const char *wanted) {
  Setting setting = setting_of(telemetry);
  const Capture capture = {.privacy = setting.privacy, .config = &setting.config};
  JsonObject *metadata = json_tokener_parse("{\"tool_call_id\":\"call_" SECRET "\",\"token\":1}");
  JsonObject *made = json_tokener_parse(payload);
  capture_event(&capture, type, &metadata, &made);
  g_autofree char *facts = json_text(metadata);
  g_autofree char *got = json_text(made);
  g_assert_cmpstr(facts, ==, "{\"tool_call_id\":\"call_" M "\",\"token\":1}");
  g_assert_cmpstr(got, ==, wanted);
  json_object_put(metadata);
  json_object_put(made);
  privacy_free(setting.privacy);
}

static void test_full(void) {
  check("{}", "tool_call_started", "{\"arguments\":{\"command\":\"ls\",\"timeout\":5}}",
        "{\"arguments\":{\"command\":\"ls\",\"timeout\":5}}");
  check("{}", "tool_call_started", "{\"arguments\":{\"command\":\"echo " SECRET "\"}}",
        "{\"arguments\":{\"command\":\"echo " M "\"},\"capture\":\"redacted\"}");
  check("{}", "tool_call_started", "{\"arguments\":{\"command\":\"TOKEN=x ls\"}}",
        "{\"arguments\":{\"command\":\"TOKEN=" M " ls\"},\"capture\":\"redacted\"}");
  check("{}", "sandbox_exec_started", "{\"command\":[\"sh\",\"-c\",\"TOKEN=x ls\"]}",
        "{\"command\":[\"sh\",\"-c\",\"TOKEN=" M " ls\"],\"capture\":\"redacted\"}");
  check("{}", "sandbox_exec_completed", "{\"stdout\":\"TOKEN=x\",\"stderr\":\"a@b.de\"}",
        "{\"stdout\":\"TOKEN=x\",\"stderr\":\"[REDACTED_EMAIL]\",\"capture\":\"redacted\"}");
  check("{}", "any_other", "{\"deep\":{\"Cookie\":\"c\"}}",
        "{\"deep\":{\"Cookie\":\"[REDACTED]\"},\"capture\":\"redacted\"}");
}

static void test_default(void) {
  static const char DEFAULT[] = "{\"capture\": \"default\"}";
  check(DEFAULT, "tool_call_started", "{\"arguments\":{\"command\":\"ls\",\"timeout\":5}}",
        "{\"arguments\":{\"command\":\"[REDACTED]\",\"timeout\":\"[REDACTED]\"},\"capture\":"
        "\"redacted\"}");
  check(DEFAULT, "sandbox_exec_started", "{\"command\":[\"sh\",\"-c\",\"ls\"]}",
        "{\"capture\":\"not_recorded\"}");
  check(DEFAULT, "sandbox_exec_failed",
        "{\"command\":[\"sh\"],\"exit_code\":3,\"stdout\":\"a\",\"stderr\":\"b\"}",
        "{\"exit_code\":3,\"stdout\":\"a\",\"stderr\":\"b\"}");
  check(DEFAULT, "approval_request_created",
        "{\"command\":{\"name\":\"sh\",\"summary\":\"ls\\nrm x\",\"opaque_reasons\":[]}}",
        "{\"command\":{\"name\":\"sh\",\"commands\":2},\"capture\":\"redacted\"}");
  check(
      DEFAULT, "tool_call_completed",
      "{\"observation\":{\"args\":{\"command\":\"ls\"},\"status\":\"awaiting_approval\","
      "\"approvals\":"
      "[{\"arguments\":{\"command\":\"ls\"},\"command\":{\"summary\":\"ls\"}}]}}",
      "{\"observation\":{\"args\":{\"command\":\"[REDACTED]\"},\"status\":\"awaiting_approval\","
      "\"approvals\":[{\"arguments\":{\"command\":\"[REDACTED]\"},\"command\":{\"commands\":1}}]},"
      "\"capture\":\"redacted\"}");
}

static void test_results(void) {
  static const char NONE[] = "{\"record_tool_results\": false}";
  check(NONE, "sandbox_exec_completed",
        "{\"command\":[\"sh\"],\"exit_code\":0,\"stdout\":\"a\",\"stderr\":\"b\"}",
        "{\"command\":[\"sh\"],\"exit_code\":0,\"capture\":\"not_recorded\"}");
  check(NONE, "tool_call_completed", "{\"observation\":{\"data\":{\"exit_code\":0}}}",
        "{\"observation\":{\"data\":{\"exit_code\":0}},\"capture\":\"not_recorded\"}");
  /* A call that was denied, or was never a call, has no data. */
  check(NONE, "tool_call_completed", "{\"observation\":{\"data\":null,\"message\":\"no\"}}",
        "{\"observation\":{\"data\":null,\"message\":\"no\"},\"capture\":\"not_recorded\"}");
}

static void test_large(void) {
  static const char SMALL[] = "{\"max_payload_bytes\": 30}";
  check(SMALL, "any", "{\"a\":\"0123456789012345\"}", "{\"a\":\"0123456789012345\"}");
  check(SMALL, "any", "{\"a\":\"0123456789012345678901234\"}",
        "{\"bytes\":33,\"sha256\":"
        "\"64477b3143a48ae44ee9215caf7e5d4c36ea3712aa9d04a8da8e7cfc165fdd95\","
        "\"capture\":\"truncated\"}");
  check("{\"record_tool_results\": false}", "sandbox_exec_completed",
        "{\"stdout\":null,\"stdout_capture\":{\"sha256\":\"x\"},\"stderr\":\"unkept\",\"capture\":"
        "\"truncated\"}",
        "{\"capture\":\"truncated\"}");
  check("{}", "sandbox_exec_completed", "{\"stdout\":null,\"capture\":\"offloaded\"}",
        "{\"stdout\":null,\"capture\":\"offloaded\"}");
}

/* Nothing that the caller still holds is in an event. */
static void test_nothing_is_shared(void) {
  Setting setting = setting_of("{}");
  const Capture capture = {.privacy = setting.privacy, .config = &setting.config};
  JsonObject *shared = json_object_new_string("held by the caller too");
  JsonObject *metadata = NULL;
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "stdout", json_object_get(shared));
  capture_event(&capture, "sandbox_exec_completed", &metadata, &payload);
  g_assert_null(metadata);
  g_assert_cmpint(json_object_put(shared), ==, 1);
  g_assert_cmpstr(json_get_text(payload, "stdout"), ==, "held by the caller too");
  json_object_put(payload);
  privacy_free(setting.privacy);
}

int main(int argc, char **argv) {
  g_test_init(&argc, &argv, NULL);
  g_test_add_func("/run/capture/full", test_full);
  g_test_add_func("/run/capture/default", test_default);
  g_test_add_func("/run/capture/results", test_results);
  g_test_add_func("/run/capture/large", test_large);
  g_test_add_func("/run/capture/nothing-is-shared", test_nothing_is_shared);
  return g_test_run();
}
