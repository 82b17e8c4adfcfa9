# SPDX-License-Identifier: Apache-2.0
"""tricks.py: what takes a hostile command more than one call: ways round the filter, ways up, and doors of the guest that
attempts.py does not try. Prints and is judged as attempts.py is."""
import array
import ctypes
import fcntl
import os
import platform
import signal
import socket
import struct

import attempts
from attempts import FACTS, attempt, say
from system import LIBC, keeper, name_of, opened, outcome, raw

attempts.ATTEMPTS.clear()


# ---- Round the filter ----------------------------------------------------------------------------


def rewritten(number, first, second, by_own_filter):
    """A child calls getppid; its tracer makes another call of it. What the child is told."""
    orig_rax, rdi, rsi, getppid = 120, 112, 104, 110
    word = ctypes.c_ulong()
    pid = os.fork()
    if pid == 0:
        LIBC.ptrace(0, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        if by_own_filter:  # getppid: ask the tracer; all else: allow
            steps = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, getppid, 6, 0, 0, 0x7ff00001, 6, 0, 0, 0x7fff0000)
            kept = ctypes.create_string_buffer(steps)
            program = struct.pack("HxxxxxxP", 4, ctypes.addressof(kept))
            if LIBC.prctl(22, 2, ctypes.c_char_p(program), 0, 0) < 0:
                os._exit(200)
        ctypes.set_errno(0)
        result = LIBC.syscall(ctypes.c_long(getppid))
        os._exit(ctypes.get_errno() if result < 0 else 255)
    os.waitpid(pid, 0)
    # PTRACE_O_TRACESYSGOOD, _EXITKILL, _TRACESECCOMP
    raw("ptrace", 0x4200, pid, None, 1 | 0x100000 | 0x80)
    done = False
    status = 0
    while True:
        raw("ptrace", 7 if done or by_own_filter else 24, pid, None, None)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSTOPPED(status):
            break
        raw("ptrace", 3, pid, orig_rax, ctypes.byref(word))
        is_there = status >> 8 == signal.SIGTRAP | 7 << 8 if by_own_filter else os.WSTOPSIG(status) == signal.SIGTRAP | 0x80
        if is_there and word.value == getppid and not done:
            done = True
            for place, value in ((orig_rax, number), (rdi, first), (rsi, second)):
                raw("ptrace", 6, pid, place, value & 0xffffffffffffffff)
    code = os.WEXITSTATUS(status)
    return ("not reached" if not done else "DONE") if code == 255 else name_of(code)


@attempt
def rewritten_calls():
    for name, number, first, second in (("keyctl", 250, 0, -3), ("unshare", 272, 0x10000000, 0), ("io_uring_setup", 425, 4, 0),
                                        ("a call of x32", 0x40000027, 0, 0)):
        for way, by_own_filter in (("a tracer", False), ("a filter and a tracer", True)):
            if platform.machine() == "x86_64":
                say(f"{name} by {way}", rewritten(number, first, second, by_own_filter))
            else:
                say(f"{name} by {way}", "EPERM")


@attempt
def upper_bits():
    """Where the kernel looks at 32 bits of an argument, so must a filter."""
    high = 1 << 32
    for name, arguments in (("AF_VSOCK", (40 | high, 1, 0)), ("AF_ALG", (38 | high, 5, 0)), ("AF_PACKET", (17 | high, 3, 0)),
                            ("AF_NETLINK netfilter", (16 | high, 3, 12)), ("AF_INET udplite", (2, 2, 136 | high)),
                            ("AF_INET sctp", (2, 1, 132 | high))):
        say("socket " + name, outcome(raw, "socket", *arguments))
    say("unshare user", outcome(raw, "unshare", 0x10000000 | high))
    say("personality READ_IMPLIES_EXEC", outcome(raw, "personality", 0x0400000 | high))
    say("limit of PID 1", outcome(raw, "prlimit64", 1 | high, 4, struct.pack("QQ", 0, 0), None))


@attempt
def rare_sockets():
    for name, kind, protocol in (("dccp", 6, 33), ("dccp without a protocol", 6, 0), ("l2tp", 2, 115), ("sctp", 1, 132),
                                 ("sctp without a protocol", 5, 0), ("udplite", 2, 136), ("smc", 1, 256),
                                 ("packet of old", 10, 0x300), ("rdm", 4, 0)):
        for family, number in (("AF_INET", 2), ("AF_INET6", 10)):
            say(f"{family} {name}", outcome(raw, "socket", number, kind, protocol))
    say("a pair of AF_INET", outcome(raw, "socketpair", 2, 1, 0, ctypes.create_string_buffer(8)))


@attempt
def more_calls():
    say("io_uring_enter", outcome(raw, "io_uring_enter", -1, 0, 0, 0, None, 0))
    say("io_uring_register", outcome(raw, "io_uring_register", -1, 0, None, 0))
    say("open_tree_attr", outcome(raw, "open_tree_attr", -100, "/", 1, None, 0))
    say("fsconfig", outcome(raw, "fsconfig", -1, 0, None, None, 0))
    say("fsmount", outcome(raw, "fsmount", -1, 0, 0))
    say("fspick", outcome(raw, "fspick", -100, "/", 0))
    say("quotactl_fd", outcome(raw, "quotactl_fd", -1, 0, 0, None))
    say("kexec_file_load", outcome(raw, "kexec_file_load", -1, -1, 0, None, 0))
    say("fanotify_init without a capability", outcome(raw, "fanotify_init", 0x200, 0))
    say("umount by its old flags", outcome(raw, "umount2", "/usr", 1))
    say("adjtimex", outcome(raw, "adjtimex", struct.pack("I", 1) + bytes(204)))
    say("name_to_handle_at, which opens nothing", outcome(raw, "name_to_handle_at", -100, "/usr", ctypes.create_string_buffer(
        struct.pack("Ii", 128, 0) + bytes(128)), ctypes.create_string_buffer(4), 0))


@attempt
def line_disciplines():
    master, slave = os.openpty()
    for name, number in (("slip", 1), ("ppp", 3), ("hdlc", 13), ("gsm", 21), ("none", 0)):
        say("TIOCSETD " + name, outcome(fcntl.ioctl, slave, 0x5423, array.array("i", [number])))
    os.close(master)


# ---- Ways up -------------------------------------------------------------------------------------


@attempt
def ways_up():
    for path in ("/proc/self/root/../../etc/shadow", "/proc/self/cwd/../../../../etc/shadow", "/proc/thread-self/root/etc/shadow",
                 "/dev/fd/../root/etc/shadow", "/proc/1/root/etc/shadow", "/proc/1/cwd/etc/shadow"):
        say("open " + path, opened(path))
    for fd in (0, 1, 2):
        say(f"open from descriptor {fd}", outcome(lambda: os.open("../../etc/shadow", os.O_RDONLY, dir_fd=fd)))
        say(f"fchdir to descriptor {fd}", outcome(os.fchdir, fd))
    os.chdir("/".join([".."] * 64))
    say("the root above the root", "another" if os.stat(".").st_ino != os.stat("/").st_ino else "the same")
    with open("/proc/self/mountinfo") as file:
        text = file.read()
    say("folders of the host in the list of mounts", "seen" if FACTS["outside"] in text else "not seen")


@attempt
def links_to_files():
    os.chdir("/tmp")
    program = os.path.realpath("/proc/self/exe")
    for name, path in (("/etc/passwd", "/etc/passwd"), ("a program", program), ("/proc/self/exe", "/proc/self/exe"),
                       ("/proc/1/exe", "/proc/1/exe")):
        say("link " + name, outcome(os.link, path, "/tmp/linked"))
    fd = os.open(program, os.O_RDONLY)
    say("link an open file", outcome(os.link, f"/proc/self/fd/{fd}", "/tmp/linked", follow_symlinks=True))
    for folder in ("/usr", "/etc", "/"):
        say("unnamed file in " + folder, outcome(lambda: os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)))
    say("write to a read-only descriptor", opened(f"/proc/self/fd/{fd}", os.O_WRONLY))
    say("exchange /etc", outcome(os.rename, "/etc", "/usr"))


@attempt
def writable_proc():
    """All of /proc but the processes: what opens for writing."""
    found = []
    for folder, folders, names in os.walk("/proc"):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
        for name in names:
            path = os.path.join(folder, name)
            # Pressure stall information may be subscribed to, by writing, in newer kernels; a device stands before what
            # is hidden.
            if not os.path.isfile(path):
                continue
            if not path.startswith("/proc/pressure/") and opened(path, os.O_WRONLY) == "DONE":
                found.append(path)
    say("files that open for writing", " ".join(found) or "none")


# ---- The guest -----------------------------------------------------------------------------------


def is_written(path):
    """Whether it opens and takes a byte, which no file there takes for something."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        try:
            return os.write(fd, b"\n") >= 0
        finally:
            os.close(fd)
    except OSError:
        return False


@attempt
def files_of_guest():
    for who, pid in (("PID 1", 1), ("keeper", keeper())):
        found = []
        for folder in (f"/proc/{pid}", f"/proc/{pid}/task/{pid}"):
            for path in [os.path.join(folder, name) for name in os.listdir(folder)]:
                if os.path.isfile(path) and is_written(path):
                    found.append(path)
        for path in [f"/proc/{pid}/attr/{name}" for name in ("current", "exec", "fscreate")]:
            if is_written(path):
                found.append(path)
        say("files that were written to, of " + who, " ".join(found) or "none")


@attempt
def memory_of_guest():
    pages = ctypes.create_string_buffer(64)
    for who, pid in (("PID 1", 1), ("keeper", keeper())):
        pidfd = raw("pidfd_open", pid, 0)
        say("get_robust_list of " + who, outcome(raw, "get_robust_list", pid, pages, pages))
        say("move_pages of " + who, outcome(raw, "move_pages", pid, 0, None, None, pages, 0))
        say("migrate_pages of " + who, outcome(raw, "migrate_pages", pid, 64, b"\1" + bytes(7), b"\1" + bytes(7)))
        say("process_madvise " + who, outcome(raw, "process_madvise", pidfd, struct.pack("PL", 0, 4096), 1, 20, 0))
        say("process_mrelease " + who, outcome(raw, "process_mrelease", pidfd, 0))
        say("share the core scheduling of " + who, outcome(lambda: attempts.check_prctl(62, 2, pid, 0)))
        say("group of " + who, outcome(os.setpgid, pid, 0))
        say("trace from a child of " + who, outcome(raw, "ptrace", 0x4206, pid, None, 0x100000))


@attempt
def descriptors_to_guest():
    """Passing a descriptor through what a command has of the guest's."""
    for fd in (0, 1, 2):
        def send():
            with socket.socket(fileno=os.dup(fd)) as through:
                through.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
        say(f"through {fd}", outcome(send))
    with open("/proc/net/unix") as file:
        names = [line.split()[7] for line in file.read().splitlines()[1:] if len(line.split()) > 7]
    say("names of sockets", " ".join(names) or "none")
    say("pipe beyond its size", outcome(fcntl.fcntl, 1, 1031, 1 << 30))


if __name__ == "__main__":
    attempts.main()
