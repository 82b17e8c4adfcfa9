# SPDX-License-Identifier: Apache-2.0
# A run that goes on and is stopped, or has to wait, before its command begins loses nothing: neither its approval nor the
# answer it was given, and it can be resumed again.
. "$(dirname "$0")/lib.bash"

mkdir -p workspace/files slow
ask='"policy": {"mode": "permissive", "rules": {"ask": [{"rule_id": "a", "capability": "process.exec"}]}}'
bwrap=$(command -v bwrap) || skip 'no bwrap'
cat >ask.json <<JSON
{"governance_config": {$ask, "sandbox_config": {"provider": "bubblewrap", "options": {"bwrap": "$work/slow/bwrap"}}}}
JSON
cat >slow/bwrap <<SH2
#!/bin/sh
[ -e "$work/slow/now" ] || exec $bwrap "\$@"
echo here >"$work/slow/begun"
exec sleep 1000
SH2
chmod 755 slow/bwrap "$work" # root gives bwrap another uid
chmod 777 slow

# Stopped while the sandbox is made, as often as anybody likes: $1 a signal, the rest a way to resume.
stop() {
  local signal=$1 host
  shift
  rm -f slow/begun
  touch slow/now
  python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$@" >.out 2>.err </dev/null &
  host=$!
  while [ ! -s slow/begun ]; do
    kill -0 $host 2>/dev/null || break
    sleep 0.05
  done
  kill -s "$signal" $host || true
  code=0
  wait $host || code=$?
  out=$(cat .out)
  err=$(cat .err)
  rm slow/now
}

run "$sandhost" exec -j -c ask.json -- 'echo once >> once.txt'
want_exit 123
id=$(json run_id)
approval=$(json approvals 0 approval_id)
run "$sandhost" approve "$id" "$approval" -a al
for signal in TERM INT HUP; do
  stop $signal "$sandhost" resume -q "$id"
  want_exit $((128 + $(kill -l $signal)))
  want_in_err "sandhost: the command had not begun; sandhost resume $id goes on"
  run "$sandhost" runs --json --status interrupted
  want_json "$id" 0 run_id
  run "$sandhost" approvals -a "$id"
  want_in_out "$approval approved"
done
run "$sandhost" resume -q "$id"
want_exit 0
want_file workspace/files/once.txt once
run "$sandhost" approvals -a "$id"
want_in_out "$approval used"
run "$sandhost" show --json --whole "$id"
want_json '{"total": 1, "by_outcome": {"success": 1}}' totals tool_calls
want_json interrupted segments 1 status
run "$sandhost" record verify
want_exit 0

# A session goes on with what it had not begun.
run_with '{"id": 7, "command": "echo in session"}
' "$sandhost" session -c ask.json
want_exit 123
id=$(json run_id)
approval=$(json approvals 0 approval_id)
run "$sandhost" approve "$id" "$approval" -a al
stop TERM "$sandhost" resume "$id"
want_exit 143
want_in_err "sandhost: not every command had begun; sandhost resume $id goes on"
run "$sandhost" resume "$id"
want_exit 0
want_json 7 id
want_json 'in session
' data stdout

# What began is not begun again: cancelled is cancelled.
run "$sandhost" exec -j -c ask.json -t 180 -- 'touch begun; sleep 1000'
id=$(json run_id)
run "$sandhost" approve "$id" "$(json approvals 0 approval_id)" -a al
"$sandhost" resume -q "$id" >/dev/null 2>&1 &
host=$!
wait_until "the command does not begin" '[ -n "$("$sandhost" show --events --type sandbox_exec_started "$id")" ]'
kill -TERM $host
code=0
wait $host || code=$?
want_exit 143
run "$sandhost" resume "$id"
want_exit 125
want_err "sandhost: Run $id is cancelled; only a waiting or stopped run can resume"

# ---- An answer outlives the wait for a budget
cat >both.json <<JSON
{"session_id": "S", "governance_config": {"sandbox_config": "bubblewrap", $ask,
  "budgets": {"session": [{"meter": "tool_calls", "limit": 1}]}}}
JSON
run "$sandhost" exec -qy -c both.json -- true
want_exit 0
run "$sandhost" exec -jy -c both.json -- 'echo again'
want_exit 123
want_json awaiting_budget status
id=$(json run_id)
run "$sandhost" approvals "$id"
want_out ''
run "$sandhost" approvals -aj "$id"
want_json approved 0 status
want_json --yes 0 approver
run "$sandhost" grant "$id" -a al
want_exit 0
run "$sandhost" resume -q "$id"
want_exit 0
want_out again
run "$sandhost" approvals -aj "$id"
want_json used 0 status
run "$sandhost" show --events --type approval_resolved "$id"
want_in_out '"approver":"--yes"'
# It counts for that call alone.
run "$sandhost" exec -j -c both.json -- 'echo again'
want_exit 123
want_json awaiting_approval status
# Who refuses a budget is told to the agent, as who refuses a command is.
run "$sandhost" exec -jy -c both.json -- 'echo never'
id=$(json run_id)
run "$sandhost" deny "$id" -a bob -n 'ask me first'
run "$sandhost" resume -j "$id"
want_exit 126
want_in_out 'Denied by bob: ask me first'
run "$sandhost" record verify
want_exit 0
