# SPDX-License-Identifier: Apache-2.0
# sandhost cleanup with docker: a container that was made and never started, since its host was killed in between, is
# found and removed; what a living run holds, what is too young to tell, and what is not sandhost's is not touched.
. "$(dirname "$0")/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

engine_start --own docker # what removes any container needs an engine of its own
engine_image busybox:test busybox
engine=$DOCKER_HOST
docker=(-c agent.json)
cat >agent.json <<'JSON'
{"agent_config": {"tool_call_timeout": 1000,
  "governance_config": {"sandbox_config": {"provider": "docker", "options": {"image": "busybox:test"}}}}}
JSON
mkdir files

ids() { # of all containers with sandhost's label
  engine_api GET "/containers/json?all=1&filters=%7B%22label%22%3A%5B%22omnicoreagent.sandbox%3D1%22%5D%7D" |
    python3 -c 'import json, sys; print("\n".join(sorted(c["Id"] for c in json.load(sys.stdin))))'
}
about() { # ID KEY...
  out=$(engine_api GET "/containers/$1/json") code=0 err=''
  shift
  json "$@"
}
is_there() { [[ $'\n'$(ids)$'\n' == *$'\n'$1$'\n'* ]]; }

# A run whose host is killed when it asks for the start: a new container, $id, of $run_id, state "created".
leave_one() { # MODE
  ids >"$work/before"
  "$SANDHOST_SOURCE/tests/engine/bad-engine" "$1" "$work/bad.sock" --at /start --relay "$engine" >"$work/bad.log" 2>&1 &
  local bad=$! host
  wait_until "no bad engine" '[ -S "$work/bad.sock" ]'
  DOCKER_HOST=unix://$work/bad.sock "$sandhost" exec -q "${docker[@]}" -w files -- true >"$work/host.log" 2>&1 &
  host=$!
  wait_until "nothing was started" 'grep -q "/start !" "$work/bad.log"'
  kill -KILL $host
  wait $host 2>/dev/null || true
  kill -KILL $bad 2>/dev/null || true
  wait $bad 2>/dev/null || true
  rm -f "$work/bad.sock"
  id=$(ids | grep -vxFf "$work/before" || true)
  [ "$(wc -w <<<"$id")" -eq 1 ] || fail "not one container was left: '$id'"
  [ "$(about "$id" State Status)" = created ] || fail "the container is $(about "$id" State Status)"
  run_id=$(about "$id" Config Labels omnicoreagent.run)
}

# Nothing yet.
run "$sandhost" exec -q "${docker[@]}" -w files -- true # fills the guest's volume
want_exit 0
run "$sandhost" cleanup --provider docker
want_exit 0
want_out 'nothing of docker is left over'

leave_one mute
dead=$id dead_run=$run_id
leave_one mute
second=$id second_run=$run_id

# A living run, in this record; a stranger's, which is young; and a container that is somebody else's altogether.
"$sandhost" exec -q "${docker[@]}" -w files -t 1000 -- 'echo up; sleep 3600' >"$work/up" 2>&1 &
live=$!
at_exit+=("kill -9 $live 2>/dev/null")
wait_until "the living run did not start" 'grep -qs up "$work/up"'
live_id=$(ids | grep -vxF -e "$dead" -e "$second")
live_run=$(about "$live_id" Config Labels omnicoreagent.run)
make() { # LABELS
  out=$(engine_api POST /containers/create --json "{\"Image\": \"busybox:test\", \"Cmd\": [\"true\"], \"Labels\": {$1}}") code=0 err=''
  json Id
}
stranger=$(make '"omnicoreagent.sandbox": "1", "omnicoreagent.run": "run_of_another", "omnicoreagent.session": "x"')
foreign=$(make '"omnicoreagent.run": "run_of_another"')

# Listed, nothing removed.
run "$sandhost" cleanup --provider docker
want_exit 0
want_in_out "$dead_run"
want_in_out "$second_run"
want_in_out 'kept: its run goes on'
want_in_out 'kept: too young for a run that is not in this record'
want_in_out '2 left over; --all removes them, --run RUN those of one run'
want_not_in_out "$foreign"
for id in "$dead" "$second" "$live_id" "$stranger"; do is_there "$id" || fail "a list removed $id"; done
run "$sandhost" cleanup --provider docker --all --dry-run --json
want_exit 0
want_json 0 removed
[ "$(json sandboxes | grep -o '"would be removed"' | wc -l)" -eq 2 ] || fail "not two would be removed"

# The living one is refused, one run alone is removed.
run "$sandhost" cleanup --provider docker --run "$live_run"
want_exit 125
want_err "sandhost: run $live_run goes on; its sandbox is removed when it ends"
run "$sandhost" cleanup --provider docker --run "$dead_run"
want_exit 0
want_in_out 'removed 1'
! is_there "$dead" || fail "the left-over stayed"
is_there "$second" || fail "more than one run's was removed"

# Everything, but the living and the young.
run "$sandhost" cleanup --provider docker --all
want_exit 0
want_in_out 'removed 1'
! is_there "$second" || fail "the second left-over stayed"
is_there "$live_id" && is_there "$stranger" || fail "too much was removed"
kill -0 $live || fail "the living run ended"

# With less patience the stranger goes; what has no label of sandhost's, never.
run "$sandhost" cleanup --provider docker --run run_of_another --min-age 0 --json
want_exit 0
want_json 1 removed
! is_there "$stranger" || fail "the stranger stayed"
run "$sandhost" cleanup --provider docker --all --min-age 0
want_exit 0
engine_api GET "/containers/$foreign/json" >/dev/null || fail "a container without the label was removed"
is_there "$live_id" || fail "the living run's container was removed"
engine_api DELETE "/containers/$foreign" >/dev/null

# The way to the engine ends while it starts one: the container runs, finds its stream at the end, and is gone by itself.
"$SANDHOST_SOURCE/tests/engine/bad-engine" die "$work/bad.sock" --at /start --after 1 --relay "$engine" >"$work/bad.log" 2>&1 &
bad=$!
wait_until "no bad engine" '[ -S "$work/bad.sock" ]'
run env DOCKER_HOST="unix://$work/bad.sock" timeout 100 "$sandhost" exec -q "${docker[@]}" -w files -- true
wait $bad 2>/dev/null || true
want_exit 125
want_in_err "the Docker engine at unix://$work/bad.sock"
wait_until "the container outlived its stream" '[ "$(ids)" = "$live_id" ]'

# No volume stays behind either, but the guest's.
kill -TERM $live
wait $live || true
wait_until "a container stayed" '[ -z "$(ids)" ]'
volumes=$(engine_api GET /volumes | python3 -c 'import json, sys; print(" ".join(v["Name"] for v in json.load(sys.stdin)["Volumes"] or []))')
[[ $volumes == sandhost-guest-* && $volumes != *' '* ]] || fail "volumes stayed: $volumes"

# An engine that cannot be asked is told, and nothing is claimed.
run env DOCKER_HOST="unix://$work/none.sock" "$sandhost" cleanup --provider docker --all
want_exit 125
want_in_err 'there is no such socket'
