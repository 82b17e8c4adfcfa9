# SPDX-License-Identifier: Apache-2.0
"""spy.py: looks into each process as it begins for what the guest may have left open in it, until /tmp/over is there."""
import os

from system import raw

mine = {os.getpid(), os.getppid()}
found, looked = set(), 0


def look_into(pid):
    global looked
    pidfd = raw("pidfd_open", pid, 0)
    try:
        for fd in range(12):
            got = raw("pidfd_getfd", pidfd, fd, 0)
            looked += 1
            target = os.readlink(f"/proc/self/fd/{got}")
            os.close(got)
            # What programs have and open; the last of them makes the file.
            if not target.startswith(("pipe:", "/dev/null", "/usr/", "/etc/", "/tmp/over")):
                found.add(target)
    finally:
        os.close(pidfd)


while not os.path.exists("/tmp/over"):
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in mine and name != "1":
            try:
                look_into(int(name))
            except OSError:
                pass  # it is the guest's, or gone, or has no more
print("looked" if looked else "saw nothing", *sorted(found))
