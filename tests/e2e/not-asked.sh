# SPDX-License-Identifier: Apache-2.0
# Nobody is asked about a command that is certain to be refused all the same: not at a terminal, not durably.
. "$(dirname "$0")/lib.bash"

mkdir -p workspace/files
config() { # POLICY MANIFEST [BUDGETS] [SANDBOX]
  local sandbox='"bubblewrap"'
  cat >agent.json <<JSON
{"governance_config": {"sandbox_config": ${4:-$sandbox}, "policy": {"mode": "interactive", "rules": {$1}},
  "sandbox_manifest": {$2}, "budgets": {${3:-}}}}
JSON
}
refused() { # EXIT TEXT: the run does not wait, and nothing of it does
  run "$sandhost" exec --config agent.json -q -- 'rm x'
  want_exit "$1"
  want_err "sandhost: $2"
  run "$sandhost" approvals --all --json
  want_out '[]'
}
decisions() {
  run "$sandhost" show --json
  python3 -c '
import json, sys
for decision in json.loads(sys.argv[1])["steps"][0]["tool_calls"][0]["governance"]:
    print(decision["capability"], decision["effect"], decision["reason_code"])' "$out"
}
setup='{"rule_id": "use", "capability": "sandbox.execute"}, {"rule_id": "list", "capability": "sandbox.workspace.sync"}, {"rule_id": "files", "capability": "workspace.*"}'
network='"network_policy": {"default": "allow"}'
ask_network='"ask": [{"rule_id": "net", "capability": "sandbox.network.configure"}]'

# ---- A later step of the call is denied: all that was decided is on record, in its order
config "$ask_network, \"allow\": [$setup], \"deny\": [{\"rule_id\": \"no\", \"capability\": \"process.exec\", \"reason\": \"No commands.\"}]" "$network"
refused 126 'No commands.'
[ "$(decisions)" = 'sandbox.execute allow matched_allow
sandbox.network.configure ask matched_ask
process.exec deny matched_deny' ] || fail "decisions: $(decisions)"

# The first step asks, the manifest is denied: the command is not looked at.
config "\"ask\": [{\"rule_id\": \"use\", \"capability\": \"sandbox.execute\"}], \"deny\": [{\"rule_id\": \"no\", \"capability\": \"sandbox.network.*\", \"reason\": \"No network.\"}]" "$network"
refused 126 'No network.'
[ "$(decisions)" = 'sandbox.execute ask matched_ask
sandbox.network.configure deny matched_deny' ] || fail "decisions: $(decisions)"

# Where nothing is asked before it, a denied step ends what is decided, as ever.
config "\"deny\": [{\"rule_id\": \"no\", \"capability\": \"sandbox.execute\", \"reason\": \"No tool.\"}], $ask_network" "$network"
refused 126 'No tool.'
[ "$(decisions)" = 'sandbox.execute deny matched_deny' ] || fail "decisions: $(decisions)"

# ---- A mount that no sandbox gets, with a provider that has mounts; its engine is not looked for
config "\"allow\": [$setup], \"ask\": [{\"rule_id\": \"mount\", \"capability\": \"sandbox.filesystem.mount\"}]" \
  '"workspace_mount": {"source": "/etc", "target": "/mnt/in"}' '' '{"provider": "docker", "options": {"host": "unix:///none.sock"}}'
refused 125 '/etc must not be mounted into a sandbox: it is inside /etc'

# ---- A budget that ends the run; one that can be granted comes after the answer
limit='"application_id": "all", "application": [{"meter": "tool_calls", "limit": 1, "on_exhausted": '
config "\"allow\": [$setup, {\"rule_id\": \"true\", \"capability\": \"process.exec\", \"command\": {\"prefix\": [\"true\"]}}]" '' "$limit\"terminate\"}]"
run "$sandhost" exec --config agent.json -q -- true
want_exit 0
refused 126 'This run stopped because the application budget is exhausted: The application budget for tool_calls is exhausted: 1 of 1 used, 1 more needed'
config "\"allow\": [$setup]" '' "$limit\"pause\"}]"
run "$sandhost" exec --config agent.json --json -- 'rm x'
want_exit 123
want_json awaiting_approval status
