#!/usr/bin/env python3
"""What the shim adds to /bin/true, against what heaptrack's preload and LTTng-UST's add.

    start_up.py SHIM SPAWNER NOTHING [--rounds N] [--json FILE]

The shim as in normal life: a job directory with a control page, no capture, so the segment and its header page are made and taken away again. One run, one start of
each preload after the other (spawner.cpp); what a preload adds is the median of the differences from the bare start of the same round. NOTHING is
an empty library: what any preload costs.

The control is a second bare start of each round: what it adds ought to be nothing of what heaptrack adds.
Exits 0, or 1 if the bound is missed while its control holds, or 77 without heaptrack.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "torch_overhead")]
import agent_stand_in  # noqa: E402
from ratios import kNotPossible, report  # noqa: E402

kHeaptrack = "/usr/lib/heaptrack/libheaptrack_preload.so"
kLttng = "/usr/lib/x86_64-linux-gnu/liblttng-ust-fork.so.1"
kBound = 1 / 7
# A tenth of the bound: what may be left of a difference of a thing from itself.
kMargin = kBound / 10


def added(rounds, first, second):
    """What `second` adds to `first`, of all rounds: [[microseconds of each preload] a round]."""
    return statistics.median(row[second] - row[first] for row in rounds)


def measure(options, preloads):
    """@return a row for each round: microseconds of each preload"""
    root = tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    environment = {"PATH": os.environ["PATH"], "DUMP_HEAPTRACK_OUTPUT": "/dev/null", "RINGSIDE_DIR": root, "RINGSIDE_JOB": "job"}
    try:
        agent_stand_in.make_control_page(os.path.join(root, "job"))
        command = [options.spawner, str(options.rounds), *preloads, "--", "/bin/true"]
        lines = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return [[float(number) for number in line.split()] for line in lines]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shim")
    parser.add_argument("spawner")
    parser.add_argument("nothing")
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if not os.path.exists(kHeaptrack):
        print("skipped: no %s here (Debian package heaptrack)" % kHeaptrack)
        return kNotPossible
    names = ["bare", "bare again", "nothing", "shim", "heaptrack"]
    preloads = ["-", "-", options.nothing, options.shim, kHeaptrack]
    if os.path.exists(kLttng):
        names.append("LTTng-UST")
        preloads.append(kLttng)
    else:
        print("no %s here (Debian package liblttng-ust1): its row is left out" % kLttng)
    rows = measure(options, [os.path.abspath(p) if p != "-" else p for p in preloads])
    adds = {name: added(rows, 0, i) for i, name in enumerate(names)}

    def against(name, other, bound=None):
        return {"ratio": adds[name] / adds[other], "control": adds["bare again"] / adds[other], "aim": 0, "margin": kMargin, "bound": bound}

    results = {"start of /bin/true: added by the shim / by heaptrack": against("shim", "heaptrack", kBound)}
    if "LTTng-UST" in adds:
        results["start of /bin/true: added by the shim / by LTTng-UST"] = against("shim", "LTTng-UST")
        results["start of /bin/true: added by LTTng-UST / by heaptrack"] = against("LTTng-UST", "heaptrack")
    results["start of /bin/true: added by an empty preload / by heaptrack"] = against("nothing", "heaptrack")
    bare = statistics.median(row[0] for row in rows)
    return report(results, options.json, lambda _: print("bare start %.0f us; added, us: %s" % (
        bare, ", ".join("%s %.0f" % item for item in list(adds.items())[1:]))))


if __name__ == "__main__":
    sys.exit(main())
