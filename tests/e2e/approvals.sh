# SPDX-License-Identifier: Apache-2.0
# A run that meets an ask waits, is decided by somebody else, and goes on in another process.
. "$(dirname "$0")/lib.bash"

mkdir -p workspace/files
sql() { sqlite3 -cmd '.timeout 30000' "$SANDHOST_STATE_DIR/record.db" "$1"; }
config() { # FILE POLICY [MANIFEST]
  cat >"$1" <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "policy": {"mode": "interactive", "rules": {$2}},
  "sandbox_manifest": {${3:-}}}}
JSON
}
files='{"rule_id": "files", "capability": "workspace.*"}, {"rule_id": "use", "capability": "sandbox.execute"}, {"rule_id": "list", "capability": "sandbox.workspace.sync"}'
asks='"ask": [{"rule_id": "commands", "capability": "process.exec", "reason": "Commands need a person."}]'
config commands.json "\"allow\": [$files], $asks"
show() { out=$("$sandhost" show --json "$@"); }
waiting() { # sets id and approval from the JSON of a paused run
  want_exit 123
  want_json awaiting_approval status
  id=$(json run_id)
  approval=$(json approvals 0 approval_id)
}
begin() { # COMMAND, with commands.json
  run "$sandhost" exec --config "${2:-commands.json}" --json -- "$1"
  waiting
}
approve() {
  run "$sandhost" approve "$id" "$approval" --approver alice "$@"
  want_exit 0
  want_out "$approval approved"
}

# ---- The first source document's network approval, with its decisions, rule ids and reasons
cat >network.json <<'JSON'
{"agent_config": {"governance_config": {"profile": "interactive-dev", "sandbox_config": {"provider": "bubblewrap"},
  "sandbox_manifest": {"network_policy": {"default": "allow"}}}}}
JSON
run "$sandhost" exec --config network.json -- 'echo 200'
want_exit 123
want_out ''
want_in_err 'waiting on: sandbox.network.configure * | Turning the sandbox network on needs approval.'
run "$sandhost" exec --config network.json --json -- 'echo 200'
waiting
want_json null response
want_json null session_id
want_json sandbox.network.configure approvals 0 capability
want_json '{"path": null, "host": "*", "resource": null, "tool_name": null, "mcp_server": null}' approvals 0 target
want_json execute approvals 0 tool_name
want_json '{"command": "echo 200"}' approvals 0 arguments
want_json high approvals 0 risk_level
want_json 'Turning the sandbox network on needs approval.' approvals 0 reason
want_json null approvals 0 delegated_run_id
want_json null approvals 0 delegated_name
show "$id"
want_json suspended status
want_json awaiting_approval steps 0 tool_calls 0 outcome
want_json 0 totals executions sessions
approve
run "$sandhost" resume "$id"
want_exit 0
want_out 200
show "$id"
want_json completed status
want_json success steps 0 tool_calls 0 outcome
decisions=$(python3 -c '
import json, sys
for decision in json.loads(sys.argv[1])["steps"][0]["tool_calls"][0]["governance"]:
    print(decision["capability"], decision["effect"], decision["reason_code"], decision["approval_id"] == sys.argv[2], decision["approved_by"])' "$out" "$approval")
[ "$decisions" = "sandbox.execute allow matched_allow False None
sandbox.network.configure ask matched_ask True None
sandbox.network.configure allow approved True alice
process.exec allow matched_allow False None
sandbox.workspace.sync allow matched_allow False None" ] || fail "decisions: $decisions"
want_json '{"total": 1, "by_outcome": {"success": 1}}' totals tool_calls
want_json true steps 0 resumed

# ---- The whole run: a segment for each trace; the call once in the totals, by how it ended
trace=$(json trace_id)
first=$(json other_trace_ids_for_run 0)
show --whole "$id"
want_json completed status
want_json null session_id
want_json sandhost agent_name
want_json 2 attempt
want_json "$first" previous_attempts 0 trace_id
want_json awaiting_approval previous_attempts 0 status
want_json "$first" segments 0 trace_id
want_json suspended segments 0 status
want_json true segments 0 trace_kept
want_json "$trace" segments 1 trace_id
want_json completed segments 1 status
want_json awaiting_approval segments 0 trajectory steps 0 tool_calls 0 outcome
want_json false segments 0 trajectory steps 0 resumed
want_json success segments 1 trajectory steps 0 tool_calls 0 outcome
want_json true segments 1 trajectory steps 0 resumed
want_json '[]' traces_missing
want_json '{"total": 1, "by_outcome": {"success": 1}}' totals tool_calls
want_json '{"sessions": 1, "commands": 1, "failed": 0, "timed_out": 0}' totals executions
want_json 1 totals steps
want_json success tool_calls 0 outcome
want_json completed tool_calls 0 state
want_json used approvals 0 status
want_json alice approvals 0 approver
want_json 1 usage tool_calls
python3 -c '
import json, re, sys
for number, segment in enumerate(json.loads(sys.argv[1])["segments"]):
    ids = re.findall(r"\"(event_[0-9]+)\"", json.dumps(segment["trajectory"]))
    assert len(ids) == len(set(ids)), (number, ids)' "$out" || fail "an event is told twice"
for which in 1 first "$first"; do
  show --segment "$which" "$id"
  want_json "$first" trace_id
  want_json suspended status
  want_json "$trace" other_trace_ids_for_run 0
done
show "$first"
want_json awaiting_approval steps 0 tool_calls 0 outcome
show "$trace"
want_json success steps 0 tool_calls 0 outcome
run "$sandhost" show "$id" --segment 3
want_exit 125
want_err "sandhost: run $id has no segment 3; it has 2"
run "$sandhost" show trace_0
want_err 'sandhost: No trace trace_0'
run "$sandhost" show --whole --events
want_exit 2
run "$sandhost" show "$id"
want_in_out "segment 1, $first: suspended"
want_in_out "segment 2, $trace: completed"
want_in_out 'approval_resolved'
[ "$(grep -c '^totals: ' <<<"$out")" -eq 1 ] || fail "totals are not told once"

# ---- Deciding: every refusal in its own words
begin 'echo one > one.txt'
want_json 'echo one > one.txt' approvals 0 command summary
want_json '["a redirect"]' approvals 0 command opaque_reasons
run "$sandhost" approve "$id" "$approval"
want_exit 2
want_err 'sandhost: approver is required'
run "$sandhost" approve run_00000000000000000000000000000000 "$approval" --approver alice
want_err 'sandhost: No run run_00000000000000000000000000000000'
run "$sandhost" approve "$id" approval_0 --approver alice
want_err "sandhost: No approval approval_0 on run $id"
run "$sandhost" deny "$id" "$approval" --approver alice --arguments '{"command": "true"}'
want_exit 2
want_err 'sandhost: arguments can only be edited when approving'
run "$sandhost" approve "$id" "$approval" --approver alice --arguments '{"command": "true", "shell": 1}'
want_err "sandhost: arguments has the unknown key 'shell'; execute takes command and timeout"
run "$sandhost" resume "$id"
want_exit 123
want_err "sandhost: Run $id is still waiting for approval: $approval"
run "$sandhost" approvals --json "$id"
want_json "$approval" 0 approval_id
want_json pending 0 status
approve --note 'looks fine'
run "$sandhost" deny "$id" "$approval" --approver bob
want_exit 125
want_err "sandhost: Approval $approval is already approved"
run "$sandhost" approvals --json "$id"
want_out '[]'
run "$sandhost" resume --json "$id"
want_exit 0
want_json 0 data exit_code
want_file workspace/files/one.txt one
show "$id"
want_json 'Approved by alice: looks fine' steps 0 tool_calls 0 governance 2 decision reason
run "$sandhost" approve "$id" "$approval" --approver bob
want_err "sandhost: Approval $approval is already used"
run "$sandhost" resume "$id"
want_exit 125
want_err "sandhost: Run $id is completed; only a waiting or stopped run can resume"
run "$sandhost" resume run_00000000000000000000000000000000
want_err 'sandhost: No run run_00000000000000000000000000000000'
run "$sandhost" approvals --all --json "$id"
want_json used 0 status
want_json alice 0 approver
want_json approve 0 decision
want_json "$approval" 0 used_for_approval_id

# Refused: nothing runs, and the agent reads why.
begin 'echo two > two.txt'
run "$sandhost" deny "$id" "$approval" --approver carol --note 'not today'
want_exit 0
want_out "$approval denied"
run "$sandhost" resume --json "$id"
want_exit 126
want_json error status
want_json policy_denied governance_error_code
want_json 'Denied by carol: not today' message
[ ! -e workspace/files/two.txt ] || fail "a refused command ran"
show "$id"
want_json denied steps 0 tool_calls 0 outcome
want_json denied steps 0 tool_calls 0 governance 2 reason_code
want_json carol steps 0 tool_calls 0 governance 2 denied_by
want_json 0 totals executions sessions

# A timeout beyond the configuration's is cut, and whoever gives it is told.
cat >short.json <<JSON
{"agent_config": {"tool_call_timeout": 100, "governance_config": {"sandbox_config": "bubblewrap",
  "policy": {"mode": "interactive", "rules": {"allow": [$files], $asks}}}}}
JSON
begin true short.json
approve --arguments '{"command": "echo short", "timeout": 500}'
want_err "sandhost: the timeout of 500 seconds is more than the configuration's tool_call_timeout; the command may take 100"
run "$sandhost" resume -q "$id"
want_exit 0
want_in_err 'the command may take 100'
run "$sandhost" exec --config short.json --yes -q -t 150 -- 'echo short'
want_exit 0
want_err "sandhost: the timeout of 150 seconds is more than the configuration's tool_call_timeout; the command may take 100"
run "$sandhost" exec --config short.json --yes -q -t 100 -- true
want_err ''
run "$sandhost" exec --config short.json --yes --json -t 150 -- true
want_json "[\"the timeout of 150 seconds is more than the configuration's tool_call_timeout; the command may take 100\"]" warnings

# Edited: the edited call, and only it.
begin 'echo three > three.txt'
approve --arguments '{"command": "echo edited > edited.txt", "timeout": 90}'
run "$sandhost" resume --json "$id"
want_exit 0
want_file workspace/files/edited.txt edited
[ ! -e workspace/files/three.txt ] || fail "the command ran as it was before it was edited"
run "$sandhost" approvals --all --json "$id"
want_json '{"command": "echo edited > edited.txt", "timeout": 90}' 0 edited_arguments
[ "$(json 0 original_request_digest)" != "$(json 0 request_digest)" ] || fail "the digest is that of the original"

# ---- A yes that no event repeats is nobody's
begin 'echo forged > forged.txt'
sql "UPDATE approvals SET status = 'approved' WHERE approval_id = '$approval'"
run "$sandhost" resume "$id"
want_exit 125
want_out ''
want_err "sandhost: the record contradicts itself: approval $approval is approved by its row, pending by its content and pending by its events; nothing was done. sandhost record verify $id tells more, sandhost cancel $id ends the run"
run "$sandhost" record verify "$id"
want_exit 1
want_in_out "altered (approval $approval is approved by its row"
sql "UPDATE approvals SET content = json_set(content, '$.status', 'approved', '$.decision', 'approve', '$.approver', 'alice')
  WHERE approval_id = '$approval'"
run "$sandhost" resume "$id"
want_exit 125
want_in_err 'approved by its row, approved by its content and pending by its events; nothing was done'
[ ! -e workspace/files/forged.txt ] || fail "what nobody approved has run"
run "$sandhost" cancel "$id"
want_exit 0

# ---- In time and late
expiring() { # SECONDS
  config short.json "\"allow\": [$files], \"ask\": [{\"rule_id\": \"commands\", \"capability\": \"process.exec\",
    \"constraints\": {\"approval_expires_seconds\": $1}}]"
}
expiring 600
begin 'echo late' short.json
approve
# Decided in time, resumed late: the decision stands. How long deciding takes is the machine's, so the time is set back.
sql "UPDATE approvals SET expires_at = 1, content = json_set(content, '$.expires', 1) WHERE approval_id = '$approval'"
run "$sandhost" resume -q "$id"
want_exit 0
want_out late
expiring 1
begin 'echo late' short.json
expires=$(json approvals 0 expires_at)
sleep 1.1
run "$sandhost" approve "$id" "$approval" --approver alice
want_exit 125
want_err "sandhost: Approval $approval expired at $expires"
run "$sandhost" resume --json "$id"
want_exit 126
want_json approval_expired governance_error_code
want_json "The approval expired at $expires before anybody decided." message
show "$id"
want_json expired_policy steps 0 tool_calls 0 governance 2 reason_code
want_json system steps 0 tool_calls 0 governance 2 denied_by

# ---- What an approval is bound to
config bound.json "\"allow\": [$files], $asks"
begin 'echo bound' bound.json
approve
config bound.json "\"allow\": [$files, {\"rule_id\": \"more\", \"capability\": \"nothing\"}], $asks"
first=$approval
run "$sandhost" resume --json "$id"
waiting
want_in_err 'is not what it was when the run began; approvals given under another policy or for another sandbox do not count'
want_json "Commands need a person. (approval $first was given for another policy and does not count)" approvals 0 reason
run "$sandhost" approve "$id" "$first" --approver bob
want_exit 125
approve
config bound.json "\"allow\": [$files, {\"rule_id\": \"more\", \"capability\": \"nothing\"}], $asks" '"working_dir": "/elsewhere"'
first=$approval
run "$sandhost" resume --json "$id"
waiting
want_json "Commands need a person. (approval $first was given for another sandbox and does not count)" approvals 0 reason
approve
run "$sandhost" resume -q "$id"
want_exit 0
want_out bound

# ---- All asks of a batch wait together, and the run pauses once for them
config batch.json "\"allow\": [$files, {\"rule_id\": \"run\", \"capability\": \"process.exec\"}], \"ask\": [{\"rule_id\": \"setup\", \"capability\": \"sandbox.*.set\"}, {\"rule_id\": \"net\", \"capability\": \"sandbox.network.*\"}]" \
  '"network_policy": {"default": "allow"}, "environment": {"plain": {"A": "b"}}'
begin 'echo $A' batch.json
want_json sandbox.environment.set approvals 1 capability
second=$(json approvals 1 approval_id)
approve
run "$sandhost" resume "$id"
want_err "sandhost: Run $id is still waiting for approval: $second"
approval=$second
approve
run "$sandhost" resume -q "$id"
want_exit 0
want_out b

# ---- approval_mode fail: nothing waits, and the call is denied
cat >fail.json <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "approval_mode": "fail",
  "policy": {"mode": "interactive", "rules": {"allow": [$files], $asks}}}}
JSON
run "$sandhost" exec --config fail.json --json -- true
want_exit 126
want_json error status
want_json approval_required governance_error_code
want_json 'Commands need a person.' message
want_not_in_out approvals
show
want_json denied steps 0 tool_calls 0 outcome
id=$(json run_id)
run "$sandhost" approvals --all --json "$id" # nothing is stored
want_out '[]'

# ---- Sessions: the ask ends the session, and the next one goes on with what waited
run_with '{"id": 7, "command": "echo in session > s.txt; cat s.txt"}
' "$sandhost" session --config commands.json
want_exit 123
want_json awaiting_approval status
want_json 7 id
id=$(json run_id)
approval=$(json approvals 0 approval_id)
approve
run_with '{"id": 8, "command": "cat s.txt"}
' "$sandhost" resume "$id"
want_exit 123
out=$(head -n 1 "$work/.out")
want_json 7 id
want_json 'in session
' data stdout
out=$(tail -n 1 "$work/.out")
want_json 8 id
want_json awaiting_approval status
approval=$(json approvals 0 approval_id)
run "$sandhost" deny "$id" "$approval" --approver alice
run "$sandhost" resume "$id"
want_exit 0
out=$(head -n 1 "$work/.out")
want_json 'The sandbox was reset when the run resumed: files outside the workspace, installed packages and running processes are gone.' notice
out=$(tail -n 1 "$work/.out")
want_json 'Denied by alice' message

# ---- Ended from outside
begin 'echo never'
run "$sandhost" cancel "$id"
want_exit 0
want_out "$id cancelled"
run "$sandhost" resume "$id"
want_err "sandhost: Run $id is cancelled; only a waiting or stopped run can resume"
run "$sandhost" abandon "$id" --status failed
want_out "$id cancelled" # as it was
begin 'echo never'
run "$sandhost" abandon "$id" --status lost
want_exit 2
want_err 'sandhost: status must be cancelled, failed or timeout'
run "$sandhost" abandon "$id" --status timeout
want_out "$id timeout"
[ "$(sql "SELECT error FROM lives JOIN runs ON number = run WHERE run_id = '$id'")" \
  = "{\"type\":\"RunEndedOutside\",\"message\":\"The run's deadline passed\"}" ] || fail "the error of the abandoned run"

# ---- A run that goes on elsewhere is left alone; one that is ended there notices
config free.json "\"allow\": [$files, {\"rule_id\": \"run\", \"capability\": \"process.exec\"}]"
"$sandhost" exec --config free.json -t 180 -- 'sleep 1000' >/dev/null 2>elsewhere &
host=$!
at_exit+=("kill -KILL $host 2>/dev/null")
running="SELECT run_id FROM runs JOIN events ON run = number WHERE status = 'running' AND type = 'sandbox_exec_started'"
wait_until "no run begins" 'id=$(sql "$running") && [ -n "$id" ]'
run "$sandhost" resume "$id"
want_exit 125
want_err "sandhost: Run $id is running in another process (its heartbeat is current)"
run "$sandhost" cancel "$id"
want_out "$id cancelled"
wait $host && fail "the cancelled run ended well" || true
[ "$(cat elsewhere)" = "sandhost: Run $id was ended, or taken over, from outside" ] || fail "told: $(cat elsewhere)"

# ---- A process that died with a command in flight: nobody repeats it
"$sandhost" exec --config free.json -t 180 -- 'sleep 1000' >/dev/null 2>&1 &
host=$!
wait_until "no run begins" 'id=$(sql "$running") && [ -n "$id" ]'
kill -KILL $host
wait $host 2>/dev/null || true
run "$sandhost" resume --json "$id"
want_exit 125
want_json unknown_outcome error_type
want_json 'The call was interrupted and may or may not have taken effect. It was not repeated.' message
want_json 'The sandbox was reset when the run resumed: files outside the workspace, installed packages and running processes are gone.' notice
show "$id"
want_json unknown steps 0 tool_calls 0 outcome
show --whole "$id"
want_json interrupted segments 0 status
want_json '{"total": 1, "by_outcome": {"unknown": 1}}' totals tool_calls
want_json 1 totals executions commands

# ---- One that died with its result on record is told again, not run again
run "$sandhost" exec --config free.json -q -- 'echo once >> once.txt; echo out; exit 3'
want_exit 3
id=$(sql "SELECT run_id FROM runs ORDER BY number DESC LIMIT 1")
sql "UPDATE runs SET status = 'interrupted' WHERE run_id = '$id'"
run "$sandhost" resume "$id"
want_exit 3
want_out out
want_file workspace/files/once.txt once
