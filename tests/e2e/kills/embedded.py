# SPDX-License-Identifier: Apache-2.0
"""embedded.py LIBRARY CONFIG JOBS: a host of several runs at once, through libsandhost. JOBS: [[workspace, command], ...]"""
import ctypes
import json
import sys
import threading


def embedded(library, config, jobs):
    lib = ctypes.CDLL(library)
    text = ctypes.POINTER(ctypes.c_char)

    class Settings(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_char_p) for name in ("workspace", "provider", "record")]

    codes = []

    def one(workspace, line):
        host, run, result, error = ctypes.c_void_p(), ctypes.c_void_p(), text(), text()
        settings = Settings(ctypes.sizeof(Settings), workspace.encode(), None, None)
        code = lib.sandhost_open(config.encode(), ctypes.byref(settings), ctypes.byref(host), ctypes.byref(error))
        code = code or lib.sandhost_run_start(host, None, ctypes.byref(run), ctypes.byref(error))
        code = code or lib.sandhost_execute(run, line.encode(), 0, ctypes.byref(result), ctypes.byref(error))
        code = code or lib.sandhost_run_end(run, None, None, ctypes.byref(error))
        lib.sandhost_close(host)
        if code:
            print(ctypes.cast(error, ctypes.c_char_p).value, file=sys.stderr)
        codes.append(code)

    threads = [threading.Thread(target=one, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1 if any(codes) or len(codes) != len(jobs) else 0)


embedded(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
