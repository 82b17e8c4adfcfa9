# SPDX-License-Identifier: Apache-2.0
"""told.py: what the record tells of one run."""
import json
import re
from datetime import datetime

from machine import Wrong

STEPS = ("run_started", "sandbox_session_created", "sandbox_exec_started", "sandbox_exec_completed", "sandbox_workspace_sync")
PLACES = ("create", "copy in", "command", "copy back", "after the copy back")


class Life:
    """What the record tells of one run."""

    def __init__(self, test, run_id):
        self.id = run_id
        lines = test.ask("show", run_id, "-e", "--json").splitlines()
        self.events = [json.loads(line) for line in lines]
        self.types = [event["type"] for event in self.events]
        self.interrupted = "run_interrupted" in self.types
        if self.interrupted:
            if self.types[-1] != "run_interrupted":
                raise Wrong(f"run {run_id} goes on after its interruption: {self.types}")
            self.types.pop()
            while self.types and self.types[-1] == "sandbox_output_sealed":
                self.types.pop()
        calls = {}
        self.started, self.completed, self.synced = [], [], {}
        for event in self.events:
            call = (event["metadata"] or {}).get("tool_call_id")
            if event["type"] == "tool_call_started":
                calls[call] = int(re.match(r"v=(\d+)\n", event["payload"]["arguments"]["command"])[1])
            elif event["type"] == "sandbox_exec_started":
                self.started.append(calls[call])
            elif event["type"] == "sandbox_exec_completed":
                self.completed.append(calls[call])
            elif event["type"] == "sandbox_workspace_sync":
                self.synced[calls[call]] = event["metadata"]
        self.versions = list(calls.values())
        self.sessions = {(event["metadata"] or {}).get("sandbox_session_id") for event in self.events} - {None}

    def place(self):
        if not self.interrupted:
            return "end"
        return PLACES[STEPS.index([kind for kind in self.types if kind in STEPS][-1])]

    def times(self):
        return [datetime.fromisoformat(event["at"].replace("Z", "+00:00")).timestamp() for event in self.events if event["type"] in STEPS]
