# SPDX-License-Identifier: Apache-2.0
# Bad engines, each going wrong at another request, in one process with a session at a good one: each is told for what it
# is, in bounded time, and the good session notices nothing. What they left behind on the good engine ends by itself.
. "$(dirname "$0")/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

# The sanitizer's own library would have to come first in a process that is python's.
[ -z "$SANDHOST_SANITIZED" ] || skip "a sanitized library cannot be loaded by python3"
engine_start --own docker
engine_image busybox:test busybox
library=$(find "$SANDHOST_BUILD/lib" -maxdepth 1 -name 'libsandhost.so')
run timeout --kill-after 5 600 python3 "$SANDHOST_SOURCE/tests/e2e/docker-engines.py" "$library" "${DOCKER_HOST#unix://}" \
  "$SANDHOST_SOURCE/tests/engine/bad-engine" "$work"
echo "$out"
want_exit 0

# Containers that were started end with their stream. One that was only made is what cleanup is for.
ours='/containers/json?filters=%7B%22label%22%3A%5B%22omnicoreagent.sandbox%3D1%22%5D%7D'
wait_until "containers run on" '[ "$(engine_api GET "$ours")" = "[]" ]'
