#!/usr/bin/python3
"""A program's own RPC system over ZeroMQ, in Python and in C: it carries the ids itself, and every call is joined.

    own_rpc.py c PROGRAM | python PYTHON
"""
import json
import os
import subprocess

from annotations import run_case, traced
from harness import check, kWorkloads, skip

kOk, kError = 0, 1


def check_job(job, called, operators):
    inner = [m.replace("outer", "inner") for m in called if m.startswith("outer")]
    found = {c.function: c for c in job.calls}
    check(sorted(c.function for c in job.calls) == sorted(called + inner), "called and not found, or found more often: %s",
          set(found) ^ set(called + inner))
    for name, call in found.items():
        check(call.state == "Joined", "%s is %s", name, call.state)
        ends = ("front", "back") if name.startswith("inner") else ("client", "front")
        check((call.client.self_name, call.server.self_name) == ends, "%s goes from %s to %s", name, call.client.self_name, call.server.self_name)
        status = kError if name.startswith("failing") else kOk
        check((call.client.status, call.server.status) == (status, status), "%s: %s, %s", name, call.client.status, call.server.status)
        check(call.client.request_bytes == call.server.request_bytes == 3, "%s: %d bytes", name, call.client.request_bytes)
        parent = job.calls[call.parent].function if call.parent >= 0 else None
        check(parent == (name.replace("inner", "outer") if name.startswith("inner") else None), "%s is a child of %s", name, parent)
    works = 0
    for events in job.events:
        for r in events.ranges:
            half = events.served_by(r.context, r.process)
            if r.name.startswith("work of "):
                works += 1
                check(half and r.name == "work of " + half.name, "%s is in %s", r.name, half and half.name)
            if r.name == "aten::sin":
                operators -= 1
                check(half and half.name.startswith("inner"), "an operator is in %s", half and half.name)
    check(works == len(found) and operators == 0, "%d ranges in %d requests, %d operators missing", works, len(found), operators)
    print("%d calls, %d of them nested" % (len(found), len(inner)), flush=True)


def folder_of(workspace):
    os.makedirs(workspace.path("s"))
    return workspace.path("s")  # a socket's path is short


def in_python(workspace, python):
    for module in ("zmq", "torch"):
        if subprocess.run([python, "-c", "import " + module], capture_output=True).returncode != 0:
            skip("%s has no %s: tools/setup --all installs it" % (python, module))
    job, _, _, child = traced(workspace, [python, "-W", "ignore", os.path.join(kWorkloads, "zmq_calls.py"), folder_of(workspace)])
    called = json.loads(child.out())["calls"]
    check(len(called) == 200, "%d calls", len(called))
    check_job(job, called, sum(m.startswith("outer") for m in called))


def in_c(workspace, program):
    job, _, _, child = traced(workspace, [program, folder_of(workspace)])
    called = child.out().split()
    check(len(called) == 60, "%d calls", len(called))
    check_job(job, called, 0)


kCases = {"python": in_python, "c": in_c}


if __name__ == "__main__":
    run_case(kCases)
