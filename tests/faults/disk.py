#!/usr/bin/python3
"""The file system for dumps is full: what was written before is kept under a name that says so, the answer says why; once there is room again the capture goes on,
what could not be written is counted as lost, and the next capture is whole.

    disk.py full
    disk.py freed       by a file of somebody else's, which goes in the middle of the capture
    disk.py command     that `ringside run` traces
"""
import collections
import contextlib
import json
import os
import shutil
import subprocess

from fault import check, kAgent, kCommand, kShim, kWriter, run, skip, wait_until

from rsd.dump import Dump

kSize = "size=128k"


def capture(workspace, inside, endpoint, name, jobs, written):
    """Captures the jobs' work, one after the other, each when what came before is `written`.
    @return exit status, what the command tells, how it says it"""
    output = workspace.path("mounted", name)
    words = [*inside, kCommand, "trace", "--hosts", endpoint, "--duration", "60s", "-o", output, "--json"]
    trace = workspace.start("trace-" + name, words)
    wait_until("the trace to capture", lambda: "capturing" in trace.err(), children=[trace])
    for job, go in jobs:
        with open(go, "w"):
            pass
        wait_until("the job's work", lambda: "done" in job.out(), children=[job])
        wait_until("it to be written", written, children=[job])
    trace.send(2)
    status = trace.wait(expect=None)
    return status, json.loads(trace.out()), trace.err()


class Place:
    """An agent whose dumps go to a file system of their own, in its own mount namespace."""

    def __init__(self, workspace, limits=kSize):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            skip("a file system of its own needs root and util-linux here")
        self.workspace, mounted = workspace, workspace.path("mounted")
        os.makedirs(mounted)
        script = "mount -t tmpfs -o %s,mode=0700 tmpfs %s && exec \"$@\"" % (limits, mounted)
        probe = subprocess.run(["unshare", "--mount", "sh", "-ec", script, "sh", "true"], capture_output=True, text=True)
        if probe.returncode != 0:
            skip("no mounts here: " + probe.stderr.strip())
        self.root, self.endpoint = os.path.join(workspace.root, "node"), "ipc://" + os.path.join(workspace.root, "node.sock")
        self.agent = workspace.start("agent", ["unshare", "--mount", "sh", "-ec", script, "sh", kAgent, "--dir", self.root, "--job", "job", "--node", "node",
                                               "--endpoint", self.endpoint, "--output", mounted + "/agent"])
        self.inside = ["nsenter", "--target", str(self.agent.pid), "--mount"]
        wait_until("the agent", lambda: os.path.exists(self.endpoint[len("ipc://"):]), children=[self.agent])
        self.seen = "/proc/%d/root%s" % (self.agent.pid, mounted)

    def left(self):
        """Whatever of dumps lies there, moved or not."""
        return [os.path.join(folder, f) for folder, _, files in os.walk(self.seen) for f in files if ".rsd" in f]

    def bytes(self):
        return sum(os.path.getsize(path) for path in self.left())

    def is_written(self):
        return any(os.path.getsize(path) > 4096 for path in self.left())

    def job(self, name, records):
        go, leave = self.workspace.path(name + "-go"), self.workspace.path(name + "-leave")
        with open(leave, "w"):
            pass
        words = ["env", "LD_PRELOAD=" + kShim, kWriter, "flood", "1", str(records), "60", go, leave]
        return self.workspace.start(name, words, dict(os.environ, RINGSIDE_DIR=self.root, RINGSIDE_JOB="job")), go

    def capture(self, name, jobs):
        return capture(self.workspace, self.inside, self.endpoint, name, jobs, self.is_written)

    def end(self):
        self.agent.send(15)
        self.agent.wait(20)


def full(workspace):
    place = Place(workspace)
    status, told, said = place.capture("filled", [place.job("first", 1000), place.job("large", 400000)])
    files = place.left()
    check(status == 1, "a capture whose dump could not be written ends with %d", status)
    check([os.path.basename(path) for path in files] == ["node.rsd.partial"], "what is left: %s", files)
    words = json.dumps(told) + said
    check("No space left" in words and ".partial" in words and "free space" in words, "it says: %s", words)
    partial = Dump(files[0])
    check(partial.problem is None, "the partial dump: %s", partial.problem)
    kept = sum(len(lane.records) for lane in partial.lanes.values())
    check(kept >= 1000, "%d records are kept", kept)
    print("%d bytes, %d records in %s; it says: %s" % (os.path.getsize(files[0]), kept, "node.rsd.partial",
                                                      [node["error"] for node in told["nodes"]]), flush=True)
    os.unlink(files[0])
    status, told, _ = place.capture("freed", [place.job("small", 1000)])
    (path,) = place.left()
    whole = Dump(path)
    check(status == 0 and whole.problem is None and path.endswith("/node.rsd"), "after room was made: %d, %s, %s", status, whole.problem, told)
    check(sum(len(lane.records) for lane in whole.lanes.values()) >= 1000, "records: %s", {k: len(l.records) for k, l in whole.lanes.items()})
    print("with room again the next capture is whole: %d bytes" % os.path.getsize(path), flush=True)
    place.end()


def fill(path):
    """Somebody else's file takes all that is left."""
    with open(path, "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(1024))


def freed(workspace):
    place = Place(workspace)
    filler, counts = os.path.join(place.seen, "filler"), {"before": 1000, "meanwhile": 20000, "after": 1000}
    jobs = {name: place.job(name, count) for name, count in counts.items()}

    def work(name):
        job, go = jobs[name]
        with open(go, "w"):
            pass
        wait_until("the job's work", lambda: "done" in job.out(), children=[job])

    output = workspace.path("mounted", "trace")
    trace = workspace.start("trace", [*place.inside, kCommand, "trace", "--hosts", place.endpoint, "--duration", "60s", "-o", output, "--json"])
    wait_until("the trace to capture", lambda: "capturing" in trace.err(), children=[trace])
    work("before")
    wait_until("it to be written", place.is_written, children=[place.agent])
    fill(filler)
    work("meanwhile")
    wait_until("a loss", lambda: workspace.json("status", "--hosts", place.endpoint)[0]["lost"] >= counts["meanwhile"], children=[place.agent])
    had = place.bytes()
    os.unlink(filler)
    work("after")
    wait_until("more in the dump", lambda: place.bytes() > had + 1024, children=[place.agent])
    trace.send(2)
    status, told = trace.wait(expect=None), json.loads(trace.out())
    (path,) = place.left()
    (node,) = told["nodes"]
    check(status == 1 and path.endswith("/node.rsd.partial"), "it ends with %d and leaves %s", status, path)
    check("No space left" in node["error"] and "counted as lost" in node["error"], "it says: %s", node["error"])
    dump = Dump(path)
    check(dump.problem is None and dump.footer is not None, "the dump: %s", dump.problem)
    whose = {job.pid: name for name, (job, _) in jobs.items()}
    kept, lost = collections.Counter(), collections.Counter()
    for lane in dump.footer.lanes:
        name = whose[dump.processes[lane.process].pid]
        kept[name] += lane.kept
        lost[name] += lane.lost
    check({name: kept[name] + lost[name] for name in counts} == counts, "kept %s and lost %s of %s", dict(kept), dict(lost), counts)
    check(kept["before"] == counts["before"] and kept["after"] == counts["after"] and node["lost"] == lost["meanwhile"], "kept %s, lost %s", dict(kept), dict(lost))
    found = collections.Counter()
    for (process, *_), lane in dump.lanes.items():
        found[whose[dump.processes[process].pid]] += len(lane.records)
    check(found == +kept, "the footer says %s, there are %s", dict(kept), dict(found))
    print("kept %s, lost %s; it says: %s" % (dict(kept), dict(lost), node["error"]), flush=True)
    place.end()


def command(workspace):
    """There is no room for a job index: the table is there all the same. Files: the root, the output, its workshop, the dump."""
    place = Place(workspace, "size=1m,nr_inodes=4")
    go, leave, table = (workspace.path(name) for name in ("go", "leave", "table"))
    for path in (go, leave):
        with open(path, "w"):
            pass
    words = [*place.inside, kCommand, "run", "-o", workspace.path("mounted", "run"), "--table", table, "--node", "node", "--", kWriter, "flood", "1", "1000", "60", go, leave]
    child = workspace.start("run", words, dict(os.environ, RINGSIDE_DIR=workspace.path("own")))
    child.wait(expect=0)
    said = child.err()
    check("No space left" in said and "1,000 records, 0 lost" in said and "the trace is in" in said, "it says:\n%s", said)
    check(os.listdir(os.path.join(place.seen, "run")) == ["node.rsd"], "what is left: %s", os.listdir(os.path.join(place.seen, "run")))
    with open(table) as file:
        text = file.read()
    check("lost 0" in text, "the table:\n%s", text)
    print("it says:\n%s" % said, flush=True)
    place.end()


run({"full": full, "freed": freed, "command": command})
