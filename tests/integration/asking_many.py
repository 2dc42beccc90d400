#!/usr/bin/python3
"""Some hundred agents asked at once, a hundred of them stopped, by a command whose limit of descriptors is the usual one: all that answer are told of, in order, in the
time that one silent agent takes; and what `run` and `wrap` start keeps the user's own limit.

    asking_many.py AGENTS        AGENTS: ../bench/agents, whose light agents answer and have nothing
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from harness import check, kCommand, main, OffInTime

kAnswering, kStopped = 600, 100
kUsualLimit, kOwnLimit = "1024:", "512:"  # soft; the hard one stays
kHardLimit = "2048:2048"  # three descriptors for each that answers
kSilentS = 5  # of one agent; the command's patience
kMostS = 3 * kSilentS  # of all of them; one after the other it is 500


class Lights:
    """@param first  the number of the first endpoint"""

    def __init__(self, workspace, program, first, count):
        output = workspace.path("output")
        self.process = subprocess.Popen([program, "light", workspace.root, output, "ipc", str(first), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        workspace.on_leave(self.end)
        self.process.stdout.readline()
        self.endpoints = ["ipc://%s/%d.sock" % (workspace.root, n) for n in range(first, first + count)]

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        for endpoint in self.endpoints:
            os.unlink(endpoint[len("ipc://"):])


def limited(limit, *words):
    """A command whose limit of descriptors is that, as prlimit has it."""
    return ["prlimit", "--nofile=" + limit, *words]


def asked(workspace, endpoints, verb, *options, expect=0, limit=kUsualLimit):
    began = time.monotonic()
    child = workspace.run("%s-%d" % (verb, len(workspace.children)), limited(limit, kCommand, verb, "--hosts", ",".join(endpoints), *options), expect=expect)
    took = time.monotonic() - began
    print("%s: %d agents, %.1f s" % (verb, len(endpoints), took), flush=True)
    check(took < kMostS, "%s of %d agents took %.1f s", verb, len(endpoints), took, failure=OffInTime)
    return child


def test(workspace, program):
    live = Lights(workspace, program, 0, kAnswering)
    stopped = Lights(workspace, program, kAnswering, kStopped)
    os.kill(stopped.process.pid, signal.SIGSTOP)
    every = [endpoint for pair in zip(live.endpoints, stopped.endpoints) for endpoint in pair] + live.endpoints[kStopped:]

    quiet = workspace.start("quiet", [kCommand, "status", "--quiet", "--hosts", stopped.endpoints[0]])
    child = asked(workspace, every, "status", "--json", expect=4)
    check([agent["endpoint"] for agent in json.loads(child.out())] == live.endpoints, "status tells of %d agents", len(json.loads(child.out())))
    named = re.findall(r"^ringside: ask (ipc://\S+): no answer", child.err(), re.M)
    check(named == stopped.endpoints, "silent by its word: %d", len(named))
    check("asking %d agents" % len(every) in child.err(), "it waits without a word: %s", child.err()[:300])
    quiet.wait(expect=4)
    check("asking" not in quiet.err(), "with --quiet it says %s", quiet.err())

    child = asked(workspace, live.endpoints, "ps", "--json")
    check(len(json.loads(child.out())) == kAnswering, "ps tells of %d processes", len(json.loads(child.out())))
    child = asked(workspace, every, "top", "--once", "--json", "--interval", "100ms")
    nodes = json.loads(child.out())["nodes"]
    check([node["endpoint"] for node in nodes] == every, "top tells of %d agents", len(nodes))
    check(sum(not node.get("error") for node in nodes) == kAnswering, "top: %s", nodes[:2])
    child = asked(workspace, live.endpoints, "top", "--once", "--json", "--interval", "100ms", limit=kHardLimit)
    silent = [node["error"] for node in json.loads(child.out())["nodes"] if node.get("error")]
    check(not silent, "with few descriptors %d are silent: %s", len(silent), silent[:1])
    # They lead nothing: all that is asked here is whether somebody else's capture runs.
    child = asked(workspace, live.endpoints, "trace", "--wait", "-o", workspace.path("trace"), expect=2)
    check("light" in child.err(), "trace says %s", child.err())

    for verb in ("run", "wrap"):
        environment = dict(os.environ, RINGSIDE_DIR=os.path.join(workspace.root, verb))
        child = workspace.run(verb, limited(kOwnLimit, kCommand, verb, "sh", "-c", "ulimit -Sn"), environment)
        check(child.out() == kOwnLimit.replace(":", "\n"), "%s: its command may have %s descriptors", verb, child.out())


if __name__ == "__main__":
    main(lambda workspace: test(workspace, sys.argv[1]), "hundreds")
