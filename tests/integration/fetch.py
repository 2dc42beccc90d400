#!/usr/bin/python3
"""Dumps that arrive: from hosts whose disks are their own, over a link that is cut, part by part, within bounds of memory.

    fetch.py PROGRAM BIG_DUMP [MB]        PROGRAM: workloads/numbered.c; BIG_DUMP: makes a dump; MB: of which size, 64, with --long 2000

`ringside trace` fetches by itself what it can't see and moves what it can; then the large dump is fetched: given up by Ctrl-C, gone on with by the command that was
told then, with the link cut twice until the agent is silent.
"""
import contextlib
import glob
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys

from harness import check, kCommand, main, Node, skip, wait_until
from hosts import Hosts, what_is_missing
from rsd.index import Job

kDelaysMs = {(0, 1): 10, (1, 0): 10}  # a window of 2 MiB a round trip
kBytesPerRange = 6.77
kMb = 1_000_000
kGivenUp = 128 + signal.SIGINT
kMostAgentGrowth, kMostCommand = 32 * kMb, 64 * kMb
kLeastMbPerS = 5  # 31 on two cores, with the switch on one of them


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()


def resident(pid, field):
    """@return bytes; 0: it has ended"""
    try:
        with open("/proc/%d/status" % pid) as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


class Place:
    """Two hosts, an agent and a job on each; the disk beneath an agent's output root is its host's alone."""

    def __init__(self, workspace, program):
        self.workspace = workspace
        self.hosts = Hosts(workspace, 2, kDelaysMs).hosts
        self.nodes = []
        for host in self.hosts:
            own = self.disk(host)
            os.makedirs(own)
            subprocess.run([*host.prefix, "mount", "--bind", own, workspace.path("output")], check=True)
            self.nodes.append(Node(workspace, host.name, extra=("--key", host.environment["RINGSIDE_KEY"]), host=host))
            path = workspace.path("numbers." + host.name)
            child = workspace.start("numbers-" + host.name, self.nodes[-1].job_command(program, path, "2", "1000000"), self.nodes[-1].environment())
            wait_until("the numbers", lambda: os.path.exists(path) and os.path.getsize(path), children=[child])

    def disk(self, host):
        return self.workspace.path("disk-" + host.name)

    def start(self, *words):
        """The command, on the first host."""
        return self.workspace.start("ringside-%s-%d" % (words[0], len(self.workspace.children)), [*self.hosts[0].prefix, kCommand, *words],
                                    dict(os.environ, **self.hosts[0].environment))

    def trace(self, nodes, output, *options, expect=0):
        child = self.start("trace", "--hosts", ",".join(node.endpoint for node in nodes), "--duration", "200ms", "-o", output, "--json", *options)
        child.wait(expect=expect)
        return json.loads(child.out()) if expect == 0 else None, child.err()


def traces(place):
    near, far = place.nodes
    output = place.workspace.path("moved")
    told, said = place.trace([near, far], output)
    check(sorted(told["paths"]) == sorted(os.path.join(output, name) for name in ("node0.rsd", "node1.rsd", "job.rsj")), "it tells of %s", told["paths"])
    check(not Job(output).problems(), "the reader: %s", Job(output).problems())
    there, = glob.glob(os.path.join(place.disk(place.hosts[1]), "node1", "*", "node1.rsd"))
    check(digest(there) == digest(os.path.join(output, "node1.rsd")), "node1.rsd is another file than there")
    check(not glob.glob(os.path.join(place.disk(place.hosts[0]), "node0", "*")), "what can be seen has not been moved")
    check("fetched node1.rsd: " in said and "fetched node0.rsd" not in said and "fetched job.rsj" not in said, "it says %s", said)
    print(said.strip().splitlines()[-1], flush=True)

    # The far one leads, and has the index; names by a pattern.
    output = place.workspace.path("named")
    told, said = place.trace([far, near], output, "--name-pattern", "%j_%h_%r_%p")
    pids = {process["node"]: process["pid"] for process in told["processes"]}
    names = {"job_node%d_none_%d.rsd" % (n, pids["node%d" % n]) for n in range(2)} | {"job.rsj"}
    check(set(os.listdir(output)) == names and "fetched job.rsj" in said, "it makes %s and says %s", os.listdir(output), said)
    _, said = place.trace([far, near], output, expect=2)
    check(output in said and "--force" in said, "over another trace it says %s", said)
    before = digest(os.path.join(output, "job.rsj"))
    _, said = place.trace([far, near], output, "--name-pattern", "%j_%h_%r_%p", "--force", "--fetch")
    check(set(os.listdir(output)) == names and digest(os.path.join(output, "job.rsj")) != before, "with --force there are %s", os.listdir(output))
    check(said.count("fetched ") == 3, "with --fetch it says %s", said)
    check(glob.glob(os.path.join(place.disk(place.hosts[0]), "node0", "*", "node0.rsd")), "what was fetched has gone from the agent's own")


class Watched:
    """A fetch, how far it is and the most that it had in memory."""

    def __init__(self, place, partial, size, words):
        self.child, self.partial, self.most = place.start(*words), partial, 0
        self.deadline_s = 170 + size / kMb / kLeastMbPerS

    def has(self):
        self.most = max(self.most, resident(self.child.pid, "VmHWM"))
        with contextlib.suppress(FileNotFoundError):  # not yet, or by its last name already
            return os.path.getsize(self.partial)
        return 0

    def reach(self, size):
        wait_until("%d bytes" % size, lambda: self.has() >= size, deadline_s=self.deadline_s, children=[self.child])

    def end(self, expect=0):
        def ended():
            self.has()
            return self.child.process.poll() is not None
        wait_until("its end", ended, deadline_s=self.deadline_s)
        self.child.wait(expect=expect)
        return self.child.err()


def cut(place, fetch, times):
    """The link to the far host is down until its silence is noticed, and nothing comes meanwhile."""
    link = ["ip", "-n", place.hosts[1].namespace, "link", "set", "eth0"]
    subprocess.run([*link, "down"], check=True)
    wait_until("the silence", lambda: fetch.child.err().count("silent") >= times, children=[fetch.child])
    had = fetch.has()
    subprocess.run([*link, "up"], check=True)
    return had


def large(place, big_dump, megabytes):
    far, output, size = place.nodes[1], place.workspace.path("large"), megabytes * kMb
    there = os.path.join(place.disk(place.hosts[1]), "node1", "large.rsd")
    os.makedirs(os.path.dirname(there), mode=0o700, exist_ok=True)
    subprocess.run([big_dump, str(int(size / kBytesPerRange)), there], check=True)
    size = os.path.getsize(there)
    partial = os.path.join(output, "large.rsd.partial")
    before = resident(far.agent.pid, "VmRSS")

    first = Watched(place, partial, size, ("fetch", "--hosts", far.endpoint, place.workspace.path("output", "node1", "large.rsd"), "-o", output))
    first.reach(size // 5)
    first.child.send(signal.SIGINT)
    said = first.end(expect=kGivenUp)
    words = shlex.split(said.rpartition("to go on: ringside ")[2])
    check(words and os.path.exists(partial) and os.path.getsize(partial) < size, "given up it says %s", said)

    second = Watched(place, partial, size, words)
    second.reach(2 * size // 5)
    cuts = [cut(place, second, 1)]
    second.reach(3 * size // 5)
    cuts.append(cut(place, second, 2))
    said = second.end()
    whole = os.path.join(output, "large.rsd")
    check(cuts[0] < cuts[1] < size, "cut at %s of %d bytes", cuts, size)
    check(os.listdir(output) == ["large.rsd"] and second.child.out() == whole + "\n" and digest(whole) == digest(there), "there is %s", os.listdir(output))
    check("connected again" in said and "of it were here" in said, "it says %s", said)
    growth = resident(far.agent.pid, "VmHWM") - before
    print([line for line in said.splitlines() if "fetched " in line][0], flush=True)
    print("cut at %s of %.1f MB; in memory: the agent's grew by %.1f MB at most, the command's was %.1f MB at most"
          % (" and ".join("%.1f" % (at / kMb) for at in cuts), size / kMb, growth / kMb, max(first.most, second.most) / kMb), flush=True)
    check(growth < kMostAgentGrowth and max(first.most, second.most) < kMostCommand, "that is too much memory")


def test(workspace, program, big_dump, megabytes="64"):
    missing = what_is_missing()
    if missing:
        skip(missing)
    free, needed = shutil.disk_usage(workspace.disk).free, 5 * int(megabytes) * kMb // 2
    if free < needed:
        skip("%d MB are free at %s, %d are needed" % (free // kMb, workspace.disk, needed // kMb))
    place = Place(workspace, program)
    traces(place)
    large(place, big_dump, int(megabytes))


if __name__ == "__main__":
    main(lambda workspace: test(workspace, *sys.argv[1:]), "fetch")
