"""A process that times blocks of torch work when it is told to: one line in, one line of JSON out. WORK is `add` (torch.add on 4 elements) or
`step` (a training step of a small MLP: forward, backward, SGD).

    block WORK N                ns an operation or step, nothing of ours done
    rounds WORK R N             R rounds in one process, each variant in turning order: idle, idle, empty callback, empty callback, capturing,
                                torch.profiler; ns each
    structure                   what this process has of the shim (idle_structure.py)
"""
import ctypes
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch  # noqa: E402
import torch.profiler  # noqa: E402

import agent_stand_in  # noqa: E402
import idle_structure  # noqa: E402


class Add:
    def __init__(self):
        self._a, self._b = torch.ones(4), torch.ones(4)

    def block(self, count):
        add, a, b = torch.add, self._a, self._b
        start = time.perf_counter_ns()
        for _ in range(count):
            add(a, b)
        return (time.perf_counter_ns() - start) / count


class Step:
    def __init__(self):
        torch.manual_seed(0)
        self._model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01, momentum=0.9)
        self._inputs, self._targets = torch.randn(8, 16), torch.randn(8, 4)
        self._loss = torch.nn.MSELoss()

    def block(self, count):
        model, optimizer, loss, inputs, targets = self._model, self._optimizer, self._loss, self._inputs, self._targets
        start = time.perf_counter_ns()
        for _ in range(count):
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
        return (time.perf_counter_ns() - start) / count


def torch_library():
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    return ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"))


class EmptyCallback:
    """Registered while inside."""

    def __init__(self, module, library):
        self._register = ctypes.CDLL(module).register_empty
        self._register.restype = ctypes.c_uint64
        self._register.argtypes = [ctypes.c_void_p]
        self._add = ctypes.cast(library._ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE, ctypes.c_void_p)
        self._remove = library._ZN2at14removeCallbackEm
        self._remove.argtypes = [ctypes.c_uint64]

    def __enter__(self):
        self._handle = self._register(self._add)

    def __exit__(self, *_):
        self._remove(self._handle)


def rounds(work, count, repeats, empty, agent):
    """Interleaved in one process; the order turns from round to round."""
    def idle():
        return work.block(repeats)

    def observed():
        with empty:
            return work.block(repeats)

    def profiled():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            return work.block(repeats)

    def capturing():
        agent.capture(True)
        result = work.block(repeats)
        agent.capture(False)
        return result

    variants = [("idle", idle), ("idle_again", idle), ("empty", observed), ("empty_again", observed), ("capturing", capturing),
                ("profiler", profiled)]
    results = {name: [] for name, _ in variants}
    for i in range(count + 1):
        for name, run in variants[i % len(variants):] + variants[:i % len(variants)]:
            value = run()
            if i > 0:  # the first round maps lanes
                results[name].append(value)
    segment = agent.segments[0]
    return {"ns": results, "losses": agent.losses(), "cells": segment.cells(), "repeats": (count + 1) * repeats}


def main():
    module, directory = sys.argv[1], sys.argv[2]
    torch.set_num_threads(1)
    works = {"add": Add(), "step": Step()}
    works["add"].block(20000)
    works["step"].block(500)
    library = torch_library()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "block":
            answer = works[words[0]].block(int(words[1]))
        elif command == "structure":
            answer = idle_structure.describe(library)
        else:
            agent = agent_stand_in.StandIn(directory, [os.getpid()])
            answer = rounds(works[words[0]], int(words[1]), int(words[2]), EmptyCallback(module, library), agent)
        print(json.dumps(answer), flush=True)


main()
