/* SPDX-License-Identifier: Apache-2.0 */
/* observation.c: the texts and the JSON of a call's result. */
#include "run/observation.h"

static JsonObject *observation(JsonObject *args, const char *status, JsonObject *take_data,
                               const char *message) {
  JsonObject *object = json_object_new_object();
  json_add_text(object, "tool_name", "execute");
  json_add_take(object, "args", json_object_get(args));
  json_add_text(object, "status", status);
  json_add_take(object, "data", take_data);
  json_add_text(object, "message", message);
  return object;
}

JsonObject *observation_error(JsonObject *args, const char *message, const char *code) {
  JsonObject *object = observation(args, "error", NULL, message);
  if (code) {
    json_add_text(object, "governance_error_code", code);
  }
  return object;
}

/* More names than this are told by their number alone. */
#define MOST_NAMES 10000u

static JsonObject *paths(const GPtrArray *names) {
  JsonObject *array = json_object_new_array();
  for (guint i = 0; i < MIN(names->len, MOST_NAMES); i++) {
    json_object_array_add(array, json_object_new_string(g_ptr_array_index(names, i)));
  }
  if (names->len > MOST_NAMES) {
    g_autofree char *more = g_strdup_printf("(and %u more)", names->len - MOST_NAMES);
    json_object_array_add(array, json_object_new_string(more));
  }
  return array;
}

JsonObject *observation_skips(const BridgeReport *report) {
  JsonObject *array = json_object_new_array();
  for (guint i = 0; i < report->skipped->len; i++) {
    const BridgeSkip *skip = g_ptr_array_index(report->skipped, i);
    JsonObject *object = json_object_new_object();
    json_add_text(object, "path", skip->path);
    json_add_text(object, "reason", skip->reason);
    json_object_array_add(array, object);
  }
  return array;
}

JsonObject *observation_sync(const BridgeReport *report) {
  JsonObject *sync = json_object_new_object();
  json_add_take(sync, "copied_in", paths(report->copied_in));
  json_add_take(sync, "written", paths(report->written));
  json_add_take(sync, "skipped", observation_skips(report));
  if (report->redacted->len > 0) {
    json_add_take(sync, "redacted", paths(report->redacted));
  }
  return sync;
}

/* Only what is worth a model's attention: files that came back, and what was left out. */
static void add_workspace_files(JsonObject *data, const BridgeReport *report) {
  if (!report || (report->written->len == 0 && report->skipped->len == 0)) {
    return;
  }
  JsonObject *files = json_object_new_object();
  json_add_take(files, "written", paths(report->written));
  json_add_take(files, "skipped", observation_skips(report));
  if (report->redacted->len > 0) { /* what the model finds there is not what its command wrote */
    json_add_take(files, "redacted", paths(report->redacted));
  }
  json_add_take(data, "workspace_files", files);
}

static char *message_for(const ObservationFacts *facts) {
  if (facts->lost) {
    return g_strdup_printf(
        "The sandbox was lost during this command (%s). Files created in it are gone; the "
        "next command runs in a fresh sandbox with the workspace files copied in again.",
        facts->lost);
  }
  if (facts->timed_out) {
    return g_strdup_printf("Command timed out after %" G_GINT64_FORMAT "s", facts->limit);
  }
  if (facts->result->exit_code == 0) {
    return NULL;
  }
  return g_strdup_printf("Command exited with %d%s", facts->result->exit_code,
                         facts->result->ended == SANDHOST_ENDED_MEMORY
                             ? " (killed: the sandbox's memory was used up)"
                             : "");
}

JsonObject *observation_result(JsonObject *args, const ObservationFacts *facts) {
  JsonObject *data = json_object_new_object();
  json_add_int(data, "exit_code", facts->result->exit_code);
  json_add_take(data, "stdout", json_object_get(facts->stdout_text));
  json_add_take(data, "stderr", json_object_get(facts->stderr_text));
  json_add_bool(data, "timed_out", facts->timed_out);
  json_add_text(data, "execution_surface", facts->isolated ? "sandbox" : "host");
  if (facts->stdout_cut) {
    json_add_bool(data, "stdout_truncated", TRUE);
  }
  if (facts->stderr_cut) {
    json_add_bool(data, "stderr_truncated", TRUE);
  }
  if (facts->result->ended == SANDHOST_ENDED_MEMORY) {
    json_add_text(data, "killed_by", "memory");
  }
  if (facts->result->ended == SANDHOST_ENDED_SIGNAL) {
    json_add_int(data, "signal", facts->result->signal);
  }
  add_workspace_files(data, facts->report);
  if (facts->lost) {
    json_add_bool(data, "sandbox_lost", TRUE);
  }

  g_autofree char *message = message_for(facts);
  return observation(args, message ? "error" : "success", data, message);
}
