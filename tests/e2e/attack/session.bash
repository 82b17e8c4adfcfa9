# SPDX-License-Identifier: Apache-2.0
# session.bash: commands in one sandbox, and their answers. Sourced by attack.sh and docker-attack.sh, which set attacks
# (this folder), python (who drives it), as (words before each program) and, where there are such words, user (who it is).

# Runs commands one after the other in one sandbox; their answers are $answers, to be asked with: answer N KEY
# One that begins with "limit N: " is to meet its limit, of N seconds; the others have more time than any machine takes.
session() { # COMMAND...
  code=0
  answers=$("$python" -c 'import json, sys; [print(json.dumps(word)) for word in sys.argv[1:]]' "$@" |
    limit 900 "${as[@]}" "$python" "$attacks/drive.py" "$sandhost" -w files --config agent.json --yes 2>"$work/.err") || code=$?
  err=$(cat "$work/.err")
  out=$answers
  [ "$(wc -l <<<"$answers")" -eq $# ] || fail "$# commands, but not as many answers"
}
answer_of() { # NUMBER KEY
  sed -n "$(($1 + 1))p" <<<"$answers" | python3 -c 'import json, sys; value = json.load(sys.stdin)[sys.argv[1]]
print(value if isinstance(value, str) else json.dumps(value), end="")' "$2"
}
answer() { # NUMBER KEY VALUE
  local got
  got=$(answer_of "$1" "$2")
  [[ $got == $3 ]] || fail "answer $1: $2 is '$got' instead of '$3'"
}
