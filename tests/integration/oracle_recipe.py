#!/usr/bin/python3
"""The recipe, unprofiled, under `ringside run`, five times: each time every row of the legacy profiler's reference, and no operator beyond it.

The reader, which shares no code with the command, must find each dump whole and its joins in order.
"""
import glob
import json
import os

from harness import check, kPython, kSource, kWorkloads, free_port, main

# beneath tests/, found by what harness adds to the path
import compare
import filter as oracle_filter
from rsd.index import Job

kRuns = 5


def one_run(workspace, number, reference):
    output = workspace.path("run-%d" % number)
    job = dict(os.environ, MASTER_PORT=str(free_port()))
    workspace.ringside("run", "-o", output, "--table", workspace.path("table-%d.txt" % number), "--", kPython, "-W", "ignore",
                       os.path.join(kWorkloads, "recipe.py"), environment=job)
    table = workspace.ringside("table", output, "--full-names", "--row-limit", "0", "--json").out()
    ours = compare.rows_of_table(table)
    wrong = compare.differences(reference, ours)
    check(not wrong, "run %d does not match the reference:\n  %s", number, "\n  ".join(wrong))
    read = Job(output)
    check(not read.problems(), "run %d, the reader: %s", number, "; ".join(read.problems()))
    counts = read.counts()
    check(counts["joined"] == counts["joined_replies"] == counts["client_halves"] and counts["orphans"] == counts["cut"] == 0,
          "run %d: not every request is joined: %s", number, counts)
    rpcs = json.loads(table)["rpcs"]
    check(rpcs["joined_requests"] == counts["joined"] and rpcs["joined_replies"] == counts["joined_replies"],
          "run %d: the table joins %s, the reader %s", number, rpcs, counts)
    print("run %d: %s; %d requests joined, %d records, %d lost" % (
        number, compare.summary(reference, ours), counts["joined"], counts["records"], counts["lost"]), flush=True)


def test(workspace):
    reference, _ = oracle_filter.reference(glob.glob(os.path.join(kSource, "tests", "oracle", "reference", "run-*.txt")))
    check(oracle_filter.served_operators(reference) == 33, "the reference has %d served operators, not 33", oracle_filter.served_operators(reference))
    for number in range(1, kRuns + 1):
        one_run(workspace, number, reference)


main(test, "oracle_recipe")
