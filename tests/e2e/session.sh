# SPDX-License-Identifier: Apache-2.0
# Many commands in one run, several in flight, one sandbox.
. "$(dirname "$0")/lib.bash"

# The slow one goes on until the fast one is answered.
mkfifo requests
"$sandhost" session <requests >answers 2>errors &
session=$!
exec 7>requests
cat >&7 <<'REQUESTS'
{"id": "slow", "command": "until [ -e go ]; do sleep 0.05; done; cat shared", "timeout": 180}
{"id": 2, "command": "echo fast > shared; echo fast"}
{"id": null, "command": "exit 3"}
{"id": 4, "command": 5}
{"id": 5, "command": "true", "shell": "x"}
not json
{"id": 6, "command": "  "}
{"id": 7, "command": "sleep 1000", "timeout": 1}
REQUESTS
wait_until "the fast one is not answered" 'grep -q "\"id\":2," answers'
echo '{"id": "go", "command": "touch go"}' >&7
exec 7>&-
code=0
wait $session || code=$?
out=$(cat answers) err=$(cat errors)
want_exit 0
python3 - "$out" <<'PY' || fail "answers"
import json, sys
lines = [json.loads(line) for line in sys.argv[1].splitlines()]
by = {json.dumps(line["id"]): line for line in lines if line["id"] is not None}
assert len(lines) == 9, len(lines)
assert by['"slow"']["data"]["stdout"] == "fast\n", by['"slow"']
assert by["2"]["status"] == "success" and by["2"]["data"]["stdout"] == "fast\n"
# Whichever command's copy came first found the files.
written = [name for line in lines for name in ((line["data"] or {}).get("workspace_files") or {"written": []})["written"]]
assert sorted(written) == ["go", "shared"], written
assert by["4"]["message"] == "command must be a string" and by["4"]["status"] == "error"
assert "shell" in by["5"]["message"]
assert by["6"]["message"] == "The command is empty."
assert by["7"]["message"] == "Command timed out after 1s"
names = [line["id"] for line in lines]
assert names.index("slow") > names.index(2)
assert len({line["run_id"] for line in lines}) == 1
PY
want_file workspace/files/shared fast
run "$sandhost" show --json
want_json 1 totals executions sessions
want_json 5 totals executions commands
want_json 2 totals executions failed
want_json 1 totals executions timed_out

run_with '{"id": 1, "command": "printf \"\\342\\202\"; sleep 0.2; printf \"\\254 \\377\"; echo e >&2"}' "$sandhost" session --stream
want_exit 0
python3 - "$out" <<'PY' || fail "stream"
import json, sys
lines = [json.loads(line) for line in sys.argv[1].splitlines()]
text = "".join(line["data"] for line in lines if line.get("stream") == "stdout")
assert text == "\u20ac \ufffd", text
assert [line["data"] for line in lines if line.get("stream") == "stderr"] == ["e\n"]
assert lines[-1]["data"]["stdout"] == "\u20ac \ufffd"
PY


# A request that is too long is refused, and the next one is served.
python3 -c '
import json
print(json.dumps({"id": 1, "command": "#" + "x" * 40000000}))
print(json.dumps({"id": 2, "command": "echo next"}))' >long
code=0
"$sandhost" session <long >answers || code=$?
[ $code -eq 0 ] || fail "exit $code after a long request"
[ "$(wc -l <answers)" -eq 2 ] || fail "$(wc -l <answers) answers"
out=$(head -n 1 answers)
want_json 'the request is longer than 16 MiB' message
out=$(tail -n 1 answers)
want_json 'next
' data stdout

# A timeout beyond the configuration's is cut, and that is told once: to whoever reads the lines, and on stderr.
printf '{"tool_call_timeout": 2, "governance_config": {"sandbox_config": "bubblewrap"}}' >short.json
cut="the timeout of 50 seconds is more than the configuration's tool_call_timeout; the command may take 2"
run_with '{"id": 1, "command": "sleep 60", "timeout": 50}
{"id": 2, "command": "true", "timeout": 2}' "$sandhost" session --config short.json
want_exit 0
want_err "sandhost: $cut"
python3 - "$out" "$cut" <<'PY' || fail "the notice of the timeout"
import json, sys
lines = [json.loads(line) for line in sys.argv[1].splitlines()]
notices = [line for line in lines if "id" not in line]
assert notices == [{"run_id": lines[0]["run_id"], "notice": sys.argv[2]}], notices
by = {line["id"]: line for line in lines if "id" in line}
assert by[1]["message"] == "Command timed out after 2s", by[1]
PY
run_with '{"id": 1, "command": "true", "timeout": 50}
{"id": 2, "command": "true", "timeout": 60}
' "$sandhost" session --config short.json
[ "$(grep -c notice <<<"$out")" -eq 1 ] || fail "not told once"
[ "$(wc -l <<<"$err")" -eq 1 ] || fail "not told once on stderr"
run_with $'true\ntrue\n' "$sandhost" shell --config short.json --timeout 50
want_exit 0
[ "$(grep -cxF "sandhost: $cut" <<<"$err")" -eq 1 ] || fail "a shell does not tell it once: $err"

# A blank line is passed over, as in any stream of JSON lines; it is answered by nothing.
run_with $'\n  \t\r\n{"id": 1, "command": "echo one"}\n\n \n' "$sandhost" session
want_exit 0
[ "$(wc -l <"$work/.out")" -eq 1 ] || fail "a blank line has an answer: $out"
want_json 1 id
