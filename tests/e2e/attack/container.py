# SPDX-License-Identifier: Apache-2.0
"""container.py: what a hostile command tries in a container, besides attempts.py: the engine and what it has left open.

Prints and is judged as attempts.py is."""
import glob
import os
import re
import socket

import attempts
from attempts import FACTS, attempt, say
from system import outcome, opened, raw

attempts.ATTEMPTS.clear()


def is_writable(path):
    return opened(path, os.O_WRONLY) == "DONE"


# ---- The engine ----------------------------------------------------------------------------------


@attempt
def engine_sockets():
    for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
                 "/run/docker", "/var/lib/docker", FACTS["engine"] or "/nowhere"):
        say("open " + path.replace(FACTS["engine"] or "-", "ENGINE"), opened(path))
    found = [path for folder in ("/", "/run", "/var", "/tmp", "/.sandhost") for path in glob.glob(folder + "/*.sock")]
    say("sockets in folders", " ".join(found) or "none")
    with open("/proc/net/unix") as file:
        names = [line.split()[-1] for line in file if "@" in line]
    say("abstract sockets", " ".join(names) or "none")


@attempt
def engine_network():
    def reach(address, port):
        with socket.socket() as tried:
            tried.settimeout(5)
            tried.connect((address, port))
    for address in ("172.17.0.1", "169.254.169.254", "10.0.0.1", "8.8.8.8"):
        say("connect to " + address, outcome(reach, address, 2375))
    with open("/proc/net/route") as file:
        say("routes", len(file.readlines()) - 1 or "none")


@attempt
def guest_file():
    say("the folder of the guest", outcome(os.listdir, "/.sandhost"))
    say("read the guest", opened("/.sandhost/guest"))
    say("write the guest", opened("/.sandhost/guest", os.O_WRONLY))
    say("make a file beside it", outcome(os.mkdir, "/.sandhost/new"))
    say("chmod the guest", outcome(os.chmod, "/.sandhost/guest", 0o777))
    say("remove the guest", outcome(os.unlink, "/.sandhost/guest"))


# ---- What the engine mounts ----------------------------------------------------------------------


@attempt
def control_groups():
    found = [os.path.join(folder, name) for folder, _, names in os.walk("/sys/fs/cgroup") for name in names]
    say("there are files", "yes" if found else "no")
    say("open for writing", " ".join(path for path in found if is_writable(path)) or "none")
    folders = [folder for folder, _, _ in os.walk("/sys/fs/cgroup")]
    made = [folder for folder in folders if outcome(os.mkdir, folder + "/own") == "DONE"]
    say("make a group", " ".join(made) or "none")
    for kind, options in (("cgroup", "memory"), ("cgroup", "rdma"), ("cgroup2", "")):
        say(f"mount {kind} {options}".rstrip(), outcome(raw, "mount", "x", "/tmp", kind, 0, options))


@attempt
def system_settings():
    tried = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/proc/sys/vm/panic_on_oom",
             "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/power/state",
             "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/module/kernel/parameters/panic", "/sys/kernel/profiling"]
    for folder, _, names in os.walk("/proc/sys"):
        tried += [os.path.join(folder, name) for name in names]
    for folder in ("/sys/kernel", "/sys/module", "/sys/power", "/sys/block", "/sys/bus", "/sys/firmware", "/sys/fs", "/sys/class"):
        for inner, _, names in os.walk(folder):
            tried += [os.path.join(inner, name) for name in names]
    say("some were tried", "yes" if len(tried) > 1000 else len(tried))
    say("open for writing", " ".join(path for path in tried if is_writable(path)) or "none")


@attempt
def masked_files():
    """What the engine hides is there, and holds nothing."""
    for path in ("/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug", "/proc/timer_stats"):
        def read():
            with open(path, "rb") as file:
                return file.read(4096)
        result = outcome(read)
        say("content of " + path, "none" if result != "DONE" or not read() else "some")
    for path in ("/proc/acpi", "/proc/scsi", "/proc/asound", "/sys/firmware", "/sys/kernel/debug", "/sys/kernel/tracing"):
        say("entries of " + path, "none" if not os.path.isdir(path) or not glob.glob(path + "/*") else "some")


@attempt
def mounted_folders():
    """Whatever can be written to is in memory and bounded."""
    with open("/proc/self/mountinfo") as file:
        lines = [line.split() for line in file]
    writable, unbounded, devices = [], [], []
    for fields in lines:
        point, options, kind = fields[4], fields[5].split(","), fields[fields.index("-") + 1]
        above = fields[-1].split(",")
        if "rw" not in options or "ro" in above or kind in ("proc", "devpts", "mqueue", "sysfs", "cgroup", "cgroup2"):
            continue
        writable.append(point)
        if kind != "tmpfs" or not re.search(r"size=\d+k", fields[-1]):
            if outcome(os.mkdir, point + "/own") == "DONE":
                unbounded.append(f"{point} ({kind})")
        if "nodev" not in options and point != "/dev" and os.path.isdir(point):
            devices.append(point)
    say("written to", " ".join(sorted(writable)))
    say("written to, and without a bound", " ".join(unbounded) or "none")
    say("folders whose devices work", " ".join(devices) or "none")
    say("/ is read-only", "yes" if outcome(os.mkdir, "/own") == "EROFS" else "no")


@attempt
def etc_files():
    for path in ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd"):
        say("open for writing " + path, opened(path, os.O_WRONLY))
    for path in ("/etc/resolv.conf", "/etc/hosts", "/etc/hostname"):
        say("replace " + path, outcome(os.rename, path, "/tmp/x"))


# ---- The first process ---------------------------------------------------------------------------


@attempt
def first_process():
    for part in ("fd", "environ", "exe", "maps", "root", "cwd", "mem", "stack", "task/1/fd", "task/1/mem", "task/1/children"):
        path = "/proc/1/" + part
        say("open " + path, outcome(os.readlink, path) if part in ("exe", "root", "cwd") else opened(path))
    for number in range(3):
        say(f"write to /proc/1/fd/{number}", opened(f"/proc/1/fd/{number}", os.O_WRONLY))
    for number in range(3, 128):
        for where in ("/proc/1/fd", "/proc/1/task/1/fd"):
            result = opened(f"{where}/{number}", os.O_WRONLY)
            if result not in ("EACCES", "EPERM", "ENOENT"):
                say(f"write to {where}/{number}", result)
    say("priority of PID 1", outcome(os.setpriority, os.PRIO_PROCESS, 1, -10))
    with open("/proc/1/cmdline", "rb") as file:
        words = file.read().split(b"\0")
    say("what its words tell", "only its name" if words[0] == b"/.sandhost/guest" and len(words) <= 3 else words)


@attempt
def other_containers():
    """One that docker-attack.sh runs beside this one: its process, its file, its keys of IPC."""
    words = b""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with open(path, "rb") as file:
            words += file.read()
    say("processes", "seen" if b"86397" in words else "not seen")
    say("files", "seen" if glob.glob("/*/beside-*") or glob.glob("/*/*/beside-*") else "not seen")
    with open("/proc/sysvipc/shm") as file:
        say("segments of shared memory", len(file.readlines()) - 1 or "none")
    say("queues of messages", " ".join(glob.glob("/dev/mqueue/*")) or "none")


if __name__ == "__main__":
    attempts.main()
