# SPDX-License-Identifier: Apache-2.0
# The first source document's task: sales.csv in, total.txt out, and the record printed as it prints it.
. "$(dirname "$0")/lib.bash"

mkdir -p workspace/files
printf 'region,amount\nnorth,120\nsouth,80\neast,200\nwest,50\n' >workspace/files/sales.csv
cat >agent.json <<'JSON'
{"agent_config": {"governance_config": {"enabled": true, "profile": "interactive-dev",
                                        "sandbox_config": {"provider": "bubblewrap"}}}}
JSON
command="python3 -c \"
import csv
total = sum(int(r['amount']) for r in csv.DictReader(open('sales.csv')))
open('total.txt', 'w').write(str(total))
print(total)\""

run "$sandhost" exec --config agent.json -- "$command"
want_exit 0
want_out 450
want_file workspace/files/total.txt 450
printf '%s\n' "$err" >summary
grep -qE "^ran: \['sh', '-c', .*\] \| exit 0 \| in bubblewrap \| [0-9]+\.[0-9]{3} ms$" summary || fail "no ran line"
grep -qxF "copied in: ['sales.csv'] | copied back: ['total.txt']" summary || fail "no sync line"
grep -qxF "totals: {'sessions': 1, 'commands': 1, 'failed': 0, 'timed_out': 0}" summary || fail "no totals line"

run "$sandhost" show --json
want_exit 0
want_json completed status
want_json '["sales.csv"]' steps 0 tool_calls 0 workspace_sync copied_in
want_json '["total.txt"]' steps 0 tool_calls 0 workspace_sync written
want_json 0 steps 0 tool_calls 0 executions 0 exit_code
want_json '["allow_sandboxed_execution"]' steps 0 tool_calls 0 executions 0 matched_rule_ids
want_json '["allow_sandbox_setup"]' steps 0 tool_calls 0 governance 0 matched_rule_ids
want_json sandbox.execute steps 0 tool_calls 0 governance 0 capability
want_json process.exec steps 0 tool_calls 0 governance 1 capability
want_json sandbox.workspace.sync steps 0 tool_calls 0 governance 2 capability
