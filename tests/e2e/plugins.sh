# SPDX-License-Identifier: Apache-2.0
# The zoo: each bad plugin is told in its own words and ends with its own code, by every door that loads it, and the record
# after it says what became of the run.
. "$(dirname "$0")/lib.bash"

zoo=$SANDHOST_BUILD/tests/plugins
[ -d "$zoo" ] || skip "the test plugins are not built"
export SANDHOST_PLUGIN_PATH=$work/none # nothing but what a configuration names
config() { # NAME [FILE]
  printf '{"register_sandbox_provider": {"%s": "%s"}, "governance_config": {"sandbox_config": "%s"}, "enable_workspace_files": false}' \
    "$1" "${2:-$zoo/sandhost-$1.so}" "$1" >agent.json
}
try() { run timeout 100 "$sandhost" exec --config agent.json --timeout 5 -q -- true; }
status_is() { # STATUS: of the newest run
  run "$sandhost" show --json
  want_exit 0
  want_json "$1" status
}
whole() {
  run "$sandhost" record verify
  want_exit 0
  want_in_out ' 0 damaged'
}

# ---- Refused before anything begins ----------------------------------------------------------------------------------------

# What is refused never leaves a run, whichever door it stands at.
refused() { # NAME REASON
  local name=$1 words="provider file $zoo/sandhost-$1.so refused: $2"
  seen+=("$name")
  config "$name"
  try
  want_exit 2
  want_err "sandhost: $words"
  run "$sandhost" check agent.json
  want_exit 2
  want_err "sandhost: $words"
  run "$sandhost" doctor --config agent.json --no-try
  want_exit 1
  want_in_out "not usable: $words"
  words=${words//"$zoo"/$work/one}
  mkdir -p one
  rm -f one/*
  cp "$zoo/sandhost-$name.so" one/
  SANDHOST_PLUGIN_PATH=$work/one run "$sandhost" providers
  want_exit 0
  grep -qxF "$(printf '%-12s refused: %s' "$name" "$words")" <<<"$out" || fail "providers has no line of $name"
  SANDHOST_PLUGIN_PATH=$work/one run "$sandhost" providers "$name"
  want_exit 2
  want_err "sandhost: $words"
}

seen=()
refused noentry 'it has no entry sandhost_provider_1'
refused major 'it was built for ABI major 2, this host speaks 1'
refused short 'its table is 40 bytes, at least 256 are needed'
refused slotless 'it lacks the required operation write_file'
refused badname $'its name \'Bad\xef\xbf\xbdName\' is not valid'
refused othername "its name 'another' differs from the file's 'othername'"
refused flags 'it has unknown flags (0x104)'
refused threads 'its thread level 35 is not known'
refused options "its option 'size' is there twice"
refused unwilling 'it will not work with this host (ABI 1.0, host table of 96 bytes)'
[ ! -e "$SANDHOST_STATE_DIR" ] || fail "a refused plugin left a record"

cp "$zoo/sandhost-good.so" open.so
chmod 666 open.so
config good "$work/open.so"
try
want_exit 2
want_err "sandhost: provider file $work/open.so refused: it is writable by others (mode 0666)"
echo 'no library' >text.so
config good "$work/text.so"
try
want_exit 2
want_err "sandhost: provider file $work/text.so refused: $work/text.so: file too short"

# A file that nobody could name is told, not left out, and shows a terminal nothing of its own.
mkdir odd
for name in 'a b' UPPER '' $'e\033[31m' $'n\nl' "$(printf 'x%.0s' {1..33})"; do cp "$zoo/sandhost-good.so" "odd/sandhost-$name.so"; done
mkfifo odd/sandhost-fifo.so
SANDHOST_PLUGIN_PATH=$work/odd run "$sandhost" providers
want_exit 0
want_in_out "-            refused: provider file $work/odd/sandhost-a b.so refused: 'a b' is no name for a provider: lower-case letters"
want_in_out "fifo         refused: provider file $work/odd/sandhost-fifo.so refused: it is not a regular file"
[ "$(grep -c ' is no name for a provider: ' <<<"$out")" -eq 6 ] || fail "not every odd name is told"
[[ $out != *$'\033'* ]] || fail "a name reaches the terminal"

# ---- Loops for ever -----------------------------------------------------------------------------------------------------------

# Each takes the patience that the host has, so they go on beside all that follows.
seen+=(spin)
config spin
mv agent.json spin.json
declare -A spinning=()
for where in execute terminate; do
  SPIN_WHERE=$where "$sandhost" exec --config spin.json --record "spin-$where.db" -t 1 -q -- true >"spin-$where" 2>&1 </dev/null &
  spinning[$where]=$!
done
seen+=(stuck)
config stuck
mv agent.json stuck.json
for where in constructor entry start open; do
  if [ "$where" = open ]; then words='exec --config spin.json'; else words='exec --config stuck.json'; fi
  STUCK_IN=$where SPIN_WHERE=$where "$sandhost" $words --record "spin-$where.db" -t 1 -q -- true >"spin-$where" 2>&1 </dev/null &
  spinning[$where]=$!
done
STUCK_DEAF=1 STUCK_IN=constructor "$sandhost" exec --config stuck.json --record spin-deaf.db -q -- true >spin-deaf 2>&1 </dev/null &
spinning[deaf]=$!
STUCK_IN=entry "$sandhost" session --config stuck.json --record spin-session.db >spin-session 2>&1 </dev/null &
spinning[session]=$!
stuck() { # WHERE STDERR: nothing had begun
  code=0
  if [ "$1" = deaf ]; then # 20 seconds have passed by now; a host that does not see to it would never end
    for _ in $(seq 600); do
      kill -0 "${spinning[deaf]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${spinning[deaf]}" 2>/dev/null || true
  fi
  wait "${spinning[$1]}" || code=$?
  out='' err=$(<"spin-$1")
  want_exit 125
  want_err "$2"
  [ ! -e "spin-$1.db" ] || fail "stuck in $1 left a record"
}
spun() { # WHERE EXIT STDERR
  code=0
  wait "${spinning[$1]}" || code=$?
  out='' err=$(<"spin-$1")
  want_exit "$2"
  want_err "$3"
  run "$sandhost" show --json --record "spin-$1.db"
  want_exit 0
  want_json completed status
}

# ---- Survived with its message -----------------------------------------------------------------------------------------------

survived() { # NAME EXIT STATUS OF THE RUN, STDERR
  seen+=("$1")
  config "$1"
  try
  want_exit "$2"
  want_err "$4"
  status_is "$3"
}

survived empty 125 failed 'sandhost: empty: create said that it succeeded and gave no sandbox'
survived garbled 125 failed $'sandhost: no\xef\xbf\xbd \xef\xbf\xbd[31mred\xef\xbf\xbd'
survived twice 125 failed 'sandhost: the first reason'
survived loud 125 failed "sandhost: $(printf '%4096s' '' | tr ' ' a)"
survived late 127 completed ''
survived newer 127 completed ''
survived partial 127 completed ''
survived good 127 completed ''
survived hang 127 completed ''
survived nodeadline 127 completed ''
survived guarded 0 completed ''
survived sweeper 0 completed ''
survived serial 0 completed ''
survived liar 0 completed ''
survived leak 0 completed ''
survived meddler 0 completed ''

# A sandbox that does not end is told however quiet it is to be: it may cost money. The command's exit code stays.
left='sandhost: the stays sandbox good-1 may live on: the engine is away; sandhost cleanup cannot find what this provider leaves'
survived stays 127 completed "$left"
STAYS_WITH=50 survived stays 127 completed '' # it is gone, says the provider
STAYS_SWEEPS=1 survived stays 127 completed 'sandhost: the stays sandbox good-1 may live on: the engine is away; sandhost cleanup, with the same --config or --provider, finds what is left'
STAYS_UNSEEN=1 survived stays 125 failed 'sandhost: a stays sandbox may have been made: the connection broke; sandhost cleanup cannot find what this provider leaves
sandhost: the connection broke'
run "$sandhost" exec --config agent.json --json -- true
want_exit 127
want_err "$left"
want_json "[\"${left#sandhost: }\"]" warnings
want_json 127 data exit_code
STAYS_WITH=50 run "$sandhost" exec --config agent.json --json -- true
want_not_in_out warnings
STAYS_UNSEEN=1 run "$sandhost" exec --config agent.json --json -- true
want_exit 125
want_json '["a stays sandbox may have been made: the connection broke; sandhost cleanup cannot find what this provider leaves"]' warnings
run_with $'true\n' "$sandhost" shell --config agent.json
want_exit 0
want_in_err "$left"
run_with $'{"id": 1, "command": "true"}\n' "$sandhost" session --config agent.json
want_exit 0
want_err "$left"
python3 - "$out" "${left#sandhost: }" <<'PY' || fail "the session's last line is not the warning"
import json, sys
result, warning = map(json.loads, sys.argv[1].splitlines())
assert result["id"] == 1, result
assert warning == {"run_id": result["run_id"], "notice": sys.argv[2]}, warning
PY

# The result waits for the sandbox's end, but not where the program is told to end meanwhile, or was before.
config spin
SPIN_WHERE=terminate "$sandhost" exec --config agent.json --json -- true >held 2>told </dev/null &
host=$!
until [ -s told ]; do sleep 0.1; done
[ ! -s held ] || fail "the result was printed before the sandbox's end"
kill -TERM $host
until [ -s held ]; do sleep 0.1; done
kill -0 $host || fail "the program did not wait for the sandbox's end"
kill -KILL $host
wait $host || true
out=$(<held)
want_json 0 data exit_code
want_not_in_out warnings

# In create it ends with whoever cancels it.
config spin
SPIN_WHERE=create GOOD_LOG=$work/spins "$sandhost" exec --config agent.json -q -- true >.out 2>.err </dev/null &
host=$!
wait_until "create is not called" 'grep -qsx spins "$work/spins"'
kill -TERM $host
code=0
wait $host || code=$?
out=$(<.out) err=$(<.err)
want_exit 143
want_err 'sandhost: a spin sandbox may have been made: spin: create did not come back in time; sandhost cleanup cannot find what this provider leaves
sandhost: Tool execution cancelled'
status_is cancelled

# What is the thread's is put back, and the host leans on nothing of the process's that a plugin must not change.
for thing in errno locale thread-locale mask umask cwd environment; do
  config meddler
  printf '{"command":"x"}\n{"command":"y"}\n' >commands
  code=0
  MEDDLER_WITH=$thing "$sandhost" session --config agent.json --record "meddled-$thing.db" <commands >.out 2>.err || code=$?
  out=$(<.out) err=$(<.err)
  want_exit 0
  want_err ''
  [ "$(grep -c '"status":"success"' .out)" -eq 2 ] || fail "$thing: not two commands"
  [ -s "meddled-$thing.db" ] || fail "$thing: no record where it was asked for"
  [ "$(stat -c %a "meddled-$thing.db")" = 600 ] || fail "$thing: the record is not private"
  run "$sandhost" record verify --record "meddled-$thing.db"
  want_exit 0
  want_in_out '1 runs whole, 0 damaged'
done

# ---- What takes the program along ------------------------------------------------------------------------------------------

# exit(0) in a plugin is no success of a command.
config crash
for where in create execute terminate; do
  CRASH_HOW=exit CRASH_WHERE=$where try
  want_exit 125
  want_err "sandhost: the provider crash ended the program in $where; a run that had begun is on record as interrupted"
  status_is interrupted
done
CRASH_HOW=exit CRASH_WHERE=open try
want_exit 125
want_err 'sandhost: the provider crash ended the program in open; a run that had begun is on record as interrupted'
CRASH_HOW=exit CRASH_WHERE=open run "$sandhost" check agent.json
want_exit 125
for how in exit quit; do # in a process of its own even what no handler sees is told
  CRASH_HOW=$how run "$sandhost" doctor --config agent.json
  want_exit 1
  want_in_out '* crash      not usable: it ends the program (with 0)'
done
CRASH_HOW=exit run "$sandhost" provider test "$zoo/sandhost-crash.so" --only 'own name'
want_exit 2
want_err "sandhost: $zoo/sandhost-crash.so ends the program in: create: its own name"
run "$sandhost" exec --help
want_exit 0

crashed() { # HOW EXIT WORDS
  local where
  for where in create execute terminate; do
    CRASH_HOW=$1 CRASH_WHERE=$where try
    want_exit "$2"
    want_err "sandhost: the provider crash crashed ($3) in $where; a run that had begun is on record as interrupted"
    status_is interrupted
  done
}
seen+=(crash)
ulimit -c 0
# A sanitizer would have the last word.
export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0 TSAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0
crashed abort 134 Aborted
crashed segv 139 'Segmentation fault'
crashed bus 135 'Bus error'
crashed fpe 136 'Floating point exception'
crashed overflow 139 'Segmentation fault'
unset ASAN_OPTIONS TSAN_OPTIONS
run "$sandhost" doctor --config agent.json
want_exit 1
want_in_out 'not usable: it crashes (Aborted)'
whole
run "$sandhost" runs
want_exit 0

for where in constructor deaf entry session; do
  stuck $where 'sandhost: the provider stuck does not come back in loading'
done
stuck start 'sandhost: stuck: start did not come back in time'
stuck open 'sandhost: spin: open did not come back in time'

# A command that was done is done, whatever its sandbox's end comes to.
spun execute 125 'sandhost: The sandbox was lost during this command (spin: execute did not come back in time). Files created in it are gone; the next command runs in a fresh sandbox with the workspace files copied in again.'
spun terminate 0 'sandhost: waiting for the spin sandbox good-1 to end
sandhost: the spin sandbox good-1 may live on: spin: terminate did not come back in time; sandhost cleanup cannot find what this provider leaves'

# ---- Nobody is forgotten ---------------------------------------------------------------------------------------------------

# These need what their own tests give them: an option, a shell of this machine.
seen+=(lowered example)
for file in "$zoo"/*.so; do
  name=$(basename "$file" .so)
  [[ " ${seen[*]} " == *" ${name#sandhost-} "* ]] || fail "nothing is wanted of ${name#sandhost-}"
done
