# SPDX-License-Identifier: Apache-2.0
# lib.bash: what the end-to-end scripts share. Each gets a fresh folder of its own, removed at the end, as current
# directory and as home of its record. A script ends with the first thing that is not as expected.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
work=$(mktemp -d)
cd "$work"
export SANDHOST_STATE_DIR=$work/state
at_exit=() # commands, run at the end in reverse order
cleanup() {
  local i
  for ((i = ${#at_exit[@]} - 1; i >= 0; i--)); do eval "${at_exit[i]}" || true; done
  cd /
  chmod -R u+rwX "$work" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

fail() {
  echo "FAILED: $*" >&2
  if [ -n "${out+x}" ]; then
    printf -- '--- exit %s\n--- stdout:\n%s\n--- stderr:\n%s\n' "$code" "$(head -c 4000 <<<"$out")" "$(head -c 4000 <<<"$err")" >&2
  fi
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

# A part that cannot be tried here, while the rest goes on: ./test lists these lines.
left_out() { echo "skipped: $*"; }

# For what comes at the machine's own pace: waits until the words succeed, longer than any machine takes.
wait_until() { # WHAT IS WRONG WHERE THEY NEVER DO, COMMAND LINE
  local until=$((SECONDS + 180))
  until eval "$2"; do
    [ "$SECONDS" -lt "$until" ] || fail "$1"
    sleep 0.02
  done
}

# Runs the words and keeps what they did in $code, $out and $err.
run() {
  code=0
  "$@" >"$work/.out" 2>"$work/.err" </dev/null || code=$?
  out=$(tr -d '\0' <"$work/.out")
  err=$(tr -d '\0' <"$work/.err")
}

# The same, with the first word as stdin.
run_with() {
  local input=$1
  shift
  code=0
  printf '%s' "$input" | "$@" >"$work/.out" 2>"$work/.err" || code=$?
  out=$(tr -d '\0' <"$work/.out")
  err=$(tr -d '\0' <"$work/.err")
}

want_exit() { [ "$code" -eq "$1" ] || fail "exit $code instead of $1"; }
want_out() { [ "$out" = "$1" ] || fail "stdout is not: $1"; }
want_in_out() { [[ $out == *"$1"* ]] || fail "stdout lacks: $1"; }
want_not_in_out() { [[ $out != *"$1"* ]] || fail "stdout has: $1"; }
want_in_err() { [[ $err == *"$1"* ]] || fail "stderr lacks: $1"; }
want_err() { [ "$err" = "$1" ] || fail "stderr is not: $1"; }
want_file() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ] || fail "file $1 does not hold: $2"; }

# The value at a path of keys in the JSON of $out: json data exit_code
json() {
  python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1:]:
    value = value[int(key)] if isinstance(value, list) else value[key]
print(value if isinstance(value, str) else json.dumps(value))' "$@" <<<"$out"
}
want_json() { # VALUE KEY...
  local value=$1 got
  shift
  got=$(json "$@" && echo .) || fail "no $* in the JSON"
  got=${got%??} # the end of print, and what keeps newlines before it
  [ "$got" = "$value" ] || fail "$* is $got instead of $value"
}
