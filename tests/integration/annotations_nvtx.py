#!/usr/bin/python3
"""NVTX, end to end: in C, from PyPI's module and from torch; without a capture; with a tool that was there before us. See annotations.py."""
import os
import subprocess

from annotations import Event, check_events, check_level, check_pftrace, kNvtx, of_source, run_case, thread_names, traced
from harness import check, skip

def nvtx_events():
    kGreen, kRed = 0xFF00FF00, 0x80FF0000
    domain, wide = "domain narrow", "domain wide \u00f6"
    return [
        Event("range", "push narrow"), Event("range", "push wide \u00fc\u20ac\U0001f600"),
        Event("range", "push with all", "", "category seven", kGreen, -42), Event("range", "push wide message", "", "category acht \u00e4"),
        Event("range", "", "", "9"),
        Event("mark", "mark narrow"), Event("mark", "mark wide \u00df"),
        Event("mark", "payload u64", payload=(1 << 64) - 1), Event("mark", "payload i64", payload=-5), Event("mark", "payload double", payload=2.5),
        Event("mark", "payload u32", payload=(1 << 32) - 1), Event("mark", "payload i32", payload=-7), Event("mark", "payload float", payload=0.5),
        Event("mark", "payload zero", payload=0),
        Event("range", "default around"), Event("range", "registered narrow", domain, "seven of the domain", kRed, 42), Event("mark", "between the pops"),
        Event("mark", "registered wide \u00e9", wide, "sieben \u00fc", kRed, 42), Event("mark", "in no domain by a null handle"),
        Event("async", "started in the domain", domain, payload=-1.25), Event("async", "start narrow"), Event("async", "start wide \u00e5"),
        Event("async", "start with colour", colour=0xFF112233), Event("open async", "started and never ended"),
        Event("range", "on the other thread"), Event("range", "below all"), Event("mark", "back from the deep"), Event("open", "never popped"),
    ] + [Event("range", "deep")] * 63


def nvtx_c(workspace, program):
    plain = workspace.run("plain", [program]).out()
    job, trace, rows, child = traced(workspace, [program])
    check(child.out() == plain, "NVTX's calls return something else while a capture runs:\n%s\nwithout:\n%s", child.out(), plain)
    check_events(job, trace, rows, kNvtx, nvtx_events())
    check_level(job, kNvtx)
    check(thread_names(trace) == {"main of nvtx_calls", "main of nvtx_calls), row 2", "w\u00f6rker of the test"}, "threads are called %s", thread_names(trace))
    events = job.events[0]
    ranges = {r.name: r for r in events.ranges}
    other = ranges["on the other thread"].tid
    for name in ("start narrow", "start wide \u00e5", "start with colour", "started in the domain"):
        check(ranges[name].tid != other and ranges[name].end_tid == other, "%s did not end on the other thread", name)
    outer, inner = ranges["default around"], ranges["registered narrow"]
    check(outer.begin < inner.begin < outer.end < inner.end, "a pop ended another domain's range: %s %s", vars(outer), vars(inner))
    losses = next(iter(job.dumps)).footer.processes[0].losses
    check(losses[1] == 7, "70 pushes on top of 1, 64 places: 7 are passed over, counted were %d", losses[1])
    check_pftrace(workspace, "Domain=", "Category=", "Colour=", "Payload=")


def nvtx_idle(workspace, program):
    """Without a capture: the same output, nothing recorded, no file left behind."""
    root = os.path.join(workspace.root, "idle")
    os.makedirs(root, mode=0o700)
    shim = os.environ.get("RINGSIDE_SHIM") or os.path.join(os.environ["RINGSIDE_BUILD"], "inject", "libringside_inject.so")
    idle = workspace.run("idle", [program], dict(os.environ, LD_PRELOAD=shim, RINGSIDE_DIR=root, RINGSIDE_JOB="job"))
    check(idle.out() == workspace.run("bare", [program]).out(), "another output under the shim")
    check(os.listdir(os.path.join(root, "job")) == ["control"], "left behind: %s", os.listdir(os.path.join(root, "job")))
    off = workspace.run("off", ["/usr/bin/env"], dict(os.environ, LD_PRELOAD=shim, RINGSIDE_DIR=root, RINGSIDE_INJECTION="0"))
    check("NVTX_INJECTION64_PATH" not in off.out(), "RINGSIDE_INJECTION=0 sets the variables all the same")
    on = dict(l.split("=", 1) for l in workspace.run("on", ["/usr/bin/env"], dict(os.environ, LD_PRELOAD=shim, RINGSIDE_DIR=root)).out().splitlines() if "=" in l)
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"):
        check(os.path.samefile(on[name], shim) and "RINGSIDE_NEXT_" + name not in on, "%s is %s", name, on.get(name))
    # What a traced parent hands down does not trace a child that is not preloaded.
    alone = workspace.run("alone", [program], dict(os.environ, NVTX_INJECTION64_PATH=shim, RINGSIDE_DIR=root, RINGSIDE_JOB="alone"))
    check(alone.out() == idle.out() and not os.path.exists(os.path.join(root, "alone")), "the variable alone traces a program")


def nvtx_chain(workspace, program, tool):
    """The tool that was set before us gets the same calls as without us, and the program the same answers."""
    log = workspace.path("tool.log")
    environment = dict(os.environ, NVTX_INJECTION64_PATH=tool, NVTX_TOOL_LOG=log)
    plain = workspace.run("plain", [program], environment).out()
    with open(log) as file:
        calls = file.read()
    check(len(calls.splitlines()) > 100, "the tool alone sees %s", calls)
    job, trace, rows, child = traced(workspace, [program], environment=environment)
    check(child.out() == plain, "the tool's answers are not the program's:\n%s\nwithout us:\n%s", child.out(), plain)
    with open(log) as file:
        check(file.read() == calls, "the tool saw other calls than without us: %s", log)
    check_events(job, trace, rows, kNvtx, nvtx_events())
    missing = dict(environment, NVTX_INJECTION64_PATH="/nowhere/tool.so")
    job, _, _, _ = traced(workspace, [program], "missing", missing)
    check(len(of_source(job, kNvtx)) == len(nvtx_events()), "a missing tool takes events with it")
    check_level(job, kNvtx, reason="the tool that NVTX_INJECTION64_PATH named before us can't be loaded")


kPythonNvtx = """
import nvtx
@nvtx.annotate("annotated", color=0x0000ff, domain="py", category="cat", payload=7)
def f():
    with nvtx.annotate("inside", color="green"):
        pass
f()
nvtx.push_range("pushed", color=0xff0000, payload=2.5)
nvtx.pop_range()
handle = nvtx.start_range("started", domain="py", color=1)
nvtx.end_range(handle)
nvtx.mark("marked", color=0x123456, domain="py", category=3)
"""


def nvtx_python(workspace, python):
    job, trace, rows, _ = traced(workspace, [python, "-c", kPythonNvtx])
    check_events(job, trace, rows, kNvtx, [
        Event("range", "annotated", "py", "cat", 0x0000FF, 7), Event("range", "inside", colour=0x008000), Event("range", "pushed", colour=0xFF0000, payload=2.5),
        Event("async", "started", "py", colour=1), Event("mark", "marked", "py", "3", 0x123456)])


kTorchNvtx = """
import torch
torch.cuda.nvtx.range_push("pushed")
torch.ones(2)
torch.cuda.nvtx.mark("marked")
torch.cuda.nvtx.range_pop()
torch.cuda.nvtx.range_end(torch.cuda.nvtx.range_start("started"))
with torch.cuda.nvtx.range("with {}", "arguments"):
    pass
"""


def nvtx_torch(workspace, python):
    if subprocess.run([python, "-c", "import torch; torch.cuda.nvtx.mark('x')"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("the torch of %s was built without NVTX" % python)
    job, trace, rows, _ = traced(workspace, [python, "-c", kTorchNvtx])
    check_events(job, trace, rows, kNvtx, [Event("range", "pushed"), Event("mark", "marked"), Event("async", "started"), Event("range", "with arguments")])
    ranges = {r.name: r for r in job.events[0].ranges}
    inside, around = ranges["aten::ones"], ranges["pushed"]
    check(around.begin < inside.begin and inside.end < around.end and inside.tid == around.tid, "torch's operator is not inside the user's range")


kCases = {"nvtx_c": nvtx_c, "nvtx_idle": nvtx_idle, "nvtx_chain": nvtx_chain, "nvtx_python": nvtx_python, "nvtx_torch": nvtx_torch}


if __name__ == "__main__":
    run_case(kCases)
