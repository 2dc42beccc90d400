#!/usr/bin/python3
"""Exports against `uftrace dump --chrome`: events a second, bytes, memory, each ratio with its control.

    export.py BENCH_EXPORT FUNCTIONS [RANGES] [DIRECTORY] [KIND]
        RANGES: 10 000 000; DIRECTORY: where files go, on a disk with room for them; KIND: ranges, kineto (all of Kineto's fields) or both
"""
import os
import shutil
import subprocess
import sys
import tempfile

bench, functions = sys.argv[1:3]
ranges = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000_000
with tempfile.TemporaryDirectory(dir=sys.argv[4] if len(sys.argv) > 4 else None) as directory:
    words = [bench, str(ranges), directory, sys.argv[5] if len(sys.argv) > 5 else "both"]
    if shutil.which("uftrace") is None:
        print("uftrace is not here (Debian package uftrace): no ratios to it", flush=True)
    else:
        data = os.path.join(directory, "uftrace")
        # A range is two of its events, so half as many of its ranges are as many events.
        subprocess.run(["uftrace", "record", "--no-libcall", "--no-event", "--no-pager", "-b", "64M", "-d", data, functions, str(ranges // 8)], check=True)
        words.append(data)
    sys.exit(subprocess.run(words, check=False).returncode)
