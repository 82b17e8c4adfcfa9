# SPDX-License-Identifier: Apache-2.0
"""workspace.py: what the commands write, and whether a workspace holds whole files of them only."""
import os
import re

from machine import Wrong

SIZES = (100, 511, 4095, 4096, 4097, 16383, 32769, 65535, 65536, 65537, 131073, 262145)
FOLDERS = ("", "d1/", "d2/", "d3/", "d4/", "d5/")
PATHS = [folder + f"f{i}" for folder in FOLDERS for i in range(len(SIZES))]


def size_of(version, number):
    return SIZES[(version + number) % len(SIZES)]


def content(version, number):
    line = b"version %d of file %d\n" % (version, number)
    size = size_of(version, number)
    return (line * (size // len(line) + 1))[:size]


def command(version, mark, files, pause):
    """Leaves processes of several kinds behind, prints more than fits one chunk, and writes every file anew."""
    lines = [
        f"v={version}",
        "echo begun $v.",
        f"sleep {mark} &",
        f"(setsid sh -c '(trap \"\" HUP INT TERM; sleep {mark}) & (while :; do sleep 0.01; done) &' sh {mark} &)",
        f"(setsid setsid sh -c 'trap \"\" HUP INT TERM; cd /; (sleep {mark} &) & exec sleep {mark}' >/dev/null 2>&1 </dev/null &)",
        "seq 4000",
    ]
    if files:
        sizes = " ".join(str(size_of(version, i)) for i in range(len(SIZES)))
        lines += [
            f"i=0; for size in {sizes}; do yes \"version $v of file $i\" 2>/dev/null | head -c $size >f$i; i=$((i + 1)); done",
            "mkdir -p d1 d2 d3 d4 d5; for d in d1 d2 d3 d4 d5; do cp f* $d; done",
        ]
    return "\n".join(lines + [f"sleep {pause}", "echo over $v."])


class Workspace:
    def __init__(self, folder):
        self.folder = folder
        self.held = dict.fromkeys(PATHS)  # which version each file has; None: it is not there
        os.makedirs(folder + "/mine", exist_ok=True)
        for number in range(200):  # what only goes in, so that this takes its time
            with open(f"{folder}/mine/{number}", "w", encoding="ascii") as file:
                file.write("what no command changes\n" * 1500)
        self.own = folder + "/mine/.sandhost-notes"  # hidden, old, and none of sandhost's business
        with open(self.own, "w", encoding="ascii") as file:
            file.write("mine\n")
        os.utime(self.own, (1, 1))
        try:
            os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
            self.nameless = True
        except OSError:
            self.nameless = False  # a file has a name before it is whole here

    def forget(self):
        """Some files are not there before the next command, so that they are made and not replaced."""
        for path in PATHS[len(SIZES) * 2 :]:
            if os.path.exists(f"{self.folder}/{path}"):
                os.unlink(f"{self.folder}/{path}")
            self.held[path] = None

    @staticmethod
    def version(path, numbers):
        """The version that a file holds, whole; None: it is not there."""
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        head = re.match(rb"version (\d+) of file (\d+)\n", data)
        if not head or int(head[2]) not in numbers or data != content(int(head[1]), int(head[2])):
            raise Wrong(f"{path} is not whole: {len(data)} bytes, {data[:40]!r} ... {data[-40:]!r}")
        return int(head[1])

    def look(self):
        return {path: self.version(f"{self.folder}/{path}", [int(path.rsplit("f", 1)[1])]) for path in PATHS}

    def temporaries(self):
        found = [f"{path}/{name}" for path, _, names in os.walk(self.folder) for name in names if name.startswith(".")]
        found = [path for path in found if path != self.own]
        for path in found if self.nameless else []:
            self.version(path, range(len(SIZES)))  # whole, only under another name
        return found

    def other_names(self):
        wanted = set(PATHS) | {"mine/.sandhost-notes"} | {f"mine/{number}" for number in range(200)}
        return [
            name
            for path, _, names in os.walk(self.folder)
            for name in (os.path.relpath(os.path.join(path, name), self.folder) for name in names)
            if name not in wanted and not os.path.basename(name).startswith(".sandhost-")
        ]
