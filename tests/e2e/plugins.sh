# SPDX-License-Identifier: Apache-2.0
# Plugins that must not be loaded, and one that crashes: each told in one line, and the record is not lost.
. "$(dirname "$0")/lib.bash"

zoo=$SANDHOST_BUILD/tests/plugins
[ -d "$zoo" ] || skip "the test plugins are not built"
[ -z "$SANDHOST_SANITIZED" ] || skip "a crash under a sanitizer is a report"
mkdir plugins
config() { # NAME FILE
  printf '{"register_sandbox_provider": {"%s": "%s"}, "governance_config": {"sandbox_config": "%s"}}' "$1" "$2" "$1" >agent.json
}

refused=0
for file in "$zoo"/*.so; do
  name=$(basename "$file" .so)
  name=${name#sandhost-}
  cp "$file" "plugins/sandhost-$name.so"
  config "$name" "$work/plugins/sandhost-$name.so"
  run timeout 100 "$sandhost" exec --config agent.json --timeout 5 -q -- true
  case $code in
  2) refused=$((refused + 1)); [ "$(wc -l <<<"$err")" -eq 1 ] || fail "$name: more than one line" ;;
  124) fail "$name hangs the host" ;;
  esac
done
[ "$refused" -ge 5 ] || fail "only $refused plugins were refused"

chmod 666 plugins/sandhost-good.so 2>/dev/null && {
  config good "$work/plugins/sandhost-good.so"
  run "$sandhost" exec --config agent.json -- true
  want_exit 2
  want_in_err 'writable by others'
}

crashing=$(ls "$zoo" | grep -i crash | head -n 1 || true)
[ -n "$crashing" ] || skip "no crashing plugin"
config "$(basename "${crashing#sandhost-}" .so)" "$zoo/$crashing"
run "$sandhost" exec --config agent.json -- true
[ "$code" -ge 128 ] || fail "the crash of $crashing ended with $code"
run "$sandhost" show --json
want_exit 0
want_json interrupted status
