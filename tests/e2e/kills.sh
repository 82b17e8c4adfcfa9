# SPDX-License-Identifier: Apache-2.0
# SIGKILL of sandhost at random points, more than two hundred times, as root and as an ordinary user: two seconds later
# nothing of the sandbox is alive, the record opens and tells how far the run came, and the workspace holds whole files
# only, those that the record says. kills/kills.py says how the points are chosen and what is looked at.
# KILLS_WHO: "runner" is killed as whoever runs this, "other" as the ordinary user that root becomes; without it, both.
# SANDHOST_KILLS: how many rounds for each hundred that are usual. SANDHOST_KILLS_SEED: the same points again.
. "$(dirname "$0")/lib.bash"

percent=${SANDHOST_KILLS:-100}
[ -z "$SANDHOST_SANITIZED" ] || percent=$((percent / 4)) # the same points, only slower to reach
as=() user=$((10000 + $$ % 50000)) # of this test alone: the kernel counts processes by user
script=$SANDHOST_SOURCE/tests/e2e/kills/kills.py

kill_at() { # DOOR ROUNDS: in a folder and with a record of its own
  local folder=$work/$who/$1 rounds=$(($2 * percent / 100))
  mkdir -p "$folder"
  [ ${#as[@]} -eq 0 ] || chown $user:$user "$folder"
  (cd "$folder" && SANDHOST_STATE_DIR=$folder/state "${as[@]}" /usr/bin/python3 -B "$script" "$1" "$((rounds > 6 ? rounds : 6))" "$sandhost") ||
    fail "as $who"
}
doors() { # ROUNDS of exec, and of each other door
  kill_at exec "$1"
  # What a sanitizer sees, it sees at one door; the points of the others are too far apart when all is slow.
  [ -z "$SANDHOST_SANITIZED" ] || return 0
  [ "$who" = user ] || kill_at limited "$2" # control groups are root's on most machines
  kill_at session "$2"
  kill_at local "$2"
  kill_at embedded $(($2 / 2)) # three runs each
}

if [ "$(id -u)" -ne 0 ]; then
  [ "${KILLS_WHO:-}" != other ] || skip "an ordinary user runs this, and there is no other one to become"
  who=user
  doors 120 24
  exit 0
fi
if [ "${KILLS_WHO:-}" != other ]; then
  who=root
  doors 100 20
fi
[ "${KILLS_WHO:-}" != runner ] || exit 0
command -v setpriv >/dev/null || fail "no setpriv(1) to become an ordinary user with"
# An ordinary user reaches neither root's build folder nor its home: the parts are copied where anybody may read them.
chmod 755 "$work"
mkdir "$work/prefix"
for built in bin/sandhost lib libexec; do
  mkdir -p "$work/prefix/$(dirname $built)"
  cp -rL "$SANDHOST_BUILD/$built" "$work/prefix/$(dirname $built)/"
done
find "$work/prefix" -name '*.a' -delete
cp -r "${script%/*}" "$work/prefix/"
chmod -R a+rX "$work/prefix"
mkdir "$work/user"
chmod 755 "$work/user"
sandhost=$work/prefix/bin/sandhost script=$work/prefix/kills/kills.py who=user
as=(setpriv --reuid $user --regid $user --clear-groups --inh-caps=-all)
export HOME=$work/user
doors 40 10
