"""An ordinary job that makes every kind of call that torch's RPC has; three workers, spawned. It says what it did in FILE, a JSON list of
[caller, callee, function, mode], of the calls that it makes itself.

    every_call.py --out FILE --conditions DIR        (MASTER_PORT from the environment)

In a call's name stands what torch itself puts on the wire: a method by an RRef's proxy is _local_invoke. What is not in FILE: the calls that
torch makes for an RRef's type, a distributed optimizer and a pass backwards.
"""
import argparse
import json
import os
import time
import warnings

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch.distributed.optim import DistributedOptimizer

import conditions

kWorkers = ("worker0", "worker1", "a-worker-with-a-long-name")
kSecond, kThird = kWorkers[1], kWorkers[2]
kTimeoutS, kLateS = 0.05, 0.4
# Each ends on another thread than it began on: more of them than open ranges are kept of a thread.
kScriptedCalls = 80


def udf(ms):
    time.sleep(ms / 1e3)
    return torch.rand(3, 3).mul(2)


def late(folder):
    """Takes longer than its caller waits."""
    time.sleep(kLateS)
    conditions.announce(folder, "late")
    return torch.ones(1)


def boom():
    raise ValueError("boom")


class Service:
    def __init__(self):
        self.value = 1

    def bump(self, by):
        self.value += by
        return self.value


def call_method(method, rref, *arguments):
    return method(rref.local_value(), *arguments)


def hand_on(rref, to):
    """An RRef travels on to a third worker, which fetches from its owner."""
    return rpc.rpc_sync(to, fetch_it, args=(rref,))


def fetch_it(rref):
    return rref.to_here()


def nested(to):
    return rpc.rpc_sync(to, udf, args=(1,))


@rpc.functions.async_execution
def chain(to, x):
    return rpc.rpc_async(to, torch.add, args=(x, x)).then(lambda f: f.wait() * 10)


@rpc.functions.async_execution
def chain_in_then(to, x):
    out = torch.futures.Future()

    def more(answered):
        rpc.rpc_async(to, torch.mul, args=(answered.wait(), 3)).then(lambda g: out.set_result(g.wait()))

    rpc.rpc_async(to, torch.add, args=(x, x)).then(more)
    return out


@torch.jit.script
def scripted(x, y):
    return torch.tanh(x + y)


@torch.jit.script
def scripted_caller(to: str, x):
    """The call is made by TorchScript: no Python at its beginning."""
    future = rpc.rpc_async(to, scripted, (x, x))
    return future.wait()


def parameter():
    return torch.nn.Parameter(torch.ones(3))


def times(rref, x):
    return (rref.local_value() * x).sum()


class Log:
    def __init__(self):
        self.rows = []

    def note(self, callee, function, mode, caller=kWorkers[0]):
        self.rows.append([caller, callee, function, mode])

    def sync(self, callee, function, name, *arguments, **options):
        self.note(callee, name, "sync")
        return rpc.rpc_sync(callee, function, args=arguments, **options)

    def asynchronous(self, callee, function, name, *arguments):
        self.note(callee, name, "async")
        return rpc.rpc_async(callee, function, args=arguments)

    def remote(self, callee, function, name, *arguments):
        """remote and to_here."""
        self.note(callee, name, "remote")
        rref = rpc.remote(callee, function, args=arguments)
        self.note(callee, "to_here", "fetch")
        return rref, rref.to_here()


def plain_calls(log, x, folder):
    log.sync(kSecond, torch.add, "aten::add", x, x)
    for future in [log.asynchronous(kSecond if i % 2 else kThird, udf, "udf", 2 * i) for i in range(4)]:
        future.wait()
    log.remote(kSecond, torch.add, "aten::add", x, 1)
    log.remote(kThird, udf, "udf", 1)
    log.sync(kSecond, nested, "nested", kThird)
    log.note(kThird, "udf", "sync", caller=kSecond)
    log.sync(kSecond, chain, "chain", kThird, x)
    log.note(kThird, "aten::add", "async", caller=kSecond)
    log.sync(kSecond, chain_in_then, "chain_in_then", kThird, x)
    log.note(kThird, "aten::add", "async", caller=kSecond)
    log.note(kThird, "aten::mul", "async", caller=kSecond)
    log.sync(kWorkers[0], torch.add, "aten::add", x, 5)
    try:
        log.sync(kSecond, boom, "boom")
    except ValueError:
        pass
    try:
        log.sync(kSecond, late, "late", folder, timeout=kTimeoutS)
    except RuntimeError:
        conditions.await_condition(folder, "late")


def rref_calls(log):
    # A proxy asks the owner for the type first, once an RRef: waiting for it or not as it is called itself.
    for mode in ("sync", "async", "remote"):
        rref, _ = log.remote(kSecond, Service, "Service")
        log.note(kSecond, "_local_invoke", mode)
        if mode == "sync":
            rref.rpc_sync().bump(3)
        elif mode == "async":
            rref.rpc_async().bump(3).wait()
        else:
            rref.remote().bump(3).to_here()
            log.note(kSecond, "to_here", "fetch")
    log.sync(kSecond, call_method, "call_method", Service.bump, rref, 2)
    log.sync(kThird, hand_on, "hand_on", rpc.remote(kSecond, udf, args=(1,)), kWorkers[0])
    log.note(kSecond, "udf", "remote")
    log.note(kWorkers[0], "fetch_it", "sync", caller=kThird)
    log.note(kSecond, "to_here", "fetch")


def scripted_calls(log, x):
    log.sync(kSecond, scripted, "scripted", x, x)
    log.asynchronous(kThird, scripted, "scripted", x, x).wait()
    log.remote(kSecond, scripted, "scripted", x, x)
    for _ in range(kScriptedCalls):
        scripted_caller(kSecond, x)
        log.note(kSecond, "scripted", "unknown")
    torch.neg(x)


def autograd_calls(log):
    weights = [rpc.remote(to, parameter) for to in (kSecond, kThird)]
    for to, weight in zip((kSecond, kThird), weights):
        log.note(to, "parameter", "remote")
    optimizer = DistributedOptimizer(torch.optim.SGD, weights, lr=0.1)
    with dist_autograd.context() as context:
        x = torch.rand(3, requires_grad=True)
        losses = [log.sync(to, times, "times", weight, x) for to, weight in zip((kSecond, kThird), weights)]
        dist_autograd.backward(context, [torch.stack(losses).sum()])
        optimizer.step(context)


def worker(rank, options):
    warnings.simplefilter("ignore")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    rpc.init_rpc(kWorkers[rank], rank=rank, world_size=len(kWorkers))
    if rank == 0:
        log = Log()
        x = torch.ones(2)
        plain_calls(log, x, options.conditions)
        rref_calls(log)
        scripted_calls(log, x)
        autograd_calls(log)
        with open(options.out, "w") as out:
            json.dump(log.rows, out)
    rpc.shutdown()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--conditions", required=True)
    mp.spawn(worker, args=(parser.parse_args(),), nprocs=len(kWorkers), join=True)


if __name__ == "__main__":
    main()
