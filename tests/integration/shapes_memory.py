#!/usr/bin/python3
"""`--record-shapes` and `--profile-memory`: the operators' input shapes and memory are torch.profiler's, event by event and row by row; rows of
operators that ran on another worker have them too; and without the options none of it is recorded.

A profiler that counts in microseconds (1.13) can't tell exactly what lies in what: there the rows are not compared, the events are. One that rounds
when it compares (up to 2.8) can't tell it of memory: there the rows' calls are compared, their bytes are not.
"""
import collections
import glob
import json
import os
import subprocess

from harness import Node, Trace, check, free_port, kPython, kSource, kWorkloads, main, wait_until

# beneath tests/, found by what harness adds to the path
import filter as oracle_filter
from rsd.index import Job

kMeasured, kMemory = "measured", "[memory]"
kScript = os.path.join(kWorkloads, "profiled.py")


def profiled(workspace):
    out = workspace.path("kineto.json")
    workspace.run("kineto", [kPython, "-W", "ignore", kScript, "--out", out, "--profiler", "kineto", "--shapes", "--memory", "--workers", "0"])
    with open(out) as text:
        return json.load(text)


def traced(workspace, *options):
    """The same without a profiler, in a capture that begins right before its range.
    @return (the job, the table's JSON)
    """
    name = "-".join(o.strip("-") for o in options) or "plain"
    node = Node(workspace, "node-" + name)
    told = workspace.path("conditions", name)
    os.makedirs(told)
    child = workspace.start("job-" + name, node.job_command(kPython, "-W", "ignore", kScript, "--out", workspace.path(name + ".json"), "--workers", "0",
                                                            "--conditions", told), node.environment())
    holds = lambda condition: wait_until(condition, lambda: os.path.exists(os.path.join(told, condition)), children=[child])
    holds("ready")
    trace = Trace(workspace, [node], workspace.path("trace-" + name), options=options)
    workspace.announce(os.path.join(name, "go"))
    holds("done")
    trace.end()
    workspace.announce(os.path.join(name, "leave"))
    child.wait()
    node.stop()
    job = Job(trace.output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    table = json.loads(workspace.ringside("table", trace.output, "--row-limit", "0", "--full-names", "--json").out())
    return job, table, workspace.ringside("table", trace.output, "--row-limit", "0", "--full-names").out()


def inside(events, begin, end, name):
    outer = next(e for e in events if name(e) == kMeasured)
    return [e for e in events if e is not outer and begin(outer) <= begin(e) and end(e) <= end(outer)]


def python_text(shapes):
    return str([list(s) for s in shapes])


def check_events(told, job):
    """Each operator with its shapes, each allocation and deallocation with its size."""
    theirs = inside(told["events"], lambda e: e["begin"], lambda e: e["end"], lambda e: e["name"])
    events = job.events[0]
    ours = inside(events.ranges, lambda r: r.begin, lambda r: r.end, lambda r: r.name)
    wanted = collections.Counter((e["name"], python_text(e["shapes"])) for e in theirs if e["name"] != kMemory)
    found = collections.Counter((r.name, r.shapes or "[]") for r in ours)
    check(wanted == found, "shapes: only torch's %s, only ours %s", dict(wanted - found), dict(found - wanted))
    measured = next(r for r in events.ranges if r.name == kMeasured)
    marks = [m for m in events.marks if m[3] == kMemory and measured.begin <= m[4] <= measured.end]
    wanted = collections.Counter(e["bytes"] for e in theirs if e["name"] == kMemory)
    found = collections.Counter(m[8] for m in marks)
    check(sum(found.values()) > 50 and wanted == found, "memory: only torch's %s, only ours %s", dict(wanted - found), dict(found - wanted))
    return len(ours), len(marks)


def check_rows(told, table):
    numbers = 3 if told["rows_are_exact"] else 1
    wanted = {(name, shapes): counts[:numbers] for name, shapes, *counts in told["rows"]}
    found = {(r["name"], r.get("input_shapes", "[]")): [r["count"], r["cpu_memory_usage"], r["self_cpu_memory_usage"]][:numbers] for r in table["rows"]}
    off = {row: (wanted.get(row), found.get(row)) for row in wanted.keys() | found.keys() if wanted.get(row) != found.get(row)}
    check(not off, "rows (calls, bytes, own bytes) of torch, of ours: %s", off)
    return len(found)


def check_plain(workspace):
    job, table, text = traced(workspace)
    check(not any(r.shapes for r in job.events[0].ranges), "shapes that nobody asked for")
    check(not any(m[3] == kMemory for m in job.events[0].marks), "memory that nobody asked for")
    check("Mem" not in text and "Input Shapes" not in text, "columns that nobody asked for:\n%s", text[:400])


def check_remote(workspace):
    """The recipe's served operators, against the legacy profiler's reference."""
    output = workspace.path("recipe")
    workspace.ringside("run", "--record-shapes", "--profile-memory", "-o", output, "--table", workspace.path("table"), "--", kPython, "-W", "ignore",
                       os.path.join(kWorkloads, "recipe.py"), environment=dict(os.environ, MASTER_PORT=str(free_port())))
    rows = json.loads(workspace.ringside("table", output, "--full-names", "--row-limit", "0", "--json").out())["rows"]
    # The reference leaves out what no operator took or gave back; ours has rows for it, as torch.profiler's table.
    served = lambda name: "#remote_op: " in name and not oracle_filter.is_call(name) and not name.endswith(kMemory)
    ours = {(r["name"], r["node_id"], r.get("input_shapes", "[]")): (r["count"], r["cpu_memory_usage"]) for r in rows if served(r["name"])}
    reference = {}
    for path in sorted(glob.glob(os.path.join(kSource, "tests", "oracle", "reference", "run-*.txt"))):
        run = collections.defaultdict(lambda: [0, 0])
        for e in oracle_filter.without_profiler(oracle_filter.read_run(path))[0]:
            if served(e.name):
                row = run[e.name, e.node, str(e.shapes)]
                row[0], row[1] = row[0] + 1, row[1] + e.memory
        for row, (calls, memory) in run.items():
            reference[row] = max(reference.get(row, (0, 0)), (calls, memory))
    off = {row: (reference.get(row), ours.get(row)) for row in reference.keys() | ours.keys() if reference.get(row) != ours.get(row)}
    check(len(ours) > 15 and not off, "served operators (calls, bytes) of the reference, of ours: %s", off)
    return len(ours)


def check_device(workspace):
    """Memory on a device: torch's allocator reports it from a library of its own, here a small one; the rows are what torch.profiler makes of it."""
    root = workspace.run("root", [kPython, "-c", "import importlib.util as u; print(*u.find_spec('torch').submodule_search_locations)"]).out().strip()
    folders = [os.path.join(root, "lib"), "/usr/lib/x86_64-linux-gnu"]
    c10 = next(path for path in (os.path.join(folder, "libc10.so") for folder in folders) if os.path.exists(path))
    symbols = subprocess.run(["nm", "-D", "--defined-only", c10], stdout=subprocess.PIPE, text=True, check=True).stdout
    (report,) = {line.split()[-1].split("@")[0] for line in symbols.splitlines() if "reportMemoryUsageToProfiler" in line}
    library, out = workspace.path("libc10_cuda.so"), workspace.path("device.json")
    workspace.run("compile", ["cc", "-shared", "-fPIC", "-Wl,-z,now", "-Wl,-soname,libc10_cuda.so", '-DREPORT="%s"' % report, "-o", library,
                              os.path.join(kWorkloads, "device_memory.c"), c10])
    words = [kPython, "-W", "ignore", os.path.join(kWorkloads, "device_memory.py"), library]
    workspace.run("profiled-device", [*words, out])
    with open(out) as text:
        told = json.load(text)
    output = workspace.path("device")
    workspace.ringside("run", "--profile-memory", "-o", output, "--", *words)
    table = workspace.json("table", output, "--row-limit", "0")
    found = {r["name"]: [r["count"], r["cuda_memory_usage"], r["self_cuda_memory_usage"]] for r in table["rows"]}
    wanted = {"outer": [1, 4096, 1 << 20], "inner": [2, 4096 - (1 << 20) + 512] + [4096 - (1 << 20) + 512]}
    for name, row in wanted.items():
        check(told[name] == row and found.get(name) == row, "%s (calls, bytes, own bytes): torch says %s, we %s, it took %s", name, told[name], found.get(name), row)
    check(found[kMemory][1] == -512, "outside of ranges: %s", found[kMemory])
    # Torch 1.13's ranges take a little of the CPU's for themselves.
    check(all(abs(r["cpu_memory_usage"]) < 100 for r in table["rows"] if r["name"] in wanted), "the CPU's: %s", table["rows"])


def test(workspace):
    told = profiled(workspace)
    job, table, text = traced(workspace, "--record-shapes", "--profile-memory")
    operators, marks = check_events(told, job)
    rows = check_rows(told, table) if told["resolution_ns"] == 1 else 0
    header = text.splitlines()[1].split("  ")
    columns = [c.strip() for c in header if c.strip()]
    check(columns[6:9] == ["CPU Mem", "Self CPU Mem", "# of Calls"] and columns[-1] == "Input Shapes", "the table's columns are %s", columns)
    check_plain(workspace)
    check_device(workspace)
    remote = check_remote(workspace)
    print("PyTorch %s: %d operators with torch.profiler's shapes, %d allocations and deallocations, %d rows, %d rows of served operators" % (
        told["torch"], operators, marks, rows, remote), flush=True)


main(test, "shapes_memory")
