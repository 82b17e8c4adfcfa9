# SPDX-License-Identifier: Apache-2.0
"""used_up.py WHAT: uses something up and says how that ended. "objects" keeps what it has, in processes that stay."""
import ctypes
import errno
import os
import signal
import socket
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
MOST = 50000  # what is not refused by then is not bounded, or only far beyond


def processes():
    """As many as there can be; all end."""
    pids = []
    try:
        while True:
            pids.append(os.fork())
            if pids[-1] == 0:
                time.sleep(100)
                os._exit(0)
    except OSError as error:
        print(len(pids) < 64, error.errno)
    for pid in pids:
        os.kill(pid, 9)


def threads():
    count = 0
    try:
        while True:
            threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
            count += 1
    except RuntimeError:
        print(count < 64, flush=True)


def zombies():
    """Of a parent that waits for none of them."""
    made = 0
    try:
        for _ in range(2000):
            if os.fork() == 0:
                os._exit(0)
            made += 1
    except OSError as error:
        print(made < 256, error.errno)


def orphans():
    """Left to whoever takes them."""
    for _ in range(2000):
        while True:
            try:
                pid = os.fork()
                break
            except BlockingIOError:
                time.sleep(0.01)
        if pid == 0:
            try:
                os.fork()
            except BlockingIOError:
                pass
            os._exit(0)
        os.waitpid(pid, 0)
    print("all")


# ---- Memory that no process has; 400 MB at most, should there be no limit ----------------------------


def shared_memory():
    LIBC.shmat.restype = ctypes.c_void_p
    for _ in range(40):
        place = LIBC.shmat(LIBC.shmget(0, 10 << 20, 0o1600), None, 0)
        ctypes.memset(place, 1, 10 << 20)
    print("had it all")


def anonymous_files():
    for _ in range(40):
        os.write(os.memfd_create("x"), b"x" * (10 << 20))
    print("had it all")


def full_pipes():
    kept = []
    for _ in range(4000):
        kept.append(os.pipe())
        os.set_blocking(kept[-1][1], False)
        os.write(kept[-1][1], bytes(1 << 17))
    print("had it all")


# ---- What the kernel keeps -----------------------------------------------------------------------


def libc(name, *arguments):
    ctypes.set_errno(0)
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def queued_signal():
    libc("sigqueue", os.getpid(), signal.SIGRTMIN + 3, ctypes.c_void_p())


def message_queue(number):
    # O_RDWR | O_CREAT
    libc("mq_open", f"/queue-{os.getpid()}-{number}".encode(), 0o102, 0o600, ctypes.c_void_p())


KINDS = {
    "descriptors": lambda number: os.open("/dev/null", os.O_RDONLY),
    "watchers": lambda number: libc("inotify_init1", 0),
    "timers": lambda number: libc("timer_create", 1, ctypes.c_void_p(), ctypes.byref(ctypes.c_void_p())),
    "signals": lambda number: queued_signal(),
    "message queues": message_queue,
    "shared memory": lambda number: libc("shmget", 0, 4096, 0o1600),
    "semaphores": lambda number: libc("semget", 0, 1, 0o1600),
    "terminals": lambda number: os.openpty(),
    "pipes": lambda number: os.pipe(),
    "sockets": lambda number: KEPT.append(socket.socketpair()),
    "anonymous files": lambda number: os.memfd_create("x"),
    "epolls": lambda number: libc("epoll_create1", 0),
}
KEPT = []


def use_up(kind):
    try:
        for number in range(MOST):
            KINDS[kind](number)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "not refused"


def objects():
    for kind in KINDS:
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN + 3])
            result = use_up(kind)
            os.write(writing, result.encode())
            os.close(writing)
            for fd in (0, 1, 2):
                os.close(fd)
            while True:
                time.sleep(1000)
        os.close(writing)
        print(kind + ":", os.read(reading, 100).decode(), flush=True)
        os.close(reading)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
