# SPDX-License-Identifier: Apache-2.0
# What runs may use: at a limit a run waits or ends, a person grants or denies, and no limit is passed, whoever else counts.
. "$(dirname "$0")/lib.bash"

mkdir -p workspace/files
sql() { sqlite3 -cmd '.timeout 30000' "$SANDHOST_STATE_DIR/record.db" "$1"; }
config() { # FILE BUDGETS [POLICY]
  cat >"$1" <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "budgets": {$2}, "policy": {${3:-"\"mode\": \"permissive\""}}}}
JSON
}
limit() { # METER LIMIT [MORE]
  echo "{\"meter\": \"$1\", \"limit\": $2${3:+, $3}}"
}
budget() { # KEY... of the status in $out, of the one counter there is
  run "$sandhost" budgets --json "$@"
  want_exit 0
}
waiting() { # sets id and request from the JSON of a paused run
  want_exit 123
  want_json awaiting_budget status
  id=$(json run_id)
  request=$(json budget_request request_id)
}

# ---- What cannot be a budget is told before anything starts
config bad.json "\"request\": [$(limit tokens 5)]"
run "$sandhost" check bad.json
want_exit 2
want_err "sandhost: budget meter must be one of: model_cost_usd, model_tokens, model_calls, tool_calls, sandbox_seconds, subagent_runs; got 'tokens'"
config bad.json "\"request\": [$(limit tool_calls 0)]"
run "$sandhost" exec --config bad.json -- true
want_exit 2
want_err 'sandhost: budget limit must be greater than zero'
config bad.json "\"request\": [$(limit tool_calls 1)]" "\"budgets\": {\"agent\": [$(limit tool_calls 1)]}"
run "$sandhost" check bad.json
want_exit 2
want_err 'sandhost: governance_config.budgets cannot be set together with budgets inside the policy; remove one of them'
[ ! -e "$SANDHOST_STATE_DIR/record.db" ] || fail "something was recorded"

# ---- Pause: the run waits, nothing is spent, and the next process goes on once there is more
config pause.json "\"application_id\": \"shop\", \"application\": [$(limit tool_calls 2)]"
for n in 1 2; do
  run "$sandhost" exec --config pause.json -q -- "echo $n >> done.txt"
  want_exit 0
done
run "$sandhost" exec --config pause.json --json -- 'echo 3 >> done.txt'
waiting
want_json 'The application budget for tool_calls is exhausted: 2 of 2 used, 1 more needed' message
want_json application budget_request scope
want_json tool_calls budget_request meter
want_json total budget_request window
want_json 2 budget_request limit
want_json 2 budget_request used
want_json 1 budget_request needed
want_json 1 budget_request shortfall
want_json null response
run "$sandhost" runs --status awaiting_budget --json
want_json "$id" 0 run_id
run "$sandhost" show --json --whole "$id"
want_json awaiting_budget status
want_json awaiting_budget tool_calls 0 state
want_json awaiting_budget tool_calls 0 outcome
want_json '{"total": 1, "by_outcome": {"awaiting_budget": 1}}' totals tool_calls
run "$sandhost" show --json "$id"
want_json suspended status
want_json 0 totals executions sessions
want_json pending budget_requests 0 status
want_json "$request" budget_requests 0 request_id
want_json awaiting_budget steps 0 tool_calls 0 outcome
run "$sandhost" resume "$id"
want_exit 123
want_err "sandhost: Run $id is still waiting for a budget decision: $request"
budget "$id"
want_json 2 0 spent
want_json 0 0 remaining
want_json shop 0 key
run "$sandhost" budgets
want_in_out "$id waits: The application budget for tool_calls is exhausted: 2 of 2 used, 1 more needed; sandhost grant $id --approver NAME"
run "$sandhost" grant "$id"
want_exit 2
want_err 'sandhost: approver is required'
run "$sandhost" grant "$id" --approver alice --amount 1,5
want_exit 2
run "$sandhost" grant "$id" --approver alice --amount 9000000000001
want_exit 2
want_err "sandhost: --amount must be a number above 0 and at most 9000000000000, with at most six digits behind the point, got '9000000000001'"
run "$sandhost" grant run_00000000000000000000000000000000 --approver alice
want_err 'sandhost: No run run_00000000000000000000000000000000'
run "$sandhost" grant "$id" --approver alice --note 'one more'
want_exit 0
want_out "$request granted 1 tool_calls"
run "$sandhost" grant "$id" --approver alice
want_exit 125
want_err "sandhost: Run $id is not waiting for a budget decision"
run "$sandhost" resume -q "$id"
want_exit 0
[ "$(cat workspace/files/done.txt)" = "1
2
3" ] || fail "the file holds: $(cat workspace/files/done.txt)"
budget
want_json 3 0 spent
want_json 1 0 granted
run "$sandhost" show --json --whole "$id"
want_json completed status
want_json '{"total": 1, "by_outcome": {"success": 1}}' totals tool_calls
want_json granted budget_requests 0 status
want_json alice budget_requests 0 approver
run "$sandhost" show --events --type run_resumed "$id"
want_in_out '"cause":"budget_grant"'
run "$sandhost" budgets "$id"
want_in_out 'application  tool_calls'

# As text, for a person.
run "$sandhost" exec --config pause.json -- true
want_exit 123
want_in_err 'sandhost: waiting on: the application budget for tool_calls'
want_in_err '  sandhost grant run_'
want_in_err '  sandhost deny run_'
want_in_err 'then: sandhost resume run_'

# ---- A grant that no event repeats is nobody's
run "$sandhost" exec --config pause.json --json -- 'echo never > never.txt'
waiting
sql "UPDATE budget_requests SET status = 'granted', content = json_set(content, '$.status', 'granted')
  WHERE request_id = '$request'"
sql "UPDATE budget_counters SET granted = granted + 100000000"
run "$sandhost" resume "$id"
want_exit 125
want_in_err "sandhost: the record contradicts itself: budget request $request is granted by its row, granted by its content and pending by its events; nothing was done."
sql "UPDATE budget_counters SET granted = granted - 100000000"
sql "UPDATE budget_requests SET status = 'pending', content = json_set(content, '$.status', 'pending')
  WHERE request_id = '$request'"
[ ! -e workspace/files/never.txt ] || fail "a command ran that nobody granted"
run "$sandhost" cancel "$id"
want_exit 0

# ---- Denied: the run ends when it is resumed, also where there is room by then
run "$sandhost" exec --config pause.json --json -- 'echo never > never.txt'
waiting
run "$sandhost" deny "$id" --approver bob --note 'too much'
want_exit 0
want_out "$request denied"
sql "UPDATE budget_counters SET granted = 100000000"
run "$sandhost" resume --json "$id"
want_exit 126
want_json error status
want_json budget_exceeded governance_error_code
want_json budget_exhausted termination_reason
want_json 'This run stopped because the application budget is exhausted: The application budget for tool_calls is exhausted: 3 of 3 used, 1 more needed. Denied by bob: too much' response
[ ! -e workspace/files/never.txt ] || fail "a denied command ran"
run "$sandhost" show --json "$id"
want_json failed status
want_json budget_exhausted final termination_reason
run "$sandhost" show --json --whole "$id"
want_json denied budget_requests 0 status
run "$sandhost" show --events --type run_resumed "$id"
want_in_out '"cause":"budget_denied"'
run "$sandhost" resume "$id"
want_err "sandhost: Run $id is failed; only a waiting or stopped run can resume"

# ---- Room again: what one run was granted, a limit that was raised or a new day is there for whoever waits
config room.json "\"application_id\": \"room\", \"application\": [$(limit tool_calls 1)]"
run "$sandhost" exec --config room.json -q -- true
run "$sandhost" exec --config room.json --json -- true
waiting
first=$id
run "$sandhost" exec --config room.json --json -- 'echo second'
waiting
run "$sandhost" resume "$id"
want_exit 123
want_err "sandhost: Run $id is still waiting for a budget decision: $request"
run "$sandhost" grant "$first" --approver alice --amount 5
run "$sandhost" budgets
want_in_out "$id waits, and the application budget for tool_calls has room again; sandhost resume $id"
run "$sandhost" resume -q "$id"
want_exit 0
want_out second
run "$sandhost" show --events --type run_resumed "$id"
want_in_out '"cause":"budget_room"'
run "$sandhost" show --json --whole "$id"
want_json unneeded budget_requests 0 status
run "$sandhost" grant "$id" --approver alice
want_exit 125
sql "UPDATE budget_counters SET granted = 0 WHERE key = 'room'"
run "$sandhost" exec --config room.json --json -- 'echo third'
waiting
config room.json "\"application_id\": \"room\", \"application\": [$(limit tool_calls 10)]"
run "$sandhost" resume -q "$id"
want_exit 0
want_out third
config room.json "\"application_id\": \"tomorrow\", \"application\": [$(limit tool_calls 1 '"window": "day"')]"
run "$sandhost" exec --config room.json -q -- true
run "$sandhost" exec --config room.json --json -- 'echo fourth'
waiting
sql "UPDATE budget_counters SET starts = starts - 86400000000000 WHERE key = 'tomorrow'"
run "$sandhost" resume -q "$id"
want_exit 0
want_out fourth

# ---- Three calls at once: each is told what the request has become
config three.json "\"request\": [$(limit tool_calls 1)]"
run_with '{"id": 1, "command": "true"}
{"id": 2, "command": "true"}
{"id": 3, "command": "true"}
' "$sandhost" session --config three.json
want_exit 123
python3 - "$out" <<'PY' || fail "the messages and the requests differ: $out"
import json, sys
told = [json.loads(line) for line in sys.argv[1].splitlines()]
waits = [line for line in told if line.get("status") == "awaiting_budget"]
assert waits
for line in waits:
    assert f", {line['budget_request']['needed']} more needed" in line["message"], line
PY

# ---- Seconds that the sandbox took to open are made up for by one grant
config second.json "\"application_id\": \"seconds\", \"application\": [$(limit sandbox_seconds 0.000001 '"window": "day"')]"
run "$sandhost" exec --config second.json --json -- 'echo granted'
want_exit 123
id=$(json run_id)
run "$sandhost" grant "$id" --approver alice
want_exit 0
run "$sandhost" resume -q "$id"
want_exit 0
want_out granted

# ---- Terminate: a session ends with the call that finds no more
config end.json "\"request\": [$(limit tool_calls 2 '"on_exhausted": "terminate", "warn_at": 0.5')]"
run_with '{"id": 1, "command": "echo one"}
' "$sandhost" session --config end.json
want_exit 0
mkfifo lines
"$sandhost" session --config end.json <lines >said 2>told &
host=$!
exec 9>lines
for n in 1 2 3; do # each after the one before
  echo "{\"id\": $n, \"command\": \"echo $n\"}" >&9
  wait_until "no answer $n" '[ "$(wc -l <said)" -ge $n ]'
done
code=0
wait $host || code=$? # its stdin is still open
exec 9>&-
want_exit 126
out=$(tail -n 1 said)
err=$(cat told)
want_json 3 id
want_json error status
want_json budget_exhausted termination_reason
want_json 'This run stopped because the request budget is exhausted: The request budget for tool_calls is exhausted: 2 of 2 used, 1 more needed' message
run "$sandhost" show --events --type 'budget_*'
[ "$(grep -c budget_warning <<<"$out")" -eq 1 ] || fail "not one warning"
[ "$(grep -c budget_exhausted <<<"$out")" -eq 1 ] || fail "not one end"

# A shell ends there too; where it could only wait, which it cannot, it goes on without the command.
run_with 'echo 1
echo 2
echo 3
echo 4
' "$sandhost" shell --config end.json
want_exit 126
want_out '1
2'
[ "$(grep -c 'This run stopped because' <<<"$err")" -eq 1 ] || fail "not told once: $err"
config stay.json "\"request\": [$(limit tool_calls 1)]"
run_with 'echo 1
echo 2
' "$sandhost" shell --config stay.json
want_exit 0
want_out 1
want_in_err 'The request budget for tool_calls is exhausted: 1 of 1 used, 1 more needed'

# ---- Scopes: a session and an agent are what the command line says
config scopes.json "\"session\": [$(limit tool_calls 1)], \"agent\": [$(limit tool_calls 3)]"
run "$sandhost" exec --config scopes.json -q --session one --agent bot -- true
want_exit 0
run "$sandhost" exec --config scopes.json -q --session one --agent bot --json -- true
waiting
want_json session budget_request scope
want_json one session_id
run "$sandhost" exec --config scopes.json -q --session two --agent bot -- true
want_exit 0
run "$sandhost" exec --config scopes.json -q --agent bot -- true # a session of its own
want_exit 0
run "$sandhost" exec --config scopes.json -q --session three --agent bot --json -- true
want_exit 123
want_json agent budget_request scope
run "$sandhost" exec --config scopes.json -q --session three -- true # somebody else
want_exit 0
run "$sandhost" grant "$id" --approver alice
run "$sandhost" resume --json "$id" # the session has room now, and the agent has none
waiting
want_json agent budget_request scope

# ---- Approved by a person, refused by a budget: the approval stays, and is used once
config asks.json "\"application_id\": \"asks\", \"application\": [$(limit tool_calls 1)]" \
  '"mode": "permissive", "rules": {"ask": [{"rule_id": "commands", "capability": "process.exec"}]}'
run "$sandhost" exec --config asks.json -q --yes -- true
want_exit 0
run "$sandhost" exec --config asks.json --json -- 'echo asked >> asked.txt'
want_exit 123
want_json awaiting_approval status
id=$(json run_id)
approval=$(json approvals 0 approval_id)
run "$sandhost" approve "$id" "$approval" --approver alice
run "$sandhost" resume --json "$id"
waiting
run "$sandhost" approvals --all --json "$id"
want_json approved 0 status
run "$sandhost" grant "$id" --approver alice
run "$sandhost" resume -q "$id"
want_exit 0
want_file workspace/files/asked.txt asked
run "$sandhost" approvals --all --json "$id"
want_json used 0 status
run "$sandhost" budgets --json "$id"
want_json 2 1 spent # behind the agent's: the call that waited counts once

# ---- Who grants and denies is asked about, as of an approval
mkdir ops
cat >ops/who <<'SH'
#!/bin/sh
cat >"$0.heard"
[ "$WHO" = alice ] || { echo "you are not alice" >&2; exit 1; }
SH
chmod 755 ops/who
cat >who.json <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "approver_check": ["ops/who"], "policy": {"mode": "permissive"},
  "budgets": {"application_id": "who", "application": [$(limit tool_calls 1)]}}}
JSON
run "$sandhost" exec --config who.json -q -- true
run "$sandhost" exec --config who.json --json -- true
waiting
for word in grant deny; do
  run env WHO=mallory "$sandhost" "$word" "$id" --approver alice
  want_exit 126
  want_err 'sandhost: Approver alice is refused: you are not alice'
done
out=$(cat ops/who.heard)
want_json deny decision
want_json "$request" budget_requests 0 request_id
run "$sandhost" resume "$id"
want_exit 123
run env WHO=alice "$sandhost" grant "$id" --approver alice --amount 2.5
want_exit 0
out=$(cat ops/who.heard)
want_json 2.5 amount
run "$sandhost" resume -q "$id"
want_exit 0

# ---- Windows: yesterday's use is no use of today
config day.json "\"application_id\": \"days\", \"application\": [$(limit tool_calls 1 '"window": "day"')]"
run "$sandhost" exec --config day.json -q -- true
want_exit 0
run "$sandhost" exec --config day.json -q -- true
want_exit 123
sql "UPDATE budget_counters SET starts = starts - 86400000000000 WHERE key = 'days'"
run "$sandhost" exec --config day.json -q -- true
want_exit 0

# ---- Ten at once: five may, and five wait
config ten.json "\"application_id\": \"ten\", \"application\": [$(limit tool_calls 5)]"
for n in $(seq 10); do
  (
    code=0
    "$sandhost" exec --config ten.json -q -- "echo $n >> ten.txt" >/dev/null 2>"told.$n" || code=$?
    echo $code >"code.$n"
  ) &
  pids[n]=$!
done
for n in $(seq 10); do wait "${pids[n]}"; done
[ "$(cat code.* | sort | uniq -c | tr -s ' ' | tr '\n' ';')" = ' 5 0; 5 123;' ] || fail "ended with: $(cat code.* told.* | tr '\n' ' ')"
[ "$(sql "SELECT spent / 1000000 FROM budget_counters WHERE key = 'ten'")" = 5 ] || fail "not five are counted"

# ---- Killed with a command in flight: its hold is free once the run is told as interrupted
config time.json "\"application_id\": \"time\", \"application\": [$(limit sandbox_seconds 1000)]"
"$sandhost" exec --config time.json -t 180 -- 'sleep 1000' >/dev/null 2>&1 &
host=$!
wait_until "nothing is held" '[ "$(sql "SELECT count(*) FROM budget_holds")" = 1 ]'
# How long a sandbox takes to open is the machine's: not the second that is held, but all there is.
sql "UPDATE budget_holds SET amount = 1000 * 1000000"
run "$sandhost" exec --config time.json --json -- true
waiting # the other one holds all that is left
want_json sandbox_seconds budget_request meter
kill -KILL $host
wait $host 2>/dev/null || true
run "$sandhost" runs --status interrupted --json
[ "$(sql "SELECT count(*) FROM budget_holds")" = 0 ] || fail "a dead process holds"
run "$sandhost" exec --config time.json -q -- true
want_exit 0

# ---- A policy's own budgets, and the older kind
cat >own.json <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "policy": {"mode": "permissive", "budgets": {"application_id": "own", "application": [$(limit tool_calls 1)]}}}}
JSON
run "$sandhost" exec --config own.json -q -- true
want_exit 0
run "$sandhost" exec --config own.json -- true
want_exit 123
cat >older.json <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "policy": {"mode": "permissive", "budget": {"max_requests": 3}}}}
JSON
run_with '{"id": 1, "command": "true"}
' "$sandhost" session --config older.json
want_json success status
cat >older.json <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "policy": {"mode": "permissive", "budget": {"max_requests": 1}}}}
JSON
run "$sandhost" exec --config older.json --json -- true
want_exit 126
want_json budget_exceeded governance_error_code
want_json 'Policy request budget exceeded.' message

run "$sandhost" record verify
want_exit 0
