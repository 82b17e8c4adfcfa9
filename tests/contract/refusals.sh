# SPDX-License-Identifier: Apache-2.0
# What the host refuses, the conformance suite refuses, in the same words; and nothing else of the zoo.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
zoo=$SANDHOST_BUILD/tests/plugins
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0
complain() { echo "$*" >&2; wrong=1; }

SANDHOST_PLUGIN_PATH=$zoo "$sandhost" providers >"$work/host"
refused=0
for file in "$zoo"/sandhost-*.so; do
  name=$(basename "$file" .so)
  name=${name#sandhost-}
  code=0
  # The one check that is asked for does not matter: what is refused runs none.
  "$sandhost" provider test "$file" --only 'create: its own name' </dev/null >"$work/out" 2>"$work/suite" || code=$?
  sed -n "s/^$name  *refused: //p" "$work/host" >"$work/words"
  if [ -s "$work/words" ]; then
    refused=$((refused + 1))
    [ "$code" -eq 2 ] || complain "$name: the host refuses it, the suite ends with $code"
    sed 's/^sandhost: //' "$work/suite" | cmp -s - "$work/words" ||
      complain "$name: the host says '$(<"$work/words")', the suite '$(<"$work/suite")'"
  elif grep -q ' refused: ' "$work/suite"; then
    complain "$name: only the suite refuses it: $(<"$work/suite")"
  fi
done
[ "$refused" -ge 10 ] || complain "only $refused plugins of the zoo were refused"

# A host looks for sandhost-NAME.so: another name is never found.
cp "$zoo/sandhost-good.so" "$work/good.so"
code=0
"$sandhost" provider test "$work/good.so" >"$work/out" 2>"$work/suite" || code=$?
[ "$code" -eq 2 ] && grep -qxF "sandhost: provider file $work/good.so refused: the file is not named sandhost-good.so" "$work/suite" ||
  complain "a file of another name: $code, $(<"$work/suite")"
exit $wrong
