# SPDX-License-Identifier: Apache-2.0
# The built-in local_test keeps the contract, as far as a handler can: it gets words and gives text and a number, so it
# has no input, no folder, no bytes that are no text, and cannot be ended; and it does not see the sandbox's files, which
# are in memory. The suite's checks that need none of that are these.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/inside"
export JUDGED_FOLDER=$folder/inside

wrong=0
while read -r check; do
  "$SANDHOST_BUILD/bin/sandhost" provider test "$SANDHOST_BUILD/tests/judged/sandhost-local_test.so" --only "$check" </dev/null >"$folder/verdict" 2>&1 &&
    grep -qxF "passed  $check" "$folder/verdict" || { cat "$folder/verdict"; wrong=1; }
done <<'CHECKS'
create: its own name
network: on
sandbox: many at once
terminate: twice
terminate: cancelled caller
terminate: use after
execute: exit codes
execute: caps
execute: floods
execute: split characters
execute: words
execute: large command
execute: started
execute: bad requests
execute: in parallel
limit: not confused
cancel: before create
files: sizes
files: names
files: missing
execute: its thread
process: limits and groups
progress: one line
CHECKS
exit $wrong
