# SPDX-License-Identifier: Apache-2.0
# Every check of the conformance suite fails for a provider that breaks its clause, and says what it found. The provider is
# tests/contract/vices, around bubblewrap; without a vice it passes everything. Each vice meets the check that is there for
# it and those that fail by it as well; with SUITE_FAILS_WHOLE=1, which takes ten minutes, every check, and nothing else fails.
set -euo pipefail

sandhost=$SANDHOST_BUILD/bin/sandhost
vice=$SANDHOST_BUILD/tests/vices/sandhost-vice.so
VICE_BASE=$(find "$SANDHOST_BUILD"/lib* -name sandhost-bubblewrap.so -path '*/providers/*' | head -n 1)
export VICE_BASE
# Minutes of what contract/conformance does as well, by providers that do wrong on purpose.
[ -z "${SANDHOST_SANITIZED:-}" ] || {
  echo "skipped: contract/conformance has the suite under the sanitizers"
  exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0
complain() { echo "$*" >&2; wrong=1; }

# vice|the check that is there for it|what it finds, as a pattern|what else fails by it
cat >"$work/vices" <<'VICES'
unnamed|create: its own name|create reported no SANDHOST_REPORT_REF|sweep: keeps;attach: by its name
elsewhere|create: working directory|'pwd' printed '/tmp\n' instead of '/workspace\n'|
leaky|create: environment|'echo "${SANDHOST_CONFORMANCE_LEAK-none}"' printed 'leaked\n' instead of 'none\n'|
forgetful|sandbox: files stay|'cat state.txt' ended as 10 with 1 instead of exit 0; *|
shared|sandbox: nothing shared|* printed 'theirs\n' instead of ''|
few|sandbox: many at once|create failed with LIMIT: three sandboxes are enough|
open|network: off|/proc/net/route of the sandbox shows a route|network: switched
unrouted|network: off|a command connected to this machine at *|network: switched
resolver|network: off|a command resolved the name example.com|network: switched
hopeful|network: off|probe reached this machine at *|network: switched
closed|network: on|no command connects to this machine, and the sandbox has no route|network: switched
hopeless|network: on|probe says that * is blocked, to which a command connected|network: switched
stuck|network: switched|/proc/net/route of the sandbox shows a route|
once|terminate: twice|terminate failed with NOT_FOUND: it is gone|terminate: use after;attach: by its name;lost: after terminate;lost: terminated under a command;lost: terminated under streams
obedient|terminate: cancelled caller|terminate of a cancelled caller failed with CANCELLED|
undead|terminate: use after|a terminated sandbox ran a command|attach: by its name;lost: after terminate
survivors|terminate: processes|2 processes live on after terminate|process: sandboxes leave no descriptor;process: sandboxes leave no child;create: same key;process: memory is given back
signed|execute: exit codes|'exit 255' ended as 10 with -1 instead of exit 255; stderr: |
merged|execute: streams|stdout has 11 bytes, stderr ''|execute: cannot start;execute: noisy child;execute: caps;execute: floods
uncounted|execute: streams|counted 7 and 0 bytes|execute: caps
shell|execute: signals|SIGTERM: status OK, ended 10, signal 15, exit code 143|signal: group
startless|execute: cannot start|a missing program: status NOT_FOUND, *|
nowhere|execute: cannot start|a missing working directory: status OK, exit code 0, stderr ''|
deaf|execute: stdin|300,000 bytes of stdin: 0 came back|
keyboard|execute: no stdin|'cat; echo end' printed 'typed\nend\n' instead of 'end\n'|
tidy|execute: background children|* ended as 10 with 1 instead of exit 0; *|
choked|execute: noisy child|a noisy child: status OK, stderr ''|
generous|execute: caps|delivered 1001 and 10 bytes, counted 3000000 and 10|limit: flood
short|execute: floods|30 MB of output: * bytes came, status OK|
characters|execute: split characters|* printed '?*' instead of '€'|
unquoted|execute: words|the words arrived as ''|files: seen
small|execute: large command|a command of 3 MB: status LIMIT, *|
rooted|execute: place|cwd and environment of one command: '/workspace\na b\n'|
strict|execute: fresh state|'umask' printed '0077\n' instead of '0022\n'|
open-handed|execute: fresh state|status OK, descriptors beyond the first four: '9\n'|
twice|execute: started|started was called 2 times|
late|execute: started|the host was told something after the return|
lenient|execute: bad requests|an unknown flag: OK instead of INVALID|
serial|execute: in parallel|a command did not meet the others: status OK, exit code 1, stderr ''|
premature|limit: time|it was killed after * ms|limit: whole tree
untimely|limit: time|status OK, ended 30, exit code 1|limit: whole tree
orphan|limit: whole tree|* printed '*' instead of ''|
clogged|limit: flood|status OK, ended 20, 1000 bytes|
confused|limit: not confused|exit 137 ended as 30 with 137|
uncancelled|cancel: running command|execute returned TIMEOUT instead of CANCELLED|early: cancelled at a piece;early: over before it begins
timeless|cancel: deadline|execute returned CANCELLED instead of TIMEOUT|early: deadline at a piece;early: over before it begins
unstoppable|cancel: observer says stop|execute returned OK instead of CANCELLED|early: stream says stop
eager|cancel: before create|create of a cancelled caller returned INTERNAL|
first-part|files: sizes|'sized' came back with 1048576 bytes, not the 52428800 written|
text-names|files: names|* returned INVALID|files: seen
trimming|files: seen|write_file of 'trailing ' returned OK, and a command reads '' there|
modeless|files: modes|'./tool' ended as 10 with 126 instead of exit 0; *|
pretender|files: bounds|write_file to '*' was accepted|
boundless|files: bounds|* printed 'x* instead of 'old'|
vague|files: missing|read_file of a missing file returned INVALID instead of NOT_FOUND|
half|files: whole or old|'cat kept; ls' printed 'xkept\n' instead of 'oldkept\n'|early: stream says stop
careless|upload: files|* stderr: cat: plain: No such file or directory*|
credulous|upload: hostile|upload of '/tmp/absolute' returned OK instead of INVALID|
escaping|upload: hostile|'test ! -e /tmp/through *|
backwards|download: files|member 0 is 'a'|
plain-folders|changes: listing|changes listed '* 1 hashed' instead of '*/x 1 hashed?repo/ 0'|
silent|changes: unread folder|of a folder that a command closed, changes listed ''|
stale|changes: after upload|changes listed '' instead of 'b 3 hashed'|
greedy|sweep: keeps|a dry run listed 2 sandboxes, not just the one that is not kept|
hoarding|process: sandboxes leave no descriptor|* more descriptors are open after 4 more sandboxes|
spending|process: commands leave no descriptor|* more descriptors are open after 4 more commands|process: sandboxes leave no descriptor;process: operations leave no descriptor
unreaped|process: sandboxes leave no child|* more processes are children of this one after 4 more sandboxes|
inheritable|process: closed on exec|1 descriptors are not closed when another program is begun|
handing|process: nothing inherited|*/fd/200 *|
umask-in-create|process: left as it was|create: the umask became 0000|
umask-in-entry|process: left as it was|the entry: the umask became 0000|
umask-in-execute|process: left as it was|execute: the umask became 0000|
umask-in-upload|process: left as it was|upload: the umask became 0000|
chdir-in-terminate|process: left as it was|terminate: the working directory became /|
chdir-in-snapshot|process: left as it was|snapshot: the working directory became /|
locale-in-terminate|process: left as it was|terminate: the locale became C.UTF-8|
own-locale-in-create|process: left as it was|create: the calling thread's locale was changed|
setenv-in-open|process: left as it was|open: the environment was changed|
unsetenv-in-close|process: left as it was|close: the environment was changed|
setenv-in-release|process: left as it was|release: the environment was changed|
handler-in-loading|process: left as it was|being loaded: there is another handler for Hangup|
handler-in-attach|process: left as it was|attach: there is another handler for Hangup|
ignored-in-create|process: left as it was|create: there is another handler for Broken pipe|
mask-in-sweep|process: left as it was|sweep: the calling thread's signal mask was changed for Hangup|
closes-in-open|process: left as it was|open: standard output or error was closed or replaced|
atexit-in-loading|process: no handlers|being loaded installed an exit handler|
atexit-in-open|process: no handlers|open installed an exit handler|
on-exit-in-create|process: no handlers|create installed an exit handler|
atfork-in-open|process: no handlers|open installed a fork handler|
thread-in-loading|process: threads|being loaded: a thread was begun; *|
thread-in-open|process: threads|open left a thread that nobody waits for; *|process: memory is given back
thread-in-download|process: threads|download left a thread that nobody waits for; *|process: memory is given back
unjoined-in-create|process: threads|close has returned, and threads that create began go on: 1|
unjoined-in-start|process: threads|stop has returned, and threads that start began go on: 1|
prints-in-entry|process: prints nothing|the entry printed 'here I am\n'|
errs-in-create|process: prints nothing|create printed 'something is odd\n'|
process-in-entry|process: starts nothing early|the entry: a process was started and is there still|
process-in-open|process: starts nothing early|open: a process was started and is there still|
reaps-in-execute|process: only its own children|execute waited for a child that it had not begun|
fd-in-close|process: operations leave no descriptor|4 more descriptors are open after 4 more of open and close|
fd-in-attach|process: operations leave no descriptor|4 more descriptors are open after 4 more of attach|
fd-in-snapshot|process: operations leave no descriptor|4 more descriptors are open after 4 more of snapshot|
fd-in-upload|process: operations leave no descriptor|4 more descriptors are open after 4 more of upload|
fd-in-download|process: operations leave no descriptor|4 more descriptors are open after 4 more of download|
fd-in-sweep|process: operations leave no descriptor|4 more descriptors are open after 4 more of sweep|
bytes-in-close|process: memory is given back|each open and close keeps * bytes more|
pages-in-open|process: memory is given back|each open and close keeps 1048576 bytes more|
kilobytes-in-release|process: memory is given back|each create, terminate and release keeps 2* bytes more|
kilobytes-in-execute|process: memory is given back|each execute keeps 2* bytes more|
blank|snapshot: files|* stderr: cat: a/link: No such file or directory*|
stranger|attach: by its name|'cat file; echo theirs >> file' printed '' instead of 'mine\n'|
lingering|attach: by its name|execute of a sandbox that is gone returned CANCELLED instead of LOST: *|
learned|attach: by its name|attach to a sandbox that is gone returned LOST instead of NOT_FOUND|
renaming|attach: by its name|attach to 'sandbox_*' reported another SANDHOST_REPORT_REF, 'another'|
one-more|changes: bounds|with max_entries 5 *: OK, 6 entries, 6 of them hashed, instead of LIMIT, 5 and 5|
ample|changes: bounds|with * max_hash_bytes 2999999: OK, 6 entries, 6 of them hashed, instead of OK, 6 and 5|
overlooking|create: not kept|create with an image, which is not declared, returned OK instead of UNSUPPORTED: *|
doubling|create: same key|there are two sandboxes of one key|
jealous|create: same key|create failed with EXISTS: it was there once|
inventive|create: unknown snapshot|create from a snapshot that is none returned OK instead of NOT_FOUND: *|
keeping|create: unknown snapshot|a create that failed left sandbox_*|early: create cancelled;early: create out of time
resolute|early: cancelled at a piece|write_file with a cancel at piece 1 returned OK instead of CANCELLED: *|
littering|early: cancelled at a piece|'cat to/kept; ls -A to' printed 'oldkept\npart\n' instead of 'oldkept\n'|
brittle|early: cancelled at any time|snapshot, cancelled on the way, returned INTERNAL: *|
fragile|early: cancelled at any time|after set_network_policy the next command returned LOST: *|
messy|early: create cancelled|a create that failed left sandbox_*|early: create out of time
sulky|early: create cancelled|create, cancelled on the way, returned INTERNAL: cancelled|
impatient|early: create out of time|create without any time left returned CANCELLED: *|
hurried|early: deadline at a piece|read_file with the deadline at piece * returned CANCELLED instead of TIMEOUT: *|
indifferent|early: over before it begins|read_file of a call that was cancelled returned OK instead of CANCELLED|
unpunctual|early: over before it begins|read_file of a call that had no time left returned CANCELLED instead of TIMEOUT|
belated|early: over before it begins|'cat to/kept; ls -A to' printed 'latekept\n' instead of 'oldkept\n'|
mute|early: over before it begins|read_file returned CANCELLED and told no error|
hasty|early: over before it begins|execute of a call that was cancelled gave something|
echoing|early: stream says stop|read_file with the stream's stop at piece 1 returned LIMIT instead of CANCELLED: *|
clinging|early: stream says stop|read_file used its stream after the return|
showing|enforces: files|a command read /var/tmp/.sandhost-conformance-*/word, a file of this machine|
promising|enforces: secrets|SANDHOST_SETTING_SECRETS is declared|
kilobytes|execute: largest process|a command that used 50000000 bytes has a max_rss of *|
boastful|enforces: now|setting 140 is raised from 30 to 40|
secretive|enforces: now|setting 140 is lowered from 30 to 20, and no reason is told|
overrunning|enforces: now|a level was written behind the last one|
undecided|enforces: now|enforces_now returned UNAVAILABLE: nobody knows|
mistaken|limit: memory|a command that uses up the memory: OK, ended 20, exit code 137|
suspicious|limit: memory|'exit 137' ended as 40 with 137 instead of exit 137; *|
absent|lost: after terminate|read_file of a sandbox that is gone returned NOT_FOUND instead of LOST: *|attach: by its name;lost: terminated under a command;sweep: keeps
wordless|lost: after terminate|read_file of a sandbox that is gone told no error|attach: by its name;lost: terminated under a command;sweep: keeps
ghostly|lost: after terminate|download of a sandbox that is gone gave 1 bytes|attach: by its name;lost: terminated under a command;sweep: keeps
unheard|lost: after terminate|signal of a sandbox that is gone returned NOT_FOUND instead of LOST|attach: by its name;lost: terminated under a command;sweep: keeps
returning|lost: killed from inside|execute of a sandbox that is gone returned CANCELLED instead of LOST: *|
unsettled|lost: killed from inside|a command that killed what stands above it: execute returned INTERNAL: *|
restarting|lost: killed from inside|'cat to/kept' ended as 10 with 1 instead of exit 0; *|
mistaking|lost: terminated under a command|the command's execute returned CANCELLED instead of LOST: *|
disowning|lost: terminated under a command|execute said by may_have_happened 0 that a command that ran was never begun|
unavailable|lost: terminated under streams|read_file returned UNAVAILABLE instead of LOST when its sandbox was terminated: *|
reasonless|lost: terminated under streams|read_file returned LOST without a SANDHOST_REPORT_LOST|
solitary|signal: group|'sort got' printed 'own\n' instead of 'child\nown\n'|
coarse|signal: group|after SIGTERM: OK, ended 20, signal 9, exit code 137|
obliging|signal: group|signal of a finished command returned OK instead of NOT_FOUND|
sevenfold|changes: hashes|'abc' was listed with a sha256 that is not its content's|
shallow|changes: deep folders|changes did not list 'd/d/*/file'|
seconds|changes: entries|the mtime of 'plain' is told as *, more than a day from *|
typed|changes: entries|the mode of 'plain' is told as 0100644 instead of 0644|
uniform|changes: entries|the mode of 'tool' is told as 0644 instead of 0755|
undersized|changes: entries|the entry of 'plain' says that it is 24 bytes|
terse|download: long names|member 2 is '* instead of 'bbb*|
muttering|download: long names|the content of 'aaa*' is not the file's|
flattening|upload: modes|* printed '-rw-r--r--*|
content|upload: cut short|upload of a stream that ends inside a file returned OK instead of INVALID|
overwriting|snapshot: its own id|two snapshots have one id, 'snapshot-1'|snapshot: deleted
dotless|snapshot: everything|* printed 'no .hidden/folder\nfixed\n*|
fruitful|snapshot: everything|* printed 'no empty\nno .hidden/folder\nno nested/empty\n*|
immortal|snapshot: deleted|create from a snapshot that was deleted returned OK instead of NOT_FOUND|
thorough|snapshot: deleted|create failed with NOT_FOUND: no such snapshot|
grasping|create: after a failure|with the key of a create that *: create failed with EXISTS: it was there once|
unlocking|files: exact modes|* printed '-rw-r--r--\n*|
fingering|files: read only|* printed 'old\nold\n' instead of 'old\n'|
indiscriminate|sweep: of a run|the sweep of a run listed a sandbox of another one|
anonymous|sweep: of a run|the sweep of run '*' listed its sandbox as one of run ''|
infanticide|sweep: young ones|a sweep of what is older than a day listed a sandbox that was just made|
hourglass|sweep: young ones|the age of a sandbox that was made seconds ago is told as * nanoseconds|
boasting|sweep: removed|* of a sandbox that is gone returned * instead of LOST*|sweep: keeps
bodiless|sweep: removed|a process lives on in a sandbox that was swept|
remote|execute: its thread|the observer's output was called from another thread than that of the execute|
nagging|early: stream says stop|execute used its stream again after that had said stop|
insistent|early: stream says stop|read_file used its stream again after that had said stop|
accumulating|execute: variables|the variables of two commands, with another between: *|
brazen|execute: signals as usual|* printed 'PIPE\n' instead of ''|
milliseconds|execute: numbers|a command that slept half a second has a duration of * ns|
hourly|execute: numbers|a command whose execute took * ns has a duration of *|
thousandfold|execute: numbers|one process that ran for * ns has used * ns itself and *|
swapping|execute: numbers|of a command that only counted, * ns are the system's and * ns its own|
reserving|execute: numbers|reserved is 7|
morbid|execute: numbers|a command that exited has signal 9|
broadcasting|signal: one command|the command beside it: status OK, ended 20, *|
unwavering|attach: over before it begins|attach of a call that was cancelled returned OK instead of CANCELLED|
parting|attach: released|'echo alive' failed with LOST: *|
linkless|files: inner links|read_file of 'way/file' returned NOT_FOUND and 'inner\n'|
queueing|files: beside a command|a command that waited for what write_file writes did not see it: *|execute: in parallel
limiting|process: limits and groups|the resource limit 7 was changed|
adopting|process: limits and groups|the process became a child subreaper|
chatty|progress: one line|progress was told 'a line\nand another'|
VICES

judge() { # VICE [CHECK...]; without any: all
  local name=$1 words=()
  shift
  for check; do words+=(--only "$check"); done
  VICE=$name "$sandhost" provider test "$vice" "${words[@]}" </dev/null >"$work/$name.out" 2>&1 || echo $? >"$work/$name.code"
}
export -f judge
export sandhost vice work
judge none & # it waits for most of its time, as each does that meets everything
without=$!
at_once=8
[ -z "${SUITE_FAILS_WHOLE:-}" ] || at_once=10
while IFS='|' read -r name check _ others; do
  if [ -n "${SUITE_FAILS_WHOLE:-}" ]; then
    : >"$work/$name.checks"
  else
    printf '%s;' "$check" ${others:+"$others"} | tr ';' '\0' >"$work/$name.checks"
  fi
  printf '%s\0' "$name"
done <"$work/vices" | xargs -0 -n 1 -P "$at_once" bash -c 'mapfile -d "" checks <"$work/$1.checks"; judge "$1" "${checks[@]}"' judge
wait "$without"

cut -d '|' -f 2 "$work/vices" >"$work/covered"
summary=', 0 failed, 0 skipped$'
if grep -qxF 'skipped limit: memory: no limit of memory is enforced here' "$work/none.out"; then
  echo 'skipped: limit: memory: no limit of memory is enforced here'
  sed -i '/^[^|]*|limit: memory|/d' "$work/vices"
  summary=', 0 failed, 1 skipped$'
fi
grep -q "^[0-9]* passed$summary" "$work/none.out" || complain "without a vice: $(grep -v ^passed "$work/none.out")"

found_by() { # VICE CHECK: what the check says that it found
  grep -F -x -A 1 "FAILED  $2" "$work/$1.out" | sed -n 's/^        found: //p'
}

while IFS='|' read -r name check pattern others; do
  [ "$(cat "$work/$name.code" 2>/dev/null)" = 1 ] || complain "$name: ended with $(cat "$work/$name.code" 2>/dev/null || echo 0)"
  { echo "$check" && tr ';' '\n' <<<"$others"; } | sed '/^$/d' | sort >"$work/wanted"
  sed -n 's/^FAILED  //p' "$work/$name.out" | sort >"$work/failed"
  diff "$work/wanted" "$work/failed" || complain "$name: other checks fail than should"
  pattern=${pattern//\\/\\\\} # what is found has its control characters escaped
  # shellcheck disable=SC2053 # it is a pattern
  [[ $(found_by "$name" "$check") == $pattern ]] ||
    complain "$name: found '$(found_by "$name" "$check")', not '$pattern'"
done <"$work/vices"

# No check is without a vice, and each of the source is among what was judged.
sed -n 's/^    {"\([a-z ]*: [^"]*\)",.*/\1/p' "$SANDHOST_SOURCE"/sdk/conformance/check-*.c | sort >"$work/checks"
sort -u "$work/covered" | diff "$work/checks" - || complain "checks that no vice makes fail, or that are no more"
sed -n 's/^passed  //p; s/^skipped \(limit: memory\):.*/\1/p' "$work/none.out" | sort | diff "$work/checks" - ||
  complain "checks that the suite does not have, or the source does not show"

# The whole of what is said.
cat >"$work/wanted" <<'TEXT'
FAILED  execute: exit codes
        found: 'exit 255' ended as 10 with -1 instead of exit 255; stderr: 
        asked: a command that exits with n is a successful execute that carries n
TEXT
grep -A 2 '^FAILED' "$work/signed.out" | diff "$work/wanted" - || complain "the report of a failed check"
for name in $(cut -d '|' -f 1 "$work/vices"); do
  [ "$(grep -c '^FAILED' "$work/$name.out")" -eq "$(grep -c '^        asked: [a-z0-9A-Z]' "$work/$name.out")" ] ||
    complain "$name: a failed check does not say what was asked"
done

# What no clause forbids is said beside the pass.
VICE=privileged "$sandhost" provider test "$vice" --only 'enforces: files' </dev/null >"$work/noted" 2>&1 ||
  complain "privileged: ended with $?"
grep -A 1 '^passed  enforces: files$' "$work/noted" | grep -q '^note    enforces: files: commands run as root with CAP_SYS_ADMIN ' ||
  complain "privileged: $(cat "$work/noted")"
! grep '^note' "$work/none.out" || complain "without a vice: something is noted"
exit $wrong
