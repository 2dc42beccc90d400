#!/usr/bin/python3
"""The offline join of synthetic dumps: halves a second by the number of dumps, and memory by the number of halves.

    join.py JOIN_BENCH [HALVES] [--messages] [--rounds N] [--json FILE]
        HALVES: 10 000 000, of all dumps together; some 45 bytes of disk each, and 64 for the index
        --messages: not requests but MPI's messages between as many ranks as dumps, from 4 on

The control beside each is the reading of the same records without a join. Exit status: 0 bounds met, 1 missed.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

kDumps = (1, 4, 16, 64)
kMostGrowth = 1.5  # of the time a half, from the fewest dumps to 64
kMostMemory = 1.25  # of the peak, from a tenth of the halves to all of them


def said(*words):
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def best(rounds, *words):
    """The round that took the least processor time, and the greatest peak."""
    runs = [said(*words) for _ in range(rounds)]
    found = min(runs, key=lambda run: run["cpu"])
    found["peak_mb"] = max(run["peak_mb"] for run in runs)
    return found


def measured(bench, dumps, halves, messages, rounds):
    with tempfile.TemporaryDirectory() as folder:
        truth = said(bench, "make", folder, str(dumps), str(halves), str(int(messages)))
        joined, read = best(rounds, bench, "join", folder), best(rounds, bench, "read", folder)
        size = {end: sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith(end)) for end in (".rsd", ".rsj")}
    if joined["joined"] != truth["whole"]:
        sys.exit("of %d whole requests in %d dumps it joined %d" % (truth["whole"], dumps, joined["joined"]))
    row = {"dumps": dumps, "halves": joined["halves"], "join_ns": joined["cpu"] * 1e9 / joined["halves"], "read_ns": read["cpu"] * 1e9 / joined["halves"],
           "wall": joined["wall"], "peak_mb": joined["peak_mb"], "read_peak_mb": read["peak_mb"], "most_open": joined["most_open"],
           "dump_bytes": size[".rsd"] / joined["halves"], "index_bytes": size[".rsj"] / joined["halves"]}
    print("| %d | %.1f M | %.2f M/s | %.2f M/s | %.2f | %.0f MB | %.0f MB | %d |" % (
        dumps, row["halves"] / 1e6, 1e3 / row["join_ns"], 1e3 / row["read_ns"], row["join_ns"] / row["read_ns"], row["peak_mb"], row["read_peak_mb"], row["most_open"]), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("halves", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--messages", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    print("| Dumps | Halves | Joined | Read alone | Join / read | Peak | Peak, reading | Halves kept at once |\n|---|---|---|---|---|---|---|---|")
    counts = [dumps for dumps in kDumps if dumps > 1 or not options.messages]
    rows = [measured(options.bench, dumps, options.halves, options.messages, options.rounds) for dumps in counts]
    small = measured(options.bench, counts[-1], options.halves // 10, options.messages, options.rounds)
    growth = rows[-1]["join_ns"] / rows[0]["join_ns"]
    memory = rows[-1]["peak_mb"] / small["peak_mb"]
    print("time a half, %d dumps / %d: %.3f (bound %.2f); peak, all halves / a tenth of them: %.3f (bound %.2f); bytes a half: dumps %.1f, index %.1f" % (
        counts[-1], counts[0], growth, kMostGrowth, memory, kMostMemory, rows[-1]["dump_bytes"], rows[-1]["index_bytes"]))
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows + [small], out, indent=1)
    sys.exit(growth > kMostGrowth or memory > kMostMemory)


if __name__ == "__main__":
    main()
