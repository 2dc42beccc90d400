#!/usr/bin/python3
"""Tasks that other launchers start through ringside-wrap: Open MPI's mpirun, on this host and over the nodes of a Slurm's job, and torchrun. One agent a node,
all ranks captured, the launcher's own end.

    launchers.py mpirun PROGRAM | nodes PROGRAM | torchrun
"""
import json
import os
import shlex
import shutil
import sys

from harness import check, free_port, kPython, kWorkloads, main, skip, wait_until
from rsd.index import Job
from slurm import in_trace, job_directories, kWrap
from slurm_host import Slurm

kRanks = 4
kNodes, kTasks = 3, 2
kLong = "6s"  # after which of all the tasks on a node that could have said a word each one has


def environment_of(workspace):
    home = workspace.path("home")
    os.makedirs(home, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "RINGSIDE_"))}
    return dict(kept, RINGSIDE_DIR=workspace.root, HOME=home, RINGSIDE_ADDRESS="127.0.0.1", GLOO_SOCKET_IFNAME="lo")


def the_job(workspace):
    """@return the one job directory's name"""
    found = [name for name in os.listdir(workspace.root) if os.path.isdir(os.path.join(workspace.root, name))]
    check(len(found) == 1, "job directories: %s", found)
    return found[0]


def check_captured(workspace, name, ranks):
    """One agent has all of them. @return the job's name"""
    job, output = the_job(workspace), workspace.path("traced-" + name)
    done = workspace.ringside("trace", "--job", job, "--duration", "300ms", "-o", output, "--json", environment=environment_of(workspace))
    read, told = Job(output), json.loads(done.out())
    check(not read.problems() and len(read.dumps) == 1, "%d dumps; the reader: %s", len(read.dumps), "; ".join(read.problems()))
    there = sorted((each["rank"], each["verdict"]) for each in told["processes"] if each["events"] > 0 and each["rank"] >= 0)
    check(there == [(rank, "captured") for rank in range(ranks)], "of %d ranks it says %s", ranks, told["processes"])
    print("%s: job %s, %d ranks captured by one agent" % (name, job, ranks), flush=True)


def nothing_stays(workspace):
    wait_until("the directory to go", lambda: not os.listdir(workspace.root))


class Ranks:
    """What mpirun starts: each rank marks numbers until it may leave, and ends with `status`."""

    def __init__(self, workspace, name, ranks, status):
        self.workspace, self.name, self.ranks, self.status = workspace, name, ranks, status
        self.leave = workspace.path("leave-" + name)

    def command(self, *options):
        launcher = shutil.which("mpirun.openmpi")
        if launcher is None:
            skip("no mpirun.openmpi here (tools/setup --all installs openmpi-bin)")
        script = "%s %s.$OMPI_COMM_WORLD_RANK 1 1000000 & while [ ! -e %s ]; do sleep 0.05; done; kill $!; wait; exit %d" % (
            sys.argv[2], self.workspace.path("numbers-" + self.name), self.leave, self.status)
        return [launcher, "--allow-run-as-root", "-np", str(self.ranks), *options, kWrap, "sh", "-c", script]

    def await_all(self, child):
        wait_until("the ranks", lambda: all(os.path.exists(self.workspace.path("numbers-%s.%d" % (self.name, rank))) for rank in range(self.ranks)),
                   children=[child])

    def end(self, child):
        open(self.leave, "w").close()
        child.wait(expect=self.status)
        # mpirun kills the others where one has failed: then nobody but the agent is left who would take the directory away.
        nothing_stays(self.workspace)


def mpirun(workspace):
    for status in (0, 3):
        ranks = Ranks(workspace, "mpirun-%d" % status, kRanks, status)
        child = workspace.start(ranks.name, ranks.command("--oversubscribe"), environment_of(workspace))
        ranks.await_all(child)
        check_captured(workspace, ranks.name, kRanks)
        ranks.end(child)


def nodes(workspace):
    """mpirun starts a daemon on each node by srun, and that the ranks: their Slurm variables are the daemon's. mpirun itself is on a node (sbatch) or not (salloc)."""
    slurm = Slurm(workspace, kNodes)
    placed = ("--map-by", "slot", "--bind-to", "none")
    for how, starter in (("sbatch", ("sbatch", "--wait", "-o", workspace.path("out", "batch-%j"), "--wrap")), ("salloc", ("salloc",))):
        for status in (0, 3):
            ranks = Ranks(workspace, "%s-%d" % (how, status), kNodes * kTasks, status)
            command = ranks.command(*placed)
            child = workspace.start(ranks.name, [starter[0], "-N%d" % kNodes, "--ntasks-per-node=%d" % kTasks, *starter[1:],
                                                 *([shlex.join(command)] if how == "sbatch" else command)], slurm.environment)
            ranks.await_all(child)
            job = slurm.await_job([child])
            check(job_directories(workspace) == ["%s.%s" % (job, name) for name in slurm.names], "job directories: %s", job_directories(workspace))
            read, told = in_trace(workspace, slurm, job, "traced-" + ranks.name, "300ms" if status else kLong)
            there = sorted((each["node"], each["rank"], each["verdict"]) for each in told["processes"] if each["events"] > 0)
            check(there == [(name, kTasks * n + t, "captured") for n, name in enumerate(slurm.names) for t in range(kTasks)], "of the ranks it says %s", told["processes"])
            in_dumps = sorted((dump.header.node, dump.processes[process].rank) for dump in read.dumps for process, _ in dump.lanes)
            check(in_dumps == [(node, rank) for node, rank, _ in there], "in the dumps: %s", in_dumps)
            ranks.end(child)
            wait_until("the job's end", lambda: not slurm.jobs())
            check(slurm.ended_as(job) == ("FAILED" if status else "COMPLETED", "%d:0" % status), "Slurm says that it ended as %s", slurm.ended_as(job))
            print("%s: job %s, %d ranks captured on %d nodes" % (how, job, len(there), len(read.dumps)), flush=True)


def torchrun(workspace):
    """Each worker through ringside-wrap; and torchrun itself."""
    # PyTorch 1.13 on Python 3.11 does not know its own default of the two.
    launcher = [kPython, "-W", "ignore", "-m", "torch.distributed.run", "--redirects", "1", "--tee", "1", "--log_dir", workspace.path("logs"),
                "--nproc_per_node", "2", "--master_port"]
    worker = [kPython, "-W", "ignore", os.path.join(kWorkloads, "ddp_job.py")]
    for name, outer, inner in (("workers", [], [kWrap]), ("launcher", [kWrap], [])):
        folder = workspace.path(name)
        os.makedirs(folder)
        child = workspace.start(name, [*outer, *launcher, str(free_port()), "--no_python", *inner, *worker, "--say", folder, "--until",
                                       os.path.join(folder, "until")], environment_of(workspace))
        wait_until("the training", lambda: all(os.path.exists(os.path.join(folder, "training.%d" % rank)) for rank in range(2)), children=[child])
        check_captured(workspace, name, 2)
        open(os.path.join(folder, "until"), "w").close()
        child.wait()
        nothing_stays(workspace)


kCases = {"mpirun": mpirun, "nodes": nodes, "torchrun": torchrun}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(kCases[sys.argv[1]], sys.argv[1], limit_s=200)
