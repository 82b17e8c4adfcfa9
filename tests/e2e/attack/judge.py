# SPDX-License-Identifier: Apache-2.0
"""judge.py [--only NAME,...] EXPECTED ATTEMPTS [EXCEPTIONS...]: reads what attempts.py printed and says which outcomes
are not the right ones. What is in EXCEPTIONS goes before what is in EXPECTED; --only: no other attempts were asked for."""
import fnmatch
import re
import sys

words = sys.argv[1:]
only = None
if words[0] == "--only":
    only = set(words[1].split(","))
    words = words[2:]
expected = []
for path in [*words[2:], words[0]]:
    with open(path) as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, what, outcomes = line.rstrip("\n").split(": ", 2)
                if only is None or name in only:
                    expected.append((name, what, outcomes))
with open(words[1]) as file:
    names = re.findall(r"^@attempt\ndef (\w+)", file.read(), re.M)

count, wrong, met = 0, [], set()
for line in sys.stdin.read().splitlines():
    name, _, rest = line.partition(": ")
    what, _, result = rest.rpartition(": ")
    count += 1
    fitting = [entry for entry in expected if entry[0] == name and fnmatch.fnmatchcase(what, entry[1])]
    met.update(fitting)
    if not fitting:
        wrong.append(f"{line} (not foreseen)")
    elif not re.fullmatch(fitting[0][2], result):
        wrong.append(f"{line} (instead of {fitting[0][2]})")
wrong += [f"{': '.join(entry[:2])}: was not tried" for entry in expected if entry not in met]
wrong += [f"{name}: has no expectation" for name in names
          if name not in {entry[0] for entry in expected} and (only is None or name in only)]
print(f"{count} attempts, {len(wrong)} with a wrong outcome")
for line in wrong:
    print(line)
sys.exit(1 if wrong else 0)
