# SPDX-License-Identifier: Apache-2.0
# local runs on this machine and says so.
. "$(dirname "$0")/lib.bash"

mkdir app
config() { # PROFILE-OR-POLICY
  cat >agent.json <<JSON
{"governance_config": {$1, "sandbox_config": {"provider": "local", "options": {"environment_passthrough": ["EXTRA"]}},
  "sandbox_manifest": {"working_dir": "$work/app", "network_policy": {"default": "allow"},
                       "environment": {"plain": {"APP_ENV": "test"}}}}}
JSON
}
config '"profile": "permissive-dev"'
run "$sandhost" exec --config agent.json --yes -- true
want_exit 126
want_in_err 'Host process execution needs explicit policy.'
# Nobody is asked about the network of a command that is refused anyway.
run "$sandhost" exec --config agent.json -- true
want_exit 126
want_in_err 'Host process execution needs explicit policy.'
run "$sandhost" approvals --all
want_out ''

config '"profile": "interactive-dev"'
run "$sandhost" exec --config agent.json -- true
want_exit 123

config '"policy": {"mode": "interactive", "rules": {"allow": [
  {"rule_id": "all", "capability": "sandbox.*"},
  {"rule_id": "allow_host_commands", "capability": "process.exec", "conditions": {"execution_surface": "host"}}]}}'
export EXTRA=passed SECRET_OF_HOST=leak
run "$sandhost" exec --config agent.json --json -- 'pwd; echo "$EXTRA $APP_ENV $SECRET_OF_HOST"; echo here > here.txt'
want_exit 0
want_json host data execution_surface
want_json "$work/app
passed test 
" data stdout
want_json null workspace_sync
want_file app/here.txt here
run "$sandhost" check agent.json
want_exit 0
want_in_err host_execution_not_contained

mark="sleep 8$$" # of this test alone
run "$sandhost" exec --config agent.json --timeout 1 -- "(setsid $mark &) ; $mark"
want_exit 137
wait_until "a process outlived the limit" '! pgrep -f "^$mark\$" >/dev/null'

rm -r app
run "$sandhost" exec --config agent.json -- true
want_exit 125
want_in_err "The local sandbox's working directory $work/app does not exist; create it, set sandbox_manifest.working_dir to one that does, or set the option create_working_dir=true"
