# SPDX-License-Identifier: Apache-2.0
# An operation that never comes back is told by the conformance suite, with the checks that are left; nobody waits in the
# dark meanwhile: each line is there as soon as it is known.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
hang=$SANDHOST_BUILD/tests/plugins/sandhost-hang.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0
complain() { echo "$*" >&2; wrong=1; }

# What runs is cut short by the suite itself; a suite that hangs is ended by ctest.
hanging() { # OPERATION WORDS...
  local how=$1 code=0
  shift
  HANG_HOW=$how "$sandhost" provider test "$hang" "$@" </dev/null >"$work/$how.out" 2>"$work/$how.err" || code=$?
  echo $code >"$work/$how.code"
}
checks=(--only 'create: its own name' --only 'execute: caps' --only 'execute: started' --only 'files: missing')
for how in open create execute terminate; do
  hanging $how --patience 10 "${checks[@]}" &
done
hanging close --patience 10 --only 'files: missing' &
wait

is() { # OPERATION CODE; expected stdout on stdin
  [ "$(cat "$work/$1.code")" = "$2" ] || complain "$1: ended with $(cat "$work/$1.code")"
  diff - "$work/$1.out" || complain "$1: something else is said"
}
is create 1 <<'TEXT'
hang 1.0: a provider for tests
FAILED  create: its own name
        found: create did not come back within 10 s
        asked: an operation is back two seconds after its deadline at the latest
untried execute: caps: could not be tried: an operation before it did not come back
untried execute: started: could not be tried: an operation before it did not come back
untried files: missing: could not be tried: an operation before it did not come back
0 passed, 1 failed, 0 skipped, 3 could not be tried
TEXT
grep -qxF "sandhost: $hang does not come back from: create; what it has made may still be there" "$work/create.err" ||
  complain "create: $(cat "$work/create.err")"
grep -qxF '        found: execute did not come back within 10 s' "$work/execute.out" || complain "execute: $(cat "$work/execute.out")"
grep -qxF '        found: terminate did not come back within 10 s' "$work/terminate.out" || complain "terminate: $(cat "$work/terminate.out")"
[ "$(cat "$work/execute.code") $(cat "$work/terminate.code")" = '1 1' ] || complain "execute or terminate did not end with 1"
is close 1 <<'TEXT'
hang 1.0: a provider for tests
passed  files: missing
FAILED  close
        found: close did not come back within 10 s
        asked: an operation is back two seconds after its deadline at the latest
1 passed, 1 failed, 0 skipped
TEXT
is open 2 </dev/null
[ "$(cat "$work/open.err")" = "sandhost: $hang does not come back from: being opened" ] || complain "open: $(cat "$work/open.err")"

# Without --patience it has the time of its call and a minute: what is there until then can be read.
HANG_HOW=execute "$sandhost" provider test "$hang" --progress --only 'create: its own name' --only 'files: missing' \
  --only 'execute: caps' </dev/null >"$work/lines" 2>&1 &
suite=$!
for ((i = 0; i < 600; i++)); do
  ! grep -q '^running execute' "$work/lines" || break
  sleep 0.1
done
kill -9 $suite
wait $suite 2>/dev/null || true
diff - "$work/lines" <<'TEXT' || complain "what was said until the suite was killed"
hang 1.0: a provider for tests
running create: its own name
passed  create: its own name
running execute: caps
TEXT

# A terminal shows the name of what is being tried, and takes it back.
TERM=xterm script -qec "'$sandhost' provider test '$hang' --only 'files: missing'" "$work/typed" </dev/null >/dev/null
grep -qF $'running files: missing\r\e[Kpassed  files: missing' "$work/typed" || complain "a terminal: $(cat -v "$work/typed")"

for patience in 0 -1 x 1x 86401; do
  code=0
  "$sandhost" provider test "$hang" --patience $patience </dev/null >"$work/out" 2>&1 || code=$?
  [ $code -eq 2 ] && grep -q '^usage: ' "$work/out" || complain "--patience $patience: $code"
done
exit $wrong
