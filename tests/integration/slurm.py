#!/usr/bin/python3
"""Tasks that srun starts through ringside-wrap, on a Slurm of the test's own: one agent a node, one command captures the job, and the launcher sees the
job's own end.

    slurm.py CASE PROGRAM        CASE: trace ends steps alone
"""
import json
import os
import re
import signal
import sys
import time

from harness import check, kSource, main, wait_until
from rsd.index import Job
from slurm_host import Slurm

kWrap = os.path.join(kSource, "tools", "ringside-wrap")
kNodes, kTasks = 3, 2


def job_directories(workspace):
    return sorted(name for name in os.listdir(workspace.root) if name[0].isdigit())


def agents(workspace, slurm, job):
    """@return {node: pid} of those that answer"""
    done = workspace.ringside("status", "--job", job, "--json", environment=slurm.environment, expect=None)
    if done.process.returncode != 0:
        return {}
    return {each["node"]: each["pid"] for each in json.loads(done.out())}


kCounting = 'u=0 i=0 t=0; trap "u=\\$((u + 1))" USR1; trap "i=\\$((i + 1))" INT; trap "t=\\$((t + 1))" TERM; echo up; while [ $t = 0 ]; do sleep 0.05; done; sleep 0.3; echo got $u $i $t'


def told_of_tasks(text):
    """@return {task: what srun says of its end}: it says it of several at once, or of each"""
    told = {}
    for line in text.splitlines():
        match = re.search(r"tasks? ([0-9,-]+): (.*)", line)
        if match is None:
            continue
        for part in match.group(1).split(","):
            first, _, last = part.partition("-")
            told.update({task: match.group(2) for task in range(int(first), int(last or first) + 1)})
    return told


def in_trace(workspace, slurm, job, name, duration="300ms"):
    output = workspace.path(name)
    done = workspace.ringside("trace", "--job", job, "--duration", duration, "-o", output, "--json", environment=slurm.environment)
    index = Job(output)
    check(not index.problems(), "%s, the reader: %s", name, "; ".join(index.problems()))
    return index, json.loads(done.out())


def trace(workspace, program):
    slurm = Slurm(workspace, kNodes)
    child = slurm.srun("srun", "-N%d" % kNodes, "--ntasks-per-node=%d" % kTasks, kWrap, "sh", "-c",
                       'exec %s %s/numbers.$SLURM_PROCID 1 1000000' % (program, workspace.disk))
    job = slurm.await_job([child])
    wait_until("the tasks", lambda: len([f for f in os.listdir(workspace.disk) if f.startswith("numbers.")]) == kNodes * kTasks, children=[child])
    check(sorted(os.listdir(os.path.join(slurm.environment["HOME"], ".ringside", "jobs", job))) == ["%s@%s" % (job, name) for name in slurm.names],
          "the agents have not noted where they are")
    directories = job_directories(workspace)
    check(directories == ["%s.%s" % (job, name) for name in slurm.names], "job directories: %s", directories)
    index, told = in_trace(workspace, slurm, job, "traced")
    check(sorted(node["name"] for node in told["nodes"]) == slurm.names, "nodes: %s", [node["name"] for node in told["nodes"]])
    check(len([f for f in os.listdir(workspace.path("traced")) if f.endswith(".rsd")]) == kNodes, "dumps: %s", os.listdir(workspace.path("traced")))
    verdicts = [(each["node"], each["verdict"], each["rank"]) for each in told["processes"] if each["events"] > 0]
    check(sorted(verdicts) == sorted((name, "captured", kTasks * n + t) for n, name in enumerate(slurm.names) for t in range(kTasks)),
          "verdicts: %s", told["processes"])
    check(told["start_spread_ns"] < 20_000_000, "starts are %g ms apart", told["start_spread_ns"] / 1e6)
    # An agent that is killed is replaced, by a task of its node.
    before = agents(workspace, slurm, job)
    for name, pid in before.items():
        with open("/proc/%d/oom_score_adj" % pid) as file:
            check(file.read().strip() == "1000", "the agent of %s would not be the first to go where memory runs out", name)
    os.kill(before["n2"], signal.SIGKILL)
    after = wait_until("another agent on n2", lambda: (lambda now: now.get("n2") not in (None, before["n2"]) and now)(agents(workspace, slurm, job)))
    check({name: pid for name, pid in after.items() if name != "n2"} == {name: pid for name, pid in before.items() if name != "n2"},
          "agents %s, then %s", before, after)
    in_trace(workspace, slurm, job, "again")
    slurm.ask("scancel", "--signal=TERM", job)
    child.wait()
    check(not os.path.exists(os.path.join(slurm.environment["HOME"], ".ringside", "jobs", job)), "the agents' notes are left")
    check(job_directories(workspace) == [], "left: %s", [(d, os.listdir(os.path.join(workspace.root, d)), open(os.path.join(workspace.root, d, "agent.log")).read()) for d in job_directories(workspace)])


def ends(workspace, _):
    """The launcher sees what it would see without us."""
    slurm = Slurm(workspace, 1)

    def told(name, wrapped, *script):
        child = slurm.srun(name, "-N1", "--ntasks-per-node=2", *([kWrap] if wrapped else []), "sh", "-c", *script)
        return child

    for number, script in enumerate(["exit 0", "exit 3", "[ $SLURM_LOCALID = 0 ] || exit 5", "kill -KILL $$", "kill -SEGV $$"]):
        statuses = []
        for wrapped in (False, True):
            child = told("ends-%d-%s" % (number, wrapped), wrapped, script)
            child.wait(expect=None)
            statuses.append((child.process.returncode, child.out(), told_of_tasks(child.err())))
        check(statuses[0] == statuses[1], "`%s` ends with %s, through ringside-wrap with %s", script, *statuses)
    missing = slurm.srun("missing", "-N1", kWrap, "/no/such/program")
    missing.wait(expect=127)
    # What is sent reaches the command, once, whoever of the task's processes Slurm sends it to; and what the command does of it counts.
    for wrapped in (False, True):
        child = told("signalled-%s" % wrapped, wrapped, kCounting)
        wait_until("the tasks", lambda: child.out().count("up") == 2, children=[child])
        job = slurm.await_job()
        before = agents(workspace, slurm, job)
        for name in ("USR1", "USR1", "INT", "USR1"):
            slurm.ask("scancel", "--signal=" + name, job)
            time.sleep(0.4)  # signals of one number don't queue
        check(agents(workspace, slurm, job) == before and bool(before) == wrapped, "wrapped %s: the agents before the signals: %s", wrapped, before)
        slurm.ask("scancel", job)
        child.wait(expect=None)
        check(child.out().count("got 3 1 1") == 2, "wrapped %s: after three USR1, an INT and a scancel the tasks say %r", wrapped, child.out())
    wait_until("the directories to go", lambda: job_directories(workspace) == [])


def alone(workspace, _):
    """Without a launcher. A signal that comes to the wrapper alone reaches the command; one that is sent to both is not sent twice; a wrapper that is
    killed takes its command along; and where there can be no agent, the command runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "RINGSIDE"))}
    environment.update(RINGSIDE_DIR=workspace.root, HOME=workspace.path("home"), RINGSIDE_ADDRESS="127.0.0.1")
    os.makedirs(environment["HOME"])

    def started(name, *script, **more):
        # It becomes the wrapper itself: a child of ours leads no group.
        child = workspace.start(name, ["setsid", kWrap, "sh", "-c", *script], dict(environment, **more))
        wait_until("the command", lambda: "up" in child.out(), children=[child])
        return child, child.pid

    one, wrapper = started("one", kCounting)
    for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGUSR1):
        os.kill(wrapper, number)
        time.sleep(0.4)
    os.kill(wrapper, signal.SIGTERM)
    one.wait()
    check(one.out() == "up\ngot 2 1 1\n", "sent to the wrapper alone: %r", one.out())
    all_of_it, wrapper = started("all", kCounting)
    for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM):
        os.killpg(os.getpgid(wrapper), number)
        time.sleep(0.1)
    all_of_it.wait()
    check(all_of_it.out() == "up\ngot 1 1 1\n", "sent to the group: %r", all_of_it.out())
    killed, wrapper = started("killed", "echo $$ up; exec sleep 100")
    command = int(killed.out().split()[0])
    os.kill(wrapper, signal.SIGKILL)
    wait_until("the command to go with its wrapper", lambda: not os.path.exists("/proc/%d" % command) or state_of(command) == "Z")
    killed.wait(expect=None)
    wait_until("the agent to see that nobody is left", lambda: not socket_answers(workspace, "default"))
    without = workspace.run("without", [kWrap, "sh", "-c", "exit 4"], dict(environment, RINGSIDE_DIR="/proc/none"), expect=4)
    check("without an agent" in without.err(), "it says %r", without.err())
    # A key that can't be read, as on file systems that show more rights than a file was given: who is on this host needs none.
    key = os.path.join(environment["HOME"], ".ringside", "key")
    os.chmod(key, 0o640)
    served, wrapper = started("served", "echo up; while [ ! -e %s ]; do sleep 0.05; done" % workspace.path("leave"))
    told = workspace.ringside("status", "--job", "default", "--json", environment=environment)
    check(len(json.loads(told.out())) == 1 and "chmod 600" in told.err(), "with such a key: %s %s", told.out(), told.err())
    open(workspace.path("leave"), "w").close()
    served.wait()
    os.chmod(key, 0o600)
    last = workspace.run("last", [kWrap, "sh", "-c", "exit 5"], environment, expect=5)
    check(not os.path.exists(os.path.join(workspace.root, "default")), "left: %s\n%s", [names for _, _, names in os.walk(workspace.root)], last.err())


def state_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rpartition(")")[2].split()[0]


def socket_answers(workspace, job):
    return os.path.exists(os.path.join(workspace.root, job, "agent.sock"))


def steps(workspace, program):
    """Two steps on a node at once share an agent; the end of the one whose it is gives the node another; two jobs have nothing to do with each other."""
    slurm = Slurm(workspace, 1)
    script = workspace.path("job.sh")
    with open(script, "w") as file:
        file.write("#!/bin/sh\n"
                   "srun --overlap --overcommit -n1 {wrap} {program} {disk}/first.$SLURM_JOB_ID 1 1000000 &\n"
                   "while [ ! -s {disk}/first.$SLURM_JOB_ID ]; do sleep 0.05; done\n"
                   "srun --overlap --overcommit -n1 {wrap} {program} {disk}/second.$SLURM_JOB_ID 1 1000000 &\n"
                   "wait\n".format(wrap=kWrap, program=program, disk=workspace.disk))
    jobs = []
    for _ in range(2):
        jobs.append(slurm.ask("sbatch", "--parsable", "-N1", "-n1", "--overcommit", "-o", workspace.path("out", "batch-%j"), script).strip())
    for job in jobs:
        wait_until("the second step of %s" % job, lambda: os.path.exists(workspace.path("second." + job)))
    first = {job: wait_until("an agent", lambda: agents(workspace, slurm, job)) for job in jobs}
    check(first[jobs[0]]["n1"] != first[jobs[1]]["n1"], "two jobs have one agent: %s", first)
    slurm.ask("scancel", "--signal=TERM", jobs[0] + ".0")
    later = wait_until("another agent", lambda: (lambda now: now.get("n1") not in (None, first[jobs[0]]["n1"]) and now)(agents(workspace, slurm, jobs[0])))
    index, told = in_trace(workspace, slurm, jobs[0], "second-step")
    check([each["verdict"] for each in told["processes"] if each["events"] > 0] == ["captured"], "of the second step: %s", told["processes"])
    check(agents(workspace, slurm, jobs[0]) == later, "the agent has changed")
    check(agents(workspace, slurm, jobs[1]) == first[jobs[1]], "the other job's agent has changed")
    for job in jobs:
        slurm.ask("scancel", "--signal=TERM", job)
    wait_until("the jobs to end", lambda: not slurm.jobs())
    wait_until("the directories to go", lambda: job_directories(workspace) == [])


kCases = {"trace": trace, "ends": ends, "steps": steps, "alone": alone}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "slurm-" + sys.argv[1])
