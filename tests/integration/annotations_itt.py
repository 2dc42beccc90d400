#!/usr/bin/python3
"""ITT, end to end: in C, from PyPI's module, torch and oneDNN; with a collector that was there before us. See annotations.py."""
import collections
import os
import re
import subprocess

from annotations import Event, check_events, check_level, check_pftrace, kItt, of_source, run_case, thread_names, traced
from harness import check, skip

def itt_events(chained=False):
    d = "itt domain"
    made = [
        Event("range", "first call", d), Event("range", "outer task", d), Event("range", "inner task", d), Event("range", "task of the second", "itt second"),
        Event("mark", "between the ends", d), Event("range", "task with a clock", d), Event("range", "0x0000000000001234", d),
        Event("mark", "marker with a clock", d), Event("async", "overlapped task", d), Event("async", "region", d),
        Event("async", "overlapped with a clock", d), Event("async", d, d), Event("async", d, d), Event("range", "on the other thread", d),
        Event("open", "never ended", d)]
    if chained:
        return made
    return made + [Event("range", "itt event")] + [Event("counter", "counter", d, payload=n) for n in (1, 10, 9, -11)] + [
        Event("counter", "counter", d, payload=77), Event("counter", "double counter", d, payload=2.75), Event("counter", "narrow counter", payload=-3)]


def itt_c(workspace, program):
    job, trace, rows, child = traced(workspace, [program])
    check(child.out() == "same 1 1\nsame event 1\n", "one text is not one object: %s", child.out())
    check_events(job, trace, rows, kItt, itt_events())
    check_level(job, kItt)
    check(thread_names(trace) == {"main of itt_calls", "main of itt_calls), row 2", "named by itt"}, "threads are called %s", thread_names(trace))
    ranges = {r.name: r for r in job.events[0].ranges}
    other = ranges["on the other thread"].tid
    for name in ("overlapped task", "region"):
        check(ranges[name].tid != other and ranges[name].end_tid == other, "%s did not end on the other thread", name)
    check(ranges["task of the second"].begin < ranges["inner task"].begin < ranges["outer task"].end < ranges["task of the second"].end,
          "a task_end ended another domain's task")
    check_pftrace(workspace, "Domain=")


def itt_chain(workspace, program, collector):
    """Intel's reference collector, set before us, writes the same log as without us."""
    def logged(name, traced_too):
        folder = workspace.path(name)
        os.makedirs(folder)
        environment = dict(os.environ, INTEL_LIBITTNOTIFY64=collector, INTEL_LIBITTNOTIFY_LOG_DIR=folder)
        if traced_too:
            told = traced(workspace, [program], name + "-run", environment)
        else:
            told = workspace.run(name + "-run", [program], environment)
        log, = os.listdir(folder)
        with open(os.path.join(folder, log)) as file:
            # ITT does not even make a name for a call that nobody wants; we want more calls than this collector.
            lines = [re.sub("0x[0-9a-f]+|[0-9]{6,}", "N", line) for line in file.read().splitlines() if "string_handle_create" not in line]
        return told, lines
    _, alone = logged("alone", False)
    (job, trace, rows, _), both = logged("both", True)
    check(len(alone) > 15 and alone == both, "the collector alone wrote %d lines, behind us %d: %s", len(alone), len(both),
          [pair for pair in zip(alone, both) if pair[0] != pair[1]][:3])
    known = collections.Counter(e.name for e in of_source(job, kItt))
    wanted = collections.Counter(e.name for e in itt_events(chained=True))
    check(not wanted - known, "beside another collector these are missing: %s", wanted - known)


kPythonItt = """
import ittapi
with ittapi.task("with task", domain="py itt"):
    pass
ittapi.thread_set_name("named in python")
event = ittapi.event("py event")
event.begin()
event.end()
"""


def itt_python(workspace, python):
    job, trace, rows, _ = traced(workspace, [python, "-c", kPythonItt])
    found = of_source(job, kItt)
    check(Event("range", "with task", "py itt") in found and Event("range", "py event") in found, "PyPI's ittapi: %s", found)
    check("named in python" in thread_names(trace), "threads are called %s", thread_names(trace))
    check_events(job, trace, rows, kItt, found)


kTorchItt = """
import torch
torch.profiler.itt.range_push("pushed")
torch.ones(2)
torch.profiler.itt.mark("marked")
torch.profiler.itt.range_pop()
with torch.autograd.profiler.emit_itt():
    torch.nn.Linear(8, 8)(torch.randn(2, 8))
torch.nn.Conv2d(16, 32, 3)(torch.randn(2, 16, 32, 32))
"""


def itt_torch(workspace, python):
    if subprocess.run([python, "-c", "import torch; torch.profiler.itt.range_push('x')"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("the torch of %s was built without ITT" % python)
    job, trace, rows, _ = traced(workspace, [python, "-c", kTorchItt])
    found = collections.Counter(of_source(job, kItt))
    for wanted in (Event("range", "pushed", "PyTorch"), Event("range", "marked", "PyTorch"), Event("range", "aten::linear", "PyTorch")):
        check(found[wanted] == 1, "torch's %s is there %d times", wanted, found[wanted])
    onednn = [e for e in found if e.domain.startswith("dnnl::")]
    check(any(e.name.startswith("convolution") for e in onednn) and all(e.kind == "range" for e in onednn), "oneDNN's tasks: %s", onednn)
    check_events(job, trace, rows, kItt, list(found.elements()))
    ranges = {r.name: r for r in job.events[0].ranges if r.source in (1, kItt)}
    inside, around = ranges["aten::ones"], ranges["pushed"]
    check(around.begin < inside.begin and inside.end < around.end and inside.tid == around.tid, "torch's operator is not inside the user's task")


def itt_onednn(workspace, python):
    """oneDNN inside Debian's torch, which has no ITT of its own."""
    script = "import torch\nfor i in range(3): torch.nn.functional.conv2d(torch.ones(2, 16, 32, 32), torch.ones(32, 16, 3, 3))"
    job, trace, rows, _ = traced(workspace, [python, "-c", script])
    found = of_source(job, kItt)
    if not found:
        skip("the oneDNN of %s emits no tasks" % python)
    check(all(e.kind == "range" and e.domain for e in found) and len(found) % 3 == 0, "oneDNN's tasks: %s", found)
    check_events(job, trace, rows, kItt, found)


kCases = {"itt_c": itt_c, "itt_chain": itt_chain, "itt_python": itt_python, "itt_torch": itt_torch, "itt_onednn": itt_onednn}


if __name__ == "__main__":
    run_case(kCases)
