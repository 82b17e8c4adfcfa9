# SPDX-License-Identifier: Apache-2.0
# The conformance suite judges the plugins of the zoo that load: it fails each for its fault, and outlives it.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0

# plugin|check|what it says of it: the words behind "found: ", or the whole line of a check that does not fail
while IFS='|' read -r name check words; do
  code=0
  "$sandhost" provider test "$SANDHOST_BUILD/tests/plugins/sandhost-$name.so" --only "$check" </dev/null >"$work/out" 2>&1 || code=$?
  case $words in
  skipped*) expected=$words ;;
  *) expected="        found: $words" ;;
  esac
  [ "$code" -eq 1 ] && grep -qxF "$expected" "$work/out" || {
    echo "$name ended with $code, and did not say '$expected':" >&2
    cut -c 1-300 "$work/out"
    wrong=1
  }
done <<'ZOO'
good|files: seen|write_file of 'two words' returned OK, and a command reads '' there
liar|execute: exit codes|'exit 3' ended as 10 with 0 instead of exit 3; stderr: 
liar|changes: listing|changes listed 'a/../../etc/passwd 0' instead of ''
liar|snapshot: files|snapshot reported no SANDHOST_REPORT_SNAPSHOT
late|execute: started|the host was told something after the return
nodeadline|cancel: deadline|execute returned OK instead of TIMEOUT
empty|create: its own name|create returned OK and no sandbox
empty|cancel: before create|create returned OK and no sandbox
partial|upload: files|skipped upload: files: no upload in this sandbox
partial|upload: hostile|skipped upload: hostile: no upload in this sandbox
partial|changes: listing|skipped changes: listing: no changes in this sandbox
garbled|execute: exit codes|'true' failed with DENIED: no�\n\u001b[31mred\u202e
twice|execute: exit codes|'true' failed with DENIED: the first reason
ZOO

# A megabyte of words is cut.
"$sandhost" provider test "$SANDHOST_BUILD/tests/plugins/sandhost-loud.so" --only 'execute: exit codes' </dev/null >"$work/out" 2>&1 || true
grep -q '^FAILED  execute: exit codes$' "$work/out" && [ "$(wc -c <"$work/out")" -lt 6000 ] || {
  echo "loud: $(wc -c <"$work/out") bytes were said" >&2
  wrong=1
}

# Who says that a slot is absent must not have touched its stream.
PARTIAL_TOUCHES=1 "$sandhost" provider test "$SANDHOST_BUILD/tests/plugins/sandhost-partial.so" --only 'upload: files' </dev/null >"$work/out" 2>&1 || true
grep -qxF '        found: upload returned UNSUPPORTED when it had touched its stream already' "$work/out" || {
  cat "$work/out"
  wrong=1
}

# A name that no check has is told, also beside one that there is, and nothing is loaded for it.
for words in '--only execute:' ''; do
  code=0
  # shellcheck disable=SC2086 # two words or none
  "$sandhost" provider test "$SANDHOST_BUILD/tests/plugins/sandhost-crash.so" $words --only 'signal: grop' </dev/null >"$work/out" 2>&1 || code=$?
  [ "$code" -eq 2 ] && [ "$(cat "$work/out")" = "sandhost: no check's name has 'signal: grop' in it" ] || {
    echo "a name that no check has: $code" >&2
    cat "$work/out"
    wrong=1
  }
done
exit $wrong
