#!/usr/bin/python3
"""Our own API, end to end: in C and in Python; RPCs whose halves two processes make. See annotations.py."""
import os

from annotations import Event, check_events, check_level, check_pftrace, kApi, run_case, thread_names, traced
from harness import check, kWorkloads

def api_events():
    d, c, colour = "api domain", "api category", 0xFF010203
    return [
        Event("range", "plain range"), Event("range", "range with all", d, c, colour, -9), Event("mark", "mark with all", d, c, colour, 1.5),
        Event("mark", "plain mark"), Event("counter", "api counter", payload=-12), Event("counter", "real counter", payload=0.25),
        Event("iteration", "epoch"), Event("async", "across threads"), Event("async", "across with all", d, c, colour, 1.5),
        Event("range", "on the other thread"), Event("open", "never popped")] + [Event("iteration", "step")] * 3 + [Event("range", "range by a kept name")] * 2


def api_c(workspace, program):
    check(workspace.run("bare", [program, "calls"]).out() == "", "without the shim it says something")
    job, trace, rows, _ = traced(workspace, [program, "calls"])
    check_events(job, trace, rows, kApi, api_events())
    check_level(job, kApi)
    steps = [m[5] for m in job.events[0].marks if m[0] == "iteration" and m[3] == "step"]
    check(steps == [1, 2, 3], "steps are counted %s", steps)
    check(thread_names(trace) == {"main of api_calls", "named by the api"}, "threads are called %s", thread_names(trace))
    ranges = {r.name: r for r in job.events[0].ranges}
    check(ranges["across threads"].end_tid == ranges["on the other thread"].tid != ranges["across threads"].tid, "it did not end on the other thread")
    check_pftrace(workspace, "Category=", "Colour=", "Payload=")


def api_python(workspace, python):
    script = os.path.join(kWorkloads, "api_calls.py")
    check(workspace.run("bare", [python, script, "calls"]).out() == "nothing\n", "without the shim there is something")
    job, trace, rows, child = traced(workspace, [python, script, "calls"])
    check(child.out() == "active\n", "`import ringside` in a traced process: %s", child.out())
    d = "py domain"
    check_events(job, trace, rows, kApi, [
        Event("range", "plain range"), Event("range", "range with all", d, "py category", 0xFF010203, -9), Event("range", "decorated"),
        Event("range", "pushed"), Event("mark", "mark with payload", payload=2.5), Event("mark", "mark with more than a signed word", payload=(1 << 64) - 1),
        Event("counter", "py counter", d, payload=-12), Event("counter", "py real", payload=0.25), Event("async", "across threads", payload=1),
    ] + [Event("iteration", "py step")] * 2)
    check("main of api_calls.py" in thread_names(trace), "threads are called %s", thread_names(trace))


def check_calls(job, expected):
    """expected: {function: (state, client worker, server worker, mode)}"""
    found = {c.function: (c.state, c.client.self_name if c.client else None, c.server.self_name if c.server else None,
                          (c.client or c.server).mode) for c in job.calls}
    check(found == expected, "the calls are %s, expected %s", found, expected)


def check_requests(job, expected):
    """expected: {range: the request that it belongs to, or None}"""
    for events in job.events:
        for r in events.ranges:
            if r.name in expected:
                half = events.served_by(r.context, r.process)
                check((half.name if half else None) == expected[r.name], "%s belongs to %s, expected %s", r.name, half and half.name, expected[r.name])


def api_rpc(workspace, program, python):
    job, trace, rows, _ = traced(workspace, [program, "rpc"])
    pair = ("Joined", "api_client", "api_server")
    check_calls(job, {"by_text": pair + (1,), "by_bytes": pair + (2,), "nested": pair + (0,), "failing": pair + (1,), "elsewhere": pair + (1,),
                      "inner": ("Joined", "api_server", "api_server", 1)})
    calls = {c.function: c for c in job.calls}
    check(calls["failing"].client.status == 1 and calls["by_text"].client.status == 0, "the failing call's status is %d", calls["failing"].client.status)
    check(job.calls[calls["inner"].parent].function == "nested", "inner's parent is %s", calls["inner"].parent)
    check((calls["by_text"].client.request_bytes, calls["by_text"].client.answer_bytes) == (100, 7), "bytes: %s", vars(calls["by_text"].client))
    check(calls["by_text"].client.module == "api.Service", "the service is %s", calls["by_text"].client.module)
    check_requests(job, {"between requests": None, "work of by_text": "by_text", "work of nested": "nested", "work of inner": "inner",
                         "after inner": "nested", "work of elsewhere on another thread": "elsewhere"})
    names = {row["name"] for row in rows}
    for name in ("rpc_sync#by_text(api_client -> api_server)#remote_op: work of by_text",
                 "rpc#nested(api_client -> api_server)#remote_op: rpc_sync#inner(api_server -> api_server)#remote_op: work of inner"):
        check(name in names, "the table has no row %s: %s", name, sorted(names))
    arrows = sum(e["ph"] == "s" and e["cat"] == "rpc" for e in trace)
    check(arrows == 12, "%d arrows in the trace, expected 2 for each of 6 calls", arrows)
    # The same in Python, over multiprocessing's pipe; what is malformed is no id.
    job, _, rows, _ = traced(workspace, [python, os.path.join(kWorkloads, "api_calls.py"), "rpc"], "python")
    states = sorted((c.function, c.state, c.client is not None, c.server is not None) for c in job.calls)
    check(states[:2] == [("by_bytes", "Joined", True, True), ("by_text", "Joined", True, True)] and
          [s[1:] for s in states[2:]] in ([("Orphan", False, True), ("Orphan", True, False)], [("Cut", False, True), ("Orphan", True, False)]),
          "Python's calls: %s", states)
    check_requests(job, {"work of by_text": "by_text", "work of by_bytes": "by_bytes", "work of malformed": "malformed"})


kCases = {"api_c": api_c, "api_python": api_python, "api_rpc": api_rpc}


if __name__ == "__main__":
    run_case(kCases)
