/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trajectory-segments.h: a run that was resumed, told whole (behaviour 9.3) and cut into its segments. Each segment is
 * one trace: the first has the run's trace_id, each further one begins with an event run_resumed, which names its own.
 * What happens while nobody holds the run, such as a decision, belongs to the segment before. Pure.
 */
#ifndef SANDHOST_RECORD_TRAJECTORY_SEGMENTS_H
#define SANDHOST_RECORD_TRAJECTORY_SEGMENTS_H

#include "record/trajectory.h"

/* run as record_run returns it; borrowed, and parts of it are shared with the result. An array of runs of that kind, in
 * order and never empty, each with one segment's trace_id, status, times and events, ready for trajectory_new. Returns
 * owned. */
JsonObject *trajectory_segments(JsonObject *run);

/* One of them: "first", "last" (also NULL), a number from 1, or a trace id or a unique beginning of it, of at least 8
 * characters. NOT_FOUND "run {id} has no segment {which}; it has {n}". Returns owned. */
JsonObject *trajectory_segment(JsonObject *run, const char *which, GError **error);

/* {run_id, session_id, agent_name, status, attempt, previous_attempts, segments [{trace_id, status, trajectory,
 * trace_kept}], traces_missing, totals, tool_calls, approvals, budget_requests, usage}. life (record_life's members attempt
 * and approvals) is borrowed. A run is pruned as a whole, so no segment of one that is there is missing. Returns owned. */
JsonObject *trajectory_of_run(JsonObject *run, JsonObject *life);

/* trajectory_summary and trajectory_text of what trajectory_of_run returned: for one segment, the very same. Return
 * owned. */
char *trajectory_run_summary(JsonObject *story);
char *trajectory_run_text(JsonObject *story);

#endif
