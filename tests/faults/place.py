#!/usr/bin/python3
"""Where segments lie: squatted names, links, a container with a /dev/shm and pids of its own, and a directory that is emptied under everybody.

    place.py CASE
"""
import json
import os
import shutil
import signal
import subprocess

from fault import (check, kAgent, kCommand, kFates, kKilled, kShim, kVerdicts, kWriter, Node, ranges_by_thread, read, run, skip, Trace, wait_until, written)

kNobody = 65534
kRefused = 5
kRecords = 500


def touch(path):
    with open(path, "w"):
        pass


def flood(workspace, name, node, prefix=(), environment=None):
    """A job of one thread that makes kRecords ranges when it is told to. @return the child, and what tells it"""
    go, leave = workspace.path(name + "-go"), workspace.path(name + "-leave")
    words = node.job_command(kWriter, "flood", "1", str(kRecords), "60", go, leave)
    child = workspace.start(name, [*prefix, *words], environment or node.environment())
    return child, go, leave


def everything(path):
    """Names, modes, owners and contents beneath it."""
    found = {}
    for folder, folders, files in os.walk(path):
        for name in folders + files:
            at = os.path.join(folder, name)
            status = os.lstat(at)
            content = open(at, "rb").read() if os.path.isfile(at) and not os.path.islink(at) else None
            found[at] = (status.st_mode, status.st_uid, content)
    return found


def squatted(workspace):
    """Another user's directory, and links in every place: the job runs as without us, the agent says no, and nobody else's file is touched."""
    if os.geteuid() != 0:
        skip("only root can be two users here")
    victim = os.path.join(workspace.root, "victim")
    os.makedirs(victim, mode=0o700)
    with open(os.path.join(victim, "precious"), "wb") as file:
        file.write(bytes(8192))
    tries = []
    for name, mode in (("private", 0o700), ("shared", 0o1777)):
        root = os.path.join(workspace.root, name)
        os.makedirs(root)
        os.chmod(root, mode)
        os.chown(root, kNobody, kNobody)
        tries.append((root, "another user's root"))
    linked = os.path.join(workspace.root, "linked")
    os.symlink(victim, linked)
    tries.append((linked, "a link as the root"))
    for what in ("job", "job/control", "job/lock"):
        root = os.path.join(workspace.root, what.replace("/", "-"))
        os.makedirs(os.path.join(root, os.path.dirname(what)), mode=0o700)
        os.chmod(root, 0o700)
        os.symlink(victim if what == "job" else os.path.join(victim, "precious"), os.path.join(root, what))
        tries.append((root, "a link as " + what))
    before = everything(victim)
    for root, what in tries:
        listed = everything(root)
        leave = workspace.path("there")
        touch(leave)
        environment = dict(os.environ, RINGSIDE_DIR=root, RINGSIDE_JOB="job")
        done = subprocess.run(["env", "LD_PRELOAD=" + kShim, kWriter, "flood", "1", "10", "5", leave, leave], env=environment, capture_output=True, text=True)
        check(done.returncode == 0 and done.stderr == "" and done.stdout.endswith("done\n"), "%s: the job ends with %d: %s%s", what, done.returncode, done.stdout, done.stderr)
        if what != "a link as job/lock":  # the shim has no use for that
            check(everything(root) == listed, "%s: the shim has written there: %s", what, sorted(set(everything(root)) ^ set(listed)))
        agent = subprocess.run([kAgent, "--dir", root, "--job", "job", "--endpoint", "ipc://" + workspace.path("sock"), "--output", workspace.path("output")],
                               capture_output=True, text=True, timeout=30)
        check(agent.returncode == kRefused and root in agent.stderr, "%s: the agent ends with %d: %s", what, agent.returncode, agent.stderr)
        check(everything(victim) == before, "%s: the victim's files have changed", what)
        print("%s: %s" % (what, agent.stderr.strip()), flush=True)
    for root in [victim, *(root for root, _ in tries)]:
        os.unlink(root) if os.path.islink(root) else shutil.rmtree(root)


def container(workspace):
    """A pid namespace and a /dev/shm of its own, the node's directory bind-mounted: it is captured, and known by the host's pid; killed, it is told so."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        skip("a container needs root and util-linux here")
    node = Node(workspace, "node")
    inside = "mount -t tmpfs tmpfs /mnt && mkdir /mnt/ours && mount --bind %s /mnt/ours && mount --move /mnt /dev/shm && exec \"$@\"" % node.root
    prefix = ["unshare", "--pid", "--fork", "--mount-proc", "--mount", "--kill-child", "sh", "-ec", inside, "sh"]
    probe = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip("no namespaces here: " + probe.stderr.strip())
    job, go, leave = flood(workspace, "job", node, prefix, dict(node.environment(), RINGSIDE_DIR="/dev/shm/ours"))
    wait_until("its segment", node.segments, children=[job])
    (shown,) = wait_until("the process", lambda: [p for p in workspace.json("ps", "--hosts", node.endpoint) if p["alive"]])
    seen = int(subprocess.run(["ps", "-o", "pid=", "-C", os.path.basename(kWriter), "--ppid", str(job.pid)], capture_output=True, text=True).stdout.split()[0])
    check((shown["pid"], shown["host_pid"]) == (1, seen), "ps says pid %d, here %d; here it is %d", shown["pid"], shown["host_pid"], seen)
    trace = Trace(workspace, [node], workspace.path("trace"))
    touch(go)
    wait_until("its work", lambda: "done" in job.out(), children=[job])
    os.kill(seen, signal.SIGKILL)
    job.wait(expect=None)
    wait_until("its segment to go", lambda: not node.segments())
    told = trace.end(expect=1)
    read_job = read(trace.output)
    (process,), (end,) = read_job.dumps[0].processes.values(), read_job.dumps[0].footer.processes
    check((process.pid, process.host_pid) == (1, seen), "in the dump pid %d, host pid %d", process.pid, process.host_pid)
    check(kFates[end.fate] == "Killed" and "signal 9" in told["processes"][0]["reason"], "fate %s, told %s", kFates[end.fate], told["processes"])
    (ranges,) = ranges_by_thread(read_job, "flood").values()
    check(len(ranges) == kRecords, "%d ranges of %d", len(ranges), kRecords)
    print("pid 1 of its container, %d here: %d ranges, %s" % (seen, len(ranges), told["processes"][0]["reason"]), flush=True)
    node.stop()


def emptied(workspace):
    """The whole root is removed under a job and its agent: the job runs, status says so, what comes later is found in a new directory, and a capture
    has both."""
    node = Node(workspace, "node")
    before = flood(workspace, "before", node)
    wait_until("its segment", lambda: status(workspace, node)["processes"] == 1, children=[before[0]])
    shutil.rmtree(node.root)
    notice = wait_until("status to say so", lambda: status(workspace, node)["notice"], children=[before[0], node.agent])
    check("removed" in notice and node.root in notice, "it says: %s", notice)
    check(notice in workspace.ringside("status", "--hosts", node.endpoint).out(), "the text of status does not say it")
    after = flood(workspace, "after", node)
    wait_until("both", lambda: status(workspace, node)["processes"] == 2, children=[before[0], after[0], node.agent])
    check(len(node.segments()) == 1, "segments in the new directory: %s", node.segments())
    trace = Trace(workspace, [node], workspace.path("trace"))
    for _, go, _ in (before, after):
        touch(go)
    for child, _, _ in (before, after):
        wait_until("its work", lambda child=child: "done" in child.out(), children=[child])
    trace.end()
    for child, _, leave in (before, after):
        touch(leave)
        child.wait()
        check(not child.err(), "the job says %s", child.err())
    ranges = ranges_by_thread(read(trace.output), "flood")
    expected = {tid: kRecords for child, _, _ in (before, after) for tid in written(child)}
    check({tid: len(its) for tid, its in ranges.items()} == expected, "ranges: %s, expected %s", {t: len(r) for t, r in ranges.items()}, expected)
    wait_until("the segments to go", lambda: status(workspace, node)["processes"] == 0)
    print("the root was removed: %s; both jobs are whole: %s" % (notice, expected), flush=True)
    node.stop()


def emptied_default_socket(workspace):
    """The socket of an agent without --endpoint lies in that directory: it comes again too."""
    root = os.path.join(workspace.root, "root")
    agent = workspace.start("agent", [kAgent, "--dir", root, "--job", "job", "--output", workspace.path("output")])
    socket = os.path.join(root, "job", "agent.sock")
    wait_until("its socket", lambda: os.path.exists(socket), children=[agent])
    for _ in range(2):
        shutil.rmtree(root)
        wait_until("its socket to be there again", lambda: os.path.exists(socket), children=[agent])
        check(os.stat(socket).st_mode & 0o777 == 0o600, "the socket's mode is %o", os.stat(socket).st_mode)
        (answer,) = wait_until("an answer", lambda: answers(workspace, socket), children=[agent])
        check(answer["pid"] == agent.pid, "another agent answers: %s", answer)
    agent.send(signal.SIGTERM)
    agent.wait(20)


def answers(workspace, socket):
    done = subprocess.run([kCommand, "status", "--hosts", "ipc://" + socket, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def status(workspace, node):
    return workspace.json("status", "--hosts", node.endpoint)[0]


run({"squatted": squatted, "container": container, "emptied": emptied, "emptied_default_socket": emptied_default_socket})
