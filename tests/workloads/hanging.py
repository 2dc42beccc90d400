"""Four ranks of gloo, of which one stays away from a collective; every step waits for a condition, none sleeps.

    hanging.py --rank N --conditions DIR --out FILE

Rank 2 is the one. What happens, and the conditions (files in DIR):
  FILE.N     written by each rank right before it calls the collective that rank 2 stays away from: the time (CLOCK_MONOTONIC)
  in.N       ... and said; N is 0, 1, 3
  away       rank 2 has done what came before, and waits             come       the driver: it goes there, too
  failed.N   the collective has ended with an error at rank N         leave      the driver: end
"""
import argparse
import os
import time

import torch
import torch.distributed as dist

import conditions

kRanks = 4
kAway = 2
kBefore = 5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--conditions", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    rank = options.rank
    dist.init_process_group("gloo", rank=rank, world_size=kRanks)
    x = torch.ones(4)
    for _ in range(kBefore):
        dist.all_reduce(x)
    if rank == kAway:
        conditions.announce(options.conditions, "away")
        conditions.await_condition(options.conditions, "come")
    else:
        with open("%s.%d" % (options.out, rank), "w") as file:
            file.write(repr(time.monotonic()))
        conditions.announce(options.conditions, "in.%d" % rank)
    try:
        dist.all_reduce(x)
    except RuntimeError:
        conditions.announce(options.conditions, "failed.%d" % rank)
    conditions.await_condition(options.conditions, "leave")
    # Nobody waits for one that has been killed.
    os._exit(0)


main()
