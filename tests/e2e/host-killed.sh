# SPDX-License-Identifier: Apache-2.0
# SIGKILL of sandhost: nothing of the sandbox lives on, and the next start tells the run as interrupted.
. "$(dirname "$0")/lib.bash"

mark="sleep 7$$"
"$sandhost" exec -q -t 180 -- "echo up; $mark; true" >up 2>&1 &
host=$!
wait_until "the command did not start" 'grep -q up up'
kill -KILL $host
wait $host 2>/dev/null || true
wait_until "the command lives on" '! pgrep -f "^$mark\$" >/dev/null'
run "$sandhost" show --json
want_exit 0
want_json interrupted status
want_json true incomplete
want_json 1 totals executions sessions

# What a command had printed before it fell silent is kept, though it is below what a result holds.
"$sandhost" exec -q -t 180 -- "seq 40000; $mark; true" >up 2>&1 &
host=$!
kept() { "$sandhost" show -o 1 2>/dev/null | wc -c; }
wait_until "not all of it is kept" '[ "$(kept)" -eq 228894 ]'
kill -KILL $host
wait $host 2>/dev/null || true
run "$sandhost" show -o 1
want_exit 0
[ ${#out} -eq 228893 ] || fail "${#out} bytes were kept"

# A signal that can be caught ends the run in order.
"$sandhost" exec -q -t 180 -- "echo up; $mark; true" >up2 2>&1 &
host=$!
wait_until "the command did not start" 'grep -q up up2'
kill -TERM $host
code=0
wait $host || code=$?
[ $code -eq 143 ] || fail "exit $code after SIGTERM"
run "$sandhost" show --json
want_json cancelled status
