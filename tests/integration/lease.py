#!/usr/bin/python3
"""A node that does not hear of its leader in the middle of a trace: for less than the lease, for longer, and by another connection than before.

    lease.py link PROGRAM         PROGRAM: workloads/numbered.c; the node's link is down, for a while, then until its capture has ended
    lease.py reset PROGRAM        the connection between the two is ended under them: libzmq makes another one
"""
import os
import selectors
import socket
import subprocess
import sys
import threading
import time

from harness import check, main, Node, skip, Trace, wait_until
from hosts import Hosts, what_is_missing
from rsd.index import Job

kLeaseS = 6.0
kShortS = 2.0  # TCP tries again after 0.2, 0.6, 1.4, 3.0 s: well within the lease
kResetLeaseS = 1.5
kLog = ("--log-level", "debug")


def started(workspace, node, program, name):
    path = workspace.path("numbers." + name)
    child = workspace.start("numbers-" + name, node.job_command(program, path, "2", "1000000"), node.environment())
    wait_until("the numbers", lambda: os.path.exists(path) and os.path.getsize(path), children=[child])


def pings(node):
    """What the agent has heard of its leader, or of anybody who asks so."""
    return node.agent.err().count("request=PingRequest")


def is_heard(node, more=3):
    had = pings(node)
    wait_until("the leader to be heard again", lambda: pings(node) >= had + more, children=[node.agent])


def check_index(output, error):
    job = Job(output)
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
    found = {node.name: node.error for node in job.index.nodes}
    check(sum(map(bool, found.values())) == (1 if error else 0) and error in "".join(found.values()), "the index's nodes say %s", found)


class Link:
    """A node's, which is up or down."""

    def __init__(self, host):
        self.words = ["ip", "-n", host.namespace, "link", "set", "eth0"]

    def down(self):
        subprocess.run([*self.words, "down"], check=True)
        self.since = time.monotonic()

    def up(self):
        subprocess.run([*self.words, "up"], check=True)
        return time.monotonic() - self.since


def link(workspace, program):
    missing = what_is_missing()
    if missing:
        skip(missing)
    hosts = Hosts(workspace, 2, {}).hosts
    lease = ("--lease-ms", str(int(kLeaseS * 1000)))
    near, far = nodes = [Node(workspace, host.name, extra=("--key", host.environment["RINGSIDE_KEY"], *lease, *kLog), host=host) for host in hosts]
    for node in nodes:
        started(workspace, node, program, node.name)
    cable = Link(hosts[1])

    output = workspace.path("short")
    trace = Trace(workspace, nodes, output)
    cable.down()
    wait_until("a while", lambda: time.monotonic() > cable.since + kShortS)
    lasted = cable.up()
    is_heard(far)
    told = trace.end(expect=0)
    check([node["error"] for node in told["nodes"]] == ["", ""], "after %.1f s without a link: %s", lasted, told["nodes"])
    check([(p["verdict"], p["reason"]) for p in told["processes"]] == [("captured", "")] * 2, "the processes: %s", told["processes"])
    check_index(output, "")
    print("the link was down for %.1f s of a lease of %g s: whole" % (lasted, kLeaseS), flush=True)

    output = workspace.path("long")
    trace = Trace(workspace, nodes, output)
    cable.down()
    wait_until("the capture's end there", lambda: "its leader has not been heard of for" in far.agent.err(), children=[far.agent])
    lasted = cable.up()
    is_heard(far)
    check_is_told(trace, near, far, output, lasted)


def check_is_told(trace, near, far, output, lasted):
    began = time.monotonic()
    told = trace.end(expect=1)
    nodes = {node["name"]: node for node in told["nodes"]}
    error = nodes[far.name]["error"]
    check(nodes[near.name]["error"] == "" and "its leader had not been heard of for" in error and "this node's capture ended" in error, "the nodes: %s", told["nodes"])
    early_s = int(error.partition("ended ")[2].split()[0]) / 1000
    check(0 < early_s < time.monotonic() - began + lasted + 60, "it says that it ended %g s early", early_s)
    check(nodes[far.name]["dump"] and nodes[far.name]["records"] > 0, "what it had is there: %s", nodes[far.name])
    for process in told["processes"]:
        cut = process["reason"].startswith("not its last ")
        check(process["verdict"] == "captured" and cut == (process["node"] == far.name), "a process: %s", process)
    check_index(output, error)
    print("the link was down for %.1f s: %s" % (lasted, error), flush=True)


class Between(threading.Thread):
    """What a leader reaches an agent through; it ends all connections when it is asked to."""

    def __init__(self, path, to):
        super().__init__(daemon=True)
        self.to, self.listening = to, socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen()
        self.selector, self.other = selectors.DefaultSelector(), {}
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.asked, self.ending, self.ended = threading.Event(), threading.Event(), 0

    def run(self):
        while not self.ending.is_set():
            for key, _ in self.selector.select(0.02):
                self._take() if key.fileobj is self.listening else self._pass(key.fileobj)
            if self.asked.is_set():
                for each in list(self.other):
                    self._end(each)
                self.asked.clear()

    def _take(self):
        pair = self.listening.accept()[0], socket.socket(socket.AF_UNIX)
        pair[1].connect(self.to)
        for each, other in (pair, pair[::-1]):
            self.other[each] = other
            self.selector.register(each, selectors.EVENT_READ)

    def _pass(self, each):
        if each not in self.other:
            return
        try:
            data = each.recv(65536)
            if data:
                return self.other[each].sendall(data)
        except OSError:
            pass  # an end of it has gone
        self._end(each)

    def _end(self, each):
        other = self.other.pop(each, None)
        if other is None:
            return
        del self.other[other]
        for one in (each, other):
            self.selector.unregister(one)
            one.close()
        self.ended += 1

    def end_connections(self):
        had = self.ended
        self.asked.set()
        wait_until("the connection's end", lambda: self.ended > had)

    def end(self):
        self.ending.set()
        self.join()
        self.listening.close()


class Behind:
    """A node as a leader is told of it."""

    def __init__(self, node, endpoint):
        self.prefix, self.host, self.endpoint = node.prefix, node.host, endpoint


def reset(workspace, program):
    near, far = nodes = [Node(workspace, name, extra=("--lease-ms", str(int(kResetLeaseS * 1000)), *kLog)) for name in ("near", "far")]
    for node in nodes:
        started(workspace, node, program, node.name)
    path = os.path.join(workspace.root, "between.sock")
    between = Between(path, far.endpoint[len("ipc://"):])
    between.start()
    workspace.on_leave(between.end)
    workspace.on_exit(lambda: os.unlink(path))
    trace = Trace(workspace, [near, Behind(far, "ipc://" + path)], workspace.path("trace"))
    between.end_connections()
    since = time.monotonic()
    wait_until("twice the lease", lambda: time.monotonic() > since + 2 * kResetLeaseS)
    is_heard(far)
    told = trace.end(expect=0)
    check([node["error"] for node in told["nodes"]] == ["", ""], "the nodes: %s", told["nodes"])
    check("its leader has not been heard of" not in far.agent.err(), "the agent says %s", far.agent.tail())
    check_index(workspace.path("trace"), "")
    print("another connection in the middle of the trace: whole, after %.1f s" % (time.monotonic() - since), flush=True)


if __name__ == "__main__":
    main(lambda workspace: {"link": link, "reset": reset}[sys.argv[1]](workspace, sys.argv[2]), "lease")
