# SPDX-License-Identifier: Apache-2.0
# What a person types about a run (who decides, why, another call in the place of the one that was asked about) is recorded
# without credentials and without personal data, and an edited call runs as it was typed.
. "$(dirname "$0")/lib.bash"

marker='[REDACTED:credential]'
model=sk-model-0123456789abcdef          # from the configuration that the run was begun with
token='ghp_x"y\z.*0123456789'            # from the environment of whoever decides
mail=jane@example.com                    # personal

config() { # FILE PRIVACY GOVERNANCE
  cat >"$1" <<JSON
{"agent_config": {"privacy_config": $2, "governance_config": {"sandbox_config": {"provider": "bubblewrap"}, $3}},
 "model_config": {"provider": "p", "model": "m", "api_key": "$model"}}
JSON
}
ask='"policy": {"mode": "permissive", "rules": {"ask": [{"rule_id": "a", "capability": "process.exec"}]}}'
config ask.json '{}' "$ask"
config open.json '{"enabled": false}' "$ask"
config budget.json '{}' '"policy": {"mode": "permissive"}, "budgets": {"request": [{"meter": "tool_calls", "limit": 0.5}]}'

waits() { # FILE; sets id and approval
  run env -u E2E_GITHUB_TOKEN "$sandhost" exec -c "$1" --json -- 'echo asked'
  want_exit 123
  id=$(json run_id)
  approval=
  [ "$(json status)" = awaiting_budget ] || approval=$(json approvals 0 approval_id)
}
typed() { env E2E_GITHUB_TOKEN="$token" "$sandhost" "$@"; }
# Of these, nothing is in the record's file (which keeps what was deleted until it is written over) nor in what is told of it.
nowhere() { # SECRET...
  local secret
  { "$sandhost" show "$id" --events --json; "$sandhost" show "$id" --json --whole; "$sandhost" approvals --all --json "$id"
    sqlite3 "$SANDHOST_STATE_DIR/record.db" .dump; } >told
  for secret in "$@"; do
    ! grep -qF -- "$secret" told || fail "$secret is told: $(grep -F -- "$secret" told | head -c 2000)"
  done
}
json_token='ghp_x\"y\\z.*0123456789'

# ---- A yes
waits ask.json
run typed approve "$id" "$approval" --approver "al $token ice" --note "as in $token, $model; ask $mail"
want_exit 0
nowhere "$token" "$json_token" "$model" "$mail"
run "$sandhost" approvals --all --json "$id"
want_json "al $marker ice" 0 approver
want_json "as in $marker, $marker; ask [REDACTED_EMAIL]" 0 note
run "$sandhost" show "$id" --events --type approval_resolved
want_in_out "al $marker ice"
run "$sandhost" resume -q "$id"
want_exit 0
want_out asked

# ---- A no; the agent reads why
waits ask.json
run typed deny "$id" "$approval" --approver bob --note "not with $model or PASSWORD=unknown-but-named as $mail"
want_exit 0
nowhere "$model" "$mail" unknown-but-named
run "$sandhost" resume --json "$id"
want_exit 126
want_in_out "Denied by bob: not with $marker or PASSWORD=$marker as [REDACTED_EMAIL]"

# ---- What the run's own configuration leaves alone stays, but no credential
waits open.json
run typed deny "$id" "$approval" --approver bob --note "not with $token, says open@example.org"
run "$sandhost" approvals --all --json "$id"
want_json "not with $marker, says open@example.org" 0 note

# ---- Another call: shown without it, run as typed, and gone then
waits ask.json
quoted=$(printf %q "$token")
arguments=$(python3 -c 'import json, sys; print(json.dumps({"command": sys.argv[1]}))' "printf %s $quoted $model $mail | wc -c; KEY=1 true")
run typed approve "$id" "$approval" --approver alice --arguments "$arguments"
want_exit 0
run "$sandhost" approvals --all --json "$id"
want_in_out '[REDACTED_EMAIL] | wc -c'
want_not_in_out sealed
want_not_in_out "$model"
want_not_in_out "$mail"
sqlite3 "$SANDHOST_STATE_DIR/record.db" 'SELECT content FROM approvals' >kept
grep -qF "$model" kept || fail "an edited call cannot be run"
run typed resume -q "$id"
want_exit 0
want_out $((${#token} + ${#model} + ${#mail}))
nowhere "$json_token" "$model" "$mail"

# ---- The end from outside
for words in 'cancel' 'abandon --status timeout'; do
  waits ask.json
  # shellcheck disable=SC2086
  run typed $words "$id" --reason "because of $token, $model, $mail"
  want_exit 0
  nowhere "$token" "$json_token" "$model" "$mail"
  run "$sandhost" show "$id" --events --type run_ended
  want_in_out "because of $marker, $marker, [REDACTED_EMAIL]"
done

# ---- A budget
for words in 'grant' 'deny'; do
  waits budget.json
  run typed $words "$id" --approver "al $token ice" --note "as in $token, $model; ask $mail"
  want_exit 0
  nowhere "$token" "$json_token" "$model" "$mail"
  run "$sandhost" show --json --whole "$id"
  want_json "al $marker ice" budget_requests 0 approver
  want_json "as in $marker, $marker; ask [REDACTED_EMAIL]" budget_requests 0 note
done

run "$sandhost" record verify
want_exit 0
