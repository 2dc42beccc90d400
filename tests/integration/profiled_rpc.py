#!/usr/bin/python3
"""The user's own legacy profiler around RPCs, and we: it changes each call's message, which says then that it is to be profiled at the callee.

The recipe, profiled by its own code (oracle/run_reference.py), without us and under `ringside run`: what the profiler tells is the same, and we join every
call and name it as ever. Two requests at a callee at once race for the profiler's operators there (torch's own fault): those are left out.
"""
import collections
import glob
import os

from harness import check, kPython, kSource, free_port, main

# beneath tests/, found by what harness adds to the path
import compare
import filter as oracle_filter
from rsd.index import Job

kRaced = "rpc_async#"  # the recipe's two at once
kOpen = " [open]"  # the range of a call that was a thread's last (inject/sources/torch/ended_elsewhere.hpp)
kProfiled = os.path.join(kSource, "tests", "oracle", "run_reference.py")


def rows_of(events):
    # What memory lies in a call, whose range another thread ends, is chance.
    told = collections.Counter((e.name, e.node, e.remote, e.is_async, str(e.shapes), None if e.is_async else e.memory) for e in events)
    return collections.Counter({row: n for row, n in told.items() if oracle_filter.is_call(row[0]) or not row[0].startswith(kRaced)})


def profiled(workspace, name, ours):
    """@return what the profiler told of the run"""
    out = workspace.path(name)
    command = [kPython, "-W", "ignore", kProfiled, out, "1"]
    job = dict(os.environ, MASTER_PORT=str(free_port()))
    if ours:
        workspace.ringside("run", "-o", workspace.path("trace"), "--table", workspace.path("table"), "--", *command, environment=job)
    else:
        workspace.run(name, command, environment=job)
    (path,) = glob.glob(os.path.join(out, "run-*.txt"))
    return rows_of(oracle_filter.read_run(path))


def test(workspace):
    alone, beside = profiled(workspace, "alone", ours=False), profiled(workspace, "beside", ours=True)
    check(sum(oracle_filter.is_call(row[0]) for row in alone) == 10, "the profiler alone tells of %s", sorted(row[0] for row in alone))
    check(alone == beside, "the profiler alone %s, beside us %s", dict(alone - beside), dict(beside - alone))
    job = Job(workspace.path("trace"))
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    counts = job.counts()
    check(counts["joined"] == counts["joined_replies"] == counts["client_halves"] == 21 and counts["orphans"] == counts["cut"] == counts["lost"] == 0,
          "not every request is joined: %s", counts)
    table = workspace.ringside("table", workspace.path("trace"), "--full-names", "--row-limit", "0", "--json").out()
    ours = collections.Counter()
    for (name, node), n in compare.rows_of_table(table).items():
        if oracle_filter.is_call(name):
            ours[name.replace(kOpen, ""), node] += n
    told, _ = oracle_filter.reference(glob.glob(os.path.join(kSource, "tests", "oracle", "reference", "run-*.txt")))
    # Profiled, torch makes a range of the call's name as well: it stands beside the call (to_here has none).
    wanted = collections.Counter({row: n if oracle_filter.last_part(row[0]).startswith("to_here#") else 2 * n
                                  for row, n in told.items() if oracle_filter.is_call(row[0])})
    check(ours == wanted, "our calls and torch's ranges of them: too many %s, missing %s", dict(ours - wanted), dict(wanted - ours))
    print("%d rows of the profiler, the same alone and beside us; %d of %d requests joined" % (
        sum(beside.values()), counts["joined"], counts["client_halves"]), flush=True)


main(test, "profiled_rpc")
