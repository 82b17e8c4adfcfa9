# SPDX-License-Identifier: Apache-2.0
# A record that has filled its disk: pruning says how much room it needs itself, and with that much it makes more.
. "$(dirname "$0")/lib.bash"

unshare -rm mount -t tmpfs tmpfs /mnt 2>/dev/null || skip "no file system can be mounted here"
for _ in 1 2 3 4 5; do
  "$sandhost" exec -q -- 'head -c 300000 /dev/urandom | base64' >/dev/null
done
[ -s state/record.db ] || fail "nothing is recorded"
bytes=$(du -sb state | cut -f1)

# The disk is as large as the record and two MiB, which a file takes.
cat >full.sh <<'END'
set -e
mount -t tmpfs -o size=$(($1 + 2100000)) tmpfs /mnt
cp state/record.db state/record.db-wal /mnt/
export SANDHOST_STATE_DIR=/mnt
"$sandhost" runs >/dev/null # what is shared beside the file is there
head -c 4000000 /dev/zero >/mnt/filler 2>/dev/null || true
code=0
"$sandhost" record prune --keep 1 2>err || code=$?
[ $code -eq 125 ] || { echo "pruned a full disk with $code"; exit 1; }
needs=$(sed -n 's/.*its disk is full.* free \([0-9]*\) KiB on it, and prune again$/\1/p' err)
[ -n "$needs" ] || { cat err; exit 1; }
truncate -s -"$needs"K /mnt/filler 2>/dev/null || rm /mnt/filler
"$sandhost" record prune --keep 1
[ "$("$sandhost" runs | grep -c run_)" -eq 1 ]
"$sandhost" record verify
END
export sandhost
unshare -rm bash full.sh "$bytes" >full.out 2>&1 || fail "$(cat full.out)"
