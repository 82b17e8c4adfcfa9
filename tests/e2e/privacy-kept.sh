# SPDX-License-Identifier: Apache-2.0
# Of a command that is not to be recorded nothing is in the record's files once its run has ended, however it waited; and
# until then whoever decides sees what is asked.
. "$(dirname "$0")/lib.bash"

config() { # FILE AGENT [ASKS]
  local rules='{}'
  [ -z "${3-}" ] || rules='{"ask": [{"rule_id": "a", "capability": "process.exec"}]}'
  echo '{"agent_config": {'"$2"' "governance_config": {"sandbox_config": {"provider": "bubblewrap"},
    "policy": {"mode": "permissive", "rules": '"$rules"'}}}, "model_config": {"provider": "p", "model": "m",
    "api_key": "sk-model-0123456789abcdef"}}' >"$1"
}
# Nowhere in the record, its log included.
gone() {
  local file
  for file in "$SANDHOST_STATE_DIR"/*; do
    [ ! -f "$file" ] || ! grep -qaF -- "$1" "$file" || fail "$1 is in $file ($2)"
  done
}
request() { sqlite3 "$SANDHOST_STATE_DIR/record.db" 'SELECT request FROM lives ORDER BY run DESC LIMIT 1'; }

# ---- A run that does not wait ----
config default.json '"telemetry_config": {"capture": "default"},'
config inputs.json '"telemetry_config": {"record_inputs": false},'
config full.json ''
for how in default inputs; do
  run "$sandhost" exec -q -c $how.json -- "true # unkept-$how"
  want_exit 0
  gone "unkept-$how" $how
done
run "$sandhost" exec -q -c full.json -- 'true # jane@example.com, kept-comment'
want_exit 0
gone jane@example.com full
run "$sandhost" show --json
want_in_out kept-comment
[[ $(request) != *kept-comment* ]] || fail "what began the run is still there: $(request)"
run "$sandhost" exec -q -c full.json --agent "a-sk-model-0123456789abcdef" -- true
want_exit 0
gone sk-model-0123456789abcdef 'the name of an agent'

# ---- A stream that nobody follows ----
config stream.json '"privacy_config": {"redact_stream": true},'
run "$sandhost" exec -j -c stream.json -- 'echo hi'
want_exit 0
want_json $'hi\n' data stdout
run_with '{"id": 1, "command": "echo hi"}' "$sandhost" session -c stream.json
want_exit 0
want_json $'hi\n' data stdout

# ---- A call that waits, whatever is recorded of results ----
for setting in record_outputs record_tool_results; do
  config ask.json '"telemetry_config": {"'$setting'": false},' asks
  run "$sandhost" exec -j -c ask.json -- 'echo unkept-output'
  want_exit 123
  id=$(json run_id)
  run "$sandhost" approve "$id" "$(json approvals 0 approval_id)" --approver alice
  want_exit 0
  run "$sandhost" resume "$id"
  want_exit 0
  want_out unkept-output
  run "$sandhost" show "$id" --output 1
  want_in_err record_tool_results
done

# ---- Shown while it waits, gone when it was used or its run has ended ----
config ask.json '"telemetry_config": {"capture": "default"},' asks
for end in approve edit deny cancel; do
  run "$sandhost" exec -j -c ask.json -- "true # asked-$end jane@example.com"
  want_exit 123
  id=$(json run_id)
  approval=$(json approvals 0 approval_id)
  run "$sandhost" approvals -j
  want_in_out "asked-$end jane@example.com"
  run "$sandhost" show "$id" --events --json
  want_not_in_out "asked-$end"
  case $end in
  approve | edit)
    edited=()
    [ $end = approve ] || edited=(--arguments '{"command": "true # changed-edit"}')
    run "$sandhost" approve "$id" "$approval" --approver alice "${edited[@]}"
    want_exit 0
    run "$sandhost" resume "$id"
    want_exit 0
    ;;
  deny)
    run "$sandhost" deny "$id" "$approval" --approver alice
    run "$sandhost" resume "$id"
    want_exit 126
    ;;
  cancel)
    run "$sandhost" cancel "$id"
    want_exit 0
    ;;
  esac
  run "$sandhost" approvals -a -j
  want_not_in_out "asked-$end"
  want_not_in_out changed-edit
  gone "asked-$end" $end
  gone jane@example.com $end
  gone changed-edit $end
  run "$sandhost" record verify
  want_exit 0
done
config ask.json '' asks
run "$sandhost" exec -j -c ask.json -- "true # kept-word jane@example.com"
id=$(json run_id)
run "$sandhost" approve "$id" "$(json approvals 0 approval_id)" --approver alice
run "$sandhost" resume "$id"
want_exit 0
run "$sandhost" approvals -a -j
want_not_in_out jane@example.com
gone jane@example.com full

# ---- A refusal ----
run_with '{"id": 1, "command": ["sk-model-0123456789abcdef"]}
{"id": 2, "sk-model-0123456789abcdef": 1, "command": "x"}' "$sandhost" session -c full.json
want_not_in_out sk-model-0123456789abcdef
want_in_out 'command must be a string'
want_in_out "unknown key '[REDACTED:credential]'"

# ---- The configuration is in the workspace ----
echo here >here.txt
config agent.json ''
run "$sandhost" exec -j -c agent.json --workspace . -- 'ls; cat agent.json'
want_exit 1
want_in_out here.txt
want_not_in_out model_config
want_json '{"path": "agent.json", "reason": "says what the run may do; never copied in"}' workspace_sync skipped 0

# ---- Small payloads ----
config small.json '"telemetry_config": {"capture": "default", "max_payload_bytes": 60},'
run "$sandhost" exec -q -c small.json -- 'seq 1 100'
run "$sandhost" show
want_not_in_out None
want_in_out 'not recorded'
