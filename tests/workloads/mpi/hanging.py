"""Four ranks of MPI, of which one stays away: two wait for it in an all-reduce, one in a receive. Every step waits for a condition, none sleeps.

    mpirun -n 4 python hanging.py CONDITIONS OUT

OUT.N        written by each rank that will wait, right before: its pid and the time (CLOCK_MONOTONIC)
conditions   in.N: said then; away: rank 2 has done what came before; come: the driver, it goes there, too
"""
import array
import os
import sys
import time

from mpi4py import MPI

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import conditions  # noqa: E402

kAway, kReceiver, kTag = 2, 3, 7
kBefore = 5


def main():
    folder, out = sys.argv[1:]
    world = MPI.COMM_WORLD
    mine, total = array.array("i", [world.rank]), array.array("i", [0])
    for _ in range(kBefore):
        world.Allreduce(mine, total)
    with open("%s.%d" % (out, world.rank), "w") as file:
        file.write("%d %r" % (os.getpid(), time.monotonic()))
    if world.rank == kAway:
        conditions.announce(folder, "away")
        conditions.await_condition(folder, "come")
        world.Send(mine, dest=kReceiver, tag=kTag)
    else:
        conditions.announce(folder, "in.%d" % world.rank)
    if world.rank == kReceiver:
        world.Recv(mine, source=kAway, tag=kTag)
    world.Allreduce(mine, total)
    assert total[0] == 0 + 1 + kAway + kAway, total


main()
