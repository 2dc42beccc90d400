#!/usr/bin/env python3
"""What the torch source costs, as ratios in one run, each with its control beside it.

    torch_overhead.py SHIM EMPTY_CALLBACK_MODULE [--quick] [--json FILE]

torch.add on 4 elements:  injected and idle / bare (processes, interleaved);  capturing / an empty RecordFunction callback (one process, interleaved)
light RPCs:               injected and idle / bare (pairs of workers, interleaved);  capturing / idle (one pair, capture toggled every 200 calls)

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

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import agent_stand_in  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
kKinds = ("builtin", "udf")


def lower_quartile(values):
    return sorted(values)[len(values) // 4]


class Child:
    """A worker process that answers a line of JSON for each line of ours."""

    def __init__(self, arguments, environment, cpu=None):
        pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
        self._process = subprocess.Popen(pin + [sys.executable, "-W", "ignore"] + arguments, env=environment, text=True,
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

    def end(self, line=None):
        if line is not None:
            self._process.stdin.write(line + "\n")
        self._process.stdin.close()
        self._process.wait()


class Bench:
    def __init__(self, options, root):
        self.options = options
        self.root = root
        self.runs = 0
        self.cpu = max(os.sched_getaffinity(0))

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

    def add_process(self, injected):
        environment, directory = self.environment(injected)
        script = os.path.join(HERE, "add_worker.py")
        child = Child([script, self.options.empty_callback, directory], environment, self.cpu)
        child.ready()
        return child

    def rpc_pair(self, injected):
        environment, directory = self.environment(injected)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        script = os.path.join(HERE, "rpc_worker.py")
        # One core each: where the scheduler puts the threads of a pair, for all its life, is worth more than what is measured.
        cores = sorted(os.sched_getaffinity(0))
        peer = Child([script, "1", port, directory], environment, cores[-1])
        client = Child([script, "0", port, directory], environment, cores[0])
        client.ready()
        return client, peer

    # --- the four ratios ---

    def add_idle(self, groups, rounds, operations):
        """Groups of three processes, alive together on one CPU: bare, bare, injected. One ratio a group, the median of them."""
        ratios, controls, structure = [], [], {}
        for _ in range(groups):
            trio = [self.add_process(False), self.add_process(False), self.add_process(True)]
            times = [[], [], []]
            for i in range(rounds):
                for k in range(3):
                    which = (i + k) % 3
                    times[which].append(trio[which].ask("block %d" % operations))
            bare, again, injected = (lower_quartile(t) for t in times)
            ratios.append(injected / bare)
            controls.append(again / bare)
            structure = {"bare": trio[0].ask("structure"), "injected": trio[2].ask("structure")}
            for child in trio:
                child.end()
        return {"ratio": statistics.median(ratios), "control": statistics.median(controls), "bound": 1.01,
                "each": [ratios, controls], "structure": structure}

    def add_capturing(self, rounds, operations):
        child = self.add_process(True)
        result = child.ask("rounds %d %d" % (rounds, operations))
        child.end()
        ns = {name: lower_quartile(values) for name, values in result["ns"].items()}
        return {"ratio": ns["capturing"] / ns["empty"], "control": ns["empty_again"] / ns["empty"], "bound": 1.05,
                "ns": ns, "losses": result["losses"], "cells": result["cells"], "each": result["ns"]}

    def rpc_idle(self, groups, rounds, calls):
        """As add_idle(), with pairs of workers: one ratio a group, of the medians of its blocks. All kinds of call from the same workers.
        @return {kind: result}"""
        ratios = {kind: ([], []) for kind in kKinds}
        for _ in range(groups):
            trio = [self.rpc_pair(False), self.rpc_pair(False), self.rpc_pair(True)]
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
        client, peer = self.rpc_pair(True)
        result = client.ask("rounds %s %d %d" % (kind, rounds, calls))
        client.end("quit")
        peer.end()
        pairs = {name: [value / base for value, base in values] for name, values in result["us"].items()}
        bases = [base for _, base in result["us"]["capturing"]]
        return {"ratio": statistics.median(pairs["capturing"]), "control": statistics.median(pairs["control"]), "bound": 1.08,
                "us_idle": statistics.median(bases), "losses": result["losses"], "each": pairs}


def verdict(result):
    margin = result["bound"] - 1
    if abs(result["control"] - 1) > margin:
        return "inconclusive"
    return "met" if result["ratio"] <= result["bound"] else "MISSED"


def print_table(results):
    print("%-44s %8s %8s %8s  %s" % ("ratio", "measured", "control", "bound", "verdict"))
    for name, result in results.items():
        print("%-44s %8.3f %8.3f %8.2f  %s" % (name, result["ratio"], result["control"], result["bound"], result["verdict"]))
    for result in results.values():
        if "structure" in result:
            print_structure(result["structure"])
        if "ns" in result:
            print("torch.add, ns: " + ", ".join("%s %.0f" % item for item in result["ns"].items()))


def print_structure(idle):
    print("idle by structure: %(slots)d RPC slots, %(slots_ours)d of them ours; callbacks: %(callbacks)d" % idle["injected"],
          "; threads: %d (bare %d)" % (idle["injected"]["threads"], idle["bare"]["threads"]), sep="")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shim")
    parser.add_argument("empty_callback")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="the ratios whose name contains it")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: shows that the bench works, not what it measures")
    options = parser.parse_args()
    options.shim, options.empty_callback = os.path.abspath(options.shim), os.path.abspath(options.empty_callback)
    if subprocess.run([sys.executable, "-c", "import torch.distributed.rpc"], capture_output=True).returncode != 0:
        print("skipped: no torch with RPC for " + sys.executable)
        return 77
    root = tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    bench = Bench(options, root)
    # A process differs from the next by some per cent for all its life: many groups, each short.
    add_groups, rpc_groups, rounds, pairs = (1, 1, 3, 3) if options.quick else (24, 16, 6, 40)
    measurements = {
        "torch.add: injected, idle / bare": lambda: bench.add_idle(add_groups, rounds, 20000),
        "torch.add: capturing / empty callback": lambda: bench.add_capturing(10 * rounds, 10000),
    }
    for kind in kKinds:
        measurements["rpc_sync %s: capturing / idle" % kind] = lambda kind=kind: bench.rpc_capturing(kind, pairs, 200)
    try:
        results = {name: measure() for name, measure in measurements.items() if options.only in name}
        idle = "rpc_sync %s: injected, idle / bare"
        if any(options.only in idle % kind for kind in kKinds):
            results.update({idle % kind: result for kind, result in bench.rpc_idle(rpc_groups, rounds, 200).items()})
    finally:
        shutil.rmtree(root, ignore_errors=True)
    for result in results.values():
        result["verdict"] = verdict(result)
    print_table(results)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    return 1 if any(result["verdict"] == "MISSED" for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
