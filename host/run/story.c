/* SPDX-License-Identifier: Apache-2.0 */
/* story.c: the record's events and approvals joined to what a door tells of a run. */
#include "run/story.h"

#include "governance/approvals.h"
#include "record/approvals.h"
#include "record/record-output.h"
#include "record/trajectory-segments.h"

static JsonObject *tell(Record *record, const char *run_id, gboolean texts, GError **error) {
  g_autoptr(JsonObject) run = record_run(record, run_id, error);
  if (!run || (texts && !record_restore_outputs(record, run, error))) {
    return NULL;
  }
  g_autoptr(JsonObject) life = record_life(record, run_id, error);
  if (!life) {
    return NULL;
  }
  json_add_take(life, "approvals", approvals_told(json_get(life, "approvals")));
  return trajectory_of_run(run, life);
}

JsonObject *story_of_run(Record *record, const char *run_id, GError **error) {
  return tell(record, run_id, TRUE, error);
}

JsonObject *story_outline(Record *record, const char *run_id, GError **error) {
  return tell(record, run_id, FALSE, error);
}

JsonObject *story_of_segment(Record *record, const char *run_id, const char *which,
                             GError **error) {
  g_autoptr(JsonObject) run = record_run(record, run_id, error);
  g_autoptr(JsonObject) segment = run ? trajectory_segment(run, which, error) : NULL;
  return segment && record_restore_outputs(record, segment, error) ? trajectory_new(segment) : NULL;
}

gboolean story_names_trace(const char *wanted) {
  return g_str_has_prefix(wanted, "trace_");
}

char *story_find(Record *record, const char *wanted, GError **error) {
  return story_names_trace(wanted) ? record_run_of_trace(record, wanted, error)
                                   : record_resolve(record, wanted, error);
}
