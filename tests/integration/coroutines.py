#!/usr/bin/python3
"""Requests that coroutines serve at the same time on one thread: nothing that one of them does is in another's request.

    coroutines.py CASE PYTHON
"""
import collections
import os

from annotations import run_case, traced
from grpc_python import needs_grpc
from harness import Node, Trace, check, kWorkloads
from rsd.index import Job

kRounds = 1000
kOperators = {"aten::sin": "sine", "aten::cos": "cosine", "aten::tan": "inner", "aten::exp": None}
kInHandler = 13  # steps of one, its tasks' and its thread's among them


def check_requests(job, rounds):
    wrong, count, operators = [], 0, collections.Counter()
    for events in job.events:
        for r in events.ranges:
            half = events.served_by(r.context, r.process)
            name = half.name if half else None
            if " of " in r.name:
                count += 1
                if "%s%d" % (r.name.rpartition(" of ")[2], r.payload) != name:
                    wrong.append((r.name, r.payload, name))
            elif r.name in kOperators:
                operators[r.name] += 1
                if kOperators[r.name] != (name and name.partition("_")[0]):
                    wrong.append((r.name, name))
            check(r.context != "unknown", "%s: its request is unknown", r.name)
    check(not wrong, "%d of %d events are in a wrong request, as %s", len(wrong), count + sum(operators.values()), wrong[:6])
    expected = {"aten::sin": kInHandler * rounds, "aten::cos": kInHandler * rounds, "aten::tan": 4 * rounds}
    check(count == sum(expected.values()), "%d steps, %d expected", count, sum(expected.values()))
    check(all(operators[name] == n for name, n in expected.items()) and operators["aten::exp"] > 100, "operators: %s", operators)
    return count, operators


def check_trees(job, rounds):
    names = collections.Counter(c.function for c in job.calls)
    check(len(job.calls) == 4 * rounds and set(names.values()) == {1} and {c.state for c in job.calls} == {"Joined"}, "%d calls, states %s", len(job.calls),
          {c.state for c in job.calls})
    for call in job.calls:
        kind, _, rest = call.function.partition("_")
        parent = job.calls[call.parent].function if call.parent >= 0 else None
        check(parent == (rest.replace("-", "_") if kind == "inner" else None), "%s is a child of %s", call.function, parent)


def case(*words):
    def run(workspace, python):
        needs_grpc(python, "torch")
        job, _, _, _ = traced(workspace, [python, os.path.join(kWorkloads, "grpc_overlap.py"), "--rounds", str(kRounds), *words])
        count, operators = check_requests(job, kRounds)
        check_trees(job, kRounds)
        print("%d rounds: %d steps and %s operators, each in its request; %d calls in their trees" % (kRounds, count, sum(operators.values()), len(job.calls)))

    return run


def by_name(workspace, python):
    """Arguments given by asyncio's and importlib's own names, in the capture in which the loop and the finders got wrapped, and after it."""
    node = Node(workspace, "node")
    script = os.path.join(kWorkloads, "executor_by_name.py")
    child = workspace.start("by_name", node.job_command(python, script, workspace.conditions), node.environment())
    workspace.await_condition("ready", [child])
    trace = Trace(workspace, [node], workspace.path("trace"), options=["--sources", "api"])
    workspace.announce("serve")
    workspace.await_condition("served", [child])
    trace.end()
    child.wait()
    check(child.out() == "in the capture: done done\nafter it: done done\n", "the program says: %s", child.tail())
    job = Job(workspace.path("trace"))
    (call,) = [c for c in job.calls if c.function == "served"]
    found = [events.served_by(r.context, r.process) for events in job.events for r in events.ranges if r.name == "on a thread"]
    check([half and half.name for half in found] == ["served"], "the thread's work is in %s, the call is %s", found, call.state)


kCases = {"by_name": by_name, "grpc": case(), "own": case("--own")}


if __name__ == "__main__":
    run_case(kCases)
