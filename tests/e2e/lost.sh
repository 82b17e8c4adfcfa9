# SPDX-License-Identifier: Apache-2.0
# A sandbox that dies under a command is told as lost; the next command gets a fresh one with the files copied in again.
. "$(dirname "$0")/lib.bash"

mark=99$$
# The sandbox of the command that sleeps so long: its init, whose own namespace calls it 1. Sets victim.
find_init() { # MARK
  wait_until "the command did not start" 'victim=$(pgrep -f "^sleep '"$1"'\$")'
  while [ "$(awk '/^NSpid:/ {print $NF}' "/proc/$victim/status")" != 1 ]; do
    victim=$(awk '/^PPid:/ {print $2}' "/proc/$victim/status")
  done
}
mkdir -p workspace/files
echo from-workspace >workspace/files/in.txt
mkfifo requests
"$sandhost" session <requests >answers 2>err &
session=$!
exec 7>requests
echo '{"id": 1, "command": "echo x > made; sleep '$mark'", "timeout": 180}' >&7
find_init "$mark"
kill -KILL "$victim"
# A command that is sent before the loss is noticed is lost with it.
wait_until "the loss is not told" '[ -s answers ]'
echo '{"id": 2, "command": "cat in.txt; ls"}' >&7
exec 7>&-
code=0
wait $session || code=$?
out=$(head -n 1 answers) err=$(cat err)
want_exit 0
want_json true data sandbox_lost
want_json false data timed_out
want_json 137 data exit_code
want_in_out 'The sandbox was lost during this command ('
want_in_out 'Files created in it are gone; the next command runs in a fresh sandbox with the workspace files copied in again.'
out=$(tail -n 1 answers)
want_json 'from-workspace
in.txt
' data stdout
run "$sandhost" show --json
want_json 2 totals executions sessions
want_json 2 totals executions commands
want_json 1 totals executions failed
want_json 0 totals executions timed_out
[ "$(grep -o '"lost": *[a-z]*' <<<"$out" | tr -d ' ' | tr '\n' ' ')" = '"lost":true "lost":false ' ] || fail "which session was lost"

# A command whose sandbox was gone before it was not begun, and is told so: nothing of it was lost.
printf '{"enable_workspace_files": false, "governance_config": {"sandbox_config": "bubblewrap"}}' >quiet.json
mkfifo more
"$sandhost" session --config quiet.json <more >answers 2>err &
session=$!
exec 7>more
echo '{"id": 1, "command": "sleep '$mark'1 </dev/null >/dev/null 2>&1 & echo begun"}' >&7
find_init "${mark}1"
wait_until "no answer to the first command" '[ -s answers ]'
kill -KILL "$victim"
wait_until "the sandbox does not die" '[ ! -e /proc/$victim ] || grep -q "^State:.*Z" /proc/$victim/status 2>/dev/null'
echo '{"id": 2, "command": "echo second"}' >&7
wait_until "no answer to the second command" '[ "$(wc -l <answers)" -ge 2 ]'
echo '{"id": 3, "command": "echo third"}' >&7
exec 7>&-
code=0
wait $session || code=$?
out=$(sed -n 2p answers) err=$(cat err)
want_exit 0
want_json 2 id
want_json null data
want_json not_started error_type
want_in_out 'The sandbox was lost before this command was started ('
want_in_out 'It was not started; the next command runs in a fresh sandbox with the workspace files copied in again.'
out=$(sed -n 3p answers)
want_json 'third
' data stdout
