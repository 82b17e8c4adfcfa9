# SPDX-License-Identifier: Apache-2.0
# sandhost cleanup: what a killed host left behind is listed and removed; what a living run holds is not touched.
. "$(dirname "$0")/lib.bash"

zoo=$SANDHOST_BUILD/tests/plugins
[ -e "$zoo/sandhost-sweeper.so" ] || skip "the test plugins are not built"
export SANDHOST_PLUGIN_PATH=$zoo SWEEPER_FOLDER=$work/sandboxes
mkdir "$SWEEPER_FOLDER"
sweeper=(--provider sweeper)
live=
trap '[ -z "$live" ] || kill -9 "$live" 2>/dev/null || true; cleanup' EXIT

# Starts a run that hangs in a sandbox; its process is $!, its sandbox $ref, its run $run_id.
start_hanging() {
  rm -f "$work/before" && ls "$SWEEPER_FOLDER" >"$work/before"
  "$sandhost" exec "${sweeper[@]}" -q -t 180 -- hang >/dev/null 2>&1 </dev/null &
  started=$!
  wait_until "no sandbox was made" \
    'ref=$(ls "$SWEEPER_FOLDER" | grep -vxFf "$work/before") && run_id=$(cat "$SWEEPER_FOLDER/$ref") && [ -n "$run_id" ]'
}

# Nothing at all, with a record that was never made: it is not made for that.
run "$sandhost" cleanup "${sweeper[@]}"
want_exit 0
want_out 'nothing of sweeper is left over'
[ ! -e "$SANDHOST_STATE_DIR/record.db" ] || fail "cleanup made a record"
run "$sandhost" cleanup --provider bubblewrap
want_exit 0
want_out 'nothing to clean up: a sandbox of bubblewrap ends with the sandhost that made it'

# A run that is over leaves nothing.
run "$sandhost" exec "${sweeper[@]}" -q -- true
want_exit 0
[ -z "$(ls "$SWEEPER_FOLDER")" ] || fail "a sandbox stayed behind an ordinary end"

start_hanging
dead_ref=$ref dead_run=$run_id
kill -9 "$started"
wait "$started" 2>/dev/null || true
start_hanging
live=$started live_ref=$ref live_run=$run_id
printf run_of_somebody_else >"$SWEEPER_FOLDER/old_stranger"
touch -d '2 hours ago' "$SWEEPER_FOLDER/old_stranger"
printf run_of_somebody_else >"$SWEEPER_FOLDER/young_stranger"

# Listed: nothing is removed.
run "$sandhost" cleanup "${sweeper[@]}"
want_exit 0
want_in_out "$dead_run"
want_in_out "$live_run"
want_in_out 'kept: its run goes on'
want_in_out 'kept: too young for a run that is not in this record'
want_in_out '2 left over; --all removes them, --run RUN those of one run'
want_in_out "perhaps of another user's sandhost: they are left alone until they are 3600 s old (--min-age)"
[ "$(ls "$SWEEPER_FOLDER" | wc -l)" -eq 4 ] || fail "a list removed something"
run "$sandhost" cleanup "${sweeper[@]}" --all --dry-run --json
want_exit 0
want_json 0 removed
[ "$(json sandboxes | grep -o '"would be removed"' | wc -l)" -eq 2 ] || fail "not two would be removed"
[ "$(ls "$SWEEPER_FOLDER" | wc -l)" -eq 4 ] || fail "a dry run removed something"

# One that goes on is refused.
run "$sandhost" cleanup "${sweeper[@]}" --run "$live_run"
want_exit 125
want_err "sandhost: run $live_run goes on; its sandbox is removed when it ends"
[ -e "$SWEEPER_FOLDER/$live_ref" ] || fail "the sandbox of a living run was removed"

# One run, by the beginning of its name.
run "$sandhost" cleanup "${sweeper[@]}" --run "${dead_run:0:16}"
want_exit 0
want_in_out 'removed 1'
[ ! -e "$SWEEPER_FOLDER/$dead_ref" ] || fail "the left-over stayed"
[ "$(ls "$SWEEPER_FOLDER" | wc -l)" -eq 3 ] || fail "more was removed than one run's"

# Everything, but the living and the young.
run "$sandhost" cleanup "${sweeper[@]}" --all
want_exit 0
want_in_out 'removed 1'
[ ! -e "$SWEEPER_FOLDER/old_stranger" ] || fail "the old left-over stayed"
[ -e "$SWEEPER_FOLDER/young_stranger" ] || fail "a young one of another record was removed"
[ -e "$SWEEPER_FOLDER/$live_ref" ] || fail "the sandbox of a living run was removed"
kill -0 "$live" || fail "the living run ended"

# A run that this record does not know keeps its hour, even when it is named; --min-age gives it less.
run "$sandhost" cleanup "${sweeper[@]}" --run run_of_somebody_else
want_exit 0
want_in_out 'kept: too young'
[ -e "$SWEEPER_FOLDER/young_stranger" ] || fail "a young one was removed"
run "$sandhost" cleanup "${sweeper[@]}" --run run_of_somebody_else --min-age 0 --json
want_exit 0
want_json 1 removed
want_json unknown sandboxes 0 run_state
want_json true sandboxes 0 removed

# One that has no run's name and cannot be told from a new one by anything but its age.
: >"$SWEEPER_FOLDER/nameless"
touch -d '3 hours ago' "$SWEEPER_FOLDER/nameless"
: >"$SWEEPER_FOLDER/new_nameless"
run "$sandhost" cleanup "${sweeper[@]}" --all --min-age 0
[ ! -e "$SWEEPER_FOLDER/nameless" ] || fail "the nameless one stayed"
[ -e "$SWEEPER_FOLDER/new_nameless" ] || fail "a new nameless one was removed"
[ -e "$SWEEPER_FOLDER/$live_ref" ] || fail "the sandbox of a living run was removed"
rm "$SWEEPER_FOLDER/new_nameless"

kill -TERM "$live"
wait "$live" || true
live=
[ -z "$(ls "$SWEEPER_FOLDER")" ] || fail "something stayed: $(ls "$SWEEPER_FOLDER")"

# What cannot be removed, and what makes no sense, is told.
printf run_x >"$SWEEPER_FOLDER/stuck"
touch -d '2 hours ago' "$SWEEPER_FOLDER/stuck"
run "$sandhost" cleanup "${sweeper[@]}" --option fault=stuck --all
want_exit 125
want_in_out 'not removed'
run "$sandhost" cleanup "${sweeper[@]}" --option fault=no-ref
want_exit 125
want_err 'sandhost: sweeper: sweep listed a sandbox without a name that is text'
run "$sandhost" cleanup "${sweeper[@]}" --option wrong=1
want_exit 2
want_in_err 'Unknown sweeper sandbox option(s): wrong'
run "$sandhost" cleanup "${sweeper[@]}" --option wrong
want_exit 2
want_err "sandhost: --option takes NAME=VALUE, got 'wrong'"
run "$sandhost" cleanup --all --run x
want_exit 2
want_err 'sandhost: --run and --all exclude each other'

# The configuration names the provider and its options.
unset SWEEPER_FOLDER
printf '{"register_sandbox_provider": {"sweeper": "%s"}, "governance_config": {"sandbox_config": {"provider": "sweeper", "options": {"folder": "%s"}}}}' \
  "$zoo/sandhost-sweeper.so" "$work/sandboxes" >agent.json
run "$sandhost" cleanup --config agent.json --all
want_exit 0
want_in_out 'removed 1'

# A provider that cannot be asked is told as JSON too.
SANDHOST_PLUGIN_PATH=$work run "$sandhost" cleanup --provider e2b --json
want_exit 125
want_json e2b provider
want_json null sweeps
[ "$(json error)" != null ] || fail "no error is told"
