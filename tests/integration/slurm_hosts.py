"""A Slurm whose three nodes are hosts of their own (hosts.py): one slurmd each, the controller on the first. Their home is one that all share, or each has its
own, in which there is nothing but the key."""
import os
import shutil
import subprocess

from harness import skip
from hosts import Hosts, what_is_missing
from slurm_host import Slurm

kDelaysMs = {(0, 1): 0.5, (1, 0): 1, (0, 2): 1, (2, 0): 0.5, (1, 2): 0.5, (2, 1): 0.5}


class HostSlurm(Slurm):
    def __init__(self, workspace, shared_home, **options):
        missing = what_is_missing()
        if missing:
            skip(missing)
        self.made = Hosts(workspace, 3, kDelaysMs)
        for host in self.made.hosts:
            # The job directories' root is in each host's own /dev/shm.
            os.makedirs(host.seen(workspace.root), mode=0o700)
        super().__init__(workspace, hosts=self.made.hosts, **options)
        if shared_home:
            put_key(self.made.key, self.home)
        for host in [] if shared_home else self.made.hosts:
            subprocess.run([*host.prefix, "mount", "-t", "tmpfs", "-o", "mode=755", "home", self.home], check=True)
            put_key(self.made.key, host.seen(self.home))
        self.environment.update(GLOO_SOCKET_IFNAME="eth0", TP_SOCKET_IFNAME="eth0", MASTER_ADDR=self.made.hosts[0].address)

    def job_directories(self):
        """@return {host: names}"""
        return {host.name: sorted(f for f in os.listdir(host.seen(self.workspace.root)) if f[0].isdigit()) for host in self.hosts}

    def rendezvous(self):
        """What agents have written down of themselves in the homes, as paths beneath ~/.ringside/jobs."""
        found = set()
        for host in self.hosts:
            jobs = host.seen(os.path.join(self.home, ".ringside", "jobs"))
            found.update(os.path.relpath(os.path.join(folder, name), jobs) for folder, folders, names in os.walk(jobs) for name in folders + names)
        return sorted(found)


def put_key(key, home):
    folder = os.path.join(home, ".ringside")
    os.makedirs(folder, mode=0o700)
    shutil.copy(key, os.path.join(folder, "key"))
    os.chmod(os.path.join(folder, "key"), 0o600)
