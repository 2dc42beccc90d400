"""Collectives of gloo in two process groups, by two ranks: FILE.RANK gets a JSON list of [group, operation] in the order in which the rank began
them; a group is "world" or "half".

    collectives.py --out FILE        both ranks, by spawn
"""
import argparse
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

kRanks = 2
kRounds = 3


class Log:
    def __init__(self):
        self.rows = []

    def began(self, group, operation):
        self.rows.append([group, operation])


def run(rank, groups, log):
    x = torch.ones(4)
    for _ in range(kRounds):
        for name, group in groups.items():
            log.began(name, "gloo:all_reduce")
            dist.all_reduce(x, group=group)
            log.began(name, "gloo:broadcast")
            dist.broadcast(x, 0, group=group)
        log.began("world", "gloo:all_gather")
        dist.all_gather([torch.empty(4) for _ in range(kRanks)], x)
    works = []
    for name in ("world", "half", "world"):
        log.began(name, "gloo:all_reduce")
        works.append(dist.all_reduce(torch.ones(8), group=groups[name], async_op=True))
    for work in works:
        work.wait()
    log.began("world", "gloo:reduce")
    dist.reduce(x, 0)
    log.began("half", "gloo:barrier")
    dist.barrier(group=groups["half"])


def worker(rank, store, out):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=kRanks)
    groups = {"world": dist.group.WORLD, "half": dist.new_group(list(range(kRanks)))}
    log = Log()
    with torch.autograd.profiler.record_function("collectives"):
        run(rank, groups, log)
    with open("%s.%d" % (out, rank), "w") as text:
        json.dump(log.rows, text)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(os.path.join(folder, "store"), options.out), nprocs=kRanks, join=True)


if __name__ == "__main__":
    main()
