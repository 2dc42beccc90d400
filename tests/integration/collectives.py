#!/usr/bin/python3
"""gloo's collectives are ranges with their process group and sequence number: in that order each rank's own log has them, and both ranks agree.

    collectives.py named | nameless

A torch that does not name its groups (1.13: nameless) begins each group's sequence at a number of its own: they tell the groups apart there.
"""
import collections
import json
import os
import sys

from harness import check, kPython, kWorkloads, main
from rsd.index import Job

kRanks = 2
kApart = 1000  # sequence numbers of one group lie closer together


def groups_of(ranges):
    """[[(sequence, name)] of one group], in order of the sequence."""
    named = collections.defaultdict(list)
    for r in ranges:
        named[r.attributes.category].append((r.payload, r.name))
    found = []
    for rows in named.values():
        rows.sort()
        begun = [i for i, row in enumerate(rows) if i == 0 or row[0] - rows[i - 1][0] > kApart] + [len(rows)]
        found += [rows[a:b] for a, b in zip(begun, begun[1:])]
    return found


def test(workspace):
    output, out = workspace.path("run"), workspace.path("rows")
    workspace.ringside("run", "-o", output, "--table", workspace.path("table"), "--", kPython, "-W", "ignore",
                       os.path.join(kWorkloads, "collectives.py"), "--out", out)
    job = Job(output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    events = job.events[0]
    ranks = sorted({r.process for r in events.ranges if r.name == "collectives"})
    check(len(ranks) == kRanks, "%d ranks", len(ranks))
    logs, seen = [], []
    for rank in range(kRanks):
        with open("%s.%d" % (out, rank)) as text:
            order = collections.defaultdict(list)
            for group, operation in json.load(text):
                order[group].append(operation)
        logs.append(sorted(order.values()))
    for process in ranks:
        ranges = [r for r in events.ranges if r.process == process and r.name.startswith("gloo:")]
        check(all(r.end is not None and r.kind == "async" for r in ranges), "a collective without its end")
        groups = groups_of(ranges)
        for rows in groups:
            numbers = [sequence for sequence, _ in rows]
            check(numbers == list(range(numbers[0], numbers[0] + len(rows))), "the sequence numbers of a group are %s", numbers)
        seen.append(groups)
        told = sorted([name for _, name in rows] for rows in groups)
        check(told == logs[0] == logs[1], "in the dump %s, in the ranks' logs %s", told, logs)
    check(sorted(seen[0]) == sorted(seen[1]), "the ranks have different sequences: %s", seen)
    named = {r.attributes.category for r in events.ranges if r.name.startswith("gloo:")}
    check(len(named) == 2 if variant == "named" else named == {""}, "the groups' names: %s", named)
    print("%d collectives of %d groups (%s) at both ranks" % (sum(map(len, seen[0])), len(seen[0]), ", ".join(sorted(named)) or "without names"), flush=True)


variant = sys.argv[1] if len(sys.argv) > 1 else "named"
main(test, "collectives")
