# SPDX-License-Identifier: Apache-2.0
# A policy looked at without running anything says what running says: the first source document's policies, explained,
# tested and replayed, with the same decisions, rules and reasons.
. "$(dirname "$0")/lib.bash"

config() { # FILE POLICY [MANIFEST]
  cat >"$1" <<JSON
{"agent_config": {"governance_config": {"enabled": true, "sandbox_config": {"provider": "bubblewrap"},
  "policy": $2, "sandbox_manifest": {${3:-}}}}}
JSON
}
strict() { echo "{\"name\": \"strict-with-sandbox\", \"mode\": \"strict\", \"rules\": {\"allow\": [$1]}}"; }
execute='{"rule_id": "use_execute", "capability": "sandbox.execute"}'
setup='{"rule_id": "sandbox_setup", "capability": "sandbox.*"}'
commands='{"rule_id": "commands_in_the_sandbox", "capability": "process.exec", "conditions": {"execution_surface": "sandbox"}}'
explained() { # the decisions of $out, a line each
  python3 -c '
import json, sys
for one in json.load(sys.stdin)["decisions"]:
    decision = one["decision"]
    print(one["request"]["capability"], decision["effect"], decision["reason_code"], decision["matched_rule_ids"], decision["reason"])' <<<"$out"
}
recorded() { # the same of the newest run, without the listing
  "$sandhost" show --json | python3 -c '
import json, sys
for one in json.load(sys.stdin)["steps"][0]["tool_calls"][0]["governance"]:
    if one["capability"] != "sandbox.workspace.sync":
        print(one["capability"], one["effect"], one["reason_code"], one["matched_rule_ids"], one["decision"]["reason"])'
}
same_as_exec() { # EXIT CONFIG COMMAND: explained as it is decided and recorded
  run "$sandhost" policy explain --config "$2" --json -- "$3"
  want_exit "$1"
  hash=$(json policy hash)
  [ "$hash" = "$("$sandhost" policy explain -c "$2" --json memory.x | python3 -c 'import json, sys; print(json.load(sys.stdin)["policy"]["hash"])')" ] ||
    fail "the hash"
  before=$(explained)
  run "$sandhost" exec -q --config "$2" -- "$3"
  want_exit "$1"
  [ "$before" = "$(recorded)" ] || fail "explained: $before; recorded: $(recorded)"
  "$sandhost" show --json | grep -qF "\"policy_hash\":\"$hash\"" || fail "the hash of what was recorded is another"
}

# ---- The strict policy
config strict.json "$(strict "$execute, $setup, $commands")"
same_as_exec 0 strict.json 'echo 42'
run "$sandhost" policy explain --config strict.json -- 'echo 42 | wc -c && ls'
want_exit 0
want_in_out "sandbox.execute 'execute': allow by use_execute, sandbox_setup"
want_in_out "process.exec 'sh': allow by commands_in_the_sandbox
  matched_allow: Matched allow policy rule.
  asked by: agent, risk high, provider sandbox, surface sandbox
  runs: echo 42
  runs: | wc -c
  runs: && ls
  rules, in the order in which they are considered:
    allow use_execute: capability does not match ('process.exec' against 'sandbox.execute')
    allow sandbox_setup: capability does not match ('process.exec' against 'sandbox.*')
    allow commands_in_the_sandbox: matches
policy: strict-with-sandbox, strict, hash "
run "$sandhost" policy explain --config strict.json --json sandbox.workspace.sync
want_exit 0
want_json '["sandbox_setup"]' decisions 0 decision matched_rule_ids
run "$sandhost" policy explain --config strict.json sandbox.network.configure --host '*'
want_exit 0 # it is part of sandbox.* here
run "$sandhost" policy explain --config strict.json --surface host --command ls process.exec
want_exit 126
want_in_out "allow commands_in_the_sandbox: conditions.execution_surface does not match ('host' against 'sandbox')"

config bare.json "$(strict "$execute, $setup")"
run "$sandhost" policy explain --config bare.json --json -- true
want_exit 126
want_json deny effect
want_json unknown_capability decisions 1 decision reason_code
want_json 'Denied by strict policy: no rule matches this process.exec request.' decisions 1 decision reason
same_as_exec 126 bare.json true
sed 's/"governance_config": {/&"budgets": {"request": [{"meter": "tool_calls", "limit": 5}]}, /' bare.json >limited.json
same_as_exec 126 limited.json true

# Files need rules of their own; the listing follows the command where none names it.
files='{"rule_id": "files_in", "capability": "workspace.files.read"},
  {"rule_id": "files_out", "capability": "workspace.files.write", "target": {"path": "outputs/*"}}'
config files.json "$(strict "$execute, $commands, $files")"
run "$sandhost" policy explain --config files.json workspace.files.write --path outputs/deep/a.txt
want_exit 0
want_in_out "workspace.files.write 'outputs/deep/a.txt': allow by files_out"
run "$sandhost" policy explain --config files.json workspace.files.write --path a.txt
want_exit 126
want_in_out "allow files_out: target.path does not match ('a.txt' against 'outputs/*')"
run "$sandhost" policy explain --config files.json sandbox.workspace.sync
want_exit 0
want_in_out "sandbox.workspace.sync 'sandhost-guest': allow (follows_command)"

# What a rule says about itself moves no cursor and turns nothing around.
printf '{"rules": {"deny": [{"rule_id": "d\\u202e", "capability": "memory.x", "reason": "a\\u009b2J\\nb"}]}}' >cursor.json
run "$sandhost" policy explain -c cursor.json memory.x
want_exit 126
want_in_out '  matched_deny: a\u009b2J b'
! grep -qP '\xc2\x9b|\xe2\x80\xae' <<<"$out" || fail "a control is printed"

# ---- The network approval
cat >network.json <<'JSON'
{"agent_config": {"governance_config": {"profile": "interactive-dev", "sandbox_config": {"provider": "bubblewrap"},
  "sandbox_manifest": {"network_policy": {"default": "allow"}}}}}
JSON
run "$sandhost" policy explain --config network.json --json -- 'echo 200'
want_exit 123
want_json ask effect
want_json '["ask_sandbox_network"]' decisions 1 decision matched_rule_ids
want_json 'Turning the sandbox network on needs approval.' decisions 1 decision reason
want_json '*' decisions 1 request target host
want_json interactive-dev policy profile
run "$sandhost" exec -q --config network.json --yes -- 'echo 200'
want_exit 0
network=$("$sandhost" runs --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["run_id"])')

# ---- Rules about what a command runs
cat >rules.json <<'JSON'
{"name": "by command", "mode": "interactive", "rules": {
  "deny": [{"rule_id": "no_rm", "capability": "process.exec", "command": {"program": "rm"}, "reason": "Nothing is removed here.",
            "examples": {"match": ["rm -rf x", "ls && /bin/rm y"], "not_match": ["ls", "sudo rm x"]}}],
  "ask": [{"rule_id": "push", "capability": "process.exec", "command": {"prefix": ["git", "push"]}}],
  "allow": [{"rule_id": "look", "capability": "process.exec", "command": {"prefix": ["git", ["status", "log"]]},
             "examples": {"match": ["git status && git log"], "not_match": ["git push"]}},
            {"rule_id": "use", "capability": "sandbox.*"}]}}
JSON
config commands.json "$(cat rules.json)"
for line in 'git status && git log:0' 'git push:123' 'git status; rm x:126' 'git log > f:123'; do
  run "$sandhost" policy explain --config rules.json -- "${line%:*}"
  want_exit "${line##*:}"
  run "$sandhost" policy explain --config rules.json process.exec --command "${line%:*}"
  want_exit "${line##*:}"
done
# sh is not given a line that it would take for its options.
for line in '-- ; rm x' '+x; rm x' '-c rm; rm x'; do
  run "$sandhost" policy explain --config rules.json -- "$line"
  want_exit 126
  run "$sandhost" policy explain --config rules.json process.exec "--command=$line"
  want_exit 126
  echo "[{\"command\": \"$line\", \"expect\": \"deny\", \"rule\": \"no_rm\"}]" >line.json
  run "$sandhost" policy test rules.json --cases line.json
  want_exit 0
done
run "$sandhost" policy explain --config rules.json -- 'git log > f'
want_in_out "process.exec 'sh': ask (command_opaque)"
want_in_out "The command rules cannot read this command (a redirect), so it is not run without a person's approval."
want_in_out 'not readable: a redirect'
run "$sandhost" policy explain --config rules.json --json -- git commit -m 'two words'
want_json '["git", "commit", "-m", "two words"]' decisions 1 command commands 0 words
same_as_exec 126 commands.json 'git status; rm x'
run "$sandhost" policy explain --config rules.json process.exec
want_exit 2
want_err 'sandhost: the policy has rules about what a command runs; --command TEXT gives one'

# ---- test
run "$sandhost" policy test rules.json
want_exit 0
want_out "passed: rule no_rm matches 'rm -rf x'
passed: rule no_rm matches 'ls && /bin/rm y'
passed: rule no_rm does not match 'ls'
passed: rule no_rm does not match 'sudo rm x'
passed: rule look matches 'git status && git log'
passed: rule look does not match 'git push'
6 passed, 0 failed"
run "$sandhost" policy test commands.json # a configuration that holds it
want_exit 0
cat >cases.json <<'JSON'
[{"command": "rm x", "expect": "deny", "rule": "no_rm", "reason_code": "matched_deny"},
 {"name": "push", "command": "git push", "expect": "ask", "rule": "look"},
 {"command": "git log", "expect": "deny"},
 {"command": "ls > x", "expect": "ask", "reason_code": "command_opaque"},
 {"capability": "workspace.files.read", "path": "a", "expect": "allow"},
 {"capability": "sandbox.network.configure", "host": "*", "risk": "high", "expect": "allow", "rule": "use"}]
JSON
run "$sandhost" policy test rules.json --cases cases.json
want_exit 1
want_in_out "passed: case 1: command 'rm x': deny by no_rm
FAILED: case 2 (push): command 'git push': expected ask by look, got ask by push (matched_ask)
FAILED: case 3: command 'git log': expected deny, got allow by look (matched_allow)
passed: case 4: command 'ls > x': ask (command_opaque)
FAILED: case 5: workspace.files.read 'a': expected allow, got ask (unknown_capability)
passed: case 6: sandbox.network.configure '*': allow by use
9 passed, 3 failed"
run "$sandhost" policy test rules.json --cases cases.json --json
want_exit 1
want_json 3 failed
want_json false results 7 passed
# An example that fails is told, not only refused.
sed 's/"not_match": \["ls"/"not_match": ["rm", "ls"/' rules.json >wrong.json
run "$sandhost" policy test wrong.json
want_exit 1
want_in_out "FAILED: rule no_rm matches 'rm', listed as not_match"
want_in_out '6 passed, 1 failed'
run "$sandhost" policy explain --config wrong.json memory.x
want_exit 2
want_err "sandhost: Invalid policy file: wrong.json (rule no_rm matches 'rm', listed as not_match)"
run "$sandhost" policy test strict.json
want_exit 0
want_out '0 passed, 0 failed'
want_err 'sandhost: nothing was tested: no rule has examples; --cases CASES.json gives cases'
bad_case() { # CASES TEXT
  printf '%s' "$1" >bad.json
  run "$sandhost" policy test rules.json --cases bad.json
  want_exit 2
  want_out ''
  want_err "sandhost: $2"
}
bad_case '{}' 'bad.json must hold a list of cases'
bad_case '[1]' 'bad.json: cases[0] must be an object'
bad_case '[{"command": "ls", "expect": "ask"}, {"command": "ls"}]' 'bad.json: cases[1].expect must be one of: allow, ask, deny'
bad_case '[{"command": "ls", "expect": "no"}]' "bad.json: cases[0].expect must be one of: allow, ask, deny, got 'no'"
bad_case '[{"expect": "ask"}]' 'bad.json: cases[0] needs a capability or a command'
bad_case '[{"command": "ls", "expct": "ask", "expect": "ask"}]' \
  'bad.json: cases[0] has unknown keys: expct. Allowed keys: capability, command, data_classes, host, mcp_server, method, path, provider, resource, risk, surface, tool_name'
bad_case '[{"capability": "process.exec", "expect": "ask"}]' \
  "case 1: process.exec 'sh': the policy has rules about what a command runs; the case needs a command"
bad_case '[{"capability": "proces.exec", "expect": "ask"}]' \
  "bad.json: cases[0].capability: 'proces.exec' is no known capability; did you mean 'process.exec'?"
bad_case '[{"command": "ls", "surface": "moon", "expect": "ask"}]' \
  "bad.json: cases[0].surface: 'moon' is no execution surface. Surfaces: artifact, background, code, filesystem, host, mcp, memory, network, sandbox, secret, secret_broker, serve, subagent, telemetry, tool, workspace"
run "$sandhost" policy test rules.json --cases none.json
want_exit 2
want_in_err none.json

# ---- show: the rules in force; and what their author hardly means
run "$sandhost" policy show --config rules.json
want_exit 0
want_err ''
want_in_out 'policy: by command, interactive, hash '
want_in_out '
  deny no_rm: process.exec
    command.program: rm
    reason: Nothing is removed here.
  ask push: process.exec
    command.prefix: git, push
  allow look: process.exec
    command.prefix: git, one of (status, log)
  allow use: sandbox.*
  no rule matches: ask'
run "$sandhost" policy show --profile strict-production
want_in_out '
  allow allow_governance_telemetry: telemetry.governance.*
  no rule matches: deny'
run "$sandhost" policy show --profile permissive-dev --json
want_json deny_raw_secret_read rules deny 1 rule_id
run "$sandhost" policy show --profile loose
want_exit 2
run "$sandhost" policy show --profile strict-production --config rules.json
want_exit 2
cat >loose.json <<'JSON'
{"mode": "permissive", "rules": {"deny": [{"rule_id": "no_rm", "capability": "process.exec", "command": {"program": "rm"}},
  {"rule_id": "typo", "capability": "Process.Exec"}]}}
JSON
config warned.json "$(cat loose.json)"
for words in 'policy show --config loose.json' 'policy test loose.json' 'check warned.json' \
  'policy explain --config loose.json sandbox.execute'; do
  run "$sandhost" $words
  want_exit 0
  want_in_err "sandhost: warning: unknown_capability: rule typo: capability 'Process.Exec' matches no known capability; did you mean 'process.exec'?"
  want_in_err 'sandhost: warning: command_wrappers: '
  want_in_err 'this policy allows programs that run others (env, timeout, nice, '
done

# ---- replay: the runs above, in their order
run "$sandhost" policy replay --config strict.json "$network"
want_exit 1
want_in_out "$network "
want_in_out "sandbox.network.configure '*': ask by ask_sandbox_network -> allow by sandbox_setup
4 decided again, 1 would differ"
run "$sandhost" policy replay --config network.json "$network"
want_exit 0 # --yes was a person's answer, not the policy's
want_out '4 decided again, 0 would differ'
run "$sandhost" policy replay --config network.json --json "${network:0:12}"
want_json 0 differ
want_json interactive-dev policy profile

# A run that waited and was approved, in two segments.
run "$sandhost" exec -q --config network.json --json -- 'echo 200'
want_exit 123
id=$(json run_id)
run "$sandhost" approve "$id" "$(json approvals 0 approval_id)" --approver alice
want_exit 0
run "$sandhost" resume -q "$id"
want_exit 0
run "$sandhost" policy replay --config network.json "$id"
want_exit 0
want_out '6 decided again, 0 would differ'
run "$sandhost" policy replay --config strict.json "$id"
want_exit 1
want_in_out '6 decided again, 2 would differ'

export SANDHOST_STATE_DIR=$work/replayed
run "$sandhost" exec -q --config strict.json -- 'rm -f x'
want_exit 0
run "$sandhost" exec -q --config strict.json -- 'ls'
want_exit 0
run "$sandhost" policy replay --config strict.json
want_exit 0
want_out '6 decided again, 0 would differ'
run "$sandhost" policy replay --config rules.json
want_exit 1
want_in_out "process.exec 'rm -f x': allow by commands_in_the_sandbox -> deny by no_rm"
want_in_out "process.exec 'ls': allow by commands_in_the_sandbox -> ask (unknown_capability)"
want_in_out '6 decided again, 2 would differ'
run "$sandhost" policy replay --config rules.json --json
want_json 2 differ
want_json 'rm -f x' differences 0 command
want_json allow differences 0 before effect
want_json '["no_rm"]' differences 0 after matched_rule_ids
run "$sandhost" policy replay --config strict.json --rules --json
want_exit 0
run "$sandhost" policy replay --config rules.json --rules
want_exit 1
want_in_out '6 decided again, 6 would differ'

# What is not on record is not guessed.
sqlite3 "$SANDHOST_STATE_DIR/record.db" "UPDATE events SET payload = NULL WHERE type = 'tool_call_started'"
run "$sandhost" policy replay --config rules.json
want_exit 3
want_in_out "process.exec 'sh': not decidable: command text was not recorded"
want_in_out '4 decided again, 0 would differ, 2 not decidable'
run "$sandhost" policy replay --config strict.json # no rule is about what runs
want_exit 0

# ---- Usage
usage() { # TEXT ARGUMENT...
  local text=$1
  shift
  run "$sandhost" policy "$@"
  want_exit 2
  want_out ''
  want_err "sandhost: $text"
}
usage 'usage: sandhost policy show|explain|test|replay; sandhost policy --help tells more'
usage 'usage: sandhost policy show|explain|test|replay; sandhost policy --help tells more' explode
usage 'nothing to explain; usage: sandhost policy explain [OPTIONS] CAPABILITY, or -- COMMAND [ARG ...]' explain
usage 'nothing to explain; usage: sandhost policy explain [OPTIONS] CAPABILITY, or -- COMMAND [ARG ...]' explain --
usage "policy explain takes one capability, got 'y' too" explain x y
usage 'policy explain takes a capability with its options, or -- and a command, not both' explain x -- ls
usage 'policy explain takes a capability with its options, or -- and a command, not both' explain --path a -- ls
usage "request.risk must be one of: low, medium, high, critical, got 'severe'" explain x --risk severe
usage 'request.command goes with process.exec, not with x' explain x --command ls
usage 'policy test takes one file: a policy, or a configuration' test
usage 'policy test takes one file: a policy, or a configuration' test rules.json cases.json
printf '{"governance_config": {"enabled": false}}' >off.json
usage 'governance is off (governance_config.enabled is false), so no policy decides anything; remove that setting' \
  explain --config off.json memory.x
run "$sandhost" policy explain --config missing.json memory.x
want_exit 2
want_in_err missing.json
run "$sandhost" policy replay --record missing.db
want_exit 125
want_in_err 'no run is recorded in missing.db'
run "$sandhost" policy replay run_00000000
want_exit 125
want_err 'sandhost: No run run_00000000'
run "$sandhost" policy --help
want_exit 0
want_in_out 'sandhost policy replay'
run "$sandhost" --help
want_in_out 'policy     Show, explain, test or replay a policy without running anything'
