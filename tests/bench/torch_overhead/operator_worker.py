"""A process that times blocks of torch work when it is told to: one line in, one line of JSON out. WORK is `add` (torch.add on 4 elements) or
`step` (a training step of a small MLP: forward, backward, SGD).

    block WORK N                ns an operation or step, nothing of ours done
    rounds WORK R N             R rounds in one process, in another order each, after a pause and a short block that are not timed: idle, idle, empty callback,
                                empty callback, the floor's callback, capturing, torch.profiler; ns each
    whole WORK R N              the same for idle, idle, capturing, torch.profiler, from the start of the capture or profile to its end: all that
                                the thread waits for
    thread                      starts a thread that sleeps
    structure                   what this process has of the shim (idle_structure.py)
"""
import ctypes
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch  # noqa: E402
import torch.profiler  # noqa: E402

import agent_stand_in  # noqa: E402
import idle_structure  # noqa: E402


kPauseS = 0.003


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


class Callback:
    """A callback of callbacks.cpp, registered while inside."""

    def __init__(self, module, library, name):
        self._register = getattr(ctypes.CDLL(module), "register_" + name)
        self._register.restype = ctypes.c_uint64
        self._register.argtypes = [ctypes.c_void_p]
        self._add = ctypes.cast(library._ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE, ctypes.c_void_p)
        self._remove = library._ZN2at14removeCallbackEm
        self._remove.argtypes = [ctypes.c_uint64]

    def __enter__(self):
        self._handle = self._register(self._add)

    def __exit__(self, *_):
        self._remove(self._handle)


def timed(run):
    start = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - start


class Variants:
    """The same work, idle and watched in several ways."""

    def __init__(self, work, empty, floor, agent):
        self._work, self._empty, self._floor, self._agent = work, empty, floor, agent

    def idle(self, run):
        return run()

    def empty(self, run):
        with self._empty:
            return run()

    def floor(self, run):
        with self._floor:
            return run()

    def capturing(self, run):
        self._agent.capture(True)
        result = run()
        self._agent.capture(False)
        return result

    def profiler(self, run):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            return run()

    def rounds(self, names, count, measure):
        """Interleaved in one process, shuffled: who comes after the profiler finds cold caches.
        @param measure  of a variant: ns an operation
        @return {name: values}; `_again` is the same variant"""
        results = {name: [] for name in names}
        order = random.Random(1)
        for i in range(count + 1):
            for name in order.sample(names, len(names)):
                value = measure(getattr(self, name.removesuffix("_again")))
                if i > 0:  # the first round maps lanes
                    results[name].append(value)
        segment = self._agent.segments[0]
        return {"ns": results, "losses": self._agent.losses(), "cells": segment.cells()}

    def inside(self, count, repeats):
        def block():
            # A capture is waited for asleep, and who has slept is slower for milliseconds: all sleep.
            time.sleep(kPauseS)
            self._work.block(repeats // 10)
            return self._work.block(repeats)

        return self.rounds(["idle", "idle_again", "empty", "empty_again", "floor", "capturing", "profiler"], count,
                           lambda variant: variant(block))

    def whole(self, count, repeats):
        def block():
            self._work.block(repeats)

        return self.rounds(["idle", "idle_again", "capturing", "profiler"], count,
                           lambda variant: timed(lambda: variant(block)) / repeats)


def pin(cpu):
    """All threads that there are. Not before torch is imported: on one CPU numpy's OpenBLAS starts none, where any job's process has some, and the C library
    takes no locks."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {cpu})


def main():
    module, directory, cpu = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    works = {"add": Add(), "step": Step()}
    works["add"].block(20000)
    works["step"].block(500)
    pin(cpu)
    library = torch_library()
    print(json.dumps({"pid": os.getpid()}), flush=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "block":
            answer = works[words[0]].block(int(words[1]))
        elif command == "thread":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            answer = threading.active_count()
        elif command == "structure":
            answer = idle_structure.describe(library)
        else:
            agent = agent_stand_in.StandIn(directory, [os.getpid()])
            variants = Variants(works[words[0]], Callback(module, library, "empty"), Callback(module, library, "floor"), agent)
            measure = variants.whole if command == "whole" else variants.inside
            answer = measure(int(words[1]), int(words[2]))
        print(json.dumps(answer), flush=True)


main()
