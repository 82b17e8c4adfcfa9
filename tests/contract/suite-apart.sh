# SPDX-License-Identifier: Apache-2.0
# A provider that ends the process that judges it, stops it, copies it or shuts its descriptors is told as such, whatever it
# printed; a file that a host would refuse is refused in the same words.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
vice=$SANDHOST_BUILD/tests/vices/sandhost-vice.so
VICE_BASE=$(find "$SANDHOST_BUILD"/lib* -name sandhost-bubblewrap.so -path '*/providers/*' | head -n 1)
export VICE_BASE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0
complain() { echo "$*" >&2; wrong=1; }

judge() { # VICE
  local code=0
  VICE=$1 "$sandhost" provider test "$vice" --only 'process: left as it was' </dev/null >"$work/$1.out" 2>"$work/$1.err" || code=$?
  echo $code >"$work/$1.code"
}
says() { # VICE WORDS: the last of stderr, and no sum
  [ "$(cat "$work/$1.code")" = 2 ] || complain "$1: ended with $(cat "$work/$1.code")"
  [ "$(tail -n 1 "$work/$1.err")" = "sandhost: $vice $2" ] || complain "$1: says '$(cat "$work/$1.err")'"
  ! grep ' passed, ' "$work/$1.out" || complain "$1: there is a sum"
}
# They take the 20 seconds of loading, so they go on beside the others.
slow=(stop-in-loading sleep-in-loading sleep-in-entry stop-in-create)
for name in "${slow[@]}"; do judge $name & done
for name in exit-in-loading exit-in-entry exit-in-execute exit-in-close shut-in-loading shut-in-execute fork-in-loading \
  fork-in-entry fork-in-create; do
  judge $name
done
says exit-in-loading 'ends the program in: being loaded'
says exit-in-entry 'ends the program in: being loaded'
says exit-in-execute 'ends the program in: each operation'
says exit-in-close 'ends the program in: being closed'
says shut-in-loading 'closes what it did not open in: being loaded'
says shut-in-execute 'closes what it did not open in: execute'
says fork-in-loading 'forks in: being loaded'
says fork-in-entry 'forks in: the entry'
says fork-in-create 'forks in: create'
grep -qxF '100 passed, 0 failed, 0 skipped' "$work/exit-in-loading.err" || complain "what it printed is not told"
wait
for name in stop-in-loading sleep-in-loading sleep-in-entry; do says $name 'does not come back from: being loaded'; done
says stop-in-create 'does not come back from: each operation'

refused() { # FILE REASON
  local code=0
  "$sandhost" provider test "$1" </dev/null >"$work/out" 2>"$work/err" || code=$?
  [ $code -eq 2 ] && [ "$(cat "$work/err")" = "sandhost: provider file $1 refused: $2" ] && [ ! -s "$work/out" ] ||
    complain "$1: $code, $(cat "$work/err")"
}
good=$SANDHOST_BUILD/tests/plugins/sandhost-good.so
mkdir "$work/open"
cp "$good" "$work/open/sandhost-good.so"
chmod 777 "$work/open"
refused "$work/open/sandhost-good.so" "its folder $work/open is writable by others (mode 0777)"
cp "$good" "$work/sandhost-good.so"
chmod 666 "$work/sandhost-good.so"
refused "$work/sandhost-good.so" 'it is writable by others (mode 0666)'
chmod 644 "$work/sandhost-good.so"
if [ "$(id -u)" -eq 0 ]; then
  chown 12345 "$work/sandhost-good.so"
  refused "$work/sandhost-good.so" 'it is owned by uid 12345'
  chown 0 "$work/sandhost-good.so"
fi
mkfifo "$work/sandhost-fifo.so"
refused "$work/sandhost-fifo.so" 'it is not a regular file'
refused "$work/sandhost-none.so" 'No such file or directory'
# The machine that it is for: 16 bits at 18.
own=$(od -An -tu2 -j18 -N2 "$work/sandhost-good.so" | tr -d ' ')
case $own in
62) other='\xb7' words='aarch64, this one is x86-64' ;;
183) other='\x3e' words='x86-64, this one is aarch64' ;;
*) other= ;;
esac
if [ -n "$other" ]; then
  printf '%b\x00' "$other" | dd of="$work/sandhost-good.so" bs=1 seek=18 conv=notrunc status=none
  refused "$work/sandhost-good.so" "it is built for another machine ($words)"
fi
exit $wrong
