#!/usr/bin/python3
"""`ringside steps` and `ringside ranges` of a job of two ranks on two GPUs each, from its programs' calls to the numbers: the program, an agent, the shim, and
the fakes of libcuda and libcupti (tests/cupti), whose streams overlap, collectives among them.

    gpu_steps.py RELEASE        of CUPTI, as tests/cupti/cupti.py

What the second reader adds up from the dump the long way is what the command prints, to the nanosecond; the exported files of the ranks have each iteration
on each stream as it finds it, and tell HolisticTraceAnalysis the same, waits for streams or not.
"""
import json
import os
import sys

from harness import check, kSource, main, OffInTime, skip, wait_until

sys.path.insert(0, os.path.join(kSource, "tests", "cupti"))
from exports import length, python_of_oracles, read_by, union
from harness import Node
from lab import Lab
from rsd.index import Job

kRanks, kSteps = 2, 4
kNccl = "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"


def words_of(rank, late):
    """What a rank's program does. Times are ticks, some 0.4 ns; a step takes 0.3 ms of its thread, and its work ends in a later one at times."""
    words = ["cuda", "init"] + (["runtime"] if rank == 1 else [])
    for step in range(kSteps):
        words += ["iteration:step", "push:step", "push:forward", "shape:0:1000:%d" % (150000 + 50000 * rank), "copy", "kernel:ampere_sgemm_128x64_tn:7",
                  "push:attention", "shape:0:90000:%d" % (200000 + 100000 * step), "kernel:_Z7softmaxPf:8", "memset", "pop", "pop", "host:200",
                  "push:backward", "shape:0:50000:400000", "kernel:%s:20" % kNccl, "shape:1:20000:250000", "kernel:ampere_sgemm_128x64_tn:7",
                  "shape:1:180000:300000", "kernel:%s:21" % kNccl, "shape:1:700000:30000", "copy", "pop", "pop", "host:100"]
        words += ["host:400", "sync:7"]
    return words + ["host:300", "iteration:step"] + (["host:2000", "shape:0:0:1000", "kernel:late:7"] if late else [])


def ran(lab, late=False):
    """@param late  launch something after the last boundary
    @return the directory with the dumps of one run"""
    name = "gpus%d" % len(lab.workspace.children)
    node = Node(lab.workspace, name, capture_from_start=True, extra=["--name", "all"])
    ranks = [lab.workspace.start("%s-rank%d" % (name, rank), lab.program_words(words_of(rank, late)), lab.environment(node, RANK=str(rank)))
             for rank in range(kRanks)]
    for child in ranks:
        child.wait()
    wait_until("its segments to go", lambda: not node.segments())
    node.stop()
    return lab.workspace.path("output", name, "all")


# --- the long way ---

class Expected:
    """One process of a dump, in nanoseconds of its node."""

    def __init__(self, dump, events, process):
        self.ns, self.events, self.process = dump.node_ns, events, process
        self.work = [w for w in events.gpu.work if w.process == process and w.what in ("kernel", "copy", "memset")]
        self.waits = [w for w in events.gpu.work if w.process == process and w.what == "sync"]
        bounds = sorted(self.ns(m[4]) for m in events.marks if m[0] == "iteration" and m[1] == process)
        self.steps = list(zip(bounds, bounds[1:]))

    def spans(self, devices, kinds):
        kind = lambda w: "copy" if w.what != "kernel" else "communication" if "ncclDev" in w.name else "compute"
        return [(self.ns(w.begin), self.ns(w.end)) for w in self.work if getattr(w, "device", 0) in devices and kind(w) in kinds]

    def times(self, devices, window=None):
        """As the command's JSON has them."""
        everything = self.spans(devices, ("compute", "communication", "copy"))
        begin, end = window or (min(b for b, _ in everything), max(e for _, e in everything))

        def covered(*kinds):
            return length(union((max(b, begin), min(e, end)) for b, e in self.spans(devices, kinds) if b < end and e > begin))
        compute, kernels, busy = covered("compute"), covered("compute", "communication"), covered("compute", "communication", "copy")
        communication = covered("communication")
        ns = {"time_us": end - begin, "compute_us": compute, "communication_us": communication, "exposed_communication_us": kernels - compute,
              "copies_us": busy - kernels, "idle_us": end - begin - busy}
        return {**{key: value / 1000 for key, value in ns.items()},
                "overlap_percent": 100 * (communication - kernels + compute) / communication if communication else 0.0}

    def iterations(self):
        """By (number, device, stream): from the first work's begin that was launched within it to the last one's end."""
        spans = {}
        for w in self.work:
            launched = self.ns(self.events.gpu.call_of(w).begin)
            for n, (begin, end) in enumerate(self.steps):
                if begin <= launched < end:
                    spans.setdefault((n, w.device, w.stream), []).append((self.ns(w.begin), self.ns(w.end)))
        return {key: (min(b for b, _ in each), max(e for _, e in each)) for key, each in spans.items()}

    def ranges(self):
        """By (name, device, stream): [calls, total, least, most, on the CPU, kernels, copies], in ns."""
        launched = [(w, self.events.gpu.call_of(w)) for w in self.work]
        rows = {}
        for r in self.events.ranges:
            streams = {}
            for w, call in launched:
                if r.process == self.process and call.thread == r.tid and r.begin <= call.begin <= r.end:
                    streams.setdefault((w.device, w.stream), []).append(w)
            for (device, stream), work in streams.items():
                span = max(self.ns(w.end) for w in work) - min(self.ns(w.begin) for w in work)
                kernels = sum(w.what == "kernel" for w in work)
                row = rows.setdefault((r.name, device, stream), [0, 0, span, 0, 0, 0, 0])
                row[:] = [row[0] + 1, row[1] + span, min(row[2], span), max(row[3], span), row[4] + self.ns(r.end) - self.ns(r.begin), row[5] + kernels,
                          row[6] + len(work) - kernels]
        return rows


def same(told, expected, what):
    for key, value in expected.items():
        check(abs(told[key] - value) < 1e-6, "%s: %s is %s, expected %s: %s", what, key, told[key], value, told)


def check_steps(workspace, directory, expected):
    told = workspace.json("steps", directory)
    rows = {(d["rank"], d["device"]): d for d in told["devices"]}
    check(set(rows) == {(rank, device) for rank in range(kRanks) for device in (0, 1, "all")}, "rows: %s", sorted(rows, key=str))
    for (rank, device), row in rows.items():
        one, devices = expected[rank], (0, 1) if device == "all" else (device,)
        same(row["trace"], one.times(devices), "rank %d, device %s" % (rank, device))
        check(len(row["iterations"]) == len(one.steps) == kSteps, "iterations: %s", row["iterations"])
        for step, window in zip(row["iterations"], one.steps):
            same(step, one.times(devices, window), "rank %d, device %s, iteration %d" % (rank, device, step["number"]))
        for key in ("time_us", "compute_us", "exposed_communication_us", "copies_us", "idle_us"):
            check(abs(row["sum"][key] - sum(step[key] for step in row["iterations"])) < 1e-6, "the sum of %s: %s", key, row["sum"])
    # Where a program was held up between two calls their work may not overlap.
    whole = [rows[rank, "all"]["trace"] for rank in range(kRanks)]
    check(all(min(t["exposed_communication_us"], t["copies_us"]) > 0 and t["overlap_percent"] > 0 for t in whole), "too little is shown: %s", whole,
          failure=OffInTime)
    slowest = max(((end - begin, rank, n) for rank, one in expected.items() for n, (begin, end) in enumerate(one.steps)))
    check(abs(told["slowest_iteration"]["time_us"] - slowest[0] / 1000) < 1e-6, "the slowest: %s, expected %s", told["slowest_iteration"], slowest)
    text = workspace.ringside("steps", directory).out()
    check("Slowest iteration: %d of rank %d" % (told["slowest_iteration"]["number"], told["slowest_iteration"]["rank"]) in text, "%s", text)
    print(text, flush=True)
    return rows


def check_ranges(workspace, directory, expected):
    told = workspace.json("ranges", directory, "--row-limit", "0")["ranges"]
    for rank, one in expected.items():
        rows = {(row["name"], row["device"], row["stream"]): row for row in told if row["rank"] == rank}
        theirs = one.ranges()
        check(set(rows) == set(theirs), "rank %d: rows %s, expected %s", rank, sorted(rows), sorted(theirs))
        for key, (count, total, least, most, cpu, kernels, copies) in theirs.items():
            same(rows[key], {"count": count, "gpu_time_total_us": total / 1000, "gpu_time_us": total / 1000 / count, "gpu_time_min_us": least / 1000,
                             "gpu_time_max_us": most / 1000, "cpu_time_total_us": cpu / 1000, "kernels": kernels, "copies": copies}, "rank %d, %s" % (rank, key))
        check({name for name, _, _ in rows} == {"step", "forward", "attention", "backward"}, "names: %s", sorted(rows))
    print(workspace.ringside("ranges", directory, "--row-limit", "8").out(), flush=True)


def exported(workspace, directory, name, *more):
    """@return where the files are, and how many events they leave out"""
    ranks = workspace.path(name)
    told = json.loads(workspace.ringside("export", directory, "--per-rank", "-o", ranks, "--json", *more).out())["files"]
    return ranks, [file["left_out"] for file in told]


def of_hta(python, workspace, ranks):
    return read_by(workspace, python, "kineto_readers", ranks)["hta"]


def check_iterations(ranks, expected):
    """ProfilerStep#N on the GPU."""
    for name in sorted(os.listdir(ranks)):
        with open(os.path.join(ranks, name)) as file:
            trace = json.load(file)
        events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"].startswith("ProfilerStep#")]
        steps = {e["args"]["External id"]: e for e in events if e["cat"] == "user_annotation"}
        ns = lambda e: (trace["baseTimeNanoseconds"] + round(e["ts"] * 1000), round(e["dur"] * 1000))
        first = min(int(e["name"].split("#")[1]) for e in steps.values())
        drawn = {(int(e["name"].split("#")[1]) - first, e["pid"], e["tid"]): (ns(e)[0], sum(ns(e))) for e in events if e["cat"] == "gpu_user_annotation"}
        theirs = expected[trace["distributedInfo"]["rank"]].iterations()
        check(len(steps) == kSteps and drawn == theirs and len(theirs) > kSteps, "%s: %s, expected %s", name, drawn, theirs)
        check(all(steps[e["args"]["External id"]]["name"] == e["name"] for e in events), "%s: not each has its step's External id", name)
    print("%d iterations on streams of a rank, as the second reader" % len(theirs), flush=True)


def hta_times(row):
    """Ours by HTA's names."""
    return {"idle_time": row["idle_us"], "compute_time": row["compute_us"], "non_compute_time": row["exposed_communication_us"] + row["copies_us"],
            "kernel_time": row["time_us"]}


def near(theirs, ours):
    """Times in files are nanoseconds of a microsecond, and HTA adds them up as doubles."""
    return all(abs(theirs[key] - ours[key]) < 0.0015 for key in ours)


def check_hta(workspace, python, ranks, rows):
    found = of_hta(python, workspace, ranks)
    for rank in range(kRanks):
        ours = rows[rank, "all"]["trace"]
        check(near(found["breakdown"][str(rank)], hta_times(ours)), "rank %d: HTA's breakdown %s, ours %s", rank, found["breakdown"], ours)
        check(abs(found["overlap_percent"][str(rank)] - ours["overlap_percent"]) < 0.0051, "rank %d: HTA's overlap %s, ours %s", rank,
              found["overlap_percent"], ours)
    print("HTA: %s, overlap %s: as ours" % (found["breakdown"], found["overlap_percent"]), flush=True)


def check_where_hta_differs(lab, python):
    """It leaves out what was launched after the last boundary, and with --cuda-sync takes a wait for a stream for work (viewer_export/README.md)."""
    directory = ran(lab, late=True)
    rows = {d["rank"]: d for d in lab.workspace.json("steps", directory)["devices"] if d["device"] == "all"}
    found = of_hta(python, lab.workspace, exported(lab.workspace, directory, "ranks-late")[0])
    ranks, left_out = exported(lab.workspace, directory, "ranks-waits", "--cuda-sync")
    check(left_out == [0] * kRanks, "with --cuda-sync %s are left out", left_out)
    with_waits = of_hta(python, lab.workspace, ranks)
    for rank, one in processes_of(Job(directory)).items():
        same(rows[rank]["trace"], one.times((0, 1)), "rank %d" % rank)
        one.work = [w for w in one.work if w.name != "late"]
        launched_inside = hta_times(one.times((0, 1)))
        check(launched_inside["kernel_time"] < rows[rank]["trace"]["time_us"] - 1000, "rank %d: nothing is shown by %s", rank, rows[rank])
        check(near(found["breakdown"][str(rank)], launched_inside), "rank %d: HTA %s, expected %s", rank, found["breakdown"], launched_inside)
        one.work += one.waits
        expected = hta_times(one.times((0, 1)))
        check(near(with_waits["breakdown"][str(rank)], expected), "rank %d: HTA %s, expected %s", rank, with_waits["breakdown"], expected)
        check(expected["non_compute_time"] > launched_inside["non_compute_time"], "rank %d: no wait is shown by %s", rank, expected)


def processes_of(job):
    """Expected by rank."""
    (dump,), (events,) = job.dumps, job.events
    return {dump.processes[index].rank: Expected(dump, events, index) for index in dump.processes}


def test(workspace):
    lab = Lab(workspace, sys.argv[1])
    directory = ran(lab)
    job = Job(directory)
    expected = processes_of(job)
    rows = check_steps(workspace, directory, expected)
    check_ranges(workspace, directory, expected)
    ranks, left_out = exported(workspace, directory, "ranks")
    check(left_out == [len(one.waits) for _, one in sorted(expected.items())] and min(left_out) == kSteps, "left out: %s", left_out)
    check_iterations(ranks, expected)
    python = python_of_oracles()
    if python is None:
        skip("HolisticTraceAnalysis is not here; tools/setup_oracles fetches it (the rest passed)")
    check_hta(workspace, python, ranks, rows)
    check_where_hta_differs(lab, python)


if __name__ == "__main__":
    main(test, "gpu_steps")
