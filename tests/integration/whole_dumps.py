#!/usr/bin/python3
"""`ringside trace` tells of files that are there and whole, and of no others: where they lie now; a dump in which the disk has changed a bit is complained of.

    whole_dumps.py PROGRAM        PROGRAM: workloads/numbered.c
"""
import glob
import os
import sys

from harness import Node, Trace, check, main, wait_until
from rsd.index import Job

kNotAllGood = 1
kWritten = 100_000  # bytes of a dump
kPlace = 50_000     # of the one that changes


def paths_in(told):
    """All that looks like a path of ours."""
    if isinstance(told, dict):
        return {path for value in told.values() for path in paths_in(value)}
    if isinstance(told, list):
        return {path for value in told for path in paths_in(value)}
    return {told} if isinstance(told, str) and told.endswith((".rsd", ".rsj", ".partial")) else set()


def test(workspace, program):
    leader, node = Node(workspace, "leader"), Node(workspace, "node")
    path = workspace.path("numbers")
    child = workspace.start("numbers", node.job_command(program, path, "4", "20000"), node.environment())
    wait_until("the numbers", lambda: os.path.exists(path) and os.path.getsize(path), children=[child])
    good = Trace(workspace, [leader, node], workspace.path("good"))
    told = good.end()
    check(paths_in(told) == {os.path.join(good.output, name) for name in ("leader.rsd", "node.rsd", "job.rsj")}, "it tells of %s", sorted(paths_in(told)))
    check(not Job(good.output).problems(), "the reader: %s", Job(good.output).problems())
    bad = Trace(workspace, [leader, node], workspace.path("bad"))
    written = wait_until("its dump", lambda: [each for each in glob.glob(workspace.path("output", "node", "*", "node.rsd*")) if os.path.getsize(each) > kWritten])
    with open(written[0], "r+b") as file:
        file.seek(kPlace)
        byte = file.read(1)[0]
        file.seek(kPlace)
        file.write(bytes([byte ^ 1]))
    told = bad.end(expect=kNotAllGood)
    dump = os.path.join(bad.output, "node.rsd")
    check(paths_in(told) == {os.path.join(bad.output, name) for name in ("leader.rsd", "job.rsj")}, "beside %s it tells of %s", dump, sorted(paths_in(told)))
    check(os.path.exists(dump) and dump in bad.child.err() and "checksum" in bad.child.err(), "of %s it says %s", dump, bad.child.err())
    print("of a dump with another bit: %s" % bad.child.err().strip().splitlines()[-1], flush=True)


if __name__ == "__main__":
    main(lambda workspace: test(workspace, sys.argv[1]), "whole-dumps")
