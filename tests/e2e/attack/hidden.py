# SPDX-License-Identifier: Apache-2.0
"""hidden.py [WAY...]: processes that whoever looks for the command's own might miss. Each writes to a file of its own as
long as it runs. "hidden.py look" prints which of them still do."""
import ctypes
import glob
import os
import signal
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": {"exit": 60, "clone": 56, "ptrace": 101}, "aarch64": {"exit": 93, "clone": 220, "ptrace": 117}}[os.uname().machine]
PR_SET_NAME, PR_SET_CHILD_SUBREAPER, CLONE_PARENT = 15, 36, 0x8000
FOLDER = "/tmp/hidden"
NOTHING = os.open("/dev/null", os.O_RDWR)


def call(name, *arguments):
    return LIBC.syscall(ctypes.c_long(NUMBERS[name]), *[ctypes.c_long(argument) for argument in arguments])


def beat(name):
    with open(f"{FOLDER}/{name}", "a") as file:
        file.write("x")


def live(name):
    while True:
        beat(name)
        time.sleep(0.05)


def apart():
    """Another session, no parent that waits, no output that stays open, deaf to what can be ignored."""
    if os.fork():
        os._exit(0)
    os.setsid()
    for fd in (0, 1, 2):
        os.dup2(NOTHING, fd)
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass


def headless():
    """The first thread ends, another goes on: the state of the process is that of the first, a zombie's."""
    apart()
    threading.Thread(target=live, args=("headless",)).start()
    call("exit", 0)


def named(name, text):
    apart()
    LIBC.prctl(PR_SET_NAME, text)
    live(name)


def reaper():
    apart()
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if os.fork() == 0:
        apart()
        live("reaper")
    live("reaper-itself")


def siblings():
    """Children of the process above."""
    if call("clone", CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        os.setsid()
        for fd in (0, 1, 2):
            os.dup2(NOTHING, fd)
        live("sibling")
    os._exit(0)


def runner():
    """Each lives for a moment only and leaves a successor."""
    apart()
    while True:
        beat("runner")
        if os.fork():
            os._exit(0)
        os.setsid()


def tracer():
    """The tracer takes away the signals that its tracee gets; each of the two goes on without the other."""
    apart()
    child = os.fork()
    if child == 0:
        call("ptrace", 0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        live("traced")
    beat("tracer")
    while True:
        pid, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            break
        call("ptrace", 7, pid, 0, 0)
    live("tracer")


def stopped():
    """Woken by somebody who is asleep himself most of the time."""
    apart()
    child = os.fork()
    if child == 0:
        live("woken")
    while True:
        os.kill(child, signal.SIGCONT)
        beat("waker")
        time.sleep(0.01)


WAYS = {  # and the files that tell that it has begun
    "headless": (headless, ["headless"]),
    "zombie": (lambda: named("as-a-zombie", b") Z 1 1 1"), ["as-a-zombie"]),
    "lines": (lambda: named("in-two-lines", b") Z\n"), ["in-two-lines"]),
    "first": (lambda: named("first-process", b"sandhost-guest"), ["first-process"]),
    "keeper": (lambda: named("keeper", b"sandhost-keeper"), ["keeper"]),
    "reaper": (reaper, ["reaper", "reaper-itself"]),
    "siblings": (siblings, ["sibling"]),
    "tracer": (tracer, ["traced", "tracer"]),
    "stopped": (stopped, ["woken", "waker"]),
    "runner": (runner, ["runner"]),
}


def main():
    os.makedirs(FOLDER, exist_ok=True)
    ways = [WAYS[way] for way in sys.argv[1:] or WAYS]
    for begin, _ in ways:
        if os.fork() == 0:
            begin()
            os._exit(0)
    while not all(os.path.exists(f"{FOLDER}/{name}") for _, names in ways for name in names):
        time.sleep(0.02)
    print("hidden", flush=True)
    signal.pause()


def look():
    """What no longer grows, ran and has ended."""
    names = sorted(glob.glob(FOLDER + "/*"))
    before = {name: os.path.getsize(name) for name in names}
    time.sleep(1)
    alive = [os.path.basename(name) for name in names if os.path.getsize(name) > before[name]]
    print(len(names), "were tried; alive:", " ".join(alive) or "none")


if __name__ == "__main__":
    look() if sys.argv[1:] == ["look"] else main()
