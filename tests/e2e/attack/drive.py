# SPDX-License-Identifier: Apache-2.0
"""drive.py SECONDS SANDHOST [OPTION...]: one session; the lines of stdin are commands (JSON strings), run one after
the other in one sandbox. Prints the answers, a line each."""
import json
import subprocess
import sys

seconds, words = int(sys.argv[1]), sys.argv[2:]
with subprocess.Popen([words[0], "session", *words[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
    for number, line in enumerate(sys.stdin):
        host.stdin.write(json.dumps({"id": number, "command": json.loads(line), "timeout": seconds}) + "\n")
        host.stdin.flush()
        answer = json.loads(host.stdout.readline())
        data = answer["data"] or {}
        print(json.dumps({"status": answer["status"], "message": answer["message"], "exit": data.get("exit_code"),
                          "out": data.get("stdout", "")[:2000], "err": data.get("stderr", "")[:2000],
                          "lost": data.get("sandbox_lost", False), "timed_out": data.get("timed_out", False),
                          "killed_by": data.get("killed_by", ""), "signal": data.get("signal", 0)}), flush=True)
    host.stdin.close()
    sys.exit(host.wait())
