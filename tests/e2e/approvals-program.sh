# SPDX-License-Identifier: Apache-2.0
# A run that a program began with libsandhost is in the same record: it is listed and decided here, told and ended, and not
# resumed, since only the program has its configuration.
. "$(dirname "$0")/lib.bash"

cat >agent.json <<'JSON'
{"governance_config": {"sandbox_config": "bubblewrap", "policy": {"mode": "permissive", "rules": {
  "ask": [{"rule_id": "commands", "capability": "process.exec", "reason": "Commands need a person."}]}}}}
JSON
run "$sandhost" exec --config agent.json --json -- 'echo hello'
want_exit 123
id=$(json run_id)
approval=$(json approvals 0 approval_id)
sqlite3 -cmd '.timeout 30000' "$SANDHOST_STATE_DIR/record.db" \
  "UPDATE lives SET request = '{\"surface\": \"api\", \"request\": {\"task\": 7}}'"
run "$sandhost" approvals --json
want_json "$id" 0 run_id
run "$sandhost" approve "$id" "$approval" --approver alice
want_exit 0
run "$sandhost" resume "$id"
want_exit 125
want_out ''
want_err "sandhost: Run $id was begun by a program with libsandhost, which alone can go on with it"
run "$sandhost" show --json "$id"
want_json suspended status
run "$sandhost" abandon "$id"
want_exit 0
want_out "$id cancelled"
want_err "sandhost: sandboxes of the run may be left: it was begun by a program with libsandhost, and this does not know which provider that has"
