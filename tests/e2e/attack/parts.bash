# SPDX-License-Identifier: Apache-2.0
# parts.bash: what a hostile command does to itself in any sandbox, and what has to come of it. Sourced by attack.sh and
# docker-attack.sh, which set what session.bash says, and define fresh, config, inside, said, nothing_left and
# memory_can_be_limited.

bring() { # FILE...: from this folder into the workspace
  local file
  for file in "$@"; do
    cp "$attacks/$file" files/
  done
}

# ---- Processes -----------------------------------------------------------------------------------------------------------

# Whatever the commands kill or stop: what they answer is true, and the next one is served, by the same sandbox or another.
killed_processes() {
  fresh
  config ''
  session 'kill -9 1; kill -STOP 1; kill -TERM 1; echo alive' \
    'kill -9 -1; echo after' 'echo served' 'kill -9 $PPID; sleep 0.2; echo told; exit 5' 'echo served' \
    'kill -9 $PPID $$' 'echo served' 'limit 4: kill -STOP $PPID; sleep 60' 'echo served' 'limit 4: sleep 300 & kill -STOP -1' 'echo served' \
    'limit 4: (trap "" TERM HUP INT; while :; do kill -STOP $PPID; done) & sleep 60' 'echo served' \
    'kill -9 $$' 'kill -SEGV $$' 'exit 137'
  answer 0 out $'alive*'
  answer 0 exit 0
  # All but itself and the first process. Without the guest the shells above the command are of its own kind, and gone.
  answer 1 timed_out false
  answer 1 lost false
  if [ "${guest:-always}" = always ]; then
    answer 1 out $'after*'
  else
    answer 1 exit 137
    answer 1 signal 9
  fi
  answer 2 out $'served*'
  answer 3 status error # its code, or that it was killed, but no success
  answer 3 timed_out false
  answer 3 message 'Command exited with *'
  answer 4 out $'served*'
  answer 5 exit 137
  answer 5 signal 9
  answer 5 timed_out false
  answer 6 out $'served*'
  answer 7 status error # the limit holds with nobody's help
  answer 7 timed_out true
  answer 8 out $'served*'
  answer 10 out $'served*'
  answer 11 timed_out true
  answer 12 out $'served*'
  answer 13 exit 137
  answer 13 signal 9
  answer 13 timed_out false
  answer 14 exit 139
  answer 14 signal 11
  answer 15 exit 137
  answer 15 timed_out false
  answer 15 killed_by ''
  said "processes killed and stopped: every answer is true, the next command is served"
}

left_processes() {
  local mark=5$$ way
  fresh
  config ''
  for way in '(setsid sleep MARK &)' 'python3 -c "
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        os.close(0); os.close(1); os.close(2)
        os.execvp(\"sleep\", [\"sleep\", \"MARK\"])
    os._exit(0)"' 'nohup sleep MARK >/dev/null 2>&1 &' 'trap "" TERM HUP INT; sleep MARK' 'sleep MARK'; do
    inside -q -t 2 -- "${way//MARK/$mark}"
    nothing_left "$mark" "$way"
  done
  said "processes: none is left"
}

# Two thousand, of a parent that waits for none, and orphans that the first process has to take.
zombies() {
  fresh
  config ''
  bring used_up.py
  session 'python3 -B used_up.py zombies' 'python3 -B used_up.py orphans' 'until ! grep -q "^State:.Z" /proc/[0-9]*/status; do sleep 0.1; done; echo none'
  answer 0 out $'True 11*'
  answer 1 out $'all*'
  answer 2 out $'none*'
  said "zombies are taken away"
}

# Whatever looks like a zombie, like the guest or like nobody's child goes with its command.
hidden_processes() {
  local seconds
  for seconds in 8 60; do
    fresh
    config ''
    bring hidden.py
    # First those that keep still, since a sandbox that is too lively may be ended as a whole.
    session "limit $seconds: python3 -B hidden.py headless zombie lines first keeper reaper siblings" 'python3 -B hidden.py look' \
      "limit $seconds: python3 -B hidden.py" 'test ! -d /tmp/hidden || python3 -B hidden.py look' \
      "limit $seconds: kill -9 \$PPID; exec python3 -B hidden.py" 'python3 -B hidden.py look; echo served'
    # They had all begun by their limit, unless the machine was too busy for that.
    [[ $(answer_of 0 out) != hidden* || $(answer_of 2 out) != hidden* ]] || break
  done
  answer 0 timed_out true
  answer 1 out $'8 were tried; alive: none*'
  answer 2 timed_out true
  [[ $(answer_of 3 out) != *alive* ]] || answer 3 out $'13 were tried; alive: none*'
  answer 4 status error
  answer 5 out $'*served*'
  [ "${guest:-always}" != always ] || answer 5 out $'13 were tried; alive: none*'
  said "hidden processes: none outlives its limit"
}

# Commands have the guest's user, so they may make it wait for everybody else; they do not get more time by that.
starved_guest() {
  fresh
  config ''
  session 'limit 4: python3 -c "
import os
for pid in [int(name) for name in os.listdir(\"/proc\") if name.isdigit()]:
    for change in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
                   lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))):
        try:
            change()
        except OSError:
            pass
for _ in range(4 * os.cpu_count()):
    if os.fork() == 0:
        break
while True:
    pass"' 'echo served'
  answer 0 timed_out true
  answer 0 message 'Command timed out after 4s'
  answer 1 out $'served*'
  said "a starved guest keeps the limit"
}

# Cancelled while it uses up whatever numbers of processes there are: all of it ends.
cancelled_bomb() {
  local mark=4$$ host tries
  fresh
  config '' '"pids_limit": 64'
  for signal in INT TERM; do
    rm -f "$work/bomb" # what the last one said is no word of this one
    # The first process forks but once: where no more can be begun a shell ends.
    "${as[@]}" "$sandhost" exec -q -y -c agent.json -w files -t 180 -- \
      "b() { (exec -a sleep-$mark sleep $mark) & b | b & }; echo going; (b) 2>/dev/null & exec sleep $mark" \
      >"$work/bomb" 2>&1 </dev/null &
    host=$!
    for ((tries = 0; tries < 3000; tries++)); do
      ! grep -qs going "$work/bomb" || break
      kill -0 $host 2>/dev/null || fail "the run ended before it was cancelled: $(cat "$work/bomb")"
      sleep 0.02
    done
    sleep 0.5 # most of what it can begin has begun
    kill -$signal $host
    for ((tries = 0; tries < 3000; tries++)); do
      kill -0 $host 2>/dev/null || break
      sleep 0.02
    done
    ! kill -0 $host 2>/dev/null || fail "sandhost goes on a minute after SIG$signal"
    code=0
    wait $host || code=$?
    [ "$code" -ne 0 ] || fail "a run that was cancelled by SIG$signal is told as a success"
    for ((tries = 0; tries < 1200; tries++)); do
      [ -n "$(pgrep -f "sleep.* $mark\$" || true)" ] || break
      sleep 0.05
    done
    [ -z "$(pgrep -f "sleep.* $mark\$" || true)" ] || fail "processes outlived SIG$signal: $(pgrep -af "sleep.* $mark\$")"
  done
  said "a bomb that is cancelled leaves nothing"
}

# ---- Memory ---------------------------------------------------------------------------------------------------------------

# Whether there is a limit here; who cannot have one is refused before anything starts.
has_memory_limit() {
  config '"resources": {"memory": "96m"}'
  inside -q -- true
  [ "$code" -ne 0 ] || return 0
  want_in_err 'memory'
  ! memory_can_be_limited || fail "memory can be limited here, but sandhost does not"
  # Whoever is given a control group afterwards has tried all of it in the end.
  "${memory_comes_later:-left_out}" "memory: no limit for this user; such a manifest is refused"
  return 1
}

memory() {
  local many=(true true true true true true true true true true true true true true true true) number
  fresh
  has_memory_limit || return 0
  # At most 400 MB, should the limit not hold.
  session 'python3 -c "
kept = []
for _ in range(400):
    kept.append(bytearray(b\"x\") * 1000000)
print(\"had them all\")"' 'echo served' 'x=$(head -c 400000000 /dev/zero | tr "\0" x); echo had them all' 'echo served' \
    'python3 -c "
import mmap
kept = [mmap.mmap(-1, 1 << 20) for _ in range(400)]
for one in kept:
    one.write(bytes(1 << 20))" & wait $!; echo that one was killed: $?' 'echo served'
  answer 0 exit 137
  answer 0 timed_out false
  answer 0 message "Command exited with 137 (killed: the sandbox's memory was used up)"
  answer 1 out $'served*'
  answer 2 exit 137
  answer 2 killed_by memory
  answer 3 out $'served*'
  answer 4 exit 0 # the command itself went on
  answer 4 out $'that one was killed: 137*'
  answer 5 out $'served*'
  # Files are memory, too. What cannot be served any more is told as lost, with this very cause, and a fresh one serves.
  config '"resources": {"memory": "48m"}'
  session "${many[@]}" 'for dir in . /tmp /dev/shm; do dd if=/dev/zero of=$dir/full bs=65536 count=2048 2>/dev/null; done; exit 5' 'echo tried' 'echo tried'
  for number in 16 17 18; do
    answer $number timed_out false
  done
  answer 16 exit 137
  answer 16 message '*memory was used up*'
  # Without a limit: a bounded amount is had, and given back.
  config ''
  session 'python3 -c "
kept = bytearray(b\"x\") * 300000000
print(len(kept))"' 'echo served'
  answer 0 out $'300000000*'
  answer 1 out $'served*'
  said "memory: bounded, and told as what it is"
}

# Memory that is nobody's: what the next command is told is true, and a later one is served.
kept_memory() {
  local number many=(true true true true true true true true)
  fresh
  has_memory_limit || return 0
  bring used_up.py
  session "${many[@]}" 'python3 -B used_up.py shared_memory' 'echo tried' 'python3 -B used_up.py anonymous_files' 'echo tried' \
    'python3 -B used_up.py full_pipes' 'echo tried' 'echo served'
  for number in 8 10 12; do
    answer $number status error
    answer $number timed_out false
    [[ $(answer_of $number out) != *'had it all'* ]] || fail "more memory than there may be"
  done
  for number in 9 11 13; do
    [[ $(answer_of $number out) == tried* ]] || answer $number message '*memory*'
  done
  answer 14 out $'served*'
  said "memory of nobody: bounded"
}

# ---- Output --------------------------------------------------------------------------------------------------------------

output_flood() {
  fresh
  config ''
  session 'limit 2: yes flood' 'limit 2: yes flood >&2 & yes flood' 'yes x | head -c 5000000; kill -9 $$' 'echo served' \
    'limit 20: exec 5</proc/self/fd/1; cat <&5 >/dev/null & echo mine; sleep 0.2' 'echo served'
  answer 0 timed_out true
  answer 0 message 'Command timed out after 2s'
  answer 1 timed_out true
  answer 2 exit 137
  answer 2 signal 9
  answer 3 out $'served*'
  # Who reads his own output takes it from himself only; without the guest, the words with his exit code may be in it.
  [ "${guest:-always}" != always ] || answer 4 exit 0
  answer 5 out $'served*'
  said "output: cut, and ends with the limit"
}

# ---- The working directory -----------------------------------------------------------------------------------------------

# What commands put where the host's files go, and where the guest reads: nothing is followed, nothing waits.
hostile_workspace() {
  fresh
  config ''
  echo first >files/own.txt
  mkdir files/folder
  echo first >files/folder/inner.txt
  [ ${#as[@]} -eq 0 ] || chown -R $user:$user files
  session 'cat own.txt folder/inner.txt; rm -r own.txt folder; mkfifo own.txt; ln -s /tmp folder; echo outside >/tmp/inner.txt' \
    'host: echo second >files/own.txt; echo second >files/folder/inner.txt' \
    'cat own.txt folder/inner.txt; grep second /tmp/inner.txt 2>/dev/null' \
    'rm -rf folder own.txt; mkdir -p own.txt/a; chmod 0 own.txt' \
    'host: echo third >files/own.txt' 'echo served' \
    'chmod -R u+rwx own.txt; rm -rf own.txt; mkfifo f1 f2; ln -s f1 l1; ln /etc/passwd hard 2>/dev/null; echo good >good.txt; ln good.txt hard3.txt' \
    'python3 -c "
import fcntl, os, signal, time
fd = os.open(\"leased.txt\", os.O_CREAT | os.O_RDWR)
os.write(fd, b\"x\")
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
fcntl.flock(fd, fcntl.LOCK_EX)
signal.signal(signal.SIGIO, signal.SIG_IGN)
print(\"leased\", flush=True)
time.sleep(100)" >/tmp/said 2>&1 & until grep -qs leased /tmp/said; do sleep 0.02; done' \
    'echo after >after.txt' 'chmod 0 .; echo shut' 'echo not reached'
  answer 0 out $'first\nfirst*'
  answer 2 out $'second\nsecond' # in the place of what was there, and not through it
  answer 5 out $'served*'
  answer 8 exit 0
  answer 9 out $'shut*'
  answer 10 status error
  want_file files/good.txt good
  want_file files/hard3.txt good
  want_file files/after.txt after
  [ ! -e files/leased.txt ] || want_file files/leased.txt x
  [ -z "$(find files ! -type f ! -type d)" ] || fail "more than files came back: $(find files ! -type f ! -type d)"
  [ ! -e files/hard ] || fail "/etc/passwd came back"
  said "a hostile working directory: nothing is followed, nothing waits"
}

# ---- What the kernel keeps -----------------------------------------------------------------------------------------------

# One sandbox has all that it can have: it is served, and so is another one of the same user at the same time.
kernel_objects() {
  fresh
  config ''
  bring used_up.py
  rm -rf beside
  mkdir beside
  [ ${#as[@]} -eq 0 ] || chown $user:$user beside
  session 'python3 -B used_up.py objects' 'echo served; sh -c "exit 7"; echo $?' \
    "host: '$sandhost' exec -q -y -c agent.json -w beside -- 'echo also served; echo back >back.txt'" \
    'kill -9 -1; sleep 0.2; echo over' 'echo served again'
  answer 0 exit 0
  answer 0 out $'descriptors: E*'
  answer 1 out $'served\n7*'
  answer 2 out $'also served*'
  answer 2 exit 0
  want_file beside/back.txt back
  answer 4 out $'served again*'
  rm -rf beside
  said "kernel objects: who has all of them harms nobody else"
}
