# SPDX-License-Identifier: Apache-2.0
# SIGKILL of sandhost at random points, with docker: two seconds later no container runs, nor anything that was in one; the
# record and the workspace are as in kills.sh. What had not been started is found by sandhost cleanup.
. "$(dirname "$0")/lib.bash"
. "$SANDHOST_SOURCE/tests/engine/lib.bash"

engine_start --own docker # all its containers are this test's
engine_image busybox:test busybox
rounds=24
[ -z "$SANDHOST_SANITIZED" ] || rounds=8
/usr/bin/python3 -B "$SANDHOST_SOURCE/tests/e2e/kills/kills.py" docker $rounds "$sandhost" || fail "with docker"
