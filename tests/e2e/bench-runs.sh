# SPDX-License-Identifier: Apache-2.0
# The benchmarks run to their end and measure every row. What they measure is nobody's business here: figures belong to
# ./bench.
. "$(dirname "$0")/lib.bash"

# What is measured has its own tests; here only the programs that measure are tried.
[ -z "$SANDHOST_SANITIZED" ] || skip "a sanitizer's figures mean nothing, and its guest starts in no image"

# A row that failed is a failure. One that is left out says a reason that a machine may have.
may_lack='not installed|it cannot here: .+|\./bench installs it|tests/engine/run starts an engine'
may_lack+="|too little to be seen beside this machine's other work"
judge_rows() {
  local bad
  if grep -E ' failed($|:)' <<<"$out"; then fail "a row failed"; fi
  bad=$(grep 'left out' <<<"$out" | grep -vE "left out: (.* is )?($may_lack)\$" || true)
  [ -z "$bad" ] || fail "left out without a reason that counts: $bad"
}
# Each is the beginning of a row with a figure.
want_rows() {
  local row found
  for row in "$@"; do
    found=$(grep -F -- "$row" <<<"$out") || fail "no row: $row"
    [[ ${found#*"$row"} =~ [0-9]\.[0-9] ]] || fail "a row without a figure: $found"
  done
}

# What is said of a row is found, whatever stands in it.
out=$'a row      1.0\na row    failed\n' code=0 err=''
(judge_rows) >/dev/null 2>&1 && fail "a row that failed passes"
out='a row    left out: for fun'
(judge_rows) >/dev/null 2>&1 && fail "a row that is left out for no reason passes"
out='a row    left out'
(judge_rows) >/dev/null 2>&1 && fail "a row that is left out without a word passes"
out='a row    left out: crun is not installed'
judge_rows
(want_rows 'a row') >/dev/null 2>&1 && fail "a row without a figure passes"

run "$SANDHOST_BUILD/bin/sandhost-bench" 3
want_exit 0
judge_rows
want_rows 'spawn a static true' 'spawn a dynamic true' 'sh -c true' 'memcpy' 'a pipe' 'SHA-256 of 20 MB, nettle' \
  'tar of 500 files' 'read 500 files' 'exec -- true' 'command in an open sandbox' 'open a sandbox' 'end a sandbox' \
  '50 sandboxes at once' '50 open sandboxes' 'an event on record' '500 files, 20 MB in' '500 files, 20 MB out' \
  'nothing changed in 10,000 files' 'all touched' 'none touched' '500 MB out of an open sandbox / through a pipe' \
  '2 GB out of sandhost exec' 'result kept' 'shown live' '1,000 command rules, other' '10,000 characters: words' '2,000 credentials'

run "$SANDHOST_BUILD/bin/sandhost-bench-whole" 3
want_exit 0
judge_rows
want_rows 'bubblewrap (ours)' 'a bare bwrap'

both='"$SANDHOST_BUILD/bin/sandhost-bench-docker" 3 && "$SANDHOST_BUILD/bin/sandhost-bench-whole" 3'
run bash "$SANDHOST_SOURCE/tests/engine/run" docker bash -c "$both"
[ "$code" -ne 77 ] || skip "$err"
want_exit 0
judge_rows
want_rows "the engine's exec" 'start a session' 'end a session' 'archive PUT' 'archive GET' 'sha256sum by exec' \
  '200 MB of output' '50 containers' 'memory for each' 'bubblewrap (ours)' 'exec -- true, docker'
