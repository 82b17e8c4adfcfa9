# SPDX-License-Identifier: Apache-2.0
"""judge.py EXPECTED ATTEMPTS: reads what attempts.py printed and says which outcomes are not the right ones."""
import fnmatch
import re
import sys

expected = []
with open(sys.argv[1]) as file:
    for line in file:
        if line.strip() and not line.startswith("#"):
            name, what, outcomes = line.rstrip("\n").split(": ", 2)
            expected.append((name, what, outcomes))
with open(sys.argv[2]) as file:
    names = re.findall(r"^@attempt\ndef (\w+)", file.read(), re.M)

count, wrong, met = 0, [], set()
for line in sys.stdin.read().splitlines():
    name, _, rest = line.partition(": ")
    what, _, result = rest.rpartition(": ")
    count += 1
    for entry in expected:
        if entry[0] == name and fnmatch.fnmatchcase(what, entry[1]):
            met.add(entry)
            if not re.fullmatch(entry[2], result):
                wrong.append(f"{line} (instead of {entry[2]})")
            break
    else:
        wrong.append(f"{line} (not foreseen)")
wrong += [f"{': '.join(entry[:2])}: was not tried" for entry in expected if entry not in met]
wrong += [f"{name}: has no expectation" for name in names if name not in {entry[0] for entry in expected}]
print(f"{count} attempts, {len(wrong)} with a wrong outcome")
for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
