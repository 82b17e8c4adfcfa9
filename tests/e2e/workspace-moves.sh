#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# workspace-moves.sh: the workspace is the folder that was there when the run began, whatever has its name later.
. "$(dirname "$0")/lib.bash"

# In a session, so that no clock is needed.
# SWAP is run between two commands; the second one's answer is what counts.
during() { # WORKSPACE SWAP [COMMAND] [OPTION]...
  python3 - "$sandhost" "$1" "$2" "${3-echo made >s; ls}" "${@:4}" <<'PY' >"$work/.out" 2>"$work/.err" || fail "a session: $(cat "$work/.err")"
import json, subprocess, sys
program, workspace, swap, command, *options = sys.argv[1:]
session = subprocess.Popen([program, "session", "-w", workspace, *options], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True)
def ask(command):
    session.stdin.write(json.dumps({"id": 1, "command": command}) + "\n")
    session.stdin.flush()
    return json.loads(session.stdout.readline())
assert ask("true")["status"] == "success"
subprocess.run(["sh", "-ec", swap], check=True)
print(json.dumps(ask(command)))
session.stdin.close()
session.wait()
PY
  out=$(cat "$work/.out") err=$(cat "$work/.err") code=0
}

# A link in its place.
mkdir a other
echo theirs >other/s
during a 'mv a a-moved; ln -s other a'
want_json '["s"]' data workspace_files written
want_file a-moved/s made
want_file other/s theirs

# A folder above it.
mkdir -p above/b
during above/b 'mv above above-moved; mkdir -p above/b; echo new >above/b/new'
want_json $'s\n' data stdout
want_file above-moved/b/s made
[ "$(ls above/b)" = new ] || fail "the folder of the same name was written to"

# It is gone: that is told, and another one of its name is not taken for it.
mkdir c
during c 'rmdir c; mkdir c'
want_json success status
want_in_out "was deleted during the run, so nothing can be copied back"
[ -z "$(ls -A c)" ] || fail "another folder was written to"

# What chooses the rules stays guarded when a link on the way to the workspace leads elsewhere by now.
mkdir -p real/project elsewhere/project
ln -s real link
echo '{"governance_config": {"sandbox_config": {"provider": "bubblewrap"}}}' >real/project/own.json; own=$(cat real/project/own.json)
during link/project 'rm link; ln -s elsewhere link' 'echo "{ }" >own.json; echo made >s' --config real/project/own.json
want_file real/project/own.json "$own"
want_file real/project/s made
want_json own.json data workspace_files skipped 0 path
