"""The cases of a CUDA C++ program (program.cu): what it did is known."""
import json
import os
import re
import signal
import time

from harness import Node, Trace, kShim, wait_until

import checks
from gpu_lab import Dump, Job, clean_environment, kCupti, kDeadlineS, kRehearsal
from overhead import program_launches

kWorkedKernels = 100
# CUPTI is asked for what is done twenty times a second; a second is twenty of them.
kTurnsS = 1.0


def known_work(lab):
    """Counts, names, order, streams, graphs, durations and times of a program whose work is known; and the same dump through each view."""
    program, truth_path = lab.need_program(), lab.workspace.path("truth.json")
    lab.bare("bare", [program, "work", lab.workspace.path("bare.json")])
    _, job = lab.traced("work", [program, "work", truth_path])
    with open(truth_path) as text:
        truth = json.load(text)
    dump, findings = Dump(job), lab.findings
    findings.figure("machine", "%(device)s, driver %(driver)d, runtime %(runtime)d" % truth)
    findings.figure("records", {what: sum(w["what"] == what for w in dump.work) for what in sorted({w["what"] for w in dump.work})})
    lab.source_is_full(dump)
    checks.program_work(truth, dump.work, findings)
    checks.program_graph(truth, dump.work, findings)
    checks.durations(truth, dump.work, findings)
    checks.clock(dump.work, findings)
    alone = [w["name"] for w in dump.work if w["what"] in ("kernel", "copy", "memset") and w["call"] is None]
    findings.expect("all work has its call", not alone, alone[:5])
    devices = [(d.name, d.processors, "%d.%d" % (d.major, d.minor)) for d in dump.events.gpu.devices.values() if d.device == 0]
    findings.equal("the device", devices, [(truth["device"], truth["processors"], truth["capability"])])
    views(lab, lab.workspace.path("traced-work"), dump)


def views(lab, directory, dump):
    """The table, Kineto's JSON and .pftrace of that dump."""
    count = {what: sum(w["what"] == what for w in dump.work) for what in ("kernel", "copy", "memset")}
    table = json.loads(lab.workspace.ringside("table", directory, "--json").out())
    rows = sum(row["count"] for row in table["rows"] if row["device_type"] == "cuda")
    lab.findings.expect("the table's device rows: %d of %d" % (rows, sum(count.values())), rows == sum(count.values()))
    path = lab.workspace.path("trace.json")
    told = json.loads(lab.workspace.ringside("export", directory, "-o", path, "--json").out())
    with open(path) as text:
        events = json.load(text)["traceEvents"]
    seen = {what: sum(e.get("cat") == cat and e["ph"] == "X" for e in events) for what, cat in (("kernel", "kernel"), ("copy", "gpu_memcpy"), ("memset", "gpu_memset"))}
    lab.findings.equal("Kineto's JSON has the work", seen, count)
    other = json.loads(lab.workspace.ringside("export", directory, "-o", lab.workspace.path("trace.pftrace"), "--json").out())
    lab.findings.equal(".pftrace has as much", [other[key] for key in ("slices", "launches")], [told[key] for key in ("slices", "launches")])
    size = os.path.getsize(lab.workspace.path("trace.pftrace"))
    lab.findings.expect(".pftrace is there", size > 0, "%d bytes" % size)


def waiting(lab, name, capture):
    """The program, preloaded, that has launched 100 kernels and waits. @return (Node, Child)"""
    program = lab.need_program()
    node = Node(lab.workspace, name, capture_from_start=capture, extra=["--name", "all"] if capture else [])
    child = lab.workspace.start("program-" + name, [program, "wait", lab.workspace.conditions], node.environment(LD_PRELOAD=kShim))
    lab.workspace.await_condition("worked", [child])
    return node, child


def kill_in_a_capture(lab):
    """kill -9 while a kernel runs: what was done a second before is in the dump, which is whole."""
    node, child = waiting(lab, "kill", True)
    time.sleep(kTurnsS)
    lab.workspace.announce("go")
    lab.workspace.await_condition("spinning", [child])
    child.send(signal.SIGKILL)
    child.wait(kDeadlineS, expect=-signal.SIGKILL)
    wait_until("its segment to go", lambda: not node.segments())
    node.stop()
    job = Job(lab.workspace.path("output", "kill", "all"))
    lab.findings.expect("the dump is whole", not job.problems(), "; ".join(job.problems()))
    dump = Dump(job)
    kept = [w for w in dump.work if w["what"] == "kernel" and w["name"] == "nothing"]
    lab.findings.equal("kernels kept of those that were done", len(kept), kWorkedKernels)
    lab.findings.expect("the fate is told", dump.events.killed(0))
    lab.findings.figure("kept", "%d of %d kernels that were done, %d calls" % (len(kept), kWorkedKernels, len(dump.calls)))


def idle_program(lab):
    """Injected, no capture: neither CUPTI nor our plugin is mapped; then a capture maps them, and its end gives the subscription back."""
    node, child = waiting(lab, "idle", False)
    before = mapped(child)
    lab.findings.figure("mapped while idle", sorted(before))
    lab.findings.expect("idle: the shim is there", "libringside_inject.so" in before or kRehearsal, before)
    lab.findings.expect("idle: no libcupti, no plugin", not [f for f in before if f.startswith(("libcupti", "libringside_cupti"))], before)
    threads = len(os.listdir("/proc/%d/task" % child.pid))
    trace = Trace(lab.workspace, [node], lab.workspace.path("trace"))
    lab.workspace.announce("go")
    lab.workspace.await_condition("spinning", [child])
    trace.end(expect=None)
    after = mapped(child)
    lab.findings.expect("captured: both are", any(f.startswith("libcupti") for f in after) and "libringside_cupti.so" in after, after)
    lab.findings.figure("threads idle, captured", [threads, len(os.listdir("/proc/%d/task" % child.pid))])
    lab.workspace.announce("end")
    child.wait(kDeadlineS)
    node.stop()


def mapped(child):
    with open("/proc/%d/maps" % child.pid) as maps:
        files = {os.path.basename(line.split()[-1]) for line in maps if "/" in line}
    return {file for file in files if re.match(r"libcu|libringside|libnvidia", file)}


def an_armed_window(lab):
    """`trace --history`: what the GPU did before the trigger, and up to the stop."""
    program = lab.need_program()
    node = Node(lab.workspace, "armed")
    lab.workspace.json("arm", "--hosts", node.endpoint, "--keep", "60s")
    child = lab.workspace.start("program-armed", [program, "wait", lab.workspace.conditions], node.environment(LD_PRELOAD=kShim))
    lab.workspace.await_condition("worked", [child])
    out = lab.workspace.path("history")
    lab.workspace.ringside("trace", "--hosts", node.endpoint, "--history", "50s", "--duration", "100ms", "-o", out, expect=None)
    dump = Dump(Job(out))
    kept = [w for w in dump.work if w["what"] == "kernel" and w["name"] == "nothing"]
    lab.findings.equal("kernels of before the trigger", len(kept), kWorkedKernels)
    lab.findings.expect("the device is told", bool(dump.events.gpu.devices), "%d" % len(dump.events.gpu.devices))
    lab.workspace.ringside("disarm", "--hosts", node.endpoint)
    lab.workspace.announce("end")
    child.wait(kDeadlineS)
    node.stop()


def launch_overhead(lab):
    """Empty kernels, ns a launch: idle / bare, capturing / bare."""
    program_launches(lab, [lab.need_program(), "serve"])


kCases = [known_work, idle_program, kill_in_a_capture, an_armed_window, launch_overhead]
