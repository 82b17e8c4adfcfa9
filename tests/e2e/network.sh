# SPDX-License-Identifier: Apache-2.0
# The network is off unless the manifest asks for it and the policy lets it.
. "$(dirname "$0")/lib.bash"

count='ls /sys/class/net 2>/dev/null; grep -c : /proc/net/dev'
run "$sandhost" exec -- 'grep -v lo: /proc/net/dev | grep -c :'
want_out 0
cat >agent.json <<'JSON'
{"governance_config": {"profile": "interactive-dev", "sandbox_config": "bubblewrap",
                       "sandbox_manifest": {"network_policy": {"default": "allow"}}}}
JSON
run "$sandhost" exec --config agent.json -- true
want_exit 123
want_in_err 'Turning the sandbox network on needs approval.'
run "$sandhost" show --json
want_json 0 totals executions sessions
want_json matched_ask steps 0 tool_calls 0 governance 1 reason_code
want_json '["ask_sandbox_network"]' steps 0 tool_calls 0 governance 1 matched_rule_ids

run "$sandhost" exec --config agent.json --yes --json -- 'cat /proc/net/dev'
want_exit 0
run "$sandhost" show --json
want_json approved steps 0 tool_calls 0 governance 2 reason_code
want_json --yes steps 0 tool_calls 0 governance 2 approved_by
want_json allow steps 0 tool_calls 0 governance 2 effect
