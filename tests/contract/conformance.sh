# SPDX-License-Identifier: Apache-2.0
# Every provider of this build keeps the contract: bubblewrap as root and as an ordinary user, local.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
providers=$(find "$SANDHOST_BUILD"/lib* -path '*/sandhost/providers' -type d)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Each is judged beside the others: nearly all of it is waiting for limits and deadlines.
names=() judges=()
judge() { # NAME WORDS...
  names+=("$1")
  "${@:2}" >"$folder/verdict.${#names[@]}" 2>&1 &
  judges+=($!)
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
  user=$((10000 + $$ % 50000)) # of this test alone: the kernel counts processes by user
  cp "$(dirname "$(find "$SANDHOST_BUILD"/lib* -name 'sandhost-guest-*' -type f | head -n 1)")"/sandhost-* "$folder/parts"
  cp "$providers/sandhost-bubblewrap.so" "$folder/parts"
  chmod -R a+rX "$folder/parts"
  judge 'bubblewrap as an ordinary user' setpriv --reuid $user --regid $user --clear-groups \
    env -i PATH="$PATH" HOME=/nonexistent G_SLICE="${G_SLICE:-}" "$folder/parts/sandhost-conformance" "$folder/parts/sandhost-bubblewrap.so"
fi

failed=0
for i in "${!names[@]}"; do
  code=0
  wait "${judges[i]}" || code=$?
  echo "== ${names[i]}"
  cat "$folder/verdict.$((i + 1))"
  if [ "$code" -ne 0 ]; then
    echo "FAILED: ${names[i]}: it ended with $code"
    failed=1
  elif grep '^untried' "$folder/verdict.$((i + 1))"; then
    echo "FAILED: ${names[i]}: on this machine everything can be tried"
    failed=1
  fi
done
exit "$failed"
