#!/usr/bin/python3
"""DistributedDataParallel over gloo, two tasks a node on three nodes of a Slurm, through ringside-wrap: one command captures the job; so many iterations as were
asked for, of each rank; the launcher sees the job's own end.

    slurm_ddp.py CASE        CASE: one_host shared_home private_homes ends
"""
import json
import os
import sys

from harness import OffInTime, check, free_port, kCommand, kPython, kWorkloads, main, wait_until
from rsd.index import Job
from slurm import job_directories, kWrap, told_of_tasks
from slurm_host import Slurm
from slurm_hosts import HostSlurm

kNodes, kTasks = 3, 2
kTorch = 1
kIterations = 5
kMostSpreadNs = 20_000_000
kStep, kForward = "Optimizer.step#SGD.step", "DistributedDataParallel.forward"


class Training:
    """ddp_job.py as a step of its own."""

    def __init__(self, slurm, name, *options, nodes=kNodes, tasks=kTasks, wrapped=True):
        self.slurm, self.ranks = slurm, nodes * tasks
        self.workspace = slurm.workspace
        self.folder = self.workspace.path(name)
        os.makedirs(self.folder)
        meeting = [] if slurm.hosts else ["--store", os.path.join(self.folder, "store")]
        environment = {"MASTER_PORT": str(free_port())} if slurm.hosts else {"GLOO_SOCKET_IFNAME": "lo"}
        self.child = slurm.srun(name, "-N%d" % nodes, "--ntasks-per-node=%d" % tasks, *([kWrap] if wrapped else []), kPython, "-W", "ignore",
                                os.path.join(kWorkloads, "ddp_job.py"), "--say", self.folder, "--until", os.path.join(self.folder, "until"),
                                *meeting, *options, environment=environment)
        self.job = slurm.await_job([self.child])
        wait_until("the training", lambda: all(self.said("training.%d" % rank) for rank in range(self.ranks)), children=[self.child])

    def said(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def end(self, expect=0):
        with open(os.path.join(self.folder, "until"), "w"):
            pass
        self.child.wait(expect=expect)


def trace(training, name, *how, host=None):
    """@return (Job, the command's JSON)"""
    output = training.workspace.path(name)
    prefix = host.prefix if host else training.slurm.prefix
    done = training.workspace.run(name, [*prefix, kCommand, "trace", "--job", training.job, *how, "-o", output, "--json"], training.slurm.environment)
    job = Job(output)
    check(not job.problems(), "%s, the reader: %s", name, "; ".join(job.problems()))
    check(sorted(f for f in os.listdir(output) if f.endswith(".rsd")) == [node + ".rsd" for node in training.slurm.names], "dumps: %s", os.listdir(output))
    return job, json.loads(done.out())


def of_ranks(job):
    """@return {rank: (number of its node in the index, events, process)}: those that torch was in"""
    found = {}
    for number in range(len(job.index.nodes)):
        dump, events = job.of_node(number)
        for process in dump.processes.values():
            if process.rank >= 0 and any(source.id == kTorch for source in process.sources):
                check(process.rank not in found, "rank %d is in two dumps, or twice in one", process.rank)
                found[process.rank] = (number, events, process)
    return found


def check_ranks(training, job, told):
    """All ranks are captured, each on its node. @return of_ranks()"""
    names, tasks = training.slurm.names, training.ranks // len(training.slurm.names)
    there = [(each["node"], each["rank"], each["verdict"], each["lost"]) for each in told["processes"] if each["events"] > 0]
    check(sorted(there) == sorted((name, tasks * n + t, "captured", 0) for n, name in enumerate(names) for t in range(tasks)),
          "of the ranks it says %s", told["processes"])
    ranks = of_ranks(job)
    check(sorted(ranks) == list(range(training.ranks)), "ranks in the dumps: %s", sorted(ranks))
    return ranks


def check_spread(job, ranks):
    """Their first records, by clocks that the index puts right, are near each other."""
    first = {rank: min(job.leader_ns(number, r.begin) for r in events.ranges if r.process == process.index)
             for rank, (number, events, process) in ranks.items()}
    spread = max(first.values()) - min(first.values())
    check(spread < kMostSpreadNs, "the first records of the ranks are %g ms apart: %s", spread / 1e6, first, failure=OffInTime)
    return spread


def check_iterations(job, wanted):
    """Each rank's iterations are those that were asked for: by the records between the ticks that its dump names, and by what a reader then shows."""
    ranks, begins = of_ranks(job), {}
    for rank, (number, events, process) in ranks.items():
        kept = events.iterations[process.index]
        check((kept.asked, kept.count) == (wanted, wanted), "rank %d has %d iterations of %d", rank, kept.count, kept.asked)
        marks = sorted((m[4], m[5]) for m in events.marks if m[0] == "iteration" and m[1] == process.index and m[9] == kTorch)
        inside = [(ticks, value) for ticks, value in marks if kept.begin_ticks <= ticks <= kept.end_ticks]
        check([ticks for ticks, _ in inside][::wanted] == [kept.begin_ticks, kept.end_ticks] and
              [value for _, value in inside] == list(range(kept.first, kept.first + wanted + 1)),
              "rank %d: %d boundaries from %d on between %d and %d: %s", rank, wanted + 1, kept.first, kept.begin_ticks, kept.end_ticks, marks)
        begins[rank] = job.leader_ns(number, kept.begin_ticks)
    job.trim()
    for rank, (_, events, process) in ranks.items():
        for name in (kStep, kForward):
            shown = sum(r.name == name and r.process == process.index for r in events.ranges)
            check(shown == wanted, "rank %d: of its %d iterations %d times %s is shown", rank, wanted, shown, name)
    return max(begins.values()) - min(begins.values())


def one_job(slurm, host=None):
    """A job of six ranks, captured for a time and for some iterations."""
    training = Training(slurm, "training")
    job, told = trace(training, "for-a-time", "--duration", "400ms", host=host)
    spread = check_spread(job, check_ranks(training, job, told))
    print("400 ms: %d ranges, first records within %.3f ms, clocks within %.3f ms" % (
        job.counts()["ranges"], spread / 1e6, told["clock_bound_ns"] / 1e6), flush=True)
    job, told = trace(training, "iterations", "--iterations", str(kIterations), host=host)
    spread = check_spread(job, check_ranks(training, job, told))
    apart = check_iterations(job, kIterations)
    print("%d iterations of each rank, begun within %.3f ms; first records within %.3f ms" % (kIterations, apart / 1e6, spread / 1e6), flush=True)
    training.end()
    wait_until("the job's end", lambda: not slurm.jobs())
    ended = slurm.ended_as(training.job)
    check(ended == ("COMPLETED", "0:0"), "the job ended as %s", ended)


def one_host(workspace):
    slurm = Slurm(workspace, kNodes)
    one_job(slurm)
    check(job_directories(workspace) == [], "left: %s", job_directories(workspace))


def on_hosts(workspace, shared_home):
    slurm = HostSlurm(workspace, shared_home)
    # Whoever asks is on a host of the job, and not the controller's.
    one_job(slurm, host=slurm.hosts[2])
    check(not any(slurm.job_directories().values()), "left: %s", slurm.job_directories())
    check(slurm.rendezvous() == [], "left in ~/.ringside/jobs: %s", slurm.rendezvous())


def ends(workspace):
    """With status 0, with 3, by scancel: each as without us, once traced and once not."""
    ends_on(Slurm(workspace, kNodes))
    wait_until("the directories to go", lambda: job_directories(workspace) == [])


def ends_on(slurm):
    for name, options, status in (("well", [], 0), ("three", ["--exit-with", "3"], 3), ("cancelled", [], None)):
        told = []
        for wrapped in (False, True):
            training = Training(slurm, "%s-%s" % (name, "wrapped" if wrapped else "bare"), *options, wrapped=wrapped)
            if wrapped:
                job, captured = trace(training, name, "--iterations", str(kIterations))
                check_ranks(training, job, captured)
                check_iterations(job, kIterations)
            if status is None:
                slurm.ask("scancel", training.job)
                training.child.wait(expect=None)
            else:
                training.end(expect=status)
            wait_until("the job's end", lambda: not slurm.jobs())
            told.append((training.child.process.returncode, told_of_tasks(training.child.err()), slurm.ended_as(training.job)))
        check(told[0] == told[1], "%s: it ends as %s, through ringside-wrap as %s", name, *told)
        print("%s: %s" % (name, told[1]), flush=True)


kCases = {"one_host": one_host, "shared_home": lambda workspace: on_hosts(workspace, True), "private_homes": lambda workspace: on_hosts(workspace, False),
          "ends": ends}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(kCases[sys.argv[1]], "ddp-" + sys.argv[1], limit_s=300)
