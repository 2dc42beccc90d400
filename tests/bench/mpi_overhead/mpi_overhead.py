#!/usr/bin/env python3
"""What a call of MPI costs more: one rank that sends to itself, so that the call is as short as MPI's calls are.

    mpi_overhead.py SHIM CALLS_PROGRAM... [--rounds N] [--calls N] [--quick] [--json FILE]

capturing: added / floor    what a call takes longer while it is recorded than in a process without the shim, over two reads of the ticks and one record of
                            64 bytes; MPI_Sendrecv is two messages
idle: added / floor         the same with nothing recorded
capturing / bare            the whole call

Blocks in turning order, compared with those beside them; each has its control. The program: calls.cpp, once a library (PROGRAM's name says which).
../torch_overhead/agent_stand_in.py plays the agent. Exits 1 where a bound is missed while its control holds.
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
from ratios import lower_decile, paired, paired_difference, report, undisturbed  # noqa: E402

kKinds = ("send", "recv", "sendrecv", "allreduce")
kBound = 7.0
kAsRoot = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Rank:
    def __init__(self, program, launcher, calls, preload, environment, core):
        preloaded = ["env", "LD_PRELOAD=" + preload] if preload else []
        self.process = subprocess.Popen([*launcher, "taskset", "-c", str(core), *preloaded, program, str(calls)], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.process.stdout.readline())
        self.probes = []

    def block(self, kind):
        """@return (nanoseconds a call, what the probe took)"""
        self.process.stdin.write(kind + "\n")
        self.process.stdin.flush()
        took, probe = map(float, self.process.stdout.readline().split())
        self.probes.append(probe)
        return took, probe

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def blocks_of(ranks, agent, kind):
    """What a round consists of: by name, a block."""
    def captured():
        agent.capture(True, attaches=False)
        took = ranks["ours"].block(kind)
        agent.capture(False, attaches=False)
        return took

    return {"bare": lambda: ranks["bare"].block(kind), "idle": lambda: ranks["ours"].block(kind), "captured": captured,
            "bare again": lambda: ranks["bare"].block(kind), "floor": lambda: ranks["ours"].block("floor")}


def measure(ranks, agent, kind, rounds):
    """@return {name: nanoseconds of its blocks, None where the core was another's}"""
    blocks = blocks_of(ranks, agent, kind)
    found = {name: [] for name in blocks}
    for turn in range(rounds):
        for place in range(len(blocks)):
            name = list(blocks)[(turn + place) % len(blocks)]
            found[name].append(blocks[name]())
    least = min(min(rank.probes) for rank in ranks.values())
    return {name: undisturbed([took for took, _ in values], [probe for _, probe in values], least) for name, values in found.items()}


def results_of(name, kind, ns):
    floor = lower_decile(ns["floor"])
    control = paired_difference(ns["bare again"], ns["bare"]) / floor
    title = "%s, %s: " % (name, kind)
    return {
        title + "capturing: added / floor": {
            "ratio": paired_difference(ns["captured"], ns["bare"], ns["bare again"]) / floor, "control": control, "aim": 0, "margin": kBound / 10, "bound": kBound},
        title + "idle: added / floor": {"ratio": paired_difference(ns["idle"], ns["bare"], ns["bare again"]) / floor, "control": control, "aim": 0},
        title + "capturing / bare": {"ratio": paired(ns["captured"], ns["bare"], ns["bare again"]), "control": paired(ns["bare again"], ns["bare"]),
                                     "ns": {each: lower_decile(values) for each, values in ns.items()}},
    }


def launcher_of(program):
    """Of the library whose name the program's ends with; None: it is not here."""
    library = program.rpartition("_")[2]
    found = shutil.which("mpirun." + library)
    return library, found and [found, "-np", "1"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shim")
    parser.add_argument("programs", nargs="+", metavar="CALLS_PROGRAM")
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--calls", type=int, default=100, help="timed in a turn, of five in a block")
    parser.add_argument("--quick", action="store_true", help="a fifth of the rounds")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rounds = options.rounds // 5 if options.quick else options.rounds
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RINGSIDE", "SLURM", "LD_PRELOAD"))}
    core = sorted(os.sched_getaffinity(0))[-1]
    results, lost = {}, 0
    for program in options.programs:
        name, launcher = launcher_of(program)
        if launcher is None:
            print("no mpirun.%s here (tools/setup --all installs it)" % name)
            return 77
        root = tempfile.mkdtemp(prefix="rs-bench-mpi-", dir="/dev/shm")
        try:
            agent_stand_in.make_control_page(os.path.join(root, "job"))
            environment = dict(plain, RINGSIDE_DIR=root, RINGSIDE_JOB="job", **kAsRoot)
            ranks = {"bare": Rank(program, launcher, options.calls, None, environment, core),
                     "ours": Rank(program, launcher, options.calls, os.path.abspath(options.shim), environment, core)}
            agent = agent_stand_in.StandIn(os.path.join(root, "job"), [ranks["ours"].pid])
            for kind in kKinds:
                before = sum(segment.cells() for segment in agent.segments)
                results.update(results_of(name, kind, measure(ranks, agent, kind, rounds)))
                cells = sum(segment.cells() for segment in agent.segments) - before
                if cells < rounds * options.calls * 5:
                    print("%s, %s: %d cells recorded by %d rounds of %d calls" % (name, kind, cells, rounds, options.calls * 5))
                    return 1
            lost += agent.losses()
            for rank in ranks.values():
                rank.end()
        finally:
            shutil.rmtree(root, ignore_errors=True)
    if lost:
        print("%d records were lost" % lost)
        return 1
    return report(results, options.json, lambda all_of_them: [print(title.partition(":")[0], "ns a call, lower deciles:", {
        name: round(value, 1) for name, value in each["ns"].items()}) for title, each in all_of_them.items() if "ns" in each])


if __name__ == "__main__":
    sys.exit(main())
