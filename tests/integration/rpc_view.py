#!/usr/bin/python3
"""`ringside rpc` of a real job: a dozen requests at once to a worker of one thread, and of eight. The view alone tells them apart; each number is what the
second reader finds in the dumps the long way; and the view, Chrome's JSON and the table say the same of the same calls.
"""
import json
import os
import shutil

from harness import check, kHere, kPython, kWorkloads, free_port, main
from perfetto import kAssets, perfetto
from rsd.index import Job

kCalls = 36  # rpc_threads.py: three times a dozen
kThreads = (1, 8)
kTimes = ("caller", "queued", "service", "rest", "request", "reply", "bound")


def ran(workspace, threads):
    output = workspace.path("threads-%d" % threads)
    workspace.ringside("run", "-o", output, "--", kPython, "-W", "ignore", os.path.join(kWorkloads, "rpc_threads.py"), str(threads),
                       environment=dict(os.environ, MASTER_PORT=str(free_port())))
    return output


def rank(values, percent):
    """The percentile of the nearest rank."""
    return sorted(values)[max(-(-percent * len(values) // 100), 1) - 1]


class Expected:
    """What the reader has of the calls of `slow`, in nanoseconds."""

    def __init__(self, directory):
        job = Job(directory)
        check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
        (self.dump,), (self.events,) = job.dumps, job.events
        self.calls = [c for c in job.calls if c.function == "slow"]
        check(len(self.calls) == kCalls and all(c.state == "Joined" and c.rpc.reply for c in self.calls), "calls: %s", [c.state for c in self.calls])
        self.by_span = {"%016x" % c.rpc.span: self.times(c) for c in self.calls}

    def stretches(self, half):
        """When threads worked for it, as [begin, end) in ticks; not beyond its answer."""
        found = []
        for (process, _), lane in self.events.contexts.items():
            if process != half.process:
                continue
            for begin, end, state in zip(lane.times, lane.times[1:] + [None], lane.states):
                if state == half.key:
                    found.append((max(begin, half.begin), min(half.end, half.end if end is None else end)))
        return sorted(s for s in found if s[0] < s[1])

    def times(self, call):
        ns = self.dump.node_ns
        client, server = call.client, call.server
        taken = self.stretches(server)[0][0]
        times = {"caller": ns(client.end) - ns(client.begin), "queued": ns(taken) - ns(server.begin), "service": ns(server.end) - ns(taken),
                 "request": ns(server.begin) - ns(client.begin), "reply": ns(client.end) - ns(server.end), "bound": 0}
        return {**times, "rest": times["caller"] - times["service"]}

    def most_at_once(self):
        points = [p for c in self.calls for begin, end in self.stretches(c.server) for p in ((begin, 1), (end, -1))]
        level = most = 0
        for _, step in sorted(points, key=lambda p: (p[0], p[1])):
            level += step
            most = max(most, level)
        return most


def check_edge(told, expected, what):
    edge, = (e for e in told["edges"] if e["method"] == "rpc_async#slow")
    check((edge["caller"], edge["callee"], edge["calls"], edge["errors"], edge["cut"], edge["orphans"]) == ("worker0", "worker1", kCalls, 0, 0, 0),
          "%s: the edge is %s", what, edge)
    for key in ("caller", "service", "queued", "rest", "request", "reply"):
        values = [times[key] for times in expected.by_span.values()]
        for percent in (50, 95, 99):
            theirs = rank(values, percent) / 1000
            check(edge[key + "_us"]["p%d" % percent] == theirs, "%s: p%d of %s is %s, expected %s", what, percent, key, edge[key + "_us"], theirs)
    return edge


def check_same_everywhere(workspace, directory, told, expected, edge, what):
    """The view's calls, the halves in Chrome's JSON, the table's row."""
    trace = workspace.path(what + ".json")
    workspace.ringside("export", directory, "-o", trace)
    with open(trace) as file:
        halves = [e["args"] for e in json.load(file)["traceEvents"] if e.get("cat") == "rpc" and e["ph"] == "X" and "slow" in e["name"]]
    check(len(halves) == 2 * kCalls, "%s: %d halves in Chrome's JSON", what, len(halves))
    for half in halves:
        theirs = {key: half[key.capitalize() + " ns"] for key in kTimes}
        check(theirs == expected.by_span[half["Span id"]], "%s: Chrome's JSON says %s, expected %s", what, theirs, expected.by_span[half["Span id"]])
    check_packets(workspace, directory, expected, what)
    calls = [call for tree in told["slowest"] for call in tree["calls"] if "slow" in call["method"]]
    check(len(calls) == kCalls, "%s: %d calls in the trees", what, len(calls))
    text = workspace.ringside("rpc", directory, "--slowest", "1000").out()
    for call in calls:
        theirs = expected.by_span[call["span_id"]]
        check(all(call[key + "_us"] == value / 1000 for key, value in theirs.items()), "%s: the view says %s, expected %s", what, call, theirs)
        row = next(line for line in text.splitlines() if call["span_id"] in line)
        check("%.3fms" % (theirs["caller"] / 1e6) in row and row.split()[0] == "rpc_async#slow(worker0", "%s: the text says %s, expected %s", what, row, theirs)
    rows = workspace.json("table", directory, "--row-limit", "0")["rows"]
    row, = (r for r in rows if r["name"] == "rpc_async#slow(worker0 -> worker1)")
    check((row["count"], row["cpu_time_total_us"]) == (kCalls, edge["total_us"]), "%s: the table says %s, the view %s", what, row, edge)


def check_packets(workspace, directory, expected, what):
    """The halves in .pftrace, where trace_processor is here."""
    if shutil.which("node") is None or not os.path.exists(os.path.join(kAssets, "complete")):
        return print("%s: .pftrace is not compared: node or trace_processor is not here" % what, flush=True)
    trace = workspace.path(what + ".pftrace")
    workspace.ringside("export", directory, "-o", trace)
    columns = ", ".join("extract_arg(arg_set_id, 'debug.%s ns') as %s_ns" % (key.capitalize(), key) for key in kTimes)
    halves = perfetto(workspace, trace, "select extract_arg(arg_set_id, 'debug.Span id') as span, %s from slice where category = 'rpc' and name like '%%slow%%'"
                      % columns)[-1]
    check(len(halves) == 2 * kCalls, "%s: %d halves in .pftrace", what, len(halves))
    for half in halves:
        theirs = {key: half[key + "_ns"] for key in kTimes}
        check(theirs == expected.by_span[half["span"]], "%s: .pftrace says %s, expected %s", what, half, expected.by_span[half["span"]])


def check_request(workspace, directory, told, what):
    """What the slowest one caused, asked for by the beginning of its trace id."""
    slowest = told["slowest"][0]
    asked = workspace.json("rpc", directory, "--request", slowest["trace_id"][:12])
    check(asked["trace_id"] == slowest["trace_id"] and [c["span_id"] for c in asked["calls"]] == [slowest["calls"][0]["span_id"]], "%s: %s", what, asked)
    ran = {row["name"]: row for row in asked["calls"][0]["ran"]}
    check(ran["aten::mul"]["count"] == 1 and asked["unknown"]["events"] == 0, "%s: what ran is %s", what, asked)
    check("aten::mul" in workspace.ringside("rpc", directory, "--request", slowest["calls"][0]["span_id"]).out(), "%s: no aten::mul in the text", what)


def check_ends(workspace, directory):
    check("no request" in workspace.ringside("rpc", directory, "--request", "f" * 32, expect=3).err(), "no match is not said")
    for wrong in (["--request", "xyz"], ["--sort-by", "colour"], ["--colour"], []):
        workspace.ringside("rpc", *([directory] if wrong else []), *wrong, expect=2)
    workspace.ringside("rpc", workspace.path("nowhere"), expect=6)
    with open(os.path.join(kHere, "rpc_help.txt")) as golden:
        check(workspace.ringside("rpc", "--help").out() == golden.read(), "the help is not that of rpc_help.txt:\n%s",
              workspace.ringside("rpc", "--help").out())
    silent = workspace.path("silent")
    workspace.ringside("run", "-o", silent, "--", kPython, "-c", "import torch; torch.ones(2) + 1")
    check(workspace.ringside("rpc", silent).out().startswith("No RPC was recorded"), "a job without calls")


def test(workspace):
    most = {}
    for threads in kThreads:
        what = "%d threads" % threads
        directory = ran(workspace, threads)
        expected = Expected(directory)
        told = workspace.json("rpc", directory, "--slowest", "1000")
        edge = check_edge(told, expected, what)
        load, = (s for s in told["served"] if s["worker"] == "worker1")
        check((load["requests"], load["most_at_once"]) == (kCalls, expected.most_at_once()), "%s: served %s, expected %d at once", what, load,
              expected.most_at_once())
        most[threads] = load
        check_same_everywhere(workspace, directory, told, expected, edge, what)
        check_request(workspace, directory, told, what)
        print(workspace.ringside("rpc", directory).out(), flush=True)
    check(most[1]["most_at_once"] == 1 and 1 < most[8]["most_at_once"] <= 8, "not told apart: %s", most)
    check(most[1]["came_at_most"]["requests"] > kCalls / 2 and most[1]["came_at_most"]["queued_p50_us"] > 20e3, "they did not wait: %s", most[1])
    check_ends(workspace, directory)


if __name__ == "__main__":
    main(test, "rpc_view")
