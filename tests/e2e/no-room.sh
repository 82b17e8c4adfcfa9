# SPDX-License-Identifier: Apache-2.0
# No room for one more descriptor, thread, process or file of the workspace: whoever asks is told so in words, nothing
# aborts, nothing is left, and what is less than a sandbox would be allowed is still enough for one.
. "$(dirname "$0")/lib.bash"

mkdir files

# ---- Descriptors -------------------------------------------------------------------------------------------------------

# From none for the record to a few for the sandbox: a result or one line.
refused=0
for most in 8 16 24 32 48 64 80 100 128 256; do
  run prlimit --nofile=$most "$sandhost" exec -q -w files -- 'echo done'
  if [ "$code" -eq 0 ]; then
    want_out done
    continue
  fi
  want_exit 125
  [[ $err == 'sandhost: '* && $err != *$'\n'* ]] || fail "with $most descriptors, no line says why"
  [[ $err == *'Too many open files'* || $err == *'the limit of open files (ulimit -n) is '"$most"* ]] || fail "the cause is not told"
  refused=$((refused + 1))
done
[ "$refused" -ge 3 ] || fail "$refused limits were too low; nothing was tried"
want_exit 0 # the last

# ---- The workspace's disk ----------------------------------------------------------------------------------------------

# The command's result stands, each file is there as a whole or as it was, and the next run can be had.
cat >full.sh <<'SH'
mount -t tmpfs -o size=1m none files || exit 77
echo old >files/b
head -c 700000 /dev/zero | tr '\0' y >files/ballast
"$1" exec -q -w files -- 'for f in a b c; do head -c 200000 /dev/zero | tr "\0" x >$f; done; mkdir new; echo small >new/small; exit 3'
echo "exit $?"
ls -A files
wc -c <files/a
cat files/b files/new/small
"$1" exec -q -w files -- 'cat b; rm ballast'
echo "exit $?"
SH
run unshare --mount bash full.sh "$sandhost"
if [ "$code" -eq 77 ]; then
  left_out "a full disk: nothing can be mounted here"
else
  want_err 'sandhost: b: could not be written (No space left on device)
sandhost: c: could not be written (No space left on device)'
  want_out $'exit 3\na\nb\nballast\nnew\n200000\nold\nsmall\nold\nexit 0'
fi

# ---- Threads and processes ---------------------------------------------------------------------------------------------

# The kernel counts them by user, and of root not at all. A sanitizer has threads of its own.
[ "$(id -u)" -eq 0 ] && [ -z "$SANDHOST_SANITIZED" ] || {
  left_out "a limit of processes: not as root, or under a sanitizer"
  exit 0
}
chmod 755 "$work"
mkdir prefix user user/files
for built in bin/sandhost lib libexec; do
  mkdir -p "prefix/$(dirname $built)"
  cp -rL "$SANDHOST_BUILD/$built" "prefix/$(dirname $built)/"
done
find prefix -name '*.a' -delete
chmod -R a+rX prefix
number=$((100000 + $$)) # a user who has nothing else
chown -R $number:$number user
cd user
limited() { # MOST WORDS OF SANDHOST...
  local most=$1
  shift
  setpriv --reuid $number --regid $number --clear-groups --inh-caps=-all env HOME="$work/user" SANDHOST_STATE_DIR="$work/user/state" \
    prlimit --nproc="$most" "$work/prefix/bin/sandhost" "$@"
}
requests=$(for id in 1 2 3 4 5 6 7 8; do echo "{\"id\": $id, \"command\": \"sleep 0.3\"}"; done)

# Less than the sandbox's own limit, which is 256.
run_with "$requests" limited 120 session -w files
want_exit 0
[ "$(grep -c '"status":"success"' <<<"$out")" -eq 8 ] || fail "not every command ended well"

# Whatever they find no room for, each is answered.
for most in 2 3 4 6 8 12 16 24; do
  run_with "$requests" limited $most session -w files
  if [ "$code" -eq 125 ]; then
    want_err 'sandhost: cannot start a thread: Resource temporarily unavailable'
  else
    want_exit 0
    [ "$(wc -l <<<"$out")" -eq 8 ] || fail "with $most processes, $(wc -l <<<"$out") answers of 8"
    want_err ''
  fi
done
run_with $'echo done\n' limited 1 shell -w files
want_exit 125
[[ $err == 'sandhost: '*'Resource temporarily unavailable' && $err != *$'\n'* ]] || fail "the shell does not say why it ends"
wait_until "processes are left" '! pgrep -u $number >/dev/null'
