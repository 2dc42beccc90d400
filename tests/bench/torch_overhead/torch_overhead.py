#!/usr/bin/env python3
"""What the torch source costs, as ratios in one run, each with its control beside it.

    torch_overhead.py SHIM CALLBACKS_MODULE [--python PATH] [--quick] [--only TEXT] [--json FILE]

torch.add on 4 elements, and a training step of a small MLP:
    injected and idle / bare (processes, interleaved); beside it what a second thread that sleeps costs any process: the C library locks then
    capturing / an empty RecordFunction callback (one process, interleaved): what is ours beyond torch's own price of being observed
    added by capturing / added by torch.profiler, both over idle (the same process), beside what an empty callback adds, and the floor:
    one that reads the time twice and writes one record
light RPCs:
    injected and idle / bare (pairs of workers, interleaved);  capturing / idle (one pair, capture toggled every 200 calls)

A control is the same comparison of a thing with itself. Where it is off by more than the margin, the result is "inconclusive", never met.
Exits 0, or 1 if a bound is missed while its control holds, or 77 without torch.
"""
import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import agent_stand_in  # noqa: E402
from ratios import kNotPossible, lower_decile, paired, paired_difference, report  # noqa: E402

kKinds = ("builtin", "udf")
# What is timed, how often in one block, two milliseconds or so; and in a capture that is counted from its start to its end.
kWorks = {"add": ("torch.add", 1500, 20000), "step": ("training step", 10, 150)}


class Child:
    """A worker process that answers a line of JSON for each line of ours."""

    def __init__(self, python, arguments, environment, cpu=None):
        pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
        self._process = subprocess.Popen(pin + [python, "-W", "ignore"] + arguments, env=environment, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ready(self):
        return self._answer()

    def ask(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("bench: worker %s has ended with %s" % (self._process.args[-3:], self._process.wait()))
        return json.loads(line)

    def kill(self):
        """Where a measurement was given up: a worker whose peer is gone spins."""
        self._process.kill()
        self._process.wait()

    def end(self, line=None):
        if line is not None:
            self._process.stdin.write(line + "\n")
        self._process.stdin.close()
        self._process.wait()


def paired_additions(times):
    """{variant: what a block of it took more than the idle one of its round, the median}"""
    return {name: paired_difference(values, times["idle"]) for name, values in times.items()}


class Announced(dict):
    """Results that say on stderr, as they come, what they are: the whole takes a quarter of an hour."""

    def __setitem__(self, name, result):
        super().__setitem__(name, result)
        print("%s: %.3f (control %.3f)" % (name, result["ratio"], result["control"]), file=sys.stderr, flush=True)

    def update(self, more):
        for name, result in more.items():
            self[name] = result


class Bench:
    def __init__(self, options, root, torch_version):
        self.options = options
        # On 1.13 torch's own price of an observer alone is half of what its profiler adds: there the ratio is for comparison.
        self.profiler_bound = None if torch_version.startswith("1.") else 0.5
        self.root = root
        self.runs = 0
        self.cpu = max(os.sched_getaffinity(0))
        self.children = []

    def environment(self, injected):
        """A new job directory with a control page for each injected job, capture off."""
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        environment.pop("LD_PRELOAD", None)
        self.runs += 1
        directory = os.path.join(self.root, "job%d" % self.runs)
        if injected:
            agent_stand_in.make_control_page(directory)
            environment.update(LD_PRELOAD=self.options.shim, RINGSIDE_DIR=self.root, RINGSIDE_JOB="job%d" % self.runs)
        return environment, directory

    def start(self, arguments, environment, cpu):
        child = Child(self.options.python, arguments, environment, cpu)
        self.children.append(child)
        return child

    def operator_process(self, injected):
        environment, directory = self.environment(injected)
        script = os.path.join(HERE, "operator_worker.py")
        child = self.start([script, self.options.callbacks, directory, str(self.cpu)], environment, None)
        child.ready()
        return child

    def rpc_pair(self, injected, pinned):
        environment, directory = self.environment(injected)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        script = os.path.join(HERE, "rpc_worker.py")
        cores = sorted(os.sched_getaffinity(0)) if pinned else [None]
        peer = self.start([script, "1", port, directory], environment, cores[-1])
        client = self.start([script, "0", port, directory], environment, cores[0])
        client.ready()
        return client, peer

    # --- the ratios ---

    def operator_idle(self, work, groups, rounds):
        """Groups of four processes, alive together on one CPU: bare, bare, injected, bare with a thread that sleeps. One ratio a group, the median of them.
        @return (injected / bare, with a thread / bare)"""
        ratios, threads, controls, structure = [], [], [], {}
        for group in range(groups):
            four = [self.operator_process(injected) for injected in (False, False, True, False)]
            four[3].ask("thread")
            times = [[], [], [], []]
            for i in range(rounds):
                for k in range(4):
                    which = (i + k) % 4
                    times[which].append(four[which].ask("block %s %d" % (work, kWorks[work][1])))
            bare, again, injected, threaded = times
            ratios.append(paired(injected, bare, again))
            threads.append(paired(threaded, bare, again))
            controls.append(paired(again, bare))
            if group == groups - 1:  # it takes seconds: all of torch's relocations are read
                structure = {"bare": four[0].ask("structure"), "injected": four[2].ask("structure")}
            for child in four:
                child.end()
        control = statistics.median(controls)
        return ({"ratio": statistics.median(ratios), "control": control, "bound": 1.01, "each": [ratios, controls], "structure": structure},
                {"ratio": statistics.median(threads), "control": control, "each": [threads, controls]})

    def operator_capturing(self, work, processes, rounds, whole_rounds):
        """Several processes, since one differs from the next for all its life: the median of their ratios."""
        title, repeats, whole_repeats = kWorks[work]
        inside, whole = [], []
        for _ in range(processes):
            child = self.operator_process(True)
            inside.append(child.ask("rounds %s %d %d" % (work, rounds, repeats)))
            whole.append(child.ask("whole %s %d %d" % (work, whole_rounds, whole_repeats)))
            child.end()
        blocks = [answer["ns"] for answer in inside]
        adds = [paired_additions(answer["ns"]) for answer in inside]
        whole_adds = [paired_additions(answer["ns"]) for answer in whole]

        def ratio(of, name, over):
            return statistics.median(one[name] / one[over] for one in of)

        against_profiler = {"control": ratio(adds, "idle_again", "profiler"), "aim": 0, "margin": 0.05}
        return {
            title + ": capturing / empty callback": {
                "ratio": statistics.median(paired(one["capturing"], one["empty"], one["empty_again"]) for one in blocks),
                "control": statistics.median(paired(one["empty_again"], one["empty"]) for one in blocks), "bound": 1.05,
                "ns": {name: statistics.median(lower_decile(one[name]) for one in blocks) for name in blocks[0]},
                "losses": sum(answer["losses"] for answer in inside), "cells": sum(answer["cells"] for answer in inside),
                "each": blocks},
            title + ": added by capturing / by torch.profiler": {
                "ratio": ratio(adds, "capturing", "profiler"), "bound": self.profiler_bound, **against_profiler},
            title + ": added by an empty callback / by torch.profiler": {
                "ratio": ratio(adds, "empty", "profiler"), **against_profiler},
            title + ": added by the floor, two tick reads and a record / by torch.profiler": {
                "ratio": ratio(adds, "floor", "profiler"), **against_profiler},
            title + ": added by capturing / by torch.profiler, each with its start and end": {
                "ratio": ratio(whole_adds, "capturing", "profiler"), "bound": self.profiler_bound,
                "control": ratio(whole_adds, "idle_again", "profiler"), "aim": 0, "margin": 0.05,
                "each": [answer["ns"] for answer in whole]},
        }

    def rpc_idle(self, groups, rounds, calls):
        """As add_idle(), with pairs of workers: one ratio a group, of the medians of its blocks. All kinds of call from the same workers.
        @return {kind: result}"""
        ratios = {kind: ([], []) for kind in kKinds}
        for _ in range(groups):
            # One core a worker: where the scheduler puts the threads of a pair, for all its life, is worth more than what is measured.
            trio = [self.rpc_pair(injected, pinned=True) for injected in (False, False, True)]
            for kind in kKinds:
                times = [[], [], []]
                for i in range(rounds):
                    for k in range(3):
                        which = (i + k) % 3
                        times[which].append(trio[which][0].ask("block %s %d" % (kind, calls)))
                bare, again, injected = (statistics.median(t) for t in times)
                ratios[kind][0].append(injected / bare)
                ratios[kind][1].append(again / bare)
            for client, peer in trio:
                client.end("quit")
                peer.end()
        return {kind: {"ratio": statistics.median(each[0]), "control": statistics.median(each[1]), "bound": 1.02, "each": each}
                for kind, each in ratios.items()}

    def rpc_capturing(self, kind, rounds, calls):
        # One pair gives both times: it runs as jobs do, where the scheduler puts it.
        client, peer = self.rpc_pair(True, pinned=False)
        result = client.ask("rounds %s %d %d" % (kind, rounds, calls))
        client.end("quit")
        peer.end()
        pairs = {name: [value / base for value, base in values] for name, values in result["us"].items()}
        bases = [base for _, base in result["us"]["capturing"]]
        return {"ratio": statistics.median(pairs["capturing"]), "control": statistics.median(pairs["control"]), "bound": 1.08,
                "us_idle": statistics.median(bases), "losses": result["losses"], "each": pairs}

    def measure(self):
        """@return {name of a ratio: result}, of those whose name contains --only"""
        only = self.options.only
        # A process differs from the next by some per cent for all its life: many groups, each short.
        operator_groups, processes, rpc_groups, rounds, pairs = (1, 1, 1, 3, 3) if self.options.quick else (24, 9, 40, 6, 160)
        results = Announced()
        for work, (title, _, _) in kWorks.items():
            name = title + ": injected, idle / bare"
            if only in name:
                results[name], results[title + ": with a thread of its own that sleeps / bare"] = self.operator_idle(work, operator_groups, 33 * rounds)
            if any(only in title + tail for tail in (": capturing / empty callback", ": added by capturing / by torch.profiler")):
                results.update(self.operator_capturing(work, processes, 15 * rounds, rounds))
        for kind in kKinds:
            name = "rpc_sync %s: capturing / idle" % kind
            if only in name:
                results[name] = self.rpc_capturing(kind, pairs, 200)
        idle = "rpc_sync %s: injected, idle / bare"
        if any(only in idle % kind for kind in kKinds):
            results.update({idle % kind: result for kind, result in self.rpc_idle(rpc_groups, rounds, 200).items()})
        return results


def print_more(results):
    for name, result in results.items():
        if "structure" in result:
            print_structure(name, result["structure"])
        if "ns" in result:
            print("%s, ns: %s; %d records, %d lost" % (
                name, ", ".join("%s %.0f" % item for item in result["ns"].items()), result["cells"], result["losses"]))


def print_structure(name, idle):
    print(name + ": idle by structure: %(slots)d RPC slots, %(slots_ours)d of them ours; callbacks: %(callbacks)d" % idle["injected"],
          "; threads: %d (bare %d)" % (idle["injected"]["threads"], idle["bare"]["threads"]), sep="")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shim")
    parser.add_argument("callbacks")
    parser.add_argument("--python", default="/usr/bin/python3", metavar="PATH", help="whose torch (default %(default)s)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="the ratios whose name contains it")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: shows that the bench works, not what it measures")
    options = parser.parse_args()
    options.shim, options.callbacks = os.path.abspath(options.shim), os.path.abspath(options.callbacks)
    version = subprocess.run([options.python, "-c", "import torch.distributed.rpc; print(torch.__version__)"], capture_output=True, text=True)
    if version.returncode != 0:
        print("skipped: no torch with RPC for " + options.python)
        return kNotPossible
    print("torch " + version.stdout.strip(), flush=True)
    root = tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    bench = Bench(options, root, version.stdout.strip())
    try:
        results = bench.measure()
    finally:
        for child in bench.children:
            child.kill()
        shutil.rmtree(root, ignore_errors=True)
    return report(results, options.json, print_more)


if __name__ == "__main__":
    sys.exit(main())
