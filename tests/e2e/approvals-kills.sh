# SPDX-License-Identifier: Apache-2.0
# SIGKILL at random points of runs that wait for approvals, of those who decide and of those who resume: no decision is
# lost, none is used twice, no command runs twice. Then ten processes decide and resume at once.
# SANDHOST_APPROVAL_KILLS is the number of rounds.
. "$(dirname "$0")/lib.bash"

rounds=${SANDHOST_APPROVAL_KILLS:-60}
[ -z "$SANDHOST_SANITIZED" ] || rounds=$((rounds / 6 + 1)) # the same points, only slower to reach
db=$SANDHOST_STATE_DIR/record.db
sql() { sqlite3 -cmd '.timeout 30000' "$db" "$1"; }

# local runs commands on this machine, so that what they did can be counted outside every sandbox.
cat >agent.json <<JSON
{"governance_config": {"sandbox_config": "local",
  "sandbox_manifest": {"network_policy": {"default": "allow"}, "working_dir": "$work"}, "policy": {"mode": "interactive", "rules": {
  "allow": [{"rule_id": "setup", "capability": "sandbox.*"}],
  "ask": [{"rule_id": "commands", "capability": "process.exec", "reason": "Commands need a person."}]}}}}
JSON
touch effects decided

# Runs the words, killed after so many milliseconds unless they end before. The exit code is 137 then.
killed() {
  local after=$1 result=0
  shift
  timeout --foreground -s KILL "$(printf '0.%03d' $((after + 1)))" "$@" >.said 2>.told </dev/null || result=$?
  [ $result -ne 124 ] || result=137 # it ended while it was being killed
  return $result
}
# The same for as long as a round is to be disturbed; then they are let go on.
ending() {
  if [ "$try" -lt 8 ]; then
    killed "$@"
  else
    "${@:2}" >.said 2>.told </dev/null
  fi
}
of_run() { sql "SELECT approval_id FROM approvals JOIN runs ON runs.number = run WHERE run_id = '$1' AND approvals.status = '$2'"; }
status_of() { sql "SELECT status FROM runs WHERE run_id = '$1'"; }

line_of() { echo "echo $1 >> $work/effects; sleep 0.0$((RANDOM % 4))"; }
started=0 whole=0
measure() { # the last run that nobody killed: a machine is not as busy all the time
  whole=$((($(date +%s%N) - started) / 1000000 + 5))
  [ $whole -lt 400 ] || whole=400
}
started=$(date +%s%N)
run "$sandhost" exec -q --config agent.json -- "$(line_of whole)"
want_exit 123
measure
[ ! -s effects ] || fail "a command ran before it was approved"

hits=0
for round in $(seq "$rounds"); do
  code=0
  started=$(date +%s%N)
  killed $((RANDOM % (whole * 3 / 2))) "$sandhost" exec -q --config agent.json -- "$(line_of "r$round")" || code=$?
  [ $code -ne 123 ] || measure
  [ $code -ne 137 ] || hits=$((hits + 1))
  [ $code -eq 137 ] || [ $code -eq 123 ] || fail "exec ended with $code: $(cat .told)"
  id=$(sql "SELECT run_id FROM runs JOIN lives ON run = number WHERE request LIKE '%echo r$round >>%'")
  [ -n "$id" ] || continue # killed before the run was there
  [ $code -eq 137 ] || [ -n "$(of_run "$id" pending)" ] || fail "the run said that it waits, and no approval is there"
  for try in $(seq 12); do
    for approval in $(of_run "$id" pending); do
      code=0
      ending $((RANDOM % (whole * 2))) "$sandhost" approve "$id" "$approval" --approver alice || code=$?
      [ $code -ne 137 ] || hits=$((hits + 1))
      [ $code -ne 0 ] || echo "$approval" >>decided
    done
    code=0
    ending $((RANDOM % (whole * 2))) "$sandhost" resume -q "$id" || code=$?
    [ $code -ne 137 ] || hits=$((hits + 1))
    case $code in
      0 | 137 | 123) ;;
      125) grep -qE 'was interrupted and may or may not|its result was lost|only a waiting or stopped run' .told || fail "resume: $(cat .told)" ;;
      *) fail "resume ended with $code: $(cat .told)" ;;
    esac
    "$sandhost" approvals --json >/dev/null
    case $(status_of "$id") in completed | failed) break ;; esac
  done
  case $(status_of "$id") in completed | failed) ;; *) fail "run $id is still $(status_of "$id")" ;; esac
  ran=$(grep -cx "r$round" effects || true)
  [ "$ran" -le 1 ] || fail "the command of run $id ran $ran times"
  [ "$(status_of "$id")" = failed ] || [ "$ran" -eq 1 ] || fail "run $id is completed and its command never ran"
done

check_store() {
  [ "$(sql "PRAGMA integrity_check")" = ok ] || fail "the record is damaged"
  local twice
  twice=$(sql "SELECT run FROM events WHERE type = 'sandbox_exec_started' GROUP BY run HAVING count(*) > 1")
  [ -z "$twice" ] || fail "a command was begun twice: run $twice"
  twice=$(sql "SELECT json_extract(metadata, '\$.approval_id') AS id FROM events WHERE type = 'approval_resolved'
    AND json_extract(metadata, '\$.status') = 'used' GROUP BY id HAVING count(*) > 1")
  [ -z "$twice" ] || fail "an approval was used twice: $twice"
  twice=$(sql "SELECT count(*) FROM approvals WHERE status = 'used' AND json_extract(content, '\$.approver') IS NULL")
  [ "$twice" -eq 0 ] || fail "$twice approvals were used and nobody gave them"
  while read -r approval; do
    case $(sql "SELECT status FROM approvals WHERE approval_id = '$approval'") in
      approved | used) ;;
      *) fail "the decision about $approval is lost" ;;
    esac
  done <decided
  if "$sandhost" record --help >/dev/null 2>&1; then
    run "$sandhost" record verify
    want_exit 0
  fi
}
check_store
[ $hits -gt $((rounds / 4)) ] || fail "only $hits of the kills hit"
echo "$rounds runs, $hits kills"

# Ten at once: one decides, one resumes, the others are told.
for turn in $(seq 5); do
  run "$sandhost" exec -q --json --config agent.json -- "$(line_of "t$turn")"
  want_exit 123
  id=$(json run_id)
  approval=$(json approvals 0 approval_id)
  processes=()
  for i in $(seq 10); do
    (
      "$sandhost" approve "$id" "$approval" --approver "p$i" >"said$i" 2>"told$i" || true
      code=0
      "$sandhost" resume -q "$id" >"out$i" 2>"err$i" </dev/null || code=$?
      echo $code >"code$i"
      "$sandhost" show "$id" --json >/dev/null || echo broken >"code$i"
    ) &
    processes+=($!)
  done
  wait "${processes[@]}"
  [ "$(cat said? said10 | grep -c approved)" -eq 1 ] || fail "not one decided: $(cat said* told*)"
  for i in $(seq 10); do
    [ -s "said$i" ] || grep -qE "^sandhost: Approval $approval is already (approved|used)\$" "told$i" || fail "told: $(cat "told$i")"
    case $(cat "code$i") in
      0) ;;
      125) grep -qE "^sandhost: Run $id is (running in another process \(its heartbeat is current\)|completed; only a waiting or stopped run can resume)\$" "err$i" || fail "told: $(cat "err$i")" ;;
      *) fail "resume ended with $(cat "code$i"): $(cat "err$i")" ;;
    esac
  done
  [ "$(cat code? code10 | grep -cx 0)" -eq 1 ] || fail "not one resumed: $(cat code? code10)"
  [ "$(grep -cx "t$turn" effects)" -eq 1 ] || fail "the command ran $(grep -cx "t$turn" effects) times"
done
check_store
