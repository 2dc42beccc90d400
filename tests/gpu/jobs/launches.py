"""Times blocks of small additions on the GPU when it is told to: one line in, one line of JSON out.

    launches.py DIRECTORY DEVICE      DIRECTORY: the job directory, for `rounds`

    block N          ns an operation
    rounds R N       R rounds, in another order each: idle, idle, capturing; of an injected process, agent_stand_in.py turns the capture on and off
    profiled R N     the same: bare, bare, torch.profiler
"""
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "torch_overhead"))
import torch
from torch.profiler import ProfilerActivity, profile

import agent_stand_in

kDevice = sys.argv[2]


def settle():
    if kDevice != "cpu":
        torch.cuda.synchronize()


def block(count):
    add, a = torch.add, block.tensor
    settle()
    start = time.perf_counter_ns()
    for _ in range(count):
        add(a, a)
    took = time.perf_counter_ns() - start
    settle()
    return took / count


def rounds(count, repeats, variants):
    """@return {name: ns}; the first round, in which things are loaded and mapped, is left out"""
    found = {name: [] for name in variants}
    order = random.Random(1)
    for i in range(count + 1):
        for name in order.sample(list(variants), len(variants)):
            value = variants[name](repeats)
            if i:
                found[name].append(value)
    return found


def main():
    block.tensor = torch.ones(4, device=kDevice)
    block(2000)
    print(json.dumps({"pid": os.getpid()}), flush=True)

    def twice(repeats):
        block(repeats // 10)
        return block(repeats)

    def capturing(repeats):
        agent.capture(True)
        took = twice(repeats)
        agent.capture(False)
        return took

    def profiled(repeats):
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] if kDevice != "cpu" else [ProfilerActivity.CPU]):
            return twice(repeats)

    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "block":
            answer = block(int(words[0]))
        elif verb == "rounds":
            agent = agent_stand_in.StandIn(sys.argv[1], [os.getpid()])
            answer = {"ns": rounds(int(words[0]), int(words[1]), {"idle": twice, "again": twice, "capturing": capturing}),
                      "lost": agent.losses(), "cells": agent.segments[0].cells()}
        else:
            answer = {"ns": rounds(int(words[0]), int(words[1]), {"idle": twice, "again": twice, "profiler": profiled})}
        print(json.dumps(answer), flush=True)


main()
