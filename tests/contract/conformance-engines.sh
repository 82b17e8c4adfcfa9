# SPDX-License-Identifier: Apache-2.0
# The docker provider keeps the contract on every kind of engine, with the guest and through the engine's own calls.
# Usage: conformance-engines.sh KIND [OPTION...]
. "$SANDHOST_SOURCE/tests/e2e/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

kind=$1
shift
# Minutes, most of them the engine's, for the same host and the same provider.
[ -z "$SANDHOST_SANITIZED" ] || [ "$kind $*" = 'docker ' ] || [ "$kind $*" = 'docker guest=never' ] ||
  skip "one kind of engine is enough for the sanitizers"
engine_start "$kind"
engine_image busybox:test busybox
plugin=$(find "$(dirname "$sandhost")/.." -name sandhost-docker.so -path '*/providers/*' | head -n 1)
options=()
for option in image=busybox:test "$@"; do
  options+=(--option "$option")
done

# Where the containers' bridge is: from there, what the suite listens on is reached.
code=0
engine_net "$sandhost" provider test "$plugin" "${options[@]}" >verdict || code=$?
cat verdict
expected=0
: >wanted
if [ -n "$engine_no_bridge" ]; then
  echo "no bridge: $engine_no_bridge"
  expected=1
  no_route='        found: no command connects to this machine, and the sandbox has no route'
  for check in on switched; do
    printf 'FAILED  network: %s\n%s\n' "$check" "$no_route" >>wanted
  done
fi
# gVisor's kernel shows nobody its processes.
[ "$kind" != docker-runsc ] ||
  for check in 'terminate: processes' 'sweep: removed'; do
    echo "untried $check: could not be tried: what runs in the sandbox is not seen from here"
  done >>wanted
# libcurl 7.88 opens a pair of sockets for each of its handles without it. No program inherits them: what the provider and
# the host start, they start with everything else closed (e2e/descriptors).
if grep -qxF 'FAILED  process: closed on exec' verdict; then
  expected=1
  sed -i '/^FAILED  process: closed on exec$/,/asked:/d' verdict
fi
grep -E '^(FAILED|untried|        found:)' verdict | sort >got || true
sort wanted | diff - got
[ "$code" -eq "$expected" ] || fail "it ended with $code instead of $expected"

# What the host makes of the required operations comes to the same. The program starts the guest of this build, which a
# sanitized one cannot run in an image.
json='"image":"busybox:test"'
for option in "$@"; do json+=",\"${option%%=*}\":\"${option#*=}\""; done
if [ -z "${SANDHOST_SANITIZED:-}" ]; then
  EMULATED_PROVIDER=docker EMULATED_OPTIONS="{$json}" "$SANDHOST_BUILD/bin/test-emulated-native"
fi
