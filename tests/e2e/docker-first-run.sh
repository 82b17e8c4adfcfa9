# SPDX-License-Identifier: Apache-2.0
# The first source document's task as it is written there: provider docker and nothing else, the default image pulled.
. "$(dirname "$0")/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

engine_start --own docker
registry_start
engine_image local-python python
registry_push local-python library/python:3.12-slim
engine_api DELETE '/images/local-python?force=1' >/dev/null

mkdir -p workspace/files
printf 'region,amount\nnorth,120\nsouth,80\neast,200\nwest,50\n' >workspace/files/sales.csv
echo '{"agent_config": {"governance_config": {"sandbox_config": {"provider": "docker"}}}}' >agent.json
command="python3 -c \"
import csv
total = sum(int(r['amount']) for r in csv.DictReader(open('sales.csv')))
open('total.txt', 'w').write(str(total))
print(total)\""

run "$sandhost" exec -v --config agent.json -- "$command"
want_exit 0
want_out 450
want_file workspace/files/total.txt 450
want_in_err 'pulling python:3.12-slim'
printf '%s\n' "$err" >summary
grep -qE "^ran: \['sh', '-c', .*\] \| exit 0 \| in docker \| [0-9]+\.[0-9]{3} ms$" summary || fail "no ran line"
grep -qxF "copied in: ['sales.csv'] | copied back: ['total.txt']" summary || fail "no sync line"
grep -qxF "totals: {'sessions': 1, 'commands': 1, 'failed': 0, 'timed_out': 0}" summary || fail "no totals line"
run "$sandhost" show --json
want_exit 0
want_json completed status
want_json docker steps 0 tool_calls 0 executions 0 sandbox_provider

# The image is there now; the second run pulls nothing, and nothing of either run is left.
run "$sandhost" exec -v --config agent.json -- 'cat total.txt'
want_exit 0
want_out 450
[[ $err != *pulling* ]] || fail "pulled again"
[ "$(engine_api GET '/containers/json?all=1')" = '[]' ] || fail "a container is left"

# A private registry: refused without a login, pulled with one from Docker's own configuration.
registry_start tester secret-of-the-registry
engine_image private-busybox busybox
registry_push private-busybox team/tool:1 tester secret-of-the-registry
cat >private.json <<JSON
{"governance_config": {"sandbox_config": {"provider": "docker", "options": {"image": "$registry/team/tool:1"}}}}
JSON
export DOCKER_CONFIG=$work/docker-config
mkdir "$DOCKER_CONFIG"
run "$sandhost" exec -q --config private.json -- 'echo in'
want_exit 125
want_in_err "docker login $registry"
printf '{"auths": {"%s": {"auth": "%s"}}}' "$registry" "$(printf 'tester:secret-of-the-registry' | base64)" >"$DOCKER_CONFIG/config.json"
run "$sandhost" exec -q --config private.json -- 'echo in'
want_exit 0
want_out in
want_not_in_out secret-of
