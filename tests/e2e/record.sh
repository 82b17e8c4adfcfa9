# SPDX-License-Identifier: Apache-2.0
# The record as a whole: listed, filtered, read in pages, verified, pruned; and a disk that is full.
. "$(dirname "$0")/lib.bash"

db=$SANDHOST_STATE_DIR/record.db

# ---- What a command printed ----
run "$sandhost" exec -q -- 'echo whole; echo warn >&2; exit 3'
want_exit 3
run "$sandhost" show --output 1
want_exit 0
want_out whole
want_err ''
run "$sandhost" show --output 1 --stream stderr
want_out warn
first=$(sqlite3 "$db" 'SELECT run_id FROM runs')
[ "$(sqlite3 "$db" 'SELECT count(*) FROM outputs')" = 0 ] || fail "what an event holds whole is kept twice"

# More than the cap of the result: everything is there, in pages.
cat >agent.json <<'JSON'
{"telemetry_config": {"keep_output_bytes": 3000000},
 "governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}
JSON
seq 1 400000 >expected
seq 1 600000 >expected2
for how in --quiet --json; do
  run "$sandhost" exec -q $how -c agent.json -- 'seq 1 400000; seq 1 600000 >&2'
  want_exit 0
  run "$sandhost" show --events --json --type sandbox_exec_completed
  want_json 2688895 metadata stdout_bytes
  want_json 2688895 metadata stdout_kept bytes
  want_json "$(sha256sum expected | cut -d' ' -f1)" metadata stdout_kept sha256
  want_json 4088895 metadata stderr_bytes
  want_json 3000000 metadata stderr_kept bytes
  call=$(json metadata tool_call_id)
  "$sandhost" show --output "$call" >got 2>err
  cmp got expected || fail "stdout is not what was printed ($how)"
  [ ! -s err ] || fail "told: $(cat err)"
  "$sandhost" show --output "$call" --stream stderr >got 2>err
  cmp got <(head -c 3000000 expected2) || fail "stderr is not what was printed ($how)"
  grep -qx 'sandhost: 1088895 more bytes of it were counted and not kept (telemetry_config.keep_output_bytes)' err ||
    fail "told: $(cat err)"
done
: >got
for ((at = 0; at < 2688895; at += 700000)); do
  "$sandhost" show --output 1 --offset $at --limit 700000 >>got 2>err
done
cmp got expected || fail "the pages are not the whole"
"$sandhost" show --output 1 --offset 1048570 --limit 10 >got 2>err
cmp got <(tail -c +1048571 expected | head -c 10) || fail "a page over the border of two chunks"
grep -qx 'sandhost: bytes 1048570 to 1048580 of 2688895; --offset 1048580 gives the next' err || fail "told: $(cat err)"
run "$sandhost" show --output 1 --offset 99999999
want_exit 0
want_out ''
run "$sandhost" show --output 2
want_exit 125
want_in_err 'has no command 2; it has 1'
run "$sandhost" show --output 1 --json
want_exit 2
run "$sandhost" show --offset 5
want_exit 2

# Bytes that are no text are kept as they are.
"$sandhost" exec -q -- 'printf "a\000\377\376b"' >printed
"$sandhost" show --output 1 >got
cmp got printed || fail "bytes are not what was printed"

# A long text stands in no event, and is read as if it did; it is believed only as it was written.
export SANDHOST_STATE_DIR=$work/offloaded
sum() { python3 -c 'import hashlib,json,sys
value = json.load(sys.stdin)
for key in sys.argv[1:]: value = value[int(key) if isinstance(value, list) else key]
print(hashlib.sha256(value.encode()).hexdigest())' "$@" <.out; }
long=(steps 0 tool_calls 0 executions 0)
seq 1 145000 >printed
head -c 900000 printed >text
run "$sandhost" exec -q --json -- "seq 1 145000 | head -c 900000; head -c 70000 /dev/zero >&2"
want_exit 0
[ "$(sum data stdout)" = "$(sha256sum <text | cut -d' ' -f1)" ] || fail "the result is not the text"
run "$sandhost" show --events --json --type sandbox_exec_completed
[ "$(wc -c <.out)" -lt 4000 ] || fail "the event has $(wc -c <.out) bytes"
want_json offloaded payload capture
want_json null payload stdout
want_json 900000 payload stdout_capture bytes
run "$sandhost" show --json
for part in 'executions 0' 'result' 'observation content data'; do
  # shellcheck disable=SC2086
  [ "$(sum steps 0 tool_calls 0 $part stdout)" = "$(sha256sum <text | cut -d' ' -f1)" ] || fail "not the text: $part"
done
[ "$(sum "${long[@]}" stderr)" = "$(head -c 70000 /dev/zero | sha256sum | cut -d' ' -f1)" ] || fail "not the NULs"
want_json available steps 0 tool_calls 0 result_capture
want_json complete evidence_status
want_json '[]' capture_gaps
run "$sandhost" show
want_in_out 'stdout, 900000 bytes'
want_in_out '      | 2'
run "$sandhost" record verify
want_exit 0
cp -r "$SANDHOST_STATE_DIR" kept
for damage in "DELETE FROM output_chunks WHERE output = 1; DELETE FROM outputs WHERE number = 1" \
  "DELETE FROM output_chunks WHERE output = 1 AND start > 0" \
  "UPDATE output_chunks SET data = (SELECT data FROM output_chunks WHERE output = 2), length = 70000 WHERE output = 1 AND start = 0" \
  "UPDATE output_chunks SET data = x'00' WHERE output = 1 AND start = 0"; do
  rm -r "$SANDHOST_STATE_DIR"
  cp -r kept "$SANDHOST_STATE_DIR"
  sqlite3 "$SANDHOST_STATE_DIR/record.db" "$damage"
  run "$sandhost" record verify
  want_exit 1
  want_in_out 'the kept stdout of exec_'
  run "$sandhost" show --json
  want_exit 0
  want_json null "${long[@]}" stdout
  want_json missing "${long[@]}" capture
  want_json missing "${long[@]}" stdout_capture capture
  [ "$(sum "${long[@]}" stderr)" = "$(head -c 70000 /dev/zero | sha256sum | cut -d' ' -f1)" ] || fail "not the NULs"
  want_json missing steps 0 tool_calls 0 result_capture
  want_json partial evidence_status
  want_json missing capture_gaps 0 state
  [[ $damage == *outputs* ]] || continue
  run "$sandhost" show --output 1
  want_exit 125
  want_err 'sandhost: the kept stdout of command 1 is missing from the record; sandhost record verify tells more'
done
# More than the result holds is cut as it was, within a character.
"$sandhost" exec -q -- 'printf a; yes é | tr -d "\n" | head -c 1500001' >/dev/null
run "$sandhost" show --json
want_json true "${long[@]}" stdout_truncated
python3 -c 'print("a" + 499999 * "é", end="")' >text
[ "$(sum "${long[@]}" stdout)" = "$(sha256sum <text | cut -d' ' -f1)" ] || fail "not the cut text"
# Less is kept than the text has: then the event has it.
echo '{"telemetry_config": {"keep_output_bytes": 70000}, "governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}' >some.json
"$sandhost" exec -q -c some.json -- 'seq 1 20000' >/dev/null
run "$sandhost" show --events --json --type sandbox_exec_completed
[ "$(sum payload stdout)" = "$(seq 1 20000 | sha256sum | cut -d' ' -f1)" ] || fail "not the text"
run "$sandhost" record verify
want_exit 1
want_in_out '2 runs whole, 1 damaged'
export SANDHOST_STATE_DIR=$work/state

# Nothing is kept where that is asked.
echo '{"telemetry_config": {"keep_output_bytes": 0}, "governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}' >none.json
run "$sandhost" exec -q -c none.json --json -- 'seq 1 400000'
run "$sandhost" show --events --json --type sandbox_exec_completed
want_not_in_out stdout_kept
"$sandhost" show --output 1 >got 2>err
cmp got <(head -c 1000000 expected) || fail "the text of the event is not given"
grep -q '1688895 more bytes' err || fail "told: $(cat err)"

# ---- Lists and filters ----
run "$sandhost" runs --json
[ "$(python3 -c 'import json,sys; print(len(json.load(sys.stdin)))' <<<"$out")" = 5 ] || fail "not five runs"
want_json completed 0 status
want_json bubblewrap 0 provider
want_json 1 0 commands
run "$sandhost" runs --limit 1
[ "$(wc -l <<<"$out")" = 2 ] || fail "a heading and one run"
run "$sandhost" runs --status failed --json
want_out '[]'
run "$sandhost" runs --provider local --json
want_out '[]'
run "$sandhost" runs --since 1h --json
want_json completed 4 status
run "$sandhost" runs --since 2100-01-01 --json
want_out '[]'
run "$sandhost" runs --status done
want_exit 2
want_in_err "--status must be one of: running, completed, failed, cancelled, awaiting_approval, awaiting_budget, interrupted, blocked, timeout, abandoned, got 'done'"
run "$sandhost" runs --since yesterday
want_exit 2
run "$sandhost" show "$first" --events --type 'run_*'
[ "$(wc -l <<<"$out")" = 2 ] || fail "two events of the run itself"

# ---- Verify ----
run "$sandhost" record verify
want_exit 0
want_in_out '5 runs whole, 0 damaged, 0 not chained (older than the chains), 0 pruned; head '
cp -r "$SANDHOST_STATE_DIR" saved
sqlite3 "$db" "UPDATE events SET payload = replace(payload, 'whole', 'other') WHERE run = 1 AND type = 'sandbox_exec_failed'"
altered=$(sqlite3 "$db" "SELECT seq FROM events WHERE run = 1 AND type = 'sandbox_exec_failed'")
run "$sandhost" record verify
want_exit 1
want_in_out "$first: event $altered altered
4 runs whole, 1 damaged"
run "$sandhost" record verify "$first" --json
want_exit 1
want_json false whole
want_json "[{\"event\": $altered, \"what\": \"altered\", \"detail\": null}]" runs 0 faults
sqlite3 "$db" "DELETE FROM output_chunks WHERE output = 1 AND start > 0; UPDATE output_chunks SET data = x'00' WHERE output = 3 AND start = 0"
run "$sandhost" record verify
want_exit 1
want_in_out 'is in part missing)'
want_in_out 'is altered)'
rm -r "$SANDHOST_STATE_DIR"
mv saved "$SANDHOST_STATE_DIR"
run "$sandhost" record verify
want_exit 0

# Rows that somebody has added are found, and never shown in the place of what the events tell of.
cp -r "$SANDHOST_STATE_DIR" saved
long=$(sqlite3 "$db" 'SELECT run_id FROM outputs JOIN runs ON runs.number = run WHERE outputs.number = 1')
"$sandhost" show -o 1 "$long" >before
sqlite3 "$db" "INSERT INTO output_chunks SELECT 1, (SELECT max(start + length) FROM output_chunks WHERE output = 1),
  length, data FROM output_chunks WHERE output = 3 AND start = 0"
run "$sandhost" record verify
want_exit 1
want_in_out 'has more pieces than its event covers)'
"$sandhost" show -o 1 "$long" >after 2>err
cmp before after || fail "what was added is shown"
rm -r "$SANDHOST_STATE_DIR"
cp -r saved "$SANDHOST_STATE_DIR"
sqlite3 "$db" "INSERT INTO outputs SELECT 99, run, metadata ->> 'execution_id', 1 FROM events
    WHERE run = 1 AND type = 'sandbox_exec_failed';
  INSERT INTO output_chunks SELECT 99, start, length, data FROM output_chunks WHERE output = 3"
run "$sandhost" record verify
want_exit 1
want_in_out 'is told of by no event)'
run "$sandhost" show -o 1 "$first"
want_out whole
want_err ''
rm -r "$SANDHOST_STATE_DIR"
mv saved "$SANDHOST_STATE_DIR"
run "$sandhost" record verify
want_exit 0
run "$sandhost" record verify run_nothing
want_exit 125
run "$sandhost" record frobnicate
want_exit 2

# ---- Prune ----
run "$sandhost" record prune
want_exit 2
want_in_err 'nothing says what to prune'
run "$sandhost" record prune --older-than 30
want_exit 2
run "$sandhost" record prune --older-than 1h
want_exit 0
want_in_out 'pruned 0 runs'
run "$sandhost" record prune --keep 2 --dry-run --json
want_exit 0
want_json true dry_run
want_json "$first" runs 0 run_id
size=$(stat -c %s "$db")
run "$sandhost" record verify --json
want_json 0 pruned
"$sandhost" exec -q -t 180 -- 'echo up; exec sleep 600' >up 2>&1 &
host=$!
at_exit+=("kill -KILL $host 2>/dev/null")
wait_until "the command did not start" 'grep -q up up'
run "$sandhost" record prune --keep 0
want_exit 0
want_in_out 'pruned 5 runs'
run "$sandhost" runs --json
want_json running 0 status
[ "$(stat -c %s "$db")" -lt $((size / 4)) ] || fail "the file has $(stat -c %s "$db") of $size bytes"
run "$sandhost" record verify
want_exit 0
want_in_out '1 runs whole, 0 damaged, 0 not chained (older than the chains), 5 pruned'
kill -TERM $host
wait $host || true
run "$sandhost" record verify
want_exit 0
sqlite3 "$db" 'DELETE FROM pruned WHERE number = 3'
run "$sandhost" record verify
want_exit 1
want_in_out 'record: run 3 missing'

# By size, and by what a configuration says.
export SANDHOST_STATE_DIR=$work/second
for _ in 1 2 3; do "$sandhost" exec -q -- 'head -c 1500000 /dev/urandom' >/dev/null; done
run "$sandhost" record prune --max-bytes 4M
want_exit 0
want_in_out 'pruned 1 runs'
echo '{"telemetry_config": {"retention_max_bytes": 2500000}, "governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}' >retain.json
run "$sandhost" record prune --config retain.json
want_exit 0
want_in_out 'pruned 1 runs'
[ "$(stat -c %s "$SANDHOST_STATE_DIR/record.db")" -le 2500000 ] || fail "the file is too large"
run "$sandhost" record verify
want_exit 0

# By itself, once a day: what is older than its configuration and the one that ends a run say.
export SANDHOST_STATE_DIR=$work/retained
db=$SANDHOST_STATE_DIR/record.db
echo '{"run_retention_days": null, "governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}' >ever.json
"$sandhost" exec -q -- true
"$sandhost" exec -q -c ever.json -- true
"$sandhost" exec -q -- true
age() { # RUN-NUMBER DAYS
  sqlite3 "$db" "UPDATE runs SET ended_at = ended_at - $2 * 86400000000000 WHERE number = $1"
}
rejuvenate() { sqlite3 "$db" "UPDATE runs SET ended_at = (SELECT at FROM events WHERE run = number AND type = 'run_ended')"; }
age 1 31
age 2 31
age 3 29
"$sandhost" exec -q -- true
run "$sandhost" record verify
want_exit 1
want_in_out "altered (the time of the run's end is not that of its event)"
want_in_out '1 runs whole, 3 damaged'
want_in_out '0 pruned'
run "$sandhost" runs
want_err ''
sqlite3 "$db" 'UPDATE retention SET looked_at = looked_at - 90000000000000'
"$sandhost" exec -q -c ever.json -- true
[ "$(sqlite3 "$db" 'SELECT count(*) FROM runs')" = 5 ] || fail "a configuration that keeps everything took runs away"
"$sandhost" exec -q -- true
left=$(sqlite3 "$db" 'SELECT number FROM runs ORDER BY number' | tr '\n' ' ')
[ "$left" = '2 3 4 5 6 ' ] || fail "left: $left"
rejuvenate
run "$sandhost" record verify
want_exit 0
want_in_out '5 runs whole, 0 damaged, 0 not chained (older than the chains), 1 pruned'
run "$sandhost" runs
want_in_err "sandhost: 1 older runs were removed after their run_retention_days, the last on 2"
run "$sandhost" runs --limit 2
want_err ''

# A host that is killed: what the command had said by then is there, but for the last moments.
export SANDHOST_STATE_DIR=$work/third
"$sandhost" exec -q -t 180 -- 'for i in $(seq 6000); do echo line $i; sleep 0.05; done' >/dev/null 2>&1 &
host=$!
at_exit+=("kill -KILL $host 2>/dev/null")
wait_until "nothing is kept" '[[ $("$sandhost" show --output 1 2>/dev/null) == *"line 3"* ]]'
kill -KILL $host
wait $host 2>/dev/null || true
run "$sandhost" show --output 1
want_exit 0
want_in_out 'line 1
line 2
'
kept=$(wc -c <.out)
want_err "sandhost: incomplete: the end of the command is not on record; $kept bytes of what it printed are"
sum=$(sha256sum <.out)
run "$sandhost" show --events --json --type sandbox_output_sealed
[ "$(wc -l <<<"$out")" = 1 ] || fail "not one event that seals"
want_json "$kept" metadata stdout_kept bytes
want_json "${sum%% *}" metadata stdout_kept sha256
want_json false metadata stdout_kept complete
run "$sandhost" show
want_in_out "stdout, incomplete: $kept bytes were kept"
run "$sandhost" record verify
want_exit 0
run "$sandhost" runs --status interrupted --json
want_json interrupted 0 status
sqlite3 "$SANDHOST_STATE_DIR/record.db" "UPDATE output_chunks SET data = x'00'"
run "$sandhost" record verify
want_exit 1
want_in_out 'is altered)'

# ---- A full disk ----
mkdir small
mount -t tmpfs -o size=3m none small 2>/dev/null || skip "this machine has no small disk to fill (mount)"
at_exit+=("umount -l '$work/small'")
export SANDHOST_STATE_DIR=$work/small
mkfifo requests
"$sandhost" session <requests >answers 2>errors &
host=$!
exec 9>requests
answered() { wait_until "no answer $1" "[ \$(wc -l <answers) -ge $1 ]"; } # LINES
mkdir -p workspace/files
echo '{"id": 1, "command": "echo one"}' >&9
answered 1
head -c 4000000 /dev/zero >small/filler 2>/dev/null || true
n=1
while [ $n -lt 40 ]; do # what is free within the log is used up first
  n=$((n + 1))
  echo "{\"id\": $n, \"command\": \"echo $n > ran-$n; head -c 200000 /dev/urandom\"}" >&9
  answered $n
  grep -q 'could not write the record' answers && break
done
grep -q 'could not write the record .*/small/record.db: database or disk is full' answers || fail "no clear error: $(tail -n 2 answers | head -c 500)"
# From here on nothing runs.
n=$((n + 1))
echo "{\"id\": $n, \"command\": \"echo $n > ran-$n\"}" >&9
answered $n
out=$(tail -n 1 answers)
want_json error status
want_in_out 'could not write the record'
[ ! -e workspace/files/ran-$n ] || fail "a command ran that is not on record"
# With room again the run goes on, and nothing that was decided is lost.
rm small/filler
n=$((n + 1))
echo "{\"id\": $n, \"command\": \"echo $n > ran-$n\"}" >&9
answered $n
[ -e workspace/files/ran-$n ] || fail "the run does not go on: $(tail -n 1 answers)"
exec 9>&-
wait $host || fail "the session ended with $?: $(cat errors)"
run "$sandhost" record verify
want_exit 0
want_in_out '1 runs whole, 0 damaged'
run "$sandhost" show --events --json --type tool_call_started
[ "$(wc -l <<<"$out")" = $n ] || fail "not every call is on record"
run "$sandhost" show --events --json --type tool_call_completed
[ "$(wc -l <<<"$out")" = $n ] || fail "not every call's end is on record"
