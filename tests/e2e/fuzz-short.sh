# SPDX-License-Identifier: Apache-2.0
# Every fuzzer on its seeds, then for a short while on what it makes of them: no crash, no leak, no hang.
set -uo pipefail

skip() {
  echo "skipped: $1"
  exit 77
}

# It makes a build of its own, the same from every part.
[ -z "${SANDHOST_SANITIZED:-}" ] || skip "the plain build runs the fuzzers, with sanitizers of their own"
command -v clang >/dev/null || skip "clang is not installed"
# Where clang is, its runtime need not be (Debian has it in libclang-rt-dev).
try=$(mktemp -d) || exit 1
trap 'rm -rf "$try"' EXIT
echo 'int LLVMFuzzerTestOneInput(const char *data, long size) { return data && size < 0; }' >"$try/try.c"
clang -fsanitize=fuzzer,address,undefined -o "$try/try" "$try/try.c" >"$try/log" 2>&1 ||
  skip "clang has no libFuzzer or no sanitizers here: $(head -n 1 "$try/log")"

export SANDHOST_FUZZ_BUILD=$SANDHOST_BUILD/fuzz
"$SANDHOST_SOURCE/tests/fuzz/run" 0 || exit 1
"$SANDHOST_SOURCE/tests/fuzz/run" 6
