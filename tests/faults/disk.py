#!/usr/bin/python3
"""The file system for dumps is full: what was written before is kept under a name that says so, the answer says why, and once there is room again the next
capture is whole.

    disk.py full
"""
import json
import os
import shutil
import subprocess

from fault import check, kAgent, kCommand, kShim, kWriter, run, skip, wait_until

from rsd.dump import Dump

kSize = "128k"


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


def full(workspace):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        skip("a file system of its own needs root and util-linux here")
    mounted = workspace.path("mounted")
    os.makedirs(mounted)
    script = "mount -t tmpfs -o size=%s,mode=0700 tmpfs %s && exec \"$@\"" % (kSize, mounted)
    probe = subprocess.run(["unshare", "--mount", "sh", "-ec", script, "sh", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip("no mounts here: " + probe.stderr.strip())
    root, endpoint = os.path.join(workspace.root, "node"), "ipc://" + os.path.join(workspace.root, "node.sock")
    agent = workspace.start("agent", ["unshare", "--mount", "sh", "-ec", script, "sh", kAgent, "--dir", root, "--job", "job", "--node", "node", "--endpoint",
                                      endpoint, "--output", mounted + "/agent"])
    inside = ["nsenter", "--target", str(agent.pid), "--mount"]
    wait_until("the agent", lambda: os.path.exists(endpoint[len("ipc://"):]), children=[agent])
    seen = "/proc/%d/root%s" % (agent.pid, mounted)

    def left():
        """Whatever of dumps lies there, moved or not."""
        return [os.path.join(folder, f) for folder, _, files in os.walk(seen) for f in files if ".rsd" in f]

    def is_written():
        return any(os.path.getsize(path) > 4096 for path in left())

    def job(name, records):
        go, leave = workspace.path(name + "-go"), workspace.path(name + "-leave")
        with open(leave, "w"):
            pass
        words = ["env", "LD_PRELOAD=" + kShim, kWriter, "flood", "1", str(records), "60", go, leave]
        return workspace.start(name, words, dict(os.environ, RINGSIDE_DIR=root, RINGSIDE_JOB="job")), go

    status, told, said = capture(workspace, inside, endpoint, "filled", [job("first", 1000), job("large", 400000)], is_written)
    files = left()
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
    status, told, _ = capture(workspace, inside, endpoint, "freed", [job("small", 1000)], is_written)
    (path,) = left()
    whole = Dump(path)
    check(status == 0 and whole.problem is None and path.endswith("/node.rsd"), "after room was made: %d, %s, %s", status, whole.problem, told)
    check(sum(len(lane.records) for lane in whole.lanes.values()) >= 1000, "records: %s", {k: len(l.records) for k, l in whole.lanes.items()})
    print("with room again the next capture is whole: %d bytes" % os.path.getsize(path), flush=True)
    agent.send(15)
    agent.wait(20)


run({"full": full})
