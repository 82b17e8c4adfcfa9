# SPDX-License-Identifier: Apache-2.0
# Who decides is asked about: a program of the configuration, stored with the run, says whether a name is who it claims.
. "$(dirname "$0")/lib.bash"

mkdir -p workspace/files ops
cat >ops/who <<'SH'
#!/bin/sh
cat >"$0.heard"
[ "$WHO" = "$1" ] || { echo "you are not $1" >&2; exit 1; }
SH
chmod 755 ops/who
config() { # FILE PROGRAM...
  local file=$1
  shift
  python3 - "$@" >"$file" <<'PY'
import json, sys
print(json.dumps({"governance_config": {"sandbox_config": "bubblewrap", "approver_check": sys.argv[1:], "policy": {
    "mode": "interactive", "rules": {
        "allow": [{"rule_id": "files", "capability": "workspace.*"}, {"rule_id": "use", "capability": "sandbox.execute"},
                  {"rule_id": "list", "capability": "sandbox.workspace.sync"}],
        "ask": [{"rule_id": "commands", "capability": "process.exec", "reason": "Commands need a person."}]}}}}))
PY
}
begin() { # COMMAND
  run "$sandhost" exec --config agent.json --json -- "$1"
  want_exit 123
  id=$(json run_id)
  approval=$(json approvals 0 approval_id)
}

config agent.json ops/who alice
begin 'echo done'
# In any folder, with the configuration gone: the run knows whom to ask.
mv agent.json kept.json
run env -C / WHO=mallory "$sandhost" approve "$id" "$approval" --approver alice --note 'it is me'
want_exit 126
want_err 'sandhost: Approver alice is refused: you are not alice'
run env WHO=mallory "$sandhost" deny "$id" "$approval" --approver alice
want_exit 126
# Also where whoever started sandhost ignores the ends of children, which an exec hands on.
run env WHO=mallory python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$sandhost" deny "$id" "$approval" --approver alice
want_exit 126
want_err 'sandhost: Approver alice is refused: you are not alice'
run "$sandhost" approvals --json "$id"
want_json pending 0 status
out=$(cat ops/who.heard)
want_json "$id" run_id
want_json "$approval" approval_id
want_json deny decision
want_json alice approver
want_json null note
want_json null arguments
want_json process.exec approval capability
want_json '{"command": "echo done"}' approval arguments
# What is wrong with the decision itself is told before anybody is asked.
rm ops/who.heard
run "$sandhost" approve "$id" approval_0 --approver alice
want_err "sandhost: No approval approval_0 on run $id"
run "$sandhost" approve "$id" "$approval"
want_err 'sandhost: approver is required'
[ ! -e ops/who.heard ] || fail "asked about nothing"
# A program that is not what it was is not asked.
chmod 777 ops/who
run env WHO=alice "$sandhost" approve "$id" "$approval" --approver alice
want_exit 2
want_in_err "governance_config.approver_check: $work/ops/who: it is writable by others (mode 0777)"
chmod 755 ops/who
run env WHO=alice "$sandhost" approve "$id" "$approval" --approver alice
want_exit 0
run env WHO=alice "$sandhost" approve "$id" "$approval" --approver alice
want_exit 125
want_err "sandhost: Approval $approval is already approved"
mv kept.json agent.json
run "$sandhost" resume -q "$id"
want_exit 0
want_out 'done'

# Where it lies is checked before anything starts.
mkdir -p workspace/files/ops
cp ops/who workspace/files/ops/who
config agent.json workspace/files/ops/who alice
run "$sandhost" check agent.json
want_exit 2
want_in_err "governance_config.approver_check: $work/workspace/files/ops/who: it is inside an agent-writable directory"
run "$sandhost" exec --config agent.json -- true
want_exit 2
config agent.json ops/nobody
run "$sandhost" check agent.json
want_in_err "governance_config.approver_check: $work/ops/nobody: No such file or directory"
config agent.json who
run "$sandhost" check agent.json
want_in_err 'governance_config.approver_check must be a list of strings: the path of a program, with a / in it, and its arguments'
config agent.json
run "$sandhost" check agent.json
want_exit 2

# A sandbox does not get to write it either.
cat >agent.json <<JSON
{"governance_config": {"sandbox_config": {"provider": "docker", "options": {"host": "unix:///nowhere.sock"}},
  "policy": {"mode": "permissive"}, "approver_check": ["ops/who", "alice"],
  "sandbox_manifest": {"workspace_mount": {"source": "$work/ops", "target": "/mnt/in", "mode": "read_write"}}}}
JSON
run "$sandhost" exec -q --config agent.json -- true
want_exit 2
want_err "sandhost: $work/ops contains the approver_check file and cannot be mounted read-write; mount it read-only or keep the approver_check elsewhere"

# ---- Who answers at once is asked about too: by --yes, and at the terminal
cat >agent.json <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "approver_check": ["ops/who", "alice"],
  "policy": {"mode": "permissive", "rules": {"ask": [{"rule_id": "commands", "capability": "process.exec"}]}}}}
JSON
run env WHO=mallory "$sandhost" exec -qy --config agent.json -- 'echo ran > ran.txt'
want_exit 126
want_err 'sandhost: Approver --yes is refused: you are not alice'
[ ! -e workspace/files/ran.txt ] || fail "the command of a refused approver ran"
out=$(cat ops/who.heard)
want_json --yes approver
want_json approve decision
want_json process.exec approval capability
want_json pending approval status
want_json null approval approver
want_json '{"command": "echo ran > ran.txt"}' approval arguments
run "$sandhost" show --json
want_json 'Approver --yes is refused: you are not alice' steps 0 tool_calls 0 governance 2 decision reason
want_json approver_check steps 0 tool_calls 0 governance 2 denied_by
want_json denied steps 0 tool_calls 0 outcome
run_with '{"id": 1, "command": "echo ran > ran.txt"}
' env WHO=mallory "$sandhost" session -y --config agent.json
want_json policy_denied governance_error_code
run env WHO=alice "$sandhost" exec -qy --config agent.json -- 'echo ran'
want_exit 0
want_out ran
run env WHO=mallory python3 "$SANDHOST_SOURCE/tests/e2e/person.py" y "$sandhost" exec -q --config agent.json -- 'echo ran > ran.txt'
want_exit 126
want_in_out "Approver $(id -un) is refused: you are not alice"
[ ! -e workspace/files/ran.txt ] || fail "the command of a refused person ran"

# ---- Whoever stops deciding stops the program too, with whatever it started
cat >ops/who <<'SLOW'
#!/bin/sh
sleep 1000 &
echo $$ $! >"$0.pids"
wait
SLOW
begin 'echo slow'
for signal in TERM INT HUP; do
  rm -f ops/who.pids
  python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$sandhost" approve "$id" "$approval" --approver alice 2>/dev/null &
  host=$!
  wait_until "the program is not asked" '[ -s ops/who.pids ]'
  kill -s $signal $host
  code=0
  wait $host || code=$?
  want_exit $((128 + $(kill -l $signal)))
  for pid in $(cat ops/who.pids); do
    wait_until "process $pid of the check outlived approve ($signal)" \
      '[[ $(cut -d" " -f3 "/proc/$pid/stat" 2>/dev/null || echo gone) == [gZ]* ]]'
  done
done
run "$sandhost" approvals --json "$id"
want_json pending 0 status
