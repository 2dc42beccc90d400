#!/usr/bin/python3
"""Every kind of call that torch's RPC has, made by an ordinary job (workloads/every_call.py): each is joined, has its mode, its parent and its
served operators; one, the deliberate timeout, ends without its reply."""
import collections
import json
import os

from harness import check, free_port, kPython, kWorkloads, main
from rsd.index import Job
from rsd.shapes import kLevels, kModes, kStatuses

kApi, kTorch = "torch.distributed.rpc.api", 1
kScripted = "__torch__.__mp_main__.scripted"
# Made on behalf of the job's own calls by torch itself, not in the job's list: how many there are at least.
kOfTorch = {"_rref_typeof_on_owner": 3, "rref_fork_request": 2, "rref_child_accept": 8, "rref_user_delete": 8, "backward_autograd": 4,
            "cleanup_autograd_context": 2}
kParents = {("udf", "worker1"): "nested", ("aten::mul", "worker1"): "chain_in_then", ("fetch_it", "a-worker-with-a-long-name"): "hand_on",
            ("rref_fork_request", "a-worker-with-a-long-name"): "hand_on", ("backward_autograd", "worker1"): "backward_autograd",
            ("backward_autograd", "a-worker-with-a-long-name"): "backward_autograd"}
# (function, operator served for it): how often
kServed = {("udf", "aten::rand"): 7, ("chain", "aten::mul"): 1, ("late", "aten::ones"): 1, ("times", "aten::sum"): 2, ("parameter", "aten::ones"): 2,
           (kScripted, "aten::tanh"): 83, ("backward_autograd", "MulBackward0"): 2, ("backward_autograd", "SumBackward0"): 2}


def is_users(call):
    function = call.function
    return call.either.module != kApi and kModes[call.either.mode] != "internal" and "_local_optimizer" not in function


def check_calls(job, rows):
    wanted = collections.Counter((caller, callee, kScripted if function == "scripted" else function, mode) for caller, callee, function, mode in rows)
    found = collections.Counter((c.caller, c.callee, c.function, c.mode) for c in job.calls if is_users(c))
    check(wanted == found, "made but not in the dump: %s; in the dump but not made: %s", dict(wanted - found), dict(found - wanted))
    optimizer = [c for c in job.calls if "_local_optimizer" in c.function]
    check(len(optimizer) == 4, "the distributed optimizer's calls: %s", [c.function for c in optimizer])
    names = collections.Counter(c.function for c in job.calls)
    few = {name: names[name] for name, least in kOfTorch.items() if names[name] < least}
    check(not few, "of torch's own calls there are only %s", few)


def check_joins(job):
    apart = [(c.function, c.state) for c in job.calls if c.state != "Joined" or c.client.end is None or c.server.end is None]
    check(not apart, "not joined or not ended: %s", apart)
    unanswered = [(c.function, kStatuses[c.client.status]) for c in job.calls if not c.rpc.reply]
    check(unanswered == [("late", "timeout")], "without a reply: %s", unanswered)
    # An exception of Python travels as an answer: the callee's boom() is none here.
    failed = [c.function for c in job.calls if c.client.status and c.rpc.reply]
    check(not failed, "ended by an error: %s", failed)


def check_parents(job):
    for call in job.calls:
        parent = job.calls[call.parent].function if call.parent >= 0 else None
        wanted = kParents.get((call.function, call.caller))
        check(wanted is None or parent == wanted, "%s, called by %s, hangs below %s, expected %s", call.function, call.caller, parent, wanted)
        check(parent is None or call.caller != "worker0" or call.function != "udf", "worker0's own %s hangs below %s", call.function, parent)


def check_operators(events):
    served = collections.Counter()
    for r in events.ranges:
        half = events.served_by(r.context, r.process)
        served[half.name if half else None, r.name] += 1
    off = {row: (served[row], n) for row, n in kServed.items() if (served[row] < n if row[1] == "aten::sum" else served[row] != n)}
    check(not off, "served operators (found, expected): %s", off)
    still_open = [r.name for r in events.ranges if r.end is None]
    check(not still_open, "still open: %s", collections.Counter(still_open))
    passed_over = sum(sum(p.losses) for p in events.dump.footer.processes)
    check(passed_over == 0, "%d passed over", passed_over)


def check_levels(dump):
    for process in dump.processes.values():
        for source in process.sources:
            check(source.id != kTorch or kLevels[source.level] in ("Full", "Absent"), "torch's level is %s (%s)", kLevels[source.level], source.reason)


def test(workspace):
    output, out = workspace.path("run"), workspace.path("rows")
    workspace.ringside("run", "-o", output, "--table", workspace.path("table"), "--", kPython, "-W", "ignore", os.path.join(kWorkloads, "every_call.py"),
                       "--out", out, "--conditions", workspace.conditions, environment=dict(os.environ, MASTER_PORT=str(free_port())))
    with open(out) as text:
        rows = json.load(text)
    job = Job(output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    check_calls(job, rows)
    check_joins(job)
    check_parents(job)
    check_operators(job.events[0])
    check_levels(job.dumps[0])
    counts = job.counts()
    print("%d of the job's calls, %d requests in all: %d joined, %d with their reply, %d lost" % (
        len(rows), len(job.calls), counts["joined"], counts["joined_replies"], counts["lost"]), flush=True)


main(test, "every_call")
