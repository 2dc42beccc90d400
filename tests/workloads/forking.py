"""Forks children among threads that come and go, as DataLoader does among a job's; each child runs an operator, and one on a thread of its own.

    forking.py --conditions DIR

Says DIR/ready, forks until DIR/enough, then prints a JSON object: "forks", and "hung", children that were not done within some seconds.
"""
import argparse
import json
import os
import signal
import threading
import time

import torch

import conditions

kChurning, kThreads, kOperators = 3, 3, 10
kHungSeconds = 10.0  # a child takes some milliseconds

torch.set_num_threads(1)
kTensor = torch.ones(3)


def operators():
    for _ in range(kOperators):
        torch.neg(kTensor)


def threads(count):
    started = [threading.Thread(target=operators) for _ in range(count)]
    for one in started:
        one.start()
    for one in started:
        one.join()


def churn(ended):
    while not ended.is_set():
        threads(kThreads)


def is_done(pid):
    """Whether it ends within a while; where not, it is ended."""
    deadline = time.monotonic() + kHungSeconds
    while time.monotonic() < deadline:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return True
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conditions", required=True)
    options = parser.parse_args()
    ended = threading.Event()
    others = [threading.Thread(target=churn, args=(ended,)) for _ in range(kChurning)]
    for one in others:
        one.start()
    conditions.announce(options.conditions, "ready")
    told = {"torch": torch.__version__, "forks": 0, "hung": 0}
    while not conditions.holds(options.conditions, "enough"):
        pid = os.fork()
        if pid == 0:
            try:
                operators()
                threads(1)
            finally:
                os._exit(0)
        told["forks"] += 1
        told["hung"] += not is_done(pid)
    ended.set()
    for one in others:
        one.join()
    print(json.dumps(told), flush=True)


main()
