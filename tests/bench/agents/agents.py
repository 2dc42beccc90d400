#!/usr/bin/env python3
"""Many agents that one leader asks: what all of them together take, over as many times what one takes alone.

    agents.py AGENTS [--tcp] [--light] [--counts 100,1000] [--rounds N] [--quick] [--json FILE]

Whole agents, 250 a process: each with its engine, drain thread, server and sockets, on a job directory with a segment that somebody writes. The leader is a process of its
own, with the shipped code of a trace: a round is one question to all and their answers, between 30 to one agent and 30 to another; then a whole trace by phases.
Bound: all answers to a ping / (N x one's round trip) <= 0.25, at the last of the counts, each round over those beside it. Control: the one agent / the other. What agents
do for a status or a trace's phases is work of all of them on one machine and has no bound.
--light: one thread a process answers for all its endpoints, with nothing behind it: for more agents than this machine has threads for. It shows what the leader
costs. --tree: of so many most are behind some that are relays; these are whole agents, the others simulated leaves (--light), and what each costs is printed: the
leader, and a relay beyond what it costs to be traced itself. Bound: the leader's processor time a node at the last of the counts / at the first. Exit status: 0, 1 a bound is missed while its control holds.
"""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
from ratios import paired, report  # noqa: E402

kInProcess = 250
kInLightProcess = 5000
kRelaysInProcess = 50
kBound, kMargin = 0.25, 0.25
kGrowthBound = 1.5
kAsked = ("ping", "status")
kPhases = ("meet", "clocks", "prepare", "begin", "stop", "ping after", "halves", "join")


@contextlib.contextmanager
def place(options):
    root = tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    output = tempfile.mkdtemp(prefix="ringside-bench-", dir="/var/tmp")
    try:
        if options.tcp:
            subprocess.run([options.agents, "key", root, output, "tcp", "0", "0"], check=True)
        yield [root, output, "tcp" if options.tcp else "ipc"]
    finally:
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(output, ignore_errors=True)


def relays_of(count):
    """About as many relays as nodes behind each."""
    return max(n for n in range(1, count) if n * n <= count and count % n == 0)


def served(options, words, mode, first, last, most):
    return [subprocess.Popen([options.agents, mode] + words + [str(n), str(min(most, last - n))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for n in range(first, last, most)]


def measured(options, count):
    relays = relays_of(count) if options.tree else 0
    processes = []
    with place(options) as words:
        try:
            if options.tree:
                processes += served(options, words, "serve", 0, relays, kRelaysInProcess)
            mode, most = ("light", kInLightProcess) if options.light or options.tree else ("serve", kInProcess)
            processes += served(options, words, mode, relays, count, most)
            each = json.loads([process.stdout.readline() for process in processes][0])
            lead = ["tree"] + words + [str(count), str(relays)] if options.tree else ["lead"] + words + [str(count), str(options.rounds)]
            done = subprocess.run([options.agents] + lead, check=True, stdout=subprocess.PIPE, text=True)
        finally:
            for process in processes:
                process.stdin.close()
            for process in processes:
                process.wait()
    return dict(json.loads(done.stdout), files=each["files"], threads=each["threads"])


def print_growth(rows):
    print("\n| Agents | " + " | ".join(kAsked + kPhases) + " | leader's CPU | memory a node | clock's bound, one; all: median, most | joined |")
    print("|---" * (len(kAsked + kPhases) + 5) + "|")
    for row in rows:
        cells = ["%.1f ms" % statistics.median(row[name]["all_ms"]) for name in kAsked] + ["%.1f ms" % row[name]["all_ms"] for name in kPhases]
        print("| %d | %s | %.0f us a node | %.1f KiB | %.0f us; %.0f, %.0f us | %d |" % (
            row["count"], " | ".join(cells), row["cpu_ms"] * 1e3 / row["count"], row["kib_a_node"], *row["bound_us"], row["joined"]))
    print("an agent: %.1f descriptors, %.1f threads" % (rows[-1]["files"], rows[-1]["threads"]))


def print_tree(rows):
    print("\nthe leaves are simulated: one thread of a process answers for all that are in it; the relays are whole agents")
    print("\n| Agents | relays | " + " | ".join(kPhases) + " | leader's CPU, memory | a relay's CPU (alone), memory | clock's bound, direct; all: median, most | joined |")
    print("|---" * (len(kPhases) + 6) + "|")
    for row in rows:
        cells = ["%.0f ms" % row[name]["all_ms"] for name in kPhases]
        print("| %d | %d | %s | %.0f us, %.1f KiB a node | %.1f ms (%.1f), %.0f KiB | %.0f us; %.0f, %.0f us | %d |" % (
            row["count"], row["relays"], " | ".join(cells), row["cpu_ms"] * 1e3 / row["count"], row["kib_a_node"], row["relay_cpu_ms"],
            row["relay_idle_cpu_ms"], row["relay_kib"], *row["bound_us"], row["joined"]))


def tree(options, rows):
    a_node = [row["cpu_ms"] / row["count"] for row in rows]
    ratio = {"ratio": a_node[-1] / a_node[0], "bound": kGrowthBound if rows[-1]["count"] >= 1000 else None, "control": None}
    return report({"%d agents / %d: leader's CPU a node" % (rows[-1]["count"], rows[0]["count"]): ratio}, options.json, lambda _: print_tree(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents")
    parser.add_argument("--counts", default="")
    parser.add_argument("--tcp", action="store_true")
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--tree", action="store_true")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--quick", action="store_true", help="few agents: shows that the bench works, not what it measures")
    parser.add_argument("--json")
    options = parser.parse_args()
    counts = options.counts or ("4,20" if options.quick else "100,1000,10000" if options.light or options.tree else "100,1000")
    rows = [measured(options, int(count)) for count in counts.split(",")]
    if options.tree:
        return tree(options, rows)
    last = rows[-1]
    results = {}
    for name in kAsked:
        row = last[name]
        for ways, key in (("directly", "all_ms"), ("through relays", "relayed_ms")):
            results["%d agents: %s, %s" % (last["count"], name, ways)] = {
                "ratio": paired(row[key], row["one_ms"], row["again_ms"]) / last["count"], "bound": kBound if name == "ping" and last["count"] >= 100 else None,
                "control": paired(row["one_ms"], row["again_ms"]), "margin": kMargin}
    for name in kPhases:
        results["%d agents: %s" % (last["count"], name)] = {"ratio": last[name]["all_ms"] / (last["count"] * last[name]["one_ms"]), "control": None}
    return report(results, options.json, lambda _: print_growth(rows))


if __name__ == "__main__":
    sys.exit(main())
