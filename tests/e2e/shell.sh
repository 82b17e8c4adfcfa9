# SPDX-License-Identifier: Apache-2.0
# The shell runs each line in one sandbox; files stay, and what fails is told.
. "$(dirname "$0")/lib.bash"

run_with 'echo one > f
cat f
cd /tmp

exit 3 | false
exit
echo never' "$sandhost" shell
want_exit 0
want_out one
want_in_err '[copied back: f]'
want_in_err '[Command exited with 1]'
want_file workspace/files/f one
run "$sandhost" show --json
want_json 4 totals executions commands
want_json 1 totals executions sessions
run "$sandhost" shell extra
want_exit 2

# At a terminal: a prompt, Ctrl-C ends the command and not the run.
command -v script >/dev/null || skip "no script(1)"
mkfifo keys
script -qefc "$sandhost shell" /dev/null <keys >screen 2>&1 &
terminal=$!
exec 7>keys
wait_for() { wait_until "the screen lacks '$1'" "grep -qF '$1' screen"; }
wait_for 'sandhost> '
printf 'echo up; sleep 77%s\n' $$ >&7
wait_until "the command did not start" 'pgrep -f "^sleep 77$$\$" >/dev/null'
printf '\003' >&7
wait_for 'Command exited with 130'
printf 'echo still-$((40+2))\n' >&7
wait_for 'still-42'
printf 'exit\n' >&7
exec 7>&-
wait $terminal || fail "the shell ended with $?"

# A signal while it waits for a line ends the run, as cancelled; a last line without its end is a command too.
printf 'echo whole\necho last' | "$sandhost" shell >out 2>err || fail "the shell ended with $?: $(cat err)"
[ "$(cat out)" = $'whole\nlast' ] || fail "printed $(cat out)"
mkfifo lines
"$sandhost" shell <lines >out 2>err &
shell=$!
exec 7>lines
echo 'echo first' >&7
wait_until "the shell runs nothing" 'grep -q first out'
kill -TERM $shell
code=0
wait $shell || code=$?
exec 7>&-
[ $code -eq 143 ] || fail "ended with $code after SIGTERM: $(cat err)"
run "$sandhost" runs --json
want_in_out '"status":"cancelled"'
