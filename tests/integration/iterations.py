#!/usr/bin/python3
"""`ringside trace --iterations N`: exactly N iterations of each process in the dumps (as the independent reader trims them), the table and the export;
who has fewer says so. iterations.py exact|range|nodes|short|nvtx|torch PROGRAM"""
import json
import os
import signal
import sys

from harness import check, kCommand, kPython, kWorkloads, main, Node, skip, wait_until
from rsd.index import Job

kCount = 5


def api_job(node, program, name, period_us, *mode):
    """A process that iterates; returns when its segment is there."""
    before = len(node.segments())
    child = node.workspace.start(name, node.job_command(program, str(period_us), *mode), node.environment())
    expected = before + (2 if "child" in mode else 1)
    wait_until("the segments of %s" % name, lambda: len(node.segments()) >= expected, children=[child])
    return child


def trace(workspace, node, *options, expect=0, count=kCount):
    output = workspace.path("trace-%d" % len(workspace.children))
    told = workspace.json("trace", "--hosts", node.endpoint, "--iterations", str(count), "-o", output, *options, expect=expect)
    return output, {p["pid"]: p for p in told["processes"]}


def read(output):
    """The job whole, and trimmed."""
    whole, trimmed = Job(output), Job(output)
    check(not whole.problems(), "the reader: %s", "; ".join(whole.problems()))
    trimmed.trim()
    return whole, trimmed


def named(job, pid, name):
    """Of a process: the numbers that ranges of that name carry, in order of time."""
    return [r.payload for d, e in zip(job.dumps, job.events) for r in sorted(e.ranges, key=lambda r: r.begin)
            if r.name == name and d.processes[r.process].pid == pid]


def interval(job, pid):
    events, dump = job.events[0], job.dumps[0]
    return next(kept for process, kept in events.iterations.items() if dump.processes[process].pid == pid)


def check_numbers(found, count, what):
    check(len(found) == count and found == list(range(found[0], found[0] + count)), "%s: %s, expected %d in a row", what, found, count)


def check_process(whole, trimmed, pid, marks=kCount + 1):
    """N iterations with exactly what was between them."""
    for name in ("step", "work"):
        check_numbers(named(trimmed, pid, name), kCount, "%s of %d" % (name, pid))
        check(len(named(whole, pid, name)) > kCount, "the dump holds no more %s than were asked for: nothing was trimmed", name)
    kept = interval(whole, pid)
    check((kept.asked, kept.count) == (kCount, kCount), "the dump says %d of %d", kept.count, kept.asked)
    steps = [m[5] for m in trimmed.events[0].marks if m[0] == "iteration" and trimmed.dumps[0].processes[m[1]].pid == pid]
    check(len(steps) == marks and steps == list(range(steps[0], steps[0] + marks)), "%d boundaries of %d: %s", len(steps), pid, steps)
    beats = [r.payload for r in whole.events[0].ranges if r.name == "beat" and whole.dumps[0].processes[r.process].pid == pid and
             kept.begin_ticks <= r.begin < kept.end_ticks]
    found = named(trimmed, pid, "beat")
    check(set(beats) <= set(found) and len(found) <= len(beats) + 1 and beats, "beats of %d: %s, expected %s", pid, found, beats)
    return steps


def check_views(workspace, output, processes, steps=kCount):
    """The table and the export show N of each process."""
    rows = {r["name"]: r["count"] for r in workspace.json("table", output, "--row-limit", "0")["rows"]}
    check((rows["step"], rows["work"]) == (processes * kCount,) * 2, "the table: %s", rows)
    path = workspace.path("trace.json")
    workspace.ringside("export", output, "-o", path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    for name, expected in (("step", kCount), ("work", kCount), ("ProfilerStep", steps)):
        found = sum(e.get("ph") == "X" and e["name"].partition("#")[0] == name for e in events)
        check(found == processes * expected, "the export has %d of %s, expected %d", found, name, processes * expected)


def exact(workspace, program):
    node = Node(workspace, "node")
    jobs = [api_job(node, program, "quick", 1500, "child"), api_job(node, program, "slow", 20000)]
    output, told = trace(workspace, node)
    whole, trimmed = read(output)
    for job in jobs:
        check_process(whole, trimmed, job.pid)
        check(told[job.pid]["iterations"]["count"] == kCount and told[job.pid]["iterations"]["name"] == "turn", "trace says %s", told[job.pid])
    (worker,) = [p for pid, p in told.items() if pid not in [j.pid for j in jobs]]
    check(worker["iterations"]["beside"] and worker["good"], "the child that never iterates: %s", worker)
    kept = interval(whole, worker["pid"])
    others = [interval(whole, j.pid) for j in jobs]
    check((kept.begin_ticks, kept.end_ticks) == (min(o.begin_ticks for o in others), max(o.end_ticks for o in others)), "its interval is %s", kept)
    check(len(named(whole, worker["pid"], "beat")) > len(named(trimmed, worker["pid"], "beat")) > kCount, "its beats are not trimmed")
    check_views(workspace, output, 2)
    text = workspace.ringside("table", output).out()
    check("Iterations: 5 of turn in 2 processes, none in 1 process" in text, "the table's foot:\n%s", text[-600:])
    # From a round number on.
    output, told = trace(workspace, node, "--start-iteration-roundup", "10")
    whole, trimmed = read(output)
    for job in jobs:
        steps = check_process(whole, trimmed, job.pid)
        check(steps[0] % 10 == 0 and steps[0] == told[job.pid]["iterations"]["first"], "they begin at %s", steps)


def of_range(workspace, program):
    node = Node(workspace, "node")
    jobs = [api_job(node, program, "quick", 1500), api_job(node, program, "never", 4000, "never")]
    output, told = trace(workspace, node, "--iterations-of", "step", expect=1)
    whole, trimmed = read(output)
    # Between N begins lie N - 1 boundaries of another name.
    check_process(whole, trimmed, jobs[0].pid, marks=kCount - 1)
    check(told[jobs[0].pid]["good"], "trace says %s", told[jobs[0].pid])
    lacking = told[jobs[1].pid]
    check(not lacking["good"] and lacking["reason"].startswith("no iteration of step seen"), "the one without: %s", lacking)
    # Armed, the same is cut out of the window.
    workspace.ringside("arm", "--hosts", node.endpoint)
    output, told = trace(workspace, node, "--iterations-of", "work", "--pid", str(jobs[0].pid))
    whole, trimmed = read(output)
    check_numbers(named(trimmed, jobs[0].pid, "work"), kCount, "work, armed")
    workspace.ringside("disarm", "--hosts", node.endpoint)


def nodes(workspace, program):
    two = [Node(workspace, "first"), Node(workspace, "second", skew_ns=3000000)]
    jobs = [api_job(two[0], program, "quick", 1500), api_job(two[1], program, "slow", 30000)]
    output = workspace.path("nodes")
    told = workspace.json("trace", "--hosts", ",".join(n.endpoint for n in two), "--iterations", str(kCount), "-o", output)
    check([p["iterations"]["count"] for p in told["processes"]] == [kCount] * 2, "trace says %s", told["processes"])
    _, trimmed = read(output)
    for job in jobs:
        check_numbers(named(trimmed, job.pid, "step"), kCount, "step of %d" % job.pid)
    check_views(workspace, output, 2)


def short(workspace, program):
    node = Node(workspace, "node")
    job = api_job(node, program, "stops", 2000)
    output = workspace.path("short")
    running = workspace.start("trace", [kCommand, "trace", "--hosts", node.endpoint, "--iterations", "100000", "--timeout", "3s", "-o", output,
                                        "--json"])
    wait_until("the trace to count", lambda: "capturing" in running.err(), children=[running])
    job.send(signal.SIGUSR1)
    running.wait(expect=1)
    (told,) = json.loads(running.out())["processes"]
    count = told["iterations"]["count"]
    check(told["reason"] == "%d of 100000 iterations of turn until the timeout" % count and not told["good"], "trace says %s", told)
    whole, trimmed = read(output)
    # What it did instead is what one wants to see.
    check_numbers(named(trimmed, job.pid, "step"), count, "step") if count else None
    check(named(trimmed, job.pid, "idle") == named(whole, job.pid, "idle") != [], "what came after the last iteration is not shown")
    # No iteration at all, of that name.
    _, told = trace(workspace, node, "--iterations-of", "nothing of ours", "--timeout", "1s", expect=1)
    check(told[job.pid]["reason"].startswith("no iteration of nothing of ours seen"), "trace says %s", told)


kNvtx = """
import itertools, nvtx, time
for n in itertools.count():
    with nvtx.annotate("turn", payload=n):
        with nvtx.annotate("inside", payload=n):
            time.sleep(0.002)
"""


def nvtx_ranges(workspace, python):
    if not python:
        skip("no NVTX for Python here (tools/setup_annotations installs it)")
    node = Node(workspace, "node")
    job = workspace.start("nvtx", node.job_command(python, "-c", kNvtx), node.environment())
    wait_until("its NVTX", lambda: [p for p in workspace.json("ps", "--hosts", node.endpoint) if p["pid"] == job.pid and p["sources"]], children=[job])
    output, told = trace(workspace, node, "--iterations-of", "turn")
    whole, trimmed = read(output)
    check(told[job.pid]["iterations"]["name"] == "turn" and told[job.pid]["good"], "trace says %s", told[job.pid])
    for name in ("turn", "inside"):
        check_numbers(named(trimmed, job.pid, name), kCount, name)
        check(len(named(whole, job.pid, name)) > kCount, "the dump holds no more %s than were asked for: nothing was trimmed", name)


def torch_loop(workspace, _):
    node = Node(workspace, "node")
    job = workspace.start("sgd", node.job_command(kPython, "-W", "ignore", os.path.join(kWorkloads, "sgd_loop.py"), "--conditions", workspace.conditions),
                          node.environment())
    workspace.await_condition("turning", [job])
    output, told = trace(workspace, node)
    workspace.announce("leave")
    whole, trimmed = read(output)
    check(told[job.pid]["iterations"]["name"] == "Optimizer.step#SGD.step", "trace says %s", told[job.pid])
    workers = [p for pid, p in told.items() if pid != job.pid and p.get("iterations")]
    check(workers and all(p["iterations"]["beside"] for p in workers), "the DataLoader's worker: %s", told)
    own = [r for r in trimmed.events[0].ranges if trimmed.dumps[0].processes[r.process].pid == job.pid]
    forward = sorted(int(r.name.split()[1]) for r in own if r.name.startswith("forward "))
    check_numbers(forward, kCount, "forward passes")
    for name, each in (("Optimizer.step#SGD.step", 1), ("aten::addmm", 2), ("aten::relu", 1)):
        found = sum(r.name == name for r in own)
        check(found == each * kCount, "%d of %s, expected %d", found, name, each * kCount)
    check(len(whole.events[0].ranges) > len(trimmed.events[0].ranges), "nothing was trimmed")
    path = workspace.path("trace.json")
    workspace.ringside("export", output, "-o", path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    steps = [e["name"] for e in events if e.get("ph") == "X" and e["name"].startswith("ProfilerStep#")]
    check(len(steps) == kCount, "the export's steps: %s", steps)
    rows = {r["name"]: r["count"] for r in workspace.json("table", output, "--row-limit", "0")["rows"]}
    check(rows["Optimizer.step#SGD.step"] == kCount and rows["aten::addmm"] == 2 * kCount, "the table: %s", rows)
    job.wait()


kCases = {"exact": exact, "range": of_range, "nodes": nodes, "short": short, "nvtx": nvtx_ranges, "torch": torch_loop}

if __name__ == "__main__":
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2] if len(sys.argv) > 2 else None), "iterations-" + sys.argv[1])
