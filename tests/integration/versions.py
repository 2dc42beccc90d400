#!/usr/bin/python3
"""Leader and agents one version apart, each way: with the version before itself, which golden/ keeps, and with what it said, which is recorded there.

    versions.py real BUILD.tar.xz      the two builds with each other: every mix of leader, peer, shim and command
    versions.py old_agent VERIFIER     today's leader and command with a recorded agent as a peer
    versions.py old_leader VERIFIER    a recorded leader with today's agent
    versions.py old_command VERIFIER   a recorded command with today's leader
"""
import itertools
import json
import os
import sys
import tarfile
import time

from harness import check, kBuild, kPython, kWorkloads, main, Node, OffInTime, Trace, wait_until
from old_agent import OldAgent
from old_leader import kAheadNs, OldLeader
from old_words import kind_of, load, Words
from rsd.index import Job

kSoonSeconds = 5.0  # far below what is waited for an answer
kMethods = ("first", "second", "third", "fourth", "fifth")


class Carried:
    """The job: a caller on one node, a callee on another, each of them optional.
    @param ids  what the callee is called with, where there is no caller"""

    def __init__(self, workspace, callee=None, caller=None, ids=(), at_least_s=0, folder=kWorkloads):
        self.workspace, self.children = workspace, []
        for node, words in ((callee, ("callee", *ids)), (caller, ("caller", str(at_least_s)))):
            if node is None:
                continue
            script = os.path.join(folder, "carried_calls.py")
            self.children.append(workspace.start(words[0], node.job_command(kPython, script, workspace.conditions, *words), node.environment()))
            workspace.await_condition(words[0] + " ready", self.children)

    def serve(self):
        self.workspace.announce("serve")
        self.workspace.await_condition("answered", self.children)

    def call(self):
        self.workspace.announce("call")
        self.workspace.await_condition("asked", self.children)
        self.serve()

    def await_ended(self):
        self.workspace.await_condition("ended", self.children)

    def count(self):
        self.workspace.announce("count")

    def leave(self):
        self.count()
        self.workspace.announce("leave")
        for child in self.children:
            child.wait()


def check_trace(output, told, lost=0):
    """A whole trace of both nodes: joined, and nothing lost."""
    job = Job(output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    found = {c.function: (c.state, c.client is not None, c.server is not None) for c in job.calls}
    check(found == {method: ("Joined", True, True) for method in kMethods}, "the calls are %s", found)
    check(job.index.joined_replies == len(kMethods) and job.index.order_violations == 0, "replies and violations: %s", job.counts())
    check([p["verdict"] for p in told["processes"]] == ["captured"] * 2, "trace says %s", told["processes"])
    check([n["lost"] for n in told["nodes"]] == [lost] * 2 and not any(n["error"] for n in told["nodes"]), "the nodes: %s", told["nodes"])
    return job


def check_is_unknown(workspace, endpoint, node):
    """What an older agent does not know it says at once; whoever asked says what to do."""
    workspace.ringside("keygen")
    began = time.monotonic()
    for verb in (("fetch", "caller-node.rsd", "-o", workspace.path("fetched"), "--hosts", endpoint), ("status", "--job", "job", "--peers-of", endpoint)):
        said = workspace.ringside(*verb, expect=None)
        check(said.process.returncode not in (0, None) and "it is older, install the same version there" in said.err() and node not in said.out(), "%s: %d, %s", verb[0],
              said.process.returncode, said.err())
        print("%s: %s" % (verb[0], said.err().strip()), flush=True)
    check(time.monotonic() - began < kSoonSeconds, "they waited for %g s", time.monotonic() - began)


def led_old_agent(workspace, verifier):
    node = Node(workspace, "callee-node")
    agent = OldAgent(workspace, verifier)
    ids = workspace.path("ids")
    with open(ids, "w") as file:
        file.writelines("%s %s\n" % pair for pair in zip(kMethods, agent.ids()))
    job = Carried(workspace, node, ids=(ids,))
    output = workspace.path("trace")
    trace = Trace(workspace, [node, agent], output)
    check(not agent.refused, "requests that the version before would not take: %s", agent.refused)
    check(agent.now_ns() < agent.calls_begin_ns, "the trace began after the recorded calls", failure=OffInTime)
    wait_until("the recorded calls to begin", lambda: agent.now_ns() > agent.calls_begin_ns)
    job.serve()
    check(agent.now_ns() < agent.calls_end_ns, "the calls were served after the recorded ones had ended", failure=OffInTime)
    wait_until("the recorded calls to end", lambda: agent.now_ns() > agent.calls_end_ns)
    check_trace(output, trace.end())
    check(not agent.refused, "requests that the version before would not take: %s", agent.refused)
    return node, agent, job, output


def old_agent(workspace, verifier):
    node, agent, job, output = led_old_agent(workspace, verifier)
    # What is shown of it: its dump, its calls, itself.
    names = {row["name"].rpartition(": ")[2] for row in workspace.json("table", output, "--row-limit", "0")["rows"]}
    check("asking" in names and "work of " + kMethods[0] in names, "the table has %s", sorted(names))
    (status,) = workspace.json("status", "--hosts", agent.endpoint)
    check(status["node"] == "caller-node", "status says %s", status)
    (process,) = workspace.json("ps", "--hosts", agent.endpoint)
    check("caller" in process["command"], "ps says %s", process)
    check_is_unknown(workspace, agent.endpoint, "caller-node")
    job.leave()
    # One of before iterations were counted takes no part in them; the others do.
    older = OldAgent(workspace, verifier, "older", counts_iterations=False)
    told = workspace.ringside("trace", "--hosts", node.endpoint + "," + older.endpoint, "--iterations", "2", "--timeout", "1s", "-o", workspace.path("steps"), "--json",
                              expect=None)
    (refused,) = [n["error"] for n in json.loads(told.out())["nodes"] if n["name"] == "caller-node"]
    check("its agent is older and can't; install the same version there" in refused, "trace says %s", refused)
    check("PrepareRequest" not in older.asked, "it was asked all the same: %s", older.asked)
    print("iterations: %s" % refused, flush=True)


def led_by_old_leader(workspace, verifier):
    callee, caller = nodes = [Node(workspace, "callee-node"), Node(workspace, "caller-node")]
    job = Carried(workspace, *nodes)
    leader = OldLeader(workspace, Words(workspace.path("words"), verifier), caller.endpoint)
    wait_until("the agent to see it", lambda: workspace.json("ps", "--hosts", caller.endpoint))
    leader.play("asked")
    began_ns = time.time_ns()

    def call():
        begun_ns = time.time_ns()
        wait_until("the instant", lambda: time.time_ns() > begun_ns + kAheadNs)
        job.call()
        job.await_ended()

    told = leader.play("peer", {"BeginRequest": call})
    check(began_ns < told["PingReply"]["node_ns"] < time.time_ns(), "its clock says %d", told["PingReply"]["node_ns"])
    halves = told["HalvesReply"]["halves"]
    check(len({h["span"] for h in halves} - {0}) == len(kMethods), "the halves: %s", halves)
    stop = told["StopReply"]
    check(all(stop["start_ticks"] < h["begin_ticks"] < h["end_ticks"] < stop["stop_ticks"] for h in halves), "their ticks: %s, of %s", halves, stop)
    check([d.node for d in Job([stop["path"]]).dumps] == ["caller-node"], "no dump at %s", stop["path"])
    job.count()
    leader.play("iterations", beside=("records", "events", "first"))
    job.leave()


def asked_by_old_command(workspace, verifier):
    callee, caller = nodes = [Node(workspace, "callee-node"), Node(workspace, "caller-node")]
    job = Carried(workspace, *nodes)
    words = Words(workspace.path("words"), verifier)
    command = OldLeader(workspace, words, callee.endpoint)
    recorded = {kind_of(data): data for who, data in load("command")}
    wanted = words.read(recorded["TraceRequest"])
    wanted["content"]["peers"] = [caller.endpoint]
    command.send(words.write(wanted))
    phases = []
    while "TraceReply" not in phases:
        data, told = command.receive()
        kind = kind_of(data)
        if kind == "CancelReply":
            command.compare(told, recorded[kind])
        phases.append(told["content"]["phase"] if kind == "Progress" else kind)
        if phases[-1] == "Capturing" and phases.count("Capturing") == 1:
            job.call()
            job.await_ended()
            command.send(recorded["CancelRequest"])
    command.compare(told, recorded["TraceReply"])
    check([p for n, p in enumerate(phases) if p not in phases[:n] and p != "CancelReply"] == ["Measuring", "Attaching", "Capturing", "Draining", "Joining", "TraceReply"],
          "it was told %s", phases)
    job.leave()


class Build:
    """A build tree, whose parts find each other."""

    def __init__(self, name, folder):
        self.name, self.agent, self.command = name, os.path.join(folder, "agent", "ringside-agent"), os.path.join(folder, "tools", "ringside")
        self.shim = os.path.join(folder, "inject", "libringside_inject.so")


def traced_by(workspace, leader, peer, shim, command):
    """One trace of a job of two nodes, and one of its iterations. @param shim  of the peer's processes; each other part is a Build, too"""
    mix = "-".join(build.name for build in (leader, peer, shim, command))
    callee = Node(workspace, "callee-" + mix, agent=leader.agent, shim=leader.shim)
    caller = Node(workspace, "caller-" + mix, agent=peer.agent, shim=shim.shim)
    workspace.conditions = workspace.path("conditions-" + mix)
    os.makedirs(workspace.conditions)
    job = Carried(workspace, callee, caller)
    output = workspace.path("trace-" + mix)
    trace = Trace(workspace, [callee, caller], output, command=command.command)
    job.call()
    job.await_ended()
    check_trace(output, trace.end())
    job.count()
    told = workspace.run("steps-" + mix, [command.command, "trace", "--hosts", callee.endpoint + "," + caller.endpoint, "--iterations", "2", "--timeout", "5s", "--json", "-o",
                                          workspace.path("steps-" + mix)], expect=None)
    steps = {p["command"].split()[3]: p["iterations"] for p in json.loads(told.out())["processes"]}
    check(steps["caller"]["count"] == 2, "iterations: %s", steps)
    for verb in ("status", "ps"):
        rows = json.loads(workspace.run(verb + "-" + mix, [command.command, verb, "--hosts", caller.endpoint, "--json"]).out())
        check([row["node"] for row in rows] == [caller.name], "%s says %s", verb, rows)
    job.leave()
    callee.stop()
    caller.stop()


def real(workspace, archive):
    with tarfile.open(archive) as kept:
        kept.extractall(workspace.path("golden"))
    old, new = Build("old", workspace.path("golden", "build")), Build("new", kBuild)
    asked = [Node(workspace, "asked-of-" + build.name, agent=build.agent) for build in (old, new)]
    check_is_unknown(workspace, asked[0].endpoint, "asked-of-old")
    # Who is told to install the same version everywhere must be able to see which is which.
    versions = [workspace.json("status", "--hosts", node.endpoint)[0]["version"] for node in asked]
    check(versions[0] == "0.2.0" and versions[1] != versions[0], "status calls them %s", versions)
    # All mixes of two versions but for those of one.
    for leader, peer, shim, command in itertools.product((old, new), repeat=4):
        if len({leader, peer, shim, command}) == 1:
            continue
        traced_by(workspace, leader, peer, shim, command)
        print("%s leader, %s peer with the %s shim, %s command: whole, joined, nothing lost" % (leader.name, peer.name, shim.name, command.name), flush=True)


kCases = {"old_agent": old_agent, "old_leader": led_by_old_leader, "old_command": asked_by_old_command, "real": real}


if __name__ == "__main__":
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "versions_" + sys.argv[1], 120)
