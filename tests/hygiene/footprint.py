#!/usr/bin/python3
"""What a process without torch, MPI, gRPC or CUDA has of us while it lives: no thread, one page of memory in one file, and nothing after its end.

    footprint.py CASE
"""
import os
import subprocess

from cases import bare, check, kPython, left_in, need, preloaded, run
from harness import wait_until

kPageBytes = 4096
kThreads = 3
kThreaded = """
import sys, threading
wait = threading.Event()
threads = [threading.Thread(target=wait.wait) for _ in range(%d)]
for thread in threads: thread.start()
print("up", flush=True)
sys.stdin.read()
wait.set()
for thread in threads: thread.join()
""" % (kThreads - 1)


def programs():
    """Name, command; each says a line, then lives until its stdin ends."""
    return [
        ("cat", [need("cat", "coreutils")]),
        ("shell", [need("sh", "dash"), "-c", "echo up; read line; exit 0"]),
        ("python", [kPython, "-S", "-c", "import sys; print('up', flush=True); sys.stdin.read()"]),
        ("python with our part", [kPython, "-c", "import sys; print('up', flush=True); sys.stdin.read()"]),
        ("threads", [kPython, "-c", kThreaded]),
    ]


def started(argv, environment):
    process = subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if os.path.basename(argv[0]) == "cat":
        process.stdin.write(b"up\n")
        process.stdin.flush()
    check(process.stdout.readline() == b"up\n", "%s: did not come up", argv)
    return process


def threads_of(process):
    return len(os.listdir("/proc/%d/task" % process.pid))


def ended(process):
    process.communicate()
    return process.returncode


def nothing_of_ours(workspace):
    for name, argv in programs():
        without = started(argv, bare())
        process = started(argv, preloaded(workspace))
        folder = os.path.join(workspace.root, "alone", "alone")
        segments = left_in(workspace)
        check(len(segments) == 1 and segments[0].split(".")[1] == str(process.pid), "%s: segments %s of process %d", name, segments, process.pid)
        status = os.stat(os.path.join(folder, segments[0]))
        check(status.st_blocks * 512 == kPageBytes, "%s: %d bytes of its segment are allocated", name, status.st_blocks * 512)
        check(threads_of(process) == threads_of(without), "%s: %d threads, %d without the shim", name, threads_of(process), threads_of(without))
        check(ended(process) == ended(without) == 0, "%s: ended badly", name)
        wait_until("its segment to go", lambda: not left_in(workspace))
        print("%s: one page, no thread, nothing left" % name, flush=True)


run({"nothing_of_ours": nothing_of_ours})
