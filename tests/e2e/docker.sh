# SPDX-License-Identifier: Apache-2.0
# The docker provider on a real engine: its options and the manifest, its refusals, its ends, and what it leaves behind.
. "$(dirname "$0")/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

engine_start --own docker # it removes what it finds
engine_image busybox:test busybox
mkdir files

config() { # MANIFEST OPTIONS
  cat >agent.json <<JSON
{"governance_config": {"profile": "interactive-dev", "sandbox_manifest": {$1},
  "sandbox_config": {"provider": "docker", "options": {"image": "busybox:test"${2:+, $2}}}}}
JSON
}
inside() { run "$sandhost" exec -q -w files -c agent.json --yes -- "$@"; }
leftover() { engine_api GET "/containers/json?all=1&filters=%7B%22label%22%3A%5B%22omnicoreagent.run%3D$1%22%5D%7D"; }

# ---- What a container is, from inside ----------------------------------------------------------------------------------

config '"environment": {"plain": {"APP_ENV": "test"}}'
export LEAKED=from-the-host
inside 'id -u; id -g; pwd; hostname; env | sort | cut -d= -f1 | tr "\n" " "; echo; echo "$HOME $APP_ENV"'
want_exit 0
want_out "65534
65534
/workspace
sandbox
APP_ENV HOME HOSTNAME PATH PWD SHLVL 
/tmp test" 
inside 'grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status | tr -d "\t" | tr "\n" " "'
want_out 'CapEff:0000000000000000 CapBnd:0000000000000000 NoNewPrivs:1 Seccomp:2 '
inside 'touch /root-file /etc/x /.sandhost/x; ls /sys/class/net; cat /proc/1/environ /.sandhost/guest; ls /var/run/docker.sock'
want_exit 1
want_out lo
want_in_err 'Read-only file system'
want_in_err "can't open '/proc/1/environ': Permission denied"
want_in_err "can't open '/.sandhost/guest': Permission denied"
inside 'df -k /workspace | tail -n 1 | { read -r a size b; echo $size; }; df -k /tmp | tail -n 1 | { read -r a size b; echo $size; }; stat -c "%a %u" .; ulimit -n; ulimit -c'
want_out "1048576
65536
700 65534
1024
0"

# ---- Options and manifest ----------------------------------------------------------------------------------------------

config '"resources": {"memory": "64m", "cpu": "0.5"}, "working_dir": "/home/me"' '"user": "1000", "workdir_size": "8m", "pids_limit": 20'
inside 'id -u; id -g; pwd; df -k . | tail -n 1 | { read -r a size b; echo $size; }; cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true'
want_exit 0
want_out "1000
1000
/home/me
8192
67108864"
inside 'dd if=/dev/zero of=big bs=1M count=9'
want_exit 1
want_in_err 'No space left on device'
# A fork bomb: its own limit ends it, and says so.
run "$sandhost" exec -w files -c agent.json --yes -t 3 -- 'f() { f & f & wait; }; (sleep 0.3; f) 2>/dev/null & exec sleep 60'
want_exit 137
want_in_err 'timed out'
# Used up memory is told as that, and not as a time-out.
"$sandhost" exec -q --json -w files -c agent.json --yes -- 'x=$(cat /dev/zero | tr "\0" x)' >answer || true
out=$(cat answer) code=0 err=''
want_json 137 data exit_code
want_json false data timed_out
inside 'kill -9 $$'
want_exit 137
inside 'kill -9 -1; echo still here' # all but itself and the first process
want_exit 0
want_out 'still here'
inside 'rm -rf / 2>/dev/null; echo gone: $(ls | wc -l)'
want_out 'gone: 0'
# More orphans than there may be processes: each few are waited for by whoever took them.
run "$sandhost" exec -q -w files -c agent.json --yes -t 180 -- 'i=0; while [ $i -lt 1000 ]; do
  (exec true &)
  i=$((i + 1))
  [ $((i % 8)) -ne 0 ] || until [ $(ls -d /proc/[0-9]* 2>/dev/null | wc -l) -lt 10 ]; do sleep 0.1; done
done; echo taken'
want_exit 0
want_out taken

# An image that declares a volume gets memory there, not the engine's disk.
engine_image with-volume:test busybox 'VOLUME /data'
config '"image": "with-volume:test"'
inside 'mount | grep " /data " | cut -d" " -f5'
want_out tmpfs

# A folder of this machine, read-only and writable.
mkdir "$work/mounted"
echo here >"$work/mounted/a"
chmod 777 "$work/mounted"
config "\"workspace_mount\": {\"source\": \"$work/mounted\", \"target\": \"/mnt/in\"}"
inside 'cat /mnt/in/a; touch /mnt/in/b'
want_exit 1
want_out here
want_in_err 'Read-only file system'
config "\"workspace_mount\": {\"source\": \"$work/mounted\", \"target\": \"/mnt/in\", \"mode\": \"read_write\"}"
inside 'echo there > /mnt/in/b'
want_exit 0
want_file "$work/mounted/b" there
for source in / /etc "${DOCKER_HOST#unix://}"; do
  config "\"workspace_mount\": {\"source\": \"$source\", \"target\": \"/mnt/in\"}"
  inside true
  want_exit 125
  want_in_err 'must not be mounted'
done

# The network: asked for, and then there.
config '"network_policy": {"default": "allow"}'
inside 'ls /sys/class/net | grep -v lo'
if [ -n "$engine_gateway" ]; then
  want_exit 0
  want_in_out eth
fi

# ---- Refusals ----------------------------------------------------------------------------------------------------------

config '' '"user": "nobody"'
inside true
want_exit 2
want_in_err "docker sandbox option 'user' must be numeric ('uid' or 'uid:gid') so the working directory can belong to it"
config '' '"pull": "always"'
inside true
want_exit 2
want_in_err "docker sandbox option 'pull' must be 'if_missing' or 'never'"
config '' '"network": "none"'
inside true
want_exit 2
want_in_err 'Unknown docker sandbox option(s): network'
config '"network_policy": {"default": "deny", "allowed_hosts": ["pypi.org"]}'
inside true
want_exit 2
want_in_err "The docker sandbox does not enforce a network host allowlist (allowed_hosts): use network_policy default 'deny' or 'allow', or a provider that enforces one (modal, http)"
config '"image": "nobody/has-this:1"' '"pull": "never"'
inside true
want_exit 125
want_in_err 'Sandbox image nobody/has-this:1 is not present and pulling is disabled'
config '' '"runtime": "no-such-runtime"'
inside true
want_exit 125
want_in_err "Container runtime 'no-such-runtime' is not available to Docker (for gVisor, install runsc and register it with the Docker daemon)"
config '"working_dir": "/"'
inside true
want_exit 2
want_in_err 'cannot be /'

# ---- The same through the engine's own calls ---------------------------------------------------------------------------

config '' '"guest": "never"'
echo given >files/given.txt
inside 'cat given.txt; echo made > made.txt; echo to stderr >&2; exit 3'
want_exit 3
want_out given
want_in_err 'to stderr'
want_file files/made.txt made
inside 'ls -d /.sandhost'
want_exit 1
run "$sandhost" exec -w files -c agent.json -t 1 -- 'sleep 60 & sleep 60'
want_exit 137
want_in_err 'timed out'

# ---- Ends --------------------------------------------------------------------------------------------------------------

config ''
mark=$$
"$sandhost" exec -q -w files -c agent.json -t 180 -- "echo up; sleep 3$mark" >up 2>&1 &
host=$!
wait_until "the command did not start" 'grep -q up up'
run_id=$("$sandhost" show --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["run_id"])')
[[ $(leftover "$run_id") == *omnicoreagent.session* ]] || fail "no container with the run's label"
kill -KILL $host
wait $host 2>/dev/null || true
wait_until "the container outlived its host" '[ "$(leftover "$run_id")" = "[]" ]'

# Somebody removes the container under a command: told as lost, with the reason, and the next one gets a fresh sandbox.
(
  echo '{"id": 1, "command": "echo begun > f; sleep 5'$mark'", "timeout": 180}'
  while ! grep -q '"id":1' answers 2>/dev/null; do sleep 0.05; done
  echo '{"id": 2, "command": "ls; echo fresh > g"}'
) | timeout 300 "$sandhost" session -w files -c agent.json >answers 2>errors &
host=$!
ours='/containers/json?filters=%7B%22label%22%3A%5B%22omnicoreagent.sandbox%3D1%22%5D%7D'
wait_until "the command did not start" 'pgrep -f "^sleep 5$mark\$" >/dev/null'
id=$(engine_api GET "$ours" | grep -o '"Id": *"[0-9a-f]*"' | grep -o '[0-9a-f]\{64\}')
engine_api DELETE "/containers/$id?force=1" >/dev/null
wait $host || true
out=$(cat answers)
[[ $out == *'"id":1,'*'The sandbox was lost during this command (its container was killed).'* ]] || fail "not told as lost"
[[ $out == *'"id":2,'*fresh* || -f files/g ]] || fail "no fresh sandbox"

# ---- Bad engines -------------------------------------------------------------------------------------------------------

for mode in mute hangup cut lying garbage refuse; do
  "$SANDHOST_SOURCE/tests/engine/bad-engine" "$mode" "$work/bad.sock" >bad.log 2>&1 &
  bad=$!
  wait_until "no bad engine" '[ -S "$work/bad.sock" ]'
  run env DOCKER_HOST="unix://$work/bad.sock" timeout 100 "$sandhost" exec -q -w files -c agent.json -- true
  kill $bad 2>/dev/null || true
  wait $bad 2>/dev/null || true
  rm -f "$work/bad.sock"
  want_exit 125
  want_in_err "the Docker engine at unix://$work/bad.sock"
done
run env DOCKER_HOST="unix://$work/none.sock" "$sandhost" exec -q -w files -c agent.json -- true
want_exit 125
want_in_err 'there is no such socket; start it, or set DOCKER_HOST or the option host'
run env DOCKER_HOST="smtp://x" "$sandhost" exec -q -w files -c agent.json -- true
want_exit 2
