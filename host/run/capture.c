/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c: what each type of event holds of what must not be recorded, and what is left of it then. */
#include "run/capture.h"

#include <string.h>

#include "base/digest.h"

#define VALUE_MARKER "[REDACTED]"

/* What became of a payload; the later word wins. */
typedef enum { AVAILABLE, OFFLOADED, REDACTED, NOT_RECORDED, TRUNCATED } State;
static const char *const STATES[] = {NULL, "offloaded", "redacted", "not_recorded", "truncated"};

/* One event; all of it is a copy already. */
typedef struct {
  const Capture *capture;
  JsonObject *payload;
  gboolean begins; /* it is the beginning of an execution */
  State state;
} Event;

static void note(Event *event, State state) {
  event->state = MAX(event->state, state);
}

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static gboolean redact_command(const Privacy *privacy, PrivacyBorder border, JsonObject *object,
                               const char *key) {
  const char *command = json_get_text(object, key);
  g_autofree char *other = command ? privacy_command(privacy, border, command) : NULL;
  if (other) {
    json_add_text(object, key, other);
  }
  return other != NULL;
}

JsonObject *capture_arguments(const Privacy *privacy, PrivacyBorder border, JsonObject *arguments,
                              gboolean *ret_changed) {
  JsonObject *copy = privacy_json(privacy, border, arguments, FALSE, ret_changed);
  if (redact_command(privacy, border, copy, "command")) {
    *ret_changed = TRUE;
  }
  return copy;
}

/* The names alone, or the values without what a command line gives away. */
static void shape_arguments(Event *event, JsonObject *holder, const char *key) {
  JsonObject *arguments = json_get(holder, key);
  if (!json_object_is_type(arguments, json_type_object)) {
    return;
  }
  if (event->capture->config->inputs) {
    if (redact_command(event->capture->privacy, PRIVACY_TELEMETRY, arguments, "command")) {
      note(event, REDACTED);
    }
    return;
  }
  JsonObject *names = json_object_new_object();
  json_object_object_foreach(arguments, name, value) {
    (void)value;
    json_add_text(names, name, VALUE_MARKER);
  }
  json_add_take(holder, key, names);
  note(event, REDACTED);
}

/* The argv of an execution: its name and how many words it has stand in the metadata. That it is missing is told once,
 * where the execution begins: at its end, the word is about the output. */
static void shape_argv(Event *event) {
  JsonObject *argv = json_get(event->payload, "command");
  if (!json_object_is_type(argv, json_type_array)) {
    return;
  }
  if (!event->capture->config->inputs) {
    json_object_object_del(event->payload, "command");
    note(event, event->begins ? NOT_RECORDED : AVAILABLE);
    return;
  }
  for (gsize i = 0; i < json_object_array_length(argv); i++) {
    const char *word = json_object_get_string(json_object_array_get_idx(argv, i));
    g_autofree char *other =
        privacy_command(event->capture->privacy, PRIVACY_TELEMETRY, word ? word : "");
    if (other) {
      json_object_array_put_idx(argv, i, json_from_bytes(other, strlen(other)));
      note(event, event->begins ? REDACTED : AVAILABLE);
    }
  }
}

/* The summary has a line for each command. */
static void shape_summary(Event *event, JsonObject *holder) {
  JsonObject *command = json_get(holder, "command");
  const char *summary = json_get_text(command, "summary");
  if (!summary) {
    return;
  }
  if (event->capture->config->inputs) {
    if (redact_command(event->capture->privacy, PRIVACY_TELEMETRY, command, "summary")) {
      note(event, REDACTED);
    }
    return;
  }
  gint64 lines = 1;
  for (const char *at = summary; *at; at++) {
    lines += *at == '\n' ? 1 : 0;
  }
  json_object_object_del(command, "summary");
  json_object_object_del(command, "opaque_reasons");
  json_add_int(command, "commands", lines);
  note(event, REDACTED);
}

/* ---- By type ----------------------------------------------------------------------------------------------------- */

static void shape_started(Event *event) {
  shape_arguments(event, event->payload, "arguments");
}

static void shape_approval(Event *event) {
  shape_summary(event, event->payload);
}

static void shape_begun(Event *event) {
  event->begins = TRUE;
  shape_argv(event);
}

static void shape_execution(Event *event) {
  shape_argv(event);
  static const char *const OUTPUT[] = {"stdout", "stderr", "stdout_capture", "stderr_capture"};
  /* A text that is too long is null: its marker goes, too. */
  if (!event->capture->config->results &&
      json_object_object_get_ex(event->payload, "stdout", NULL)) {
    for (gsize i = 0; i < G_N_ELEMENTS(OUTPUT); i++) {
      json_object_object_del(event->payload, OUTPUT[i]);
    }
    note(event, NOT_RECORDED);
  }
}

static void shape_completed(Event *event) {
  JsonObject *observation = json_get(event->payload, "observation");
  JsonObject *approvals = json_get(observation, "approvals");
  shape_arguments(event, observation, "args");
  for (gsize i = 0; approvals && i < json_object_array_length(approvals); i++) {
    JsonObject *approval = json_object_array_get_idx(approvals, i);
    shape_arguments(event, approval, "arguments");
    shape_summary(event, approval);
  }
  if (!event->capture->config->results) { /* what is left are facts */
    JsonObject *data = json_get(observation, "data");
    if (data) { /* a call that was denied has none */
      json_object_object_del(data, "workspace_files");
    }
    note(event, NOT_RECORDED);
  }
}

static const struct {
  const char *type;
  void (*shape)(Event *event);
} SHAPES[] = {
    {"tool_call_started", shape_started},     {"tool_call_completed", shape_completed},
    {"sandbox_exec_started", shape_begun},    {"sandbox_exec_completed", shape_execution},
    {"sandbox_exec_failed", shape_execution}, {"approval_request_created", shape_approval},
};

/* ---- What begins a run again -------------------------------------------------------------------------------------- */

/* A command that is not recorded is not kept here either: what waits is kept whole with its approval. */
static void shape_command(const Capture *capture, JsonObject *request, const char *command) {
  g_autofree char *clean = capture->config->inputs
                               ? privacy_command(capture->privacy, PRIVACY_TELEMETRY, command)
                               : g_strdup(VALUE_MARKER);
  if (clean) {
    json_add_bool(request, "redacted", TRUE);
  }
  json_add_text(request, "command", clean ? clean : command);
}

JsonObject *capture_request(const Capture *capture, JsonObject *request) {
  /* The program that is asked about approvers gets just the words that are configured. */
  static const char *const OWN[] = {"command", "approver_check", NULL};
  g_autoptr(JsonObject) rest = json_object_new_object();
  gboolean changed = FALSE;
  json_object_object_foreach(request, key, value) {
    if (!g_strv_contains(OWN, key)) {
      json_add_take(rest, key, json_object_get(value));
    }
  }
  JsonObject *kept = privacy_json(capture->privacy, PRIVACY_NOWHERE, rest, FALSE, &changed);
  if (changed) {
    json_add_bool(kept, "withheld", TRUE);
  }
  const char *command = json_get_text(request, "command");
  if (command) {
    shape_command(capture, kept, command);
  }
  JsonObject *check = json_get(request, "approver_check");
  if (check) {
    json_add_take(kept, "approver_check", json_object_get(check));
  }
  return kept;
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

/* More than the configuration lets a payload have. */
static void cut_payload(Event *event) {
  guint64 most = event->capture->config->max_payload_bytes;
  if (most == 0) {
    return;
  }
  g_autofree char *text = json_text(event->payload);
  gsize length = strlen(text);
  if (length <= most) {
    return;
  }
  g_autofree char *digest = digest_hex(text, length);
  json_object_put(event->payload);
  event->payload = json_object_new_object();
  json_add_int(event->payload, "bytes", (gint64)length);
  json_add_text(event->payload, "sha256", digest);
  note(event, TRUNCATED);
}

static void shape_payload(Event *event, const char *type) {
  const char *told = json_get_text(event->payload, "capture");
  for (guint i = 1; told && i < G_N_ELEMENTS(STATES); i++) {
    if (strcmp(told, STATES[i]) == 0) {
      note(event, (State)i);
    }
  }
  for (gsize i = 0; i < G_N_ELEMENTS(SHAPES); i++) {
    if (strcmp(SHAPES[i].type, type) == 0) {
      SHAPES[i].shape(event);
    }
  }
  cut_payload(event);
  if (event->state != AVAILABLE) {
    json_add_text(event->payload, "capture", STATES[event->state]);
  }
}

static JsonObject *copy_of(const Capture *capture, JsonObject *take_value, gboolean *ret_changed) {
  JsonObject *copy = NULL;
  if (take_value) {
    copy = privacy_json(capture->privacy, PRIVACY_TELEMETRY, take_value, TRUE, ret_changed);
    json_object_put(take_value);
  }
  return copy;
}

void capture_event(const Capture *capture, const char *type, JsonObject **metadata,
                   JsonObject **payload) {
  gboolean changed = FALSE;
  *metadata = copy_of(capture, *metadata, NULL);
  Event event = {.capture = capture, .payload = copy_of(capture, *payload, &changed)};
  if (event.payload) {
    note(&event, changed ? REDACTED : AVAILABLE);
    shape_payload(&event, type);
  }
  *payload = event.payload;
}

gboolean capture_keeps(const Capture *capture, JsonObject *arguments) {
  JsonObject *metadata = NULL;
  JsonObject *payload = json_object_new_object();
  json_add_take(payload, "arguments", json_object_get(arguments));
  capture_event(capture, "tool_call_started", &metadata, &payload);
  gboolean whole = json_get(payload, "capture") == NULL;
  json_object_put(payload);
  return whole;
}
