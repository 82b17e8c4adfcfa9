/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trajectory-text.c: a trajectory for people's eyes. What is printed was written by an agent, its
 * commands and their output, so nothing of it may act on a terminal or look like a line of ours.
 */
#include <string.h>

#include "base/repr.h"
#include "record/trajectory-segments.h"

/* How much of a command's output is shown. */
#define SHOWN_LINES 20
#define SHOWN_BYTES 2000

/* ---- Harmless text --------------------------------------------------------------------------- */

/* Whether a character is seen for what it is: no control, no direction mark, no zero width, no
 * line end. */
static gboolean is_plain(gunichar c) {
  if (c < 0x80) {
    return c >= 0x20 && c != 0x7f;
  }
  switch (g_unichar_type(c)) {
  case G_UNICODE_CONTROL:
  case G_UNICODE_FORMAT:
  case G_UNICODE_LINE_SEPARATOR:
  case G_UNICODE_PARAGRAPH_SEPARATOR:
  case G_UNICODE_PRIVATE_USE:
  case G_UNICODE_SURROGATE:
  case G_UNICODE_UNASSIGNED:
    return FALSE;
  default:
    /* Letters and marks that are nothing to see: joiners and fillers. */
    return c != 0x034f && c != 0x115f && c != 0x1160 && c != 0x17b4 && c != 0x17b5 && c != 0x3164 &&
           c != 0xffa0;
  }
}

static void append_escape(GString *out, gunichar c) {
  if (c < 0x100) {
    g_string_append_printf(out, "\\x%02x", c);
  } else {
    g_string_append_printf(out, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
  }
}

/* Appends length bytes as one line, or as a part of one. */
static void append_clean(GString *out, const char *text, gsize length) {
  const char *end = text + length;
  while (text < end) {
    gunichar c = g_utf8_get_char_validated(text, end - text);
    if (c == (gunichar)-1 || c == (gunichar)-2) {
      append_escape(out, (guchar)*text++);
      continue;
    }
    text += *text ? g_utf8_skip[(guchar)*text] : 1;
    if (is_plain(c)) {
      g_string_append_unichar(out, c);
    } else {
      append_escape(out, c);
    }
  }
}

/* A JSON value within a line: text as it is, null as "-", anything else as repr prints it. */
static void append_value(GString *out, JsonObject *value) {
  if (!value) {
    g_string_append_c(out, '-');
  } else if (json_object_is_type(value, json_type_string)) {
    append_clean(out, json_object_get_string(value), (gsize)json_object_get_string_len(value));
  } else {
    g_autofree char *text = repr_json(value);
    append_clean(out, text, strlen(text));
  }
}

static void append_repr(GString *out, JsonObject *value) {
  g_autofree char *text = repr_json(value);
  append_clean(out, text, strlen(text));
}

/* Milliseconds with three decimals; None where unknown, as the other values of the line print
 * it. */
static void append_duration(GString *out, JsonObject *value) {
  if (json_object_is_type(value, json_type_double) || json_object_is_type(value, json_type_int)) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(digits, sizeof digits, "%.3f", json_object_get_double(value));
    g_string_append(out, digits);
  } else {
    append_repr(out, value);
  }
}

static gsize count_of(JsonObject *array) {
  return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* ---- The document's lines -------------------------------------------------------------------- */

static void summarize_execution(GString *out, JsonObject *execution) {
  const char *provider = json_get_text(execution, "sandbox_provider");
  g_string_append(out, "ran: ");
  append_repr(out, json_get(execution, "command"));
  g_string_append(out, " | exit ");
  append_repr(out, json_get(execution, "exit_code"));
  g_string_append(out, " | in ");
  if (provider) {
    append_clean(out, provider, strlen(provider));
  } else {
    g_string_append(out, "None");
  }
  g_string_append(out, " | ");
  append_duration(out, json_get(execution, "duration_ms"));
  g_string_append(out, " ms\n");
}

static void summarize_call(GString *out, JsonObject *call) {
  JsonObject *executions = json_get(call, "executions");
  for (gsize i = 0; i < count_of(executions); i++) {
    summarize_execution(out, json_object_array_get_idx(executions, i));
  }
  JsonObject *sync = json_get(call, "workspace_sync");
  if (sync) {
    g_string_append(out, "copied in: ");
    append_repr(out, json_get(sync, "copied_in"));
    g_string_append(out, " | copied back: ");
    append_repr(out, json_get(sync, "written"));
    g_string_append_c(out, '\n');
  }
}

static void summarize_steps(GString *out, JsonObject *trajectory) {
  JsonObject *steps = json_get(trajectory, "steps");
  for (gsize s = 0; s < count_of(steps); s++) {
    JsonObject *calls = json_get(json_object_array_get_idx(steps, s), "tool_calls");
    for (gsize i = 0; i < count_of(calls); i++) {
      summarize_call(out, json_object_array_get_idx(calls, i));
    }
  }
}

static char *end_with_totals(GString *take_out, JsonObject *totals) {
  g_string_append(take_out, "totals: ");
  append_repr(take_out, json_get(totals, "executions"));
  g_string_append_c(take_out, '\n');
  return g_string_free(take_out, FALSE);
}

char *trajectory_summary(JsonObject *trajectory) {
  GString *out = g_string_new(NULL);
  summarize_steps(out, trajectory);
  return end_with_totals(out, json_get(trajectory, "totals"));
}

char *trajectory_run_summary(JsonObject *story) {
  GString *out = g_string_new(NULL);
  JsonObject *segments = json_get(story, "segments");
  for (gsize i = 0; i < count_of(segments); i++) {
    summarize_steps(out, json_get(json_object_array_get_idx(segments, i), "trajectory"));
  }
  return end_with_totals(out, json_get(story, "totals"));
}

/* ---- The head -------------------------------------------------------------------------------- */

static void tell_fact(GString *out, const char *name, JsonObject *value) {
  if (value) {
    g_string_append_printf(out, "  %-9s ", name);
    append_value(out, value);
    g_string_append_c(out, '\n');
  }
}

static void tell_policy(GString *out, JsonObject *governance) {
  JsonObject *profile = json_get(governance, "profile");
  JsonObject *digest = json_get(governance, "policy_hash");
  if (!profile && !digest) {
    return;
  }
  g_string_append_printf(out, "  %-9s ", "policy");
  append_value(out, profile ? profile : digest);
  if (profile && digest) {
    g_string_append(out, " (");
    append_value(out, digest);
    g_string_append_c(out, ')');
  }
  g_string_append_c(out, '\n');
}

static void tell_harness(GString *out, JsonObject *trajectory) {
  JsonObject *harness = json_get(trajectory, "harness");
  tell_fact(out, "agent", json_get(trajectory, "agent_id"));
  tell_fact(out, "provider", json_get(harness, "provider"));
  tell_policy(out, json_get(harness, "governance"));
}

static void tell_warnings(GString *out, JsonObject *trajectory) {
  JsonObject *warnings = json_get(json_get(trajectory, "harness"), "security_warnings");
  for (gsize i = 0; i < count_of(warnings); i++) {
    tell_fact(out, "warning", json_get(json_object_array_get_idx(warnings, i), "message"));
  }
}

static void tell_times(GString *out, JsonObject *trajectory) {
  JsonObject *duration = json_get(json_get(trajectory, "totals"), "duration_ms");
  tell_fact(out, "started", json_get(trajectory, "started_at"));
  tell_fact(out, "ended", json_get(trajectory, "ended_at"));
  if (duration) {
    g_string_append_printf(out, "  %-9s ", "duration");
    append_duration(out, duration);
    g_string_append(out, " ms\n");
  }
}

static void tell_head(GString *out, JsonObject *trajectory) {
  g_string_append(out, "run ");
  append_value(out, json_get(trajectory, "run_id"));
  g_string_append_c(out, '\n');
  tell_fact(out, "status", json_get(trajectory, "status"));
  tell_fact(out, "reason", json_get(json_get(trajectory, "final"), "error"));
  tell_fact(out, "evidence", json_get(trajectory, "evidence_status"));
  tell_fact(out, "trace", json_get(trajectory, "trace_id"));
  tell_harness(out, trajectory);
  tell_times(out, trajectory);
  tell_warnings(out, trajectory);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void tell_decision(GString *out, JsonObject *decision) {
  JsonObject *approver = json_get(decision, "approved_by");
  JsonObject *denier = json_get(decision, "denied_by");
  g_string_append(out, "  ");
  append_value(out, json_get(decision, "effect"));
  g_string_append_c(out, ' ');
  append_value(out, json_get(decision, "capability"));
  g_string_append(out, ": ");
  append_value(out, json_get(decision, "reason_code"));
  if (count_of(json_get(decision, "matched_rule_ids")) > 0) {
    g_string_append_c(out, ' ');
    append_value(out, json_get(decision, "matched_rule_ids"));
  }
  if (approver || denier) {
    g_string_append(out, approver ? ", approved by " : ", denied by ");
    append_value(out, approver ? approver : denier);
  }
  g_string_append_c(out, '\n');
}

/* Each line of the text's beginning, behind a bar that no line of ours begins with. */
static void tell_block(GString *out, const char *text, gsize length) {
  gsize at = 0;
  for (int lines = 0; at < length && at < SHOWN_BYTES && lines < SHOWN_LINES; lines++) {
    const char *newline = memchr(text + at, '\n', length - at);
    gsize line = newline ? (gsize)(newline - text) - at : length - at;
    gsize shown = MIN(line, SHOWN_BYTES - at);
    while (shown < line && shown > 0 && ((guchar)text[at + shown] & 0xc0) == 0x80) {
      shown--; /* not in the middle of a character */
    }
    g_string_append(out, "      | ");
    append_clean(out, text + at, shown);
    g_string_append_c(out, '\n');
    at += shown + (newline && shown == line ? 1 : 0);
    if (shown < line) {
      break;
    }
  }
  if (at < length) {
    g_string_append_printf(out, "      (%" G_GSIZE_FORMAT " more bytes)\n", length - at);
  }
}

static void tell_output(GString *out, JsonObject *execution, const char *name) {
  g_autofree char *bytes_key = g_strconcat(name, "_bytes", NULL);
  g_autofree char *cut_key = g_strconcat(name, "_truncated", NULL);
  JsonObject *value = json_get(execution, name);
  if (!json_object_is_type(value, json_type_string) || json_object_get_string_len(value) == 0) {
    return;
  }
  gboolean cut = json_get_bool(execution, cut_key, FALSE);
  g_string_append_printf(out, "    %s, %" G_GINT64_FORMAT " bytes%s\n", name,
                         json_get_int(execution, bytes_key, 0), cut ? ", cut" : "");
  tell_block(out, json_object_get_string(value), (gsize)json_object_get_string_len(value));
}

/* The line of a plain sh -c, else the argv. */
static void tell_command(GString *out, JsonObject *command) {
  JsonObject *line = count_of(command) == 3 ? json_object_array_get_idx(command, 2) : NULL;
  g_auto(GStrv) words = json_get_strv(command);
  gboolean plain = line && g_strcmp0(words[0], "sh") == 0 && words[1] &&
                   strcmp(words[1], "-c") == 0 && json_object_is_type(line, json_type_string);
  g_string_append(out, "  $ ");
  if (count_of(command) == 0) {
    g_string_append(out, "(its words are not recorded)\n");
    return;
  }
  if (!plain) {
    append_repr(out, command);
    g_string_append_c(out, '\n');
    return;
  }
  const char *text = json_object_get_string(line);
  gsize length = (gsize)json_object_get_string_len(line);
  const char *newline = memchr(text, '\n', length);
  gsize first = newline ? (gsize)(newline - text) : length;
  gboolean many = newline || first > SHOWN_BYTES;
  append_clean(out, text, many ? 0 : first);
  g_string_append(out, many ? "sh -c\n" : "\n");
  if (many) {
    tell_block(out, text, length);
  }
}

/* What is there of a command whose end is not. */
static void tell_sealed(GString *out, JsonObject *execution, const char *key, const char *stream) {
  JsonObject *kept = json_get(execution, key);
  if (!json_get_bool(kept, "complete", TRUE)) {
    g_string_append_printf(out, "    %s, incomplete: ", stream);
    append_value(out, json_get(kept, "bytes"));
    g_string_append(out, " bytes were kept (--output prints them)\n");
  }
}

static void tell_execution(GString *out, JsonObject *execution) {
  tell_command(out, json_get(execution, "command"));
  g_string_append(out, "    ");
  if (!json_get(execution, "succeeded")) {
    g_string_append(out, "no end is recorded");
  } else {
    g_string_append(out, "exit ");
    append_value(out, json_get(execution, "exit_code"));
    g_string_append(out, json_get_bool(execution, "timed_out", FALSE) ? ", timed out" : "");
    g_string_append(out,
                    json_get_bool(execution, "session_terminated", FALSE) ? ", sandbox gone" : "");
  }
  g_string_append(out, " | in ");
  append_value(out, json_get(execution, "sandbox_provider"));
  if (json_get(execution, "duration_ms")) {
    g_string_append(out, " | ");
    append_duration(out, json_get(execution, "duration_ms"));
    g_string_append(out, " ms");
  }
  g_string_append_c(out, '\n');
  tell_output(out, execution, "stdout");
  tell_output(out, execution, "stderr");
  tell_sealed(out, execution, "stdout_kept", "stdout");
  tell_sealed(out, execution, "stderr_kept", "stderr");
}

static void tell_paths(GString *out, const char *what, JsonObject *paths) {
  for (gsize i = 0; i < count_of(paths); i++) {
    g_string_append_printf(out, "  %s ", what);
    append_value(out, json_object_array_get_idx(paths, i));
    g_string_append_c(out, '\n');
  }
}

static void tell_sync(GString *out, JsonObject *sync) {
  JsonObject *skipped = json_get(sync, "skipped");
  tell_paths(out, "copied in", json_get(sync, "copied_in"));
  tell_paths(out, "copied back", json_get(sync, "written"));
  for (gsize i = 0; i < count_of(skipped); i++) {
    JsonObject *skip = json_object_array_get_idx(skipped, i);
    g_string_append(out, "  skipped ");
    append_value(out, json_get(skip, "path"));
    g_string_append(out, ": ");
    append_value(out, json_get(skip, "reason"));
    g_string_append_c(out, '\n');
  }
}

static void tell_call(GString *out, JsonObject *call, gsize number) {
  JsonObject *governance = json_get(call, "governance");
  JsonObject *executions = json_get(call, "executions");
  JsonObject *outcome = json_get(call, "outcome");
  g_string_append_printf(out, "\ncall %" G_GSIZE_FORMAT ", ", number);
  append_value(out, json_get(call, "tool_name"));
  g_string_append(out, ": ");
  if (outcome) {
    append_value(out, outcome);
  } else {
    g_string_append(out, "no end is recorded");
  }
  JsonObject *message = json_get(json_get(call, "error"), "message");
  if (message) {
    g_string_append(out, ", ");
    append_value(out, message);
  }
  g_string_append_c(out, '\n');
  for (gsize i = 0; i < count_of(governance); i++) {
    tell_decision(out, json_object_array_get_idx(governance, i));
  }
  for (gsize i = 0; i < count_of(executions); i++) {
    tell_execution(out, json_object_array_get_idx(executions, i));
  }
  tell_sync(out, json_get(call, "workspace_sync"));
}

/* ---- Other events, totals -------------------------------------------------------------------- */

static void tell_event(GString *out, JsonObject *event) {
  JsonObject *metadata = json_get(event, "metadata");
  g_string_append(out, "  ");
  append_value(out, json_get(event, "type"));
  if (json_object_is_type(metadata, json_type_object)) {
    const char *separator = ": ";
    json_object_object_foreach(metadata, key, value) {
      /* The header stands at the top; the rest is one line of facts. */
      if (value && strcmp(key, "header") != 0) {
        g_string_append(out, separator);
        append_clean(out, key, strlen(key));
        g_string_append_c(out, ' ');
        append_value(out, value);
        separator = ", ";
      }
    }
  }
  g_string_append_c(out, '\n');
}

static void tell_events(GString *out, const char *title, JsonObject *events) {
  if (count_of(events) > 0) {
    g_string_append_printf(out, "\n%s\n", title);
  }
  for (gsize i = 0; i < count_of(events); i++) {
    tell_event(out, json_object_array_get_idx(events, i));
  }
}

static void tell_gaps(GString *out, JsonObject *gaps) {
  if (count_of(gaps) > 0) {
    g_string_append(out, "\ngaps\n");
  }
  for (gsize i = 0; i < count_of(gaps); i++) {
    JsonObject *gap = json_object_array_get_idx(gaps, i);
    g_string_append(out, "  ");
    append_value(out, json_get(gap, "type"));
    g_string_append_c(out, ' ');
    append_value(out, json_get(gap, "id"));
    g_string_append(out, ": ");
    append_value(out, json_get(gap, "state"));
    g_string_append_c(out, '\n');
  }
}

static void tell_body(GString *out, JsonObject *trajectory) {
  JsonObject *steps = json_get(trajectory, "steps");
  gsize number = 0;
  for (gsize s = 0; s < count_of(steps); s++) {
    JsonObject *step = json_object_array_get_idx(steps, s);
    JsonObject *calls = json_get(step, "tool_calls");
    for (gsize i = 0; i < count_of(calls); i++) {
      tell_call(out, json_object_array_get_idx(calls, i), ++number);
    }
    tell_events(out, "other events", json_get(step, "other_events"));
  }
  tell_events(out, "run", json_get(trajectory, "other_events"));
  tell_gaps(out, json_get(trajectory, "capture_gaps"));
}

char *trajectory_text(JsonObject *trajectory) {
  GString *out = g_string_new(NULL);
  tell_head(out, trajectory);
  tell_body(out, trajectory);
  g_string_append_c(out, '\n');
  return end_with_totals(out, json_get(trajectory, "totals"));
}

/* ---- Several segments ------------------------------------------------------------------------ */

static void tell_segment(GString *out, JsonObject *trajectory, gsize number) {
  g_string_append_printf(out, "\nsegment %" G_GSIZE_FORMAT ", ", number);
  append_value(out, json_get(trajectory, "trace_id"));
  g_string_append(out, ": ");
  append_value(out, json_get(trajectory, "status"));
  g_string_append_c(out, '\n');
  tell_fact(out, "reason", json_get(json_get(trajectory, "final"), "error"));
  tell_fact(out, "evidence", json_get(trajectory, "evidence_status"));
  tell_times(out, trajectory);
  tell_body(out, trajectory);
}

char *trajectory_run_text(JsonObject *story) {
  JsonObject *segments = json_get(story, "segments");
  gsize count = count_of(segments);
  JsonObject *last = json_get(json_object_array_get_idx(segments, count - 1), "trajectory");
  if (count == 1) {
    return trajectory_text(last);
  }
  GString *out = g_string_new("run ");
  append_value(out, json_get(story, "run_id"));
  g_string_append_c(out, '\n');
  tell_fact(out, "status", json_get(last, "status"));
  g_string_append_printf(out, "  %-9s %" G_GSIZE_FORMAT "\n", "segments", count);
  tell_harness(out, last);
  tell_warnings(out, last);
  for (gsize i = 0; i < count; i++) {
    tell_segment(out, json_get(json_object_array_get_idx(segments, i), "trajectory"), i + 1);
  }
  g_string_append_c(out, '\n');
  return end_with_totals(out, json_get(story, "totals"));
}
