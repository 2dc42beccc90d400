"""What the tests of faults share: the harness, the writer and what it says of itself, and a dump compared with that.

A file of cases lists them in a dict and ends with `run(kCases)`: the first argument names the one to run, the others are the case's own.
"""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Node, Trace, check, kAgent, kBuild, kCommand, kPython, kShim, kSource, main, skip, wait_until

from rsd import frames
from rsd.dump import unpacked
from rsd.index import Job
from rsd.shapes import kDumpReader, kFates, kVerdicts

kFaults = os.environ.get("RINGSIDE_FAULTS", os.path.join(kBuild, "tests", "faults"))
kWriter = os.path.join(kFaults, "fault_writer")
kKilled = kFates.index("Killed")

Written = collections.namedtuple("Written", "count longest_ns")


def read(folder):
    """The dump's reader, without a complaint."""
    job = Job(folder)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()[:5]))
    return job


def written(child):
    """By thread: what the writer says it has made."""
    lines = [line.split() for line in child.out().splitlines() if line.startswith("thread ")]
    return {int(tid): Written(int(count), int(longest)) for _, tid, count, longest in lines}


def lanes_by_thread(job, node=0):
    """A thread may have had several lanes."""
    lanes = collections.defaultdict(list)
    for lane in job.dumps[node].footer.lanes:
        lanes[lane.tid].append(lane)
    return lanes


def ranges_by_thread(job, name, node=0):
    """Whole ranges of that name, in the order of the numbers that they carry."""
    ranges = collections.defaultdict(list)
    for r in job.events[node].ranges:
        if r.name == name and r.end is not None:
            ranges[r.tid].append(r)
    for held in ranges.values():
        held.sort(key=lambda r: r.payload)
    return ranges


def losses(ranges, count):
    """Runs of numbers that are missing: [(how many, the whole range before or None, the one behind or None)]."""
    runs, before = [], None
    for r in ranges:
        missing = r.payload - (before.payload + 1 if before else 0)
        if missing:
            runs.append((missing, before, r))
        before = r
    missing = count - (before.payload + 1 if before else 0)
    return runs + ([(missing, before, None)] if missing else [])


def check_chunks(path):
    """Every chunk's checksum and every block's [first, last), without its records.
    @return records by (process, lane index, generation)
    """
    with open(path, "rb") as file:
        read_frames = frames.Frames(file.read(), frames.kDumpMagic)
    check(read_frames.problem is None, "%s, byte %d: %s", path, read_frames.end, read_frames.problem)
    records, last = collections.Counter(), {}
    for payload in read_frames.payloads:
        chunk = unpacked(kDumpReader.root(payload, b"RSD1", "Chunk"))
        if chunk.body._shape != "Blocks":
            continue
        for block in chunk.body.blocks:
            lane = (block.process, block.lane)
            check(last.get(lane, 0) <= block.first <= block.last, "lane %s: a block of [%d, %d) after one to %d", lane, block.first, block.last,
                  last.get(lane, 0))
            last[lane] = block.last
            records[(*lane, block.generation)] += block.records
    return records


def run(cases):
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in cases:
        sys.exit("usage: %s CASE [...], one of: %s" % (os.path.basename(sys.argv[0]), ", ".join(sorted(cases))))
    main(lambda workspace: cases[name](workspace, *sys.argv[2:]), "faults_" + name)
