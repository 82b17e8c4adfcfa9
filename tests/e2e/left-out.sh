#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# left-out.sh: what a command made and what cannot come back is told, whatever hides it.
. "$(dirname "$0")/lib.bash"
mkdir wd

run "$sandhost" exec --json -w wd -- sh -c 'mkdir -p out in; echo r >out/r.txt; echo r >in/r.txt; chmod 0 out'
want_exit 0
want_json '["in/r.txt"]' data workspace_files written
want_json '[{"path": "out", "reason": "could not be read in the sandbox"}]' data workspace_files skipped

for mode in 300 400; do
  run "$sandhost" exec -w wd -- sh -c "mkdir -p out$mode; echo r >out$mode/r.txt; chmod $mode out$mode"
  want_exit 0
  want_in_err "could not be read in the sandbox"
  want_in_err "out$mode"
done

# A path that is longer than a path can be.
run "$sandhost" exec --json -w wd -- bash -c 'n=$(printf %0200d 0)
  for ((i = 0; i < 30; i++)); do mkdir $n && cd -P $n || exit 1; done; echo r >r.txt'
want_exit 0
want_json 'could not be read in the sandbox' data workspace_files skipped 0 reason
want_in_out '/000'

# Why nothing could be listed stands in the line and in the record.
run "$sandhost" exec -w wd -- 'echo r >lost; chmod 000 .'
want_exit 0
want_in_err 'sandhost: .: could not list the sandbox files: /workspace: Permission denied'
run "$sandhost" show --json
want_in_out 'could not list the sandbox files: /workspace: Permission denied'
