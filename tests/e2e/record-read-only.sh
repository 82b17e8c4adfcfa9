# SPDX-License-Identifier: Apache-2.0
# A record on a file system without writing is read as it stands, with its log or without one; what writes says so.
. "$(dirname "$0")/lib.bash"

mkdir look
unshare -rm sh -c 'mount --bind state look && mount -o remount,ro,bind look' 2>/dev/null && fail "there is no state yet"
mkdir state
unshare -rm sh -c 'mount --bind state look && mount -o remount,ro,bind look' 2>/dev/null || skip "no file system can be mounted here"
"$sandhost" exec -q -- 'echo one' >/dev/null
[ -s state/record.db-wal ] || fail "there is no log"

cat >reads.sh <<'END'
set -e
mount --bind state look
mount -o remount,ro,bind look
export SANDHOST_STATE_DIR=$PWD/look
"$sandhost" runs | grep -c '^run_.* completed' | grep -qx 1
"$sandhost" show >/dev/null
"$sandhost" show --events | grep -q run_ended
[ "$("$sandhost" show --output 1)" = one ]
"$sandhost" record verify | grep -q '^1 runs whole, 0 damaged'
"$sandhost" record prune --keep 0 2>/dev/null && exit 1
"$sandhost" record prune --keep 0 --dry-run | grep -q "^would prune 1 runs: "
"$sandhost" exec -q -- true 2>/dev/null && exit 1
[ -z "$("$sandhost" doctor --no-try | grep 'can be written')" ]
END
export sandhost
unshare -rm bash -x reads.sh >out 2>&1 || fail "with a log: $(cat out)"

# The log is of no use without what is shared beside it, and leaving it out would hide runs.
mv state/record.db-shm kept
run unshare -rm sh -c 'mount --bind state look && mount -o remount,ro,bind look && SANDHOST_STATE_DIR=$PWD/look "$sandhost" runs'
want_exit 125
want_in_err 'its last entries stand in'
mv kept state/record.db-shm
python3 -c '
import sqlite3
db = sqlite3.connect("state/record.db")
db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
db.close()'
[ ! -s state/record.db-wal ] || fail "there is still a log"
unshare -rm bash -x reads.sh >out 2>&1 || fail "without a log: $(cat out)"

# A call that is not there, and a place where no record can be made.
run "$sandhost" show --events --call call_ffffffff
want_exit 125
want_in_err ' has no call call_ffffffff'
run "$sandhost" doctor --record /proc/x/y --no-try
want_in_out '/proc/x/y: it cannot be made in /proc: '
