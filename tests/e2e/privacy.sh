# SPDX-License-Identifier: Apache-2.0
# No credential that this process knows is found anywhere a command could have put it, and personal data only where the
# configuration lets it; what is not to be recorded is not.
. "$(dirname "$0")/lib.bash"

marker='[REDACTED:credential]'
model=sk-model-0123456789abcdef        # from the configuration
token='ghp_x"y\z.*0123456789'          # from the environment, with all that JSON and patterns care about
form=unregistered-but-named            # only by the way in which the command line has it
export E2E_GITHUB_TOKEN=$token

cat >agent.json <<JSON
{"agent_config": {"governance_config": {"sandbox_config": {"provider": "bubblewrap"}}},
 "model_config": {"provider": "p", "model": "m", "api_key": "$model"}}
JSON

# Nowhere: neither in files of the record nor in what is read out of it, nor in the workspace.
nowhere() {
  local secret file
  "$sandhost" show "$@" >shown
  "$sandhost" show "$@" --json >>shown
  "$sandhost" show "$@" --events --json >>shown
  "$sandhost" show "$@" --output 1 >>shown 2>&1
  "$sandhost" show "$@" --output 1 --stream stderr >>shown 2>&1
  for secret in "$model" "$token" "$form" "${model:0:20}" 'ghp_x\"y\\z.*0123456789'; do
    for file in "$SANDHOST_STATE_DIR"/* workspace/files/* out.* err.* shown; do
      [ ! -f "$file" ] || ! grep -qaF -- "$secret" "$file" || fail "$secret is in $file"
    done
  done
}

# ---- Printed, written, named ----
mkdir -p workspace/files
cat >workspace/files/say.sh <<'SH'
printf 'one %s two\n' "$1"
printf '%s' "$1" | cut -c1-8 | tr -d '\n'; sleep 0.2; printf '%s\n' "$1" | cut -c9-
printf 'err %s\n' "$1" >&2
printf '{"k":"%s"}\n' "$(printf %s "$1" | sed 's/[\\"]/\\&/g')"
printf 'a = %s\n' "$1" >made.txt
SH
for value in "$model" "$token"; do
  quoted=$(printf %q "$value")
  for how in --quiet --json; do
    "$sandhost" exec -q $how -c agent.json -- "sh say.sh $quoted; TOKEN=$form true" >out.1 2>err.1 || fail "exit $?"
    nowhere
    grep -qF "a = $marker" workspace/files/made.txt || fail "made.txt: $(cat workspace/files/made.txt)"
    [ "$(grep -oF "$marker" out.1 | wc -l)" -ge 3 ] || fail "too few markers: $(cat out.1)"
  done
  [ "$how" = --json ] && out=$(cat out.1) code=0 err= && want_json '["made.txt"]' workspace_sync redacted
done
"$sandhost" show --json >out.1
grep -qF "TOKEN=$marker" out.1 || fail "the command's own form is not replaced"
out=$(cat out.1) code=0 err=
want_json partial evidence_status
want_json redacted steps 0 tool_calls 0 result_capture
run "$sandhost" record verify
want_exit 0

# The sandbox keeps what it wrote; the workspace's copy goes in only when somebody changes it.
printf '%s\n' '{"id": 1, "command": "sh say.sh '"$model"'"}' >requests
answered() { wait_until "no answer $1" "grep -qs '\"id\":$1,' out.2"; } # ID
: >out.2
{
  cat requests; answered 1
  echo '{"id": 2, "command": "grep -c '"'sk-model'"' made.txt"}'; answered 2
  touch workspace/files/made.txt
  echo '{"id": 3, "command": "grep -c '"'sk-model'"' made.txt"}'; answered 3
  echo changed >workspace/files/made.txt
  echo '{"id": 4, "command": "cat made.txt"}'
} | "$sandhost" session -c agent.json >out.2 2>err.2
nowhere
answer() { out=$(grep "\"id\":$1," out.2) code=0 err=$(cat err.2); }
answer 2
want_json $'1\n' data stdout
answer 3
want_json $'1\n' data stdout
answer 4
want_json $'changed\n' data stdout

# A name is not written either.
"$sandhost" exec -q --json -c agent.json -- "echo x > $model.txt" >out.1
[ ! -e "workspace/files/$model.txt" ] || fail "a file is named by a credential"
grep -q 'its name holds a credential; not written' out.1 || fail "the file is left out in silence"
nowhere

# ---- Large outputs: over the cap of the result, and over what is kept ----
cat >small.json <<JSON
{"agent_config": {"telemetry_config": {"keep_output_bytes": 70000},
  "governance_config": {"sandbox_config": {"provider": "bubblewrap", "options": {"max_output_bytes": 1000}}}},
 "model_config": {"provider": "p", "model": "m", "api_key": "$model"}}
JSON
for how in --quiet --json; do
  for at in 985 65530 69985; do
    "$sandhost" exec -q $how -c small.json -- "head -c $at /dev/zero | tr '\\0' .; printf %s $model; yes $model | head -c 200000" >out.1
    nowhere
    ! grep -qaF -- "${model:0:14}" out.1 || fail "the beginning of a credential is in a cut output ($at)"
    "$sandhost" show --output 1 >out.1 2>err.1
    ! grep -qaF -- "${model:0:14}" out.1 || fail "the beginning of a credential is kept ($at)"
  done
done

# ---- Nothing to do: everything is as it was ----
unset E2E_GITHUB_TOKEN
"$sandhost" exec -q -- 'printf "a\000\377%s" "$(seq 5)"' >out.1
printf 'a\0\377%s' "$(seq 5)" | cmp - out.1 || fail "bytes are not what was printed"
run "$sandhost" show --json
want_json complete evidence_status

# ---- Personal data ----
say='echo "mail jane@example.com, call 555-123-4567, 123-45-6789, 4111 1111 1111 1111, id 1700000000"'
run "$sandhost" exec -q -- "$say"
want_in_out 'mail jane@example.com, call 555-123-4567'
run "$sandhost" show --output 1
want_out 'mail [REDACTED_EMAIL], call [REDACTED_PHONE], [REDACTED_SSN], [REDACTED_CREDIT_CARD], id 1700000000'
run "$sandhost" show --json
want_not_in_out jane@example.com
want_json true harness privacy enabled
want_json '["telemetry"]' harness privacy redacted
# Also what is kept beside the events.
"$sandhost" exec -q -- "seq 1 200000; $say" >out.1
"$sandhost" show --output 1 >got 2>err.1
cmp got <(seq 1 200000; echo 'mail [REDACTED_EMAIL], call [REDACTED_PHONE], [REDACTED_SSN], [REDACTED_CREDIT_CARD], id 1700000000') ||
  fail "what is kept is not what was printed, without personal data"
[ ! -s err.1 ] || fail "told: $(cat err.1)"
config() { # PRIVACY TELEMETRY
  echo '{"privacy_config": '"$1"', "telemetry_config": '"${2:-{\}}"',
    "governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}' >p.json
}
config '{"redact_telemetry": false, "redact_stream": true, "categories": ["email"]}'
run "$sandhost" exec -q -c p.json -- "$say; echo x >f"
want_out 'mail [REDACTED_EMAIL], call 555-123-4567, 123-45-6789, 4111 1111 1111 1111, id 1700000000'
run "$sandhost" show --output 1
want_in_out jane@example.com
config '{"redact_model_io": true, "redact_workspace": true}'
run "$sandhost" exec -q --json -c p.json -- "$say | tee personal.txt"
want_json $'mail [REDACTED_EMAIL], call [REDACTED_PHONE], [REDACTED_SSN], [REDACTED_CREDIT_CARD], id 1700000000\n' data stdout
want_file workspace/files/personal.txt \
  'mail [REDACTED_EMAIL], call [REDACTED_PHONE], [REDACTED_SSN], [REDACTED_CREDIT_CARD], id 1700000000'
config '{"enabled": false, "redact_workspace": true}'
run "$sandhost" exec -q -c p.json -- "$say | tee personal.txt"
want_in_out jane@example.com
run "$sandhost" show --output 1
want_in_out jane@example.com
config '{"categories": ["email", "iban"]}'
run "$sandhost" check p.json
want_exit 2
want_in_err 'categories[1] must be one of: credit_card, email, phone, ssn'

# ---- What is recorded at all ----
config '{}' '{"capture": "default"}'
run "$sandhost" exec -q -c p.json -- 'echo hello # a comment that nobody keeps'
sqlite3 "$SANDHOST_STATE_DIR/record.db" .dump >out.1
! grep -F 'that nobody keeps' out.1 || fail "the command is in the record's file"
want_out hello
run "$sandhost" show --json
want_not_in_out 'that nobody keeps'
want_json '[REDACTED]' steps 0 tool_calls 0 arguments command
want_json null steps 0 tool_calls 0 executions 0 command
want_json sh steps 0 tool_calls 0 executions 0 command_name
want_json 3 steps 0 tool_calls 0 executions 0 argc
want_json $'hello\n' steps 0 tool_calls 0 executions 0 stdout
want_json available steps 0 tool_calls 0 result_capture
want_json redacted steps 0 tool_calls 0 observation capture
want_json partial evidence_status
config '{}' '{"capture": "default", "record_inputs": true}'
run "$sandhost" exec -q -c p.json -- 'echo hello # kept'
run "$sandhost" show --json
want_in_out '# kept'
want_json complete evidence_status
config '{}' '{"record_tool_results": false}'
run "$sandhost" exec -q -c p.json -- 'echo unkept-output; exit 3'
want_exit 3
want_out unkept-output
run "$sandhost" show --json
want_in_out 'echo unkept-output'
want_json null steps 0 tool_calls 0 executions 0 stdout
want_json 3 steps 0 tool_calls 0 executions 0 exit_code
want_json not_recorded steps 0 tool_calls 0 result_capture
sed 's/"sandbox_config"/"policy": {"mode": "strict"}, &/' p.json >denied.json
run "$sandhost" exec -q -c denied.json -- 'echo no result at all'
want_exit 126
want_err 'sandhost: Denied by strict policy: no rule matches this sandbox.execute request.'
config '{}' '{"max_payload_bytes": 2000}'
run "$sandhost" exec -q -c p.json -- 'seq 1 1000'
run "$sandhost" show --json
want_json "$(seq 1 1000)"$'\n' steps 0 tool_calls 0 executions 0 stdout
want_json available steps 0 tool_calls 0 result_capture
want_json complete evidence_status
run "$sandhost" show --events --json --type sandbox_exec_completed
want_json offloaded payload capture
want_json 3893 payload stdout_capture bytes
"$sandhost" show --output 1 >got
cmp got <(seq 1 1000) || fail "what was offloaded is not there"
config '{}' '{"max_payload_bytes": 2000, "keep_output_bytes": 0}'
run "$sandhost" exec -q -c p.json -- 'seq 1 1000'
run "$sandhost" show --json
want_json truncated steps 0 tool_calls 0 executions 0 capture
want_json partial evidence_status
# What both streams come to fits into no payload, and each of them would.
config '{}' '{"max_payload_bytes": 2000}'
run "$sandhost" exec -q -c p.json -- 'seq 1 400; seq 1 400 >&2'
run "$sandhost" show --json
want_json "$(seq 1 400)"$'\n' steps 0 tool_calls 0 executions 0 stderr
want_json complete evidence_status
# Personal data in what is long: out of the record, and told.
config '{}'
run "$sandhost" exec -q -c p.json -- 'seq 1 20000; echo jane@example.com'
run "$sandhost" show --json
want_not_in_out jane@example.com
want_in_out '20000\n[REDACTED_EMAIL]\n'
want_json redacted steps 0 tool_calls 0 result_capture
want_json partial evidence_status
config '{}' '{"capture": "some"}'
run "$sandhost" check p.json
want_exit 2
want_in_err 'telemetry capture must be one of: default, full'
config '{}' '{"storage": "memory"}'
run "$sandhost" exec -q -c p.json -- true
run "$sandhost" show --json
want_json storage_not_applied harness security_warnings 0 code

# ---- A run that waits holds its command whole, and shows it to nobody ----
export E2E_GITHUB_TOKEN=$token
cat >ask.json <<JSON
{"agent_config": {"telemetry_config": {"capture": "default"},
  "governance_config": {"sandbox_config": {"provider": "bubblewrap"},
  "policy": {"mode": "permissive", "rules": {"ask": [{"rule_id": "a", "capability": "process.exec"}]}}}},
 "model_config": {"provider": "p", "model": "m", "api_key": "$model"}}
JSON
run "$sandhost" exec -c ask.json --json -- "printf %s $model | wc -c"
want_exit 123
want_not_in_out "$model"
id=$(json run_id)
approval=$(json approvals 0 approval_id)
run "$sandhost" approvals
want_not_in_out "$model"
want_in_out "printf %s $marker"
run "$sandhost" approvals --json
want_not_in_out "$model"
want_not_in_out sealed
run "$sandhost" show "$id" --events --json
want_not_in_out "$model"
want_not_in_out 'wc -c'
run "$sandhost" approve "$id" "$approval" --approver alice
want_exit 0
want_not_in_out "$model"
run "$sandhost" resume "$id"
want_exit 0
want_out ${#model}
sqlite3 "$SANDHOST_STATE_DIR/record.db" .dump >out.1
! grep -F 'wc -c' out.1 || fail "what is not to be recorded is there after the end"
run "$sandhost" approvals --all "$id"
want_exit 0
want_not_in_out 'wc -c'
sqlite3 "$SANDHOST_STATE_DIR/record.db" 'SELECT content FROM approvals' >out.1
nowhere "$id"

# Nor where the run ends in its first process, which then waits for nothing.
sed 's/"process.exec"/&, "command": {"program": "printf"}/' ask.json >some.json
mkfifo lines
"$sandhost" session -c some.json <lines >out.1 2>err.1 &
session=$!
exec 9>lines
# A run that waits begins nothing more, and ends with the last that it began: the sleep has to be first.
begun() { sqlite3 "$SANDHOST_STATE_DIR/record.db" "SELECT count(*) FROM events WHERE type = 'sandbox_exec_started'"; }
before=$(begun)
echo '{"id": 1, "command": "sleep 1000", "timeout": 180}' >&9
wait_until "the session begins nothing" '[ "$(begun)" -gt "$before" ]'
echo "{\"id\": 2, \"command\": \"printf %s $model\"}" >&9
wait_until "nothing waits" 'grep -q awaiting_approval out.1'
want_kept() { # COUNT TEXT
  [ "$(sqlite3 "$SANDHOST_STATE_DIR/record.db" "SELECT count(*) FROM approvals WHERE content LIKE '%$model%'")" = "$1" ] || fail "$2"
}
want_kept 1 "a call that waits cannot be run again"
kill -TERM $session
wait $session && fail "the session was not ended" || [ $? -eq 143 ] || fail "the session ended otherwise"
exec 9>&-
want_kept 0 "the call is still there (signal)"

# Denied, or ended from outside: nothing is kept of it either.
for end in deny cancel; do
  run "$sandhost" exec -c ask.json --json -- "printf %s $model | wc -c"
  want_exit 123
  id=$(json run_id)
  approval=$(json approvals 0 approval_id)
  [ "$(sqlite3 "$SANDHOST_STATE_DIR/record.db" "SELECT count(*) FROM approvals WHERE content LIKE '%$model%'")" = 1 ] ||
    fail "a call that waits cannot be run again"
  if [ $end = deny ]; then
    run "$sandhost" deny "$id" "$approval" --approver alice
    run "$sandhost" resume "$id"
    want_exit 126
  else
    run "$sandhost" cancel "$id"
    want_exit 0
  fi
  sqlite3 "$SANDHOST_STATE_DIR/record.db" 'SELECT content FROM approvals' >out.1
  ! grep -qF "$model" out.1 || fail "the call is still there ($end)"
  run "$sandhost" record verify
  want_exit 0
done

# ---- So does one that waits for a budget; only that it can be run again is kept, and only until then ----
db() { sqlite3 -cmd '.timeout 30000' "$SANDHOST_STATE_DIR/record.db" "$1"; }
sealed() { db "SELECT count(*) FROM budget_requests WHERE content LIKE '%$model%' OR content LIKE '%jane@example.com%'"; }
cat >budget.json <<JSON
{"agent_config": {"governance_config": {"sandbox_config": {"provider": "bubblewrap"}, "policy": {"mode": "permissive"},
  "budgets": {"request": [{"meter": "tool_calls", "limit": 0.5}]}}},
 "model_config": {"provider": "p", "model": "m", "api_key": "$model"}}
JSON
waits_for_budget() { # COMMAND; sets id
  run "$sandhost" exec -c budget.json --json -- "$1"
  want_exit 123
  want_json awaiting_budget status
  want_not_in_out "$model"
  id=$(json run_id)
  [ "$(sealed)" = 1 ] || fail "a call that waits cannot be run again"
}
for secret in "$model" jane@example.com; do
  waits_for_budget "printf %s $secret | wc -c"
  for words in "show $id" "show $id --json" "show $id --events --json" "show --json --whole $id" 'budgets' 'budgets --json'; do
    # shellcheck disable=SC2086
    run "$sandhost" $words
    want_exit 0
    want_not_in_out "$secret"
    want_not_in_out sealed
  done
  run "$sandhost" grant "$id" --approver alice
  want_exit 0
  want_not_in_out "$secret"
  run "$sandhost" resume "$id"
  want_exit 0
  want_out ${#secret}
  [ "$(sealed)" = 0 ] || fail "the call is still there"
done
nowhere "$id"
for end in deny cancel; do
  waits_for_budget "printf %s $model | wc -c"
  if [ $end = deny ]; then
    run "$sandhost" deny "$id" --approver alice
    want_exit 0
    run "$sandhost" resume "$id"
    want_exit 126
  else
    run "$sandhost" cancel "$id"
    want_exit 0
  fi
  [ "$(sealed)" = 0 ] || fail "the call is still there ($end)"
done
# In a session.
printf '%s\n' '{"id": 1, "command": "printf %s '"$model"' | wc -c"}' >requests
run_with "$(cat requests)" "$sandhost" session -c budget.json
want_exit 123
want_not_in_out "$model"
id=$(db 'SELECT run_id FROM runs ORDER BY number DESC LIMIT 1')
run "$sandhost" grant "$id" --approver alice --amount 10
run "$sandhost" resume "$id"
out=$(grep '"id":1' <<<"$out")
want_json "${#model}"$'\n' data stdout
[ "$(sealed)" = 0 ] || fail "the call is still there (session)"
# What nobody records is kept in the same way, without a credential in it.
sed 's/"governance_config"/"telemetry_config": {"capture": "default"}, &/' budget.json >unrecorded.json
run_with '{"id": 1, "command": "echo said"}
' "$sandhost" session -c unrecorded.json
want_exit 123
id=$(db 'SELECT run_id FROM runs ORDER BY number DESC LIMIT 1')
run "$sandhost" grant "$id" --approver alice
run "$sandhost" resume "$id"
want_in_out 'said\n'
run "$sandhost" record verify
want_exit 0
