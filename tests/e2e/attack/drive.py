# SPDX-License-Identifier: Apache-2.0
"""drive.py SANDHOST ARGUMENT...: runs the commands on stdin, JSON strings, one after the other in one session.

One that begins with "host: " runs here, in between; one that begins with "limit N: " has N seconds. For each it prints a
line of JSON: what came of it.
"""
import json
import re
import subprocess
import sys

HOST = "host: "
LIMIT = re.compile(r"limit (\d+): ")
MOST = 180  # seconds that a command may have


def run_here(command):
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return {"status": "host", "exit": done.returncode, "out": done.stdout[:2000], "err": done.stderr[:2000]}


def run_inside(host, number, command):
    limit = LIMIT.match(command)
    seconds, command = (int(limit[1]), command[limit.end():]) if limit else (MOST, command)
    host.stdin.write(json.dumps({"id": number, "command": command, "timeout": seconds}) + "\n")
    host.stdin.flush()
    answer = json.loads(host.stdout.readline())
    data = answer["data"] or {}
    return {"status": answer["status"], "message": answer["message"], "exit": data.get("exit_code"),
            "out": data.get("stdout", "")[:2000], "err": data.get("stderr", "")[:2000],
            "lost": data.get("sandbox_lost", False), "timed_out": data.get("timed_out", False),
            "killed_by": data.get("killed_by", ""), "signal": data.get("signal", 0)}


def main():
    words = sys.argv[1:]
    with subprocess.Popen([words[0], "session", *words[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        for number, line in enumerate(sys.stdin):
            command = json.loads(line)
            result = (run_here(command[len(HOST):]) if command.startswith(HOST)
                      else run_inside(host, number, command))
            print(json.dumps(result), flush=True)
        host.stdin.close()
        return host.wait()


sys.exit(main())
