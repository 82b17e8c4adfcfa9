# SPDX-License-Identifier: Apache-2.0
# The host, bwrap and the guest are stopped and continued hundreds of times, which interrupts whatever waits for
# descriptors or time: every command of the session is answered, and as it should be.
. "$(dirname "$0")/lib.bash"

mkdir files
cat >stop.py <<'PY'
import json, os, signal, subprocess, sys, time

COMMANDS = 40
command = "head -c 300000 /dev/zero | tr '\\0' x >f%d; seq 20000 | tail -n 1; sleep 0.05"
host = subprocess.Popen([sys.argv[1], "session", "-w", "files"], stdin=subprocess.PIPE, stdout=open("answers", "wb"))
for number in range(COMMANDS):
    host.stdin.write(json.dumps({"id": number, "command": command % (number % 7), "timeout": 180}).encode() + b"\n")
host.stdin.close()


def family():  # the host, bwrap, the guest and the first of its keepers
    found = [host.pid]
    for pid in found:
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as children:
                    found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found[:6]


rounds = 0
while host.poll() is None:
    if rounds % 20 == 0:
        several = family()
    for pid in several:
        for number in signal.SIGSTOP, signal.SIGCONT:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
    rounds += 1
    time.sleep(0.002)
print(rounds, "rounds")
assert host.returncode == 0, host.returncode
with open("answers") as file:
    answers = [json.loads(line) for line in file]
assert sorted(answer["id"] for answer in answers) == list(range(COMMANDS)), len(answers)
for answer in answers:
    assert answer["status"] == "success", answer
    assert answer["data"]["stdout"] == "20000\n", answer
PY
run python3 stop.py "$sandhost"
want_exit 0
for number in 0 1 2 3 4 5 6; do
  [ "$(wc -c <files/f$number)" -eq 300000 ] || fail "f$number has $(wc -c <files/f$number) bytes"
done
