#!/usr/bin/env python3
"""What draining costs, as ratios to the floor: of one core's time, and of the time from a producer at full speed into a dump.

    drain.py DRAIN_BENCH [--quick] [--json FILE]

The program runs in several processes: the median of their ratios; of the way end to end, which wants both cores at once, the best, as a rate that is
reached. A producer that has waited is no lossless one: that run counts only if there is no other, and the table says so.
Exits 0, or 1 if a bound is missed while its control holds.
"""
import argparse
import json
import statistics
import subprocess
import sys

from ratios import median, paired, report, undisturbed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drain_bench")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="one process")
    options = parser.parse_args()
    runs = [json.loads(subprocess.run([options.drain_bench], check=True, stdout=subprocess.PIPE, text=True).stdout)
            for _ in range(1 if options.quick else 7)]

    def blocks(name, bound=None):
        """Of CPU time, each block over the floors beside it."""
        each = [{key: undisturbed(values, run[name]["probes"]) for key, values in run[name].items()} for run in runs]
        return {"ratio": median(paired(one["cost"], one["floor"], one["floor_again"]) for one in each),
                "control": median(paired(one["floor_again"], one["floor"]) for one in each), "margin": 0.15, "bound": bound}

    if any(run["lost"] for run in runs):
        raise RuntimeError("drain: %s records were lost though the producer waits" % [run["lost"] for run in runs])
    smooth = [run for run in runs if run["waits"] == 0]
    end_to_end = [(run, statistics.mean((run["floor"], run["floor_again"]))) for run in smooth or runs]
    control = statistics.median(run["floor_again"] / run["floor"] for run in runs)
    title = "end to end, time a record%s / floor" % ("" if smooth else ", the producer waiting")
    results = {
        "drained and encoded, time a record / floor": blocks("encoded"),
        "... framed, checksummed, written / floor": blocks("written", 0.35),
        "write(2) of the same bytes alone / floor": blocks("plain_write"),
        # The bound of a rate, turned over: 1 / 0.85.
        title: {"ratio": min(run["drained"] / floor for run, floor in end_to_end), "control": control, "bound": 1 / 0.85},
        "end to end, drain CPU a record / floor": {
            "ratio": statistics.median(run["drain_cpu"] / floor for run, floor in end_to_end), "control": control, "margin": 0.15, "bound": 0.35},
        "stored bytes a range, 200 names": {"ratio": statistics.median(run["bytes"] for run in runs), "control": None, "bound": 8},
    }
    numbers = [{name: value for name, value in run.items() if not isinstance(value, dict)} for run in runs]
    return report(results, options.json, lambda _: print("\n".join(map(json.dumps, numbers))))


if __name__ == "__main__":
    sys.exit(main())
