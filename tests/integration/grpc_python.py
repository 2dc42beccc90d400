#!/usr/bin/python3
"""gRPC in Python, Debian's and PyPI's: each call of a program in the trace as the program has logged it, and the program none the wiser.

    grpc_python.py CASE PYTHON
"""
import collections
import json
import os
import subprocess

from annotations import check_level, kDegraded, kGrpc, run_case, traced
from harness import Node, Trace, check, kShim, kWorkloads, skip
from rsd.index import Job

kOk, kError, kTimeout, kCancelled = 0, 1, 2, 4
kStatuses = {"OK": kOk, "CANCELLED": kCancelled, "DEADLINE_EXCEEDED": kTimeout}
kScript = os.path.join(kWorkloads, "grpc_calls.py")


def needs_grpc(python, *modules):
    for module in ("grpc",) + modules:
        if subprocess.run([python, "-c", "import " + module], capture_output=True).returncode != 0:
            skip("%s has no %s" % (python, module))


def logged(child):
    told = json.loads(child.out().splitlines()[-1])
    return {c["method"]: c for c in told["calls"]}, told["served"]


def given_up(name):
    """Requests that nobody waits for any more: the server may not even have begun with them."""
    return name.startswith(("uu_slow", "us_endless"))


def check_calls(job, calls, served):
    """Every call once, with both halves, as the log has it, and no other."""
    found = collections.defaultdict(list)
    for call in job.calls:
        found[call.function].append(call)
    inner = [s["method"] for s in served if "_inner_" in s["method"]]
    counts = {name: len(some) for name, some in found.items()}
    check(counts == {**dict.fromkeys(calls, 1), **collections.Counter(inner)}, "the log and the trace differ in %s",
          set(counts.items()) ^ set({**dict.fromkeys(calls, 1), **collections.Counter(inner)}.items()))
    sent = {s["method"]: s["traceparent"] for s in served}
    for name, call in calls.items():
        one = found[name][0]
        check(one.state == "Joined" or (given_up(name) and one.client), "%s is %s", name, one.state)
        check(one.client.status == kStatuses.get(call["status"], kError), "%s ended with %s, its client's half with %s", name, call["status"], one.client.status)
        check((one.client.module, one.client.source) == ("calls.Service", kGrpc), "%s: %s", name, vars(one.client))
        check(one.client.peer.startswith("127.0.0.1:"), "%s goes to %s", name, one.client.peer)
        if one.server is None:
            continue
        check(one.server.status == one.client.status or (given_up(name) and one.server.status in (kTimeout, kCancelled)),
              "%s: the server's half ended with %s, the client's with %s", name, one.server.status, one.client.status)
        check(one.server.peer.startswith("ipv4:127.0.0.1:"), "%s comes from %s", name, one.server.peer)
        header = "00-%016x%016x-%016x-01" % (one.client.trace_hi, one.client.trace_lo, one.client.span)
        check(sent[name] == header, "%s: %s was sent, the half is %s", name, sent[name], header)
        check(call["own"] in (None, header), "%s: the program's own %s has become %s", name, call["own"], header)
    parents = sorted(job.calls[c.parent].function for name in set(inner) for c in found[name] if c.parent >= 0)
    nested = sorted(name for name in calls if "_nested_" in name)
    check(parents == nested, "the inner calls' parents: %s", set(parents) ^ set(nested))
    halves = [h for events in job.events for h in events.halves]
    check(all(h.end is not None for h in halves), "halves that never ended: %s", [h.name for h in halves if h.end is None])
    print("%d calls, %d inner, %d halves" % (len(calls), len(inner), len(halves)), flush=True)


def check_work(job):
    count = 0
    for events in job.events:
        for r in events.ranges:
            if r.name.startswith("work of "):
                half = events.served_by(r.context, r.process)
                check(half is not None and r.name == "work of " + half.name, "%s is in %s", r.name, half and half.name)
                count += 1
    check(count > 100, "%d ranges", count)


def calls(api):
    def case(workspace, python):
        needs_grpc(python)
        job, _, _, child = traced(workspace, [python, kScript, api])
        check_calls(job, *logged(child))
        check_work(job)
        check_level(job, kGrpc)

    return case


def bare_server(workspace, python):
    """A server that is not traced gets the ids, and nothing is invented of it."""
    needs_grpc(python)
    for api in ("sync", "aio"):
        job, _, _, child = traced(workspace, [python, kScript, api, "--bare-server", "--rounds", "2"], api)
        log, served = logged(child)
        check(sorted(c.function for c in job.calls) == sorted(log), "calls: %s", sorted({c.function for c in job.calls} ^ set(log)))
        check({c.state for c in job.calls} <= {"Cut", "Orphan"} and not any(c.server for c in job.calls), "states %s", {c.state for c in job.calls})
        spans = {c.function: "%016x" % c.client.span for c in job.calls}
        check(all(spans[s["method"]] == s["traceparent"].split("-")[2] for s in served if s["method"] in spans), "other ids have arrived")


def same_behaviour(workspace, python):
    """What a program can see of gRPC: the same without us, with us, in a capture, and in one that does not want gRPC's calls."""
    needs_grpc(python)
    script = os.path.join(kWorkloads, "grpc_behaviour.py")
    bare = workspace.run("bare", [python, script]).out()
    check(len(bare.splitlines()) > 40, "it says little: %s", bare)
    environment = dict(os.environ, RINGSIDE_DIR=workspace.path("root"), LD_PRELOAD=kShim)
    os.makedirs(workspace.path("root"), mode=0o700)
    idle = workspace.run("idle", [python, script], environment).out()
    check(idle == bare, "with the shim: %s", difference(bare, idle))
    output = workspace.path("captured")
    captured = workspace.ringside("run", "-o", output, "--table", workspace.path("table"), "--", python, script, name="captured").out()
    check(captured == bare, "in a capture: %s", difference(bare, captured))
    check(len(Job(output).calls) > 20, "nothing was captured")
    node = Node(workspace, "node")
    trace = Trace(workspace, [node], workspace.path("unwanted"), options=["--sources", "torch"])
    muted = workspace.run("muted", node.job_command(python, script), node.environment()).out()
    trace.end()
    check(muted == bare, "in a capture of torch alone: %s", difference(bare, muted))
    job = Job(workspace.path("unwanted"))
    check(sum(len(dump.processes) for dump in job.dumps) == 1 and not job.calls, "%d calls were captured", len(job.calls))


def difference(one, other):
    return [pair for pair in zip(one.splitlines(), other.splitlines()) if pair[0] != pair[1]] or (one[-500:], other[-500:])


def without_part(workspace, python):
    """Where the Python part does not come in, the level says so; muted, nothing is sent."""
    needs_grpc(python)
    code = "import grpc; print(grpc.insecure_channel)"
    missing = "no Python part: calls of Python's gRPC are not recorded"
    for name, words, more in (("I", ["-I"], {}), ("E", ["-E"], {}), ("unwanted", [], {"RINGSIDE_PYTHON": "0"})):
        job, _, _, _ = traced(workspace, [python, *words, "-c", code], name, dict(os.environ, **more))
        check_level(job, kGrpc, kDegraded, missing)
    job, _, _, child = traced(workspace, [python, "-c", "import grpc\nprint(grpc)"], "with")
    check_level(job, kGrpc)
    there = workspace.path("changed", "grpc")
    os.makedirs(there)
    with open(os.path.join(there, "__init__.py"), "w") as file:  # no release that we know
        file.write("__version__ = '9.9'\nclass ServerInterceptor: pass\ndef server(pool, other=None): return 'served'\n")
    code = "import sys, ctypes\nsys.path.insert(0, %r)\nctypes.CDLL(%r)\nimport grpc\nprint(grpc.server(1))" % (os.path.dirname(there), extension(python))
    job, _, _, child = traced(workspace, [python, "-c", code], "unknown")
    check(child.out() == "served\n", "the program says %s", child.out() + child.err())
    reasons = [s.reason for d in job.dumps for p in d.processes.values() for s in p.sources if s.id == kGrpc]
    check(reasons[0].startswith("grpc 9.9: ImportError: "), "the level's reasons are %s", reasons)


kLoop = """
import json, os, sys, time, asyncio, grpc
from concurrent import futures
folder = sys.argv[1]
seen = []
class Service(grpc.GenericRpcHandler):
    def service(self, details):
        seen.append(dict(details.invocation_metadata).get("traceparent"))
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(Service(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel("127.0.0.1:%d" % port) as channel:
    call, n = channel.unary_unary("/loop.Service/Call"), 0
    while not os.path.exists(os.path.join(folder, "leave")):
        call(b"x")
        n += 1
        if n == 50:
            open(os.path.join(folder, "calls"), "w").close()
server.stop(None).wait()
print(json.dumps(seen))
"""


def captures(workspace, python):
    """Of a program that runs: calls are recorded, and ids sent, while a capture is on that wants them; nothing before, in between and after."""
    needs_grpc(python)
    node = Node(workspace, "node")
    child = workspace.start("loop", node.job_command(python, "-c", kLoop, workspace.conditions), node.environment())
    workspace.await_condition("calls", [child])
    found = []
    for number, sources in enumerate(("grpc", "torch,api", "grpc,nvtx")):
        output = workspace.path("trace%d" % number)
        workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "300ms", "-o", output, "--sources", sources)
        found.append(Job(output).calls)
    workspace.announce("leave")
    child.wait()
    check(len(found[0]) > 20 and not found[1] and len(found[2]) > 20, "calls: %s", [len(calls) for calls in found])
    for calls in (found[0], found[2]):
        states = collections.Counter(c.state for c in calls)
        check(states["Joined"] >= len(calls) - 4, "states: %s", states)  # at its ends a capture has halves alone
    seen = json.loads(child.out())
    runs = [bool(one) for n, one in enumerate(seen) if n == 0 or bool(one) != bool(seen[n - 1])]
    check(runs == [False, True, False, True, False], "ids were sent %s", runs)
    known = {"%016x" % c.client.span for calls in found for c in calls if c.client}
    sent = {one.split("-")[2] for one in seen if one}
    # Some go along before the instant at which the nodes agreed to begin, and after the one at which they ended.
    check(known <= sent, "%d of %d ids were sent", len(known & sent), len(known))


def extension(python):
    return subprocess.run([python, "-c", "from grpc._cython import cygrpc; print(cygrpc.__file__)"], capture_output=True, text=True).stdout.strip()


kCases = {"sync": calls("sync"), "aio": calls("aio"), "bare_server": bare_server, "same_behaviour": same_behaviour, "without_part": without_part,
          "captures": captures}


if __name__ == "__main__":
    run_case(kCases)
