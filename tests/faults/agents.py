#!/usr/bin/python3
"""Two agents for one job directory, and what an agent that was killed leaves to the next: its lock, its socket, its election.

    agents.py second      many start at once: one holds the directory, the others are refused and name it; killed, the next takes its place
    agents.py steps       a step's agent, its command and its task are killed; the next step of the job has an agent of its own and is captured
"""
import json
import os
import signal

from fault import check, kAgent, kCommand, kWriter, read, run, wait_until

kRefused = 5
kAgents = 6


def second(workspace):
    root = os.path.join(workspace.root, "node")
    socket = os.path.join(root, "job", "agent.sock")

    def start(name):
        return workspace.start(name, [kAgent, "--dir", root, "--job", "job", "--output", workspace.path("output")])

    def answering():
        done = workspace.ringside("status", "--hosts", "ipc://" + socket, "--json", expect=None)
        return done.process.returncode == 0 and '"pid":%d' % holder.pid in done.out().replace(" ", "")

    for turn in range(3):
        started = [start("agent-%d-%d" % (turn, number)) for number in range(kAgents)]
        wait_until("all but one to end", lambda: sum(one.process.poll() is None for one in started) == 1)
        (holder,) = [one for one in started if one.process.poll() is None]
        for one in started:
            if one is not holder:
                check(one.process.returncode == kRefused and "agent with pid %d" % holder.pid in one.err() and root in one.err(),
                      "the second ends with %d and says: %s", one.process.returncode, one.err())
        wait_until("the holder to answer", answering)
        late = start("late-%d" % turn)
        late.wait(expect=kRefused)
        check(os.path.exists(socket), "who is refused takes the socket away")
        wait_until("the holder to answer all the same", answering)
        print("%d at once: pid %d holds it; the others: %s" % (kAgents, holder.pid, late.err().strip()), flush=True)
        if turn < 2:
            holder.send(signal.SIGKILL)
            holder.wait(expect=-signal.SIGKILL)
            check(os.path.exists(socket), "a killed agent's socket is gone: nothing is stale")
    holder.send(signal.SIGTERM)
    holder.wait(20)


def steps(workspace):
    root = os.path.join(workspace.root, "root")
    environment = dict(os.environ, RINGSIDE_DIR=root, RINGSIDE_JOB="stepped")
    directory = os.path.join(root, "stepped")

    def who_answers():
        done = workspace.ringside("status", "--hosts", "ipc://" + directory + "/agent.sock", "--json", expect=None)
        told = json.loads(done.out()) if done.process.returncode == 0 else [{"processes": 0}]
        return told[0]["processes"] > 0 and told[0]

    def step(number):
        go, leave = workspace.path("go-%d" % number), workspace.path("leave-%d" % number)
        child = workspace.start("step-%d" % number, [kCommand, "wrap", "--", kWriter, "flood", "1", "1000", "60", go, leave], environment)
        agent = wait_until("an agent of step %d" % number, who_answers, children=[child])
        return child, agent, go, leave

    first, agent, _, _ = step(1)
    for pid in (agent["pid"], first.pid):
        os.kill(pid, signal.SIGKILL)
    first.wait(expect=None)
    stale = sorted(os.listdir(directory))
    check("lock" in stale and "agent.sock" in stale, "the first step leaves nothing stale: %s", stale)
    child, after, go, leave = step(2)
    check(after["pid"] != agent["pid"], "the same agent answers")
    output = workspace.path("traced")
    trace = workspace.start("trace", [kCommand, "trace", "--hosts", "ipc://" + directory + "/agent.sock", "--duration", "60s", "-o", output])
    wait_until("the trace to capture", lambda: "capturing" in trace.err(), children=[trace])
    for path in (go, leave):
        with open(path, "w"):
            pass
    child.wait()
    trace.send(signal.SIGINT)
    trace.wait(expect=None)
    (dump,) = read(output).dumps
    check(sum(len(lane.records) for lane in dump.lanes.values()) >= 1000, "the second step's records are not in the dump")
    wait_until("the directory to go", lambda: not os.path.exists(directory))
    print("stale: %s; the next step's agent: pid %d" % (", ".join(stale), after["pid"]), flush=True)


run({"second": second, "steps": steps})
