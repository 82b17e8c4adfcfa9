# SPDX-License-Identifier: Apache-2.0
# SIGKILL of sandhost at random points, two hundred times: afterwards nothing of the sandbox is alive, the record opens
# and tells how far the run came, and the workspace holds whole files only.
. "$(dirname "$0")/lib.bash"

rounds=200
[ -z "$SANDHOST_SANITIZED" ] || rounds=40 # the same points, only slower to reach
mark=31$$
mkdir -p workspace/files
for i in $(seq 20); do
  head -c 50000 /dev/zero | tr '\0' a >"workspace/files/in$i"
done

# Each file is rewritten whole with one letter, so that a torn one shows.
command="for i in \$(seq 20); do head -c 50000 /dev/zero | tr '\\0' b > in\$i; cp in\$i out\$i; done; (setsid sleep $mark &); sleep 0.0\$((RANDOM % 3))"
started=$(date +%s%N)
"$sandhost" exec -q -- "$command" || fail "the undisturbed run"
whole=$((($(date +%s%N) - started) / 1000000 + 1))

for round in $(seq $rounds); do
  "$sandhost" exec -q -- "$command" >/dev/null 2>&1 &
  host=$!
  pause=$((RANDOM % (whole + whole / 4)))
  sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
  kill -KILL $host 2>/dev/null || true
  wait $host 2>/dev/null || true
done

for _ in $(seq 200); do
  pgrep -f "sleep $mark\$" >/dev/null || break
  sleep 0.05
done
[ -z "$(pgrep -f "sleep $mark\$" || true)" ] || fail "a process of a sandbox lives on"

for file in workspace/files/in* workspace/files/out*; do
  [ "$(stat -c %s "$file")" -eq 50000 ] || fail "$file is not whole"
  [ "$(tr -d "$(head -c 1 "$file")" <"$file" | wc -c)" -eq 0 ] || fail "$file is mixed"
done

run "$sandhost" show --json
want_exit 0
runs=$(sqlite3 "$SANDHOST_STATE_DIR/record.db" 'SELECT count(*) FROM runs')
open=$(sqlite3 "$SANDHOST_STATE_DIR/record.db" "SELECT count(*) FROM runs WHERE status = 'running'")
[ "$open" -eq 0 ] || fail "$open of $runs runs are told as running"
[ "$(sqlite3 "$SANDHOST_STATE_DIR/record.db" 'PRAGMA integrity_check')" = ok ] || fail "the record is damaged"
interrupted=$(sqlite3 "$SANDHOST_STATE_DIR/record.db" "SELECT count(*) FROM runs WHERE status = 'interrupted'")
[ "$interrupted" -gt 0 ] || fail "no run was hit"
run "$sandhost" record verify
want_exit 0
echo "$rounds kills, $runs runs begun, $interrupted interrupted"
run "$sandhost" exec -q -- 'echo alive'
want_out alive
