"""Overhead a launch, in paired blocks (../bench/README.md, "Ratios"): a bare process, a second bare one as control, an injected one; then captures that go on
and off in the injected one, and torch.profiler beside them in a process of its own, since one alone can hold CUPTI."""
import json
import math
import os
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "torch_overhead"))
import agent_stand_in
import ratios
from harness import kShim, wait_until

from gpu_lab import clean_environment, kDevice, kPython, kRehearsal

kIdleBound = 1.02
kJob = "bench"


class Server:
    """A process that times blocks when it is told to."""

    def __init__(self, lab, name, words, environment=None):
        self.name = name
        with open(lab.workspace.path("out", name + ".err"), "w") as err:
            self.process = subprocess.Popen(words, env=environment or clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True)
        lab.workspace.on_leave(self.end)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self):
        text = self.process.stdout.readline()
        if not text:
            raise ValueError("%s ended with %s" % (self.name, self.process.wait()))
        return json.loads(text)

    def end(self):
        if self.process.stdin.closed:
            return
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def injected_environment(lab):
    """With a job directory whose captures agent_stand_in.py turns on and off: no agent is beside what is measured."""
    root = os.path.join(lab.workspace.root, "bench")
    os.makedirs(root, mode=0o700)
    lab.workspace.on_leave(lambda: shutil.rmtree(root, ignore_errors=True))
    directory = os.path.join(root, kJob)
    agent_stand_in.make_control_page(directory)
    return directory, clean_environment(LD_PRELOAD=kShim, RINGSIDE_DIR=root, RINGSIDE_JOB=kJob)


def idle_ratio(start, groups, rounds, repeats, line):
    """Of several groups of processes, each new: one differs from the next by some per cent for all its life.
    @param start  makes a bare process, another, an injected one  @param line  what asks for a block  @return (result, the last group)"""
    found, controls, times = [], [], []
    for group in range(groups):
        if group:
            for server in trio:
                server.end()
        trio = start(group)
        times = [[], [], []]
        for i in range(rounds):
            for k in range(3):
                which = (i + k) % 3
                times[which].append(float(trio[which].ask(line % repeats)))
        bare, again, injected = times
        found.append(ratios.paired(injected, bare, again))
        controls.append(ratios.paired(again, bare))
    return {"ratio": statistics.median(found), "control": statistics.median(controls), "bound": kIdleBound, "each": [round(one, 4) for one in found],
            "ns": [round(statistics.median(t), 1) for t in times]}, trio


def judge(lab, results):
    for result in results.values():
        result["verdict"] = ratios.verdict(result)
    ratios.print_table(results)
    for name, result in results.items():
        lab.findings.figure(name, {key: value if isinstance(value, (str, list, dict)) else round(value, 4) for key, value in result.items() if value is not None})
        # A bound is judged where its control holds; inconclusive is said by the figure.
        if result.get("bound") is not None:
            lab.findings.expect(name + ": within its bound", result["verdict"] != "MISSED" or kRehearsal, result["verdict"])


def three(lab, words, environment, group, warm, says_ready):
    made = [Server(lab, "%s-%d" % (name, group), words, env) for name, env in (("bare", None), ("bare-again", None), ("injected", environment))]
    for server in made:
        if says_ready:
            server.hear()
        if warm:
            server.ask(warm)
    return made


def program_launches(lab, words):
    directory, environment = injected_environment(lab)
    groups, count, repeats = lab.sizes((7, 40, 500), (2, 3, 50))
    idle, servers = idle_ratio(lambda group: three(lab, words, environment, group, "2000", False), groups, count, repeats, "%d")
    title = "launch of an empty kernel: "
    capturing = captured_ratio(lab, servers[2], directory, 2 * count, repeats)
    judge(lab, {title + "injected, idle / bare": idle, title + "capturing / idle": capturing, title + "capturing / bare": product(idle, capturing)})


def product(*results):
    """Of ratios that were taken in processes of their own."""
    return {"ratio": math.prod(one["ratio"] for one in results), "control": math.prod(one["control"] for one in results), "bound": None}


def captured_ratio(lab, server, directory, count, repeats):
    """A bare server in C++ knows no rounds: the captures go on and off from here."""
    agent = agent_stand_in.StandIn(directory, [server.process.pid])
    times = {"idle": [], "again": [], "capturing": []}
    for i in range(count + 1):
        for name in times:
            if name == "capturing":
                agent.capture(True)
            server.ask("%d" % (repeats // 10))
            took = float(server.ask("%d" % repeats))
            if name == "capturing":
                agent.capture(False)
            if i:
                times[name].append(took)
    lab.findings.figure("lost while capturing launches", agent.losses())
    lab.findings.expect("captures have recorded launches", agent.segments[0].cells() > 3 * repeats * count, "%d cells" % agent.segments[0].cells())
    return {"ratio": ratios.paired(times["capturing"], times["idle"], times["again"]), "control": ratios.paired(times["again"], times["idle"]), "bound": None,
            "ns": {name: round(statistics.median(t), 1) for name, t in times.items()}}


def torch_launches(lab):
    """torch.add on 4 elements of the GPU: idle / bare; what capturing adds, over what torch.profiler adds."""
    directory, environment = injected_environment(lab)
    words = [kPython, "-W", "ignore", os.path.join(os.path.dirname(os.path.abspath(__file__)), "jobs", "launches.py"), directory, kDevice]
    groups, count, repeats = lab.sizes((3, 30, 1000), (1, 2, 200))
    title = "torch.add on the GPU: "
    idle, servers = idle_ratio(lambda group: three(lab, words, environment, group, "", True), groups, count, repeats, "block %d")
    results = {title + "injected, idle / bare": idle}
    wait_until("the segment", lambda: os.listdir(directory))
    ours, theirs = servers[2].ask("rounds %d %d" % (count, repeats)), servers[0].ask("profiled %d %d" % (max(2, count // 3), repeats))
    mine, others = ours["ns"], theirs["ns"]
    for name, times, what in (("capturing / idle", mine, "capturing"), ("torch.profiler / bare", others, "profiler")):
        results[title + name] = {"ratio": ratios.paired(times[what], times["idle"], times["again"]), "control": ratios.paired(times["again"], times["idle"]),
                                 "bound": None, "ns": {key: round(statistics.median(t), 1) for key, t in times.items()}}
    results[title + "capturing / bare"] = product(idle, results[title + "capturing / idle"])
    added = [ratios.paired_difference(times[what], times["idle"], times["again"]) for times, what in ((mine, "capturing"), (others, "profiler"))]
    control = ratios.paired_difference(mine["again"], mine["idle"])
    results[title + "added by capturing / by torch.profiler"] = {"ratio": added[0] / added[1] if added[1] else float("nan"), "control": control / added[1] if added[1] else float("nan"),
                                                                 "aim": 0, "margin": 0.1, "bound": None, "ns": [round(a, 1) for a in added]}
    lab.findings.figure("lost while capturing", ours["lost"])
    lab.findings.expect("captures have recorded operators", ours["cells"] > 0, "%d cells" % ours["cells"])
    judge(lab, results)
