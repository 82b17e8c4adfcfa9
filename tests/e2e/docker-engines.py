# SPDX-License-Identifier: Apache-2.0
"""docker-engines.py LIBRARY GOOD-SOCKET BAD-ENGINE FOLDER: many engines in one process, all but one of them bad.

Each case has a host of its own (libsandhost) at a relay to the good engine that misbehaves at one request (bad-engine
says how), all at once. A case is right when its command's answer names what is wrong, within its time, and the next
command after a lost sandbox is answered as well. Meanwhile one session at the good engine must not notice anything.
"""
import ctypes
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

library, good, bad_engine, folder = sys.argv[1:]
lib = ctypes.CDLL(library)
lib.sandhost_run_id.restype = ctypes.c_char_p
text = ctypes.POINTER(ctypes.c_char)


class Settings(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("workspace", ctypes.c_char_p), ("provider", ctypes.c_char_p), ("record", ctypes.c_char_p)]


def take(pointer):
    value = ctypes.cast(pointer, ctypes.c_char_p).value if pointer else None
    lib.sandhost_free(pointer)
    return value.decode(errors="replace") if value else ""


class Session:
    """One host with one run."""

    def __init__(self, name, address, options):
        options = {"image": "busybox:test", "host": "unix://" + address, **options}
        config = {"governance_config": {"sandbox_config": {"provider": "docker", "options": options}}}
        settings = Settings(ctypes.sizeof(Settings), None, None, os.path.join(folder, name + ".db").encode())
        self.host, self.run, error = ctypes.c_void_p(), ctypes.c_void_p(), text()
        if lib.sandhost_open(json.dumps(config).encode(), ctypes.byref(settings), ctypes.byref(self.host), ctypes.byref(error)):
            raise RuntimeError(take(error))
        if lib.sandhost_run_start(self.host, None, ctypes.byref(self.run), ctypes.byref(error)):
            raise RuntimeError(take(error))

    def execute(self, command, seconds):
        """The answer as text: the JSON result's message and output, or the error."""
        result, error = text(), text()
        lib.sandhost_execute(self.run, command.encode(), seconds, ctypes.byref(result), ctypes.byref(error))
        said, wrong = take(result), take(error)
        if not said:
            return wrong, {}
        answer = json.loads(said)
        return str(answer.get("message")), answer.get("data") or {}

    def close(self):
        error = text()
        lib.sandhost_run_end(self.run, b"success", None, ctypes.byref(error))
        lib.sandhost_close(self.host)


ENGINE = r"the Docker engine at unix://"
LOST = r"The sandbox was lost during this command"
LONG = "i=0; while [ $i -lt 4000 ]; do echo line $i of many, so that the stream has something; i=$((i + 1)); done"
# name: mode, at, more words of bad-engine, options, command, what the answer says, seconds that it may take
SLACK = 90  # seconds: what thirty hosts at once may take on a slow machine
CASES = {
    "dies-mid-attach": ("die", "/attach", ["--after", "20"], {}, "true", ENGINE, 40),
    "cut-mid-attach": ("cut", "/attach", ["--after", "20"], {}, "true", ENGINE, 40),
    "cut-after-attach": ("cut", "/attach", ["--after", "130"], {}, "true", ENGINE + "|guest did not greet", 40),
    "frames-at-attach": ("frames", "/attach", [], {}, "true", "guest did not greet: its stream failed", 40),
    "garbage-at-attach": ("garbage", "/attach", [], {}, "true", ENGINE, 40),
    "mute-at-attach": ("mute", "/attach", [], {}, "true", ENGINE, 60),
    "mute-at-create": ("mute", "/containers/create", [], {}, "true", ENGINE, 60),
    "mute-at-start": ("mute", "/start", [], {}, "true", ENGINE, 60),
    "endless-at-version": ("endless", "/version", [], {}, "true", ENGINE, 40),
    "endless-at-info": ("endless", "/info", [], {}, "true", ENGINE, 40),
    "endless-at-create": ("endless", "/containers/create", [], {}, "true", ENGINE, 40),
    "endless-at-image": ("endless", "/json", [], {}, "true", ENGINE, 40),
    "endless-pull": ("endless", "/images/create", [], {"image": "127.0.0.1:5000/nobody/has-this:1"}, "true", ENGINE, 60),
    "empty-pull": ("cut", "/images/create", ["--after", "0"], {"image": "127.0.0.1:5000/nobody/has-this:1"}, "true", ENGINE, 60),
    "lying-pull": ("lying", "/images/create", [], {"image": "127.0.0.1:5000/nobody/has-this:1"}, "true", ENGINE + "|not present|[Ii]mage", 60),
    # Why a container ended, which remove_it below takes away, is asked of the events.
    "endless-events": ("endless", "/events", [], {}, "sleep 170; # is removed", LOST, 30),
    "mute-events": ("mute", "/events", [], {}, "sleep 170; # is removed", LOST, 30),
    "lying-events": ("lying", "/events", [], {}, "sleep 170; # is removed", LOST, 30),
    "slow-at-create": ("slow", "/containers/create", [], {}, "echo slow but well", r"None", 60),
    "cut-mid-command": ("cut", "/attach", ["--after", "60000"], {}, LONG, LOST, 40),
    "dies-mid-command": ("die", "/attach", ["--after", "60000"], {}, LONG, LOST, 40),
    "twisted-mid-command": ("twist", "/attach", ["--after", "60000"], {}, LONG, "it broke the protocol|" + LOST, 40),
    "stalled-mid-command": ("stall", "/attach", ["--after", "60000"], {}, LONG, LOST, 60),
    "stalled-mid-exec": ("stall", "/start", ["--nth", "2", "--after", "20000"], {"guest": "never"}, LONG, LOST, 60),
    "twisted-mid-exec": ("twist", "/start", ["--nth", "2", "--after", "20000"], {"guest": "never"}, LONG, ENGINE + "|" + LOST, 60),
    "cut-mid-exec": ("cut", "/start", ["--nth", "2", "--after", "20000"], {"guest": "never"}, LONG, ENGINE + ".* broke the connection off", 40),
    "mute-at-exec": ("mute", "/exec", [], {"guest": "never"}, "true", ENGINE + "|" + LOST, 90),
    "frames-at-exec": ("frames", "/exec/", [], {"guest": "never"}, "true", ENGINE + "|" + LOST, 60),
    "endless-at-exec": ("endless", "/exec", [], {"guest": "never"}, "true", ENGINE + "|" + LOST, 60),
}
wrong, told = [], threading.Lock()


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(good)


def ask(method, path):
    connection = Connection("engine")
    connection.request(method, "/v1.40" + path)
    answer = connection.getresponse().read()
    connection.close()
    return json.loads(answer or b"null")


def remove_it(run_id):
    """The container of a run, as soon as its command runs."""
    filters = json.dumps({"label": ["omnicoreagent.run=" + run_id], "status": ["running"]})
    until = time.monotonic() + 120
    while time.monotonic() < until:
        for container in ask("GET", "/containers/json?filters=" + urllib.parse.quote(filters)):
            place = f"/containers/{container['Id']}"
            if any(process[-1].startswith("sleep ") for process in ask("GET", place + "/top").get("Processes") or []):
                ask("DELETE", place + "?force=1&v=1")
                return
        time.sleep(0.05)


def say(line):
    with told:
        print(line, flush=True)


def try_case(name, mode, at, words, options, command, expected, patience):
    address = os.path.join(folder, name + ".sock")
    with open(os.path.join(folder, name + ".log"), "wb") as log:
        engine = subprocess.Popen([bad_engine, mode, address, "--at", at, "--relay", good, *words], stdout=log, stderr=log)
    try:
        until = time.monotonic() + 30
        while not os.path.exists(address) and time.monotonic() < until:
            time.sleep(0.02)
        session = Session(name, address, options)
        begun = time.monotonic()
        if command.endswith("is removed"):
            threading.Thread(target=remove_it, args=(lib.sandhost_run_id(session.run).decode(),)).start()
        # These end before their limit, or never begin.
        message, data = session.execute(command, 20 if command == "true" or mode == "stall" else 180)
        took = time.monotonic() - begun
        say(f"{name}: {took:.1f} s: {message[:300]!r} {str(data)[:100] if message == 'None' else ''}")
        with open(os.path.join(folder, name + ".log"), "rb") as log:
            met = b" !" in log.read()
        if not met and at != "/events":  # which are asked only where the container is gone already
            wrong.append(f"{name}: nothing was asked that could go wrong")
        if took > patience + SLACK:
            wrong.append(f"{name}: it took {took:.1f} s instead of {patience}")
        if not re.search(expected, message) or any(ord(letter) < 32 for letter in message) or len(message) > 4000:
            wrong.append(f"{name}: the answer is {message[:2000]!r} instead of {expected}")
        if data.get("timed_out") and mode != "stall":  # which nobody can tell from a command that says nothing
            wrong.append(f"{name}: a bad engine is told as a time-out")
        session.close()
    except BaseException as error:  # pylint: disable=broad-except
        wrong.append(f"{name}: {error!r}")
    finally:
        engine.kill()
        engine.wait()


def main():
    session = Session("good", good, {})
    message, _ = session.execute("true", 120)
    if message != "None":
        sys.exit(f"the good engine: {message}")
    wanted = os.environ.get("CASES", "").split() or list(CASES)
    threads = [threading.Thread(target=try_case, args=(name, *CASES[name])) for name in wanted]
    for thread in threads:
        thread.start()
    slowest, count = 0, 0
    while any(thread.is_alive() for thread in threads):
        begun = time.monotonic()
        message, data = session.execute(f"echo {count}", 120)
        slowest = max(slowest, time.monotonic() - begun)
        if message != "None" or data.get("stdout") != f"{count}\n":
            wrong.append(f"the good session: {message} {data}")
            break
        count += 1
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    session.close()
    say(f"the good session: {count} commands, the slowest {slowest:.3f} s")
    if count < 10:
        wrong.append("the good session had too few commands to tell")
    if slowest > 20:  # less than the mute ones take
        wrong.append(f"the good session had to wait {slowest:.1f} s for a command")
    for line in wrong:
        print("WRONG: " + line)
    sys.exit(1 if wrong else 0)


main()
