#!/usr/bin/python3
"""Segments and dumps of released versions are read for ever; what is from a later one is refused, with what to install.

    golden.py CASE               goldens are in golden/, by version
    golden.py make VERSION       makes those of this build; the diff is read
"""
import json
import os
import shutil
import signal
import subprocess

from fault import check, kAgent, kCommand, kFaults, kShim, kWriter, Node, ranges_by_thread, read, run, wait_until
import segments

kHere = os.path.dirname(os.path.abspath(__file__))
kGolden = os.path.join(kHere, "golden")
kRanges = 20
kFirstStep, kSteps = 400, 20  # from the program's stop on, until it is inside the range after them
kLater = 99
kRefused, kInput = 5, 6


def goldens(suffix):
    found = sorted(os.path.join(kGolden, f) for f in os.listdir(kGolden) if f.endswith(suffix))
    check(found, "no golden *%s in %s", suffix, kGolden)
    return found


def captured(workspace, name, pages):
    """What a new agent makes of a segment that a dead process has left."""
    root = os.path.join(workspace.root, name)
    os.makedirs(os.path.join(root, "job"), mode=0o700)
    os.chmod(root, 0o700)
    segments.put(pages, os.path.join(root, "job"))
    output = workspace.path("output", name)
    reading, writing = os.pipe()
    agent = workspace.start("agent-" + name, [kAgent, "--dir", root, "--job", "job", "--node", "node", "--endpoint", "ipc://" + workspace.path(name + ".sock"),
                                              "--output", output, "--capture-from-start", "--name", "all", "--ready-fd", str(writing)], pass_fds=(writing,))
    os.close(writing)
    with os.fdopen(reading) as ready:
        check(ready.readline() == "ready\n", "the agent is not ready: %s", agent.tail())
    told = workspace.json("ps", "--hosts", "ipc://" + workspace.path(name + ".sock"))
    agent.send(signal.SIGTERM)
    agent.wait(20)
    return read(os.path.join(output, "all")), told, os.path.join(root, "job")


def segment(workspace):
    """Each version's segment, left by a process that was killed inside a range: all of its ranges, and the open one."""
    for path in goldens(".segment.gz"):
        job, _, folder = captured(workspace, os.path.basename(path).split(".segment")[0], segments.load(path))
        ranges = job.events[0].ranges
        whole = [(r.name, r.payload) for r in ranges if r.end is not None]
        check(whole == [("step", n) for n in range(kRanges)], "%s: %s", path, whole)
        check([r.name for r in ranges if r.end is None] == ["last"], "%s: open: %s", path, [r.name for r in ranges if r.end is None])
        (process,) = job.dumps[0].processes.values()
        check(process.command_line[1:] == ["step", str(kRanges)], "%s: its command line is %s", path, process.command_line)
        check(not [f for f in os.listdir(folder) if f.count(".") == 2], "%s stays in the job directory", path)
        print("%s: %d ranges and the open one" % (os.path.basename(path), len(whole)), flush=True)


def dump(workspace):
    """Each version's dump: the table, the export and the second reader say what they said then."""
    for path in goldens(".rsd"):
        with open(path[:-len(".rsd")] + ".json") as file:
            expected = json.load(file)
        now = facts(workspace, path)
        # A later version may say more.
        now["totals"] = {name: value for name, value in now["totals"].items() if name in expected["totals"]}
        check(now == expected, "%s: %s, then it was %s", path, now, expected)
        print("%s: %s" % (os.path.basename(path), expected["counts"]), flush=True)


def facts(workspace, path):
    job = read([path])
    table = workspace.json("table", path)
    trace = workspace.path("trace.json")
    workspace.ringside("export", path, "-o", trace)
    with open(trace) as file:
        slices = sum(e["ph"] == "X" for e in json.load(file)["traceEvents"])
    return {"counts": job.counts(), "rows":
            sorted([r["name"], r["count"]] for r in table["rows"]), "totals": table["totals"], "slices": slices}


def later(workspace):
    """A later version's segment and control page: the agent refuses them and says what to install, the shim leaves such a page alone."""
    pages = segments.load(goldens(".segment.gz")[-1])
    segments.change(pages, segments.kLayoutAt, kLater, "<I")
    job, told, folder = captured(workspace, "later", pages)
    (refused,) = told
    check(refused["verdict"] == "refused" and "layout %d" % kLater in refused["reason"] and "run the agent that belongs" in refused["reason"], "it says %s", refused)
    check(not job.dumps[0].processes, "something of it is in the dump")
    check([f for f in os.listdir(folder) if f.count(".") == 2], "it was removed: the agent that can read it finds it no more")
    print("segment: %s" % refused["reason"], flush=True)
    # Of the control page: its layout stands behind the magic, too.
    root = os.path.join(workspace.root, "page")
    environment = dict(os.environ, RINGSIDE_DIR=root, RINGSIDE_JOB="job", LD_PRELOAD=kShim)
    subprocess.run(["/bin/true"], env=environment, check=True)
    control = os.path.join(root, "job", "control")
    with open(control, "r+b") as page:
        os.pwrite(page.fileno(), kLater.to_bytes(4, "little"), segments.kLayoutAt)
    there = workspace.path("there")
    open(there, "w").close()
    done = subprocess.run([kWriter, "flood", "1", "10", "5", there, there], env=environment, capture_output=True, text=True)
    check(done.returncode == 0 and not done.stderr and sorted(os.listdir(os.path.join(root, "job"))) == ["control"], "the shim: %s, %s", done, os.listdir(os.path.join(root, "job")))
    agent = subprocess.run([kAgent, "--dir", root, "--job", "job", "--output", workspace.path("output")], capture_output=True, text=True, timeout=30)
    check(agent.returncode == kRefused and "layout %d" % kLater in agent.stderr and "run the agent that belongs" in agent.stderr, "the agent ends with %d: %s",
          agent.returncode, agent.stderr)
    print("control page: %s" % agent.stderr.strip(), flush=True)
    os.unlink(os.path.join(root, "job", "lock"))
    shutil.rmtree(os.path.join(workspace.root, "later"))


def make(workspace, version):
    """A segment: a process that is killed in a range while its agent is stopped. A dump: of the agent that then goes on."""
    os.makedirs(kGolden, exist_ok=True)
    node = Node(workspace, "node", capture_from_start=True, extra=["--name", "all"])
    writer = shutil.copy(kWriter, workspace.path("writer"))  # nothing of this machine's folders goes into a golden
    steps, told = kFirstStep, ""
    while not told.endswith("committed %d records %d open 1\n" % (kRanges, kRanges)):
        node.agent.send(signal.SIGCONT)
        wait_until("the last try's segment to go", lambda: not node.segments())
        node.stop()
        node = Node(workspace, "node-%d" % steps, capture_from_start=True, extra=["--name", "all"])
        environment = dict(node.environment(), STEPPER_PRELOAD=kShim)
        node.agent.send(signal.SIGSTOP)
        told = subprocess.run([os.path.join(kFaults, "fault_stepper"), "kill", str(steps), writer, "step", str(kRanges)], env=environment, check=True,
                              capture_output=True, text=True).stdout
        steps += kSteps
    (name,) = node.segments()
    pages = segments.pages_of(os.path.join(node.root, node.job, name))
    segments.to_early_ticks(pages)
    segments.save(pages, os.path.join(kGolden, version + ".segment.gz"))
    node.agent.send(signal.SIGCONT)
    wait_until("the segment to go", lambda: not node.segments())
    node.stop()
    path = os.path.join(kGolden, version + ".rsd")
    shutil.copyfile(workspace.path("output", node.name, "all", node.name + ".rsd"), path)
    with open(path[:-len(".rsd")] + ".json", "w") as out:
        json.dump(facts(workspace, path), out, indent=1, sort_keys=True)
        out.write("\n")


run({"segment": segment, "dump": dump, "later": later, "make": make})
