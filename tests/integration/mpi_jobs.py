#!/usr/bin/python3
"""MPI from Python and Fortran, beside another tool, and in a program that many run: LAMMPS, by mpirun and by srun.

    mpi_jobs.py CASE        CASE: python fortran tool lammps srun
"""
import collections
import os
import re
import shutil
import sys

from annotations import check_level
from harness import check, kShim, kWorkloads, main, Node, skip, wait_until
from mpi_calls import kRanks, read
from mpi_launch import kPrograms, require
from mpi_log import check_collectives, check_joined, check_messages, kMpi, Recorded, Said
from slurm import in_trace, kWrap
from slurm_host import Slurm

kInput = os.path.join(kWorkloads, "mpi", "lennard_jones.lammps")
kTool = os.path.join(kPrograms, "libmpi_counts.so")


def checked(workspace, library, name, *command):
    """A whole run of what says what it does. @return its messages' span ids"""
    log, output = workspace.path(name + ".log"), workspace.path(name)
    workspace.ringside("run", "-o", output, "--table", workspace.path(name + ".table"), "--", *library.mpirun(kRanks, *command, log),
                       environment=library.environment(), name="run-" + name)
    job, said = read(output), Said(log, kRanks)
    spans = check_messages(job, said)
    print("%s: %d messages, %d collectives" % (name, len(spans), check_collectives(job, said)), flush=True)
    return spans


def python(workspace):
    """Debian's mpi4py on Open MPI 4; PyPI's on Open MPI 5 and on MPICH 5, where it calls large-count forms alone."""
    spans = []
    for name in ("openmpi4", "openmpi5", "mpich5"):
        (library,) = require(name)
        spans.append(checked(workspace, library, "python-" + name, library.python(), os.path.join(kWorkloads, "mpi", "calls.py")))
    check(spans[0] == spans[1] == spans[2], "span ids differ between the three")


def fortran(workspace):
    for name in ("openmpi4", "mpich4"):
        (library,) = require(name)
        spans = []
        for module in ("use", "f08"):
            program = os.path.join(kPrograms, "mpi_fortran_%s_%s" % (module, name.rstrip("4")))
            if not os.path.exists(program):
                skip("%s is not built: no mpif90 was there when the build was configured (tools/setup --all)" % program)
            spans.append(checked(workspace, library, "%s-%s" % (module, name), program))
        check(spans[0] == spans[1], "the modules' span ids differ")


def counts_of(path):
    found = []
    for rank in range(kRanks):
        with open("%s.%d" % (path, rank)) as file:
            found.append({name: int(count) for name, count in map(str.split, file)})
    return found


def with_tool(library, preloads, *command):
    """Of mpirun: ranks with these libraries preloaded, and nothing but them."""
    return library.mpirun(kRanks, "env", "LD_PRELOAD=" + ":".join(preloads), *command)


def tool(workspace):
    """Another PMPI tool in front of us and behind us: it counts what it counts without us, and we see all. Who asks whether MPI is there is told the truth."""
    (library,) = require("openmpi4")
    counts = {}
    for name, preloads in (("alone", [kTool]), ("before", [kTool, kShim]), ("after", [kShim, kTool])):
        log, output = workspace.path(name + ".log"), workspace.path(name)
        command = with_tool(library, preloads, library.program("messages"), log)
        environment = dict(library.environment(), PMPI_COUNTS=workspace.path(name + ".counts"))
        if name == "alone":
            workspace.run(name, command, environment)
        else:
            workspace.ringside("run", "-o", output, "--table", output + ".table", "--", *command, environment=environment)
            print("%s: %d messages" % (name, len(check_messages(read(output), Said(log, kRanks)))), flush=True)
        counts[name] = counts_of(workspace.path(name + ".counts"))
    check(counts["alone"][0]["MPI_Send"] > 10, "the tool has counted %s", counts["alone"][0])
    check(counts["alone"] == counts["before"] == counts["after"], "the tool has counted %s alone, %s before us, %s after us", *counts.values())
    node = Node(workspace, "node")
    told = workspace.run("is_mpi_there", node.job_command(os.path.join(kPrograms, "mpi_is_there")), node.environment()).out()
    check(told == "0 0 0\n", "a program without MPI is told %r", told)


def lammps_program():
    found = shutil.which("lmp")
    if found is None:
        skip("no lmp here (tools/setup --all installs lammps)")
    return found


def check_members(job, sizes):
    """Each collective is on all members of its communicator, under one name. @param sizes  of the communicators
    @return {communicator: how many}"""
    seen = collections.defaultdict(lambda: collections.defaultdict(dict))
    for rank, ones in enumerate(Recorded(job, kRanks).collectives):
        for one in ones:
            there = seen[one.attributes.category][one.payload]
            check(rank not in there, "rank %d: two collectives are number %d on %s", rank, one.payload, one.attributes.category)
            there[rank] = one.name
    for label, numbers in seen.items():
        for number, names in numbers.items():
            check(len(set(names.values())) == 1, "collective %d on %s is %s", number, label, names)
            check(label not in sizes or len(names) == sizes[label], "collective %d on %s: %s of %d members", number, label, names, sizes.get(label))
    return {label: len(numbers) for label, numbers in seen.items()}


def lammps(workspace):
    """The whole of a run. How often each rank has called what is known from another tool's counts."""
    (library,) = require("openmpi4")
    output, counts = workspace.path("traced"), workspace.path("counts")
    command = with_tool(library, [kShim, kTool], lammps_program(), "-in", kInput, "-log", "none")
    workspace.ringside("run", "-o", output, "--table", output + ".table", "--", *command, environment=dict(library.environment(), PMPI_COUNTS=counts))
    job = read(output)
    check_joined(job)
    recorded = Recorded(job, kRanks)
    for rank, called in enumerate(counts_of(counts)):
        halves = collections.Counter((half.name, half.server) for half in recorded.halves[rank])
        there = collections.Counter(one.name for one in recorded.collectives[rank])
        for name in ("MPI_Send", "MPI_Ssend", "MPI_Isend"):
            check(halves[name, False] == called[name], "rank %d has called %s %d times, %d are recorded", rank, name, called[name], halves[name, False])
        for name in ("MPI_Recv", "MPI_Irecv"):
            check(halves[name, True] == called[name], "rank %d has called %s %d times, %d are recorded", rank, name, called[name], halves[name, True])
        for name in ("MPI_Sendrecv",):
            check(halves[name, False] == halves[name, True] == called[name], "rank %d has called %s %d times, recorded %s", rank, name, called[name], halves)
        for name in ("MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "MPI_Scan"):
            check(there[name] == called[name], "rank %d has called %s %d times, %d are recorded", rank, name, called[name], there[name])
    print("%d messages, collectives %s" % (len(job.calls), check_members(job, {"world": kRanks})), flush=True)


def srun(workspace):
    """Started by srun through PMIx over two nodes, captured in the middle: what is not at the capture's ends is joined, across nodes as within them."""
    (library,) = require("openmpi4")
    slurm = Slurm(workspace, 2)
    if "pmix" not in slurm.ask("srun", "--mpi=list"):
        skip("this Slurm has no PMIx")
    child = slurm.srun("lammps", "--mpi=pmix", "-N2", "--ntasks-per-node=2", kWrap, lammps_program(), "-in", kInput, "-log", "none", "-var", "steps", "1000000",
                       environment=dict(library.variables, OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="lo"))
    job_id = slurm.await_job([child])
    wait_until("the first steps", lambda: re.search("^ +100 ", child.out(), re.M), children=[child])
    job, _ = in_trace(workspace, slurm, job_id, "traced", "300ms")
    check(len(job.dumps) == 2, "%d dumps", len(job.dumps))
    check_level(job, kMpi)
    states = collections.Counter(call.state for call in job.calls)
    across = sum(call.state == "Joined" and call.client_node != call.server_node for call in job.calls)
    check(not states["Orphan"] and states["Joined"] > 200 and states["Cut"] < 0.1 * states["Joined"], "the messages are %s", states)
    check(across > 50, "%d messages between nodes are joined", across)
    print("%s, %d between nodes, collectives %s" % (dict(states), across, check_members(job, {})), flush=True)
    slurm.ask("scancel", job_id)
    child.wait(expect=None)


kCases = {"python": python, "fortran": fortran, "tool": tool, "lammps": lammps, "srun": srun}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(kCases[sys.argv[1]], "mpi-" + sys.argv[1], limit_s=200)
