#!/usr/bin/python3
"""The time of day jumps by an hour in the middle of a range, for the job and for its agent: durations stay right, and the next capture's clock
snapshot is a new one.

    clock.py CASE
"""
import os

from fault import check, kFaults, kPython, kShim, Node, read, run, skip, Trace
import subprocess

from harness import OffInTime

kStepS = 3600
kOffNs = 20_000_000
kFake = os.path.join(kFaults, "libstepped_clock.so")
kJob = """
import os, sys, time, torch
from torch.autograd.profiler import record_function
folder = sys.argv[1]
def say(name): open(os.path.join(folder, name), "w").close()
def await_word(name):
    while not os.path.exists(os.path.join(folder, name)): time.sleep(0.005)
say("ready")
for n in range(2):
    await_word("go.%d" % n)
    begin = time.monotonic_ns()
    with record_function("timed"):
        say("inside.%d" % n)
        await_word("out.%d" % n)
    print("timed", time.monotonic_ns() - begin, time.time_ns() - time.monotonic_ns(), flush=True)
    say("done.%d" % n)
await_word("leave")
"""


def stepped(workspace):
    check(os.path.exists(kFake), "%s is not built", kFake)
    if subprocess.run([kPython, "-c", "import torch"], capture_output=True).returncode != 0:
        skip("%s has no torch" % kPython)
    clock = workspace.path("clock")
    os.environ.update(STEPPED_CLOCK=clock, LD_PRELOAD=kFake)
    node = Node(workspace, "node")
    del os.environ["LD_PRELOAD"]
    job = workspace.start("job", ["env", "LD_PRELOAD=%s:%s" % (kShim, kFake), kPython, "-W", "ignore", "-c", kJob, workspace.conditions],
                          dict(node.environment(), STEPPED_CLOCK=clock))
    workspace.await_condition("ready", [job])
    offsets = []
    for n in range(2):
        trace = Trace(workspace, [node], workspace.path("trace-%d" % n))
        workspace.announce("go.%d" % n)
        workspace.await_condition("inside.%d" % n, [job])
        if n == 0:
            with open(clock + ".new", "w") as out:
                out.write("%d\n" % kStepS)
            os.rename(clock + ".new", clock)
        workspace.announce("out.%d" % n)
        workspace.await_condition("done.%d" % n, [job])
        told = trace.end()
        check(told["order_violations"] == 0, "%s", told)
        offsets.append(judge(workspace, trace.output, job.out().splitlines()[n].split()))
    check(abs(offsets[1] - offsets[0] - kStepS * 1e9) < 1e9, "the clock snapshots are %.3f s apart, the step was %d s", (offsets[1] - offsets[0]) / 1e9, kStepS)
    workspace.announce("leave")
    job.wait()
    node.stop()
    print("two ranges, one with a step of %d s inside: right within %d ms; the second capture's snapshot has the step" % (kStepS, kOffNs // 1_000_000), flush=True)


def judge(workspace, output, told):
    """@return by how much the process's time of day was ahead of its monotonic clock when the capture began"""
    job = read(output)
    (timed,) = [r for r in job.events[0].ranges if r.name == "timed"]
    duration = job.dumps[0].duration_ns(timed.end - timed.begin)
    check(abs(duration - int(told[1])) < kOffNs, "the range lasted %.3f ms, the job says %.3f", duration / 1e6, int(told[1]) / 1e6, failure=OffInTime)
    rows = {r["name"]: r for r in workspace.json("table", output)["rows"]}
    check(abs(rows["timed"]["cpu_time_total_us"] * 1000 - duration) < 1000, "the table has %s", rows["timed"])
    (process,) = job.dumps[0].processes.values()
    return process.capture_clock.realtime_ns - process.capture_clock.monotonic_ns


run({"stepped": stepped})
