# SPDX-License-Identifier: Apache-2.0
# A guest that breaks the protocol, or lies about files, behind real providers: the command is told as lost with the rule
# that was broken, so is the record, nothing beside the workspace changes, and the next command has a fresh sandbox.
. "$(dirname "$0")/lib.bash"

bad_guest=$(echo "$SANDHOST_BUILD"/bad-guest/sandhost-guest-*)
[ -x "$bad_guest" ] || fail "no bad guest was built"

# A prefix like an installed one, whose guest is the bad one.
prefix=$work/prefix
mkdir -p "$prefix/bin"
cp "$SANDHOST_BUILD/bin/sandhost" "$prefix/bin/"
for folder in lib libexec; do
  cp -rL "$SANDHOST_BUILD/$folder" "$prefix/$folder"
done
find "$prefix" \( -name '*.a' -o -name 'libsandhost*' \) -delete -o -name 'sandhost-*.so' ! -name '*-local.so' ! -name '*-bubblewrap.so' -delete
guests=$(dirname "$(find "$prefix/libexec" -name 'sandhost-guest-*')")
cp "$bad_guest" "$guests/"
chmod -R a+rX "$work"
sandhost=$prefix/bin/sandhost

mkdir home
cd home
mkdir app
cat >local.json <<JSON
{"governance_config": {
  "policy": {"mode": "interactive", "rules": {"allow": [{"rule_id": "all", "capability": "*"}]}},
  "sandbox_config": {"provider": "local"},
  "sandbox_manifest": {"working_dir": "$PWD/app", "network_policy": {"default": "allow"}}}}
JSON

"$bad_guest" --names >"$work/names"
[ "$(wc -l <"$work/names")" -ge 25 ] || fail "only $(wc -l <"$work/names") violations"
while IFS=$'\t' read -r name rule; do
  printf '{"id": "%s", "command": "violate %s"}\n{"id": "after %s", "command": "true"}\n' "$name" "$name" "$name"
done <"$work/names" >"$work/requests"

# All that is outside the workspace, but for the record and what this script writes: name, kind, size, time and content.
outside() {
  find "$work" -mindepth 1 \( -path "$work/state" -o -path "$work/home" -o -name '.out' -o -name '.err' -o -name before -o -name after \) -prune \
    -o -printf '%P %y %s %T@\n' | sort
  find "$work/home" -path "$work/home/workspace" -prune -o -printf '%P %y\n' | sort
  find "$work/prefix" "$work/home" -path "$work/home/workspace" -prune -o -type f -exec md5sum {} + | sort
}
outside >"$work/before"
nothing_else_changed() {
  outside >"$work/after"
  cmp -s "$work/before" "$work/after" || fail "$1 changed something outside: $(diff "$work/before" "$work/after")"
}

lost() { # REASON
  echo "The sandbox was lost during this command ($1). Files created in it are gone; the next command runs in a fresh sandbox with the workspace files copied in again."
}

# Somewhere in the JSON lines of stdout, which may be long, this key has this value; one that ends with * begins so.
want_somewhere() { # KEY VALUE
  python3 - "$work/.out" "$@" <<'PY' || fail "nowhere is $1: $2"
import json, sys
def values(node):
    if isinstance(node, dict):
        if sys.argv[2] in node:
            yield node[sys.argv[2]]
        node = list(node.values())
    for inner in node if isinstance(node, list) else []:
        yield from values(inner)
wanted = sys.argv[3]
found = [value if isinstance(value, str) else json.dumps(value)
         for line in open(sys.argv[1]) for value in values(json.loads(line))]
sys.exit(not any(value.startswith(wanted[:-1]) if wanted.endswith("*") else value == wanted for value in found))
PY
}

# ---- Rules of the protocol, one run each -----------------------------------------------------------------------------------

while IFS=$'\t' read -r name rule; do
  run "$sandhost" exec --json -- "violate $name"
  want_exit 125
  message=$(lost "it broke the protocol: $rule")
  python3 - "$work/.out" "$message" <<'PY' || fail "$name: the answer"
import json, sys
answer = json.load(open(sys.argv[1]))
data = answer["data"]
assert answer["status"] == "error" and answer["message"] == sys.argv[2], answer
assert data["sandbox_lost"] is True and data["exit_code"] == 137 and data["timed_out"] is False, answer
PY
  run "$sandhost" show --json
  want_in_out "\"error\":\"it broke the protocol: $rule\""
  want_in_out "\"lost\":true,\"lost_reason\":\"it broke the protocol: $rule\""
  nothing_else_changed "$name"
done <"$work/names"

# ---- All of them in one run, each before a command that is honest; with a provider that isolates and one that does not ------

one_by_one() { # CONFIG...: a session that is given a request when the one before is answered
  python3 - "$work/requests" "$work/names" "$sandhost" session "$@" <<'PY' || fail "a session of bad guests: $*"
import json, subprocess, sys
rules = dict(line.rstrip("\n").split("\t") for line in open(sys.argv[2]))
session = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in open(sys.argv[1]):
    session.stdin.write(line)
    session.stdin.flush()
    answer = json.loads(session.stdout.readline())
    name, data = answer["id"], answer["data"]
    if name.startswith("after "):
        assert answer["status"] == "success", answer
        assert data["stdout"].startswith("command 1 after "), answer
        assert "sandbox_lost" not in data, answer
    else:
        assert data["sandbox_lost"] is True and data["exit_code"] == 137, answer
        assert "(it broke the protocol: " + rules[name] + ")" in answer["message"], answer
session.stdin.close()
assert session.wait() == 0, session.returncode
PY
  run "$sandhost" show --json
  python3 - "$work/names" "$work/.out" <<'PY' || fail "the record of a session of bad guests: $*"
import json, sys
rules = [line.rstrip("\n").split("\t")[1] for line in open(sys.argv[1])]
text = open(sys.argv[2]).read()
totals = json.loads(text)["totals"]["executions"]
assert totals["commands"] == 2 * len(rules) and totals["failed"] == len(rules) and totals["timed_out"] == 0, totals
assert totals["sessions"] == len(rules) + 1, totals
for rule in rules:
    assert '"lost_reason":"it broke the protocol: ' + rule + '"' in text, rule
PY
}
one_by_one
one_by_one --config local.json
nothing_else_changed "a session"

# ---- Greetings: no sandbox at all ------------------------------------------------------------------------------------------

while IFS=$'\t' read -r name rule; do
  echo "$name" >"$guests/greeting"
  run "$sandhost" exec --json --config local.json -- true
  want_exit 125
  want_json error status
  want_json "the sandbox's guest did not greet: it broke the protocol: $rule" message
done <<'TABLE'
wrong-magic	what answered is not sandhost-guest
wrong-version	the guest speaks version 7, this host version 1
wrong-nonce	a greeting that answers another
another-program	what answered is not sandhost-guest
not-first	what answered is not sandhost-guest
TABLE
rm "$guests/greeting"
outside >"$work/before" # the folder has another time now

# ---- Lies about files ------------------------------------------------------------------------------------------------------

# What is told of a command that ran well and whose files are then lied about; whether the sandbox is lost with it.
while IFS=$'\t' read -r name is_lost reason; do
  rm -rf workspace
  mkdir -p workspace/files
  run_with '{"id": 1, "command": "lie '"$name"'"}' "$sandhost" session
  want_exit 0
  want_json success status
  want_json 0 data exit_code
  want_somewhere reason "$reason"
  [ -z "$(ls -A workspace/files)" ] || fail "$name left something in the workspace"
  run "$sandhost" show --json
  want_somewhere reason "$reason"
  want_somewhere lost "$is_lost"
  nothing_else_changed "$name"
done <<'TABLE'
list-unknown-kind	true	the sandbox was lost before its files were copied back (it broke the protocol: a listed file of an unknown kind)
list-leads-out	true	the sandbox was lost before its files were copied back (it broke the protocol: a listed file whose path leads elsewhere)
list-cut	true	the sandbox was lost before its files were copied back (it broke the protocol: a list that ends within a file)
list-long-path	true	the sandbox was lost before its files were copied back (it broke the protocol: a listed file whose path is too long)
tar-err-channel	true	the sandbox was lost before its files were copied back (it broke the protocol: data on a channel that the request does not have)
list-twice	false	bubblewrap: could not read the sandbox's files: a path that is listed twice: 'a'
list-many	true	the sandbox was lost before its files were copied back (it broke the protocol: more listed files than it was asked for)
list-long-names	false	bubblewrap: could not read the sandbox's files: more than 64 MiB of names of changed files
tar-leads-out	false	bubblewrap: could not read the sandbox's files: a member that was not asked for: '../a'
tar-link	false	bubblewrap: could not read the sandbox's files: a member is no regular file: 'a'
tar-hard-link	false	bubblewrap: could not read the sandbox's files: a member is no regular file: 'a'
tar-other-content	false	changed while it was being copied
tar-sparse	false	changed while it was being copied
tar-noise	false	bubblewrap: could not read the sandbox's files: *
tar-cut	false	bubblewrap: could not read the sandbox's files: *
TABLE

run_with '{"id": 1, "command": "lie honest"}' "$sandhost" session
want_file workspace/files/a 'from a bad guest'
want_file workspace/files/b 'from a bad guest'

# A sandbox that breaks the protocol while files are copied in is replaced before the command: that one never knows.
for name in upload-data upload-credit; do
  rm -rf workspace
  mkdir -p workspace/files
  echo first >workspace/files/in
  python3 - "$name" "$sandhost" session <<'PY' || fail "$name"
import json, subprocess, sys
session = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(command):
    session.stdin.write(json.dumps({"id": 1, "command": command}) + "\n")
    session.stdin.flush()
    return json.loads(session.stdout.readline())
assert ask("lie " + sys.argv[1])["status"] == "success"
open("workspace/files/other", "w").write("second")
answer = ask("true")
assert answer["status"] == "success", answer
assert answer["data"]["stdout"] == "command 1 after 1 uploads\n", answer
session.stdin.close()
assert session.wait() == 0
PY
  run "$sandhost" show --json
  want_somewhere lost_reason 'it broke the protocol: *'
  want_json 2 totals executions sessions
  want_json 0 totals executions failed
  nothing_else_changed "$name"
done
