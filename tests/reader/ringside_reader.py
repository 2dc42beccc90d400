#!/usr/bin/python3
"""ringside_reader.py DIR|FILE... --counts|--ranges|--rpcs [--iterations] [--json]: what a job's dumps and index hold, read without any of Ringside's code.

Exit codes: 0, 6 when a file is unreadable, damaged, or does not add up (what could be read is printed all the same).
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rsd import Damaged
from rsd.index import Job
from rsd.shapes import kStatuses


def range_rows(job):
    """One row a range, in the node's own microseconds from the dump's first event."""
    for dump, events in zip(job.dumps, job.events):
        base = min((r.begin for r in events.ranges), default=0)
        for r in sorted(events.ranges, key=lambda r: (r.process, r.lane, r.begin)):
            served = events.served_by(r.context, r.process)
            yield {"node": dump.node, "process": r.process, "tid": r.tid, "name": r.name, "kind": r.kind,
                   "begin_us": dump.duration_ns(r.begin - base) / 1e3,
                   "duration_us": None if r.end is None else dump.duration_ns(r.end - r.begin) / 1e3,
                   "request": "unknown" if r.context == "unknown" else served and "%s(%s -> %s)" % (served.name, served.peer, served.self_name)}


def rpc_rows(job):
    """One row a request of the index, in leader_ns."""
    for c in job.calls:
        half = c.either
        yield {"number": c.number, "parent": c.parent, "state": c.state, "unfinished": c.unfinished, "mode": c.mode, "function": c.function,
               "module": half.module, "caller": c.caller, "callee": c.callee, "client_node": c.client_node, "server_node": c.server_node,
               "wire_type": half.wire_type, "wire_id": half.wire_id, "span": "%016x" % c.rpc.span,
               "trace": "%016x%016x" % (c.rpc.trace_hi, c.rpc.trace_lo),
               "status": None if c.client is None or c.client.status is None else kStatuses[c.client.status],
               "client_begin_ns": c.rpc.client_begin_ns, "server_begin_ns": c.rpc.server_begin_ns,
               "server_end_ns": c.rpc.server_end_ns, "client_end_ns": c.rpc.client_end_ns}


def show(rows, as_json):
    if as_json:
        print(json.dumps(rows, indent=1))
    elif isinstance(rows, dict):
        for name, value in rows.items():
            print("%-18s %s" % (name, value))
    else:
        for row in rows:
            print("  ".join("%s=%s" % (k, "%.1f" % v if isinstance(v, float) else v) for k, v in row.items()))


def main():
    parser = argparse.ArgumentParser(description="reads .rsd and .rsj files by the specification alone")
    parser.add_argument("inputs", nargs="+")
    what = parser.add_mutually_exclusive_group(required=True)
    for option in ("--counts", "--ranges", "--rpcs"):
        what.add_argument(option, action="store_true")
    parser.add_argument("--iterations", action="store_true", help="only the iterations that the capture was asked for")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        job = Job(options.inputs)
        problems = job.problems()
        if options.iterations:
            job.trim()
        rows = job.counts() if options.counts else list(range_rows(job) if options.ranges else rpc_rows(job))
    except (Damaged, OSError) as broken:
        print("ringside_reader: %s" % broken, file=sys.stderr)
        return 6
    show(rows, options.json)
    for problem in problems:
        print("ringside_reader: %s" % problem, file=sys.stderr)
    return 6 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
