"""A real Slurm on this machine, for one test: munged, slurmctld and some slurmd, each a node, with ports and folders of their own. Nothing of
a Slurm that the machine has is read or touched."""
import os
import shutil
import socket
import subprocess
import time

from harness import check, skip, wait_until

kPrograms = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "squeue", "sinfo")

kConfiguration = """\
ClusterName=ringside-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType={proctrack}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=5
InactiveLimit=0
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    """Free now, and different ones."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Slurm:
    def __init__(self, workspace, nodes=3, cpus=8, proctrack="proctrack/linuxproc"):
        missing = [program for program in kPrograms if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
        if missing:
            skip("no %s here (tools/setup --all installs Slurm)" % ", ".join(missing))
        if os.geteuid() != 0:
            skip("a Slurm of one's own needs root")
        self.workspace = workspace
        self.folder = workspace.path("slurm")
        self.names = ["n%d" % (i + 1) for i in range(nodes)]
        for part in ["munge", "state", "log"] + ["spool/" + name for name in self.names]:
            os.makedirs(os.path.join(self.folder, part), mode=0o755)
        # munged wants no directory above its socket that others may write to, but for those with the sticky bit.
        os.chmod(workspace.disk, 0o755)
        key = os.path.join(self.folder, "munge.key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(key, 0o400)
        controller, *ports = free_ports(nodes + 1)
        lines = ["NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=%d RealMemory=1000 State=UNKNOWN" % (name, socket.gethostname(), port, cpus)
                 for name, port in zip(self.names, ports)]
        configuration = os.path.join(self.folder, "slurm.conf")
        with open(configuration, "w") as file:
            file.write(kConfiguration.format(host=socket.gethostname(), controller=controller, port=ports[0], folder=self.folder,
                                             proctrack=proctrack, nodes="\n".join(lines)))
        self.environment = dict({name: value for name, value in os.environ.items() if not name.startswith("SLURM_")},
                                SLURM_CONF=configuration, PATH="/usr/sbin:/usr/bin:/sbin:/bin", RINGSIDE_DIR=workspace.root)
        # A home of the test's own: agents keep a key there, and note where they listen. That is loopback.
        self.environment.update(HOME=workspace.path("home"), RINGSIDE_ADDRESS="127.0.0.1")
        os.makedirs(self.environment["HOME"], exist_ok=True)
        self.environment.pop("RINGSIDE_JOB", None)
        self.environment.pop("RINGSIDE_NODE", None)
        self.pids = []
        workspace.on_exit(self.stop)
        self._daemon("munged", "--key-file=" + key, "--socket=%s/munge/munge.sock" % self.folder, "--pid-file=%s/munge/munged.pid" % self.folder,
                     "--log-file=%s/munge/munged.log" % self.folder, "--seed-file=%s/munge/seed" % self.folder, "--force",
                     pid_file="munge/munged.pid")
        self._daemon("slurmctld", "-c", "-f", configuration, pid_file="slurmctld.pid")
        for name in self.names:
            self._daemon("slurmd", "-N", name, "-f", configuration, pid_file="slurmd-%s.pid" % name)
        wait_until("the nodes to be idle", lambda: self.ask("sinfo", "-h", "-N", "-o", "%t").split().count("idle") == nodes)

    def _daemon(self, *words, pid_file):
        # What the daemons start inherits nothing of ours: a task gets its environment from srun.
        environment = {name: value for name, value in self.environment.items() if name != "RINGSIDE_DIR"}
        done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 0, "%s: it can't be started: %s", words[0], done.stderr)
        path = os.path.join(self.folder, pid_file)

        def pid():
            try:
                with open(path) as file:
                    return int(file.read())
            except (OSError, ValueError):
                return 0
        self.pids.append(wait_until("%s's pid" % words[0], pid))

    def ask(self, *words):
        return subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout

    def srun(self, name, *words, environment=None):
        return self.workspace.start(name, ["srun", "--overcommit", *words], dict(self.environment, **(environment or {})))

    def jobs(self):
        return self.ask("squeue", "-h", "-o", "%i %T").split("\n")[:-1]

    def await_job(self, children=()):
        """@return the id of the one job, once it runs"""
        def running():
            jobs = [job.split() for job in self.jobs()]
            return [job for job, state in jobs if state == "RUNNING"]
        return wait_until("a job to run", running, children=children)[0]

    def stop(self):
        """Jobs first: a stepd that can't tell its controller of its end stays for minutes."""
        end = time.monotonic() + 30
        for job in self.jobs():
            self.ask("scancel", job.split()[0])
        while time.monotonic() < end and (self.jobs() or self._stepds()):
            time.sleep(0.05)
        for pid in reversed(self.pids):
            try:
                os.kill(pid, 15)
            except ProcessLookupError:
                continue
            while time.monotonic() < end and _lives(pid):
                time.sleep(0.02)

    def _stepds(self):
        """slurmstepd of our daemons: they have their configuration's folder open."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/comm" % pid) as comm, open("/proc/%s/environ" % pid, "rb") as environment:
                    if comm.read().startswith("slurmstepd") and self.folder.encode() in environment.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found


def _lives(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
