#!/usr/bin/python3
"""An MPI job hangs because one rank stays away: `ringside trace`, begun after that, says who waits for it in an all-reduce and who in a receive, since when, and
that it never came. Nothing was recorded before.

    hanging_mpi.py
"""
import json
import os
import subprocess
import time

from harness import check, kWorkloads, main, Node, OffInTime, skip, wait_until
from mpi_launch import require

kRanks = 4
kAway, kReceiver, kTag = 2, 3, 7
kInCollective = [0, 1]
kPython = "/usr/bin/python3"
# Where a machine is busy: between a rank's note and its call, between the capture's stop and the command's answer.
kSlackS = 0.5


def notes(path):
    """@return rank -> (pid, time of its note)"""
    found = {}
    for rank in range(kRanks):
        with open("%s.%d" % (path, rank)) as file:
            pid, began = file.read().split()
        found[rank] = int(pid), float(began)
    return found


def trace(workspace, node, name):
    output = workspace.path(name)
    return workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "200ms", "-o", output, name="trace-" + name).out(), output


def test(workspace):
    library, = require("openmpi4")
    if subprocess.run([kPython, "-c", "import mpi4py"], stderr=subprocess.DEVNULL).returncode != 0:
        skip("%s has no mpi4py (tools/setup --all installs it)" % kPython)
    node = Node(workspace, "a")
    script = os.path.join(kWorkloads, "mpi", "hanging.py")
    job = workspace.start("job", node.job_command(*library.mpirun(kRanks, kPython, script, workspace.conditions, workspace.path("began"))),
                          library.environment(node.environment()))
    workspace.await_condition("away", [job])
    for rank in (*kInCollective, kReceiver):
        workspace.await_condition("in.%d" % rank, [job])
    began = notes(workspace.path("began"))
    wait_until("the hang to be old enough", lambda: time.monotonic() > max(when for _, when in began.values()) + 2.5, children=[job])

    before = time.monotonic()
    text, output = trace(workspace, node, "hang")
    after = time.monotonic()
    waiting = json.loads(workspace.ringside("rpc", output, "--json").out())["waiting"]
    collective, = [wait for wait in waiting["waits"] if wait["sequence"]]
    receive, = [wait for wait in waiting["waits"] if not wait["sequence"]]
    check(collective["function"] == "MPI_Allreduce" and collective["size"] == kRanks and collective["group"] == "world", "the collective: %s", collective)
    check([one["rank"] for one in collective["waiting"]] == kInCollective, "who waits in it: %s", collective["waiting"])
    check([one["rank"] for one in receive["waiting"]] == [kReceiver] and receive["function"] == "MPI_Recv", "who receives: %s", receive)
    for one in collective["waiting"] + receive["waiting"]:
        pid, when = began[one["rank"]]
        check(one["pid"] == pid, "its pid: %s, not %d", one, pid)
        check(before - when - kSlackS < one["age_s"] < after - when, "rank %d waits for %.3f s, by its log %.3f to %.3f s", one["rank"], one["age_s"],
              before - when, after - when, failure=OffInTime)
    others = {other["rank"]: other for other in collective["others"]}
    check(sorted(others) == [kAway, kReceiver] and others[kAway]["pid"] == began[kAway][0], "who is away: %s", others)
    check(others[kAway]["standing"] == "in no call" and others[kAway]["last"] == collective["sequence"] - 1, "rank %d: %s", kAway, others[kAway])
    check([other["rank"] for other in waiting["never_came"]] == [kAway] and not waiting["cycles"], "who never came: %s", waiting)
    lines = [row for row in text.splitlines() if row.startswith("waiting")]
    check(len(lines) == 2 and all("rank %d" % kAway in line for line in lines), "the command says:\n%s", text)
    print("\n".join(lines), flush=True)

    workspace.announce("come")
    job.wait()
    node.stop()


main(test, "hanging-mpi")
