"""A process that times blocks of torch.add on 4 elements when it is told to: one line in, one line of JSON out.

    block N                     ns an operation, nothing of ours done
    rounds R N                  R rounds in one process: idle, idle, empty callback, empty callback, capturing; ns an operation each
    structure                   what this process has of the shim (idle_structure.py)
"""
import ctypes
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch  # noqa: E402

import agent_stand_in  # noqa: E402
import idle_structure  # noqa: E402


def block(count, a, b):
    add = torch.add
    start = time.perf_counter_ns()
    for _ in range(count):
        add(a, b)
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


def rounds(count, operations, a, b, empty, agent):
    """Interleaved in one process; the order turns from round to round."""
    def idle():
        return block(operations, a, b)

    def observed():
        with empty:
            return block(operations, a, b)

    def capturing():
        agent.capture(True)
        result = block(operations, a, b)
        agent.capture(False)
        return result

    variants = [("idle", idle), ("idle_again", idle), ("empty", observed), ("empty_again", observed), ("capturing", capturing)]
    results = {name: [] for name, _ in variants}
    for i in range(count + 1):
        for name, run in variants[i % len(variants):] + variants[:i % len(variants)]:
            value = run()
            if i > 0:  # the first round maps lanes
                results[name].append(value)
    segment = agent.segments[0]
    return {"ns": results, "losses": agent.losses(), "cells": segment.cells(), "operations": (count + 1) * operations}


def main():
    module, directory = sys.argv[1], sys.argv[2]
    torch.set_num_threads(1)
    a, b = torch.ones(4), torch.ones(4)
    block(20000, a, b)
    library = torch_library()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        command, *numbers = line.split()
        numbers = [int(n) for n in numbers]
        if command == "block":
            answer = block(numbers[0], a, b)
        elif command == "structure":
            answer = idle_structure.describe(library)
        else:
            agent = agent_stand_in.StandIn(directory, [os.getpid()])
            answer = rounds(numbers[0], numbers[1], a, b, EmptyCallback(module, library), agent)
        print(json.dumps(answer), flush=True)


main()
