#!/usr/bin/python3
"""PyTorch as users have it, on a machine without a driver: torch maps libcupti (13.2 of it dies at whatever is called), and nobody calls anything.
A capture of it records torch, and neither the plugin nor a libcupti of ours is in the process. And with a driver, a fake one, and with traps in that libcupti's
place: idle, no entry point is called; a capture walks into the first."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Node, check, kPython, kShim, main, skip, wait_until
from lab import Lab, set_traps

from rsd.index import Job

kScript = """
import ctypes, sys
import torch
if len(sys.argv) > 1:
    ctypes.CDLL("libcuda.so.1").cuInit(0)
for _ in range(50):
    torch.ones(4, 4) @ torch.ones(4, 4)
with open("/proc/self/maps") as maps:
    print(*sorted({line.split()[-1] for line in maps if "/lib" in line}))
"""


def run(workspace, name, words, captured, expect=0, **more):
    """@return (what it has mapped, its Child)"""
    node = Node(workspace, name, capture_from_start=captured, extra=["--name", "all"] if captured else [])
    child = workspace.run(name, [kPython, "-W", "ignore", "-c", kScript, *words], node.environment(**{"LD_PRELOAD": kShim, **more}), expect=expect)
    wait_until("its segments to go", lambda: not node.segments())
    node.stop()
    return child.out().split(), child


def test(workspace):
    mapped, _ = run(workspace, "torch", [], True)
    files = [os.path.basename(path) for path in mapped]
    if "libcupti.so.13" not in files:
        skip("this torch maps no libcupti of 13")
    check(not any(name.startswith(("libringside_cupti", "libcuda.so")) for name in files), "mapped: %s", files)
    job = Job(workspace.path("output", "torch", "all"))
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    found = sum(r.name == "aten::matmul" for r in job.events[0].ranges)
    check(found == 50, "%d of 50 operators", found)
    levels = [s.level for p in job.dumps[0].processes.values() for s in p.sources if s.id == 5]
    check(not any(levels), "the level of CUPTI: %s", levels)
    print("in torch without a driver, in a capture: no entry point of CUPTI's is called", flush=True)
    # The traps are loaded first: who looks for the library by its name, and for its functions, finds them; what torch loads by its path lies behind.
    lab = Lab(workspace, "13.5")
    traps = os.path.join(set_traps(lab), lab.soname)
    more = {"LD_PRELOAD": "%s %s" % (kShim, traps), "LD_LIBRARY_PATH": lab.libraries}
    mapped, child = run(workspace, "idle", ["driver"], False, **more)
    check(traps in mapped, "mapped: %s", mapped)
    check("libringside_cupti.so" not in [os.path.basename(path) for path in mapped] and "trap" not in child.err(), "mapped: %s; it says %s", mapped, child.err())
    print("in torch with a driver, idle: no entry point of CUPTI's is called", flush=True)
    _, child = run(workspace, "captured", ["driver"], True, expect=-signal.SIGABRT, **more)
    check("trap: cuptiGetVersion" in child.err(), "it says: %s", child.err())
    print("in torch with a driver, in a capture: CUPTI is called", flush=True)


if __name__ == "__main__":
    main(test, "cupti_torch")
