#!/usr/bin/python3
"""gloo's collectives are ranges with their process group and sequence number: in that order each rank's own log has them, and both ranks agree.

    collectives.py

1.13 begins each group's numbers at one of its own.
"""
import collections
import json
import os

from harness import check, kPython, kWorkloads, main
from rsd.index import Job

kRanks = 2


def groups_of(ranges):
    """[[(sequence, name)] of one group], in order of the sequence."""
    named = collections.defaultdict(list)
    for r in ranges:
        named[r.attributes.category].append((r.payload, r.name))
    return [sorted(rows) for rows in named.values()]


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
    check(len(named) == 2 and "" not in named, "the groups' names: %s", named)
    print("%d collectives of %d groups (%s) at both ranks" % (sum(map(len, seen[0])), len(seen[0]), ", ".join(sorted(named))), flush=True)


main(test, "collectives")
