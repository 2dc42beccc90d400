#!/usr/bin/env python3
"""What the agent takes while nothing happens, and whether it is fair where much does.

    crowd.py SHIM CROWD AGENT [--quick] [--only PART] [--json FILE]

idle: an agent with 100 attached processes for a minute, no capture: the share of a core that all its threads take, and its memory; an agent with no process at all
stands beside it for the same minute: what that takes, the control.
bursts: 1000 processes write 200 records each at the same instants, ten times a second, into a running capture. How long the records of a process wait for
the agent, on average: the process that waits longest against the median of all, whose control is that of every second process against the others'.
Nothing may be lost. Exits 0, or 1 if a bound is missed while its control holds.
"""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
from ratios import cpu_seconds, report  # noqa: E402

kAttachSeconds = 60


class Bench:
    def __init__(self, options, root):
        self.options, self.root = options, root
        self.numbers = {}

    def environment(self, job):
        return dict(os.environ, LD_PRELOAD=self.options.shim, RINGSIDE_DIR=self.root, RINGSIDE_JOB=job)

    @contextlib.contextmanager
    def agent(self, job, *more):
        ready, ready_write = os.pipe()
        agent = subprocess.Popen([self.options.agent, "--dir", self.root, "--job", job, "--output", os.path.join(self.root, "out"), "--ready-fd",
                                  str(ready_write), *more], pass_fds=[ready_write])
        os.close(ready_write)
        try:
            with os.fdopen(ready) as file:
                file.read()
            yield agent.pid
        finally:
            agent.terminate()
            agent.wait()

    def wait_until_attached(self, pid, job, count):
        """All segments are mapped: an agent's word for attached."""
        end = time.monotonic() + kAttachSeconds
        directory = os.path.join(self.root, job) + "/"
        while True:
            with open("/proc/%d/maps" % pid) as file:
                mapped = len({line.split()[5] for line in file if directory in line and not line.rstrip().endswith("/control")})
            if mapped >= count:
                return
            if time.monotonic() > end:
                raise RuntimeError("crowd: the agent has attached %d of %d processes within %d s" % (mapped, count, kAttachSeconds))
            time.sleep(0.01)

    def idle(self, results):
        count, seconds = (10, 3) if self.options.quick else (100, 60)
        with self.agent("idle") as pid, self.agent("none") as alone:
            crowd = subprocess.Popen([self.options.crowd, "idle", str(count)], env=self.environment("idle"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            try:
                crowd.stdout.readline()
                # The program that has forked them is one more.
                self.wait_until_attached(pid, "idle", count + 1)
                before, start = (cpu_seconds(pid), cpu_seconds(alone)), time.monotonic()
                time.sleep(seconds)  # what is measured
                used, none = (100 * (cpu_seconds(one) - then) / (time.monotonic() - start) for one, then in zip((pid, alone), before))
                megabytes = memory_mb(pid)
            finally:
                crowd.stdin.close()
                crowd.wait()
        results["idle agent, %d processes: %% of a core over %d s" % (count, seconds)] = {
            "ratio": used, "control": none, "aim": 0, "margin": 0.1, "bound": 0.2}
        results["idle agent, %d processes: MB" % count] = {"ratio": megabytes, "control": None, "bound": 40}

    def bursts(self, results):
        count, bursts, records = (50, 5, 200) if self.options.quick else (1000, 40, 200)
        with self.agent("bursts", "--capture-from-start", "--name", "bench") as pid:
            done = subprocess.run([self.options.crowd, "bursts", str(count), str(bursts), str(records)], env=self.environment("bursts"), check=True,
                                  stdout=subprocess.PIPE, text=True)
            used = cpu_seconds(pid)
        each = json.loads(done.stdout)["processes"]
        lost = sum(one["lost"] for one in each)
        if lost:
            raise RuntimeError("crowd: %d records were lost" % lost)
        means = [one["mean_ms"] for one in each]
        longest = sorted(one["longest_ms"] for one in each)
        self.numbers["bursts"] = {
            "ms a process has waited, mean: least, median, most": [round(f(means), 3) for f in (min, statistics.median, max)],
            "ms, longest wait: least, median, most": [round(longest[k], 3) for k in (0, len(longest) // 2, -1)],
            "waits seen a process, mean": round(statistics.mean(one["waits"] for one in each), 1), "agent's CPU s": round(used, 2)}
        results["%d processes: wait of the one that waits longest / of the median" % count] = {
            "ratio": max(means) / statistics.median(means), "control": statistics.median(means[::2]) / statistics.median(means[1::2]),
            "margin": 0.1, "bound": 1.5}

    def measure(self):
        results = {}
        for part in ("idle", "bursts"):
            if self.options.only in part:
                getattr(self, part)(results)
        return results


def memory_mb(pid):
    with open("/proc/%d/status" % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shim")
    parser.add_argument("crowd")
    parser.add_argument("agent")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", default="", metavar="PART", help="idle or bursts")
    parser.add_argument("--quick", action="store_true", help="few processes: shows that the bench works, not what it measures")
    options = parser.parse_args()
    options.shim, options.crowd, options.agent = map(os.path.abspath, (options.shim, options.crowd, options.agent))
    root = tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    bench = Bench(options, root)
    try:
        results = bench.measure()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return report(results, options.json, lambda _: print(json.dumps(bench.numbers, indent=1)))


if __name__ == "__main__":
    sys.exit(main())
