#!/usr/bin/python3
"""Tasks that other launchers start through ringside-wrap: Open MPI's mpirun, torchrun. One agent on the node, all ranks captured, the launcher's own end.

    launchers.py mpirun PROGRAM | torchrun
"""
import json
import os
import shutil
import sys

from harness import check, free_port, kPython, kWorkloads, main, skip, wait_until
from rsd.index import Job
from slurm import kWrap

kRanks = 4


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


def mpirun(workspace):
    launcher = shutil.which("mpirun.openmpi")
    if launcher is None:
        skip("no mpirun.openmpi here (tools/setup --all installs openmpi-bin)")
    for status in (0, 3):
        leave = workspace.path("leave.%d" % status)
        script = "%s %s.$OMPI_COMM_WORLD_RANK 1 1000000 & while [ ! -e %s ]; do sleep 0.05; done; kill $!; wait; exit %d" % (
            sys.argv[2], workspace.path("numbers-%d" % status), leave, status)
        child = workspace.start("mpirun-%d" % status, [launcher, "--allow-run-as-root", "--oversubscribe", "-np", str(kRanks), kWrap, "sh", "-c", script],
                                environment_of(workspace))
        wait_until("the ranks", lambda: all(os.path.exists(workspace.path("numbers-%d.%d" % (status, rank))) for rank in range(kRanks)), children=[child])
        check_captured(workspace, "mpirun-%d" % status, kRanks)
        open(leave, "w").close()
        child.wait(expect=status)
        if status != 0:
            # mpirun kills the others then: it may be that nobody is left who would take the directory away.
            wait_until("the agent's end", lambda: not any("agent.sock" in names for _, _, names in os.walk(workspace.root)))
            left = [name for _, _, names in os.walk(workspace.root) for name in names]
            check(not [name for name in left if name.replace(".", "").isdigit()], "segments stay: %s", left)
            for name in os.listdir(workspace.root):
                shutil.rmtree(os.path.join(workspace.root, name))
        nothing_stays(workspace)


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


kCases = {"mpirun": mpirun, "torchrun": torchrun}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in kCases:
        sys.exit(__doc__)
    main(kCases[sys.argv[1]], sys.argv[1], limit_s=200)
