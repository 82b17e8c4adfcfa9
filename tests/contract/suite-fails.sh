# SPDX-License-Identifier: Apache-2.0
# Every check of the conformance suite fails for a provider that breaks its clause, says what it found, and nothing else
# fails but what follows. The provider is tests/contract/vices, around bubblewrap; without a vice it passes everything.
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

# Checks without a vice of their own as yet; they take long, and are not run here.
cat >"$work/no-vice" <<'CHECKS'
attach: by its name
changes: bounds
create: not kept
create: same key
create: unknown snapshot
early: cancelled at a piece
early: cancelled at any time
early: create cancelled
early: create out of time
early: deadline at a piece
early: over before it begins
early: stream says stop
enforces: now
limit: memory
lost: after terminate
lost: killed from inside
lost: terminated under a command
lost: terminated under streams
signal: group
CHECKS

# vice|the check that is there for it|what it finds, as a pattern|what else fails by it
cat >"$work/vices" <<'VICES'
unnamed|create: its own name|create reported no SANDHOST_REPORT_REF|sweep: keeps
elsewhere|create: working directory|'pwd' printed '/tmp\n' instead of '/workspace\n'|execute: cannot start;execute: place;files: modes;files: bounds;files: whole or old;upload: files;upload: hostile;download: files;changes: listing;changes: after upload;snapshot: files
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
once|terminate: twice|terminate failed with NOT_FOUND: it is gone|terminate: use after
obedient|terminate: cancelled caller|terminate of a cancelled caller failed with CANCELLED|
undead|terminate: use after|a terminated sandbox ran a command|
survivors|terminate: processes|2 processes live on after terminate|process: sandboxes leave no descriptor
signed|execute: exit codes|'exit 255' ended as 10 with -1 instead of exit 255; stderr: |
merged|execute: streams|stdout has 11 bytes, stderr ''|execute: cannot start;execute: noisy child;execute: caps;execute: floods
uncounted|execute: streams|counted 7 and 0 bytes|execute: caps
shell|execute: signals|SIGTERM: status OK, ended 10, signal 15, exit code 143|
startless|execute: cannot start|a missing program: status NOT_FOUND, *|
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
lenient|execute: bad requests|no words: OK instead of INVALID|
serial|execute: in parallel|a command did not meet the others: status OK, exit code 1, stderr ''|
premature|limit: time|it was killed after * ms|limit: whole tree
untimely|limit: time|status OK, ended 30, exit code 1|limit: whole tree
orphan|limit: whole tree|* printed '*' instead of ''|
clogged|limit: flood|status OK, ended 20, 1000 bytes|
confused|limit: not confused|exit 137 ended as 30 with 137|
uncancelled|cancel: running command|execute returned TIMEOUT instead of CANCELLED|
timeless|cancel: deadline|execute returned CANCELLED instead of TIMEOUT|
unstoppable|cancel: observer says stop|execute returned OK instead of CANCELLED|
eager|cancel: before create|create of a cancelled caller returned INTERNAL|
first-part|files: sizes|'sized' came back with 1048576 bytes, not the 52428800 written|
text-names|files: names|* returned INVALID|files: seen
trimming|files: seen|write_file of 'trailing ' returned OK, and a command reads '' there|
modeless|files: modes|'./tool' ended as 10 with 126 instead of exit 0; *|
pretender|files: bounds|write_file to '*' was accepted|
boundless|files: bounds|* printed 'x* instead of 'old'|
vague|files: missing|read_file of a missing file returned INVALID instead of NOT_FOUND|
half|files: whole or old|'cat kept; ls' printed 'xkept\n' instead of 'oldkept\n'|
careless|upload: files|* stderr: cat: plain: No such file or directory*|
credulous|upload: hostile|upload of '/tmp/absolute' returned OK instead of INVALID|
escaping|upload: hostile|'test ! -e /tmp/through *|
backwards|download: files|member 0 is 'a'|
plain-folders|changes: listing|changes listed '* 1 hashed' instead of '*/x 1 hashed?repo/ 0'|
stale|changes: after upload|changes listed '' instead of 'b 3 hashed'|
greedy|sweep: keeps|a dry run listed 2 sandboxes, not just the one that is not kept|
hoarding|process: sandboxes leave no descriptor|* more descriptors are open after 4 more sandboxes|
spending|process: commands leave no descriptor|* more descriptors are open after 4 more commands|process: sandboxes leave no descriptor
inheritable|process: closed on exec|1 descriptors are not closed when another program is begun|
handing|process: nothing inherited|*/fd/200 *|
changing|process: left as it was|the umask became 0*|
blank|snapshot: files|* stderr: cat: a/link: No such file or directory*|
VICES

# Each meets every check that has a vice; under a sanitizer its own, and what follows from it is not asked.
judge() { # VICE CHECK
  local words=()
  if [ -n "${SANDHOST_SANITIZED:-}" ] && [ "$1" != none ]; then
    words=(--only "$2")
  else
    while read -r check; do words+=(--only "$check"); done <"$work/covered"
  fi
  VICE=$1 "$sandhost" provider test "$vice" "${words[@]}" </dev/null >"$work/$1.out" 2>&1 || echo $? >"$work/$1.code"
}
cut -d '|' -f 2 "$work/vices" | sort -u >"$work/covered"
export -f judge
export sandhost vice work
if [ -n "${SANDHOST_SANITIZED:-}" ]; then
  sed -i 's/[^|]*$//' "$work/vices"
fi
{
  echo "none|"
  cat "$work/vices"
} | cut -d '|' -f 1,2 | tr '|\n' '\0\0' | xargs -0 -n 2 -P 6 bash -c 'judge "$1" "$2"' judge

grep -q '^[0-9]* passed, 0 failed, 0 skipped$' "$work/none.out" || complain "without a vice: $(grep -v ^passed "$work/none.out")"

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

# No other check is without a vice: what the source names is what was passed, or is in the list.
sed -n 's/^    {"\([a-z ]*: [^"]*\)",.*/\1/p' "$SANDHOST_SOURCE"/sdk/conformance/check-*.c | sort >"$work/checks"
sed -n 's/^passed  //p' "$work/none.out" | sort - "$work/no-vice" | diff "$work/checks" - ||
  complain "checks that no vice makes fail, or that are no more"

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
exit $wrong
