# SPDX-License-Identifier: Apache-2.0
"""attempts.py: what a hostile command tries, one function each.

Prints a line "NAME: what was tried: outcome" for everything; attack.sh knows which outcome is the right one.
Each function runs in a process of its own, so that one that dies spoils no other. FACTS holds what attack.sh
prepared outside: a file, sockets, a port, a segment of shared memory, names that must not be seen.
"""
import array
import ctypes
import fcntl
import glob
import json
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios

from system import LIBC, keeper, name_of, opened, outcome, raw

with open("facts.json") as file:
    FACTS = json.load(file)
ATTEMPTS = []
FIRST_FDS = sorted(int(name) for name in os.listdir("/proc/self/fd"))


def attempt(function):
    ATTEMPTS.append(function)
    return function


def say(what, result):
    name = sys._getframe(1).f_code.co_name
    print(f"{name}: {what}: {result}", flush=True)


# ---- The host's files ----------------------------------------------------------------------------


@attempt
def read_host_files():
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/machine-id",
                 "/root", "/home", "/run", "/var/run/docker.sock", "/var/lib", "/var/log",
                 "/var/spool", "/boot", "/mnt", "/srv", "/opt", "/sys", "/sys/fs/cgroup", "/lost+found",
                 FACTS["secret_file"], FACTS["state"], "/newroot", "/oldroot"):
        say("open " + path.replace(FACTS["outside"], "OUTSIDE"), opened(path))


@attempt
def read_devices():
    for path in ("/dev/kmsg", "/dev/mem", "/dev/kvm", "/dev/fuse", "/dev/vda", "/dev/sda", "/dev/vsock",
                 "/dev/net/tun", "/dev/console", "/dev/tty0", "/dev/tty", "/dev/input", "/dev/uinput",
                 "/dev/loop-control", "/dev/userfaultfd", "/dev/mqueue"):
        say("open " + path, opened(path))
    known = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
             "stdout", "tty", "urandom", "zero"}
    say("other names in /dev", " ".join(sorted(set(os.listdir("/dev")) - known)) or "none")


@attempt
def make_devices():
    for kind, number in (("b", os.makedev(254, 0)), ("c", os.makedev(1, 1)), ("c", os.makedev(5, 1))):
        mode = 0o60000 if kind == "b" else 0o20000
        say(f"mknod {kind} {os.major(number)} {os.minor(number)}",
            outcome(os.mknod, "/tmp/device", mode | 0o666, number))


@attempt
def write_system():
    for path in ("/etc/passwd", "/usr/bin/env", "/etc/hosts", "/etc/ld.so.cache"):
        say("open for writing " + path, opened(path, os.O_WRONLY))
    for path in ("/etc/new", "/usr/new", "/bin/new", "/lib/new", "/new", "/var/new", "/dev/new"):
        say("make " + path, outcome(os.mkdir, path))
    say("unlink /usr/bin/env", outcome(os.unlink, "/usr/bin/env"))
    say("unlink /etc/passwd", outcome(os.unlink, "/etc/passwd"))
    say("rename /etc", outcome(os.rename, "/etc", "/tmp/etc"))
    say("chmod /usr", outcome(os.chmod, "/usr", 0o777))
    say("chmod /", outcome(os.chmod, "/", 0o777))
    say("chown /usr/bin/env", outcome(os.chown, "/usr/bin/env", 1000, 1000))
    say("link /usr/bin/su", outcome(os.link, "/usr/bin/su", "/tmp/su"))


@attempt
def write_proc():
    for path in ("sysrq-trigger", "sys/kernel/core_pattern", "sys/kernel/hostname", "sys/kernel/modprobe",
                 "sys/kernel/randomize_va_space", "sys/kernel/yama/ptrace_scope", "sys/vm/drop_caches",
                 "sys/vm/overcommit_memory", "sys/vm/panic_on_oom", "sys/fs/file-max",
                 "sys/user/max_user_namespaces", "sys/kernel/keys/maxkeys",
                 "sys/kernel/unprivileged_bpf_disabled", "sys/kernel/perf_event_paranoid",
                 "sys/net/ipv4/ip_forward", "sys/net/core/somaxconn",
                 "sys/fs/binfmt_misc/register", "self/setgroups", "1/oom_score_adj",
                 "irq/default_smp_affinity", "mtrr", "bus/pci/devices", "scsi/scsi", "asound", "acpi/wakeup"):
        say("open for writing /proc/" + path, opened("/proc/" + path, os.O_WRONLY))
    for path, text in (("sys/kernel/ns_last_pid", "300"), ("self/oom_score_adj", "-1000"),
                       ("self/uid_map", "0 0 1"), ("self/gid_map", "0 0 1"),
                       ("self/setgroups", "allow"), ("self/loginuid", "0")):
        def write():
            fd = os.open("/proc/" + path, os.O_WRONLY)
            os.write(fd, text.encode())
        say(f"write {text} to /proc/{path}", outcome(write))


@attempt
def read_kernel():
    for path in ("kcore", "kmsg", "kpagecount", "kpageflags", "slabinfo", "vmallocinfo", "pagetypeinfo",
                 "timer_list", "sched_debug", "1/mem", "1/pagemap", "1/stack", "1/syscall"):
        say("open /proc/" + path, opened("/proc/" + path))
    try:
        with open("/proc/kallsyms") as file:
            addresses = {line.split()[0].strip("0") for _, line in zip(range(1000), file)}
        say("addresses in /proc/kallsyms", "none" if addresses <= {""} else "some")
    except OSError as error:
        say("addresses in /proc/kallsyms", "none" if error.errno in (1, 2, 13) else name_of(error.errno))
    say("read the kernel's log", outcome(raw, "syslog", 3, ctypes.create_string_buffer(4096), 4096))
    say("size of the kernel's log", outcome(raw, "syslog", 10, None, 0))
    try:
        with open("/proc/keys") as file:
            lines = file.read().splitlines()
        say("lines of /proc/keys that name the host's", sum(FACTS["key"] in line for line in lines) or "none")
    except OSError as error:
        say("lines of /proc/keys that name the host's", "none" if error.errno in (2, 13) else name_of(error.errno))


# ---- Who it is -----------------------------------------------------------------------------------


@attempt
def identity():
    say("ids", f"{os.getresuid()} {os.getresgid()} {os.getgroups()}")
    say("host's name", socket.gethostname())
    with open("/proc/self/status") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"):
        say(field, fields[field].lstrip("0") or "0")
    with open("/proc/self/cgroup") as file:
        paths = {line.rstrip("\n").split(":", 2)[2] for line in file}
    say("control groups as seen", "only /" if paths <= {"/"} else "their paths")


@attempt
def gain_privileges():
    say("setuid 0", outcome(os.setresuid, 0, 0, 0))
    say("setgid 0", outcome(os.setresgid, 0, 0, 0))
    say("setgroups", outcome(os.setgroups, [0]))
    header = struct.pack("Ii", 0x20080522, 0)
    say("capset", outcome(raw, "capset", header, struct.pack("6I", *[0xffffffff] * 6)))
    say("no_new_privs off", outcome(lambda: check_prctl(38, 0)))
    say("seccomp off", outcome(lambda: check_prctl(22, 0)))
    say("ambient capability", outcome(lambda: check_prctl(47, 2, 21)))
    say("chroot", outcome(raw, "chroot", "/tmp"))
    say("priority below 0", outcome(os.setpriority, os.PRIO_PROCESS, 0, -5))
    say("real-time", outcome(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)))
    say("process limit up", outcome(lambda: raise_limit()))


def check_prctl(*arguments):
    ctypes.set_errno(0)
    rest = [ctypes.c_ulong(argument) for argument in arguments[1:]] + [ctypes.c_ulong(0)] * (5 - len(arguments))
    if LIBC.prctl(ctypes.c_int(arguments[0]), *rest) < 0:
        raise OSError(ctypes.get_errno(), "prctl")


def raise_limit():
    import resource
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (100000, 100000))
    except ValueError as error:  # how Python tells EPERM here
        raise OSError(1, str(error))


@attempt
def setuid_programs():
    found = [path for path in glob.glob("/usr/*bin/*") if os.path.isfile(path) and os.stat(path).st_mode & 0o6000]
    say("there are any", "yes" if found else "no")
    for name, arguments in (("su", ["-c", "id -u"]), ("mount", ["-t", "tmpfs", "none", "/tmp"]),
                            ("umount", ["/tmp"]), ("passwd", ["-d", "root"]), ("newgrp", ["root"]),
                            ("chsh", ["-s", "/bin/sh", "root"]), ("sudo", ["-n", "id", "-u"]),
                            ("newuidmap", [str(os.getpid()), "0", "0", "1"])):
        path = "/usr/bin/" + name
        if not os.path.exists(path):
            say(name, "refused")
            continue
        done = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        gained = b"0\n" in done.stdout or (done.returncode == 0 and name != "newgrp")
        say(name, "worked" if gained else "refused")
    # By its own name, since in some images all programs are one.
    os.mkdir("own")
    shutil.copy(shutil.which("id"), "own/id")
    os.chmod("own/id", 0o6755)
    say("own set-user-id program", subprocess.run(["own/id", "-u"], capture_output=True, text=True).stdout.strip())


# ---- Processes, descriptors, variables -----------------------------------------------------------


@attempt
def see_processes():
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    say("processes", "few" if len(pids) < 12 and max(pids) < 1000 else len(pids))
    words = b""
    for pid in pids:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words += file.read()
    say("a process of the host among them", "yes" if FACTS["process"].encode() in words else "no")


@attempt
def see_variables():
    secret = FACTS["secret"].encode()
    unreadable = 0
    found = any(secret in os.environb[name] for name in os.environb)
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                found = found or secret in file.read()
        except OSError:
            unreadable += 1
    say("the host's secret", "seen" if found else "not seen")
    say("environ of the guest and its keepers", "closed" if unreadable >= 2 else f"{unreadable} closed")
    say("variables", " ".join(sorted(set(os.environ) - {"_", "OLDPWD", "SHLVL"})))


@attempt
def see_descriptors():
    # 3 is that of the listing itself.
    say("inherited", " ".join(str(fd) for fd in FIRST_FDS if fd > 3) or "none")
    kinds = []
    for fd in (0, 1, 2):
        target = os.readlink(f"/proc/self/fd/{fd}")
        kinds.append(target.split(":")[0])
    say("0, 1 and 2", " ".join(kinds))


@attempt
def spy_on_guest():
    for who, pid in (("PID 1", 1), ("keeper", keeper())):
        for part in ("mem", "environ", "maps", "fd", "fdinfo", "exe", "root", "cwd", "auxv", "io", "map_files", "ns/mnt"):
            path = f"/proc/{pid}/{part}"
            flags = os.O_RDWR if part in ("mem", "exe") else os.O_RDONLY
            say(f"open {part} of {who}", opened(path, flags))
        for fd in range(8):
            result = opened(f"/proc/{pid}/fd/{fd}", os.O_WRONLY)
            if result not in ("EACCES", "ENOENT", "EPERM"):
                say(f"open descriptor {fd} of {who}", result)
        say(f"ptrace attach to {who}", outcome(raw, "ptrace", 16, pid, None, None))
        say(f"ptrace seize {who}", outcome(raw, "ptrace", 0x4206, pid, None, None))
        memory = ctypes.create_string_buffer(64)
        local = struct.pack("PL", ctypes.addressof(memory), 64)
        remote = struct.pack("PL", 0x400000, 64)
        say(f"process_vm_readv {who}", outcome(raw, "process_vm_readv", pid, local, 1, remote, 1, 0))
        say(f"process_vm_writev {who}", outcome(raw, "process_vm_writev", pid, local, 1, remote, 1, 0))
        say(f"kcmp {who}", outcome(raw, "kcmp", os.getpid(), pid, 0, 0, 0))
        pidfd = raw("pidfd_open", pid, 0)
        for fd in range(8):
            result = outcome(raw, "pidfd_getfd", pidfd, fd, 0)
            if result != "EPERM" or fd == 0:
                say(f"pidfd_getfd {fd} of {who}", result)
        say(f"enter namespaces of {who}", outcome(raw, "setns", pidfd, 0x20000000))
        # Its core file, so that an attempt that works does no harm.
        say(f"lower a limit of {who}", outcome(raw, "prlimit64", pid, 4, struct.pack("QQ", 0, 0), None))


@attempt
def signal_guest():
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):
        os.kill(1, number)
    with open("/proc/1/status") as file:
        state = [line for line in file if line.startswith("State:")][0].split()[1]
    say("state of PID 1 afterwards", "alive" if state in "SRD" else state)
    say("signal above PID 1", outcome(os.kill, -999999, 0))


# ---- Namespaces and mounts -----------------------------------------------------------------------


@attempt
def new_namespaces():
    for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("user and mount", 0x10020000), ("pid", 0x20000000),
                       ("net", 0x40000000), ("ipc", 0x8000000), ("uts", 0x4000000), ("cgroup", 0x2000000)):
        say("unshare " + name, outcome(raw, "unshare", flag))
        say("clone " + name, forked(raw, "clone", flag | signal.SIGCHLD, 0, 0, 0, 0))
        arguments = struct.pack("11Q", flag, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
        say("clone3 " + name, forked(raw, "clone3", arguments, len(arguments)))
        own = {"user": "user", "mount": "mnt", "pid": "pid", "net": "net", "ipc": "ipc", "uts": "uts",
               "cgroup": "cgroup"}.get(name)
        if own:
            fd = os.open("/proc/self/ns/" + own, os.O_RDONLY)
            say("setns " + name, outcome(raw, "setns", fd, flag))
    for words in (["unshare", "-U", "true"], ["unshare", "-Urm", "true"], ["bwrap", "--bind", "/", "/", "true"]):
        done = subprocess.run(["sh", "-c", 'command -v "$0" >/dev/null || exit 9; exec "$0" "$@"', *words],
                              capture_output=True)
        say(" ".join(words), "refused" if done.returncode else "worked")


def forked(function, *arguments):
    """A child that such a call makes ends at once; the parent tells."""
    me = os.getpid()

    def call():
        pid = function(*arguments)
        if pid == 0 or os.getpid() != me:
            os._exit(0)
        os.waitpid(pid, 0)
    return outcome(call)


@attempt
def mounts():
    say("mount tmpfs", outcome(raw, "mount", "none", "/tmp", "tmpfs", 0, None))
    say("mount proc", outcome(raw, "mount", "proc", "/tmp", "proc", 0, None))
    say("bind", outcome(raw, "mount", "/usr", "/tmp", None, 4096, None))
    say("remount / for writing", outcome(raw, "mount", None, "/", None, 32, None))
    say("remount /usr for writing", outcome(raw, "mount", None, "/usr", None, 32 | 4096, None))
    say("umount /proc", outcome(raw, "umount2", "/proc", 2))
    say("umount /tmp", outcome(raw, "umount2", "/tmp", 2))
    say("pivot_root", outcome(raw, "pivot_root", "/tmp", "/tmp"))
    say("open_tree", outcome(raw, "open_tree", -100, "/", 1))
    say("fsopen", outcome(raw, "fsopen", "tmpfs", 0))
    say("move_mount", outcome(raw, "move_mount", -100, "/tmp", -100, "/usr", 0))
    say("mount_setattr", outcome(raw, "mount_setattr", -100, "/usr", 0, struct.pack("4Q", 0, 1, 0, 0), 32))


@attempt
def file_handles():
    # The root of a file system by its number, as the escape "shocker" did.
    handle = struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0)
    fd = os.open("/usr", os.O_RDONLY)
    say("open_by_handle_at", outcome(raw, "open_by_handle_at", fd, ctypes.create_string_buffer(handle), 0))


# ---- The kernel ----------------------------------------------------------------------------------


@attempt
def kernel_calls():
    say("bpf map", outcome(raw, "bpf", 0, struct.pack("4I", 2, 4, 4, 1) + bytes(112), 128))
    say("bpf program", outcome(raw, "bpf", 5, bytes(128), 128))
    event = struct.pack("IIQ", 1, 112, 0) + bytes(24) + struct.pack("Q", 0x60) + bytes(64)
    say("perf_event_open", outcome(raw, "perf_event_open", ctypes.create_string_buffer(event), 0, -1, -1, 0))
    say("userfaultfd", outcome(raw, "userfaultfd", 0))
    say("userfaultfd of user mode", outcome(raw, "userfaultfd", 1))
    say("io_uring_setup", outcome(raw, "io_uring_setup", 4, ctypes.create_string_buffer(120)))
    say("keyctl: id of the session's keyring", outcome(raw, "keyctl", 0, -3, 0, 0, 0))
    say("keyctl: search of the host's key", outcome(raw, "keyctl", 10, -3, b"user", FACTS["key"].encode(), 0))
    say("keyctl: join a keyring", outcome(raw, "keyctl", 1, None, 0, 0, 0))
    say("add_key", outcome(raw, "add_key", b"user", b"mine", b"x", 1, -4))
    say("request_key", outcome(raw, "request_key", b"user", FACTS["key"].encode(), None, 0))
    say("kexec_load", outcome(raw, "kexec_load", 0, 0, None, 0))
    say("init_module", outcome(raw, "init_module", b"", 0, b""))
    say("finit_module", outcome(raw, "finit_module", 0, b"", 0))
    say("delete_module", outcome(raw, "delete_module", b"no_such", 0))
    # Numbers that the kernel refuses in any case: no attempt that works may harm the machine.
    say("reboot", outcome(raw, "reboot", 0, 0, 0, None))
    say("swapon", outcome(raw, "swapon", "/tmp/none", 0))
    say("swapoff", outcome(raw, "swapoff", "/tmp/none"))
    say("acct", outcome(raw, "acct", "/tmp/none"))
    say("quotactl", outcome(raw, "quotactl", 0x80000100, None, 0, None))
    say("settimeofday", outcome(raw, "settimeofday", struct.pack("qq", -1, -1), None))
    say("clock_settime", outcome(raw, "clock_settime", 0, struct.pack("qq", -1, -1)))
    say("sethostname", outcome(raw, "sethostname", "x", 1))
    say("setdomainname", outcome(raw, "setdomainname", "x", 1))
    say("vhangup", outcome(raw, "vhangup"))
    say("iopl", outcome(raw, "iopl", 3))
    say("ioperm", outcome(raw, "ioperm", 0x80, 1, 1))
    say("fanotify_init", outcome(raw, "fanotify_init", 0, 0))
    say("personality READ_IMPLIES_EXEC", outcome(raw, "personality", 0x0400000))
    say("personality PER_LINUX32", outcome(raw, "personality", 0x8))
    say("personality ADDR_NO_RANDOMIZE, as debuggers use it", outcome(raw, "personality", 0x0040000))


@attempt
def other_abi():
    # getpid by the calls of 32-bit programs and of x32, each in a process that may be killed for it.
    import mmap
    import platform
    if platform.machine() != "x86_64":
        say("i386", "ENOSYS")
        say("x32", "ENOSYS")
        return
    for name, code in (("i386", b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3"),
                       ("x32", b"\xb8\x27\x00\x00\x40\x0f\x05\xc3")):
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        pid = os.fork()
        if pid == 0:
            result = function()
            os._exit(0 if result > 0 else min(-result, 200))
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            say(name, signal.Signals(os.WTERMSIG(status)).name)
        else:
            say(name, name_of(os.WEXITSTATUS(status)) if os.WEXITSTATUS(status) else "DONE")


# ---- Sockets and the rest of IPC -----------------------------------------------------------------


@attempt
def odd_sockets():
    for name, family, kind, protocol in (
            ("AF_PACKET", 17, socket.SOCK_RAW, 0x300), ("AF_PACKET datagram", 17, socket.SOCK_DGRAM, 0x300),
            ("AF_INET raw", 2, socket.SOCK_RAW, 1), ("AF_INET6 raw", 10, socket.SOCK_RAW, 58),
            ("AF_NETLINK netfilter", 16, socket.SOCK_RAW, 12), ("AF_NETLINK audit", 16, socket.SOCK_RAW, 9),
            ("AF_NETLINK uevent", 16, socket.SOCK_RAW, 15), ("AF_NETLINK generic", 16, socket.SOCK_RAW, 16),
            ("AF_NETLINK sock_diag", 16, socket.SOCK_RAW, 4), ("AF_NETLINK xfrm", 16, socket.SOCK_RAW, 6),
            ("AF_NETLINK crypto", 16, socket.SOCK_RAW, 21), ("AF_ALG", 38, socket.SOCK_SEQPACKET, 0),
            ("AF_VSOCK", 40, socket.SOCK_STREAM, 0), ("AF_KEY", 15, socket.SOCK_RAW, 2), ("AF_XDP", 44, socket.SOCK_RAW, 0),
            ("AF_BLUETOOTH", 31, socket.SOCK_RAW, 1), ("AF_CAN", 29, socket.SOCK_RAW, 1), ("AF_TIPC", 30, socket.SOCK_DGRAM, 0),
            ("AF_RDS", 21, socket.SOCK_SEQPACKET, 0), ("AF_X25", 9, socket.SOCK_SEQPACKET, 0), ("AF_SMC", 43, socket.SOCK_STREAM, 0)):
        say(name, outcome(lambda: socket.socket(family, kind, protocol).close()))
    for name, family, kind, protocol in (("AF_UNIX", 1, socket.SOCK_STREAM, 0), ("AF_INET", 2, socket.SOCK_STREAM, 0),
                                         ("AF_INET datagram", 2, socket.SOCK_DGRAM, 0), ("AF_INET6", 10, socket.SOCK_STREAM, 0),
                                         ("AF_NETLINK route", 16, socket.SOCK_RAW, 0)):
        say(name, outcome(lambda: socket.socket(family, kind, protocol).close()))


@attempt
def host_sockets():
    def reach(family, address):
        with socket.socket(family) as attempt:
            attempt.settimeout(5)
            attempt.connect(address)
    say("abstract socket", outcome(reach, socket.AF_UNIX, "\0" + FACTS["abstract"]))
    say("socket in a folder", outcome(reach, socket.AF_UNIX, FACTS["socket_file"]))
    say("port on 127.0.0.1", outcome(reach, socket.AF_INET, ("127.0.0.1", FACTS["port"])))
    with open("/proc/net/unix") as file:
        say("abstract name in /proc/net/unix", "seen" if FACTS["abstract"] in file.read() else "not seen")
    with open("/proc/net/dev") as file:
        devices = [line.split(":")[0].strip() for line in file if ":" in line]
    say("network devices besides lo", "none" if devices == ["lo"] else "some")


@attempt
def host_ipc():
    ctypes.set_errno(0)
    say("shared memory by its key", "DONE" if LIBC.shmget(FACTS["shm_key"], 0, 0) >= 0 else name_of(ctypes.get_errno()))
    with open("/proc/sysvipc/shm") as file:
        say("segments of shared memory", len(file.readlines()) - 1 or "none")


@attempt
def terminal():
    say("open /dev/tty", opened("/dev/tty", os.O_RDWR))
    say("terminal among 0, 1 and 2", "yes" if any(os.isatty(fd) for fd in (0, 1, 2)) else "no")
    # The best that can be had: a terminal of its own, controlling, where the calls are allowed most.
    pid, master = pty.fork()
    if pid == 0:
        results = [outcome(fcntl.ioctl, 0, termios.TIOCSTI, b"x"),
                   outcome(fcntl.ioctl, 0, 0x541C, ctypes.create_string_buffer(b"\x03", 8)),
                   outcome(fcntl.ioctl, 0, termios.TIOCCONS), outcome(lambda: widths())]
        print("|".join(results), flush=True)
        os._exit(0)
    text = b""
    try:
        while True:
            part = os.read(master, 1024)
            if not part:
                break
            text += part
    except OSError:
        pass
    os.waitpid(pid, 0)
    results = text.decode().strip().split("|")
    results[0] = results[0].removeprefix("x")  # what was typed is echoed
    for name, result in zip(("TIOCSTI", "TIOCLINUX", "TIOCCONS", "window size"), results):
        say(name, result)
    say("TIOCSTI with upper bits", outcome(lambda: high_ioctl(master)))


def widths():
    fcntl.ioctl(0, termios.TIOCGWINSZ, array.array("H", [0] * 4))


def high_ioctl(fd):
    """The kernel looks at 32 bits of the request only; so must a filter."""
    ctypes.set_errno(0)
    number = 16 if os.uname().machine == "x86_64" else 29
    if LIBC.syscall(ctypes.c_long(number), ctypes.c_long(fd), ctypes.c_ulong(termios.TIOCSTI | 1 << 32), b"x") < 0:
        raise OSError(ctypes.get_errno(), "ioctl")


def main():
    wanted = sys.argv[1:]
    for function in ATTEMPTS:
        if wanted and function.__name__ not in wanted:
            continue
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            signal.alarm(40)
            try:
                function()
            except BaseException as error:  # pylint: disable=broad-except
                print(f"{function.__name__}: it failed by itself: {error!r}", flush=True)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status:
            print(f"{function.__name__}: it ended with: {status}", flush=True)


if __name__ == "__main__":
    main()
