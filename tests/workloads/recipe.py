"""PyTorch's recipe "Profiling RPC-Based Workloads" with the profiler taken out: an ordinary job that knows nothing of us.

Three workers; worker0 calls: two builtins at once, a UDF, remote + to_here of both, a chain by async_execution, and a nested
synchronous call worker0 -> worker1 -> worker2.

    recipe.py                                   all three workers, by mp.spawn
    recipe.py --rank N [--world 3]              one worker a process (MASTER_ADDR, MASTER_PORT from the environment)
        --conditions DIR                        says DIR/ready.N after init_rpc, calls after DIR/go, says DIR/done, leaves after DIR/leave
        --repeat K                              the whole recipe K times
"""
import argparse
import os

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

import conditions

kWorldSize = 3


def udf_with_ops():
    t1, t2 = torch.rand(3, 3), torch.rand(3, 3)
    torch.add(t1, t2)
    return torch.mul(t1, t2)


@rpc.functions.async_execution
def nested_async(to, x, y):
    """worker1 -> worker2, then goes on on worker1."""
    return rpc.rpc_async(to, torch.add, args=(x, y)).then(lambda f: f.wait() * 10)


def nested_sync(to):
    """worker1 -> worker2."""
    return rpc.rpc_sync(to, udf_with_ops)


def calls():
    """What worker0 does: the recipe."""
    t1, t2 = torch.rand(3, 3), torch.rand(3, 3)
    f = rpc.rpc_async("worker1", torch.add, args=(t1, t2))
    g = rpc.rpc_async("worker1", torch.mul, args=(t1, t2))
    f.wait()
    g.wait()
    rpc.rpc_sync("worker1", udf_with_ops)
    rpc.remote("worker1", torch.add, args=(t1, t2)).to_here()
    rpc.remote("worker1", udf_with_ops).to_here()
    rpc.rpc_sync("worker1", nested_async, args=("worker2", torch.ones(2), torch.ones(2)))
    rpc.rpc_sync("worker1", nested_sync, args=("worker2",))


def worker(rank, world_size, conditions_dir=None, repeat=1, work=calls):
    """One worker from init_rpc to shutdown; rank 0 does `work`."""
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=world_size)
    if conditions_dir:
        conditions.announce(conditions_dir, "ready.%d" % rank)
        conditions.await_condition(conditions_dir, "go")
    if rank == 0:
        for _ in range(repeat):
            work()
        if conditions_dir:
            conditions.announce(conditions_dir, "done")
    if conditions_dir:
        conditions.await_condition(conditions_dir, "leave")
    rpc.shutdown()


def main():
    parser = argparse.ArgumentParser(description="the recipe, unprofiled")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--world", type=int, default=kWorldSize)
    parser.add_argument("--conditions")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    if options.rank is None:
        mp.spawn(worker, args=(options.world, options.conditions, options.repeat), nprocs=options.world, join=True)
    else:
        worker(options.rank, options.world, options.conditions, options.repeat)


if __name__ == "__main__":
    main()
