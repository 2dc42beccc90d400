"""An ordinary RPC job that logs its own calls: every kind of call, some of them sleeping a known time.

    logged_job.py --rank N --conditions DIR --log FILE [--rounds 2]

Three workers, one process each (MASTER_ADDR, MASTER_PORT and, for a second round, MASTER_PORT_2 from the environment). Says
DIR/ready.N after the first init_rpc, calls after DIR/go, says DIR/done when every call is over, leaves after DIR/leave. With
--rounds 2 it ends RPC after the first calls, calls init_rpc again in the same process and does all of it once more.
"""
import argparse
import contextlib
import os
import sys
import time

import torch
import torch.distributed.rpc as rpc

import call_log
import conditions

kWorkers = ("worker0", "worker1", "a-worker-with-a-long-name")
kSecond, kThird = kWorkers[1], kWorkers[2]
kSleepMs = 300
kTimeoutS = 0.05
# A thread that answers must not wait 5 ms for the interpreter's lock: the log would show that, and not the call.
kSwitchIntervalS = 0.0001

log = None
conditions_dir = None


def udf(ms):
    time.sleep(ms / 1e3)
    return torch.rand(3, 3).mul(2)


def late(ms, said):
    """Sleeps longer than its caller waits; `said` is the condition that it has ended all the same."""
    time.sleep(ms / 1e3)
    conditions.announce(conditions_dir, said)
    return torch.ones(1)


def nested(to):
    return log.sync(to, udf, "udf", args=(kSleepMs,), sleep_ms=kSleepMs)


@rpc.functions.async_execution
def chain(to, x):
    return log.asynchronous(to, torch.add, "aten::add", args=(x, x)).then(lambda f: f.wait() * 10)


@rpc.functions.async_execution
def chain_in_then(to, x):
    """The second call is made inside a .then callback."""
    out = torch.futures.Future()

    def more(answered):
        log.asynchronous(to, torch.mul, "aten::mul", args=(answered.wait(), 3)).then(lambda g: out.set_result(g.wait()))

    log.asynchronous(to, torch.add, "aten::add", args=(x, x)).then(more)
    return out


def boom(ms):
    """Fails after a known time: what Python does with an exception at its caller takes a millisecond by itself."""
    time.sleep(ms / 1e3)
    raise ValueError("boom")


def settle():
    """Run on each worker at the end of a round: its own asynchronous calls have their rows."""
    log.settle()
    return True


def calls(said):
    """What worker0 does in a round, in the first one twice. `said`: the late one's condition"""
    x = torch.ones(2)
    log.sync(kSecond, torch.add, "aten::add", args=(x, x))
    log.sync(kThird, torch.add, "aten::add", args=(x, x))
    futures = [log.asynchronous(kSecond if i % 2 else kThird, udf, "udf", args=(kSleepMs + 20 * i,), sleep_ms=kSleepMs + 20 * i) for i in range(4)]
    futures += [log.asynchronous(kSecond, torch.mul, "aten::mul", args=(x, i)) for i in range(3)]
    for future in futures:
        future.wait()
    if log.round == 1:  # torch 1.13's own shutdown hangs after a remote() that follows a second init_rpc
        log.fetch(kSecond, log.remote(kSecond, torch.add, "aten::add", args=(x, 1)))
        log.fetch(kThird, log.remote(kThird, udf, "udf", args=(kSleepMs,), sleep_ms=kSleepMs))
    log.sync(kSecond, nested, "nested", args=(kThird,), sleep_ms=kSleepMs)
    log.sync(kSecond, chain, "chain", args=(kThird, x))
    log.sync(kSecond, chain_in_then, "chain_in_then", args=(kThird, x))
    log.sync("worker0", torch.add, "aten::add", args=(x, 5))
    log.sync(kSecond, boom, "boom", args=(kSleepMs,), sleep_ms=kSleepMs, expect=ValueError)
    log.sync(kSecond, late, "late", args=(8 * kTimeoutS * 1e3, said), timeout=kTimeoutS, expect=RuntimeError)
    conditions.await_condition(conditions_dir, said)
    log.settle()
    log.sync(kSecond, settle, "settle")
    log.sync(kThird, settle, "settle")
    log.flush()


def main():
    global log, conditions_dir
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--conditions", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    conditions_dir = options.conditions
    sys.setswitchinterval(kSwitchIntervalS)
    # Nor must it wait for another program's turn on a busy machine.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    log = call_log.CallLog(options.log)
    for round_ in range(1, options.rounds + 1):
        if round_ > 1:
            os.environ["MASTER_PORT"] = os.environ["MASTER_PORT_%d" % round_]
        # Sockets alone: the shared-memory transport's thread polls without rest, and three of those on two cores are in each call's time.
        transport = rpc.TensorPipeRpcBackendOptions(_transports=["uv"], _channels=["basic"])
        rpc.init_rpc(kWorkers[options.rank], rank=options.rank, world_size=len(kWorkers), rpc_backend_options=transport)
        log.joined(kWorkers[options.rank])
        if round_ == 1:
            conditions.announce(conditions_dir, "ready.%d" % options.rank)
            conditions.await_condition(conditions_dir, "go")
        if options.rank == 0:
            # The first call of a kind is in part the machine's, which finds the memory for it.
            for go in range(2 if round_ == 1 else 1):
                calls("late.%d.%d" % (round_, go))
            if round_ == options.rounds:
                conditions.announce(conditions_dir, "done")
        if round_ == options.rounds:
            conditions.await_condition(conditions_dir, "leave")
        rpc.shutdown()


if __name__ == "__main__":
    main()
