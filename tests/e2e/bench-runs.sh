# SPDX-License-Identifier: Apache-2.0
# The benchmarks run to their end. What they measure is nobody's business here: figures belong to ./bench.
. "$(dirname "$0")/lib.bash"

# What is measured has its own tests; here only the programs that measure are tried.
[ -z "$SANDHOST_SANITIZED" ] || skip "a sanitizer's figures mean nothing, and its guest starts in no image"
run "$SANDHOST_BUILD/bin/sandhost-bench" 3
want_exit 0
for row in 'exec -- true' '50 sandboxes at once' 'an event on record' '1,000 command rules' '10,000 characters' '2,000 credentials'; do
  want_in_out "$row"
done
run bash "$SANDHOST_SOURCE/tests/engine/run" docker "$SANDHOST_BUILD/bin/sandhost-bench-docker" 1
[ "$code" -ne 77 ] || skip "$err"
want_exit 0
for row in "the engine's exec" 'by hand' 'archive PUT' 'memory for each'; do
  want_in_out "$row"
done
