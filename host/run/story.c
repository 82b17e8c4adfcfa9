/* SPDX-License-Identifier: Apache-2.0 */
/* story.c: the record's events and approvals joined to what a door tells of a run. */
#include "run/story.h"

#include "governance/approvals.h"
#include "record/approvals.h"
#include "record/trajectory-segments.h"

JsonObject *story_of_run(Record *record, const char *run_id, GError **error) {
  g_autoptr(JsonObject) run = record_run(record, run_id, error);
  g_autoptr(JsonObject) life = run ? record_life(record, run_id, error) : NULL;
  if (!life) {
    return NULL;
  }
  json_add_take(life, "approvals", approvals_told(json_get(life, "approvals")));
  return trajectory_of_run(run, life);
}

JsonObject *story_of_segment(Record *record, const char *run_id, const char *which,
                             GError **error) {
  g_autoptr(JsonObject) run = record_run(record, run_id, error);
  g_autoptr(JsonObject) segment = run ? trajectory_segment(run, which, error) : NULL;
  return segment ? trajectory_new(segment) : NULL;
}

gboolean story_names_trace(const char *wanted) {
  return g_str_has_prefix(wanted, "trace_");
}

char *story_find(Record *record, const char *wanted, GError **error) {
  return story_names_trace(wanted) ? record_run_of_trace(record, wanted, error)
                                   : record_resolve(record, wanted, error);
}
