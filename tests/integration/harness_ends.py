#!/usr/bin/python3
"""However a test ends, nothing of it stays: a test that passes, one that fails, and one that is killed in the middle.

    harness_ends.py [passing | failing | killed]        without a word: all of them
"""
import os
import signal
import sys

from harness import check, Failed, main, wait_until
from leftovers import processes_of

kStatus = {"passing": 0, "failing": 1, "killed": -signal.SIGKILL}


def victim(workspace):
    """A test with a child of its own and one in another session, which writes into the test's folder until it is ended."""
    name = sys.argv[1]
    environment = dict(os.environ, RINGSIDE_DIR=workspace.root)
    workspace.start("child", ["sleep", "1000"], environment)
    writer = 'i=0; while :; do mkdir -p "$0/home/$i"; i=$((i + 1)); done'
    if name != "passing":
        workspace.run("other", ["sh", "-c", 'setsid sh -c "$0" "$1" >/dev/null 2>&1 &', writer, workspace.disk], environment)
        wait_until("the writer", lambda: os.path.exists(workspace.path("home", "100")))
    print("folders %s %s" % (workspace.root, workspace.disk), flush=True)
    if name == "failing":
        raise Failed("as it should")
    if name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)


def test(workspace):
    for name, status in kStatus.items():
        child = workspace.run(name, [sys.executable, os.path.abspath(__file__), name], expect=status)
        folders = next(line for line in child.out().splitlines() if line.startswith("folders ")).split()[1:]
        # Whoever has cleared up ends a moment after: it knows this test's folder, as its parent did.
        wait_until("%s: its processes' end and its folders'" % name,
                   lambda: not processes_of(workspace.root, *folders) and not any(map(os.path.exists, folders)), deadline_s=20)
        print("%s: nothing stays" % name, flush=True)


if __name__ == "__main__":
    main(victim if len(sys.argv) > 1 else test, "-".join(["ends"] + sys.argv[1:]))
