# SPDX-License-Identifier: Apache-2.0
# How a command ends is how sandhost exec ends; live output goes where it belongs.
. "$(dirname "$0")/lib.bash"

run "$sandhost" exec -q -- 'echo out; echo err >&2; exit 7'
want_exit 7
want_out out
want_err err

run "$sandhost" exec -q -- 'kill -TERM $$'
want_exit 143

run "$sandhost" exec -q --timeout 5 -- 'echo before; sleep 1000'
want_exit 137
want_out before
want_err 'sandhost: Command timed out after 5s'

run "$sandhost" exec --json --timeout 1 -- 'sleep 1000'
want_exit 137
want_json error status
want_json 'Command timed out after 1s' message
want_json '{"exit_code": 137, "stdout": "", "stderr": "", "timed_out": true, "execution_surface": "sandbox"}' data

run "$sandhost" exec --json -- 'ls /nope'
want_exit 2
want_json 'Command exited with 2' message
want_json "ls: cannot access '/nope': No such file or directory
" data stderr

# Killed by itself at once is no time-out.
run "$sandhost" exec --json --timeout 100 -- 'kill -9 $$'
want_exit 137
want_json false data timed_out
want_json 'Command exited with 137' message

run "$sandhost" exec -q -- printf '%s|' 'two words' '*' '$HOME'
want_out 'two words|*|$HOME|'

run_with 'from outside' "$sandhost" exec -q --stdin -- cat
want_exit 0
want_out 'from outside'
run "$sandhost" exec -q -- cat
want_exit 0
want_out ''

# A background process that holds the output open does not hold the result back; and ends with the sandbox.
mark="sleep 6$$" # of this test alone
run "$sandhost" exec -q -- "$mark & echo done"
want_exit 0
want_out done
[ -z "$(pgrep -f "^$mark\$" || true)" ] || fail "a process of the sandbox lives on"

# What is cut is told; what is kept is the beginning.
run "$sandhost" exec --json -- 'head -c 3000000 /dev/zero | tr "\0" x; echo done >&2'
want_exit 0
want_json true data stdout_truncated
want_json 'done
' data stderr
python3 - "$work/.out" <<'PY' || fail "the cap"
import json, sys
data = json.load(open(sys.argv[1]))["data"]
assert len(data["stdout"]) == 1000000, len(data["stdout"])
assert "stderr_truncated" not in data
PY
run "$sandhost" exec -q -- 'head -c 3000000 /dev/zero | tr "\0" x'
[ ${#out} -eq 3000000 ] || fail "live output is ${#out} bytes"

# The reader of the output goes away.
code=0
"$sandhost" exec -q -- 'yes' 2>"$work/.err" | head -n 1 >"$work/.out" || code=$?
grep -qx y "$work/.out" || fail "no output"

# A command that looks like an option of sh is a command.
run "$sandhost" exec -q -- '-x'
want_exit 127

# What cannot be written is told.
run bash -c '"$0" exec -q --json -- true >/dev/full' "$sandhost"
want_exit 125
want_in_err 'could not write standard output'

# The same of standard error, which cannot tell it itself; only a reader that has gone away is nobody. What the command asked
# for comes to its end where nothing is lost.
code=0
"$sandhost" exec -q -- 'echo err >&2; sleep 9' 2>/dev/full >"$work/.out" || code=$?
want_exit 125
run "$sandhost" show --json
want_json 'could not write standard error: No space left on device' final error
mkdir closed
code=0
"$sandhost" exec -q -w closed -- 'echo out; echo err >&2; echo 1 > g; exit 3' 2>&- >"$work/.out" || code=$?
want_exit 3
want_file "$work/.out" out
want_file closed/g 1
code=0
"$sandhost" exec -q -- 'echo out; exit 3' 2>"$work/.err" >&- || code=$?
want_exit 125
grep -qx 'sandhost: could not write standard output: Bad file descriptor' "$work/.err" || fail "a closed stdout is not told"
code=0
"$sandhost" exec -q -i -- 'cat; exit 3' <&- 2>"$work/.err" || code=$?
want_exit 3
# What cannot be read is no end of it: it is told, by every door that reads, and where nothing can be read nothing begins.
# What is closed from the start is empty.
count_runs() { "$sandhost" runs -j | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))'; }
before=$(count_runs)
for words in session 'session --stream' shell 'exec -i -- cat' 'exec -ij -- cat'; do
  code=0
  "$sandhost" $words </ >"$work/.out" 2>"$work/.err" || code=$?
  out=$(cat "$work/.out") err=$(cat "$work/.err")
  want_exit 125
  want_out ''
  want_err 'sandhost: could not read standard input: Is a directory'
  code=0
  "$sandhost" $words 0>"$work/.in" >"$work/.out" 2>"$work/.err" || code=$?
  want_exit 125
  grep -qx 'sandhost: could not read standard input: Bad file descriptor' "$work/.err" || fail "$words: $(cat "$work/.err")"
done
[ "$before" = "$(count_runs)" ] || fail "a run was begun without anything to read"
sleep 600 >/dev/null 2>&1 & # its memory has nothing at 0
at_exit+=("kill $!")
until [ "$(cat "/proc/$!/comm")" = sleep ]; do sleep 0.02; done # before that it has another memory
exec 8<"/proc/$!/mem"
for words in session shell 'exec -q -i -- cat;sleep' 'exec -q -j -i -- cat;sleep'; do
  code=0
  set -- $words
  "$sandhost" "${@//;sleep/; sleep 30}" <&8 >"$work/.out" 2>"$work/.err" || code=$?
  err=$(cat "$work/.err")
  want_exit 125
  grep -qx 'sandhost: could not read standard input: Input/output error' "$work/.err" || fail "$words: $err"
  [ "$(grep -c 'could not read' "$work/.err")" -eq 1 ] || fail "$words tells it twice: $err"
  run "$sandhost" show --json
  want_json failed status
  want_json 'could not read standard input: Input/output error' final error
done
exec 8<&-
for words in session shell; do
  code=0
  "$sandhost" $words <&- >"$work/.out" 2>"$work/.err" || code=$?
  out=$(cat "$work/.out") err=$(cat "$work/.err")
  want_exit 0
  want_out ''
  want_err ''
done
code=0
{ "$sandhost" exec -q -- 'yes >&2' 2>&1 >"$work/.out" || echo $? >gone; } | head -n 1 >"$work/.err"
want_file gone 141

# A record that is not there is not made by looking for it.
run "$sandhost" show --record missing.db
want_exit 125
want_in_err 'no run is recorded in missing.db'
[ ! -e missing.db ] || fail "show made a record"

# Whatever is to be printed and cannot be is told, by every door that looks into the record.
"$sandhost" exec -q -- 'echo printed' >/dev/null
for words in 'record verify' 'record verify -j' show 'show -j' 'show -e' 'show -o 1' runs 'runs -j' 'record prune --keep 1000 -j' 'cleanup' 'providers'; do
  run bash -c 'exec "$@" >/dev/full' bash "$sandhost" $words
  want_exit 125
  want_err 'sandhost: could not write standard output: No space left on device'
done
