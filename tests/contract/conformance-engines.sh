# SPDX-License-Identifier: Apache-2.0
# The docker provider keeps the contract on every kind of engine, with the guest and through the engine's own calls.
# Usage: conformance-engines.sh KIND [OPTION...]
. "$SANDHOST_SOURCE/tests/e2e/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

kind=$1
shift
engine_start "$kind"
engine_image busybox:test busybox
plugin=$(find "$(dirname "$sandhost")/.." -name sandhost-docker.so -path '*/providers/*' | head -n 1)
options=()
for option in image=busybox:test "$@"; do
  options+=(--option "$option")
done
"$sandhost" provider test "$plugin" "${options[@]}"

# What the host makes of the required operations comes to the same. The program starts the guest of this build, which a
# sanitized one cannot run in an image.
json='"image":"busybox:test"'
for option in "$@"; do json+=",\"${option%%=*}\":\"${option#*=}\""; done
if [ -z "${SANDHOST_SANITIZED:-}" ]; then
  EMULATED_PROVIDER=docker EMULATED_OPTIONS="{$json}" "$SANDHOST_BUILD/bin/test-emulated-native"
fi
