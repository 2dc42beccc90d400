#!/usr/bin/python3
"""Processes and threads that come and go in every way while captures go on and off: no crash, no leak, and every record accounted for.

    stress.py [SECONDS] [SEED]       SECONDS of rounds (default 60); what a round is stands in README.md
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Failed, Node, check, kBuild, kCommand, kOfTheJobDirectory, kPython, kShim, main, wait_until

from account import Account, tried_records
from board import Board

kHere = os.path.dirname(os.path.abspath(__file__))
kStress = os.environ.get("RINGSIDE_STRESS", os.path.join(kBuild, "tests", "stress"))
kSteady = 2
kCapturesARound = 3
kResting = 3 + 4 * kSteady  # threads that go through all rounds
kTorchResting = 2  # the same of torch_churn.py
# A leak of one page a capture, a process or a thread is more within half an hour, of one a process within a minute.
kMostGrowth = {"descriptors": 0, "threads": 0, "mappings": 24, "KiB": 6 * 1024}
# What allocators keep is the most that was ever needed: it is reached early. What grows after that is lost.
kWarmUp, kWarmPart = 5, 0.3
kTellEvery = 20


# What is freed goes back to the system, so that what stays is in use.
kFrugal = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}


class Stress:
    def __init__(self, workspace, seed):
        os.environ.update(kFrugal)
        self.workspace, self.random = workspace, random.Random(seed)
        self.board = Board(os.path.join(workspace.root, "board"))
        workspace.on_exit(self.board.close)
        self.node = Node(workspace, "node", extra=["--audit", "off", "--first-lane-kib", "64", "--most-lane-kib", "128"])
        words = [os.path.join(kStress, "churn"), "root", self.board.path, os.path.join(kStress, "libplugin.so"), str(kSteady)]
        self.root = workspace.start("churn", ["env", "LD_PRELOAD=" + kShim, *words], self.node.environment())
        self.torch = None
        if subprocess.run([kPython, "-c", "import torch"], capture_output=True).returncode == 0:
            words = [kPython, "-W", "ignore", os.path.join(kHere, "torch_churn.py"), "steady", self.board.path, os.path.join(kStress, "libtorch_plugin.so")]
            self.torch = workspace.start("torch-churn", ["env", "LD_PRELOAD=" + kShim, *words], self.node.environment())
        else:
            print("%s has no torch: this is without it" % kPython, flush=True)
        self.programs = [self.root] + [self.torch] * (self.torch is not None)
        self.own_children = len(workspace.children)
        self.at_rest()
        self.steady = [int(line.split()[1]) for line in self.root.out().splitlines()] + [one.pid for one in self.programs[1:]]
        self.captures = 0
        self.totals = {}
        self.pids = {}  # of each thread that records

    def at_rest(self):
        resting = kResting + kTorchResting * (self.torch is not None)
        wait_until("the churn to rest", lambda: self.board.resting() == resting, children=[*self.programs, self.node.agent])
        # The dead's segments go; what lives has one each.
        try:
            wait_until("the segments of the dead to go", lambda: len(self.node.segments()) <= kSteady + len(self.programs), children=[self.node.agent])
        except Failed:
            print(*["segment %s, whose process is %s" % (s, "there" if os.path.exists("/proc/" + s.split(".")[1]) else "gone") for s in self.node.segments()], sep="\n")
            raise

    def round(self):
        """Captures while everything goes on; then rest, and every record of the round is accounted for."""
        self.board.go(1)
        outputs = []
        for _ in range(kCapturesARound):
            outputs.append(self.capture())
        self.board.go(0)
        self.at_rest()
        tried = tried_records(self.board.log(), self.pids)
        self.board.empty()
        for output, pids in outputs:
            account = Account(output, tried, pids, self.torch and (not pids or self.torch.pid in pids) and self.torch.pid)
            account.check()
            for name, count in account.totals().items():
                self.totals[name] = self.totals.get(name, 0) + count
            shutil.rmtree(output)
        shutil.rmtree(self.workspace.path("output", "node"), ignore_errors=True)
        for child in self.workspace.children[self.own_children:]:
            os.unlink(child.out_path)
            os.unlink(child.err_path)
        del self.workspace.children[self.own_children:]

    def capture(self):
        self.captures += 1
        output = self.workspace.path("traced-%d" % self.captures)
        milliseconds = self.random.randrange(50, 900)
        chosen = self.random.sample(self.steady, 1) if self.random.random() < 0.2 else []
        ended_early, stopped = self.random.random() < 0.3, self.random.random() < 0.2
        duration = "60s" if ended_early else "%dms" % milliseconds
        child = self.workspace.start("trace-%d" % self.captures, [
            kCommand, "trace", "--hosts", self.node.endpoint, "--duration", duration, "-o", output, *(["--pid", str(chosen[0])] if chosen else [])])
        wait_until("the capture", lambda: "capturing" in child.err() or child.process.poll() is not None, children=[self.node.agent, *self.programs])
        if stopped:  # rings run over meanwhile
            self.node.agent.send(signal.SIGSTOP)
            time.sleep(self.random.random() * 0.3)
            self.node.agent.send(signal.SIGCONT)
        if ended_early:
            time.sleep(milliseconds / 1000)
            child.send(signal.SIGINT)
        status = child.wait(expect=None)
        check(status in (0, 1), "trace ended with %s:\n%s", status, child.tail())  # 1: records lost, processes killed
        return output, chosen

    def sizes(self):
        """Of each process that goes through all rounds, at rest."""
        return {pid: sizes_of(pid) for pid in [self.node.agent.pid, self.root.pid, *self.steady]}

    def end(self):
        self.board.go(2)
        for program in self.programs:
            program.wait()
            check(not program.err(), "%s says: %s", program.name, program.err())
        wait_until("all segments to go", lambda: not self.node.segments(), children=[self.node.agent])
        self.node.stop()
        check(not self.node.agent.err(), "the agent says: %s", self.node.agent.err())
        folder = os.path.join(self.node.root, self.node.job)
        check(set(os.listdir(folder)) <= set(kOfTheJobDirectory), "left in the job directory: %s", os.listdir(folder))


def sizes_of(pid):
    status = {}
    with open("/proc/%d/status" % pid) as text:
        for line in text:
            name, _, value = line.partition(":")
            status[name] = value.split()
    with open("/proc/%d/maps" % pid) as text:
        mappings = len(text.readlines())
    # Memory of its own: what it maps of the test's files is the test's.
    return {"descriptors": len(os.listdir("/proc/%d/fd" % pid)), "threads": int(status["Threads"][0]), "mappings": mappings,
            "KiB": int(status["RssAnon"][0])}


def no_growth(first, last):
    for pid, before in first.items():
        for what, most in kMostGrowth.items():
            check(last[pid][what] - before[what] <= most, "%s of pid %d: %d, at the start %d", what, pid, last[pid][what], before[what])


def stress(workspace):
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 32)
    print("seed %d" % seed, flush=True)
    it = Stress(workspace, seed)
    began = time.monotonic()
    rounds, first = 0, None
    while first is None or time.monotonic() < began + seconds:
        it.round()
        rounds += 1
        if first is None and rounds >= kWarmUp and time.monotonic() >= began + seconds * kWarmPart:
            first = it.sizes()
        if rounds % kTellEvery == 0:
            print("round %d: %s" % (rounds, "; ".join(" ".join(map(str, sizes.values())) for sizes in it.sizes().values())), flush=True)
    last = it.sizes()
    names = ["agent", "root"] + ["steady"] * kSteady + ["torch"]
    for name, pid in zip(names, first):
        print("%s: %s" % (name, ", ".join("%s %d -> %d" % (what, first[pid][what], last[pid][what]) for what in kMostGrowth)), flush=True)
    print("%d rounds, %d captures, %d processes, %d threads: %s" % (
        rounds, it.captures, it.board.lives(), it.board.threads(), ", ".join("%s %d" % item for item in it.totals.items())), flush=True)
    no_growth(first, last)
    it.end()
    for kind in ("produced", "lost", *["operators"] * (it.torch is not None)):
        check(it.totals[kind] > 0, "nothing %s: this has shown nothing", kind)


main(stress, "stress")
