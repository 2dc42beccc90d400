#!/usr/bin/env python3
"""What a job notices of a capture: the time of a training step of a DistributedDataParallel job through ringside-wrap before, during and after a capture, over
that of the same job bare beside it.

    job_speed.py BUILD [--python PATH] [--rounds N] [--block SECONDS] [--quick] [--json FILE]

Two jobs of two ranks each (../../workloads/ddp_job.py, gloo) live side by side and take turns: while one has a block, the other is stopped. A round: bare, before,
during, after, bare again; each of the three is compared with the mean of the two bare blocks beside it, the control is one of them over the other.
There is no bound: on a busy machine it tells of the machine. Exits 0, or 77 without torch.
"""
import argparse
import contextlib
import mmap
import os
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.dirname(HERE), os.path.join(SOURCE, "tests", "workloads")]
import conditions  # noqa: E402
from ratios import kNotPossible, paired, report  # noqa: E402

kRanks = 2
kSettleS = 0.1
kCapture = ("before", "during", "after")


class Training:
    """One job, stopped but for its turns."""

    def __init__(self, options, folder, prefix, environment):
        os.makedirs(folder)
        self.folder = folder
        self.children = [subprocess.Popen(
            [*prefix, options.python, "-W", "ignore", os.path.join(SOURCE, "tests", "workloads", "ddp_job.py"), "--store", os.path.join(folder, "store"),
             "--say", folder, "--count", os.path.join(folder, "count"), "--until", os.path.join(folder, "until")],
            env=dict(environment, RANK=str(rank), WORLD_SIZE=str(kRanks), GLOO_SOCKET_IFNAME="lo"), stdin=subprocess.DEVNULL, stdout=sys.stderr)
            for rank in range(kRanks)]
        self.pids = []

    def await_training(self):
        self.pids = [int(conditions.await_condition(self.folder, "training.%d" % rank)) for rank in range(kRanks)]
        with open(os.path.join(self.folder, "count.0"), "rb") as file:
            self.count = mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ)
        self.stop()

    def _send(self, number):
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def stop(self):
        self._send(signal.SIGSTOP)

    def block(self, seconds):
        """@return seconds a step; the job runs on"""
        self._send(signal.SIGCONT)
        time.sleep(kSettleS)
        before, began = self.steps(), time.monotonic()
        time.sleep(seconds)
        return (time.monotonic() - began) / max(1, self.steps() - before)

    def steps(self):
        return struct.unpack_from("<Q", self.count)[0]

    def end(self):
        with open(os.path.join(self.folder, "until"), "w"):
            pass
        self._send(signal.SIGCONT)
        for child in self.children:
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def during(options, root, training, number):
    """A block inside a capture, and what the capture lost."""
    training.block(0)  # it runs when it is asked
    trace = subprocess.Popen([os.path.join(options.build, "tools", "ringside"), "trace", "--job", "bench", "--duration", "%gs" % (options.block + 1), "-o",
                              os.path.join(root, "trace-%d" % number)], env=options.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in trace.stderr:
        if "capturing" in line:
            break
    took = training.block(options.block)
    trace.stderr.read()
    if trace.wait() != 0:
        raise RuntimeError("bench: ringside trace ended with %d" % trace.returncode)
    return took


def measure(options, root, segments):
    """@return {what: seconds a step, a round each}"""
    options.environment = dict(options.environment, RINGSIDE_DIR=segments, RINGSIDE_JOB="bench", RINGSIDE_ADDRESS="127.0.0.1", HOME=root)
    wrap = [os.path.join(options.build, "tools", "ringside"), "wrap", "--agent-output", os.path.join(root, "agent")]
    jobs = {"bare": Training(options, os.path.join(root, "bare"), [], options.environment),
            "ours": Training(options, os.path.join(root, "ours"), wrap, options.environment)}
    times = {name: [] for name in ("bare", "again", *kCapture)}
    try:
        for job in jobs.values():
            job.await_training()
        for number in range(options.rounds):
            times["bare"].append(jobs["bare"].block(options.block))
            jobs["bare"].stop()
            times["before"].append(jobs["ours"].block(options.block))
            times["during"].append(during(options, root, jobs["ours"], number))
            times["after"].append(jobs["ours"].block(options.block))
            jobs["ours"].stop()
            times["again"].append(jobs["bare"].block(options.block))
            jobs["bare"].stop()
    finally:
        for job in jobs.values():
            job.end()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.rounds = 3 if options.quick else options.rounds
    options.environment = {name: value for name, value in os.environ.items() if not name.startswith(("RINGSIDE", "SLURM", "LD_PRELOAD"))}
    version = subprocess.run([options.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if version.returncode != 0:
        print("skipped: no torch for " + options.python)
        return kNotPossible
    root, segments = tempfile.mkdtemp(prefix="ringside-bench-"), tempfile.mkdtemp(prefix="ringside-bench-", dir="/dev/shm")
    try:
        times = measure(options, root, segments)
    finally:
        for folder in (root, segments):
            shutil.rmtree(folder, ignore_errors=True)
    control = paired(times["again"], times["bare"])
    results = {"training step, %s a capture / bare" % when: {"ratio": paired(times[when], times["bare"], times["again"]), "control": control, "bound": None}
               for when in kCapture}
    rates = ", ".join("%s %.1f" % (name, 1 / statistics.median(values)) for name, values in times.items())
    return report(results, options.json, lambda _: print("torch %s; steps a second, medians of %d blocks of %g s: %s" % (
        version.stdout.strip(), options.rounds, options.block, rates)))


if __name__ == "__main__":
    sys.exit(main())
