/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trajectory.h: the events of a run told as the trajectory of behaviour 9.2, and as text for
 * people. Pure.
 *
 * What the events must hold, for this to find it. Whoever writes events writes these. M: metadata;
 * P: payload. Every event of a call has M tool_call_id. What is not named here is kept too: more
 * members of M stand at the end of the entry that they belong to, other types of events in
 * other_events.
 *
 * run_started            M header {agent_name, session_id, sandhost_version, provider,
 *                        execution_surface, request, tags, limits, features, tools, governance
 *                        {enabled, profile, policy_hash}, privacy, security_warnings,
 *                        fingerprints}: what is missing is null. record_begin writes it.
 * tool_call_started      M tool_name, provider, server; P raw_arguments (text), arguments
 *                        With M resumed true: a later segment goes on with a call, and its end
 *                        there counts.
 * policy_request_created M capability; P request (with request_id)
 * policy_decision_allow, _ask, _deny
 *                        M effect, capability, reason_code, matched_rule_ids, approval_id,
 *                        approved_by, denied_by; P decision (with request_id). Comes after its
 *                        request, and belongs to the one with its request_id, else to the first
 *                        undecided one with its capability.
 * sandbox_session_created
 *                        M sandbox_session_id, sandbox_provider, sandbox_ref, image, network,
 *                        working_dir, network_isolation
 * sandbox_exec_started   M sandbox_session_id, sandbox_provider, execution_id, command_name, argc,
 *                        timeout_seconds, purpose ("command", or "workspace_sync": the runtime's
 *                        own, in no execution and no total), decision_id, matched_rule_ids; P
 *                        command (argv)
 * sandbox_exec_completed (exit 0), sandbox_exec_failed
 *                        M the same and exit_code, timed_out, duration_ms, stdout_bytes,
 *                        stderr_bytes, stdout_truncated, stderr_truncated, session_terminated,
 *                        ended, signal, error, and stdout_kept, stderr_kept {bytes, sha256} where
 *                        the text does not hold it whole (record-output.h); P command, stdout,
 *                        stderr; in the place of one that stands there alone, until record_restore_outputs, null and
 *                        stdout_capture or stderr_capture
 * sandbox_output_sealed  M execution_id, and stdout_kept, stderr_kept {bytes, chunks, sha256, complete false,
 *                        damaged (why)}: of a command whose end is not on record (record-seal.h)
 * sandbox_workspace_sync M sandbox_session_id, copied_in, written, skipped [{path, reason}]; once
 *                        for a call
 * sandbox_session_closed M sandbox_session_id, sandbox_ref, commands, duration_ms, lost, error; lost_reason of one
 *                        that is lost, where the provider told it
 * tool_call_completed    M outcome, error (text, {type, message} or null), rejection_reason;
 *                        P observation, result (the observation's data where missing)
 * budget_warning, budget_exhausted, budget_granted, budget_denied,
 * budget_request_closed  M scope, meter, window, key; of a request: request_id, limit, used, needed,
 *                        shortfall, then status, amount, approver, note: budget_requests tells them
 * run_ended              M status, reason, termination_reason. record_end writes it.
 * run_resumed            M trace_id, cause, trigger, attempt: begins a segment. record_take writes it.
 * run_interrupted        M cause. record_open writes it for a run whose process is gone.
 */
#ifndef SANDHOST_RECORD_TRAJECTORY_H
#define SANDHOST_RECORD_TRAJECTORY_H

#include "base/json.h"

/* run as record_run returns it, of one segment (trajectory-segments.h), which adds first_seq (the
 * number of its first event), resumed and other_trace_ids; borrowed, and parts of it are shared with
 * the result, so neither may be changed afterwards. Returns owned.
 *
 * Every event is in it exactly once: the ids "event_{seq}" stand in event_id and
 * request_event_id of governance entries, in event_ids of calls, executions and workspace_sync,
 * and in event_id of other_events. The run's own events (run_..., budget_...), and all
 * that comes after its end, are in other_events of the trajectory, all else in its one step. A run that was cut off anywhere has
 * evidence_status "partial", and capture_gaps name what has no end. */
JsonObject *trajectory_new(JsonObject *run);

/* The three kinds of lines that the first source document prints: "ran: ... | exit 0 | in
 * bubblewrap | 12.345 ms", "copied in: [...] | copied back: [...]", "totals: {...}". One line
 * each, in order, each ended by a newline. Returns owned. */
char *trajectory_summary(JsonObject *trajectory);

/* Everything, for a person: header, decisions, commands with their output's beginning, sync,
 * totals. No control characters but newline reach a terminal: others are shown as \xNN, and
 * characters that are not seen or turn the direction of text as \uNNNN. Returns owned. */
char *trajectory_text(JsonObject *trajectory);

#endif
