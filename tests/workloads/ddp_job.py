"""Training by DistributedDataParallel over gloo: a small MLP and SGD; without end, for a number of steps, or until a file is there.

    ddp_job.py [--steps N] [--until FILE] [--store FILE] [--say DIR] [--count FILE] [--exit-with N]

Rank and world size come from the launcher: torchrun's variables, Slurm's, Open MPI's. The ranks meet in --store, a file that all see, else by MASTER_ADDR and
MASTER_PORT. Rank 0 alone looks for --until and tells the others between two steps, so all ranks make the same steps. --say: each announces DIR/training.RANK,
with its pid, after its first steps, and DIR/steps.RANK, how many it has made, at its end. --count: FILE.RANK holds how many so far, 8 bytes, at any time.
"""
import argparse
import mmap
import os
import struct
import sys

import torch
import torch.distributed as dist

import conditions

kLaunchers = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"))
kWarm = 3
kLookEvery = 4


def place():
    """@return (rank, world size)"""
    for rank, size in kLaunchers:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    sys.exit("ddp_job: started by no launcher that it knows: none of %s is set" % ", ".join(rank for rank, _ in kLaunchers))


class Counter:
    """How many steps were made, where others can read it while we run."""

    def __init__(self, path):
        self.memory = None
        if path:
            with open(path + ".part", "wb") as file:
                file.truncate(mmap.PAGESIZE)
            with open(path + ".part", "r+b") as file:
                self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
            os.rename(path + ".part", path)

    def tell(self, count):
        if self.memory is not None:
            struct.pack_into("<Q", self.memory, 0, count)


def train(rank, options):
    """@return how many steps"""
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data, wanted = torch.randn(16, 32), torch.randn(16, 4)
    counter = Counter(options.count and "%s.%d" % (options.count, rank))
    made = 0
    while options.steps is None or made < options.steps:
        if options.until and made % kLookEvery == 0:
            over = torch.tensor([float(rank == 0 and os.path.exists(options.until))])
            dist.broadcast(over, 0)
            if over.item() != 0:
                break
        optimizer.zero_grad()
        (model(data) - wanted).pow(2).mean().backward()
        optimizer.step()
        made += 1
        counter.tell(made)
        if made == kWarm and options.say:
            conditions.announce(options.say, "training.%d" % rank, str(os.getpid()))
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int)
    parser.add_argument("--until")
    parser.add_argument("--store")
    parser.add_argument("--say")
    parser.add_argument("--count")
    parser.add_argument("--exit-with", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rank, size = place()
    meeting = "file://" + options.store if options.store else "tcp://%s:%s" % (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size)
    made = train(rank, options)
    if options.say:
        conditions.announce(options.say, "steps.%d" % rank, str(made))
    # All of them leave together: who ends first takes its sockets along.
    dist.barrier()
    dist.destroy_process_group()
    # Not through the interpreter's end: there torch 2.15 aborts now and then, with nothing of ours in the process (2 of 78 pairs on a busy machine), when a
    # gloo thread that gives back a Python object still waits for the interpreter.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(options.exit_with)


if __name__ == "__main__":
    main()
