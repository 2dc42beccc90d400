#!/usr/bin/python3
"""MPI's libraries by other names: MPICH as Cray calls it is followed as MPICH is, the standard ABI's library is refused by its name.

    mpi_names.py
"""
import os

from annotations import check_level
from harness import check, main, Node, Trace, wait_until
from mpi_calls import traced
from mpi_launch import kPrograms, Library, require
from mpi_log import check_messages, kMpi
from rsd.index import Job

kNotInstrumented = 4


def test(workspace):
    mpich, = require("mpich4")
    cray = Library("cray", "cray", "mpirun.mpich")
    spans = [check_messages(*traced(workspace, library, "messages")) for library in (mpich, cray)]
    check(spans[0] == spans[1], "the ids differ")
    node = Node(workspace, "a")
    child = workspace.start("program", node.job_command(os.path.join(kPrograms, "mpi_standard_abi")), node.environment())
    wait_until("the program", child.out, children=[child])
    trace = Trace(workspace, [node], workspace.path("traced"))
    trace.end(expect=None)
    check_level(Job(trace.output), kMpi, kNotInstrumented, "unsupported: the standard ABI (libmpi_abi.so)")
    child.end()
    print("%d messages of a library of Cray's name" % len(spans[1]), flush=True)


main(test, "mpi-names")
