/* SPDX-License-Identifier: Apache-2.0 */
/* trajectory-segments.c: the events of a run, cut where it was resumed. */
#include "record/trajectory-segments.h"

#include <string.h>

#include "base/error.h"

/* Ids shorter than this are too likely to be a slip. */
#define PREFIX_MIN 8

static JsonObject *segment_new(JsonObject *run, JsonObject *trace_id, JsonObject *began,
                               gint64 first_seq) {
  JsonObject *segment = json_object_new_object();
  json_add_take(segment, "run_id", json_object_get(json_get(run, "run_id")));
  json_add_take(segment, "trace_id", json_object_get(trace_id));
  json_add_take(segment, "created_at", json_object_get(began));
  json_add_take(segment, "header", json_object_get(json_get(run, "header")));
  json_add_take(segment, "events", json_object_new_array());
  json_add_int(segment, "first_seq", first_seq);
  json_add_bool(segment, "resumed", first_seq > 1);
  return segment;
}

/* How a segment ended that another one followed. One that has no end was cut off. */
static void end_by_events(JsonObject *segment) {
  JsonObject *events = json_get(segment, "events");
  const char *status = "interrupted";
  JsonObject *at = NULL;
  for (gsize i = 0; i < json_object_array_length(events); i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    const char *type = json_get_text(event, "type");
    if (g_strcmp0(type, "run_ended") == 0) {
      const char *told = json_get_text(json_get(event, "metadata"), "status");
      status = told ? told : "failed";
      at = json_get(event, "at");
    } else if (g_strcmp0(type, "run_interrupted") == 0) {
      status = "interrupted";
      at = json_get(event, "at");
    }
  }
  json_add_text(segment, "status", status);
  json_add_take(segment, "ended_at", json_object_get(at));
}

static void add_other_traces(JsonObject *segments, gsize index) {
  JsonObject *others = json_object_new_array();
  for (gsize i = 0; i < json_object_array_length(segments); i++) {
    if (i != index) {
      JsonObject *other = json_object_array_get_idx(segments, i);
      json_object_array_add(others, json_object_get(json_get(other, "trace_id")));
    }
  }
  json_add_take(json_object_array_get_idx(segments, index), "other_trace_ids", others);
}

static void cut(JsonObject *run, JsonObject *segments) {
  JsonObject *events = json_get(run, "events");
  gsize count = json_object_is_type(events, json_type_array) ? json_object_array_length(events) : 0;
  JsonObject *segment = segment_new(run, json_get(run, "trace_id"), json_get(run, "created_at"), 1);
  gint64 next = 1;
  json_object_array_add(segments, segment);
  for (gsize i = 0; i < count; i++) {
    JsonObject *event = json_object_array_get_idx(events, i);
    gint64 seq = json_get_int(event, "seq", next);
    if (g_strcmp0(json_get_text(event, "type"), "run_resumed") == 0) {
      JsonObject *trace_id = json_get(json_get(event, "metadata"), "trace_id");
      segment = segment_new(run, trace_id, json_get(event, "at"), MAX(next, 2));
      json_object_array_add(segments, segment);
    }
    json_object_array_add(json_get(segment, "events"), json_object_get(event));
    next = seq < G_MAXINT64 ? seq + 1 : seq;
  }
}

JsonObject *trajectory_segments(JsonObject *run) {
  JsonObject *segments = json_object_new_array();
  cut(run, segments);
  gsize count = json_object_array_length(segments);
  for (gsize i = 0; i + 1 < count; i++) {
    end_by_events(json_object_array_get_idx(segments, i));
  }
  JsonObject *last = json_object_array_get_idx(segments, count - 1);
  json_add_take(last, "status", json_object_get(json_get(run, "status")));
  json_add_take(last, "ended_at", json_object_get(json_get(run, "ended_at")));
  for (gsize i = 0; i < count; i++) {
    add_other_traces(segments, i);
  }
  return segments;
}

/* ---- One of them ------------------------------------------------------------------------------------------------- */

/* The index of the only one whose trace begins so; count: none, or several. */
static gsize find_trace(JsonObject *segments, const char *beginning) {
  gsize count = json_object_array_length(segments);
  gsize found = count;
  for (gsize i = 0; i < count; i++) {
    const char *trace_id = json_get_text(json_object_array_get_idx(segments, i), "trace_id");
    if (trace_id && strcmp(trace_id, beginning) == 0) {
      return i;
    }
    if (trace_id && strlen(beginning) >= PREFIX_MIN && g_str_has_prefix(trace_id, beginning)) {
      if (found < count) {
        return count;
      }
      found = i;
    }
  }
  return found;
}

static gsize find_segment(JsonObject *segments, const char *which) {
  gsize count = json_object_array_length(segments);
  guint64 number = 0;
  if (!which || strcmp(which, "last") == 0) {
    return count - 1;
  }
  if (strcmp(which, "first") == 0) {
    return 0;
  }
  if (g_ascii_string_to_unsigned(which, 10, 1, count, &number, NULL)) {
    return (gsize)number - 1;
  }
  return find_trace(segments, which);
}

JsonObject *trajectory_segment(JsonObject *run, const char *which, GError **error) {
  g_autoptr(JsonObject) segments = trajectory_segments(run);
  gsize count = json_object_array_length(segments);
  gsize index = find_segment(segments, which);
  if (index >= count) {
    g_set_error(error, SANDHOST_ERROR, SANDHOST_ERROR_NOT_FOUND,
                "run %s has no segment %s; it has %" G_GSIZE_FORMAT, json_get_text(run, "run_id"),
                which, count);
    return NULL;
  }
  return json_object_get(json_object_array_get_idx(segments, index));
}
