# SPDX-License-Identifier: Apache-2.0
"""machine.py: what of a killed host is still on the machine: processes, control groups, mounts."""
import http.client
import json
import os
import socket
import time

WITHIN, PATIENCE = 2.0, 60.0


class Wrong(Exception):
    """What was found is not as it was promised."""


def processes():
    """pid: (parent, state, name) of all."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    line = file.read()
            except OSError:
                continue
            before, after = line.split("(", 1)[0], line.rsplit(")", 1)
            state, parent = after[1].split()[:2]
            found[int(before)] = (int(parent), state, after[0].split("(", 1)[1])
    return found


def below(*others):
    """(pid, state, name) of all processes below this one and those others."""
    everybody, found, heads = processes(), [], {os.getpid(), *others}
    while heads:
        heads = {pid for pid, (parent, _, _) in everybody.items() if parent in heads}
        found += [(pid, *everybody[pid][1:]) for pid in heads]
    return found


def threads(*others):
    """(process, thread): (state, seconds of processor time) of all threads below this process and those others."""
    found = {}
    for pid, _, _ in below(*others):
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                    state = file.read().rsplit(b")", 1)[1].split()[0].decode()
                with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                    found[pid, int(thread)] = (state, int(file.read().split()[0]) / 1e9)
        except (OSError, IndexError):  # it ends
            pass
    return found


def marked(mark):
    found, word = [], mark.encode()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            for what in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{name}/{what}", "rb") as file:
                        if word in file.read():
                            found.append((int(name), what))
                except OSError:
                    pass
    return found


class Engine:
    """The engine at DOCKER_HOST; all its containers are this test's."""

    class Connection(http.client.HTTPConnection):
        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.connect(os.environ["DOCKER_HOST"].removeprefix("unix://"))

    def __init__(self):
        """first: the process below which all of the engine and of its containers is."""
        with open(os.path.dirname(os.environ["DOCKER_HOST"].removeprefix("unix://")) + "/first.pid", encoding="ascii") as file:
            self.first = int(file.read())

    def containers(self, which=""):
        """Those that run; which "?all=1": also those that do not."""
        connection = self.Connection("engine", timeout=PATIENCE)
        connection.request("GET", "/containers/json" + which)
        found = json.load(connection.getresponse())
        connection.close()
        return [(container["Id"][:12], container["State"]) for container in found]


class Group:
    """A control group of version 1 that holds this process and all that it starts, where it may make one."""

    def __init__(self):
        self.folders = []
        if os.geteuid() != 0:
            return
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            hierarchies = [line.rstrip("\n").split(":", 2) for line in file]
        for _, controllers, path in hierarchies:
            for controller in controllers.split(","):
                place = f"/sys/fs/cgroup/{controller}"
                place = place + path if os.path.isdir(place + path) else place
                if controller in ("memory", "cpu", "pids") and os.path.exists(place + "/tasks"):
                    self.enter(place.rstrip("/"))

    def enter(self, place):
        folder = f"{place}/kills-{os.getpid()}"
        if folder in (mine for _, mine in self.folders):
            return
        try:
            os.mkdir(folder)
            with open(folder + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
            self.folders.append((place, folder))
        except OSError as error:
            print(f"no control group {folder}: {error}")

    def others(self):
        found = set()
        for _, folder in self.folders:
            for path, _, files in os.walk(folder):
                if "cgroup.procs" in files:
                    with open(path + "/cgroup.procs", encoding="ascii") as file:
                        found |= {int(line) for line in file}
        return found - {os.getpid()}

    def groups(self):
        """What sandhost has made in it."""
        return [os.path.join(path, name) for _, folder in self.folders for path, names, _ in os.walk(folder) for name in names]

    @staticmethod
    def named(sessions):
        """Those that are called as one of these sandboxes, wherever on the machine: also where this has none of its own."""
        return [path for path, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(path) in sessions]

    def leave(self):
        for place, folder in self.folders:
            with open(place + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
            for path, _, _ in os.walk(folder, topdown=False):
                os.rmdir(path)


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return {line.split()[4] for line in file}


class Wait:
    """Until no child is left, and nobody of others(), who end by what is below the processes heads. took: seconds since the
    kill; stalled: those that the machine took away."""

    def __init__(self, since, others=None, heads=()):
        self.statuses, self.stalled = {}, 0.0
        looked, seen, slept = since, {}, 0.0
        while self.reap() or (others and others()):
            now = time.monotonic()
            if now - since > PATIENCE:
                raise Wrong(f"after {PATIENCE:.0f} s there are still: {below(*heads)}, {others and others()}")
            is_slow = now - since > 0.5  # then it is worth a closer look, which takes some milliseconds itself
            self.stalled += stall(now - looked, slept, seen, seen := threads(*heads) if is_slow else {})
            looked, slept = now, 0.1 if is_slow else 0.002
            time.sleep(slept)
        self.took = time.monotonic() - since
        self.stalled += stall(time.monotonic() - looked, slept, {}, {})
        if self.took - self.stalled > WITHIN:
            raise Wrong(
                f"nothing was alive only after {self.took:.2f} s, of which the machine stalled for {self.stalled:.2f} s; "
                f"the last ones were {seen}"
            )

    def reap(self):
        """Whether children are left."""
        try:
            pid, status = -1, 0
            while pid:
                pid, status = os.waitpid(-1, os.WNOHANG)
                self.statuses[pid] = status
            return True
        except ChildProcessError:
            return False


def stall(seconds, slept, before, after):
    """How much of the time between two looks nobody could have used: all, where something of what is left could run and was
    given no processor, or waited for the disk; else what this process was late by."""
    for one in before.keys() & after.keys():
        (was, used), (now, uses) = before[one], after[one]
        if now == "D" or (was == now == "R" and uses - used < seconds / 2):
            return seconds
    return max(0.0, seconds - slept - 0.01)
