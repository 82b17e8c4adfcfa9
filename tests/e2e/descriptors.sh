# SPDX-License-Identifier: Apache-2.0
# Descriptors: nobody inside has one of the host's, and a host that runs out of them says so, loses nothing and tears nothing.
. "$(dirname "$0")/lib.bash"

zoo=$SANDHOST_BUILD/tests/plugins
[ -d "$zoo" ] || skip "the test plugins are not built"

# ---- Nothing is inherited ----------------------------------------------------------------------------------------------------

# What whoever started sandhost left open, and would be handed on: low, and where nobody looks.
echo secret >secret.txt
exec 9<secret.txt 177<secret.txt
mkdir -p workspace/files open
config() { # PROVIDER FILE
  cat >agent.json <<JSON
{"register_sandbox_provider": {"$1": "$2"}, "governance_config": {"sandbox_config": "$1",
 "sandbox_manifest": {"working_dir": "$3", "network_policy": {"default": "allow"}}, "policy": {"mode": "interactive",
 "rules": {"allow": [{"rule_id": "all", "capability": "*"}]}}}}
JSON
}
look='ls -l /proc/self/fd'
run "$sandhost" exec -q --provider bubblewrap -- "$look"
want_exit 0
want_in_out '/proc'
[[ $out != *secret* ]] || fail "bubblewrap: a command has a descriptor of the host"
for provider in local example; do
  file=$zoo/sandhost-example.so
  [ $provider = example ] || file=$(find "$SANDHOST_BUILD"/lib* -name sandhost-local.so -path '*/providers/*' | head -n 1)
  config $provider "$file" "$work/open"
  run "$sandhost" exec -q --config agent.json -- "$look"
  want_exit 0
  want_in_out '/proc'
  [[ $out != *secret* ]] || fail "$provider: a command has a descriptor of the host"
done

# The program that is asked about an approver, too.
mkdir ops
cat >ops/who <<'SH'
#!/bin/sh
ls -l /proc/self/fd >"$0.open"
SH
chmod 755 ops/who
cat >agent.json <<JSON
{"governance_config": {"sandbox_config": "bubblewrap", "approver_check": ["ops/who"], "policy": {"mode": "interactive",
 "rules": {"allow": [{"rule_id": "files", "capability": "workspace.*"}, {"rule_id": "use", "capability": "sandbox.*"}],
           "ask": [{"rule_id": "commands", "capability": "process.exec", "reason": "A person decides."}]}}}}
JSON
run "$sandhost" exec --config agent.json --json -- true
want_exit 123
run "$sandhost" approve "$(json run_id)" "$(json approvals 0 approval_id)" --approver alice
want_exit 0
grep -q /proc ops/who.open || fail "the program was not asked"
! grep -q secret ops/who.open || fail "the program that is asked has a descriptor of the host"
exec 9<&- 177<&-

# ---- They run out ------------------------------------------------------------------------------------------------------------

# Each limit is met somewhere else on the way of a command. What comes of it is all or nothing.
way_out() { echo "; only $1 files may be open at once: raise that (ulimit -n), or see who leaves them open (sandhost provider test)"; }
export SANDHOST_STATE_DIR=$work/few
rm -rf workspace agent.json
mkdir -p workspace/files
for i in $(seq 30); do head -c 3000 /dev/zero | tr '\0' a >"workspace/files/f$i"; done
command='for i in $(seq 30); do head -c 3000 /dev/zero | tr "\0" b >f$i; done; mkdir -p d/e; echo new >d/e/new'
sound() { # LIMIT: every file is whole, the record is too
  python3 - "$1" <<'PY' || fail "a file is torn"
import pathlib, sys
for path in pathlib.Path("workspace/files").rglob("*"):
    if path.is_file() and path.read_bytes() not in (b"a" * 3000, b"b" * 3000, b"new\n"):
        sys.exit(f"limit {sys.argv[1]}: {path} is torn")
PY
  run "$sandhost" record verify
  want_exit 0
  want_in_out ' 0 damaged'
}

told=0 done=0
for limit in 5 8 12 16 24 40 48 50 52 60; do
  run bash -c 'ulimit -S -n "$1" && shift && exec "$@"' few "$limit" "$sandhost" exec -q -- "$command"
  case $code in
  0) done=$((done + 1)) ;;
  125)
    told=$((told + 1))
    [ "$(wc -l <<<"$err")" -eq 1 ] || fail "limit $limit: more than one line"
    want_in_err 'Too many open files'
    [[ $err == *"$(way_out "$limit")" ]] || fail "limit $limit: no way out is told"
    ;;
  *) fail "limit $limit" ;;
  esac
  [ ! -f "$SANDHOST_STATE_DIR/record.db" ] || sound "$limit"
done
[ "$told" -gt 0 ] && [ "$done" -gt 0 ] || fail "$told told, $done done: the limits are on one side of what is needed"

# ---- A provider that leaks ---------------------------------------------------------------------------------------------------

leaking() { # WHERE LIMIT
  printf '{"register_sandbox_provider": {"leak": "%s"}, "governance_config": {"sandbox_config": "leak"}, "enable_workspace_files": false}' \
    "$zoo/sandhost-leak.so" >agent.json
  code=0
  (
    ulimit -n "$2"
    for i in $(seq 8); do echo '{"command":"true"}'; done |
      LEAK_WHERE=$1 LEAK_COUNT=1000 "$sandhost" session --config agent.json --record "leak-$1.db"
  ) >.out 2>.err || code=$?
  out=$(<.out) err=$(<.err)
}

# With none left before the record is open nothing begins.
leaking open 64
want_exit 125
want_out ''
want_err "sandhost: could not open the record leak-open.db: unable to open database file (Too many open files); --record FILE or SANDHOST_STATE_DIR names another place$(way_out 64)"

# With none left later every command goes on: the calls of a provider need none, and the record has what it needs.
for where in create execute; do
  leaking $where 64
  want_exit 0
  want_err ''
  [ "$(grep -c '"status":"success"' .out)" -eq 8 ] || fail "$where: a command has no answer"
  run "$sandhost" record verify --record "leak-$where.db"
  want_exit 0
  want_in_out '1 runs whole, 0 damaged'
  run "$sandhost" show --json --record "leak-$where.db"
  want_exit 0
  want_json completed status
done

# The provider's own test names it.
run "$sandhost" provider test "$zoo/sandhost-leak.so" --only 'leave no descriptor'
want_exit 1
want_in_out 'found: 256 more descriptors are open after 4 more commands'
LEAK_WHERE=open run "$sandhost" provider test "$zoo/sandhost-leak.so" --only 'closed on exec'
want_exit 1
want_in_out 'found: 32 descriptors are not closed when another program is begun'
LEAK_COUNT=0 run "$sandhost" provider test "$zoo/sandhost-leak.so" --only 'leave no descriptor'
want_exit 0
for thing in 'handler:there is another handler for User defined signal 2' 'umask:the umask became 0777' 'cwd:the working directory became /' \
  'locale:the locale became C.UTF-8' "thread-locale:the calling thread's locale was changed" 'environment:the environment was changed' "mask:the calling thread's signal mask was changed for Hangup"; do
  MEDDLER_WITH=${thing%%:*} run "$sandhost" provider test "$zoo/sandhost-meddler.so" --only 'left as it was'
  want_exit 1
  want_in_out "found: create: ${thing#*:}"
done
