#!/usr/bin/python3
"""`--compress`, on `run` and on `trace`: the same records in fewer bytes, for the loader and for the second reader."""
import os

from harness import Node, check, kPython, main, wait_until

from rsd.dump import Dump
from rsd.events import Events

kRanges = 20000

# A fixed number of ranges, whose numbers they carry; then, where it is asked to, more until it is told to leave.
kWork = """
import os, ringside, sys
def ranges(first, count):
    for number in range(first, first + count):
        with ringside.range("range %%d" %% (number %% 7), payload=number):
            pass
if len(sys.argv) > 1:
    number, up, leave = 0, *sys.argv[1:]
    while not os.path.exists(leave):
        ranges(number, 200)
        number += 200
        if number == 200:
            open(up, "w").close()
else:
    ranges(0, %d)
""" % kRanges


def dump_in(folder):
    (name,) = [f for f in os.listdir(folder) if f.endswith(".rsd")]
    path = os.path.join(folder, name)
    dump = Dump(path)
    check(dump.problem is None and dump.accounts() == [], "%s: %s %s", path, dump.problem, dump.accounts())
    return dump, Events(dump), os.path.getsize(path)


def whole_runs(workspace):
    found = {}
    for name, options in (("plain", []), ("compressed", ["--compress"])):
        folder = workspace.path(name)
        workspace.ringside("run", *options, "-o", folder, "--table", workspace.path(name + ".txt"), "--", kPython, "-c", kWork)
        found[name] = dump_in(folder)
        rows = workspace.json("table", folder, "--row-limit", "-1")["rows"]
        check(sum(row["count"] for row in rows if row["name"].startswith("range ")) == kRanges, "%s: the table counts %s", name, rows)
    (plain, events, size), (packed, packed_events, packed_size) = found["plain"], found["compressed"]
    for what in (events, packed_events):
        check([r.argument for r in what.ranges] == list(range(kRanges)), "the ranges are not those that were made")
    check((plain.header.min_reader, packed.header.min_reader) == (1, 2), "readers wanted: %d, %d", plain.header.min_reader, packed.header.min_reader)
    check(packed_size < 0.8 * size, "%d bytes compressed, %d plain", packed_size, size)


def traced(workspace):
    node = Node(workspace, "a")
    up, leave = workspace.path("up"), workspace.path("leave")
    job = workspace.start("job", node.job_command(kPython, "-c", kWork, up, leave), node.environment())
    wait_until("the job to work", lambda: os.path.exists(up), children=[job])
    workspace.ringside("trace", "--hosts", node.endpoint, "--duration", "300ms", "--compress", "-o", workspace.path("traced"))
    open(leave, "w").close()
    job.wait()
    dump, events, _ = dump_in(workspace.path("traced"))
    numbers = [r.argument for r in events.ranges]
    check(dump.header.min_reader == 2 and len(numbers) > 100, "min_reader %d, %d ranges", dump.header.min_reader, len(numbers))
    check(numbers == list(range(numbers[0], numbers[0] + len(numbers))), "ranges are missing or there twice")


def test(workspace):
    whole_runs(workspace)
    traced(workspace)


main(test, "compressed")
