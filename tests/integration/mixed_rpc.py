#!/usr/bin/python3
"""One job, several RPC systems: a torch call whose function makes a gRPC call that runs operators in a third process is one tree; so is one whose
function exchanges messages by MPI as well.

    mixed_rpc.py mixed|mixed_mpi PYTHON
"""
import os
import subprocess

from annotations import kGrpc, run_case, traced
from grpc_python import needs_grpc
from harness import check, kWorkloads, skip
from mpi_launch import require

kTorch, kMpi = 1, 4
kCalls = 20
kCallsWithMpi = 10


def mixed(workspace, python):
    needs_grpc(python, "torch")
    job, _, rows, _ = traced(workspace, [python, "-W", "ignore", os.path.join(kWorkloads, "mixed_job.py")])
    inner = {c.function: c for c in job.calls if c.either.source == kGrpc}
    check(sorted(inner) == sorted("sine_%d" % n for n in range(kCalls)) and all(c.state == "Joined" for c in inner.values()), "gRPC's calls: %s",
          {name: c.state for name, c in inner.items()})
    outer = [job.calls[c.parent] for c in inner.values() if c.parent >= 0]
    check(len({c.number for c in outer}) == kCalls, "%d of them are children of %d calls", len(outer), len({c.number for c in outer}))
    for call in outer:
        check(call.client.source == kTorch and call.state == "Joined" and call.function.endswith("ask") and (call.caller, call.callee) ==
              ("worker0", "worker1"), "a parent is %s, %s", call.function, call.state)
    processes = {(c.client_node, c.client.process) for c in outer} | {(c.client_node, c.client.process) for c in inner.values()} | {
        (c.server_node, c.server.process) for c in inner.values()}
    check(len(processes) == 3, "the tree spans processes %s", processes)
    count = 0
    for events in job.events:
        for r in events.ranges:
            if r.name == "aten::sin":
                half = events.served_by(r.context, r.process)
                check(half and half.source == kGrpc, "an operator is in %s", half and half.name)
                count += 1
    check(count == kCalls, "%d operators", count)
    nested = [row["name"] for row in rows if row["name"].count("#remote_op: ") == 2 and row["name"].endswith("aten::sin")]
    check(len(nested) == kCalls, "rows of the whole tree: %s", nested[:3])
    print("%d trees, as %s" % (kCalls, nested[0]), flush=True)


def mixed_mpi(workspace, python):
    needs_grpc(python, "torch")
    library, = require("openmpi4")
    if subprocess.run([python, "-c", "import mpi4py"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("%s has no mpi4py (tools/setup --all installs it)" % python)
    script = os.path.join(kWorkloads, "mixed_mpi_job.py")
    job, _, rows, _ = traced(workspace, library.mpirun(3, python, "-W", "ignore", script), environment=library.environment())
    outer = [c for c in job.calls if c.either.source == kTorch and c.function.endswith("ask")]
    check(len(outer) == kCallsWithMpi and {c.state for c in outer} == {"Joined"}, "torch's calls: %s", [(c.function, c.state) for c in outer])
    messages = [c for c in job.calls if c.either.source == kMpi]
    check(len(messages) == 2 * kCallsWithMpi and {c.state for c in messages} == {"Joined"}, "messages: %s", [(c.function, c.state) for c in messages])
    tags = []
    for call in outer:
        inner = sorted((c for c in job.calls if c.parent == call.number), key=lambda c: c.either.source)
        check([c.either.source for c in inner] == [kGrpc, kMpi], "children of a call: %s", [(c.function, c.either.source) for c in inner])
        asked, sent = inner
        check(len({(asked.server_node, asked.server.process), (sent.server_node, sent.server.process), (call.server_node, call.server.process)}) == 2 and
              sent.server.process == asked.server.process, "the message went elsewhere than the call: %s", vars(sent.server))
        check(asked.function == "sine_%d" % sent.client.wire_type, "%s, with the message of tag %d", asked.function, sent.client.wire_type)
        tags.append(sent.client.wire_type)
    check(sorted(tags) == list(range(kCallsWithMpi)), "tags: %s", tags)
    count = 0
    for events in job.events:
        for r in events.ranges:
            if r.name == "aten::sin":
                half = events.served_by(r.context, r.process)
                check(half and half.source == kGrpc, "an operator is in %s", half and half.name)
                count += 1
    check(count == kCallsWithMpi, "%d operators", count)
    print(workspace.ringside("rpc", workspace.path("traced"), "--request", "%016x" % outer[0].client.span).out(), flush=True)


kCases = {"mixed": mixed, "mixed_mpi": mixed_mpi}


if __name__ == "__main__":
    run_case(kCases)
