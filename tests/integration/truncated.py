#!/usr/bin/python3
"""Segments of living processes are truncated while the agent drains them: the agent goes on, the others' records are whole, and what is
lost is said, in `ringside ps`, in the trace's verdicts and by its exit status."""
import os
import random

from harness import Node, Trace, check, kPython, main, wait_until

from rsd.dump import Dump
from rsd.events import Events

kVictims, kOthers = 12, 3
kSizes = (0, 1, 4096, 8192, 573440, 581632, 581632 + 4096)  # where the header, the names, the lane table, a lane, its cells begin
kNotAllGood = 1

# Counts as fast as it can; one that is to be a victim dies of it when its ring has no pages any more.
kCount = """
import os, ringside, sys, time
number, up, leave = 0, *sys.argv[1:]
while not os.path.exists(leave):
    for _ in range(20):
        ringside.counter("n", number)
        number += 1
    if number == 200:
        open(up, "w").close()
    time.sleep(0.0005)
"""


def segment_of(node, pid):
    (name,) = [s for s in node.segments() if s.split(".")[1] == str(pid)]
    return os.path.join(node.root, node.job, name)


def counting(workspace, node, name):
    up = workspace.path("up-" + name)
    child = workspace.start(name, node.job_command(kPython, "-c", kCount, up, workspace.path("leave")), node.environment())
    wait_until(name + " to count", lambda: os.path.exists(up), children=[child])
    return child


def test(workspace):
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed %d" % seed, flush=True)
    choose = random.Random(seed)
    node = Node(workspace, "node")
    others = [counting(workspace, node, "other-%d" % n) for n in range(kOthers)]
    victims = [counting(workspace, node, "victim-%d" % n) for n in range(kVictims)]
    trace = Trace(workspace, [node], workspace.path("traced"))
    sizes = {}
    for victim in victims:
        path = segment_of(node, victim.pid)
        sizes[victim.pid] = choose.choice(kSizes)
        os.truncate(path, sizes[victim.pid])
    for victim in victims:
        wait_until("%s to run into the hole" % victim.name, lambda child=victim: child.process.poll() is not None)
    check(node.agent.process.poll() is None, "the agent ended with %s:\n%s", node.agent.process.poll(), node.agent.tail())
    wait_until("the dead to be buried", lambda: len(node.segments()) == kOthers)
    told = trace.end(expect=kNotAllGood)
    verdicts = {p["pid"]: p for p in told["processes"]}
    for victim in victims:
        said = verdicts[victim.pid]
        check(said["verdict"] == "refused" and "truncated to %d of" % sizes[victim.pid] in said["reason"], "%s, cut to %d: %s", victim.name,
              sizes[victim.pid], said)
    for other in others:
        check(verdicts[other.pid]["verdict"] == "captured" and verdicts[other.pid]["lost"] == 0, "%s: %s", other.name, verdicts[other.pid])
    whole(workspace, {other.pid for other in others}, {victim.pid for victim in victims})
    with open(workspace.path("leave"), "w"):
        pass
    for other in others:
        other.wait()
    wait_until("their segments to go", lambda: not node.segments())
    node.stop()


def whole(workspace, others, victims):
    """Each other one's numbers follow each other; each victim's do as far as they go, and the dump counts violations for it."""
    (path,) = [os.path.join(workspace.path("traced"), f) for f in os.listdir(workspace.path("traced")) if f.endswith(".rsd")]
    dump = Dump(path)
    check(dump.problem is None and not dump.accounts(), "the dump: %s, %s", dump.problem, dump.accounts())
    numbers = {}
    for mark in Events(dump).marks:
        numbers.setdefault(dump.processes[mark[1]].pid, []).append(mark[8])
    for pid, found in numbers.items():
        # Cut off before its name was read: what kind of number a record has stands there.
        if pid in victims and set(found) == {None}:
            continue
        check(found == list(range(found[0], found[0] + len(found))), "process %d: a gap, or one twice, among %d numbers", pid, len(found))
    check(others <= set(numbers), "recorded were %s, of them %s had to be", set(numbers), others)
    counted = {dump.processes[end.process].pid: end.violations for end in dump.footer.processes}
    check(all(counted[pid] == 0 for pid in others), "violations of the others: %s", counted)
    check(victims <= set(counted), "in the footer are %s", counted)
    print("%d numbers of %d processes, violations %s" % (sum(map(len, numbers.values())), len(numbers), counted), flush=True)


main(test, "truncated")
