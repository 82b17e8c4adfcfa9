# SPDX-License-Identifier: Apache-2.0
# sandhost doctor: each provider is told with what is wrong and what to do; one that crashes takes nobody along; a try
# leaves nothing behind and pulls nothing. And what a person sees while a sandbox is made.
. "$(dirname "$0")/lib.bash"

zoo=$SANDHOST_BUILD/tests/plugins
[ -e "$zoo/sandhost-sweeper.so" ] || skip "the test plugins are not built"
mkdir plugins sandboxes
for name in sweeper guarded lowered partial; do
  cp "$zoo/sandhost-$name.so" plugins/
done
export SANDHOST_PLUGIN_PATH=$work/plugins SWEEPER_FOLDER=$work/sandboxes GOOD_LOG=$work/log
unset GUARDED_API_KEY

# The line of a provider in $out.
line() { grep -E "^[* ] $1 " <<<"$out" || fail "no line of $1"; }
want_line() { # NAME TEXT
  [[ $(line "$1") == *"$2"* ]] || fail "the line of $1 lacks: $2"
}

run "$sandhost" doctor --provider sweeper
want_exit 0
want_in_out 'config       none given; provider sweeper'
want_in_out 'record.db: can be written'
want_in_out 'user namespaces'
want_line sweeper '* sweeper    usable; declares nothing and is trusted with every manifest'
want_line guarded 'not usable: needs the option api_key (GUARDED_API_KEY)'
want_line lowered 'not usable: needs the option base_url'
want_line partial 'not usable: sh -c : ends with 127 in a sandbox of it'
want_line local 'usable (not tried); runs commands on this machine itself; keeps network on, plain environment'
[ -z "$(ls sandboxes)" ] || fail "a try left a sandbox"
grep -q terminate log || fail "nothing was tried"
[ ! -e "$SANDHOST_STATE_DIR" ] || fail "asking made a record"

rm log
run "$sandhost" doctor --provider sweeper --no-try
want_exit 0
want_line sweeper 'usable (not tried)'
! grep -q create log || fail "a sandbox was made in spite of --no-try"

# With its key the service is tried.
GUARDED_API_KEY=k run "$sandhost" doctor --provider sweeper
want_line guarded 'usable; keeps network off (checked), network on'

# What would be pulled is not; it is said.
SWEEPER_FAULT=unpulled run "$sandhost" doctor --provider sweeper
want_exit 0
want_line sweeper 'an image is pulled at the first use: there is no image tiny'

# A provider that hangs is left after its time, and a signal ends everything at once.
SWEEPER_FAULT=slow timeout --preserve-status -s TERM 2 "$sandhost" doctor --provider sweeper >/dev/null 2>&1 && fail "was not ended" || code=$?
[ "$code" -eq 143 ] || fail "exit $code instead of 143"

# What is not there, and what is not right.
run "$sandhost" doctor --provider docker2
want_exit 1
want_in_out '--provider must be a registered sandbox provider'
run "$sandhost" doctor --provider e2b
want_exit 1
want_in_out '* e2b        not usable: The e2b sandbox provider is not installed'
echo '{"governance_config": {"sandbox_config": "sweeper", "profile": "nonsense"}}' >agent.json
run "$sandhost" doctor --config agent.json
want_exit 1
want_in_out 'config       agent.json: '
echo '{"governance_config": {"sandbox_config": "local"}}' >agent.json
run "$sandhost" doctor --config agent.json
want_exit 1
want_line local 'not usable: The local sandbox does not enforce network off'
echo '{"governance_config": {"sandbox_config": {"provider": "lowered", "options": {"base_url": "x"}}}}' >agent.json
run "$sandhost" doctor --config agent.json --no-try --json
want_exit 0
want_json true ok
want_json lowered provider
json providers >/dev/null
lowered=$(python3 -c '
import json, sys
for p in json.load(sys.stdin)["providers"]:
    if p["selected"]:
        print(p["name"], p["usable"], p["tried"], p["enforces"]["memory"], p["lowered"]["memory"])' <<<"$out")
[ "$lowered" = 'lowered True False - there is no memory controller' ] || fail "JSON says: $lowered"
run "$sandhost" doctor --config agent.json --no-try
want_in_out 'not here: a memory limit: there is no memory controller'

echo '{}' >agent.json
run "$sandhost" doctor --config agent.json
want_exit 1
want_in_out 'no sandbox is configured'

mkdir broken && printf 'no database at all, but long enough to be looked at as one' >broken/record.db
SANDHOST_STATE_DIR=$work/broken run "$sandhost" doctor --provider sweeper
want_exit 1
want_in_out 'is not a record of sandhost'

# A provider that crashes is one line.
cp "$zoo/sandhost-crash.so" plugins/
run "$sandhost" doctor --provider sweeper
want_exit 0
want_line crash 'not usable: it crashes (Aborted)'
rm plugins/sandhost-crash.so

# A plugin that takes its process along while it is loaded, or does not come back, is named, and the others are told.
cp "$zoo/sandhost-hang.so" plugins/
HANG_HOW=abort run "$sandhost" providers
want_exit 0
want_in_out "hang         refused: $work/plugins/sandhost-hang.so: it crashes (Aborted)"
want_in_out 'sweeper '
HANG_HOW=abort run "$sandhost" providers hang
want_exit 125
want_err "sandhost: $work/plugins/sandhost-hang.so: it crashes (Aborted)"
HANG_HOW=abort run "$sandhost" provider test plugins/sandhost-hang.so
want_exit 2
want_err 'sandhost: plugins/sandhost-hang.so crashes in: being loaded'
export HANG_HOW=hang
"$sandhost" provider test plugins/sandhost-hang.so >/dev/null 2>test.err &
test=$!
"$sandhost" doctor --provider sweeper >doctor.out 2>&1 &
doctor=$!
run "$sandhost" providers
want_exit 0
want_in_out "hang         refused: $work/plugins/sandhost-hang.so: it does not come back"
wait $doctor || fail "doctor fails: $(cat doctor.out)"
grep -q 'hang .*it does not come back' doctor.out || fail "doctor does not tell of it: $(cat doctor.out)"
code=0
wait $test || code=$?
want_exit 2
[ "$(cat test.err)" = 'sandhost: plugins/sandhost-hang.so does not come back from: being loaded' ] || fail "$(cat test.err)"
unset HANG_HOW
rm plugins/sandhost-hang.so
run "$sandhost" provider test missing.so
want_exit 2
want_err "sandhost: provider file missing.so refused: No such file or directory"

# What the checks made in their folder goes with them.
if [ -e "$SANDHOST_BUILD/lib/sandhost/providers/sandhost-local.so" ]; then
  mkdir checks
  run "$sandhost" provider test "$SANDHOST_BUILD/lib/sandhost/providers/sandhost-local.so" --working-dir checks --only command
  want_in_out ' passed'
  [ -z "$(ls -A checks)" ] || fail "left behind: $(ls -A checks)"
fi

# ---- Progress ----

# Elsewhere than at a terminal only what takes long is told, or everything with -v; a cancel ends it at once.
SWEEPER_FAULT=slow run timeout --preserve-status -s TERM 1 "$sandhost" exec --provider sweeper -- true
want_exit 143
[[ $err != *pulling* ]] || fail "a short wait is told"
SWEEPER_FAULT=slow "$sandhost" exec -v --provider sweeper -- true >/dev/null 2>slow.err </dev/null &
host=$!
wait_until "no progress is told" 'grep -q "layer 2" slow.err'
kill -TERM $host
code=0
wait $host || code=$?
err=$(<slow.err)
want_exit 143
want_in_err 'sandhost: pulling layer 1 of 2'
want_in_err 'sandhost: pulling layer 2 of 2'

# At a terminal it is one line that is written over and goes away.
command -v script >/dev/null || skip "no script(1) for the terminal"
export SWEEPER_FAULT=
TERM=xterm run script -qec "$sandhost exec -q --provider sweeper -- true" /dev/null
want_exit 0
[[ $out == *$'\r\033[Kmaking a sandbox\r\033[K'* ]] || fail "no line that is written over: $(printf %q "$out")"
