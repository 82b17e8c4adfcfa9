# SPDX-License-Identifier: Apache-2.0
# The guest under valgrind, while the conformance suite has it do all that a guest can, and its own tests send it what no
# client of ours would: no invalid read or write, nothing that depends on memory that nobody set, no leak. Its keepers are
# under it too, until they run a command.
source "$(dirname "${BASH_SOURCE[0]}")/lib.bash"

# Both want to replace malloc.
[ -z "$SANDHOST_SANITIZED" ] || skip "a guest with sanitizers does not run under valgrind"
[ -x "$SANDHOST_BUILD/valgrind/guest-for-valgrind" ] || skip "this build counts what is reached, and has no guest for valgrind"
command -v valgrind >/dev/null || skip "there is no valgrind"
conformance=$(find "$SANDHOST_BUILD"/lib* -name sandhost-conformance -type f)
provider=$(find "$SANDHOST_BUILD"/lib* -name sandhost-local.so -path '*/sandhost/providers/*')

# A folder of guests whose only one is valgrind with ours; a folder for each of the two that start guests, since one of them
# has a namespace of processes, and its numbers, for itself. Quiet: what stands in its files is a finding, but for lines
# that begin with "--", which say that valgrind does not know a call of the kernel (openat2; the guest does without).
for who in suite hostile; do
  mkdir -p $who/guests $who/found $who/own
  cat >"$who/guests/sandhost-guest-$(uname -m)" <<EOF
#!/bin/sh
: >"$work/$who/own/\$\$"
exec valgrind -q --leak-check=full --errors-for-leak-kinds=definite,possible --show-leak-kinds=definite,possible \\
  --suppressions=$SANDHOST_SOURCE/tests/e2e/guest-valgrind.supp --log-file=$work/$who/found/%p \\
  "$SANDHOST_BUILD/valgrind/guest-for-valgrind" "\$@"
EOF
  chmod 755 $who/guests/*
done
mkdir files

# Beside the tests below: most of it is waiting for limits and deadlines.
unshare --fork --pid --mount-proc --kill-child \
  "$conformance" "$provider" --guest-dir "$work/suite/guests" --working-dir "$work/files" >verdict 2>&1 </dev/null &
suite=$!
at_exit+=("! kill $suite 2>/dev/null || wait $suite")

# Broken frames, streams that are none, windows overrun; archives with links, odd names and broken ends; files that are
# none; scripts that are too long. Left out is what valgrind does not have: openat2, a failing exec, few descriptors.
hostile() { # TEST OF THE GUEST, OPTIONS...
  run env SANDHOST_TEST_GUESTS="$work/hostile/guests" "$SANDHOST_BUILD/bin/test-guest-$1" "${@:2}"
  want_exit 0
}
hostile greeting
hostile transfers
hostile files -s /guest/files/read -s /guest/files/write
hostile control -p /guest/control/cancel -p /guest/control/full-pipe -p /guest/control/full-stream \
  -p /guest/control/end-of-stream -p /guest/control/stdin -p /guest/control/stdin-window -p /guest/control/stdin-closed \
  -p /guest/control/stdin-unread -p /guest/control/parallel -p /guest/control/too-many
hostile commands -s /guest/commands/surroundings -s /guest/commands/file-limit-is-kept -s /guest/commands/large-argument

# What commands inherit there are valgrind's own descriptors as well.
wait $suite || true # one check fails
run cat verdict
while read -r name; do
  [ "$name" = "execute: fresh state" ] || fail "under valgrind: $name"
done < <(sed -n 's/^FAILED *//p' <<<"$out")
want_in_out ' passed, 1 failed, '

# A keeper is forked in the middle of a function of the guest, whose memory it never hands back: its leaks are none.
findings=$(
  for file in {suite,hostile}/found/*; do
    [ -e "${file%%/*}/own/${file##*/}" ] && leaks=1 || leaks=0
    sed -E '/^--[0-9]+-- /d; s/^==[0-9]+== ?//' "$file" | awk -v RS= -v leaks=$leaks 'leaks || !/ lost in loss record /'
  done
)
[ -z "$findings" ] || fail "valgrind found: $(head -c 6000 <<<"$findings")"
guests=$(find {suite,hostile}/own -type f | wc -l) processes=$(find {suite,hostile}/found -type f | wc -l)
[ "$guests" -ge 80 ] && [ "$processes" -gt "$guests" ] || fail "valgrind ran $guests guests and $processes processes only"
