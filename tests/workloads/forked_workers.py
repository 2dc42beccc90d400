"""A launcher that knows nothing of torch forks its workers, and they import it: two workers of torch's RPC, each call of a mode of its own.

    forked_workers.py --conditions DIR

Says DIR/ready.RANK when a worker has joined, calls after DIR/go, says DIR/done, leaves after DIR/leave.
"""
import argparse
import os
import sys

import conditions

kWorkers = 2
kCalls = {"sync": 3, "async": 4, "remote": 2}  # how often


def work(rank, directory):
    import torch
    import torch.distributed.rpc as rpc

    torch.set_num_threads(1)
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=kWorkers)
    conditions.announce(directory, "ready.%d" % rank)
    conditions.await_condition(directory, "go")
    if rank == 0:
        x = torch.ones(3)
        for _ in range(kCalls["sync"]):
            rpc.rpc_sync("worker1", torch.neg, args=(x,))
        for _ in range(kCalls["async"]):
            rpc.rpc_async("worker1", torch.abs, args=(x,)).wait()
        for _ in range(kCalls["remote"]):
            rpc.remote("worker1", torch.add, args=(x, 1)).to_here()
        conditions.announce(directory, "done")
    conditions.await_condition(directory, "leave")
    rpc.shutdown()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conditions", required=True)
    options = parser.parse_args()
    children = []
    for rank in range(kWorkers):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                work(rank, options.conditions)
                status = 0
            finally:
                sys.stdout.flush()
                os._exit(status)
        children.append(pid)
    statuses = [os.waitpid(pid, 0)[1] for pid in children]
    sys.exit(1 if any(statuses) else 0)


if __name__ == "__main__":
    main()
