#!/usr/bin/env python3
"""What the shim adds to `import torch`: processor time (user and system) and wall time, with it / without.

    import_torch.py SHIM [--python PATH] [--rounds N] [--json FILE]

The shim as in normal life: a job directory with a control page, no capture. Groups of three processes, one after the other in turning order: bare, bare,
injected; one ratio a group, the median of them. The control is bare against bare.
Exits 0, or 1 if a bound is missed while its control holds, or 77 without torch.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "torch_overhead")]
import agent_stand_in  # noqa: E402
from ratios import kNotPossible, report  # noqa: E402

kBound = 1.03
kProgram = "import torch"


def run(python, environment):
    """@return (processor seconds, wall seconds)"""
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(python, [python, "-W", "ignore", "-c", kProgram], environment, file_actions=null)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise RuntimeError("bench: %s -c %r ended with wait status %d" % (python, kProgram, status))
    return usage.ru_utime + usage.ru_stime, wall


def measure(options, root):
    """@return for each group: [bare, bare again, injected], each as run() has it"""
    agent_stand_in.make_control_page(os.path.join(root, "job"))
    # Byte code is written and read as anywhere else.
    bare = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONDONTWRITEBYTECODE")}
    injected = dict(bare, LD_PRELOAD=options.shim, RINGSIDE_DIR=root, RINGSIDE_JOB="job")
    variants = [bare, bare, injected]
    groups = []
    for i in range(-1, options.rounds):
        group = [None] * 3
        for k in range(3):
            which = (i + k) % 3
            group[which] = run(options.python, variants[which])
        if i >= 0:  # the first one reads the libraries from the disk
            groups.append(group)
    return groups


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shim")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.shim = os.path.abspath(options.shim)
    version = subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if version.returncode != 0:
        print("skipped: no torch for " + options.python)
        return kNotPossible
    root = tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    try:
        groups = measure(options, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    results = {}
    for i, what in enumerate(("processor time", "wall time")):
        results["import torch, %s: injected and idle / bare" % what] = {
            "ratio": statistics.median(group[2][i] / group[0][i] for group in groups),
            "control": statistics.median(group[1][i] / group[0][i] for group in groups), "bound": kBound}
    bare = [statistics.median(group[0][i] for group in groups) for i in (0, 1)]
    return report(results, options.json, lambda _: print("torch %s; bare: %.3f s of processor time, %.3f s" % (version.stdout.strip(), *bare)))


if __name__ == "__main__":
    sys.exit(main())
