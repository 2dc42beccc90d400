"""The cases of PyTorch on the GPU, each job once under us and once, the same script, under torch.profiler: one alone can hold CUPTI."""
import json
import os
import signal
import sys

from harness import Node, Trace, free_port, kPython, kShim, kSource, wait_until

import checks
import torch_hooks
from gpu_lab import Dump, Job, Skipped, clean_environment, kCupti, kDeadlineS, kDevice, kJobs, kNotInstrumented, kRehearsal, kTorch
from overhead import torch_launches
from work import of_kineto

kNotOperators = ("measured", "ProfilerStep")


def read_json(path):
    with open(path) as text:
        return json.load(text)


def training(lab):
    """Training steps: kernels, copies, memsets and operators of our capture, and of torch.profiler's on a second run."""
    path, findings = lab.workspace.path, lab.findings
    lab.bare("bare", lab.python_job("train.py", "--out", path("bare.json"), "--device", kDevice))
    lab.bare("profiled", lab.python_job("train.py", "--out", path("theirs.json"), "--device", kDevice, "--profile", path("kineto.json")))
    _, job = lab.traced("ours", lab.python_job("train.py", "--out", path("ours.json"), "--device", kDevice))
    bare, theirs, ours = (read_json(path(name + ".json")) for name in ("bare", "theirs", "ours"))
    findings.figure("torch", "%(torch)s, CUDA %(cuda)s" % ours)
    findings.equal("the job computes what it computes without us", ours["losses"], bare["losses"])
    findings.expect("and beside torch.profiler", theirs["losses"] == bare["losses"])
    dump = Dump(job)
    operators(dump, path("kineto.json"), findings)
    if kRehearsal:
        return
    lab.source_is_full(dump)
    work, calls = of_kineto(path("kineto.json"))
    findings.figure("calls of CUDA; of torch.profiler", [len(dump.calls), calls])
    checks.same_kernels(dump.work, work, findings, ordered=True)
    checks.totals(dump.work, work, findings)
    checks.clock(dump.work, findings)
    kernels = [w for w in dump.work if w["what"] == "kernel"]
    named = [w for w in kernels if w["range"]]
    findings.expect("each kernel has the operator that launched it", kernels and len(named) == len(kernels),
                    "%d of %d; without: %s" % (len(named), len(kernels), sorted({w["name"][:60] for w in kernels if not w["range"]})[:3]))


def operators(dump, kineto_path, findings):
    """Names and numbers of everything inside "measured", on all threads."""
    ranges = [r for r in dump.events.ranges if r.end is not None]
    outer = [r for r in ranges if r.name == "measured"]
    events = [e for e in read_json(kineto_path)["traceEvents"] if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation")]
    bounds = [e for e in events if e["name"] == "measured"]
    if not findings.expect("there is one range `measured` in each", len(outer) == len(bounds) == 1, "%d, %d" % (len(outer), len(bounds))):
        return
    # Others annotate too: oneDNN by ITT, libraries of NVIDIA's by NVTX.
    mine = checks.collections.Counter(r.name for r in ranges if r.source == kTorch and r.process == outer[0].process and outer[0].begin <= r.begin and r.end <= outer[0].end)
    begin, end = bounds[0]["ts"], bounds[0]["ts"] + bounds[0]["dur"]
    theirs = checks.collections.Counter(e["name"] for e in events if begin <= e["ts"] and e["ts"] + e["dur"] <= end)
    for counted in (mine, theirs):
        for name in kNotOperators:
            del counted[name]
    findings.figure("operators; of torch.profiler", [sum(mine.values()), sum(theirs.values())])
    findings.expect("operators: count and names equal torch.profiler's", mine == theirs and mine, checks.difference(mine, theirs))


def rpc_of_two(lab):
    """Two processes that compute on the GPU for each other: kernels as torch.profiler's in each, calls joined, the callee's kernels in their request."""
    path = lab.workspace.path
    for folder in ("bare", "theirs", "ours", "kineto"):
        os.makedirs(path("rpc-" + folder))

    def words(folder, *more):
        return lab.python_job("rpc_job.py", "--out", path("rpc-" + folder), "--device", kDevice, "--port", str(free_port()), *maps, *more)

    maps = [] if kRehearsal else ["--maps"]
    bare = lab.bare("bare", words("bare"), expect=None)
    if bare.process.returncode != 0 and maps:
        lab.findings.figure("tensors from GPU to GPU", "not here, without us: " + bare.tail()[-200:].replace("\n", " "))
        maps = []
        os.makedirs(path("rpc-bare2"))
        bare = lab.bare("bare2", words("bare2"), expect=None)
    if bare.process.returncode != 0:
        raise Skipped("the job fails without us: " + bare.tail()[-300:])
    lab.bare("profiled", words("theirs", "--profile", path("rpc-kineto")))
    _, job = lab.traced("ours", words("ours"))
    totals = [[read_json(os.path.join(path("rpc-" + folder), "worker%d" % n))["total"] for n in range(2)] for folder in ("theirs", "ours")]
    lab.findings.equal("the job computes the same", totals[1], totals[0])
    rpc_checks(lab, job, [read_json(os.path.join(path("rpc-ours"), "worker%d" % n))["pid"] for n in range(2)], path("rpc-kineto"))


def rpc_checks(lab, job, pids, kineto):
    findings, dump, counts = lab.findings, Dump(job), job.counts()
    findings.figure("requests joined, replies joined, halves", [counts["joined"], counts["joined_replies"], counts["client_halves"]])
    findings.expect("each request is joined", counts["joined"] == counts["joined_replies"] == counts["client_halves"] > 0 == counts["orphans"] == counts["cut"], counts)
    processes = {facts.pid: number for number, facts in dump.dump.processes.items()}
    for number, pid in enumerate(pids):
        if not findings.expect("worker%d is in the dump" % number, pid in processes, sorted(processes)) or kRehearsal:
            continue
        mine = dump.of_process(processes[pid])
        theirs, _ = of_kineto(os.path.join(kineto, "worker%d.json" % number))
        one = checks.Findings()
        checks.same_kernels(mine, theirs, one, ordered=False)
        if number == 1:
            kernels = [w for w in mine if w["what"] == "kernel"]
            one.expect("its kernels belong to requests", kernels and all(w["request"] for w in kernels), "%d of %d" % (sum(bool(w["request"]) for w in kernels), len(kernels)))
        findings.checks += [("worker%d: %s" % (number, what), holds, detail) for what, holds, detail in one.checks]
        findings.figures.update({"worker%d: %s" % (number, name): value for name, value in one.figures.items()})


def hooks(lab):
    """Of this machine's torch: each symbol that a hook goes by, whether it is exported and reached through a slot; and the level that a process reaches."""
    torch_hooks.tell(lab)
    path = lab.workspace.path
    _, job = lab.traced("level", lab.python_job("train.py", "--out", path("level.json"), "--device", kDevice, "--steps", "3"))
    level, reason = Dump(job).source(kTorch)
    lab.findings.expect("torch's level is full", reason == "" and level in (1, 2), "level %d %s" % (level, reason))


def integration_test(lab, script, *words):
    """One of ../integration, as it is, with this machine's torch."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    folder = os.path.join(kSource, "tests", "integration")
    child = lab.workspace.run(script, [sys.executable, os.path.join(folder, script), *words], environment, None, kDeadlineS)
    said = [line for line in child.out().splitlines() if line.strip()]
    if child.process.returncode == 77:
        raise Skipped(said[-1] if said else "it does not say why")
    lab.findings.expect("%s passes" % script, child.process.returncode == 0, (said or [child.err()[-400:]])[-1][:600])
    for line in said[:-1]:
        lab.findings.figure("said %d" % (len(lab.findings.figures) + 1), line[:300])


def recipe(lab):
    """The RPC recipe, five times: every row of the legacy profiler's reference, each request joined (../integration/oracle_recipe.py)."""
    integration_test(lab, "oracle_recipe.py")


def operator_counts(lab):
    """Ours and torch.profiler's operators of one script, alone and beside each other (../integration/profilers.py)."""
    integration_test(lab, "profilers.py")


def cupti_is_held(lab):
    """torch.profiler has CUPTI when the capture comes: the job runs, its profile is whole, and the status says why we have nothing, and who has it."""
    lab.need_gpu("who holds CUPTI")
    path, expected = lab.workspace.path, 0
    lab.bare("alone", lab.python_job("train.py", "--out", path("alone.json"), "--profile", path("alone-kineto.json")))
    expected = sum(w["what"] == "kernel" for w in of_kineto(path("alone-kineto.json"))[0])
    node, child, trace = profiled_in_steps(lab, "held", trace_first=False)
    said = " ".join(s["reason"] for p in lab.workspace.json("ps", "--hosts", node.endpoint) for s in p["sources"] if s["name"] == "cupti")
    finish_steps(lab, child, trace)
    dump = Dump(Job(trace.output))
    theirs = sum(w["what"] == "kernel" for w in of_kineto(path("held-kineto.json"))[0])
    ours = sum(w["what"] == "kernel" for w in dump.work)
    level, reason = dump.source(kCupti)
    lab.findings.figure("kernels: alone, torch.profiler's beside us, ours", [expected, theirs, ours])
    lab.findings.figure("what the status says", said)
    lab.findings.equal("the profile is as without us", theirs, expected)
    shared = ours > 0
    lab.findings.expect("it says why and who, or shares", shared or (level == kNotInstrumented and "held by" in reason and "(39)" in reason and "held by" in said), "level %d %s" % (level, reason))
    node.stop()


def profiler_comes_second(lab):
    """The other way round: the capture has CUPTI when torch.profiler comes. The job runs, and one of the two has the kernels."""
    lab.need_gpu("who holds CUPTI")
    node, child, trace = profiled_in_steps(lab, "second", trace_first=True)
    finish_steps(lab, child, trace)
    ours = sum(w["what"] == "kernel" for w in Dump(Job(trace.output)).work)
    theirs = sum(w["what"] == "kernel" for w in of_kineto(lab.workspace.path("second-kineto.json"))[0])
    lab.findings.figure("kernels: ours, torch.profiler's", [ours, theirs])
    lab.findings.expect("one of the two has kernels", ours + theirs > 0)
    node.stop()


def profiled_in_steps(lab, name, trace_first):
    """The training beside torch.profiler, held up between its thirds; a trace runs from before its first, or from its second third on."""
    path = lab.workspace.path
    node = Node(lab.workspace, name)
    words = lab.python_job("train.py", "--out", path(name + ".json"), "--profile", path(name + "-kineto.json"), "--conditions", lab.workspace.conditions)
    traced = None
    environment = {key: value for key, value in node.environment(LD_PRELOAD=kShim).items() if not key.startswith("RINGSIDE_GPU_")}
    child = lab.workspace.start("job-" + name, words, environment)
    if trace_first:
        traced = Trace(lab.workspace, [node], path(name + "-trace"))
    lab.workspace.await_condition("profiling", [child])
    lab.workspace.announce("go")
    lab.workspace.await_condition("stepped.0", [child])
    if not traced:
        traced = Trace(lab.workspace, [node], path(name + "-trace"))
    lab.workspace.announce("go.0")
    lab.workspace.await_condition("stepped.1", [child])
    return node, child, traced


def finish_steps(lab, child, trace):
    lab.workspace.announce("go.1")
    lab.workspace.await_condition("stepped.2", [child])
    trace.end(expect=None)
    lab.workspace.await_condition("profiled", [child])
    lab.workspace.announce("end")
    child.wait(kDeadlineS)
    lab.findings.expect("the job runs to its end", child.process.returncode == 0)


def trapped(lab, name, environment):
    """A torch process whose libcupti is all traps, and has said so. @return (Child, its folder)"""
    folder = lab.workspace.path("trapped-" + name)
    os.makedirs(folder)
    child = lab.workspace.start(name, lab.python_job("trapped.py", folder, kDevice), {key: value for key, value in environment.items() if not key.startswith("RINGSIDE_GPU_")})
    wait_until("the traps", lambda: os.path.exists(os.path.join(folder, "ready")), children=[child])
    with open(os.path.join(folder, "ready")) as text:
        traps = int(text.read())
    if traps == 0:
        raise Skipped("this torch maps no libcupti")
    lab.findings.figure("traps", traps)
    return child, folder


def let_go(child, folder):
    """@return its exit status"""
    for word in ("go", "end"):
        with open(os.path.join(folder, word), "w"):
            pass
    return child.wait(kDeadlineS, expect=None)


def idle_torch(lab):
    """Injected, no capture: no entry point of the libcupti that torch maps is called. Each of them is a trap; a capture walks into one."""
    if let_go(*trapped(lab, "bare", clean_environment())) != 0:
        raise Skipped("somebody else calls CUPTI in torch: without us it walks into a trap, too")
    node = Node(lab.workspace, "idle")
    lab.findings.equal("idle: the job runs to its end", let_go(*trapped(lab, "idle", node.environment(LD_PRELOAD=kShim))), 0)
    child, folder = trapped(lab, "captured", node.environment(LD_PRELOAD=kShim))
    trace = lab.workspace.start("trace", [os.environ["RINGSIDE_COMMAND"], "trace", "--hosts", node.endpoint, "--duration", "1s", "-o", lab.workspace.path("trapped-trace")])
    if kRehearsal:
        lab.findings.equal("captured without a driver: the job runs to its end", let_go(child, folder), 0)
    else:
        lab.findings.equal("a capture walks into a trap", child.wait(kDeadlineS, expect=None), -signal.SIGTRAP)
    trace.wait(kDeadlineS, expect=None)
    node.stop()


def launch_overhead_in_torch(lab):
    """torch.add on the GPU: idle / bare, capturing / idle, torch.profiler / bare."""
    torch_launches(lab)


kCases = [training, rpc_of_two, cupti_is_held, profiler_comes_second, idle_torch, hooks, operator_counts, recipe, launch_overhead_in_torch]
