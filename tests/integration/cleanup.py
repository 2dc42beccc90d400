#!/usr/bin/python3
"""After a run no process, socket, segment or directory of ours remains: `ringside run`, a traced node, a killed agent, a killed run."""
import os
import signal

from harness import Node, Trace, check, kAgent, kCommand, kPython, main, wait_until

from rsd.index import Job


def entries(folder):
    return sorted(os.path.join(d, f) for d, folders, files in os.walk(folder) for f in files + folders)


def run_leaves_nothing(workspace):
    """Its own job directory goes with it, whatever the command does."""
    root = os.path.join(workspace.root, "run")
    os.makedirs(root, mode=0o700)
    environment = dict(os.environ, RINGSIDE_DIR=root)
    script = "import torch, os; torch.ones(2) + 1; os.fork() or os._exit(0); os.wait()"
    for number, (command, status) in enumerate((
            ([kPython, "-c", script], 0), (["/bin/true"], 0), (["/bin/sh", "-c", "exit 7"], 7),
            ([kPython, "-c", "import torch, os, signal; torch.ones(2); os.kill(os.getpid(), signal.SIGKILL)"], 137))):
        workspace.ringside("run", "-o", workspace.path("out-%d" % number), "--", *command, environment=environment, expect=status)
        check(not entries(root), "after `ringside run -- %s`: %s", command[0], entries(root))
        files = os.listdir(workspace.path("out-%d" % number))
        check(not [f for f in files if not f.endswith((".rsd", ".rsj"))], "in its output: %s", files)


kStopsItsAgent = """
import os, signal, torch
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        name, _, rest = open("/proc/%s/stat" % pid).read().partition("(")[2].rpartition(")")
    except OSError:
        continue
    if name == "ringside-agent" and int(rest.split()[1]) == os.getppid():
        os.kill(int(pid), signal.SIGSTOP)
        torch.ones(2) + 1
"""


def a_run_whose_agent_hangs_has_its_trace(workspace):
    """Nobody can make it answer: it is killed, and what it has not written is taken from the segments."""
    root = os.path.join(workspace.root, "hangs")
    os.makedirs(root, mode=0o700)
    output = workspace.path("out-hangs")
    child = workspace.ringside("run", "-o", output, "--node", "node", "--table", workspace.path("table-hangs"), "--", kPython, "-c", kStopsItsAgent,
                               environment=dict(os.environ, RINGSIDE_DIR=root))
    check("did not end within" in child.err() and "recovered" in child.err(), "it says:\n%s", child.err())
    check(sorted(os.listdir(output)) == ["job.rsj", "node.rsd"], "in its output are %s", os.listdir(output))
    check(not entries(root), "after a run whose agent hung: %s", entries(root))
    with open(workspace.path("table-hangs")) as file:
        table = file.read()
    check("aten::add" in table and "lost 0" in table, "the table:\n%s", table)


def an_interrupted_run_leaves_nothing(workspace):
    root = os.path.join(workspace.root, "interrupted")
    os.makedirs(root, mode=0o700)
    # Short sleeps: a signal that comes just before a sleep is noticed only after it.
    code = "import torch, time\ntry:\n  open(%r, 'w').close()\n  while True: time.sleep(0.1)\nexcept KeyboardInterrupt:\n  raise SystemExit(5)" % workspace.path("up")
    child = workspace.start("interrupted", [kCommand, "run", "-o", workspace.path("out-int"), "--", kPython, "-c", code],
                            dict(os.environ, RINGSIDE_DIR=root))
    wait_until("the command to be up", lambda: os.path.exists(workspace.path("up")), children=[child])
    child.send(signal.SIGINT)
    child.wait(expect=5)
    check(not entries(root), "after an interrupted run: %s", entries(root))


def a_node_keeps_only_the_job_directory(workspace):
    """Segments go with their processes, the socket with the agent, and the files of a given-up capture with it."""
    node = Node(workspace, "node")
    up, go = workspace.path("node-up"), workspace.path("node-go")
    code = "import torch, os, time\nopen(%r, 'w').close()\nwhile not os.path.exists(%r): torch.ones(2) + 1" % (up, go)
    job = workspace.start("job", node.job_command(kPython, "-c", code), node.environment())
    wait_until("the job to be up", lambda: os.path.exists(up), children=[job])
    trace = Trace(workspace, [node], workspace.path("given-up"))
    # The capture's end waits a second for a process that hangs, long enough for the second signal.
    os.kill(job.pid, signal.SIGSTOP)
    trace.child.send(signal.SIGINT)
    wait_until("it to say so", lambda: "once more to give it up" in trace.child.err(), children=[trace.child])
    trace.child.send(signal.SIGINT)
    trace.child.wait(expect=130)
    os.kill(job.pid, signal.SIGCONT)
    check("nothing was kept" in trace.child.err(), "it says: %s", trace.child.err())
    dumps = [e for e in entries(workspace.path("output")) + entries(workspace.path("given-up")) if ".rs" in e]
    check(not dumps, "a trace that was given up leaves %s", dumps)
    trace = Trace(workspace, [node], workspace.path("kept"))
    trace.end()
    with open(go, "w"):
        pass
    job.wait()
    wait_until("its segment to go", lambda: not node.segments())
    node.stop()
    left = [os.path.basename(e) for e in entries(node.root)]
    check(set(left) <= {"job", "budget", "control", "lock"}, "the node's root keeps %s", left)
    check(not os.path.exists(node.endpoint[len("ipc://"):]), "the socket is still there")
    partial = [e for e in entries(workspace.path("output")) if e.endswith(".partial")]
    check(not partial, "partial dumps: %s", partial)


def a_killed_agents_remains_are_adopted(workspace):
    """kill -9 of the agent: the job goes on; the next agent on that directory ends its capture and removes what the dead process left."""
    node = Node(workspace, "first")
    up, go = workspace.path("up-k"), workspace.path("go-k")
    code = "import torch, os\nopen(%r, 'w').close()\nwhile not os.path.exists(%r): torch.ones(2) + 1" % (up, go)
    job = workspace.start("job-k", node.job_command(kPython, "-c", code), node.environment())
    wait_until("the job to be up", lambda: os.path.exists(up), children=[job])
    trace = Trace(workspace, [node], workspace.path("broken"))
    os.kill(node.agent.pid, signal.SIGKILL)
    node.agent.wait(expect=-signal.SIGKILL)
    status = trace.child.wait(expect=None, deadline_s=60)
    check(status != 0, "a trace whose agent was killed ends with 0")
    with open(go, "w"):
        pass
    job.wait()
    ready_read, ready_write = os.pipe()
    again = workspace.start("agent-again", [kAgent, "--dir", node.root, "--job", node.job, "--node", "first", "--endpoint", node.endpoint,
                                            "--output", workspace.path("output", "again"), "--capture-from-start", "--name", "left",
                                            "--ready-fd", str(ready_write)], pass_fds=(ready_write,))
    os.close(ready_write)
    with os.fdopen(ready_read) as ready:
        check(ready.readline() == "ready\n", "the second agent is not ready: %s", again.tail())
    again.send(signal.SIGTERM)
    again.wait(20)
    check(not node.segments(), "the dead process's segment is still there: %s", node.segments())
    found = [e for e in entries(workspace.path("output", "first")) if not os.path.isdir(e)]
    check([os.path.basename(f) for f in found] == ["first.rsd"], "of the killed agent's capture there are %s", found)
    read = Job(os.path.dirname(found[0]))
    check(not read.problems() and read.counts()["ranges"] > 0, "what it left: %s, %s", read.counts(), read.problems())
    check("ended the capture of an agent that died" in again.err(), "the second agent says:\n%s", again.err())
    check(not os.path.exists(node.endpoint[len("ipc://"):]), "the socket is still there")


def test(workspace):
    for part in (run_leaves_nothing, a_run_whose_agent_hangs_has_its_trace, an_interrupted_run_leaves_nothing, a_node_keeps_only_the_job_directory, a_killed_agents_remains_are_adopted):
        part(workspace)
        print("%s: so" % part.__name__.replace("_", " "), flush=True)


main(test, "cleanup")
