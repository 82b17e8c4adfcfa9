# SPDX-License-Identifier: Apache-2.0
# What the reader says of generated lines against what dash and bash run: in a sandbox where every program is a
# recorder, every line that it calls readable starts exactly the programs and words that it names.
# COMMAND_SHELLS_LINES and COMMAND_SHELLS_SEED try others.
. "$(dirname "$(readlink -f "$0")")/lib.bash"

for tool in dash bash bwrap cc; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
cc -O1 -static -o recorder "$SANDHOST_SOURCE/tests/e2e/command-recorder.c" 2>cc.log ||
  cc -O1 -o recorder "$SANDHOST_SOURCE/tests/e2e/command-recorder.c"

lines=${COMMAND_SHELLS_LINES:-6000}
if [ -n "${SANDHOST_SANITIZED:-}" ]; then
  lines=${COMMAND_SHELLS_LINES:-500}
fi
libraries=()
for folder in /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib; do
  if [ -L "$folder" ]; then
    libraries+=(--symlink "$(readlink "$folder")" "$folder")
  elif [ -d "$folder" ]; then
    libraries+=(--ro-bind "$folder" "$folder")
  fi
done

try() { # SEED
  run bwrap --unshare-all --die-with-parent --tmpfs / "${libraries[@]}" --proc /proc --dev /dev --dir /bin \
    --dir /work --chdir /work --setenv LSAN_OPTIONS detect_leaks=0 \
    --ro-bind "$(command -v dash)" /shells/dash --ro-bind "$(command -v bash)" /shells/bash \
    --ro-bind "$work/recorder" /recorder \
    --ro-bind "$SANDHOST_BUILD/bin/test-governance-command-shells" /driver /driver --shells "$lines" "$1"
  [ "$code" -eq 0 ] || fail "what is read is not what is run"
  want_out "$lines lines in each shell, 0 differ (seed $1)"
}

# The same lines each time, so that a difference stays; and others each time, so that one is found.
fixed=$lines
lines=$((fixed / 3))
try 1
lines=$((fixed - fixed / 3))
try "${COMMAND_SHELLS_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
