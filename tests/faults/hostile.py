#!/usr/bin/python3
"""A process whose segment goes mad while the agent reads it, a thread of its own writing random words all over: the agent lives, and what
others record beside it is whole.

    hostile.py CASE SECONDS
"""
from fault import check, kWriter, Node, ranges_by_thread, run, Trace, wait_until, written

from rsd.dump import Dump
from rsd.events import Events

kThreads, kRecords = 2, 20000
kMad = 3


def mutator(workspace, seconds):
    node = Node(workspace, "node")
    go, leave = workspace.path("go"), workspace.path("leave")
    honest = workspace.start("honest", node.job_command(kWriter, "flood", str(kThreads), str(kRecords), "60", go, leave), node.environment())
    wait_until("its segment", node.segments, children=[honest])
    trace = Trace(workspace, [node], workspace.path("trace"))
    mad = [workspace.start("mad-%d" % n, node.job_command(kWriter, "scribble", seconds, go), node.environment()) for n in range(kMad)]
    # Not before the agent has mapped them: a file that was never a segment is nobody's.
    wait_until("all to be followed", lambda: len(workspace.json("ps", "--hosts", node.endpoint)) == 1 + kMad, children=[node.agent])
    with open(go, "w"):
        pass
    for child in mad:
        wait_until("its segment to go mad", lambda child=child: "scribbling" in child.out(), children=[child, node.agent])
    wait_until("the honest one's work", lambda: "done" in honest.out(), children=[honest, node.agent])
    for child in mad:
        wait_until("its end", lambda child=child: child.process.poll() is not None, children=[node.agent])
    check(node.agent.process.poll() is None, "the agent has ended: %s", node.agent.tail())
    told = trace.end(expect=None)
    with open(leave, "w"):
        pass
    honest.wait()
    dump = Dump(trace.output + "/node.rsd")
    check(dump.problem is None, "the dump: %s", dump.problem)
    index = next(p.index for p in dump.processes.values() if p.pid == honest.pid)
    dump.lanes = {key: lane for key, lane in dump.lanes.items() if key[0] == index}
    numbers = {tid: [] for tid in written(honest)}
    for r in Events(dump).ranges:
        numbers[r.tid].append(r.payload)
    for tid, its in numbers.items():
        check(sorted(its) == list(range(kRecords)), "the honest process's thread %d: %d ranges of %d", tid, len(its), kRecords)
    violations = {e.process: e.violations for e in dump.footer.processes}
    refused = [p for p in told["processes"] if p["verdict"] == "refused"]
    check(violations[index] == 0, "%d violations are the honest process's", violations[index])
    check(sum(violations.values()) + len(refused) > 0, "nothing was found wrong with the mad ones: %s", told["processes"])
    workspace.ringside("table", trace.output, "--json")
    print("%d violations in %d mad processes, %d of them refused; the honest one's %d ranges are there" % (
        sum(violations.values()), kMad, len(refused), kThreads * kRecords), flush=True)
    node.stop()


run({"mutator": mutator})
