"""Takes and gives back "device memory" in ranges of torch's: device_memory.py LIBRARY [PROFILED]

LIBRARY is a libc10_cuda.so of the test's own, which reports to torch as CUDA's allocator does (device_memory.c). With PROFILED torch's own profiler
watches, and what its table says goes to that file: {name: [calls, bytes on the device, own bytes on the device]}.
"""
import contextlib
import ctypes
import json
import sys
import time

import torch

library = ctypes.CDLL(sys.argv[1])
# What has been loaded is looked at, at the latest, as an extension module is: this one, which nothing else has loaded.
assert "_lsprof" not in sys.modules
import _lsprof  # noqa: E402,F401


def take(address, count):
    # Torch up to 2.8 cuts times to microseconds.
    time.sleep(0.001)
    library.device_memory(ctypes.c_void_p(address), ctypes.c_int64(count))
    time.sleep(0.001)


def job():
    with torch.autograd.profiler.record_function("outer"):
        take(0x1000, 1 << 20)
        with torch.autograd.profiler.record_function("inner"):
            take(0x2000, 4096)
            take(0x1000, -(1 << 20))
    with torch.autograd.profiler.record_function("inner"):
        take(0x3000, 512)
    take(0x3000, -512)


with contextlib.ExitStack() as stack:
    if len(sys.argv) > 2:
        profiler = stack.enter_context(torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True))
    job()
if len(sys.argv) > 2:
    number = lambda row, name: getattr(row, name % "device") if hasattr(row, name % "device") else getattr(row, name % "cuda")
    rows = {row.key: [row.count, number(row, "%s_memory_usage"), number(row, "self_%s_memory_usage")] for row in profiler.key_averages()}
    with open(sys.argv[2], "w") as out:
        json.dump(rows, out)
