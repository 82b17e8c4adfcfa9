# SPDX-License-Identifier: Apache-2.0
# A hostile command in a container of the docker provider, with the guest and without: it reaches nothing of the host and
# of the engine, what it does to itself ends with a result that names the true cause, and afterwards the engine is as it
# was. The engine is this script's own, so that all it holds can be counted. ATTACK_VERBOSE prints what came of everything.
. "$(dirname "$0")/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

attacks=$SANDHOST_SOURCE/tests/e2e/attack
python=python3
as=()
# Minutes alone on the machine; e2e/attack brings the same attempts to a sanitized host.
[ -z "$SANDHOST_SANITIZED" ] || skip "the attempts are about the sandbox, not the host's memory"
limit() { timeout --kill-after 5 "$@"; } # a hang is a failure, too
. "$attacks/session.bash"
. "$attacks/parts.bash"
engine_start --own docker
engine_image python:test python

fresh() { rm -rf files agent.json && mkdir files; }
config() { # MANIFEST [OPTIONS]
  cat >agent.json <<JSON
{"agent_config": {"tool_call_timeout": 1000,
  "governance_config": {"profile": "interactive-dev", "sandbox_manifest": {$1}, "sandbox_config": {"provider": "docker",
    "options": {"image": "python:test", "guest": "$guest", "workdir_size": "24m", "tmp_size": "8m"${2:+, $2}}}}}}
JSON
}
inside() { # WORDS OF EXEC...
  run limit 120 "$sandhost" exec -c agent.json -y -w files "$@"
}
said() {
  [ -z "${ATTACK_VERBOSE:-}" ] || printf '%s\n' "${answers:-}"
  answers=
  echo "guest $guest: $*"
}
nothing_left() { # MARK OF A PROCESS, WHAT WAS DONE
  [[ $(containers) == '[]' ]] || fail "a container is left: $2"
  [ -z "$(pgrep -f "^sleep $1\$" || true)" ] || fail "a process outlived its container: $2"
}
memory_can_be_limited() { engine_api GET /info | grep -q '"MemoryLimit":true'; }
containers() { engine_api GET "/containers/json?all=1&filters=%7B%22label%22%3A%5B%22omnicoreagent.sandbox%3D1%22%5D%7D"; }

# ---- The host is well --------------------------------------------------------------------------------------------------

# What the engine holds: its processes, the mounts that it sees, its containers, volumes and control groups.
holdings() {
  python3 - "$(<"$engine_folder/first.pid")" <<'PY'
import os, sys
first, parents, names = int(sys.argv[1]), {}, {}
for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            with open(f"/proc/{name}/stat") as file:
                text = file.read()
        except OSError:
            continue
        parents[int(name)] = int(text.rpartition(")")[2].split()[1])
        names[int(name)] = text[text.index("(") + 1:text.rindex(")")]
below = [pid for pid in parents]
def is_below(pid):
    while pid > 1:
        if pid == first:
            return True
        pid = parents.get(pid, 0)
    return False
print("processes", sorted(names[pid] for pid in parents if is_below(pid)))
with open(f"/proc/{first}/mountinfo") as file:
    print("mounts", sorted(line.split()[4] for line in file))
PY
  echo "containers $(containers)"
  echo "volumes $(engine_api GET /volumes | python3 -c 'import json, sys
print(sorted(v["Name"] for v in json.load(sys.stdin)["Volumes"] or []))')"
}

# Removal goes on for a moment when a session has ended.
want_well() { # WHAT WAS DONE
  local until=$((SECONDS + 180))
  until holdings >"$work/after" && diff "$work/before" "$work/after" >"$work/difference"; do
    [ "$SECONDS" -lt "$until" ] || fail "after $*, the engine holds: $(cat "$work/difference")"
    sleep 0.1
  done
  fresh
  config ''
  inside -q -- 'echo well'
  want_exit 0
  want_out well
}

# ---- Attempts that have to be refused ----------------------------------------------------------------------------------

try_attempts() { # SCRIPT EXPECTED NAMES EXCEPTIONS...
  local script=$1 expected=$2 names=$3
  shift 3
  run limit 300 python3 "$attacks/outside.py" "$PWD" "$sandhost" exec -q -y -c agent.json -t 200 -w files -- \
    "python3 -B $script.py ${names//,/ }"
  want_exit 0
  want_in_err 'reached from inside: nothing'
  [ -z "${ATTACK_VERBOSE:-}" ] || printf '%s\n' "$out"
  printf '%s\n' "$out" >"$work/attempts"
  python3 "$attacks/judge.py" ${names:+--only "$names"} "$attacks/$expected.txt" "$attacks/$script.py" "$@" <"$work/attempts" >"$work/judged" ||
    fail "$(cat "$work/judged")"
  said "$script: $(cat "$work/judged")"
}

refused_attempts() {
  fresh
  config ''
  bring attempts.py container.py tricks.py system.py
  # Another container of the same engine, at the same time.
  mkdir -p "$work/other"
  echo here >"$work/other/beside-86397.txt"
  "$sandhost" exec -q -y -c agent.json -w "$work/other" -t 1000 -- 'echo up; exec sleep 86397' >"$work/up" 2>&1 &
  local other=$!
  wait_until "the other container did not start" 'grep -qs up "$work/up"'
  if [ "$guest" = always ]; then
    try_attempts attempts expected '' "$attacks/expected-docker.txt"
    try_attempts container expected-container ''
    try_attempts tricks expected-tricks ''
  else
    # The filter of system calls is the guest's, and so is what its processes are protected with.
    try_attempts attempts expected \
      read_host_files,read_devices,make_devices,write_system,write_proc,identity,gain_privileges,see_processes,new_namespaces,mounts,file_handles,host_sockets,host_ipc,setuid_programs \
      "$attacks/expected-plain.txt" "$attacks/expected-docker.txt"
    try_attempts container expected-container \
      engine_sockets,engine_network,control_groups,system_settings,masked_files,mounted_folders,etc_files,guest_file,other_containers \
      "$attacks/expected-plain.txt"
    try_attempts tricks expected-tricks links_to_files,writable_proc
  fi
  kill -0 $other || fail "the other container ended"
  kill $other
  wait $other || true
}

# ---- The first process -------------------------------------------------------------------------------------------------

# The first process' input, output and memory, from inside. With the guest nothing of it can be opened.
speaking_for_it() {
  fresh
  config ''
  local tell='import os, struct
done = 0
for number in range(128):
    for path in (f"/proc/1/fd/{number}", f"/proc/1/task/1/fd/{number}"):
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            continue
        done += 1
        for frame in (b"\1\0\0\0\0\0\0\4fake", struct.pack("<IBBHI", 12, 5, 0, 0, 1) * 64, bytes(range(256)) * 64):
            try:
                os.write(fd, frame)
            except OSError:
                pass
print("written to", done)'
  session "python3 -c '$tell'" 'echo served' 'i=0; while [ $i -lt 256 ]; do printf "\\$(printf %03o $i)\0\0\0\0\0\0\5hello\36"; i=$((i + 1)); done; exit 9' 'echo served'
  [ "$guest" != always ] || answer 0 out $'written to 0*'
  answer 0 exit 0
  answer 1 out $'served*'
  answer 2 exit 9
  answer 2 message 'Command exited with 9'
  answer 3 out $'served*'
  # To end the sandbox is what a command may do to itself: told as lost, and not as anything else.
  if [ "$guest" != always ]; then
    session "python3 -c 'import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, 1, None, None) == 0:
    os.waitpid(1, 0)
    libc.ptrace(8, 1, None, None)
import time; time.sleep(3)'" 'echo served'
    answer 0 timed_out false
    answer 1 out $'served*'
  fi
  said "nobody speaks for the first process"
}

# ---- What is used up ---------------------------------------------------------------------------------------------------

processes() {
  local number
  fresh
  config '' '"pids_limit": 64'
  bring used_up.py
  session 'limit 4: b() { b | b & }; b 2>/dev/null; exec sleep 60' 'echo served' \
    'limit 4: f() { f & f & wait; }; (sleep 0.3; f) 2>/dev/null & exec sleep 60' 'echo served' \
    'python3 -B used_up.py processes' 'echo served' 'python3 -B used_up.py threads' 'echo served'
  answer 0 message 'Command timed out after 4s'
  answer 0 timed_out true
  answer 1 out $'served*'
  answer 2 timed_out true
  answer 3 out $'served*'
  answer 4 out $'True 11*'
  answer 5 out $'served*'
  answer 6 out $'True*'
  answer 7 out $'served*'
  # Processes that fill the sandbox and stay: what finds no room says so; that is no limit of time.
  session 'for i in $(seq 80); do sleep 7 & done 2>/dev/null' 'echo done' 'sleep 0; sh -c "echo done; exit 7"'
  for number in 1 2; do
    answer $number timed_out false
    answer $number lost false
  done
  answer 2 status error
  said "processes: bounded"
}

full_disks() {
  fresh
  config ''
  session 'for dir in . /tmp /dev/shm; do dd if=/dev/zero of=$dir/full bs=65536 count=2048 2>$dir.err; stat -c "$? %s" $dir/full; done 2>/dev/null; true' \
    'for dir in . /tmp /dev/shm; do dd if=/dev/zero of=$dir/full bs=65536 count=2048 2>/dev/null; echo "$? $(stat -c %s $dir/full)"; done' \
    'echo served; echo no >more; echo $?' 'rm -f full; echo written >after.txt; cat after.txt' \
    'python3 -c "
import os
made = 0
try:
    for number in range(70000):
        os.close(os.open(f\"f{number}\", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as error:
    print(made, error.errno)
for number in range(made):
    os.unlink(f\"f{number}\")"' 'echo served' \
    'truncate -s 8E sparse; rm -f sparse; echo tried'
  answer 1 out $'1 25165824\n1 8388608\n1 67108864*'
  answer 1 exit 0
  answer 2 out $'served\n1*'
  answer 3 out $'written*'
  want_file files/after.txt written
  answer 4 out $'6[0-9][0-9][0-9][0-9] 28*' # of the 64k that there may be
  answer 5 out $'served*'
  answer 6 out $'tried*'
  said "disks: full where they end"
}

# ---- What is removed and left ------------------------------------------------------------------------------------------

remove_everything() {
  fresh
  config ''
  echo keep >files/kept.txt
  session 'rm -rf / 2>/dev/null; cd / && rm -rf bin etc usr lib lib64 dev proc sys .sandhost tmp workspace 2>/dev/null; rm -rf /workspace/* /tmp/*; echo tried' \
    'ls /bin/sh /etc/passwd; ls -A | wc -l' 'cd / && rm -rf ./* 2>/dev/null; exit 3'
  answer 0 out $'tried*'
  answer 1 out $'/bin/sh\n/etc/passwd\n0*'
  answer 1 exit 0
  answer 2 exit 3
  want_file files/kept.txt keep
  inside -q -- 'ls /bin/sh; cat kept.txt' # the image is as it was
  want_exit 0
  want_out $'/bin/sh\nkeep'
  said "removing everything: the host and the image keep all"
}

for guest in ${ATTACK_GUESTS:-always never}; do
  fresh
  config ''
  inside -q -- true # fills the guest's volume, which stays
  want_exit 0
  holdings >"$work/before"
  for part in ${ATTACK_PARTS:-refused_attempts killed_processes speaking_for_it processes zombies hidden_processes \
    starved_guest cancelled_bomb full_disks memory kept_memory output_flood kernel_objects hostile_workspace remove_everything \
    left_processes}; do
    $part
    want_well "$part"
  done
done
