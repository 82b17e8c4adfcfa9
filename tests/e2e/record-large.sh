# SPDX-License-Identifier: Apache-2.0
# A run of many megabytes goes in pieces: by itself over several ends of runs, or at once when somebody asks; the file
# gets smaller, and the chain holds at each moment.
. "$(dirname "$0")/lib.bash"
db=$SANDHOST_STATE_DIR/record.db

cat >agent.json <<'JSON'
{"telemetry_config": {"keep_output_bytes": 60000000},
 "governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}
JSON
large() { "$sandhost" exec -q -c agent.json -- 'head -c 60000000 /dev/urandom' >/dev/null; }
age() { sqlite3 "$db" "UPDATE runs SET ended_at = ended_at - 31 * 86400000000000; UPDATE retention SET looked_at = 0"; }

large
size=$(cat "$db"* | wc -c) # also of its log: the end may not have been moved yet
[ "$size" -gt 60000000 ] || fail "the record has $size bytes"
age
for ((round = 1; round <= 1000; round++)); do
  "$sandhost" exec -q -- true
  run "$sandhost" record verify
  want_exit 0
  want_in_out "$round runs whole, 0 damaged, 0 not chained (older than the chains), 1 pruned"
  [ "$(sqlite3 "$db" 'PRAGMA page_count')" -gt 2000 ] || break
  sqlite3 "$db" 'UPDATE retention SET looked_at = 0' # ten seconds later
done
[ $round -le 1000 ] || fail "the file does not get smaller"
[ "$(sqlite3 "$db" 'SELECT count(*) FROM discarded')" = 0 ] || fail "something is left"

large
age
run "$sandhost" record prune --older-than 1d
want_exit 0
want_err ''
[ "$(stat -c %s "$db")" -lt 1000000 ] || fail "the file has $(stat -c %s "$db") bytes"
run "$sandhost" record verify
want_exit 0
