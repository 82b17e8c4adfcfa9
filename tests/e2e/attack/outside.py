# SPDX-License-Identifier: Apache-2.0
"""outside.py FOLDER WORD...: has on the host what a sandbox must not reach, and runs the words while it is there.

Its facts go to FOLDER/files/facts.json, which the workspace brings into the sandbox. Afterwards it fails where
somebody came by one of its sockets and "--reached" was not the first word, or where nobody did and it was.
"""
import ctypes
import json
import os
import socket
import subprocess
import sys

SECRET = "not-for-the-sandbox"
KEY = "sandhost-attack-key"
SESSION_KEYRING = -3

folder, words = sys.argv[1], sys.argv[2:]
may_reach = words[0] == "--reached"
words = words[1:] if may_reach else words

with open(folder + "/secret", "w") as file:
    file.write(SECRET)
abstract = f"sandhost-attack-{os.getpid()}"
listeners = []
for family, address in ((socket.AF_UNIX, "\0" + abstract), (socket.AF_UNIX, folder + "/socket"),
                        (socket.AF_INET, ("127.0.0.1", 0))):
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen(8)
    listener.setblocking(False)
    listeners.append(listener)

# A key in a session of its own, which the words inherit as they would from a login.
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
libc.syscall(numbers[1], 1, None)
libc.syscall(numbers[0], b"user", KEY.encode(), SECRET.encode(), ctypes.c_size_t(len(SECRET)), SESSION_KEYRING)

shm_key = 0x5a5a0000 | (os.getpid() & 0xffff)
segment = libc.shmget(shm_key, ctypes.c_size_t(4096), 0o1666)

# A descriptor that is not closed on exec, and a variable.
leaked = os.open(folder + "/secret", os.O_RDONLY)
os.set_inheritable(leaked, True)
environment = dict(os.environ, SECRET_OF_HOST=SECRET, OPENAI_API_KEY=SECRET)
marker = subprocess.Popen(["sleep", "86399"], stdin=subprocess.DEVNULL)
try:
    with open(folder + "/files/facts.json", "w") as file:
        json.dump({"outside": folder, "secret_file": folder + "/secret", "secret": SECRET, "state": folder + "/state",
                   "key": KEY, "process": "86399", "abstract": abstract, "socket_file": folder + "/socket",
                   "port": listeners[2].getsockname()[1], "shm_key": shm_key,
                   "engine": os.environ.get("DOCKER_HOST", "").removeprefix("unix://")}, file)
    code = subprocess.run(words, env=environment, close_fds=False).returncode
finally:
    marker.kill()
    marker.wait()
    libc.shmctl(segment, 0, None)
    os.unlink(folder + "/socket")
reached = []
for name, listener in zip(("abstract socket", "socket in a folder", "port"), listeners):
    try:
        listener.accept()
        reached.append(name)
    except BlockingIOError:
        pass
print("reached from inside:", ", ".join(reached) or "nothing", file=sys.stderr)
if reached != (["abstract socket", "port"] if may_reach else []):
    sys.exit("outside.py: that is not what was expected")
sys.exit(code)
