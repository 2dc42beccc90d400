#!/usr/bin/python3
"""A user's resident agent (`ringside agent --all`): one process gives each job's directory an agent, wrapped jobs leave theirs to it, and nothing of a job
is left when it is over.

    resident.py CASE PROGRAM        CASE: jobs killed hosts (on a Slurm of the test's own) plain ends
"""
import contextlib
import json
import os
import signal
import sys
import time

from harness import check, kAgent, kCommand, kOfTheJobDirectory, kShim, main, wait_until
from rsd.index import Job
from slurm import agents, in_trace, job_directories, kWrap, state_of
from slurm_host import Slurm
from slurm_hosts import HostSlurm

kLock = "resident"  # its own, in the root


class Resident:
    """The resident agent, through `ringside agent`."""

    def __init__(self, workspace, environment, prefix=()):
        self.workspace = workspace
        reading, writing = os.pipe()
        self.child = workspace.start("resident-%d" % len(workspace.children), [*prefix, kCommand, "agent", "--all", "--log-level", "info", "--output", workspace.path("output"),
                                     "--ready-fd", str(writing)], environment, pass_fds=(writing,))
        os.close(writing)
        with os.fdopen(reading) as ready:
            check(ready.readline() == "ready\n", "the resident agent is not ready:\n%s", self.child.tail())

    @property
    def pid(self):
        return self.child.pid

    def own(self):
        """Pids of its agents, those that have ended and that it has not yet seen left out."""
        with open("/proc/%d/task/%d/children" % (self.pid, self.pid)) as file:
            return {int(pid) for pid in file.read().split() if is_there(int(pid))}

    def stop(self):
        self.child.send(signal.SIGTERM)
        self.child.wait(30)


def is_there(pid):
    with contextlib.suppress(FileNotFoundError):
        return state_of(pid) not in "ZX"
    return False


def agents_beneath(workspace):
    """Pids of all agents that know the root."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/comm" % pid) as comm, open("/proc/%s/environ" % pid, "rb") as environment:
                if comm.read().strip() == "ringside-agent" and workspace.root.encode() in environment.read() and is_there(int(pid)):
                    found.add(int(pid))
    return found


def in_root(workspace):
    return sorted(os.listdir(workspace.root))


def plain_environment(workspace, **more):
    """Of somebody at a shell."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "RINGSIDE_"))}
    return dict(environment, RINGSIDE_DIR=workspace.root, RINGSIDE_ADDRESS="127.0.0.1", **more)


def status(workspace, environment, *more):
    """@return {job: its agent's pid} of those that answer"""
    done = workspace.ringside("status", "--json", *more, environment=environment, expect=None)
    return {each["job"]: each["pid"] for each in json.loads(done.out() or "[]")}


def numbers(workspace, name):
    """Whether a process has marked some."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.getsize(workspace.path("numbers." + name)) > 0
    return False


def jobs(workspace, program):
    """Two wrapped jobs on two nodes, beside one resident agent."""
    slurm = Slurm(workspace, 2)
    resident = Resident(workspace, slurm.environment)
    ends = {"first": 0, "second": 7}
    script = "{program} {disk}/numbers.{name}.$SLURM_PROCID 1 1000000 & trap \"kill $!; exit {end}\" TERM; wait"
    children = {name: slurm.srun(name, "-N2", "--ntasks-per-node=2", kWrap, "sh", "-c",
                                 script.format(program=program, disk=workspace.disk, name=name, end=end)) for name, end in ends.items()}
    wait_until("the tasks", lambda: all(numbers(workspace, "%s.%d" % (name, rank)) for name in ends for rank in range(4)), children=children.values())
    ids = sorted(job.split()[0] for job in slurm.jobs())
    check(len(ids) == 2, "jobs: %s", slurm.jobs())
    directories = sorted("%s.%s" % (job, node) for job in ids for node in slurm.names)
    check(job_directories(workspace) == directories, "job directories: %s", job_directories(workspace))
    held = {job: agents(workspace, slurm, job) for job in ids}
    pids = {pid for nodes in held.values() for pid in nodes.values()}
    check(all(sorted(nodes) == slurm.names for nodes in held.values()), "agents: %s", held)
    check(len(pids) == 4 and resident.own() == pids, "agents %s, the resident one's are %s", held, resident.own())
    check(agents_beneath(workspace) == pids | {resident.pid}, "there are other agents: %s, not of %s", agents_beneath(workspace), held)
    notes = os.path.join(slurm.environment["HOME"], ".ringside", "jobs")
    check(sorted(sum((os.listdir(os.path.join(notes, job)) for job in ids), [])) == sorted("%s@%s" % (job, node) for job in ids for node in slurm.names),
          "the agents have not noted where they are")
    check(set(status(workspace, slurm.environment).values()) == pids, "status without a job: %s", status(workspace, slurm.environment))
    told = workspace.ringside("status", environment=slurm.environment).out()
    check("resident agent with pid %d" % resident.pid in told and "4 job directories" in told, "status says: %s", told)
    for job in ids:
        _, captured = in_trace(workspace, slurm, job, "traced-" + job)
        found = sorted((each["node"], each["verdict"]) for each in captured["processes"] if each["events"] > 0)
        check(found == [(node, "captured") for node in slurm.names for _ in range(2)], "of job %s: %s", job, captured["processes"])
    second = workspace.run("second", [kAgent, "--all"], slurm.environment, expect=5)
    check("pid %d" % resident.pid in second.err(), "the second one is told: %s", second.err())
    # One job's end leaves the other as it is.
    for index, job in enumerate(ids):
        slurm.ask("scancel", "--signal=TERM", job)
        wait_until("the end of job %s" % job, lambda: len(slurm.jobs()) == 1 - index)
        left = [each for each in directories if each.split(".")[0] in ids[index + 1:]]
        wait_until("its directories to go", lambda: job_directories(workspace) == left)
        wait_until("its agents to end", lambda: resident.own() == {pid for other in ids[index + 1:] for pid in held[other].values()})
    for name, end in ends.items():
        children[name].wait(expect=end)
    check(in_root(workspace) == [kLock], "left: %s", in_root(workspace))
    check(os.listdir(notes) == [], "the agents' notes are left")
    check(status(workspace, slurm.environment) == {}, "status: %s", status(workspace, slurm.environment))
    check(agents_beneath(workspace) == {resident.pid}, "agents: %s", agents_beneath(workspace))
    resident.stop()
    check(in_root(workspace) == [], "left: %s", in_root(workspace))


def hosts(workspace, program):
    """A resident agent on each of three hosts that share no home: a job's agents are theirs, one command captures it, and nothing of it is left."""
    slurm = HostSlurm(workspace, False)
    residents = [Resident(workspace, slurm.environment, host.prefix) for host in slurm.hosts]
    child = slurm.srun("srun", "-N3", "--ntasks-per-node=2", kWrap, "sh", "-c", "exec %s %s/numbers.$SLURM_PROCID 1 1000000" % (program, workspace.disk))
    job = slurm.await_job([child])
    wait_until("the tasks", lambda: all(numbers(workspace, str(rank)) for rank in range(6)), children=[child])

    def asked(name, *words):
        done = workspace.run(name, [*slurm.hosts[1].prefix, kCommand, *words, "--job", job, "--json"], slurm.environment)
        return json.loads(done.out())

    held = {each["node"]: {each["pid"]} for each in asked("status", "status")}
    check(held == dict(zip(slurm.names, (resident.own() for resident in residents))), "agents: %s, of the resident ones %s", held,
          [resident.own() for resident in residents])
    told = asked("trace", "trace", "--duration", "300ms", "-o", workspace.path("traced"))
    found = sorted((each["node"], each["rank"], each["verdict"]) for each in told["processes"] if each["events"] > 0)
    check(found == [(name, 2 * n + t, "captured") for n, name in enumerate(slurm.names) for t in range(2)], "of the ranks it says %s", told["processes"])
    check(not Job(workspace.path("traced")).problems(), "the reader: %s", Job(workspace.path("traced")).problems())
    slurm.ask("scancel", "--signal=TERM", job)
    child.wait(expect=None)
    wait_until("the directories to go", lambda: not any(slurm.job_directories().values()))
    wait_until("the agents to end", lambda: not any(resident.own() for resident in residents))
    for resident in residents:
        resident.stop()
    left = {host.name: os.listdir(host.seen(workspace.root)) for host in slurm.hosts}
    check(not any(left.values()), "left: %s", left)


def killed(workspace, program):
    """One of its agents is killed, then it is killed itself, then it comes back: the job goes on, and can be traced each time."""
    slurm = Slurm(workspace, 1)
    resident = Resident(workspace, slurm.environment)
    child = slurm.srun("srun", "-N1", "-n2", kWrap, "sh", "-c", "exec %s %s/numbers.$SLURM_PROCID 1 1000000" % (program, workspace.disk))
    job = slurm.await_job([child])
    wait_until("the tasks", lambda: all(numbers(workspace, str(rank)) for rank in range(2)), children=[child])

    def another(than, what):
        found = wait_until(what, lambda: (lambda now: now.get("n1") not in (None, than) and now)(agents(workspace, slurm, job)), children=[child])["n1"]
        check(agents_beneath(workspace) - {resident.pid} == {found}, "agents: %s, of the job %s", agents_beneath(workspace), found)
        _, told = in_trace(workspace, slurm, job, "traced-%d" % found)
        check([each["verdict"] for each in told["processes"] if each["events"] > 0] == ["captured"] * 2, "%s: %s", what, told["processes"])
        return found

    first = another(0, "an agent")
    os.kill(first, signal.SIGKILL)
    second = another(first, "another agent")
    check(resident.own() == {second}, "agent %d is not the resident one's: those are %s", second, resident.own())
    resident.child.send(signal.SIGKILL)
    resident.child.wait(expect=-signal.SIGKILL)
    third = another(second, "an elected agent")
    check(open(os.path.join(workspace.root, job + ".n1", "agent.step")).read() == "0 %d" % third, "the tasks have elected %s", third)
    # Its lock has gone with it, its file has not.
    resident = Resident(workspace, slurm.environment)
    check(agents(workspace, slurm, job) == {"n1": third}, "the resident agent has taken what was held")
    os.kill(third, signal.SIGKILL)
    fourth = another(third, "the new resident one's agent")
    check(resident.own() == {fourth}, "the resident one has %s", resident.own())
    slurm.ask("scancel", "--signal=TERM", job)
    child.wait(expect=None)
    wait_until("the directory to go", lambda: in_root(workspace) == [kLock])
    wait_until("the agent to end", lambda: resident.own() == set())
    check(os.listdir(os.path.join(slurm.environment["HOME"], ".ringside", "jobs")) == [], "notes are left")
    resident.stop()


def plain(workspace, program):
    """Without a launcher and without the wrapper: whoever has the preload gets an agent, found by the directory alone."""
    environment = plain_environment(workspace)
    resident = Resident(workspace, environment)

    def job(name, file):
        child = workspace.start("job-%s-%s" % (name, file), ["env", "LD_PRELOAD=" + os.path.abspath(kShim), program, workspace.path("numbers." + file), "1", "1000000"],
                                dict(environment, RINGSIDE_JOB=name))
        wait_until("the job", lambda: numbers(workspace, file), children=[child])
        return child

    # Who holds a directory keeps it; when that one has died its job is taken in.
    reading, writing = os.pipe()
    other = workspace.start("other", [kAgent, "--job", "late", "--ready-fd", str(writing)], environment, pass_fds=(writing,))
    os.close(writing)
    with os.fdopen(reading) as ready:
        check(ready.readline() == "ready\n", "an agent: %s", other.tail())
    children = [job("early", "one"), job("late", "two")]
    found = wait_until("agents", lambda: (lambda now: len(now) == 2 and now)(status(workspace, environment)))
    check(found["late"] == other.pid and resident.own() == {found["early"]}, "agents %s, of the resident one %s", found, resident.own())
    other.send(signal.SIGKILL)
    other.wait(expect=-signal.SIGKILL)
    found = wait_until("the directory to be taken", lambda: (lambda now: now.get("late") not in (None, other.pid) and now)(status(workspace, environment)))
    check(resident.own() == set(found.values()), "agents %s, of the resident one %s", found, resident.own())
    listed = json.loads(workspace.ringside("ps", "--json", environment=environment).out())
    check(sorted(each["pid"] for each in listed) == sorted(child.pid for child in children), "ps without a job: %s", listed)
    # A directory that somebody empties keeps its agent as long as its process lives: nobody else knows of that one any more.
    early = os.path.join(workspace.root, "early")
    for file in os.listdir(early):
        os.unlink(os.path.join(early, file))
    os.rmdir(early)
    wait_until("the directory to be made again", lambda: os.path.exists(os.path.join(early, "agent.sock")))
    # With no process a directory stays as long as something is captured there; then both go.
    output = workspace.path("trace")
    trace = workspace.start("trace", [kCommand, "trace", "--hosts", "ipc://%s/late/agent.sock" % workspace.root, "--duration", "120s", "-o", output], environment)
    wait_until("the capture", lambda: "capturing" in trace.err(), children=[trace])
    children[1].send(signal.SIGTERM)
    children[1].wait(expect=None)
    began = time.monotonic()
    wait_until("some looks", lambda: time.monotonic() - began > 8)
    check(status(workspace, environment) == found, "agents %s, then %s", found, status(workspace, environment))
    trace.send(signal.SIGINT)
    trace.wait(expect=None)
    wait_until("the directory to go", lambda: in_root(workspace) == ["early", kLock])
    children[0].send(signal.SIGTERM)
    children[0].wait(expect=None)
    wait_until("the other to go", lambda: in_root(workspace) == [kLock])
    wait_until("their agents to end", lambda: resident.own() == set())
    resident.stop()
    check(Job(output).problems() == [], "the dump: %s", Job(output).problems())


def ends(workspace, program):
    """TERM: what is captured is written, as by any agent; wrapped tasks go on, and elect one of their own. A job's last task waits for no dump of others'."""
    environment = plain_environment(workspace, RINGSIDE_JOB="job")
    resident = Resident(workspace, {name: value for name, value in environment.items() if name != "RINGSIDE_JOB"})
    child = workspace.start("wrapped", ["setsid", kWrap, program, workspace.path("numbers.0"), "1", "1000000"], environment)
    wait_until("the task", lambda: numbers(workspace, "0"), children=[child])
    first, = resident.own()

    def traced(name):
        output = workspace.path(name)
        trace = workspace.start(name, [kCommand, "trace", "--job", "job", "--duration", "120s", "-o", output], environment)
        wait_until("the capture", lambda: "capturing" in trace.err(), children=[trace])
        return trace, output

    def check_dump(trace, output):
        trace.wait(expect=None)
        read = Job(output)
        check(not read.problems() and any(lane.records for dump in read.dumps for lane in dump.lanes.values()), "%s: %s", output, read.problems())

    trace, output = traced("stopped")
    resident.stop()
    check_dump(trace, output)
    elected = wait_until("an elected agent", lambda: (lambda now: now.get("job") not in (None, first) and now)(status(workspace, environment)))["job"]
    check(agents_beneath(workspace) == {elected}, "agents: %s", agents_beneath(workspace))
    check(kLock not in in_root(workspace), "left: %s", in_root(workspace))
    child.send(signal.SIGTERM)
    child.wait(expect=None)
    check(in_root(workspace) == [], "left by the elected agent's step: %s", in_root(workspace))
    # The job's own end in a capture: the dump is whole, and the directory goes.
    resident = Resident(workspace, {name: value for name, value in environment.items() if name != "RINGSIDE_JOB"})
    child = workspace.start("again", ["setsid", kWrap, program, workspace.path("numbers.1"), "1", "1000000"], environment)
    wait_until("the task", lambda: numbers(workspace, "1"), children=[child])
    trace, output = traced("job-ended")
    child.send(signal.SIGTERM)
    child.wait(expect=None)
    check_dump(trace, output)
    wait_until("the directory to go", lambda: in_root(workspace) == [kLock])
    resident.stop()


kCases = {"jobs": jobs, "hosts": hosts, "killed": killed, "plain": plain, "ends": ends}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "resident-" + sys.argv[1], limit_s=200)
