# SPDX-License-Identifier: Apache-2.0
"""kills.py DOOR ROUNDS SANDHOST: kills a host again and again and looks at what is left; kills.sh says what for.

DOOR: exec, limited (exec with a control group), session (commands one after the other), embedded (one process with
three runs at once, through libsandhost), local (commands on this machine), docker (the engine at DOCKER_HOST, all of whose
containers are this test's). The current folder is used up.

Where the kills fall: undisturbed runs are timed by the events that they record, and each round aims at a random moment
between two such events, all pairs in turn; once a command has begun, from what it prints at its begin and its end on. What
the record tells afterwards says where the kill really fell.

What "nothing is alive" rests on: this process is the reaper of every orphan below it, so whatever a host started, in
however many sessions and forks, is dead when there is no child left to wait for, and not before. Two other looks have to
agree: nobody on the machine has the round's mark among its words or in its environment, and, where this process may make
itself a control group, nobody but itself is in it. An engine's containers are no children: there the marked are waited for,
and that no container runs.

The two seconds: they are counted on the monotonic clock from the kill to the last process's end. What the machine took
away is counted apart: the time by which this process, which looks every few milliseconds, was late to look; and from half
a second on the time in which a thread of what was left could run and was given no processor, or waited for the disk (state
D), where no signal reaches it. More than two seconds without those fails; a minute with them fails in any case. So a busy
machine does not fail the test, and what waits for anything else, or goes on working, does.
"""
import ctypes
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time

from machine import PATIENCE, Engine, Group, Wait, Wrong, marked, mounts
from told import Life
from workspace import PATHS, Workspace, command

COMMAND, COPY_BACK = 3, 4  # the steps after which these go on


class Done:
    """One host that has ended."""

    def __init__(self, lines):
        self.lines = lines
        self.killed = False
        self.wall = self.ended = 0.0  # when it was started; after how many seconds it was at its end
        self.said = []  # after how many seconds its commands said that they begin, and that they are over
        self.lives = []

    def steps(self):
        """After how many seconds it was at each step; the first is its start, the last its end."""
        return [0.0] + [at - self.wall for at in self.lives[0].times()] + [self.ended]


class Shot:
    """When a host is to be killed: so long after its start, or after a word of its command."""

    def __init__(self, aim, lines):
        word, place, self.delay = aim
        self.word = word and f"{word} {lines[place][1]}."
        self.began = 0.0

    def moment(self, said):
        """None: not yet known."""
        since = said.get(self.word) if self.word else self.began
        return since and since + self.delay


class Test:
    def __init__(self, door, rounds, sandhost):
        self.door, self.rounds, self.sandhost = door, rounds, sandhost
        self.mark = f"3{random.randrange(10**7):07}"  # of a length that nobody takes for a card's or a telephone's
        self.files = door != "local"
        self.commands = 3 if door == "session" else 1
        self.last = 0  # the newest version
        self.known, self.sessions = set(), set()  # runs, and their sandboxes
        self.order = None  # the types of an undisturbed run's events
        self.timings = []  # of undisturbed runs
        self.places, self.hits, self.kills, self.longest = {}, 0, 0, (0.0, 0.0)
        self.seen = {"old": 0, "mixed": 0, "new": 0}
        self.left_temporaries = 0
        os.mkdir("temporary")
        self.environment = {**os.environ, "KILLS_MARK": self.mark, "TMPDIR": os.path.abspath("temporary")}
        names = [f"workspace{i}" for i in range(3)] if door == "embedded" else ["workspace"]
        self.workspaces = [Workspace(os.path.abspath(f"{name}/files")) for name in names] if self.files else []
        self.config = self.write_config()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(36, 1, 0, 0, 0):  # PR_SET_CHILD_SUBREAPER
            raise Wrong("this process cannot become the reaper of what is below it")
        self.group = Group()
        self.engine = Engine() if door == "docker" else None
        self.mounts = mounts()

    def write_config(self):
        manifest, provider, rules = {}, "bubblewrap", {"profile": "permissive-dev"}
        if self.door == "local":
            provider = "local"
            manifest = {"network_policy": {"default": "allow"}, "working_dir": os.path.abspath("temporary")}
            names = ("sandbox.*", "process.exec")
            allow = [{"rule_id": f"rule{i}", "capability": name} for i, name in enumerate(names)]
            rules = {"policy": {"mode": "interactive", "rules": {"allow": allow}}}
        elif self.door == "docker":
            provider = {"provider": "docker", "options": {"image": "busybox:test"}}
        elif self.door == "limited":
            manifest = {"resources": {"memory": "256m", "cpu": "2"}}
        config = {"governance_config": {**rules, "sandbox_config": provider, "sandbox_manifest": manifest}}
        with open("agent.json", "w", encoding="utf-8") as file:
            json.dump(config, file)
        return config

    def ask(self, *words):
        done = subprocess.run([self.sandhost, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Wrong(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[:500]}")
        return done.stdout

    # -- One host

    def lines(self):
        """The commands of one host: (workspace, version, line)."""
        made = []
        for workspace in self.workspaces * self.commands or [None]:
            self.last += 1
            made.append((workspace, self.last, command(self.last, self.mark, self.files, f"0.0{random.randrange(3)}")))
        return made

    def start(self, lines):
        words = [self.sandhost, "exec", "-q", "-c", "agent.json", "--yes", "--", lines[0][2]]
        if self.door == "session":
            words = [self.sandhost, "session", "-c", "agent.json", "--yes"]
            words += ["--stream"]
        elif self.door == "embedded":
            library = os.path.join(os.path.dirname(os.path.dirname(self.sandhost)), "lib/libsandhost.so.0")
            jobs = [[os.path.dirname(place.folder) + "/files", line] for place, _, line in lines]
            script = os.path.join(os.path.dirname(__file__), "embedded.py")
            words = [sys.executable, script, library, json.dumps(self.config), json.dumps(jobs)]
        asks, answers, silent = os.pipe(), os.pipe(), os.open(os.devnull, os.O_RDWR)
        actions = [
            (os.POSIX_SPAWN_DUP2, asks[0] if self.door == "session" else silent, 0),
            (os.POSIX_SPAWN_DUP2, answers[1], 1),
            (os.POSIX_SPAWN_OPEN, 2, "told", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644),
        ]
        pid = os.posix_spawn(words[0], words, self.environment, file_actions=actions)
        for end in (asks[0], answers[1], silent):
            os.close(end)
        return pid, asks[1], answers[0]

    def follow(self, lines, writer, reader, shot):
        """Reads what the host says and sends a session's commands as answers come, until the moment of the shot or until
        the host's end. Returns when each word was said, and what is still open."""
        said, text, sent = {}, b"", 0
        until = shot and shot.moment(said)
        while True:
            answers = text[: text.rfind(b"\n") + 1].count(b'"tool_name"')
            try:
                while self.door == "session" and sent <= answers and sent < len(lines):
                    os.write(writer, json.dumps({"command": lines[sent][2]}).encode() + b"\n")
                    sent += 1
            except BrokenPipeError:
                pass
            if writer is not None and answers == len(lines):
                os.close(writer)
                writer = None
            left = until - time.monotonic() if until else None
            part = os.read(reader, 1 << 16) if select.select([reader], [], [], left and max(left, 0))[0] else b""
            if not part:
                return said, [end for end in (reader, writer) if end is not None]
            text += part
            for word in re.findall(rb"(?:begun|over) [0-9]+\.", text[-len(part) - 16 :]):
                said.setdefault(word.decode(), time.monotonic())
            until = shot and shot.moment(said)

    def host(self, aim):
        """Runs one host, killed where aim says (None: never)."""
        lines = self.lines()
        shot = aim and Shot(aim, lines)
        done = Done(lines)
        began, done.wall = time.monotonic(), time.time()
        if shot:
            shot.began = began
        pid, writer, reader = self.start(lines)
        said, open_ends = self.follow(lines, writer, reader, shot)
        if shot and shot.moment(said):
            time.sleep(max(0, shot.moment(said) - time.monotonic()))
        else:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        killed_at = time.monotonic()
        os.kill(pid, signal.SIGKILL)  # at worst a zombie, since nobody has waited for it
        done.ended = killed_at - began
        done.said = [said.get(f"{word} {version}.", killed_at) - began for _, version, _ in lines for word in ("begun", "over")]
        if self.engine:
            wait = Wait(killed_at, lambda: marked(self.mark) + self.engine.containers(), [self.engine.first])
        else:
            wait = Wait(killed_at)
        for end in open_ends:
            os.close(end)
        self.longest = max(self.longest, (wait.took, wait.stalled))
        done.killed = os.WIFSIGNALED(wait.statuses[pid])
        if not done.killed and os.WEXITSTATUS(wait.statuses[pid]):
            with open("told", encoding="utf-8", errors="replace") as file:
                raise Wrong(f"a run that nobody disturbed ended with {os.WEXITSTATUS(wait.statuses[pid])}: {file.read()[:500]}")
        return done

    # -- What is left

    def look_at_machine(self):
        everybody = marked(self.mark)
        if everybody:
            raise Wrong(f"processes of the sandbox, out of the reaper's sight: {everybody}")
        if self.group.others():
            raise Wrong(f"processes in the host's control group: {self.group.others()}")
        if self.own_mounts():
            raise Wrong(f"mounts are left: {self.own_mounts()}")
        if os.listdir("temporary") and self.door != "local":
            raise Wrong(f"left in the folder of temporary files: {os.listdir('temporary')}")

    def own_mounts(self):
        """Others may mount meanwhile; what sandhost could mount is below its folders, that of temporary files among them."""
        return [path for path in mounts() - self.mounts if path.startswith(os.getcwd() + "/")]

    def look_at_record(self):
        """The new runs, after the next start of sandhost has found those that are dead."""
        newest = [run for run in json.loads(self.ask("runs", "--json", "--limit", "8")) if run["run_id"] not in self.known]
        lives = []
        for run in newest:
            self.known.add(run["run_id"])
            life = Life(self, run["run_id"])
            self.sessions |= life.sessions
            if run["status"] != ("interrupted" if life.interrupted else "completed"):
                raise Wrong(f"run {life.id} is {run['status']} with the events {life.types}")
            told = json.loads(self.ask("show", life.id, "--json"))
            is_told = (told["status"], told["incomplete"], told["totals"]["executions"]["commands"])
            if is_told != (run["status"], life.interrupted, len(life.started)):
                raise Wrong(f"run {life.id} is told as {is_told}, with the events {life.types}")
            if self.order and life.types != self.order[: len(life.types)]:
                raise Wrong(f"run {life.id}: {life.types} is no beginning of {self.order}")
            if self.order and not life.interrupted and life.types != self.order:
                raise Wrong(f"run {life.id} is told as completed with {life.types}")
            lives.append(life)
        if len(lives) > max(1, len(self.workspaces)):
            raise Wrong(f"{len(lives)} new runs")
        return lives

    def look_at_files(self, done):
        for workspace in self.workspaces:
            versions = [version for place, version, _ in done.lines if place is workspace]
            life = next((life for life in done.lives if set(life.versions) & set(versions)), None)
            completed = life.completed if life else []
            now = workspace.look()
            for path, version in now.items():
                least = max([done for done, facts in (life.synced if life else {}).items() if path in facts["written"]], default=None)
                if version is None and workspace.held[path] is None and least is None:
                    continue
                if version != workspace.held[path] and version not in completed:
                    raise Wrong(f"{path} has version {version}; it had {workspace.held[path]}, and the record has the ends of {completed}")
                if least and (version is None or version < least):
                    raise Wrong(f"{path} has version {version}, and the record says that {least} was written")
            if not done.killed and set(now.values()) != {versions[-1]}:
                raise Wrong(f"a run that nobody disturbed left the versions {set(now.values())}")
            if life and life.interrupted and completed and completed[-1] not in life.synced:
                new = sum(version == completed[-1] for version in now.values())
                self.seen["new" if new == len(PATHS) else "mixed" if new else "old"] += 1
            self.left_temporaries += len(workspace.temporaries())
            if workspace.other_names():
                raise Wrong(f"names that no command made: {workspace.other_names()}")
            workspace.held = now

    def round(self, aim):
        if self.last % 2:
            for workspace in self.workspaces:
                workspace.forget()
        done = self.host(aim)
        self.look_at_machine()
        done.lives = self.look_at_record()
        self.look_at_files(done)
        return done

    def undisturbed(self):
        done = self.round(None)
        if done.killed or not done.lives or any(life.interrupted for life in done.lives):
            raise Wrong("a run that nobody disturbed was interrupted")
        self.order = done.lives[0].types
        self.timings.append(done)
        for workspace in self.workspaces:
            if workspace.temporaries():
                raise Wrong(f"a run left what a killed one had not finished: {workspace.temporaries()}")
            if not os.path.exists(workspace.own):
                raise Wrong("a hidden file that is not sandhost's was removed")
        for version, facts in done.lives[-1].synced.items():
            if self.files and (set(facts["written"]) != set(PATHS) or facts["skipped"]):
                raise Wrong(f"version {version} came back as {facts}")
        if self.engine:
            self.clean_up()
        groups = [path for path in self.group.groups() if os.path.basename(path) != "sandhost"]
        groups += self.group.named(self.sessions) if self.door == "limited" else []
        if groups:
            raise Wrong(f"the next run left control groups: {groups}")

    def clean_up(self):
        """A busy engine may make what a killed host asked for later than the first look: then the next one finds it."""
        until = time.monotonic() + PATIENCE
        while True:
            self.ask("cleanup", "--provider", "docker", "--all", "--min-age", "0")
            left = self.engine.containers("?all=1")
            if not left:
                return
            if time.monotonic() > until:
                raise Wrong(f"cleanups again and again leave: {left}")

    def usual(self, number):
        """What a number of an undisturbed run was of late."""
        recent = sorted(number(done) for done in self.timings[-5:])
        return recent[len(recent) // 2]

    def aim(self, step):
        """At a moment between a step of the run and the next one: (word, command, seconds)."""
        low, high = (self.usual(lambda done, at=at: done.steps()[at]) for at in (step, step + 1))
        word, place, since = None, (step - 3) // 3, 0.0
        if step >= 3 and self.door != "embedded":
            word = "begun" if step % 3 == 0 else "over"
            place = min(place, self.commands - 1)
            since = self.usual(lambda done: done.said[2 * place + (word == "over")])
        low, high = max(low - since, 0), max(high - since, 0)
        return word, place, random.uniform(low, max(low, high))

    def kill_one(self, step):
        done = self.round(self.aim(step))
        self.kills += done.killed
        self.hits += any(life.interrupted for life in done.lives)
        for place in {life.place() for life in done.lives} or {"before the record"}:
            self.places[place] = self.places.get(place, 0) + 1

    def missing(self):
        """The steps at which kills are still wanting: for too few of them, or for none amid the files that come back."""
        wanted = {"create": 1, "copy in": 2, "command": COMMAND, "copy back": COPY_BACK}
        if not self.files:
            wanted = {"create": 1, "command": COMMAND}
        found = [step for place, step in wanted.items() if self.places.get(place, 0) <= self.rounds // 50]
        return found + ([COPY_BACK] if self.files and not self.seen["mixed"] else []) + ([COMMAND] if self.hits * 2 < self.rounds else [])

    def all(self):
        began = time.monotonic()
        for _ in range(4):
            self.undisturbed()
        self.timings.pop(0)  # everything was cold
        steps = len(self.timings[0].steps()) - 1
        # The first and the last stretch seldom leave an interrupted run: half as often.
        turns = [0] + [step for step in range(1, steps - 1) for _ in range(4 if step == COMMAND else 2)] + [steps - 1]
        for number in range(self.rounds):
            self.kill_one(turns[number % len(turns)])
            if number % 25 == 24:
                self.undisturbed()
        more = 0
        while self.missing() and more < max(self.rounds, 40):
            if more % 5 == 0:
                self.undisturbed()  # what was timed when the machine was busier, or less busy, aims beside it
            self.kill_one(self.missing()[0])
            more += 1
        self.undisturbed()
        self.ask("record", "verify")
        if json.loads(self.ask("runs", "--json", "--status", "running")):
            raise Wrong("a run is told as running")
        longest, stalled = self.longest
        took = f"in {time.monotonic() - began:.0f} s"
        print(f"{self.door}: {self.rounds + more} rounds, {self.kills} kills, {self.hits} interrupted runs, {took}")
        print(f"  where they fell: {self.places}; files after a kill within or after the copy back: {self.seen}")
        print(f"  longest until nothing was alive: {longest * 1000:.0f} ms, of which the machine stalled for {stalled * 1000:.0f} ms")
        print(f"  files under a temporary name that killed hosts left, until the next run: {self.left_temporaries}")
        if self.missing():
            raise Wrong(f"{self.hits} runs were hit, and not every part of a run: steps {self.missing()}")


def main():
    seed = os.environ.get("SANDHOST_KILLS_SEED") or str(random.randrange(10**9))
    random.seed(int(seed))
    test = Test(sys.argv[1], int(sys.argv[2]), os.path.abspath(sys.argv[3]))
    try:
        test.all()
    except Wrong as wrong:
        sys.exit(f"FAILED: {test.door}, after {test.kills} kills (seed {seed}): {wrong}")
    finally:
        test.group.leave()


main()
