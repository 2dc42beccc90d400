#!/usr/bin/env python3
"""What a unary call of gRPC costs more: client and server both preloaded, over loopback.

    grpc_overhead.py SHIM SERVER CLIENT [--rounds N] [--groups N] [--calls N] [--quick] [--json FILE]

idle / bare            the shim in both, nothing captured, over a pair without it
capturing / by hand    captured, over the same pair idle with the same header added by the program itself: what tracing costs beside what the wire costs

Blocks of some milliseconds in turning order; a ratio is the median over rounds of a block over those beside it, and each has its control; idle / bare is
the median of several groups of pairs. The programs are workloads/grpc; ../torch_overhead/agent_stand_in.py plays the agent. Exits 1 where a bound is missed
while its control holds.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "torch_overhead")]
import agent_stand_in  # noqa: E402
from ratios import lower_decile, median, paired, report  # noqa: E402


class Pair:
    """A server and a client that waits for its next block.
    @param cores  one each: where the scheduler puts a pair, for all its life, is worth more than what is measured between two pairs"""

    def __init__(self, options, environment, cores=None):
        pins = [["taskset", "-c", str(core)] for core in cores] if cores else [[], []]
        start = {"env": environment, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen([*pins[0], options.server], **start)
        address = "127.0.0.1:" + self.server.stdout.readline().strip()
        self.client = subprocess.Popen([*pins[1], options.client, address, "unary", str(options.calls)], **start)
        self.block()

    def block(self, kind="plain"):
        """@return nanoseconds a call"""
        self.client.stdin.write(kind + "\n")
        self.client.stdin.flush()
        return float(self.client.stdout.readline())

    def end(self):
        self.client.stdin.close()
        self.client.wait()
        self.server.terminate()
        self.server.wait()


def idle(options, plain, ours, groups, rounds):
    """Three pairs a group. @return (ratios, controls), one of each a group"""
    cores = sorted(os.sched_getaffinity(0))[:2]
    ratios, controls = [], []
    for _ in range(groups):
        pairs = {"bare": Pair(options, plain, cores), "ours": Pair(options, ours, cores), "again": Pair(options, plain, cores)}
        times = {name: [] for name in pairs}
        for i in range(rounds):
            for k in range(3):
                name = list(pairs)[(i + k) % 3]
                times[name].append(pairs[name].block())
        for pair in pairs.values():
            pair.end()
        ratios.append(paired(times["ours"], times["bare"], times["again"]))
        controls.append(paired(times["again"], times["bare"]))
    return ratios, controls


def capturing(ours, agent, rounds):
    times = {"header": [], "captured": [], "again": []}

    def captured():
        agent.capture(True, attaches=False)
        took = ours.block()
        agent.capture(False, attaches=False)
        return took

    blocks = {"header": lambda: ours.block("header"), "captured": captured, "again": lambda: ours.block("header")}
    for i in range(rounds):
        for k in range(3):
            name = list(blocks)[(i + k) % 3]
            times[name].append(blocks[name]())
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("shim", "server", "client"):
        parser.add_argument(name)
    parser.add_argument("--rounds", type=int, default=100, help="blocks of each; five times as many where it is captured")
    parser.add_argument("--groups", type=int, default=7, help="of pairs, for idle / bare")
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rounds = options.rounds // 5 if options.quick else options.rounds
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RINGSIDE", "SLURM", "LD_PRELOAD"))}
    root = tempfile.mkdtemp(prefix="rs-bench-grpc-", dir="/dev/shm")
    try:
        agent_stand_in.make_control_page(os.path.join(root, "job"))
        injected = dict(plain, RINGSIDE_DIR=root, RINGSIDE_JOB="job", LD_PRELOAD=os.path.abspath(options.shim))
        ratios, controls = idle(options, plain, injected, options.groups, rounds)
        ours = Pair(options, injected)
        agent = agent_stand_in.StandIn(os.path.join(root, "job"), [ours.server.pid, ours.client.pid])
        asked = capturing(ours, agent, 5 * rounds)
        cells = sum(segment.cells() for segment in agent.segments)
        lost = agent.losses()
        ours.end()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    wanted = 5 * rounds * options.calls * (3 + 1 + 3 + 2 + 2 + 1)
    if cells < wanted or lost:
        print("%d cells recorded, at least %d expected; %d lost" % (cells, wanted, lost))
        return 1
    return report({
        "unary call: injected and idle / bare": {
            "ratio": median(ratios), "control": median(controls), "bound": 1.02, "each": [ratios, controls]},
        "unary call: capturing / traceparent added by hand, idle": {
            "ratio": paired(asked["captured"], asked["header"], asked["again"]), "control": paired(asked["again"], asked["header"]), "bound": 1.02,
            "ns": {name: lower_decile(values) for name, values in asked.items()}},
    }, options.json, lambda results: print("nanoseconds a call, lower deciles:", list(results.values())[1]["ns"]))


if __name__ == "__main__":
    sys.exit(main())
