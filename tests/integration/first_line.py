#!/usr/bin/python3
"""A C++ program linked to libtorch that runs operators in the first line of main and ends: under `ringside run` none is missing.

    first_line.py PROGRAM      its own count comes from a RecordFunction callback, in a run without us
"""
import collections
import json
import sys

from harness import check, main
from rsd.index import Job


def only_children(ranges):
    """Names of ranges that are the only one inside another of the same name: as torch's own table, ours shows them as one."""
    folded = collections.Counter()
    for outer in ranges:
        inside = [r for r in ranges if r is not outer and outer.begin <= r.begin and r.end <= outer.end]
        children = [r for r in inside if not any(r is not o and o.begin <= r.begin and r.end <= o.end for o in inside)]
        if len(children) == 1 and children[0].name == outer.name:
            folded[outer.name] += 1
    return folded


def test(workspace):
    program = sys.argv[1]
    counted = {}
    for line in workspace.run("counting", [program, "count"]).out().splitlines():
        name, _, count = line.removeprefix("count ").partition("\t")
        counted[name] = int(count)
    check(sum(counted.values()) > 20, "the program counts %d operators", sum(counted.values()))
    for attempt in range(3):
        output = workspace.path("run-%d" % attempt)
        workspace.ringside("run", "-o", output, "--", program)
        job = Job(output)
        ranges = job.events[0].ranges
        found = collections.Counter(r.name for r in ranges)
        check(not job.problems() and found == counted, "in the dump %s, the program counted %s; %s", found, counted, job.problems())
        rows = json.loads(workspace.ringside("table", output, "--full-names", "--row-limit", "0", "--json").out())["rows"]
        table = {r["name"]: r["count"] for r in rows}
        shown = found - only_children(ranges)
        check(table == shown, "the table has %s, expected %s", table, shown)
    print("%d operators of %d names, each of them there, 3 times" % (sum(counted.values()), len(counted)), flush=True)


main(test, "first_line")
