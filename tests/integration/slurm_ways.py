#!/usr/bin/python3
"""Ways in which a Slurm's tasks come to be traced: inside a sandbox with a root, processes and a /dev/shm of its own; by an agent that comes as a step of its
own into a job that has the preload alone; asked for from a host that is none of the job's; as one task of an array; as one component of a heterogeneous job.

    slurm_ways.py CASE PROGRAM        CASE: bwrap overlap agents_later outside outside_notes array het
"""
import json
import os
import shutil
import signal
import sys

from harness import check, kAgent, kBuild, kCommand, kOfTheJobDirectory, kShim, main, skip, wait_until
from rsd.index import Job
from slurm import job_directories, kWrap
from slurm_host import Slurm
from slurm_hosts import HostSlurm

# A task that marks numbers, and says in its command line which one it is.
kNumbers = "exec {program} {disk}/numbers.%s 1 1000000"


def traced(workspace, slurm, job, name):
    """@return (Job, what the command tells of processes with events)"""
    output = workspace.path(name)
    done = workspace.ringside("trace", "--job", job, "--duration", "300ms", "-o", output, "--json", environment=slurm.environment)
    read = Job(output)
    check(not read.problems(), "%s, the reader: %s", name, "; ".join(read.problems()))
    return read, [each for each in json.loads(done.out())["processes"] if each["events"] > 0]


def await_numbers(workspace, names, child=None):
    paths = [workspace.path("numbers." + name) for name in names]
    wait_until("the tasks", lambda: all(os.path.exists(path) and os.path.getsize(path) > 0 for path in paths), children=[child] if child else [])


def numbers_of(command):
    return command.partition("/numbers.")[2].split()[0]


def end(slurm, *jobs):
    for job in jobs:
        slurm.ask("scancel", "--signal=TERM", job)
    wait_until("the jobs' end", lambda: not slurm.jobs())
    wait_until("the directories to go", lambda: job_directories(slurm.workspace) == [])


def bwrap(workspace, program):
    if shutil.which("bwrap") is None:
        skip("no bwrap here (tools/setup --all installs bubblewrap)")
    slurm = Slurm(workspace, 1)
    read_only = [word for path in ("/usr", kBuild) for word in ("--ro-bind", os.path.abspath(path), os.path.abspath(path))]
    links = [word for name in ("bin", "lib", "lib64") for word in ("--symlink", "usr/" + name, "/" + name)]
    sandbox = ["bwrap", "--unshare-pid", "--die-with-parent", *read_only, *links, "--proc", "/proc", "--dev", "/dev", "--bind", workspace.root, workspace.root,
               "--bind", workspace.disk, workspace.disk]
    inside = "ls / > {disk}/root.$SLURM_PROCID; ls /dev/shm > {disk}/shm.$SLURM_PROCID; echo $$ > {disk}/pid.$SLURM_PROCID; " + kNumbers % "$SLURM_PROCID"
    child = slurm.srun("srun", "-N1", "-n2", kWrap, *sandbox, "sh", "-c", inside.format(program=program, disk=workspace.disk))
    job = slurm.await_job([child])
    await_numbers(workspace, ("0", "1"), child)
    for rank in "01":
        seen = {what: open(workspace.path("%s.%s" % (what, rank))).read().split() for what in ("root", "shm", "pid")}
        check("etc" not in seen["root"] and seen["shm"] == [os.path.basename(workspace.root)] and int(seen["pid"][0]) < 10, "the sandbox is none: %s", seen)
    read, told = traced(workspace, slurm, job, "traced")
    check([(each["rank"], each["verdict"], each["pid"]) for each in sorted(told, key=lambda each: each["rank"])] ==
          [(rank, "captured", int(open(workspace.path("pid.%d" % rank)).read())) for rank in range(2)], "of the sandboxes it says %s", told)
    dump, = read.dumps
    recorded = [dump.processes[process] for process, _ in dump.lanes]
    check(len(recorded) == 2, "in the dump: %s", recorded)
    for process in recorded:
        with open("/proc/%d/cmdline" % process.host_pid) as file:
            check("numbers.%d" % process.rank in file.read(), "rank %d is not pid %d here", process.rank, process.host_pid)
    print("captured in their sandboxes: %s" % [(p.rank, p.pid, p.host_pid) for p in recorded], flush=True)
    end(slurm, job)
    child.wait(expect=None)


def overlap(workspace, program):
    slurm = Slurm(workspace, 1)
    preload = "LD_PRELOAD=" + os.path.abspath(kShim)
    child = slurm.srun("srun", "-N1", "-n2", "env", preload, "sh", "-c", (kNumbers % "$SLURM_PROCID").format(program=program, disk=workspace.disk))
    job = slurm.await_job([child])
    await_numbers(workspace, ("0", "1"), child)
    without = workspace.ringside("trace", "--job", job, "-o", workspace.path("none"), environment=slurm.environment, expect=4)
    check(job in without.err(), "without an agent it says: %s", without.err())
    agent = slurm.srun("agent", "--overlap", "--jobid", job, "-N1", "-n1", kAgent, "--node", "n1", "--output", workspace.path("output"))
    wait_until("the agent", lambda: workspace.ringside("status", "--job", job, environment=slurm.environment, expect=None).process.returncode == 0,
               children=[agent, child])
    _, told = traced(workspace, slurm, job, "traced")
    check(sorted((each["node"], each["rank"], each["verdict"]) for each in told) == [("n1", 0, "captured"), ("n1", 1, "captured")], "it says %s", told)
    slurm.ask("scancel", "--signal=TERM", job + ".1")
    agent.wait()
    check(child.process.poll() is None, "the job has ended with its agent: %s", child.tail())
    slurm.ask("scancel", "--signal=TERM", job)
    child.wait(expect=None)
    # Nobody is there who would take the directory of such a job away, and what its tasks, which died of a signal, have in memory.
    left = set(os.listdir(os.path.join(workspace.root, job))) - set(kOfTheJobDirectory)
    check(len(left) == 2 and all(name.replace(".", "").isdigit() for name in left), "in the job's directory: %s", left)
    shutil.rmtree(os.path.join(workspace.root, job))
    print("two ranks captured by an agent that came later, as a step of its own", flush=True)


def agents_later(workspace, program):
    """As the README has it: on hosts of their own, for a job and for a task of an array, by the names that Slurm's variables give."""
    slurm = HostSlurm(workspace, True)
    count = len(slurm.hosts)

    def captured(job, asked, name):
        agent = slurm.srun("agent-" + name, "--overlap", "--jobid", job, "-N%d" % count, "--ntasks-per-node=1", kCommand, "agent", "--rendezvous", "--output",
                           workspace.path("output-" + name))

        def told(*words):
            done = workspace.run("ringside-%d" % len(workspace.children), [*slurm.hosts[2].prefix, kCommand, *words, "--job", asked, "--json"],
                                 slurm.environment, expect=None)
            return json.loads(done.out()) if done.process.returncode == 0 else []
        wait_until("the agents", lambda: len(told("status")) == count, children=[agent])
        processes = (told("trace", "--duration", "300ms", "-o", workspace.path(name)) or {}).get("processes", [])
        check(sorted((each["node"], each["verdict"]) for each in processes if each["events"] > 0) == [(host.name, "captured") for host in slurm.hosts],
              "--job %s says %s", asked, processes)
        slurm.ask("scancel", "--signal=TERM", job + ".1")
        agent.wait()
        check(slurm.rendezvous() == [], "in ~/.ringside/jobs: %s", slurm.rendezvous())
        slurm.ask("scancel", "--signal=TERM", job)

    task = "LD_PRELOAD=%s exec %s %s/numbers.%%s.$SLURM_PROCID 1 1000000" % (os.path.abspath(kShim), program, workspace.disk)
    child = slurm.srun("srun", "-N%d" % count, "--ntasks-per-node=1", "sh", "-c", task % "job")
    job = slurm.await_job([child])
    await_numbers(workspace, ["job.%d" % rank for rank in range(count)], child)
    captured(job, job, "job")
    child.wait(expect=None)
    wait_until("the job's end", lambda: not slurm.jobs())
    script = workspace.path("job.sh")
    with open(script, "w") as file:
        file.write("#!/bin/sh\nsrun --ntasks-per-node=1 sh -c '%s'\n" % (task % "$SLURM_ARRAY_TASK_ID"))
    array = slurm.ask("sbatch", "--parsable", "--array=6-7", "-N%d" % count, "-o", workspace.path("out", "batch-%a"), script).strip()
    await_numbers(workspace, ["%d.%d" % (number, rank) for number in (6, 7) for rank in range(count)])
    ids = dict(line.split() for line in slurm.ask("squeue", "-h", "-o", "%K %A").splitlines())
    # One of the two has the array's own number.
    for number, job in sorted(ids.items(), key=lambda each: each[1] == array):
        captured(job, "%s_%s" % (array, number), number)
    print("agents that came later have captured a job, and each task of an array, on %d hosts" % count, flush=True)


def outside(workspace, program):
    """Who asks is on a host that has no part in the job and shares no home with it, and holds the key: by Slurm's word; where Slurm's is not to be had, by --hosts,
    or through one agent, which knows the nodes by Slurm's word."""
    ask_from_outside(workspace, program, HostSlurm(workspace, False), kWrap)


def outside_notes(workspace, program):
    """As above; the job's hosts share a home, and their agents know each other by their notes there alone."""
    ask_from_outside(workspace, program, HostSlurm(workspace, True), "env", "SLURM_CONF=/none", kWrap)


def ask_from_outside(workspace, program, slurm, *wrap):
    of_job = slurm.names[:2]
    child = slurm.srun("srun", "-N2", "-w", ",".join(of_job), "--ntasks-per-node=1", *wrap, "sh", "-c",
                       (kNumbers % "$SLURM_PROCID").format(program=program, disk=workspace.disk))
    job = slurm.await_job([child])
    await_numbers(workspace, ("0", "1"), child)
    with_slurm = dict(slurm.environment, HOME=workspace.path("own-home"), RINGSIDE_KEY=slurm.made.key)
    without_slurm = dict(with_slurm, SLURM_CONF="/none", PATH="/none")

    def asked(*words, environment=without_slurm, expect=0):
        done = workspace.run("outside-%d" % len(workspace.children), [*(shutil.which(slurm.hosts[2].prefix[0]), *slurm.hosts[2].prefix[1:]), kCommand, *words,
                                                                      "--job", job, "--json"], environment, expect=expect)
        return json.loads(done.out() or "[]")

    agents = asked("status", environment=with_slurm)
    check(sorted(each["node"] for each in agents) == of_job, "agents: %s", agents)
    check(asked("status", expect=4) == [], "without Slurm it finds some")
    hosts = [each["endpoint"].partition("://")[2] for each in sorted(agents, key=lambda each: each["node"])]
    for name, how, environment in (("by-slurm", [], with_slurm), ("by-hosts", ["--hosts", ",".join(hosts)], without_slurm),
                                   ("by-host", ["--peers-of", slurm.hosts[0].address], without_slurm), ("by-agent", ["--peers-of", hosts[1]], without_slurm)):
        told = asked("trace", "--duration", "300ms", "-o", workspace.path(name), *how, environment=environment)
        found = sorted((each["node"], each["rank"], each["verdict"]) for each in told["processes"] if each["events"] > 0)
        check(found == [(node, rank, "captured") for rank, node in enumerate(of_job)], "%s: %s", name, told["processes"])
        check(not Job(workspace.path(name)).problems(), "the reader: %s", Job(workspace.path(name)).problems())
    # An agent that is told of and does not answer is no less told of; hosts that a user lists are those and no others.
    (silent,) = [each["pid"] for each in agents if each["node"] == of_job[1]]
    os.kill(silent, signal.SIGSTOP)
    told = asked("trace", "--duration", "300ms", "-o", workspace.path("silent"), "--peers-of", hosts[0], expect=1)
    check(sorted((each["verdict"], each["node"] == of_job[0]) for each in told["processes"]) == [("captured", True), ("unreachable", False)],
          "one is silent: %s", told["processes"])
    os.kill(silent, signal.SIGCONT)
    told = asked("trace", "--duration", "300ms", "-o", workspace.path("one"), "--hosts", hosts[0])
    check([node["name"] for node in told["nodes"]] == of_job[:1], "--hosts of one host: %s", told["nodes"])
    slurm.ask("scancel", "--signal=TERM", job)
    child.wait(expect=None)
    print("from outside the job: by Slurm's word, at %s, and through each of them" % hosts, flush=True)


def check_apart(workspace, slurm, names):
    """Each of the names finds its own tasks, and no others."""
    for name, numbers in names.items():
        _, told = traced(workspace, slurm, name, "traced-" + name)
        check(sorted((numbers_of(each["command"]), each["verdict"]) for each in told) == [(number, "captured") for number in numbers], "--job %s of %s: %s", name, names, told)
    print("each finds its own: %s" % sorted(names), flush=True)


def array(workspace, program):
    slurm = Slurm(workspace, 1)
    script = workspace.path("job.sh")
    with open(script, "w") as file:
        file.write("#!/bin/sh\nsrun --overlap --overcommit -n1 %s sh -c '%s'\n" % (
            kWrap, (kNumbers % "$SLURM_ARRAY_TASK_ID").format(program=program, disk=workspace.disk)))
    job = slurm.ask("sbatch", "--parsable", "--array=0-1", "-N1", "-n1", "-o", workspace.path("out", "batch-%a"), script).strip()
    await_numbers(workspace, ("0", "1"))
    ids = dict(line.split() for line in slurm.ask("squeue", "-h", "-o", "%K %A").splitlines())
    check(job_directories(workspace) == sorted("%s.n1" % number for number in ids.values()), "directories: %s of jobs %s", job_directories(workspace), ids)
    # The array's id means all of it, as it does to scancel, though one of the tasks has that number, too.
    check_apart(workspace, slurm, {number: task for task, number in ids.items() if number != job})
    check_apart(workspace, slurm, {"%s_%s" % (job, task): task for task in ids})
    check_apart(workspace, slurm, {job: "01"})
    end(slurm, job)


def het(workspace, program):
    slurm = Slurm(workspace, 2)
    component = [[kWrap, "sh", "-c", (kNumbers % number).format(program=program, disk=workspace.disk)] for number in "01"]
    child = slurm.srun("srun", "-N1", "-n1", *component[0], ":", "-N1", "-n1", *component[1])
    await_numbers(workspace, ("0", "1"), child)
    ids = sorted(line.split()[0] for line in slurm.jobs())
    check(len(ids) == 2 and all("+" in each for each in ids), "the job's components: %s", ids)
    print("components %s, directories %s" % (ids, job_directories(workspace)), flush=True)
    check_apart(workspace, slurm, {each: each.partition("+")[2] for each in ids})
    check_apart(workspace, slurm, {ids[0].partition("+")[0]: "01"})
    end(slurm, ids[0].partition("+")[0])
    child.wait(expect=None)


kCases = {"bwrap": bwrap, "overlap": overlap, "agents_later": agents_later, "outside": outside, "outside_notes": outside_notes, "array": array, "het": het}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(lambda workspace: kCases[sys.argv[1]](workspace, sys.argv[2]), "ways-" + sys.argv[1], limit_s=200)
