#!/usr/bin/python3
"""PyTorch as users have it, on a machine without a driver: torch maps libcupti (13.2 of it dies at whatever is called), and nobody calls anything.
A capture of it records torch, and neither the plugin nor a libcupti of ours is in the process."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Node, check, kPython, kShim, main, skip, wait_until

from rsd.index import Job

kScript = """
import torch
for _ in range(50):
    torch.ones(4, 4) @ torch.ones(4, 4)
with open("/proc/self/maps") as maps:
    print(*sorted({line.split()[-1].split("/")[-1] for line in maps if "/lib" in line}))
"""


def test(workspace):
    node = Node(workspace, "torch", capture_from_start=True, extra=["--name", "all"])
    child = workspace.run("torch", [kPython, "-W", "ignore", "-c", kScript], node.environment(LD_PRELOAD=kShim))
    wait_until("its segments to go", lambda: not node.segments())
    node.stop()
    mapped = child.out().split()
    if not any(name.startswith("libcupti.so") for name in mapped):
        skip("this torch maps no libcupti")
    check(not any(name.startswith(("libringside_cupti", "libcuda.so")) for name in mapped), "mapped: %s", mapped)
    job = Job(workspace.path("output", "torch", "all"))
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    found = sum(r.name == "aten::matmul" for r in job.events[0].ranges)
    check(found == 50, "%d of 50 operators", found)
    levels = [s.level for p in job.dumps[0].processes.values() for s in p.sources if s.id == 5]
    check(not any(levels), "the level of CUPTI: %s", levels)


if __name__ == "__main__":
    main(test, "cupti_torch")
