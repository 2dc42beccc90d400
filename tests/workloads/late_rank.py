"""Four ranks that all-reduce after a bit of work each, over gloo or MPI; one of them is late, or none.

    late_rank.py --store FILE [--plant nothing|loop|nice] [--steps N]
    mpirun -np 4 late_rank.py --mpi [...]

loop: it works 2 ms longer than the others, 6 over MPI. nice: it has the least of a core that another process keeps busy. Each rank is a process of its own, with RANK and
WORLD_SIZE as launchers give them; without these it starts all of them.
"""
import argparse
import array
import os
import subprocess
import sys
import time

kRanks = 4
kLate = 2
kWorkS = 0.0003
kLoopS = 0.002
# Ranks of MPI spin where they wait: on few cores they take turns of some milliseconds.
kMpiLoopS = 0.006


def work(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def cpu_work(times):
    """So many turns, however long they take on this core."""
    for _ in range(times):
        pass


def burner(core):
    """A process that keeps a core busy, until we end."""
    return subprocess.Popen([sys.executable, "-c", "import os\nos.sched_setaffinity(0, {%d})\nparent = os.getppid()\nwhile os.getppid() == parent: pass" % core])


def gloo(rank, store):
    """@return (what a step does at its end, what is done in the end)"""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=kRanks)
    x = torch.ones(64)

    def reduce():
        dist.all_reduce(x)
        x.fill_(1)

    def end():
        dist.barrier()
        dist.destroy_process_group()

    return reduce, end


def mpi(world):
    """@return as gloo()"""
    mine, total = array.array("d", [1] * 64), array.array("d", [0] * 64)
    return lambda: world.Allreduce(mine, total), world.Barrier


def rank_main(rank, options, reduce, end):
    busy = None
    if options.plant == "nice" and rank == kLate:
        core = max(os.sched_getaffinity(0))
        busy = burner(core)
        os.nice(10)
        os.sched_setaffinity(0, {core})
    for _ in range(options.steps):
        if options.plant == "nice":
            cpu_work(60_000)
        else:
            work(kWorkS + ((kMpiLoopS if options.mpi else kLoopS) if options.plant == "loop" and rank == kLate else 0))
        reduce()
    end()
    if busy:
        busy.kill()
        busy.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store")
    parser.add_argument("--mpi", action="store_true")
    parser.add_argument("--plant", choices=("nothing", "loop", "nice"), default="nothing")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    if options.mpi:
        from mpi4py import MPI
        rank_main(MPI.COMM_WORLD.rank, options, *mpi(MPI.COMM_WORLD))
        return
    if "RANK" in os.environ:
        rank = int(os.environ["RANK"])
        rank_main(rank, options, *gloo(rank, options.store))
        return
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(kRanks)}) for rank in range(kRanks)]
    sys.exit(max(rank.wait() for rank in ranks))


if __name__ == "__main__":
    main()
