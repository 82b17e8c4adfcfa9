#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What was skipped is found in ctest's report, script or case, and told from what may be skipped; what is allowed in one
# part, or for one reason, is not in another. What failed is told once more, with the last lines that it printed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/report.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="4" failures="0" skipped="2">
	<testcase name="unit/one" status="run"><system-out>ok 1 /one/a
ok 2 /one/b # SKIP only root can
# a word
ok 3 /one/c # SKIP something else
</system-out></testcase>
	<testcase name="e2e/two" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out>some words
skipped: no machine &lt;here&gt;
</system-out></testcase>
	<testcase name="e2e/three" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out/></testcase>
	<testcase name="e2e/five" status="fail"><failure message="Failed"/><system-out>why
it failed</system-out></testcase>
	<testcase name="e2e/four" status="run"><system-out>skipped: a part of it
</system-out></testcase>
</testsuite>
XML
cat >"$work/allowed" <<'END'
# a remark
*        unit/one/one/b  only root can
address  e2e/two         no machine *
END

want() { # PART EXPECTED
  local got
  got=$("$SANDHOST_SOURCE/scripts/list-skips" "$1" "$work/report.xml" "$work/allowed")
  diff <(printf '%s' "$2") <(printf '%s\n' "$got") || { echo "part $1 differs"; exit 1; }
}

want address 'allowed address unit/one/one/b: only root can
UNEXPECTED address unit/one/one/c: something else
allowed address e2e/two: no machine <here>
UNEXPECTED address e2e/three: no reason given
UNEXPECTED address e2e/four: a part of it
'
want release 'allowed release unit/one/one/b: only root can
UNEXPECTED release unit/one/one/c: something else
UNEXPECTED release e2e/two: no machine <here>
UNEXPECTED release e2e/three: no reason given
UNEXPECTED release e2e/four: a part of it
'

# A line that is none is no silent allowance, and neither is a list that is not there.
echo 'everything' >"$work/allowed"
! "$SANDHOST_SOURCE/scripts/list-skips" address "$work/report.xml" "$work/allowed" 2>"$work/err" || exit 1
grep -q 'three fields' "$work/err"
! "$SANDHOST_SOURCE/scripts/list-skips" address "$work/report.xml" "$work/missing" 2>/dev/null || exit 1

# The list itself can be read.
"$SANDHOST_SOURCE/scripts/list-skips" address "$work/report.xml" >/dev/null

diff - <("$SANDHOST_SOURCE/scripts/list-failures" address "$work/report.xml") <<'END' || exit 1
FAILED address e2e/five: Failed
    why
    it failed
END
