# SPDX-License-Identifier: Apache-2.0
# The first source document's strict policy: the same decisions by the same rules.
. "$(dirname "$0")/lib.bash"

policy() { # RULES
  cat >agent.json <<JSON
{"agent_config": {"governance_config": {"enabled": true, "sandbox_config": {"provider": "bubblewrap"},
  "policy": {"name": "strict-with-sandbox", "mode": "strict", "rules": {"allow": [$1]}}}}}
JSON
}
execute='{"rule_id": "use_execute", "capability": "sandbox.execute"}'
setup='{"rule_id": "sandbox_setup", "capability": "sandbox.*"}'
commands='{"rule_id": "commands_in_the_sandbox", "capability": "process.exec", "conditions": {"execution_surface": "sandbox"}}'
decisions() {
  out=$("$sandhost" show --json)
  python3 -c '
import json, sys
for call in json.loads(sys.argv[1])["steps"][0]["tool_calls"]:
    for decision in call["governance"]:
        print(call["tool_name"], decision["capability"], decision["effect"], decision["matched_rule_ids"])' "$out"
}

policy "$execute, $setup, $commands"
run "$sandhost" exec --config agent.json -- 'python3 -c "print(6*7)"'
want_exit 0
want_out 42
[ "$(decisions)" = "execute sandbox.execute allow ['use_execute', 'sandbox_setup']
execute process.exec allow ['commands_in_the_sandbox']
execute sandbox.workspace.sync allow ['sandbox_setup']" ] || fail "decisions: $(decisions)"

# No file goes in or out under these rules alone; the file rules let them through.
mkdir -p workspace/files
echo in >workspace/files/a.txt
run "$sandhost" exec --config agent.json -- 'ls; echo out > b.txt'
want_exit 0
want_out ''
want_in_err 'a.txt: not permitted by policy'
want_in_err 'b.txt: not permitted by policy'
[ ! -e workspace/files/b.txt ] || fail "b.txt came back"
policy "$execute, $setup, $commands, {\"rule_id\": \"files_in\", \"capability\": \"workspace.files.read\"},
  {\"rule_id\": \"files_out\", \"capability\": \"workspace.files.write\", \"target\": {\"path\": \"outputs/*\"}}"
run "$sandhost" exec --config agent.json -- 'ls; mkdir outputs; echo out | tee b.txt > outputs/b.txt'
want_exit 0
want_out a.txt
want_file workspace/files/outputs/b.txt out
[ ! -e workspace/files/b.txt ] || fail "b.txt came back"

# Without the sync rule the listing follows the command; a deny rule stops it and the sandbox stays.
policy "$execute, $commands, {\"rule_id\": \"files\", \"capability\": \"workspace.*\"}"
run "$sandhost" exec --config agent.json -- 'echo c > c.txt'
want_exit 0
want_file workspace/files/c.txt c
[ "$(decisions | tail -n 1)" = "execute sandbox.workspace.sync allow []" ] || fail "decisions: $(decisions)"

# A command without a rule is refused, and nothing is started for it.
policy "$execute, $setup"
run "$sandhost" exec --config agent.json --json -- true
want_exit 126
want_json error status
want_json unknown_capability governance_error_code
want_json 'Denied by strict policy: no rule matches this process.exec request.' message
run "$sandhost" show --json
want_json 0 totals executions sessions
