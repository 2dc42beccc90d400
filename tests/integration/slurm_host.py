"""A real Slurm on this machine, for one test: munged, slurmctld and some slurmd, each a node, with ports and folders of their own; all on this host, or
each node on one of hosts.Hosts, the controller on the first. Nothing of a Slurm that the machine has is read or touched, nor is the user's home."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time

from harness import Failed, check, skip, wait_until

kPrograms = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "squeue", "sinfo")

kConfiguration = """\
ClusterName=ringside-test
SlurmctldHost={host}({address})
SlurmctldPort={controller}
SlurmdPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS={folder}/spool/%n
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
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
KillWait=5
InactiveLimit=0
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

# Of cgroups v1, which may be mounted beside a v2 that Slurm would take.
kCgroups = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n"
kStopS = 40


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
    def __init__(self, workspace, nodes=3, cpus=8, proctrack="proctrack/linuxproc", hosts=None):
        """@param hosts  hosts.Host, a node each; None: `nodes` of them on this host"""
        missing = [program for program in kPrograms if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
        if missing:
            skip("no %s here (tools/setup --all installs Slurm)" % ", ".join(missing))
        if os.geteuid() != 0:
            skip("a Slurm of one's own needs root")
        self.workspace, self.hosts = workspace, hosts
        self.folder = workspace.path("slurm")
        self.names = [host.name for host in hosts] if hosts else ["n%d" % (i + 1) for i in range(nodes)]
        self.home = workspace.path("home")
        for part in [self.home] + [os.path.join(self.folder, part) for part in ["munge", "state", "log"] + ["spool/" + name for name in self.names]]:
            os.makedirs(part, mode=0o755)
        # munged wants no directory above its socket that others may write to, but for those with the sticky bit.
        os.chmod(workspace.disk, 0o755)
        configuration = self._configure(cpus, proctrack)
        self.environment = dict({name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "RINGSIDE_"))},
                                SLURM_CONF=configuration, PATH="/usr/sbin:/usr/bin:/sbin:/bin", RINGSIDE_DIR=workspace.root, HOME=self.home)
        if not hosts:
            self.environment["RINGSIDE_ADDRESS"] = "127.0.0.1"  # where agents listen
        self.pids = {}
        workspace.on_leave(self.stop)
        key = os.path.join(self.folder, "munge.key")
        with open(key, "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(key, 0o400)
        self._daemon("munged", "--key-file=" + key, "--socket=%s/munge/munge.sock" % self.folder, "--pid-file=%s/munge/munged.pid" % self.folder,
                     "--log-file=%s/munge/munged.log" % self.folder, "--seed-file=%s/munge/seed" % self.folder, "--force",
                     pid_file="munge/munged.pid")
        self._daemon("slurmctld", "-c", "-f", configuration, pid_file="slurmctld.pid")
        for number, name in enumerate(self.names):
            self._daemon("slurmd", "-N", name, "-f", configuration, pid_file="slurmd-%s.pid" % name, host=hosts and hosts[number])
        wait_until("the nodes to be idle", lambda: self.ask("sinfo", "-h", "-N", "-o", "%t").split().count("idle") == len(self.names))

    def _configure(self, cpus, proctrack):
        """@return the configuration's path"""
        controller, *ports = free_ports(len(self.names) + 1)
        places = [(socket.gethostname(), "127.0.0.1", port) for port in ports]
        if self.hosts:
            places = [(host.name, host.address, ports[0]) for host in self.hosts]
        lines = ["NodeName=%s NodeHostname=%s NodeAddr=%s Port=%d CPUs=%d RealMemory=1000 State=UNKNOWN" % (name, *place, cpus)
                 for name, place in zip(self.names, places)]
        configuration = os.path.join(self.folder, "slurm.conf")
        with open(configuration, "w") as file:
            file.write(kConfiguration.format(host=places[0][0], address=places[0][1], controller=controller, port=ports[0], folder=self.folder,
                                             proctrack=proctrack, nodes="\n".join(lines)))
        with open(os.path.join(self.folder, "cgroup.conf"), "w") as file:
            file.write(kCgroups)
        return configuration

    @property
    def prefix(self):
        """Before a command that speaks to the controller."""
        return self.hosts[0].prefix if self.hosts else []

    def _daemon(self, *words, pid_file, host=None):
        # What the daemons start inherits nothing of ours: a task gets its environment from srun.
        environment = {name: value for name, value in self.environment.items() if name != "RINGSIDE_DIR"}
        done = subprocess.run([*(host.prefix if host else self.prefix), *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        check(done.returncode == 0, "%s: it can't be started: %s", words[0], done.stderr)
        path = os.path.join(self.folder, pid_file)

        def pid():
            try:
                with open(path) as file:
                    return int(file.read())
            except (OSError, ValueError):
                return 0
        self.pids[pid_file] = wait_until("%s's pid" % words[0], pid)

    def ask(self, *words):
        done = subprocess.run([*self.prefix, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=kStopS)
        check(done.returncode == 0, "`%s` ended with %d: %s", " ".join(words), done.returncode, done.stderr)
        return done.stdout

    def srun(self, name, *words, environment=None):
        return self.workspace.start(name, [*self.prefix, "srun", "--overcommit", *words], dict(self.environment, **(environment or {})))

    def jobs(self):
        return self.ask("squeue", "-h", "-o", "%i %T").split("\n")[:-1]

    def await_job(self, children=()):
        """@return the id of the one job, once it runs"""
        def running():
            jobs = [job.split() for job in self.jobs()]
            return [job for job, state in jobs if state == "RUNNING"]
        return wait_until("a job to run", running, children=children)[0]

    def ended_as(self, job):
        """What the controller says of a job that has ended, as (state, exit code)."""
        words = dict(word.split("=", 1) for word in self.ask("scontrol", "-o", "show", "job", job).split() if "=" in word)
        return words["JobState"], words["ExitCode"]

    def stop(self):
        """Jobs first: a stepd that can't tell its controller of its end stays for minutes. What never came up, or has been stopped already, is passed over."""
        end = time.monotonic() + kStopS
        with contextlib.suppress(Failed, subprocess.TimeoutExpired):
            while _lives(self.pids.get("slurmctld.pid", 0)) and time.monotonic() < end and (self.jobs() or self.processes("slurmstepd")):
                for job in self.jobs():
                    self.ask("scancel", job.split()[0])
                time.sleep(0.1)
        for number in (signal.SIGTERM, signal.SIGKILL):
            # slurmd before its controller, and that before munged.
            for daemon in ("slurmstepd", "slurmd", "slurmctld", "munged"):
                left = self.processes(daemon)
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                limit = time.monotonic() + 10
                while time.monotonic() < limit and any(map(_lives, left)):
                    time.sleep(0.02)

    def processes(self, name):
        """Pids of our daemons and stepds of that name, which the configuration's folder in their environment tells."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/comm" % pid) as comm, open("/proc/%s/environ" % pid, "rb") as environment:
                    if comm.read().strip() == name and self.folder.encode() in environment.read():
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
