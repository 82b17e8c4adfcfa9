#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The contract's header compiles alone, as C11 and as C++, without a warning, and includes nothing of ours.
set -euo pipefail
header=$SANDHOST_SOURCE/sdk/include/sandhost/provider.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$header" "$work/provider.h"

echo '#include "provider.h"' >"$work/alone.c"
for standard in c11 c17; do
  cc -std=$standard -Wall -Wextra -Wpedantic -Wpadded -Werror -c "$work/alone.c" -o "$work/alone.o"
done
cp "$work/alone.c" "$work/alone.cc"
for standard in c++11 c++17; do
  c++ -std=$standard -Wall -Wextra -Wpedantic -Werror -c "$work/alone.cc" -o "$work/alone.o"
done
includes=$(grep -E '^ *# *include' "$header" | sort)
[ "$includes" = $'#include <stddef.h>\n#include <stdint.h>' ] || {
  echo "provider.h includes more than stddef.h and stdint.h: $includes"
  exit 1
}
