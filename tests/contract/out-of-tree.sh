#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example is built as a stranger would: from an installed prefix alone, by hand and with its own CMakeLists.txt,
# then found and told by the installed program.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake --install "$SANDHOST_BUILD" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
config=$(find "$prefix" -name sandhost-provider.pc)
cp -r "$SANDHOST_SOURCE/sdk/example" "$work/example"
# The file names the prefix of the build; this one lies elsewhere.
instrument=(${SANDHOST_SANITIZED:+"-fsanitize=$SANDHOST_SANITIZED"}) # as the host that loads it
flags() { PKG_CONFIG_PATH=$(dirname "$config") pkg-config --define-variable=prefix="$prefix" "$@" sandhost-provider; }

mkdir -p "$work/plugins"
# shellcheck disable=SC2046
cc -shared -fPIC -fvisibility=hidden -Wall -Wextra -Werror "${instrument[@]}" \
  -o "$work/plugins/sandhost-example.so" \
  "$work"/example/*.c $(flags --cflags)
chmod 755 "$work" "$work/plugins" "$work/plugins/sandhost-example.so"
exported=$(nm -D --defined-only "$work/plugins/sandhost-example.so" | awk '{print $3}')
[ "$exported" = sandhost_provider_1 ] || { echo "it exports: $exported"; exit 1; }

sed "s|^prefix=.*|prefix=$prefix|" "$config" >"$work/sandhost-provider.pc"
PKG_CONFIG_PATH=$work cmake -S "$work/example" -B "$work/example-build" -DCMAKE_C_FLAGS="${instrument[*]}" >"$work/log" 2>&1 &&
  cmake --build "$work/example-build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
[ -f "$work/example-build/sandhost-example.so" ]

export SANDHOST_PLUGIN_PATH=$work/plugins
"$prefix/bin/sandhost" providers >"$work/list"
grep -q "^example  *1.0 .*$work/plugins/sandhost-example.so\$" "$work/list" || { cat "$work/list"; exit 1; }
"$prefix/bin/sandhost" providers example >"$work/one"
for line in \
  "example 1.0: runs commands in a folder of this machine, to show how a provider is written" \
  "file: $work/plugins/sandhost-example.so" \
  "commands run: on this machine, not isolated"; do
  grep -qxF "$line" "$work/one" || { echo "missing: $line"; cat "$work/one"; exit 1; }
done
grep -q "^  max_output_bytes  *Output kept per stream" "$work/one"

chmod 0777 "$work/plugins/sandhost-example.so"
if "$prefix/bin/sandhost" providers example >"$work/one" 2>&1; then
  echo "a file that others may write was loaded"
  exit 1
fi
grep -q "refused: it is writable by others (mode 0777)" "$work/one" || { cat "$work/one"; exit 1; }

# The contract's judge on it, where the installed program keeps it: nothing is forgiven. In a process namespace of its
# own: what a fault of it would leave behind ends there.
chmod 755 "$work/plugins/sandhost-example.so"
mkdir "$work/files"
unshare --fork --pid --mount-proc --kill-child \
  "$prefix/bin/sandhost" provider test "$work/plugins/sandhost-example.so" --working-dir "$work/files" >"$work/verdict" ||
  { cat "$work/verdict"; exit 1; }
grep -qE '^[67][0-9] passed, 0 failed' "$work/verdict" || { cat "$work/verdict"; exit 1; }

# A host that is killed leaves no process behind either: the keepers see it go.
cat >"$work/agent.json" <<JSON
{"governance_config": {"sandbox_config": "example",
  "sandbox_manifest": {"working_dir": "$work/files", "network_policy": {"default": "allow"}},
  "policy": {"mode": "interactive", "rules": {"allow": [{"rule_id": "all", "capability": "*"}]}}}}
JSON
mark=1$$.25
sleepers() { pgrep -fcx "sleep $mark" || true; }
await() { # COUNT
  local i
  for ((i = 0; i < 600; i++)); do
    [ "$(sleepers)" -ne "$1" ] || return 0
    sleep 0.1
  done
  echo "$(sleepers) processes of the command, not $1"
  pkill -KILL -fx "sleep $mark" || true
  exit 1
}
"$prefix/bin/sandhost" exec -q --record "$work/record.db" --config "$work/agent.json" -- "setsid sleep $mark & sleep $mark" &
await 2
kill -KILL $!
await 0
