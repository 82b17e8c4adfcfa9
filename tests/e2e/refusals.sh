# SPDX-License-Identifier: Apache-2.0
# Bad input: its text, exit code 2, nothing started, nothing recorded.
. "$(dirname "$0")/lib.bash"

refuse() { # CONFIGURATION TEXT
  printf '%s' "$1" >bad.json
  run "$sandhost" exec --config bad.json -- 'echo ran'
  want_exit 2
  want_out ''
  want_err "sandhost: $2"
  run "$sandhost" check bad.json
  want_exit 2
  want_err "sandhost: $2"
}
governance() { refuse "{\"agent_config\": {\"governance_config\": $1}}" "$2"; }
sandbox() { governance "{\"sandbox_config\": \"bubblewrap\", \"sandbox_manifest\": $1}" "$2"; }

refuse '{"agent_config": {"tool_call_timeout": 1}}' 'tool_call_timeout must be between 2 and 1000, got 1'
refuse '{"agent_config": []}' 'agent_config must be a dict or AgentConfig'
governance '[]' 'governance_config must be a dict'
governance '{"enabled": 1}' 'governance_config.enabled must be a boolean'
governance '{"approval_mode": "x"}' "governance_config.approval_mode must be 'suspend' or 'fail'"
governance '{"profile": "x"}' "governance_config.profile must be one of {'permissive-dev', 'interactive-dev', 'strict-production'}"
governance '{"policy": {}, "policy_path": "p.json"}' 'governance_config cannot set both policy and policy_path'
governance '{"sandbox_config": 3}' 'governance_config.sandbox_config must be a dict or string'
governance '{"sandbox_config": {"provider": "bubblewrap", "x": 1}}' \
  'governance_config.sandbox_config has unknown keys: x. Allowed keys: options, provider'
governance '{"sandbox_config": "bubblewrpa"}' \
  'governance_config.sandbox_config.provider must be a registered sandbox provider: bubblewrap, daytona, docker, e2b, http, local, local_test, modal, none, vercel'
governance '{"sandbox_config": {"provider": "bubblewrap", "options": {"network": true}}}' \
  'Unknown bubblewrap sandbox option(s): network'
governance '{"sandbox_config": {"provider": "bubblewrap", "options": {"workdir_size": "1k"}}}' \
  "bubblewrap sandbox option 'workdir_size' must be at least 1m"
governance '{"sandbox_config": {"provider": "local", "options": {"max_output_bytes": 0}}}' \
  "local sandbox option 'max_output_bytes' must be positive"
governance '{"sandbox_config": {"provider": "local", "options": {"inherit_environment": "yes"}}}' \
  "local sandbox option 'inherit_environment' must be true or false"
governance '{"sandbox_config": "local"}' \
  "The local sandbox does not enforce network off: local runs on the host and cannot cut its network; set network_policy default 'allow' with no host lists, or use an isolating provider such as docker"
governance '{"policy": {"rules": {"deny": [{"rule_id": "r", "capability": "*", "target": {"pth": "x"}}]}}}' \
  'rule r: target has unknown key(s) pth'
sandbox '{"network_policy": {"default": "deny", "allowed_hosts": ["pypi.org"]}}' \
  "The bubblewrap sandbox does not enforce a network host allowlist (allowed_hosts): use network_policy default 'deny' or 'allow', or a provider that enforces one (modal, http)"
sandbox '{"image": "x"}' \
  'The bubblewrap sandbox does not enforce an image (image): bubblewrap runs on the host and has no image; remove it, or use a provider that runs one'
sandbox '{"environment": {"secret_refs": ["a"]}}' \
  'The bubblewrap sandbox does not enforce delivering secrets (environment.secret_refs): put a value the command may see in environment.plain, or keep the secret out of the sandbox and call the service from a tool instead'
sandbox '{"working_dir": "work"}' 'sandbox path must be absolute: work'
sandbox '{"working_dir": "//"}' 'sandbox_manifest.working_dir cannot be /; name a folder below it'
sandbox "{\"working_dir\": \"/$(printf 'a%.0s' {1..300})\"}" \
  'sandbox_manifest.working_dir must have folders whose names are at most 255 bytes long, got 300'
sandbox "{\"working_dir\": \"/$(printf 'a%.0s' {1..5000})\"}" \
  'sandbox_manifest.working_dir must be at most 4095 bytes long, got 5001'
big=$(printf 'v%.0s' {1..200000})
sandbox "{\"environment\": {\"plain\": {\"BIG\": \"$big\"}}}" \
  'environment variable BIG is too long: with its name it may have 131071 bytes, got 200004; put long text into a file of the workspace'
sandbox '{"environment": {"plain": {"1A": "x"}}}' 'invalid sandbox environment variable name: 1A'
sandbox '{"network_policy": {"default": "allow", "allowed_hosts": ["pypi.org:443"]}}' \
  'network host pattern must not include a port: pypi.org:443'

run "$sandhost" exec --config missing.json -- true
want_exit 2
want_in_err missing.json
printf '{"agent_config": {' >bad.json
run "$sandhost" exec --config bad.json -- true
want_exit 2
want_in_err bad.json
printf '{"governance_config": {"sandbox_config": "vercel"}}' >bad.json
run "$sandhost" check bad.json
want_exit 2
want_in_err 'vercel sandbox provider is not installed'
run "$sandhost" exec --timeout 0 -- true
want_exit 2
run "$sandhost" exec --workspace missing -- true
want_exit 2
run "$sandhost" exec
want_exit 2
run "$sandhost" frobnicate
want_exit 2
run "$sandhost" exec --nope -- true
want_exit 2
[ ! -e state/record.db ] || fail "something was recorded"

# With less processes than these not even true would run.
governance '{"sandbox_config": {"provider": "bubblewrap", "options": {"pids_limit": 2}}}' \
  "bubblewrap sandbox option 'pids_limit' must be at least 3, which the guest, the keeper of a command and its shell are"
printf '{"governance_config": {"sandbox_config": {"provider": "bubblewrap", "options": {"pids_limit": 3}}}, "enable_workspace_files": false}' >least.json
run "$sandhost" exec -q -c least.json -- true
want_exit 0
want_err ''

# ---- A plugin of one's own -------------------------------------------------------------------------------------------------

# The way out is said, and what is listed as installed could be loaded.
mkdir own
echo 'no library' >own/sandhost-text.so
ln -s gone own/sandhost-dangling.so
cp "$SANDHOST_BUILD/tests/plugins/sandhost-good.so" own/
SANDHOST_PLUGIN_PATH=$work/own run "$sandhost" exec --provider ./own/sandhost-good.so -- true
want_exit 2
want_in_err 'SANDHOST_PLUGIN_PATH (the folder of sandhost-NAME.so) or register_sandbox_provider of a configuration, and proven by sandhost provider test FILE'
[[ $err =~ 'installed here: '(.*)'; a file of' ]] || fail "no list"
[[ ", ${BASH_REMATCH[1]}," == *', good,'* ]] || fail "good is not listed"
[[ ${BASH_REMATCH[1]} != *text* && ${BASH_REMATCH[1]} != *dangling* ]] || fail "what cannot be loaded is listed: ${BASH_REMATCH[1]}"
SANDHOST_PLUGIN_PATH=own:$work/own: run "$sandhost" exec -q --provider good -- true
want_exit 127
want_in_err "sandhost: SANDHOST_PLUGIN_PATH must have absolute paths; 'own' is not looked into"
run "$sandhost" provider test "$SANDHOST_BUILD/lib/sandhost/providers/sandhost-bubblewrap.so" --option max_output_bytes=abc
want_exit 2
want_in_err "--option max_output_bytes must be a whole number, got 'abc' ("

# ---- The record's place ----------------------------------------------------------------------------------------------------

# Only the last folder is made.
run "$sandhost" exec -q --record nowhere/a/b.db -- true
want_exit 125
want_err 'sandhost: could not open the record nowhere/a/b.db: there is no folder nowhere; --record FILE or SANDHOST_STATE_DIR names another place'
[ ! -e nowhere ] || fail "a folder was made"
run "$sandhost" exec -q --record here/b.db -- true
want_exit 0
[ "$(stat -c %a here)" = 700 ] || fail "the record's folder is not private"
SANDHOST_STATE_DIR=$work/deep/er run "$sandhost" exec -q -- true
want_exit 0
[ -s deep/er/record.db ] || fail "the usual place was not made"

# A name has 256 bytes at most, wherever it is given.
long=$(printf 'x%.0s' {1..257})
refuse "{\"agent_config\": {}, \"session_id\": \"$long\"}" 'session_id must be at most 256 bytes long, and not blank'
for option in --session --agent; do
  run "$sandhost" exec $option "$long" -- 'echo ran'
  want_exit 2
  want_err "sandhost: $option must be valid UTF-8 of at most 256 bytes"
done

# What is accepted runs: the longest variable, and as many as there may be beside the longest command.
python3 - >large.json <<'PY'
import json
plain = {f"BIG{i}": "v" * (131071 - 5) for i in range(7)}
print(json.dumps({"governance_config": {"sandbox_config": "bubblewrap", "sandbox_manifest": {"environment": {"plain": plain}}}}))
PY
run "$sandhost" exec -q -c large.json -- 'env | grep -c ^BIG; printf %s "$BIG6" | wc -c'
want_exit 0
want_out $'7\n131066'
