#!/usr/bin/python3
"""kill -9 of a worker in the middle of a call: what it had committed is there, what it served is unfinished, what never reached it is an orphan.

`ringside trace` ends with 1 and says what became of the process. No sleep stands in for a condition (see workloads/killed_job.py).
"""
import collections

from harness import check, main
from rsd.index import Job
from rsd.shapes import kFates, kVerdicts
from scenarios import traced_killed_job

kVictim = "worker1"


def only(found, what):
    found = list(found)
    check(len(found) == 1, "%d of %s, expected one: %s", len(found), what, found)
    return found[0]


def check_victims_dump(job, dump, events):
    process = only(dump.processes.values(), "processes on the victim's node")
    end = only((p for p in dump.footer.processes if p.process == process.index), "ends of the victim")
    check(kFates[end.fate] == "Killed", "the victim's fate is %s", kFates[end.fate])
    verdict = only((v for v in job.index.verdicts if job.index.nodes[v.node].name == dump.node), "verdicts of the victim's node")
    check(kVerdicts[verdict.verdict] == "Killed", "the verdict is %s (%s)", kVerdicts[verdict.verdict], verdict.reason)
    served = collections.Counter()
    for r in events.ranges:
        half = events.served_by(r.context, r.process)
        served[half.name if half else None, r.name] += 1
    for operator, count in (("aten::rand", 2), ("aten::mul", 2)):  # work(), called by both others, committed before
        check(served["work", operator] == count, "work's %s: %d in the dump, expected %d", operator, served["work", operator], count)
    check(served["hold", "aten::add"] == 1, "hold's aten::add is not in the dump")
    open_range = only((r for r in events.ranges if r.end is None), "open ranges")
    check(open_range.name == "holding" and events.killed(open_range.process), "the open range is %s", open_range.name)
    half = only((h for h in events.halves if h.end is None and not h.server), "open calls of the victim")
    check((half.name, half.peer) == ("hold_inner", "worker2"), "the victim's open call is %s to %s", half.name, half.peer)


def test(workspace):
    directory, told, said = traced_killed_job(workspace)
    job = Job(directory)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    number = [n.name for n in job.index.nodes].index("node1")
    check_victims_dump(job, *job.of_node(number))
    calls = collections.defaultdict(list)
    for call in job.calls:
        calls[call.function].append(call)
    hold = only(calls["hold"], "calls of hold")
    check(hold.state == "Joined" and hold.unfinished, "what the victim served is %s, unfinished %s", hold.state, hold.unfinished)
    inner = only(calls["hold_inner"], "calls of hold_inner")
    check(inner.state == "Joined" and inner.unfinished and inner.parent == hold.number, "the victim's own call is %s, unfinished %s, parent %d",
          inner.state, inner.unfinished, inner.parent)
    check(len(calls["work"]) == 2 and all(c.state == "Joined" and c.rpc.reply for c in calls["work"]), "the completed calls are not joined")
    never = calls["never_arrives"]
    check(sorted(c.caller for c in never) == ["worker0", "worker2"], "calls that never arrived are from %s", [c.caller for c in never])
    for call in never:
        check(call.state == "Orphan" and call.callee == kVictim and call.server is None, "a call that never arrived is %s to %s", call.state, call.callee)
        check(call.client.end is not None and call.client.status != 0, "a call that never arrived has ended with %s", call.client.status)
    bad = [p for p in told["processes"] if p["verdict"].lower().startswith("killed")]
    check(len(bad) == 1 and bad[0]["node"] == "node1", "the command's verdicts: %s", told["processes"])
    text = workspace.ringside("table", directory, "--full-names", "--row-limit", "0").out()
    for row in ("rpc_async#hold(worker0 -> worker1) [unfinished]", "rpc_async#never_arrives(worker0 -> worker1) [orphan]",
                "rpc_async#never_arrives(worker2 -> worker1) [orphan]"):
        check(row in text, "the table has no row %s:\n%s", row, text)
    check("2 orphans" in text and "2 unfinished" in text, "the footer does not count them:\n%s", text[-800:])
    print("killed_job: %s" % job.counts(), flush=True)


main(test, "kill9")
