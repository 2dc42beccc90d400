"""What the tests of users' annotations share: every event that a program has made is in the dump (as the independent reader reads it), in the
table and in the trace, with its domain, category, colour and payload, as often as it was made; and nothing else of that source is.

Their scripts (annotations_nvtx.py, _itt.py, _api.py) are called with CASE PATH...; what the machine lacks is skipped, aloud.
"""
import collections
import json
import os
import sys

from harness import check, main, skip
from perfetto import check_same, exported, need_trace_processor
from rsd.index import Job

kNvtx, kGrpc, kApi, kItt = 2, 3, 6, 7
kFull, kDegraded = 2, 3

# An event as the program has made it. kind: "range", "async", "open" (never ended), "open async", "mark", "counter", "iteration".
Event = collections.namedtuple("Event", "kind name domain category colour payload", defaults=("", "", 0, None))


def traced(workspace, arguments, name="traced", environment=None):
    """@return (Job, the events of the trace, the table's rows, the command's child)"""
    output = workspace.path(name)
    child = workspace.ringside("run", "-o", output, "--table", workspace.path(name + ".txt"), "--", *arguments, environment=environment, name=name)
    job = Job(output)
    check(not job.problems(), "%s, the reader: %s", name, "; ".join(job.problems()))
    trace = workspace.path(name + ".json")
    workspace.ringside("export", output, "-o", trace)
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    rows = workspace.json("table", output, "--row-limit", "0")["rows"]
    return job, events, rows, child


def of_source(job, source):
    """The events of one source as the reader sees them."""
    found = []
    for events in job.events:
        for r in events.ranges:
            if r.source == source:
                kind = "open async" if r.kind == "async" and r.end is None else r.kind
                found.append(Event(kind, r.name, r.attributes.domain, r.attributes.category, r.attributes.colour, r.payload))
        for kind, _, _, name, _, _, _, attributes, payload, whose in events.marks:
            if whose == source:
                found.append(Event(kind, name, attributes.domain, attributes.category, attributes.colour, payload))
    return found


def in_trace(event):
    """As trace.json tells it: the name that a view shows, and its arguments."""
    args = {}
    if event.domain:
        args["Domain"] = event.domain
    if event.category:
        args["Category"] = event.category
    if event.colour:
        args["Colour"] = "#%08x" % event.colour
    if event.payload is not None:
        args["Payload"] = event.payload
    return event.name or "(unnamed)", args


def check_events(job, trace, rows, source, expected):
    """Each expected event is in dump, trace and table as often as it was made, and nothing else of that source is."""
    made, found = collections.Counter(expected), collections.Counter(of_source(job, source))
    check(made == found, "the dump: missing %s; too many %s", list((made - found).elements())[:5], list((found - made).elements())[:5])
    told = collections.Counter()
    for e in trace:
        if e["ph"] in "Xi" and e.get("cat") != "rpc":
            args = {k: v for k, v in e["args"].items() if k in ("Domain", "Category", "Colour", "Payload")}
            told[e["name"], json.dumps(args, sort_keys=True)] += 1
    for event, count in made.items():
        if event.kind == "counter":
            check(any(e["ph"] == "C" and e["name"] == event.name and e["args"]["value"] == event.payload for e in trace),
                  "the trace has no counter %s of %s", event.name, event.payload)
            continue
        name, args = in_trace(event)
        check(told[name, json.dumps(args, sort_keys=True)] >= count, "the trace has not %d of %s %s but %s", count, name, args,
              [k for k in told if k[0] == name])
    by_name = {row["name"]: row for row in rows}
    for event in made:
        if event.kind in ("mark", "counter", "iteration"):
            continue
        row = by_name.get((event.name or "(unnamed)") + (" [open]" if event.kind.startswith("open") else ""))
        check(row is not None, "the table has no row %s (%s)", event.name, event.kind)
        check(not event.domain or event.domain in row.get("domains", ()), "the table's row %s has not the domain %s: %s", event.name, event.domain, row)
        check(not event.category or event.category in row.get("categories", ()), "the row %s has not the category %s", event.name, event.category)
        count = sum(n for e, n in made.items() if e.name == event.name and e.kind == event.kind)
        check(row["count"] >= count, "the row %s counts %d of %d", event.name, row["count"], count)
    print("%d events of %d kinds in dump, trace and table" % (sum(made.values()), len(made)), flush=True)


def check_pftrace(workspace, *said):
    """What trace.json tells of each slice of "traced" .pftrace tells, too; among that is each of `said`."""
    need_trace_processor()
    packets, _ = exported(workspace, "traced", workspace.path("traced"), ".pftrace")
    check_same(workspace, workspace.path("traced.json"), packets, *said)


def check_level(job, source, level=kFull, reason=""):
    for dump in job.dumps:
        for process in dump.processes.values():
            for one in process.sources:
                if one.id == source:
                    check((one.level, one.reason or "") == (level, reason), "level %d, %r", one.level, one.reason)
                    return
    check(False, "no process has told of source %d", source)


def thread_names(trace):
    return {e["args"]["name"].partition(" (")[2].rstrip(")") for e in trace if e["name"] == "thread_name" and "(" in e["args"]["name"]}


def run_case(cases):
    """Runs the case that the command line names, with the paths behind it."""
    case = sys.argv[1]
    for path in sys.argv[2:]:
        if not path or not os.path.exists(path):
            skip("not here: %s; tools/setup_annotations makes NVTX and ITT, tools/setup_torch2 a newer torch, tools/setup_grpc PyPI's gRPC" % (path or "what this test needs"))
    main(lambda workspace: cases[case](workspace, *sys.argv[2:]), case)
