#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program is built against what was installed, as a stranger would, and runs from wherever the prefix lies: a command
# in bubblewrap, and a handler in place of a sandbox.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
  echo "$1"
  shift
  for file in "$@"; do echo "-- $file"; cat "$file"; done
  exit 1
}

cmake --install "$SANDHOST_BUILD" --prefix "$prefix" >"$work/log" || fail "not installed" "$work/log"
config=$(find "$prefix" -name sandhost.pc)
# The file names the prefix of the build; this one lies elsewhere.
flags() { PKG_CONFIG_PATH=$(dirname "$config") pkg-config --define-variable=prefix="$prefix" "$@" sandhost; }
libdir=$(flags --variable=libdir)
instrument=(${SANDHOST_SANITIZED:+"-fsanitize=$SANDHOST_SANITIZED"}) # as the library that it is linked with

# The header: alone, in C and C++, and beside the providers' one in either order; it includes one header.
strict=(-Wall -Wextra -Wpedantic -Wshadow -Werror -c -o "$work/alone.o")
for includes in sandhost.h 'sandhost.h provider.h' 'provider.h sandhost.h'; do
  for name in $includes; do echo "#include <sandhost/$name>"; done >"$work/alone.c"
  cp "$work/alone.c" "$work/alone.cc"
  for standard in c11 c17; do
    # shellcheck disable=SC2046
    cc -std=$standard $(flags --cflags) "${strict[@]}" "$work/alone.c"
  done
  for standard in c++11 c++17; do
    # shellcheck disable=SC2046
    c++ -std=$standard $(flags --cflags) "${strict[@]}" "$work/alone.cc"
  done
done
included=$(grep -E '^ *# *include' "$prefix/include/sandhost/sandhost.h")
[ "$included" = '#include <stddef.h>' ] || fail "sandhost.h includes: $included"

# A name that the header declares is exported, and no other is.
nm -D --defined-only "$libdir/libsandhost.so" | awk '$2 == "T" {sub(/@.*/, "", $3); print $3}' | sort >"$work/exported"
grep -v '^ *#' "$prefix/include/sandhost/sandhost.h" | tr -d '\n' | grep -oE 'SANDHOST_API [^(]*\(' | grep -oE '[a-z_]+\($' | tr -d '(' |
  sort >"$work/declared"
diff "$work/declared" "$work/exported" >"$work/log" || fail "declared and exported differ" "$work/log"
while read -r name; do
  grep -qE "^\.Fn $name( |$)" "$SANDHOST_SOURCE/docs/man/libsandhost.3" || fail "the manual page has no $name"
done <"$work/declared"

# shellcheck disable=SC2046
cc -Wall -Wextra -Werror "${instrument[@]}" -o "$work/embed" "$SANDHOST_SOURCE/examples/embed.c" $(flags --cflags --libs) \
  -Wl,-rpath,"$libdir"
needed=$(readelf -d "$work/embed" | grep -o 'libsandhost[^]]*')
[ "$needed" = libsandhost.so.0 ] || fail "the program needs: $needed"

# shellcheck disable=SC2046
cc -Wall -Wextra -Werror "${instrument[@]}" -o "$work/approve" "$SANDHOST_SOURCE/examples/approve.c" $(flags --cflags --libs) \
  -Wl,-rpath,"$libdir"
# A run that waits is decided and goes on, in bubblewrap: the command runs once, and then only.
mkdir -p "$work/waiting/files"
(cd "$work/waiting" && "$work/approve" files record.db 'echo once >> out.txt; cat out.txt') \
  >"$work/waiting/out" 2>"$work/waiting/err" || fail "the program that waits failed" "$work/waiting/out" "$work/waiting/err"
[ "$(cat "$work/waiting/files/out.txt")" = once ] || fail "the command did not run once" "$work/waiting/out"
for line in '^begun: .*"status":"awaiting_approval"' '^waiting: .*"command":"echo once >> out.txt; cat out.txt"' \
  '^refused: Approver mallory is refused: only the one who is on call decides$' '^request: {"task":"example"}$' \
  '^resumed: .*"status":"success","data":{"exit_code":0,"stdout":"once\\n"' '^calls: .*"state":"completed","outcome":"success"'; do
  grep -qE -- "$line" "$work/waiting/out" || fail "missing: $line" "$work/waiting/out" "$work/waiting/err"
done
[ "$(grep -o '"tool_call_id"' <<<"$(grep '^calls: ' "$work/waiting/out")" | wc -l)" -eq 1 ] || fail "not one call" "$work/waiting/out"

# What the programs below leave is their own folder's.
mkdir -p "$work/loaded" "$work/thrown" "$work/bare"

# Loaded, used and unloaded again and again: its threads go on, so its code stays. The leak sanitizer falls over what
# such threads have of their own.
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror "${instrument[@]}" -o "$work/load" "$SANDHOST_SOURCE/tests/contract/programs/load.c" $(flags --cflags)
for _ in 1 2 3 4 5; do
  (cd "$work/loaded" && ASAN_OPTIONS=detect_leaks=0 "$work/load" "$libdir/libsandhost.so.0") >"$work/log" 2>&1 || fail "not loaded again" "$work/log"
done

# An exception out of a callback ends the program: nobody catches it past the library's locks.
# shellcheck disable=SC2046
c++ -Wall -Wextra -Werror "${instrument[@]}" -o "$work/throw" "$SANDHOST_SOURCE/tests/contract/programs/throw.cc" \
  $(flags --cflags --libs) -Wl,-rpath,"$libdir"
for hook in answer output handler approver; do
  status=0
  (cd "$work/thrown" && ulimit -c 0 && ASAN_OPTIONS=handle_abort=0 "$work/throw" "$hook") >"$work/log" 2>&1 || status=$?
  [ "$status" -eq 134 ] || fail "an exception out of $hook: $status" "$work/log"
done

# Where /proc is not mounted, that is said. The sanitizers need it themselves.
if [ -z "$SANDHOST_SANITIZED" ] && unshare -rm mount -t tmpfs tmpfs /proc 2>/dev/null; then
  mkdir "$work/bare/files"
  (cd "$work/bare" && unshare -rm sh -c 'mount -t tmpfs tmpfs /proc && exec "$0" files record.db' "$work/embed") >"$work/log" 2>&1 || true
  grep -q '"message":"bubblewrap needs /proc, which is not mounted here: mount -t proc proc /proc"' "$work/log" || fail "without /proc" "$work/log"
fi

# Runs it in a folder of its own, and looks at what it printed and left.
try() { # FOLDER [LIBRARY_PATH]
  local at=$1
  mkdir -p "$at/files"
  printf '12345' >"$at/files/in.txt"
  (cd "$at" && env -u SANDHOST_PLUGIN_PATH ${2:+LD_LIBRARY_PATH="$2"} "$work/embed" files record.db) >"$at/out" 2>"$at/err" ||
    fail "the program failed" "$at/out" "$at/err"
  [ "$(cat "$at/files/out.txt")" = 5 ] || fail "nothing came back" "$at/out" "$at/err"
  [ "$(grep -c '"name":"execute"' "$at/out")" -eq 2 ] || fail "no tool" "$at/out"
  grep -q '"status":"success","data":{"exit_code":0,"stdout":"5\\n","stderr":""' "$at/out" ||
    fail "no result of bubblewrap" "$at/out" "$at/err"
  grep -q '"stdout":"pretended\\n","stderr":"rm -rf /"' "$at/out" || fail "no result of the handler" "$at/out"
  local runs
  runs=$(grep -oE '"run_id":"run_[0-9a-f]{32}"' "$at/out" | sort -u | wc -l)
  [ "$runs" -eq 2 ] || fail "$runs runs" "$at/out"
}
try "$work/installed" ""

# The prefix is moved as a whole: what belongs to the library is found beside it.
mv "$prefix" "$work/moved"
try "$work/elsewhere" "$work/moved${libdir#"$prefix"}"

# So it is when the library was found along a relative path.
try "$work/relative" "../moved${libdir#"$prefix"}"
