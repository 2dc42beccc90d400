"""Two workers: worker0 asks worker1 for a dozen answers at once, three times; worker1 has as many threads as told.

    rpc_threads.py THREADS
"""
import os
import sys
import time

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

kAtOnce, kTimes, kSleepS = 12, 3, 0.02


def slow(t):
    time.sleep(kSleepS)
    return torch.mul(t, 2)


def worker(rank, threads):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=2, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(num_worker_threads=threads))
    if rank == 0:
        for _ in range(kTimes):
            for future in [rpc.rpc_async("worker1", slow, args=(torch.ones(2),)) for _ in range(kAtOnce)]:
                future.wait()
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(worker, args=(int(sys.argv[1]),), nprocs=2, join=True)
