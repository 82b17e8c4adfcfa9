# SPDX-License-Identifier: Apache-2.0
"""ANSWER COMMAND...: a person at a terminal of their own who answers the question of a command; prints all it said."""
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
said = b''
while b'[y/N]' not in said:
    said += os.read(terminal, 4096)
os.write(terminal, sys.argv[1].encode() + b'\n')
try:
    while chunk := os.read(terminal, 4096):
        said += chunk
except OSError:
    pass
sys.stdout.buffer.write(said.replace(b'\r', b''))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
