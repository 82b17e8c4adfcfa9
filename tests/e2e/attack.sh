# SPDX-License-Identifier: Apache-2.0
# A hostile command in a bubblewrap sandbox, as root and as an ordinary user: it reaches nothing of the host, and what it
# does to itself ends with a result that is true. Prints each attempt with its outcome when ATTACK_VERBOSE is set.
# ATTACK_WHO: "runner" tries as whoever runs this, "other" as the ordinary user that root becomes; without it, as both.
#
# In a sanitized build the host is the sanitized one and the guest is as it is shipped: a sanitizer handles SIGSEGV and its
# like, and the kernel keeps from the first process of a sandbox only what that one does not handle.
if [ -n "$SANDHOST_SANITIZED" ]; then
  SANDHOST_BUILD=$SANDHOST_BUILD/shipped
fi
. "$(dirname "$0")/lib.bash"

attacks=$SANDHOST_SOURCE/tests/e2e/attack
python=$(command -v python3)
[ -x /usr/bin/python3 ] || skip "no /usr/bin/python3 for the inside"
limit() { timeout --kill-after 5 "$@"; } # a hang is a failure, too

# ---- Who runs it -------------------------------------------------------------------------------------------------------

# The ordinary user gets a copy of the programs: the build may lie where that user cannot go.
chmod 755 "$work"
as=() # words before each program
user=$((10000 + $$ % 50000)) # of this test alone: the kernel counts processes by user
become_user() {
  local built
  mkdir "$work/prefix"
  for built in bin/sandhost lib libexec; do
    mkdir -p "$work/prefix/$(dirname $built)"
    cp -rL "$SANDHOST_BUILD/$built" "$work/prefix/$(dirname $built)/"
  done
  find "$work/prefix" -name '*.a' -delete
  chmod -R a+rX "$work/prefix"
  mkdir -p "$work/user"
  chown $user:$user "$work/user"
  chmod 755 "$work/user"
  sandhost=$work/prefix/bin/sandhost
  attacks=$work/attacks
  cp -r "$SANDHOST_SOURCE/tests/e2e/attack" "$attacks"
  chmod -R a+rX "$attacks"
  python=/usr/bin/python3
  as=(setpriv --reuid $user --regid $user --clear-groups --inh-caps=-all)
  export HOME=$work/user SANDHOST_STATE_DIR=$work/user/state
  cd "$work/user"
}

# The folder below which who runs the host can make a group that limits memory, found by making one. Nothing: none.
group_place() {
  "${as[@]}" sh -c '
    root=/sys/fs/cgroup file=memory.max place=$(sed -n "s/^0:://p" /proc/self/cgroup)
    if ! [ -e $root/cgroup.controllers ]; then
      root=$root/memory file=memory.limit_in_bytes
      place=$(sed -En "s/^[0-9]+:([^:]*,)?memory(,[^:]*)?://p" /proc/self/cgroup)
      [ -d "$root$place" ] || place=
    fi
    while :; do
      probe=$root$place/sandhost-probe-$$
      if mkdir "$probe"; then
        written=0
        echo 67108864 >"$probe/$file" || written=1
        rmdir "$probe"
        [ $written -ne 0 ] || { echo "$root${place%/}" && exit; }
      fi
      # Of version 1 there is one place only.
      [ -n "$place" ] && [ $file = memory.max ] || exit 1
      place=${place%/*}
    done' 2>/dev/null
}
memory_can_be_limited() { group_place >"$work/.place"; }

# Gives the ordinary user a control group, as a service manager would. 1: nobody can make one here.
hand_out_group() {
  local place=() group member
  mapfile -t place < <(as=() && group_place)
  [ ${#place[@]} -eq 1 ] || return 1
  group=$place/sandhost-test-$$ member=$group
  mkdir "$group"
  at_exit+=("find '$group' -depth -type d -exec rmdir {} +")
  if [ -e "$group/cgroup.subtree_control" ]; then # version 2: processes are at the ends only
    echo +memory >"$group/cgroup.subtree_control"
    member=$group/own
    mkdir "$member"
  fi
  chown -R $user:$user "$group"
  as=(sh -c 'echo $$ >"$0" && exec "$@"' "$member/cgroup.procs" "${as[@]}")
}

fresh() { # an empty workspace, of who runs the host
  rm -rf files facts agent.json
  mkdir files
  [ ${#as[@]} -eq 0 ] || chown $user:$user files
}

config() { # MANIFEST [OPTIONS]
  cat >agent.json <<JSON
{"governance_config": {"profile": "interactive-dev", "sandbox_config": {"provider": "bubblewrap", "options": {${2:-}}},
                       "sandbox_manifest": {$1}}}
JSON
  chmod a+r agent.json
}

inside() { # WORDS OF EXEC...
  local configured=()
  [ ! -f agent.json ] || configured=(-y --config agent.json)
  run limit 120 "${as[@]}" "$sandhost" exec -w files "${configured[@]}" "$@"
}

nothing_left() { # MARK OF A PROCESS, WHAT WAS DONE
  [ -z "$(pgrep -f "^sleep $1\$" || true)" ] || fail "a process outlived the run: $2"
}

. "$attacks/session.bash"
. "$attacks/parts.bash"

said() { echo "$who: $*"; }

# ---- Attempts that have to be refused ------------------------------------------------------------------------------------

refused_attempts() { # [SCRIPT EXPECTED]
  local script=${1:-attempts} expected=${2:-expected}
  fresh
  bring attempts.py system.py
  [ "$script" = attempts ] || bring "$script.py"
  run limit 300 "${as[@]}" "$python" "$attacks/outside.py" "$PWD" "$sandhost" exec -q -t 200 -w files -- "python3 -B $script.py"
  want_exit 0
  want_in_err 'reached from inside: nothing'
  [ -z "${ATTACK_VERBOSE:-}" ] || printf '%s\n' "$out"
  printf '%s\n' "$out" >"$work/attempts"
  python3 "$attacks/judge.py" "$attacks/$expected.txt" "$attacks/$script.py" <"$work/attempts" >"$work/judged" ||
    fail "$(cat "$work/judged")"
  said "$script: $(cat "$work/judged")"
}

refused_tricks() { refused_attempts tricks expected-tricks; }

# Another sandbox of the same user, at the same time.
sandboxes_beside() {
  local number=3$$ other tries
  fresh
  bring beside.py
  rm -rf beside
  cp -r files beside
  [ ${#as[@]} -eq 0 ] || chown $user:$user beside
  "${as[@]}" "$sandhost" exec -q -w beside -t 180 -- "exec python3 -B beside.py be $number" >"$work/up" 2>&1 </dev/null &
  other=$!
  for ((tries = 0; tries < 3000; tries++)); do
    ! grep -qs up "$work/up" && kill -0 $other 2>/dev/null || break
    sleep 0.02
  done
  grep -q up "$work/up" || fail "the other sandbox did not start: $(cat "$work/up")"
  inside -q -- "exec python3 -B beside.py look $number"
  kill $other
  wait $other 2>/dev/null || true
  want_exit 0
  want_out $'files 0\nprocesses 0\nsockets False\nmemory False\nqueues False'
  rm -rf beside
  said "sandboxes beside each other: nothing of one is seen in the other"
}

racing_spy() {
  fresh
  config ''
  bring system.py spy.py
  python3 - >"$work/commands" <<'PY'
import json
print(json.dumps({"id": "spy", "command": "exec python3 -B spy.py", "timeout": 90}))
for number in range(300):
    print(json.dumps({"id": number, "command": "exec true" if number % 2 else "exec sleep 0.01", "timeout": 90}))
print(json.dumps({"id": "over", "command": "sleep 2; touch /tmp/over", "timeout": 90}))
PY
  run_with "$(cat "$work/commands")"$'\n' limit 120 "${as[@]}" "$sandhost" session -w files --config agent.json --yes
  want_exit 0
  [ "$(grep -c '"status":"success"' <<<"$out")" -eq 302 ] || fail "not every command ended well"
  grep '"id":"spy"' <<<"$out" | grep -qF '"stdout":"looked\n"' || fail "the spy: $(grep '"id":"spy"' <<<"$out")"
  said "a spy that looks into commands as they begin sees their own output only"
}

# With the network on the sandbox is in the host's network namespace, with its ports and its abstract sockets: the manual
# says so, and this is where it shows. All else stays shut.
network_on() {
  fresh
  config '"network_policy": {"default": "allow"}'
  bring attempts.py system.py
  run limit 120 "${as[@]}" "$python" "$attacks/outside.py" "$PWD" --reached "$sandhost" exec -q -y --config agent.json -w files -- \
    'python3 -B attempts.py host_sockets odd_sockets see_variables host_ipc'
  want_exit 0
  want_in_out 'host_sockets: abstract socket: DONE'
  want_in_out 'host_sockets: port on 127.0.0.1: DONE'
  want_in_out 'host_sockets: socket in a folder: ENOENT'
  want_in_out 'odd_sockets: AF_PACKET: EAFNOSUPPORT'
  want_in_out 'odd_sockets: AF_INET raw: EPERM'
  want_in_out 'odd_sockets: AF_VSOCK: EAFNOSUPPORT'
  want_in_out 'odd_sockets: AF_NETLINK generic: EPROTONOSUPPORT'
  want_in_out "see_variables: the host's secret: not seen"
  want_in_out 'host_ipc: shared memory by its key: ENOENT'
  said "network on: ports and abstract sockets of the host are reached, as documented; nothing else"
}

# The host has a terminal, with a line typed ahead; inside there is none, and nothing is typed into it.
host_terminal() {
  command -v script >/dev/null || {
    [ "$(id -u)" -ne 0 ] || fail "there is no script(1) to make a terminal with"
    left_out "at a terminal: no script(1)"
    return
  }
  fresh
  bring attempts.py system.py
  echo '{"outside": "/nowhere", "key": "", "secret": "x"}' >files/facts.json
  run limit 60 "${as[@]}" script -qec "'$sandhost' exec -q -w files -- 'python3 -B attempts.py terminal see_descriptors'" /dev/null
  out=${out//$'\r'/}
  want_exit 0
  want_in_out 'terminal: open /dev/tty: ENXIO'
  want_in_out 'terminal: terminal among 0, 1 and 2: no'
  want_in_out 'terminal: TIOCSTI: EPERM'
  want_in_out 'terminal: TIOCLINUX: EPERM'
  want_in_out 'terminal: TIOCSTI with upper bits: EPERM'
  said "at a terminal: none inside"
}

# ---- The guest and its keepers -------------------------------------------------------------------------------------------

# Bytes like those of the guest's stream are output like any other.
forged_frames() {
  fresh
  inside --json -- 'for i in $(seq 0 40); do printf "\\$(printf %03o $i)\0\0\0\1\0\0\0\0\0\0\0"; printf "\\$(printf %03o $i)\0\0\0\1\0\0\0\0\0\0\0" >&2; done; exit 9'
  want_exit 9
  want_json 'Command exited with 9' message
  inside -q -- 'for fd in 3 4 5 6 7 8 9; do (printf x >&$fd) 2>/dev/null && echo "written to $fd"; done; ls /proc/self/fd | tr "\n" " "'
  want_out '0 1 2 3 ' # 3 is the listing's own
  said "forged frames are output"
}

# ---- What is used up -----------------------------------------------------------------------------------------------------

processes() {
  fresh
  config '' '"pids_limit": 64'
  bring used_up.py
  session 'python3 -B used_up.py processes' 'echo served' 'python3 -B used_up.py threads' 'echo served'
  answer 0 out $'True 11*'
  answer 1 out $'served*'
  answer 2 out $'True*'
  # Processes that fill the sandbox and stay: what finds no room says so, and is not told as done.
  session 'for i in $(seq 80); do sleep 100 & done 2>/dev/null' 'sh -c "echo done; exit 7"' 'sh -c "echo done; exit 7"'
  answer 1 status error
  answer 2 status error
  # A bomb that only ends with its limit.
  session 'limit 3: b() { b | b & }; b 2>/dev/null; sleep 60' 'true' 'echo served'
  answer 0 status error
  answer 2 out $'served*'
  said "processes: bounded"
}

full_disks() {
  fresh
  config '' '"workdir_size": "16m", "tmp_size": "8m"'
  session 'for dir in . /tmp /dev/shm; do head -c 64m /dev/zero >$dir/full 2>/dev/null; stat -c "$? %s" $dir/full; done' \
    'echo served; rm -f full; echo written >after.txt' 'truncate -s 8E sparse; stat -c "%s" sparse; rm sparse' 'cat after.txt'
  answer 0 out $'1 16777216\n1 8388608\n1 8388608*'
  answer 1 out $'served*'
  answer 3 out $'written*'
  want_file files/after.txt written
  said "disks: full where they end"
}

# ---- What is left behind -------------------------------------------------------------------------------------------------

left_files() {
  fresh
  echo keep >"$work/outside.txt"
  mkdir "$work/outside"
  chmod a+rwx "$work/outside"
  chmod a+rw "$work/outside.txt"
  echo original >files/own.txt
  ln -s "$work/outside.txt" files/link.txt # of the host's making: nothing is written through it
  ln -s "$work/outside" files/linked
  [ ${#as[@]} -eq 0 ] || chown -R -h $user:$user files
  cat >"$work/mess.py" <<'PY'
import os, socket
def text(path, content="hostile\n"):
    with open(path, "w") as file:
        file.write(content)
text("good.txt", "good\n")
text("link.txt")
os.makedirs("linked", exist_ok=True)
text("linked/through.txt")
os.symlink("/etc/passwd", "passwd.txt")
os.symlink("/etc", "etc")
os.symlink("loop", "loop")
os.symlink("..", "up")
os.mkfifo("fifo")
socket.socket(socket.AF_UNIX).bind("socket")
os.truncate(os.open("sparse", os.O_CREAT | os.O_RDWR), 1 << 40)
os.truncate(os.open("huge.txt", os.O_CREAT | os.O_RDWR), 3000000)
text("-rf")
text("new\nline")
text("tab\tand\x1b[31mcolour")
text("back\\slash")
text("n" * 255)
text(".hidden")
os.makedirs(".ssh")
text(".ssh/authorized_keys")
with open(b"bad-\xff-name", "w") as file:
    file.write("x")
os.makedirs("run_1")
text("run_1/run.json")
deep = os.open(".", os.O_RDONLY)
for _ in range(40):  # longer than a path may be
    os.mkdir("d" * 200, dir_fd=deep)
    deep = os.open("d" * 200, os.O_RDONLY, dir_fd=deep)
os.close(os.open("deep.txt", os.O_CREAT | os.O_WRONLY, dir_fd=deep))
os.mkdir("closed", 0)
os.mkdir("checkout")
os.mkdir("checkout/.git")
text("checkout/inside.txt")
print("made")
PY
  run_with "$(cat "$work/mess.py")" limit 120 "${as[@]}" "$sandhost" exec -i -w files -- python3 -
  want_exit 0
  want_in_out made
  want_file files/good.txt good
  want_file "$work/outside.txt" keep
  [ -z "$(ls -A "$work/outside")" ] || fail "something was written through a folder's link"
  [ -z "$(find files -newer "$work/mess.py" ! -type f ! -type d | grep -v '^files/link' || true)" ] || fail "more than files came back: $(find files)"
  for name in passwd.txt etc loop up fifo socket sparse .hidden .ssh checkout/inside.txt run_1/run.json huge.txt; do
    [ ! -e "files/$name" ] && [ ! -L "files/$name" ] || fail "$name came back"
  done
  [[ $err != *$'\x1b'* ]] || fail "an escape sequence of the sandbox's making reached the terminal"
  said "files: only text comes back, and only where it belongs"
}

# A folder that is now a folder and now a link to the guest's /etc, while the host copies back.
racing_links() {
  fresh
  echo keep >files/own.txt
  [ ${#as[@]} -eq 0 ] || chown $user:$user files/own.txt
  inside -q -- 'mkdir a; for i in $(seq 100); do echo data >a/passwd; done
    (while :; do mv a b; ln -s /etc a; rm a; mv b a; done >/dev/null 2>&1 &) ; sleep 0.2; for i in $(seq 200); do echo $i >f$i; done'
  want_exit 0
  [ ! -L files/a ] || fail "a link came back"
  [ ! -e files/a/passwd ] || [ "$(cat files/a/passwd)" = data ] || fail "a file of /etc came back"
  want_file files/own.txt keep
  [ ! -e files/a/group ] || fail "/etc came back"
  said "links that come and go: nothing is followed"
}

many_files() {
  fresh
  inside -- 'python3 -c "
for i in range(100000):
    open(f\"f{i:06}\", \"w\").close()
print(\"made\")"'
  want_exit 0
  want_in_out made
  count=$(find files -type f | wc -l)
  [ "$count" -eq 500 ] || fail "$count files came back instead of 500"
  said "100,000 files: 500 come back"
}

# Deleting everything deletes what is the sandbox's own.
remove_everything() {
  fresh
  config ''
  echo keep >files/kept.txt
  [ ${#as[@]} -eq 0 ] || chown $user:$user files/kept.txt
  # Only with what the attempts above have shown, that /usr is read-only.
  session 'touch /usr/bin/env 2>/dev/null && exit 3; chmod -R a+w /etc /var /dev 2>/dev/null
    rm -rf --no-preserve-root /etc /var /dev /tmp /workspace /proc /bin /sbin /lib* /usr/bin /usr/sbin 2>/dev/null; echo tried' \
    'ls /usr/bin/env /etc/passwd; ls /workspace'
  answer 0 out $'tried*'
  answer 1 out $'/etc/passwd\n/usr/bin/env*'
  want_file files/kept.txt keep
  [ -x /usr/bin/env ] && [ -s /etc/passwd ] || fail "the host lost files"
  said "removing everything: the host keeps all"
}

# ---- What must still work --------------------------------------------------------------------------------------------------

ordinary_work() {
  fresh
  inside -q -- 'set -e
    python3 -c "
import concurrent.futures, multiprocessing, socket, subprocess, threading, signal, tempfile
subprocess.run([\"true\"], check=True)
print(sum(multiprocessing.Pool(2).map(abs, [-1, -2])))
thread = threading.Thread(target=print, args=(\"thread\",)); thread.start(); thread.join()
a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))"
    if command -v gcc >/dev/null; then
      printf "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }\n" >/tmp/c.c; gcc -o /tmp/c /tmp/c.c; /tmp/c; else echo compiled; fi
    if command -v node >/dev/null; then node -e "require(\"fs\").promises.readFile(\"/etc/passwd\").then(() => console.log(\"node\"))"; else echo node; fi
    if command -v git >/dev/null; then cd /tmp; git init -q r; cd r; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m; git log --format=%s; else echo m; fi
    if command -v strace >/dev/null; then strace -o /dev/null -f sh -c "echo traced"; else echo traced; fi
    if command -v gdb >/dev/null; then gdb -batch -ex run --args echo debugged 2>/dev/null | grep -o "^debugged"; else echo debugged; fi
    if command -v setarch >/dev/null; then setarch -R echo fixed; else echo fixed; fi'
  want_exit 0
  want_out $'3\nthread\nb\'x\'\ncompiled\nnode\nm\ntraced\ndebugged\nfixed'
  said "compilers, interpreters, git and debuggers work"
}

all() {
  local part
  for part in ${ATTACK_PARTS:-refused_attempts refused_tricks sandboxes_beside racing_spy network_on host_terminal killed_processes forged_frames processes zombies \
    hidden_processes starved_guest cancelled_bomb full_disks memory kept_memory output_flood kernel_objects left_processes \
    left_files hostile_workspace racing_links many_files remove_everything ordinary_work}; do
    $part
  done
  rm -rf "$work/outside" "$work/outside.txt"
}

if [ "${ATTACK_WHO:-}" != other ]; then
  who=root
  [ "$(id -u)" -eq 0 ] || who=user
  all
fi
[ "${ATTACK_WHO:-}" != runner ] || exit 0
if [ "$(id -u)" -ne 0 ]; then
  [ "${ATTACK_WHO:-}" != other ] || skip "an ordinary user runs this, and there is no other one to become"
  exit 0
fi
# The host of an ordinary user is the same program; the sandbox around it is looked at without sanitizers.
if [ -n "$SANDHOST_SANITIZED" ]; then
  [ "${ATTACK_WHO:-}" != other ] || skip "the attempts as an ordinary user are about the sandbox, not the host's memory"
  exit 0
fi
command -v setpriv >/dev/null || skip "no setpriv(1) to become an ordinary user with"
become_user
who=user memory_comes_later=said
all
who="user with a control group" memory_comes_later=
if hand_out_group; then
  ATTACK_PARTS='memory kept_memory' all
else
  left_out "memory, as an ordinary user: no control group can be handed out here"
fi
