# SPDX-License-Identifier: Apache-2.0
# Where a policy may come from: every file that is refused, in its own words, before anything is started; one that is
# found in the project; and no sandbox that could write it.
. "$(dirname "$0")/lib.bash"

configure() { # GOVERNANCE...
  printf '{"governance_config": {"sandbox_config": "bubblewrap", %s}}' "$1" >agent.json
}
refuse() { # TEXT
  run "$sandhost" exec --config agent.json -- 'echo ran'
  want_exit 2
  want_out ''
  want_err "sandhost: $1"
  run "$sandhost" policy explain --config agent.json memory.x
  want_exit 2
  want_err "sandhost: $1"
}
named() { # FILE TEXT
  configure "\"policy_path\": \"$1\""
  refuse "$2"
}
good='{"mode": "strict"}'

# ---- A file that the configuration names
mkdir -p project/etc project/workspace/files project/outputs other
cd project
named none.json "Policy file not found: $PWD/none.json"
printf '%s' "$good" >../other/p.json
named ../other/p.json "Policy file escapes trusted project root: $work/other/p.json"
ln -s ../other/p.json out.json
named out.json "Policy file escapes trusted project root: $PWD/out.json"
for place in workspace workspace/files outputs; do
  printf '%s' "$good" >"$place/p.json"
  named "$place/p.json" "Policy file is inside an agent-writable directory: $PWD/$place/p.json"
done
mkdir folder.json
named folder.json "Could not read policy file: $PWD/folder.json (it is not a regular file)"
printf '{"mode": ' >bad.json
configure '"policy_path": "bad.json"'
run "$sandhost" check agent.json
want_exit 2
want_in_err "sandhost: Invalid JSON policy file: $PWD/bad.json (it is not valid JSON: "
printf '{"mode": "lax"}' >lax.json
named lax.json "Invalid policy file: $PWD/lax.json ('lax' is not a valid PolicyMode)"
printf 'mode: strict' >p.yaml
named p.yaml 'YAML policies are not supported. Use a JSON policy file or a policy in code.'
printf '' >p.toml
named p.toml 'Unsupported policy file extension: .toml'
printf '[]' >list.json
named list.json 'Policy file must contain an object at the top level.'
[ ! -e "$SANDHOST_STATE_DIR" ] || fail "something was recorded"

# ---- A file that is found there
configure '"profile": "interactive-dev"'
ln -s etc/p.json omnicoreagent.policy.json
refuse "Auto-discovered policy file must not be a symlink: $PWD/omnicoreagent.policy.json"
rm omnicoreagent.policy.json
printf '{"rules": {"allow": [{"rule_id": "anywhere", "capability": "process.exec"}]}}' >omnicoreagent.policy.json
refuse 'Auto-discovered policy allow rule broadens the default baseline: anywhere (its conditions.execution_surface is wider than that of allow_sandboxed_execution; sandhost policy show --profile interactive-dev prints its rules)'
cat >omnicoreagent.policy.json <<'JSON'
{"rules": {"deny": [{"rule_id": "no_rm", "capability": "process.exec", "command": {"program": "rm"}, "reason": "Not in this project."}]}}
JSON
run "$sandhost" check agent.json
want_exit 0
want_in_out "policy: interactive-dev, narrowed by $PWD/omnicoreagent.policy.json"
run "$sandhost" exec -q --config agent.json -- 'echo fine'
want_exit 0
want_out fine
run "$sandhost" exec -q --config agent.json -- 'rm -rf /'
want_exit 126
want_err 'sandhost: Not in this project.'
# What the configuration says itself is all that counts.
configure '"policy": {"mode": "permissive"}'
run "$sandhost" exec -q --config agent.json -- 'rm -f x; echo gone'
want_exit 0
want_out gone
mkdir -p .omnicoreagent
mv omnicoreagent.policy.json .omnicoreagent/policy.json
configure '"profile": "interactive-dev"'
run "$sandhost" policy explain --config agent.json -- 'rm x'
want_exit 126
want_in_out "process.exec 'sh': deny by no_rm"

# ---- A sandbox that could write it: refused before anybody is asked about the mount
mount() { # MODE SOURCE
  printf '{"governance_config": {"sandbox_config": {"provider": "docker", "options": {"host": "unix:///nowhere.sock"}},
    "policy_path": "etc/p.json", "sandbox_manifest": {"workspace_mount": {"source": "%s", "target": "/mnt/in", "mode": "%s"}}}}' \
    "$2" "$1" >agent.json
  run "$sandhost" exec -q --config agent.json -- true
  want_out ''
}
printf '{"mode": "permissive"}' >etc/p.json
ln -s etc through
for source in "$PWD/etc" "$PWD" "$PWD/through" "$PWD/etc/p.json"; do
  mount read_write "$source"
  want_exit 2
  want_err "sandhost: $source contains the governance policy file and cannot be mounted read-write; mount it read-only or keep the policy elsewhere"
  mount read_only "$source"
  [[ $err != *'policy file'* ]] || fail "a read-only mount was refused"
done
mkdir beside
mount read_write "$PWD/beside"
[[ $err != *'policy file'* ]] || fail "a mount beside it was refused"

# The configuration chooses the policy and the provider: it is guarded like it.
cp agent.json beside/agent.json
run "$sandhost" exec -q --config beside/agent.json -- true
want_exit 2
want_err "sandhost: $PWD/beside contains the configuration file and cannot be mounted read-write; mount it read-only or keep the configuration elsewhere"
run "$sandhost" check beside/agent.json
want_exit 2
sed 's/"policy_path": "etc.p.json"/"profile": "interactive-dev"/' agent.json >beside/agent.json
run "$sandhost" exec -q --config beside/agent.json -- true
want_exit 2 # and not 123: nobody is asked
want_in_err 'contains the configuration file and cannot be mounted read-write'

# ---- A command that writes one into the workspace: it stays in the sandbox
mkdir -p ../tree/sub
cd ../tree
printf '{"governance_config": {"sandbox_config": "bubblewrap"}}' >agent.json
ln -s agent.json linked.json
before=$(cat agent.json)
run "$sandhost" exec --config agent.json --workspace . -- 'mkdir sub; for f in agent.json omnicoreagent.policy.json sub/agent.json; do
  echo "{}" | tee "$f" >/dev/null; done'
want_exit 0
want_in_err 'agent.json: not permitted by policy'
want_in_err 'omnicoreagent.policy.json: not permitted by policy'
want_file agent.json "$before"
[ ! -e omnicoreagent.policy.json ] || fail "a policy file came back"
run "$sandhost" exec --config agent.json --workspace . -- 'mkdir omnicoreagent.policy.json; echo x >omnicoreagent.policy.json/x'
want_in_err 'omnicoreagent.policy.json/x: not permitted by policy'
[ ! -e omnicoreagent.policy.json ] || fail "a folder came back, for which every run would be refused"
want_file sub/agent.json '{}'
run "$sandhost" exec --config linked.json --workspace . -- 'echo "{}" | tee agent.json >/dev/null'
want_in_err 'agent.json: not permitted by policy'
want_file agent.json "$before"
