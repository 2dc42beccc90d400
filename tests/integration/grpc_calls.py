#!/usr/bin/python3
"""gRPC in C++: programs that nobody changed, on Debian's libraries, every kind of call by every API at every server; how calls end.

    grpc_calls.py CASE SERVER CLIENT        CASE: every ends killed between; the programs: workloads/grpc
    grpc_calls.py unknown PROGRAM
"""
import collections
import json
import signal

from annotations import check_level, kFull, run_case
from harness import check, Node, Trace, wait_until
from rsd.index import Job

kGrpc = 3
kOk, kError, kTimeout, kPeerGone, kCancelled = range(5)
kNotInstrumented = 4
kCalls = 20000
kModes = {"sync": "sync", "async": "async", "callback": "async"}

# Server and client under one command, so that the capture is there before either. What each prints goes to a file.
kPair = """
mkfifo port
"$1" > port &
exec 3< port
read number <&3
"$2" 127.0.0.1:$number all 8 %d > made || exit 1
kill -TERM $!
cat <&3 > served
wait $!
""" % kCalls


def read_counts(path):
    with open(path) as file:
        lines = [line.split() for line in file]
    return {tuple(words[:-1]): int(words[-1]) for words in lines}


def halves_of(job):
    return [half for events in job.events for half in events.halves]


def check_reader(job):
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))


def every(workspace, server, client):
    output = workspace.path("traced")
    workspace.ringside("run", "-o", output, "--", "sh", "-c", kPair, "sh", server, client)
    made, served = read_counts(workspace.path("cwd", "made")), read_counts(workspace.path("cwd", "served"))
    check(sum(made.values()) == kCalls and len(made) == 36, "the client has made %d calls of %d kinds", sum(made.values()), len(made))
    job = Job(output)
    check_reader(job)
    check_level(job, kGrpc)
    found = collections.Counter((c.client.module, c.client.name, c.mode) for c in job.calls if c.client)
    expected = collections.Counter()
    for (service, method, api), count in made.items():
        expected["calls." + service, method, kModes[api]] += count
    check(found == expected, "clients' halves: %s, made %s", found - expected, expected - found)
    found = collections.Counter((h.module.partition(".")[2], h.name) for h in halves_of(job) if h.server)
    check(found == collections.Counter(served), "servers' halves: %s too many, %s missing", found - collections.Counter(served),
          collections.Counter(served) - found)
    states = collections.Counter((c.state, bool(c.client), bool(c.server), bool(c.rpc.reply), c.unfinished) for c in job.calls)
    check(states == {("Joined", True, True, True, False): kCalls}, "the calls are %s", states)
    check(len({(c.client.trace_hi, c.client.trace_lo, c.client.span) for c in job.calls}) == kCalls, "ids are not unique")
    for call in job.calls:
        check(call.client.module == call.server.module and call.client.name == call.server.name, "%s joined with %s", vars(call.client), vars(call.server))
        check((call.client.status, call.server.status) == (kOk, kOk), "a call has ended with %s, %s", call.client.status, call.server.status)
    peers = {h.peer.rpartition(":")[0] for h in halves_of(job)}
    check(peers == {"127.0.0.1", "ipv4:127.0.0.1"}, "peers: %s", peers)
    unary = next(c for c in job.calls if c.function == "Unary" and c.mode == "sync")
    sizes = (unary.client.request_bytes, unary.client.answer_bytes, unary.server.request_bytes, unary.server.answer_bytes)
    check(sizes == (10, 10, 10, 10), "bytes of a unary call: %s", sizes)
    print("%s" % job.counts(), flush=True)


class Pair:
    """A server on each of `nodes`, and clients on the first one."""

    def __init__(self, workspace, server, client, servers=1):
        self.workspace, self.client = workspace, client
        self.here, self.there = Node(workspace, "here"), Node(workspace, "there")
        self.servers = [workspace.start("server%d" % n, self.there.job_command(server), self.there.environment()) for n in range(servers)]
        ports = [wait_until("server's port", one.out, children=[one]).strip() for one in self.servers]
        self.addresses = ["127.0.0.1:" + port for port in ports]
        self.trace = Trace(workspace, [self.here, self.there], workspace.path("traced"))

    def start(self, what, *more):
        return self.workspace.start("client-" + what, self.here.job_command(self.client, self.addresses[0], what, *more), self.here.environment())

    def call(self, what, *more):
        child = self.start(what, *more)
        child.wait()
        return child.out().split()

    def end(self, expect=0):
        """@return (Job, {method: its calls})"""
        told = self.trace.end(expect)
        job = Job(self.trace.output)
        check_reader(job)
        calls = collections.defaultdict(list)
        for call in job.calls:
            calls[call.function].append(call)
        return job, calls, told


def only(found, what):
    check(len(found) == 1, "%d of %s, expected one", len(found), what)
    return found[0]


def statuses(call):
    return call.client and call.client.status, call.server and call.server.status


def ends(workspace, server, client):
    pair = Pair(workspace, server, client, servers=2)
    own = pair.call("own")[1]
    kept = pair.call("kept")[1]
    pair.call("chain", pair.addresses[1])
    told = {what: pair.call(what)[0] for what in ("fail", "deadline", "cancel")}
    check(told == {"fail": "5", "deadline": "4", "cancel": "1"}, "the client was told %s", told)
    pair.call("abandon")
    pair.call("leave")
    for one in pair.servers:  # it hears late that a caller has gone: its end is the last word
        one.send(signal.SIGTERM)
        one.wait()
    job, calls, _ = pair.end()
    ids = {"00-%016x%016x-%016x-01" % (c.client.trace_hi, c.client.trace_lo, c.client.span) for c in calls["Kept"]}
    check(ids == {own, kept} and own.startswith("00-0123456789abcdef"), "ids %s, the server has received %s and %s", ids, own, kept)
    chain, inner = only(calls["Chain"], "Chain"), only(calls["Unary"], "Unary")
    check(inner.parent == chain.number and inner.client.trace_lo == chain.client.trace_lo and inner.client.parent_key == chain.server.key,
          "the inner call's parent is %s, of %s", inner.parent, chain.number)
    check(inner.client.process == chain.server.process != inner.server.process, "the inner call is not from server to server")
    check(statuses(only(calls["Fail"], "Fail")) == (kError, kError), "Fail: %s", statuses(calls["Fail"][0]))
    check(statuses(only(calls["Bidi"], "Bidi"))[0] == kCancelled, "abandoned: %s", statuses(calls["Bidi"][0]))
    patient = sorted(map(statuses, calls["Patient"]), key=str)
    # One caller has gone without a word.
    check(patient == sorted([(kTimeout, kTimeout), (kCancelled, kCancelled), (None, kCancelled)], key=str), "Patient: %s", patient)
    check({c.state for c in job.calls} == {"Joined"}, "states: %s", [(c.function, c.state) for c in job.calls])
    check_level(job, kGrpc, kFull)
    trace = workspace.path("trace.json")
    workspace.ringside("export", pair.trace.output, "-o", trace)
    with open(trace) as file:
        words = {e["args"].get("Status") for e in json.load(file)["traceEvents"] if e.get("cat") == "rpc" and "args" in e}
    check({"ok", "error", "timeout", "cancelled"} <= words, "the trace says %s", words)


def killed(workspace, server, client):
    pair = Pair(workspace, server, client)
    waiting = pair.start("patient")
    # It is being served once the call's halves are both there: the server's thread that waits has begun to sleep in short turns.
    wait_until("the call to arrive", lambda: _records(workspace, pair.there) > 0, children=[waiting])
    pair.servers[0].send(signal.SIGKILL)
    waiting.wait()
    check(waiting.out().split()[0] == "14", "the client was told %s", waiting.out())
    late = pair.call("fail")
    check(late[0] == "14", "a call to nobody: %s", late)
    job, calls, told = pair.end(expect=1)
    call = only(calls["Patient"], "Patient")
    check(call.state == "Joined" and call.unfinished and statuses(call) == (kPeerGone, None), "%s, unfinished %s, %s", call.state, call.unfinished, statuses(call))
    lost = only(calls["Fail"], "Fail")
    check(lost.state == "Orphan" and lost.client.peer == pair.addresses[0] and statuses(lost) == (kPeerGone, None), "%s to %s: %s", lost.state,
          lost.client.peer, statuses(lost))
    check("Fail" in workspace.ringside("table", pair.trace.output, "--full-names", "--row-limit", "0").out(), "the table does not name it")


def _records(workspace, node):
    processes = workspace.json("ps", "--hosts", node.endpoint)
    return max([int(p.get("records", p.get("events", 0))) for p in (processes["processes"] if isinstance(processes, dict) else processes)] + [0])


def between(workspace, server, client):
    """Captures that begin and end while calls are in flight: no crash, nothing invented, and what is asked for alone."""
    pair = Pair(workspace, server, client)
    running = pair.start("all", "8", str(10 * kCalls))
    jobs = []
    for _ in range(4):
        job, _, _ = pair.end()
        jobs.append(job)
        pair.trace = Trace(workspace, [pair.here, pair.there], workspace.path("traced-%d" % len(jobs)))
    pair.trace.end()
    for job in jobs[1:]:
        sync = [c for c in job.calls if c.either.module == "calls.SyncServer"]
        joined = sum(c.state == "Joined" for c in sync)
        check(joined > 10 and joined >= 0.9 * len(sync), "%d of %d calls of a capture in the middle are joined", joined, len(sync))
        for call in job.calls:
            check(call.state != "Joined" or call.client.name == call.server.name, "call %d joins two methods", call.number)
    muted = Trace(workspace, [pair.here, pair.there], workspace.path("muted"), options=["--sources", "nvtx"])
    muted.end()
    check(not Job(muted.output).calls, "calls are recorded though --sources nvtx")
    asked = Trace(workspace, [pair.here, pair.there], workspace.path("asked"), options=["--sources", "grpc"])
    asked.end()
    check(Job(asked.output).calls, "no calls are recorded with --sources grpc")
    check(running.process.poll() is None, "the client ended before the captures did")
    running.send(signal.SIGTERM)
    running.wait(expect=None)
    pair.servers[0].send(signal.SIGTERM)
    pair.servers[0].wait()


def unknown(workspace, program):
    node = Node(workspace, "node")
    child = workspace.start("program", node.job_command(program), node.environment())
    wait_until("the program", child.out, children=[child])
    check(child.out() == "99.0.0 1\n", "the program says %r", child.out())
    trace = Trace(workspace, [node], workspace.path("traced"))
    reason = "unknown version of gRPC: core 99.0.0 (known: 29, gRPC 1.51)"
    text = workspace.ringside("ps", "--hosts", node.endpoint, expect=None).out()
    check("grpc not instrumented" in text, "ps says %s", text)
    told = trace.end(expect=None)
    check_level(Job(trace.output), kGrpc, kNotInstrumented, reason)
    (process,) = told["processes"]
    check(process["sources"] == [{"level": "not instrumented", "name": "grpc", "reason": reason}], "the verdict's sources are %s", process["sources"])
    child.send(signal.SIGTERM)
    child.wait(expect=None)


if __name__ == "__main__":
    run_case({"every": every, "ends": ends, "killed": killed, "between": between, "unknown": unknown})
