#!/usr/bin/python3
"""Hundreds of whole agents in one trace: each answers, all are in the index, and what each takes stays within bounds. Counts, no times.

    many_agents.py AGENTS [COUNT]       AGENTS: bench/agents' program; COUNT: 300, with --long 1000

A leader has 16 nodes behind each relay at most, so of 300 agents some 18 pass on for the others.
"""
import glob
import json
import os
import resource
import subprocess
import sys

from harness import check, main
from rsd.index import Job

kInProcess = 100
kBehind = 16
# An agent's own, of those that are relays more: 15 descriptors and 4 threads a node were seen.
kMostFiles, kMostThreads = 20, 8
# Its share of its process, code included, and what a node adds to the leader: 592 and 21 were seen.
kMostKib, kMostLeaderKib = 1536, 64


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


class Served:
    """Agents, some in a process, until the test ends."""

    def __init__(self, workspace, agents, words, count):
        self.processes = []
        workspace.on_leave(self.end)
        for first in range(0, count, kInProcess):
            mine = min(kInProcess, count - first)
            process = subprocess.Popen([agents, "serve", *words, str(first), str(mine)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.processes.append((process, mine))
        self.each = [json.loads(process.stdout.readline() or "{}") for process, _ in self.processes]
        check(all(self.each), "some agents have not come")

    def threads(self, process):
        return len(os.listdir("/proc/%d/task" % process.pid))

    def files(self, process):
        return len(os.listdir("/proc/%d/fd" % process.pid))

    def end(self):
        for process, _ in self.processes:
            process.stdin.close()
            process.wait()
            process.stdout.close()


def test(workspace, agents, count="300"):
    count = int(count)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # as each agent does for itself
    output = workspace.path("output")
    words = [workspace.root, output, "ipc"]
    served = Served(workspace, agents, words, count)
    told = json.loads(workspace.run("leader", [agents, "whole", *words, str(count), str(kBehind)]).out())

    job = Job(os.path.dirname(told["index"]))
    check(not job.problems(), "the reader: %s", "; ".join(job.problems()[:5]))
    nodes = {node.name: node for node in job.index.nodes}
    check(len(job.index.nodes) == count + 1 and nodes.keys() == {"leader"} | {"n%d" % n for n in range(count)}, "the index has %d nodes", len(job.index.nodes))
    wrong = {name: node.error for name, node in nodes.items() if name != "leader" and (node.error or not node.dump)}
    check(not wrong, "%d nodes without a dump or with an error: %s", len(wrong), list(wrong.items())[:3])
    dumps = {os.path.basename(path) for path in glob.glob(os.path.join(output, "*", "n*.rsd"))}
    check(dumps == {"n%d.rsd" % n for n in range(count)}, "%d dumps", len(dumps))
    check(told["joined"] > count and told["lost"] == 0, "%s", told)
    # A relay and its nodes are a group of the list, the last of which is a part.
    groups = -(-count // (kBehind + 1))
    check(told["relays"] == groups and told["relayed"] == count - groups, "%d relays with %d nodes, expected %d groups of %d", told["relays"], told["relayed"], groups,
          kBehind + 1)

    a_node = []
    for process, mine in served.processes:
        a_node.append((served.files(process) / mine, served.threads(process) / mine, resident_kib(process.pid) / mine))
    files, threads, kib = map(max, zip(*a_node))
    print("%d agents, %d relays, %d calls joined; an agent: %.1f descriptors, %.1f threads, %.0f KiB at most; the leader: %.1f KiB a node"
          % (count, told["relays"], told["joined"], files, threads, kib, told["kib_a_node"]), flush=True)
    check(files <= kMostFiles and threads <= kMostThreads and kib <= kMostKib, "that is too much for an agent")
    check(told["kib_a_node"] <= kMostLeaderKib, "that is too much for a leader")

    # One that was not to have relays, and may open half as many files again as there are agents.
    told = json.loads(workspace.run("few-files", ["prlimit", "--nofile=%d" % (count * 3 // 2), agents, "whole", *words, str(count), "0"]).out())
    check(told["relayed"] > count // 2 and told["lost"] == 0, "with few descriptors: %s", told)


if __name__ == "__main__":
    main(lambda workspace: test(workspace, *sys.argv[1:]), "many_agents")
