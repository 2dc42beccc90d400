#!/usr/bin/python3
"""A training loop under `ringside run`: the ranges that torch's own profiler counts, forward and backward linked, steps counted."""
import json
import os

from harness import check, kPython, kWorkloads, main
from rsd.index import Job

kSteps = 5
kForward, kBackward = 0, 1


def torchs_count(workspace, script):
    lines = workspace.run("profiled", [kPython, script, "--steps", str(kSteps), "--profile"]).out().splitlines()
    return {n: int(c) for n, _, c in (l[len("count "):].partition("\t") for l in lines if l.startswith("count "))}


def test(workspace):
    script = os.path.join(kWorkloads, "training.py")
    counted = torchs_count(workspace, script)
    output = workspace.path("run")
    workspace.ringside("run", "-o", output, "--", kPython, script, "--steps", str(kSteps))
    job = Job(output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    events = job.events[0]
    ours = {}
    for r in events.ranges:
        ours[r.name] = ours.get(r.name, 0) + 1
    # The import of torch itself runs some operators before the profiler is on: ours may have more of those, never fewer.
    short = {n: (ours.get(n, 0), c) for n, c in counted.items() if ours.get(n, 0) < c}
    check(not short, "fewer ranges than torch's profiler (ours, torch's): %s", short)
    exact = [n for n in counted if "Backward" in n or "AccumulateGrad" in n or "Optimizer" in n or n in ("aten::linear", "aten::addmm", "aten::mm")]
    check(len(exact) > 10 and all(ours[n] == counted[n] for n in exact), "not as torch's profiler: %s", {n: (ours[n], counted[n]) for n in exact})
    backward = [r for r in events.ranges if r.detail == kBackward]
    linked = [(b, events.forward_of(b)) for b in backward if events.forward_of(b)]
    check(len(backward) >= 8 * kSteps, "%d backward ranges", len(backward))
    wrong = [(b.name, f.name) for b, f in linked if f.end > b.begin]
    check(not wrong, "a backward before its forward: %s", wrong)
    pairs = {(b.name.rpartition(": ")[2], f.name) for b, f in linked}
    for wanted in (("AddmmBackward0", "aten::addmm"), ("ReluBackward0", "aten::relu"), ("PowBackward0", "aten::pow"), ("SumBackward0", "aten::sum")):
        check(wanted in pairs, "%s is not linked to %s: %s", *wanted, sorted(pairs))
    steps = [m for m in events.marks if m[0] == "iteration"]
    check([m[5] for m in steps] == list(range(1, kSteps + 1)), "the iterations are %s", [(m[3], m[5]) for m in steps])
    trace = workspace.path("trace.json")
    told = json.loads(workspace.ringside("export", output, "-o", trace, "--json").out())
    check(told["fwdbwd"] > 0, "the export has no forward-backward arrows: %s", told)
    print("%d names as torch's profiler counts them, %d of %d backward ranges linked, %d steps, %d arrows" % (
        len(counted), len(linked), len(backward), len(steps), told["fwdbwd"]), flush=True)


main(test, "training")
