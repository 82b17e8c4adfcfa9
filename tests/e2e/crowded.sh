# SPDX-License-Identifier: Apache-2.0
# A workspace with far more files than a copy takes: the command's result stands, and what was left out is told in few
# words.
. "$(dirname "$0")/lib.bash"

mkdir -p workspace/files
python3 - <<'PY'
for i in range(20000):
    open(f"workspace/files/{'n' * 180}{i:06}", "w").write(str(i))
PY
run "$sandhost" exec --json -- 'ls | wc -l; echo made > aaa'
want_exit 0
want_json '500
' data stdout
want_json '["aaa"]' workspace_sync written
[ "$(json workspace_sync skipped | tr ',' '\n' | grep -c '"path"')" -eq 200 ] || fail "how many are told"
want_in_out '19301 more were left out'
want_file workspace/files/aaa made
run "$sandhost" show --json
want_json completed status
