#!/usr/bin/python3
"""A job that logs its own calls, on three nodes whose clocks are off by +1 s, 3 ms and 50 ppm: the dump has exactly those calls.

    logged_job.py plain | no_python | twice | addresses | hosts

no_python: without the Python part sync and async can't be told apart: rows read rpc#..., the level is degraded. twice: init_rpc twice in
one process. addresses: the master's address is spelled differently on each node. hosts: each node is a host in namespaces of its own, with
delays on the way between them; agents over tcp with one key.
"""
import collections
import json
import socket
import sys

from harness import OffInTime, check, hand_over_ns, main, skip
from hosts import kFirstAddress, what_is_missing
from rsd.index import Job
from rsd.shapes import kLevels, kModes, kRpcStates, kStatuses
from scenarios import kDriftPpb, kSkewNs, three_hosts, three_nodes, traced_logged_job

kInternalModule = "torch.distributed.rpc.api"
kTorch = 1
kShare, kMostShare, kSlackNs = 0.05, 0.3, 1_000_000
kUsualHandOverNs, kMostSlow = 20_000, 5
in_time = set()  # calls that were right, in this attempt or one before
kSlackOnHostsNs = 5_000_000  # the switch between them wants the cores, too
kRoundingNs = 2


def logged(paths):
    """The job's own calls, in order of their begin for each caller."""
    rows = []
    for path in paths:
        with open(path) as lines:
            rows += [json.loads(line) for line in lines]
    return sorted(rows, key=lambda r: (r["caller"], r["begin_ns"]))


def of_the_user(job):
    """The dump's calls without torch's own messages."""
    calls = [c for c in job.calls if c.either.module != kInternalModule and kModes[c.either.mode] != "internal"]
    return sorted(calls, key=lambda c: (c.caller, c.client.begin if c.client else c.server.begin))


def pair_up(rows, calls, modes_known):
    """Each logged call with the dump's; exactly the same ones on both sides.
    The mode is fetch for a to_here even where sync and async can't be told apart."""
    mode_of = lambda mode: mode if modes_known or mode in ("fetch", "remote") else "unknown"
    wanted = collections.Counter((r["caller"], r["callee"], r["function"], mode_of(r["mode"])) for r in rows)
    found = collections.Counter((c.caller, c.callee, c.function, c.mode) for c in calls)
    check(wanted == found, "logged but not in the dump: %s; in the dump but not logged: %s", dict(wanted - found), dict(found - wanted))
    queues = collections.defaultdict(collections.deque)
    for call in calls:
        queues[call.caller, call.callee, call.function, call.mode].append(call)
    return [(r, queues[r["caller"], r["callee"], r["function"], mode_of(r["mode"])].popleft()) for r in rows]


def check_durations(job, pairs):
    """A call never takes less than what it slept. It takes what it slept, or what the job logged, in one of the attempts: where others want
    the cores either may be late, and which call it is differs; a span that begins or ends with the wrong event is off in all of them.
    The first one of its kind is not measured: Python's part of it, between log and call, may wait for memory that the machine has to find.
    Where a thread's turn takes the machine longer than usual, so may a call.
    """
    off, known_kinds = [], set()
    slow = min(kMostSlow, max(1, hand_over_ns() / kUsualHandOverNs))  # beyond it the check would see nothing
    print("a turn takes %.1f times as long as usual" % slow, flush=True)
    for row, call in pairs:
        kind = (call.function, call.caller, call.callee, call.mode)
        if kind not in known_kinds:
            known_kinds.add(kind)
            continue
        dump, _ = job.of_node(call.rpc.client.node)
        duration = dump.duration_ns(call.client.end - call.client.begin)
        text = "%s(%s -> %s, %s)" % (call.function, call.caller, call.callee, call.mode)
        if row["sleep_ms"] is not None and row["status"] != "RuntimeError" and variant != "hosts":  # there the way is part of the call
            known, slack, what = row["sleep_ms"] * 1e6, min(kMostShare, kShare * slow) * row["sleep_ms"] * 1e6, "slept"
            check(duration > known * (1 - kShare / 10), "%s slept %.3f ms and took %.3f ms", text, known / 1e6, duration / 1e6)
        else:
            known, what = row["end_ns"] - row["begin_ns"], "logged"
            slack = max(kShare * known, slow * (kSlackOnHostsNs if variant == "hosts" else kSlackNs))
        if abs(duration - known) <= slack:
            in_time.add(text)
        elif text not in in_time:
            off.append("%s: %.3f ms in the dump, %s %.3f ms" % (text, duration / 1e6, what, known / 1e6))
    check(not off, "%s", "; ".join(off), failure=OffInTime)


def check_joins(pairs):
    """All completed ones at both ends; the timeout as one error span at its caller."""
    timeouts = 0
    for row, call in pairs:
        what = "%s(%s -> %s)" % (call.function, call.caller, call.callee)
        check(call.state == "Joined" and call.client and call.server, "%s is %s", what, call.state)
        check(call.client.end is not None and call.server.end is not None, "%s has no end", what)
        status = kStatuses[call.client.status]
        if row["status"] == "RuntimeError":
            timeouts += 1
            check(status == "timeout" and not call.rpc.reply, "%s timed out, its span says %s, reply %s", what, status, call.rpc.reply)
        else:
            check(call.rpc.reply, "%s has no reply", what)
            check(status == "ok" or row["status"] == "ValueError", "%s ended well, its span says %s", what, status)
        served_alone = [c for _, c in pairs if c.server is call.server]
        check(len(served_alone) == 1, "%s shares its server half", what)
    return timeouts


def check_parents(job, pairs):
    """Calls made by a handler hang below the call that it served."""
    for row, call in pairs:
        parent = job.calls[call.parent].function if call.parent >= 0 else None
        wanted = {"worker0": (None,), "worker1": ("nested", "chain", "chain_in_then")}[row["caller"]]
        check(parent in wanted, "%s called by %s hangs below %s, expected one of %s", call.function, row["caller"], parent, wanted)


def violations(job, corrected):
    """Replies before their request, beyond the bound of the two clocks: with the correction, or with each node by its own clock."""
    found = []
    for call in job.calls:
        if call.state != "Joined":
            continue
        client, server = call.rpc.client.node, call.rpc.server.node
        at = lambda node, ticks: job.leader_ns(node, ticks, corrected)
        bound = sum(job.index.nodes[n].clock.bound_ns for n in {client, server})
        steps = [(at(client, call.client.begin), at(server, call.server.begin))]
        if call.rpc.reply:
            steps.append((at(server, call.server.end), at(client, call.client.end)))
        found += [call for earlier, later in steps if later < earlier - bound]
    return found


def check_clocks(job):
    """The ticks of all three nodes are one machine's: what the corrected clocks make of one tick tells how far they are off."""
    names = [n.name for n in job.index.nodes]
    leader = names.index(job.index.leader)
    for number, node in enumerate(job.index.nodes):
        dump, _ = job.of_node(number)
        own = int(node.name[-1])
        instants = (dump.footer.start_ticks, dump.footer.stop_ticks)
        check(instants[0] and instants[1] > instants[0], "%s: its capture begins at %d and stops at %d", node.name, *instants)
        raw = [job.leader_ns(number, t, False) - job.leader_ns(leader, t, False) for t in instants]
        left = [job.leader_ns(number, t) - job.leader_ns(leader, t) for t in instants]
        skew = kSkewNs[own] - kSkewNs[int(names[leader][-1])]
        drift_ns_per_s = (raw[1] - raw[0]) * 1e9 / (job.leader_ns(leader, instants[1]) - job.leader_ns(leader, instants[0]))
        check(abs(raw[0] - skew) < 5_000_000 and abs(drift_ns_per_s - kDriftPpb[own]) < 2_000,
              "%s: skewed by %d ns and %.0f ppb, asked for %d and %d", node.name, raw[0], drift_ns_per_s, skew, kDriftPpb[own])
        bound = node.clock.bound_ns
        check(max(map(abs, left)) <= bound + kRoundingNs, "%s: corrected it is off by %s ns, beyond its bound of %d", node.name, left, bound)
        check(number == leader or 0 < bound < 5_000_000, "%s: a bound of %d ns says nothing", node.name, bound)
        print("%s: skew %.6f ms, drift %.1f ppm; corrected off by %d and %d ns, bound %d ns" % (
            node.name, raw[0] / 1e6, drift_ns_per_s / 1e3, left[0], left[1], bound), flush=True)


def check_levels(job, level):
    for dump in job.dumps:
        for process in dump.processes.values():
            for source in process.sources:
                if source.id == kTorch:
                    check(kLevels[source.level] == level, "%s: torch's level is %s (%s), expected %s", dump.node, kLevels[source.level], source.reason, level)


def check_rows(workspace, directory, modes_known, rows):
    """The table shows each of the user's calls as one row's count."""
    table = json.loads(workspace.ringside("table", directory, "--full-names", "--row-limit", "0", "--json").out())["rows"]
    counts = collections.Counter()
    for row in table:
        counts[row["name"].rpartition("#remote_op: ")[2].partition("(")[0]] += row["count"]
    for (mode, function), n in collections.Counter((r["mode"], r["function"]) for r in rows).items():
        name = "to_here#" if mode == "fetch" else "rpc%s#%s" % ("_" + mode if modes_known or mode == "remote" else "", function)
        if not modes_known and mode in ("sync", "async"):
            n = sum(r["function"] == function and r["mode"] in ("sync", "async") for r in rows)
        check(counts[name] == n, "the table has %d calls %s, the job logged %d", counts[name], name, n)


def check_uncorrected_view(workspace, directory):
    """The command's own view without the correction is of each node's own clock."""
    told = json.loads(workspace.ringside("table", directory, "--no-clock-correction", "--json").out())
    check(told["corrected"] is False, "the table without the correction says corrected: %s", told["corrected"])


def test(workspace):
    modes_known = variant != "no_python"
    addresses = ("127.0.0.1", "localhost", socket.gethostname()) if variant == "addresses" else ("127.0.0.1",) * 3
    on_hosts = variant == "hosts"
    if on_hosts:
        addresses = (kFirstAddress,) * 3
    directory, told, logs = traced_logged_job(workspace, rounds=2 if variant == "twice" else 1, addresses=addresses,
                                              make_nodes=three_hosts if on_hosts else three_nodes, armed=variant == "armed",
                                              environment=None if modes_known else {"RINGSIDE_PYTHON": "0"})
    job = Job(directory)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    rows = logged(logs)
    pairs = pair_up(rows, of_the_user(job), modes_known)
    timeouts = check_joins(pairs)
    check(timeouts == (3 if variant == "twice" else 2), "%d timeouts", timeouts)
    check(job.index.ambiguous == 0, "%d ambiguous", job.index.ambiguous)
    check_parents(job, pairs)
    check_levels(job, "Full" if modes_known else "Degraded")
    check_rows(workspace, directory, modes_known, rows)
    check_clocks(job)
    late = violations(job, corrected=True)
    check(not late and job.index.order_violations == 0, "%d replies before their request, the index says %d", len(late), job.index.order_violations)
    without = violations(job, corrected=False)
    check(without, "with the correction taken out no reply comes before its request: this check sees nothing")
    check_uncorrected_view(workspace, directory)
    check_durations(job, pairs)
    states = collections.Counter(kRpcStates[r.state] for r in job.index.rpcs)
    print("%s: %d calls logged and found, %d timed out, %s with torch's own, %d out of order only without the correction; lost %d" % (
        variant, len(rows), timeouts, dict(states), len(without), job.counts()["lost"]), flush=True)


variant = sys.argv[1] if len(sys.argv) > 1 else "plain"
missing = what_is_missing() if variant == "hosts" else None
if missing:
    skip(missing)
main(test, "logged_" + variant)
