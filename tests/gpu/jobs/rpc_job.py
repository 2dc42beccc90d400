"""A job of two processes: worker0 asks worker1 to compute on the GPU, with tensors there and back, a nested call among them.

    rpc_job.py --out DIR [--device cuda] [--maps] [--profile DIR]

--maps: tensors travel from GPU to GPU (device maps); else worker1 takes them to its GPU and back. --profile: torch.profiler in each process, around all of its
kernels; DIR/worker<N>.json. --out: DIR/worker<N>, what each has computed.
"""
import argparse
import contextlib
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads"))
import conditions
import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch.profiler import ProfilerActivity, profile

kRounds = 4
finished = threading.Event()
device = "cuda"


def on_device(tensor):
    return tensor.to(device)


def multiply(x, y):
    """Serves: a product and a sum, on the GPU."""
    x, y = on_device(x), on_device(y)
    return torch.relu(x @ y) + 1


def back_home(x, y):
    """The same, and back in the host's memory: what no device map takes along."""
    return multiply(x, y).cpu()


def add_at_callers(x):
    """Serves: asks the caller back."""
    return rpc.rpc_sync("worker0", add_here, args=(x,))


def add_here(x):
    return (on_device(x) + 2).cpu()


def finish():
    finished.set()


def calls(maps):
    """What worker0 does. @return a number that all of it has gone into"""
    torch.manual_seed(0)
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    total = 0.0
    for _ in range(kRounds):
        if maps:
            total += rpc.rpc_sync("worker1", multiply, args=(on_device(x), on_device(y))).sum().item()
        else:
            total += on_device(rpc.rpc_sync("worker1", back_home, args=(x, y))).sum().item()
        total += rpc.rpc_sync("worker1", add_at_callers, args=(x,)).sum().item()
    return total


def worker(rank, options, port):
    global device
    device = options.device
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if device != "cpu":
        torch.cuda.init()
        torch.cuda.set_device(0)
    setup = rpc.TensorPipeRpcBackendOptions(rpc_timeout=60)
    if options.maps:
        setup.set_device_map("worker%d" % (1 - rank), {0: 0})
    rpc.init_rpc("worker%d" % rank, rank=rank, world_size=2, rpc_backend_options=setup)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device != "cpu" else [])
    watched = profile(activities=activities) if options.profile else contextlib.nullcontext()
    total = 0.0
    with watched as profiler:
        # Who serves is watched before it is asked.
        if rank == 1:
            conditions.announce(options.out, "ready")
            finished.wait(100)
        else:
            conditions.await_condition(options.out, "ready")
            total = calls(options.maps)
            rpc.rpc_sync("worker1", finish)
        if device != "cpu":
            torch.cuda.synchronize()
    if options.profile:
        profiler.export_chrome_trace(os.path.join(options.profile, "worker%d.json" % rank))
    with open(os.path.join(options.out, "worker%d" % rank), "w") as out:
        json.dump({"pid": os.getpid(), "total": total}, out)
    rpc.shutdown()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--maps", action="store_true")
    parser.add_argument("--profile")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    mp.spawn(worker, args=(options, options.port), nprocs=2, join=True)


if __name__ == "__main__":
    main()
