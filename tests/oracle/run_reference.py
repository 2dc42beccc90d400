#!/usr/bin/python3
"""Runs the recipe under torch's legacy profiler and writes what it saw: the reference of the oracle test.

    run_reference.py OUT_DIR [RUNS]     writes OUT_DIR/run-01.txt ... (RUNS: 10)

One line an event: start us, elapsed us, tid, node, remote, async, sequence, shapes, memory, name; tabs between. The profiler
is racy (of two requests in flight at one callee it may lose the operator of one), so the reference is the union of all runs:
filter.py makes it. Run again only when the recipe changes, and read the diff.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workloads"))

import torch.autograd.profiler_legacy as profiler
import torch.multiprocessing as mp

import recipe


def profiled_worker(rank, path):
    """recipe.worker, with worker0's calls under the profiler; its events go to `path`."""

    def profiled_calls():
        with profiler.profile(record_shapes=True, profile_memory=True) as prof:
            recipe.calls()
        with open(path, "w") as out:
            for e in prof.function_events:
                out.write("%.1f\t%.1f\ttid=%s\tnode=%s\tremote=%s\tasync=%s\tseq=%s\tshapes=%s\tmem=%s\t%s\n" % (
                    e.time_range.start, e.time_range.elapsed_us(), e.thread, e.node_id, e.is_remote, e.is_async,
                    e.sequence_nr, e.input_shapes, e.cpu_memory_usage, e.name))

    recipe.worker(rank, recipe.kWorldSize, work=profiled_calls)


def main():
    out = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    os.makedirs(out, exist_ok=True)
    for run in range(1, runs + 1):
        begin = time.monotonic()
        path = os.path.join(out, "run-%02d.txt" % run)
        mp.spawn(profiled_worker, args=(path,), nprocs=recipe.kWorldSize, join=True)
        print("%s: %.1f s" % (path, time.monotonic() - begin), flush=True)


if __name__ == "__main__":
    main()
