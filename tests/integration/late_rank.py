#!/usr/bin/python3
"""A rank that holds up all others is named, and where none does nobody is: real jobs of four ranks, by what `ringside rpc` says of them.

    late_rank.py gloo | mpi          one capture with a rank that loops longer, one with nothing planted
    late_rank.py gloo | mpi RUNS     so many of each kind; of gloo's also of a rank with the least of a core beside (MPI's ranks spin where they wait: one that is
                                     short of time is so in there, comes out late, and is told so, not named)
"""
import json
import os
import sys

from harness import OffInTime, check, kPython, kWorkloads, main
from mpi_launch import require

kLate = 2
kSteps = 200
kRanks = 4


def run_job(workspace, name, output, *words):
    script = [os.path.join(kWorkloads, "late_rank.py"), "--steps", str(kSteps), *words]
    command, environment = [kPython, "-W", "ignore", *script, "--store", workspace.path(name + "-store")], None
    if over == "mpi":
        library, = require("openmpi4")
        command, environment = library.mpirun(kRanks, "/usr/bin/python3", *script, "--mpi"), library.environment()
    workspace.ringside("run", "-o", output, "--table", workspace.path(name + "-table"), "--", *command, environment=environment)


def verdict(workspace, plant, number):
    """@return what is said of the job's group"""
    name = "%s-%d" % (plant, number)
    output = workspace.path(name)
    run_job(workspace, name, output, "--plant", plant)
    told = json.loads(workspace.ringside("rpc", "--json", "--slowest", "1", output).out())["collectives"]
    check(len(told["groups"]) == 1, "groups: %s", told["groups"])
    group = told["groups"][0]
    check((group["size"], group["complete"]) == (kRanks, kSteps + 1), "%s: %s members, %s collectives complete", name, group["size"], group["complete"])
    check(len(told["slowest"]) == 1 and len(told["slowest"][0]["arrivals"]) == kRanks, "the slowest: %s", told["slowest"])
    one = json.loads(workspace.ringside("rpc", "--json", "--collective", told["slowest"][0]["id"], output).out())
    check(one == told["slowest"][0], "--collective says %s", one)
    print("%s: last %s, gap p50 %.0f us, own time longer by %.0f us, between two %.0f us: %s" % (
        name, [member["last"] for member in group["members"]], group["gap_p50_us"], group["own_time_excess_p50_us"], group["between_p50_us"],
        "late: rank %d" % group["late"] if "late" in group else group["late_undetermined"]), flush=True)
    return group


def test(workspace):
    for plant in ("loop", "nice") if runs > 1 and over == "gloo" else ("loop",):
        named = [verdict(workspace, plant, number).get("late") for number in range(runs)]
        check(set(named) <= {kLate, None}, "%s: another rank was named: %s", plant, named)
        # Where a machine has other work to do, that may hide it.
        check(named == [kLate] * runs, "%s: late were %s", plant, named, failure=OffInTime)
    named = [verdict(workspace, "nothing", number).get("late") for number in range(runs)]
    # ... or hold up one rank all along, and that one is late.
    check(named == [None] * runs, "nothing was planted, and late were %s", named, failure=OffInTime)


over, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
main(test, "late-rank-" + over)
