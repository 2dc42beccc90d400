#!/usr/bin/python3
"""The user's own profiler and we see the same, and neither sees the other: Kineto's, and the legacy one, alone and beside us.

One deterministic script (workloads/profiled.py: forward, backward, optimizer, a DataLoader with workers). Compared are, within its user range
"measured", the names and their numbers: ours alone, the profiler's alone, both of a run with both; and of the profiler everything that is no
time: parents, sequence numbers, threads, shapes, bytes, its table.
"""
import collections
import json
import os

from harness import check, kPython, kWorkloads, main
from rsd.index import Job

kMeasured, kMemory = "measured", "[memory]"
kOfArrivals = ("aten::set_", "aten::detach_", "detach_")  # what a DataLoader does with what its workers sent
kItems = 2 * 4 * 5  # two rounds of all items of the data set, made in workers


def watched(workspace, name, profiler, ours):
    """Runs the script.
    @return (what it wrote, the job of our dump or None)
    """
    out, trace = workspace.path(name + ".json"), workspace.path("run-" + name)
    command = [kPython, "-W", "ignore", os.path.join(kWorkloads, "profiled.py"), "--out", out, "--profiler", profiler, "--shapes", "--elsewhere"]
    # The legacy one tells more ranges apart when memory stands between their begins.
    command += ["--memory"] if profiler == "kineto" else []
    if ours:
        workspace.ringside("run", "-o", trace, "--table", workspace.path("table"), "--", *command, name="run-" + name)
    else:
        workspace.run(name, command)
    with open(out) as text:
        told = json.load(text)
    job = Job(trace) if ours else None
    check(job is None or not job.problems(), "%s, the reader: %s", name, job and "; ".join(job.problems()))
    return told, job


def measured(events, begin, end, name):
    """The events inside the measured range, in order of their begin."""
    outer = [e for e in events if name(e) == kMeasured]
    check(len(outer) == 1, "%d ranges %s", len(outer), kMeasured)
    return sorted((e for e in events if e is not outer[0] and begin(outer[0]) <= begin(e) and end(e) <= end(outer[0])), key=lambda e: (begin(e), -end(e)))


def of_ours(job):
    """Our ranges inside the measured one, of the process that has it."""
    process = next(r.process for r in job.events[0].ranges if r.name == kMeasured)
    mine = [r for r in job.events[0].ranges if r.process == process and r.end is not None]
    return measured(mine, lambda r: r.begin, lambda r: r.end, lambda r: r.name)


def of_profiler(told):
    return measured(told["events"], lambda e: e["begin"], lambda e: e["end"], lambda e: e["name"])


def names(events, name):
    return collections.Counter(name(e) for e in events if name(e) != kMemory)


def as_legacy_tells(ranges):
    """The legacy profiler leaves out a range that begins with one of the same name, as wrappers of operators do."""
    kept = []
    for r in ranges:
        if not (kept and kept[-1].name == r.name and r.end <= kept[-1].end):
            kept.append(r)
    return kept


def untimed(events, nests):
    """Everything in the profiler's events that is no time; with the parent's name for the place, where times tell what lies in what.
    Which of its workers a DataLoader hears from first is chance, and with it how far autograd has counted by then."""
    found, open_ranges = collections.Counter(), collections.defaultdict(list)
    for e in events:
        stack = open_ranges[e["thread"]]
        while stack and stack[-1]["end"] <= e["begin"]:
            stack.pop()
        parent = stack[-1]["name"] if stack and nests else None
        sequence = None if e["name"] in kOfArrivals else e["sequence"]
        found[e["name"], parent, e["thread"], sequence, e["forward_thread"], str(e["shapes"]), e["bytes"]] += 1
        if e["name"] != kMemory:
            stack.append(e)
    return found


def difference(a, b):
    return "only in the first %s, only in the second %s" % (dict(a - b), dict(b - a))


def check_workers(job):
    """DataLoader's workers are processes of their own, forked in the middle of the capture: what they did is there too."""
    owner = next(r.process for r in job.events[0].ranges if r.name == kMeasured)
    made = sum(r.name == "aten::sin" and r.process != owner for r in job.events[0].ranges)
    check(made == kItems, "%d items made in the workers, the loader asked for %d", made, kItems)


def test(workspace):
    alone, job = watched(workspace, "ours", "none", ours=True)
    check_workers(job)
    all_alone = of_ours(job)
    for profiler, told_of in (("kineto", list), ("legacy", as_legacy_tells)):
        without, _ = watched(workspace, profiler, profiler, ours=False)
        beside, job = watched(workspace, profiler + "-and-ours", profiler, ours=True)
        theirs = names(of_profiler(without), lambda e: e["name"])
        ours, ours_beside = (names(told_of(ranges), lambda r: r.name) for ranges in (all_alone, of_ours(job)))
        check(ours == theirs, "ours alone, %s alone: %s", profiler, difference(ours, theirs))
        check(ours_beside == theirs, "ours beside %s, %s alone: %s", profiler, profiler, difference(ours_beside, theirs))
        before, after = (untimed(of_profiler(told), told["resolution_ns"] == 1) for told in (without, beside))
        check(before == after, "%s alone, beside us: %s", profiler, difference(before, after))
        # Where times are too coarse it is chance which range counts as another's only child, and goes from the table.
        exact = without["resolution_ns"] == 1
        check(without["table"] == beside["table"] if exact else without["table"].keys() == beside["table"].keys(), "%s's table alone and beside us: %s, %s", profiler, without["table"], beside["table"])
        check(alone["loss"] == without["loss"] == beside["loss"], "the results: %s, %s, %s", alone["loss"], without["loss"], beside["loss"])
        check_workers(job)
        print("PyTorch %s: %d ranges of %d names, ours alone, %s's alone, both together; %d in its list, unchanged" % (
            alone["torch"], sum(ours.values()), len(ours), profiler, sum(after.values())), flush=True)


main(test, "profilers")
