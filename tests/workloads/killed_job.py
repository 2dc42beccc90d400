"""A job one of whose workers is killed in the middle of a call; every step waits for a condition, none sleeps.

    killed_job.py --rank N --conditions DIR

worker1 is the victim. What happens, and the conditions (files in DIR) by which the driver follows and leads:
  ready.N           init_rpc is done                                  go           the driver: begin
  worked.0 worked.2 worker0 and worker2 have each completed a call to worker1: its committed records, and both connections are up
  holding           worker1 serves hold() from worker0, inside it an open user range "holding" and an open call to worker2
  holding.inner     worker2 serves that call, and stays in it
                    the driver stops worker1 (SIGSTOP) and says       stopped
  sent.0 sent.2     worker0 and worker2 have sent one call more each to worker1: they never arrive
                    the driver kills worker1 (SIGKILL)
  failed.0 failed.2 every call to worker1 has ended with an error at its caller
                    worker2 returns from the inner call: its answer has nowhere to go
                                                                      leave        the driver: end
"""
import argparse
import os

import torch
import torch.distributed.rpc as rpc

import conditions

kVictim = "worker1"
# Longer than the test; 0, which is none, would be the timeout of the meeting of the workers too in PyTorch 2.
kTimeoutS = 600
conditions_dir = None


def work():
    return torch.rand(3, 3).mul(2)


def hold_inner():
    conditions.announce(conditions_dir, "holding.inner")
    conditions.await_condition(conditions_dir, "failed.0")
    return torch.ones(1)


def hold():
    torch.add(torch.ones(2), 1)
    with torch.autograd.profiler.record_function("holding"):
        inner = rpc.rpc_async("worker2", hold_inner)
        conditions.announce(conditions_dir, "holding")
        return inner.wait()


def never_arrives():
    return torch.zeros(1)


def failed(future):
    """Waits until the call has ended with an error; that it succeeds is one too."""
    try:
        future.wait()
    except RuntimeError:
        return
    raise SystemExit("a call to the killed worker has succeeded")


def caller(rank):
    """worker0 and worker2."""
    rpc.rpc_sync(kVictim, work)
    conditions.announce(conditions_dir, "worked.%d" % rank)
    pending = []
    if rank == 0:
        pending.append(rpc.rpc_async(kVictim, hold))
    conditions.await_condition(conditions_dir, "stopped")
    pending.append(rpc.rpc_async(kVictim, never_arrives))
    conditions.announce(conditions_dir, "sent.%d" % rank)
    for future in pending:
        failed(future)
    conditions.announce(conditions_dir, "failed.%d" % rank)


def main():
    global conditions_dir
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--conditions", required=True)
    options = parser.parse_args()
    conditions_dir = options.conditions
    rpc.init_rpc("worker%d" % options.rank, rank=options.rank, world_size=3,
                 rpc_backend_options=rpc.TensorPipeRpcBackendOptions(rpc_timeout=kTimeoutS))
    conditions.announce(conditions_dir, "ready.%d" % options.rank)
    conditions.await_condition(conditions_dir, "go")
    if options.rank != 1:
        caller(options.rank)
    conditions.await_condition(conditions_dir, "leave")
    # A worker is missing: an orderly shutdown would wait for it.
    os._exit(0)


if __name__ == "__main__":
    main()
