# SPDX-License-Identifier: Apache-2.0
# Every provider of this build keeps the contract: bubblewrap as root and as an ordinary user, local.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
providers=$(find "$SANDHOST_BUILD"/lib* -path '*/sandhost/providers' -type d)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

judge() { # NAME WORDS...
  local name=$1
  shift
  echo "== $name"
  "$@" >"$folder/verdict" || { cat "$folder/verdict"; echo "FAILED: $name" >&2; exit 1; }
  cat "$folder/verdict"
  ! grep '^untried' "$folder/verdict" || { echo "$name: on this machine everything can be tried" >&2; exit 1; }
}

judge 'bubblewrap' "$sandhost" provider test "$providers/sandhost-bubblewrap.so"

# In a process namespace of its own: what a fault of local would kill is then only this test.
mkdir "$folder/local"
judge 'local' unshare --fork --pid --mount-proc --kill-child \
  "$sandhost" provider test "$providers/sandhost-local.so" --working-dir "$folder/local"

# An ordinary user reaches neither root's build folder nor its home: the parts are copied where anybody may read them.
if [ "$(id -u)" -eq 0 ]; then
  chmod 755 "$folder"
  mkdir "$folder/parts"
  cp "$(dirname "$(find "$SANDHOST_BUILD"/lib* -name 'sandhost-guest-*' -type f | head -n 1)")"/sandhost-* "$folder/parts"
  cp "$providers/sandhost-bubblewrap.so" "$folder/parts"
  chmod -R a+rX "$folder/parts"
  judge 'bubblewrap as an ordinary user' setpriv --reuid 12345 --regid 12345 --clear-groups \
    env -i PATH="$PATH" HOME=/nonexistent G_SLICE="${G_SLICE:-}" "$folder/parts/sandhost-conformance" "$folder/parts/sandhost-bubblewrap.so"
fi
