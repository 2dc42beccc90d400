#!/usr/bin/python3
"""torch imported late, forked and spawned children, DataLoader's workers, programs of their own: each operator of each is in the capture.

    processes.py late | early | launcher
        late: the capture runs before torch is there; early: torch and a forked child are there before the capture
        launcher: what has no torch forks workers that import it, before the capture: the modes of their calls are known
"""
import collections
import os
import sys

from harness import Node, Trace, check, free_port, kPython, kWorkloads, main

# beneath tests/, found by what harness adds to the path
import children as workload
import forked_workers
from rsd.index import Job
from rsd.shapes import kLevels

kTorch = 1

kNames = ["main", "main again", "thread", "forked", "child by fork", "child by spawn", "program"] + [
    "item by %s %d" % (method, n) for method in ("fork", "spawn") for n in range(workload.kItems)]


def launcher(workspace):
    node = Node(workspace, "node")
    job = workspace.start("job", node.job_command(kPython, "-W", "ignore", os.path.join(kWorkloads, "forked_workers.py"), "--conditions", workspace.conditions),
                          node.environment(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port())))
    for rank in range(forked_workers.kWorkers):
        workspace.await_condition("ready.%d" % rank, [job])
    trace = Trace(workspace, [node], workspace.path("trace"))
    workspace.announce("go")
    workspace.await_condition("done", [job])
    trace.end()
    workspace.announce("leave")
    job.wait()
    node.stop()
    read = Job(trace.output)
    check(not read.problems(), "the reader: %s", "; ".join(read.problems()))
    modes = collections.Counter(c.mode for c in read.calls if c.function in ("aten::neg", "aten::abs", "aten::add"))
    check(modes == forked_workers.kCalls, "the calls' modes: %s, made %s", dict(modes), forked_workers.kCalls)
    levels = [(kLevels[s.level], s.reason) for p in read.dumps[0].processes.values() for s in p.sources if s.id == kTorch and kLevels[s.level] != "Absent"]
    check(levels == [("Full", "")] * forked_workers.kWorkers, "torch's levels: %s", levels)
    print("%s: %s" % (variant, dict(modes)), flush=True)


def test(workspace):
    early = variant == "early"
    node = Node(workspace, "node")
    out = workspace.path("ranges")
    command = [kPython, "-W", "ignore", os.path.join(kWorkloads, "children.py"), "--conditions", workspace.conditions, "--out", out]
    job = workspace.start("job", node.job_command(*command, *(["--early"] if early else [])), node.environment())
    workspace.await_condition("ready", [job])
    trace = Trace(workspace, [node], workspace.path("trace"))
    workspace.announce("go")
    workspace.await_condition("done", [job])
    trace.end(expect=None)  # a child that ends by _exit() counts as killed
    workspace.announce("leave")
    job.wait()
    node.stop()
    with open(out) as lines:
        told = [(int(pid), name) for pid, _, name in (line.rstrip("\n").partition(" ") for line in lines)]
    check(sorted(name for _, name in told) == sorted(kNames + ["forked early"] * early), "the job did %s", told)
    read = Job(trace.output)
    check(not read.problems(), "the reader: %s", "; ".join(read.problems()))
    events, pid_of = read.events[0], {p.index: p.pid for p in read.dumps[0].processes.values()}
    for pid, name in told:
        ranges = [r for r in events.ranges if r.name == name and pid_of[r.process] == pid]
        check(len(ranges) == 1 and ranges[0].end is not None, "%d ranges '%s' of process %d", len(ranges), name, pid)
        r = ranges[0]
        inside = [o for o in events.ranges if o.name == "aten::neg" and (o.process, o.tid) == (r.process, r.tid) and r.begin <= o.begin and o.end <= r.end]
        check(len(inside) == workload.kOperators, "'%s' of process %d has %d operators, expected %d", name, pid, len(inside), workload.kOperators)
    every = sum(r.name == "aten::neg" for r in events.ranges)
    check(every == len(told) * workload.kOperators, "%d operators in all, expected %d", every, len(told) * workload.kOperators)
    print("%s: %d ranges in %d processes, each with its %d operators; lost %d" % (
        variant, len(told), len({pid for pid, _ in told}), workload.kOperators, read.counts()["lost"]), flush=True)


variant = sys.argv[1] if len(sys.argv) > 1 else "late"
main(launcher if variant == "launcher" else test, "processes")
