"""Hosts on one machine, in namespaces of their own: name, address, /dev/shm, monotonic clock; a switch with delays between them.

A host is held by one process in its namespaces (name, mounts, IPC, time, network); others join it by `prefix`. All of it goes with the workspace's children,
but for the network namespaces, which leave with Hosts.close(). sch_netem is not in every kernel, so the delays are a process's (switch.py).
"""
import contextlib
import os
import shutil
import signal
import subprocess
import sys

from harness import kCommand, kSource, wait_until

kNetwork = "10.77.0.%d"
kFirstAddress = kNetwork % 1
kPort = 7411
kMonotonicAhead = 1000  # seconds from one host to the next


def what_is_missing():
    """Why no hosts can be made here, or None."""
    missing = [tool for tool in ("ip", "nsenter", "unshare", "ethtool") if shutil.which(tool) is None]
    if missing:
        return "no %s here (tools/setup --all installs it)" % ", ".join(missing)
    if os.geteuid() != 0:
        return "hosts of its own need root for their namespaces"
    namespace = "rs%dtry" % (os.getpid() % 100000)
    for attempt in (["unshare", "--uts", "--mount", "--ipc", "--time", "true"], ["ip", "netns", "add", namespace],
                    ["ip", "-n", namespace, "link", "add", "name", "try0", "type", "veth", "peer", "name", "try1"], ["ip", "netns", "del", namespace]):
        done = subprocess.run(attempt, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
            return "no hosts in namespaces here: `%s`: %s" % (" ".join(attempt), done.stderr.strip())
    return None


def _run(*words):
    subprocess.run(words, check=True, capture_output=True)


class Host:
    def __init__(self, number, namespace, holder, key):
        self.number, self.namespace = number, namespace
        self.name = "node%d" % number
        self.address = kNetwork % (number + 1)
        self.endpoint = "tcp://%s:%d" % (self.address, kPort)
        self.prefix = ["nsenter", "--target", str(holder), "--net", "--uts", "--mount", "--ipc", "--time"]
        self.environment = {"RINGSIDE_KEY": key, "TP_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0"}
        self._holder = holder

    def let_go(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._holder, signal.SIGTERM)

    def seen(self, path):
        """A path of this host as we see it."""
        return "/proc/%d/root%s" % (self._holder, path)


class Hosts:
    def __init__(self, workspace, count, delays_ms):
        self.hosts = []
        self._namespaces = []
        workspace.on_leave(self._let_go)
        workspace.on_exit(self.close)
        self.key = workspace.path("key")
        workspace.run("keygen", [kCommand, "keygen", "-o", self.key])
        links = ["rs%dw%d" % (os.getpid() % 100000, n) for n in range(count)]
        for number, link in enumerate(links):
            self._network(number, link)
        workspace.start("switch", [sys.executable, os.path.join(kSource, "tests", "integration", "switch.py"), ",".join(links),
                                   *("%d-%d:%g" % (*way, ms) for way, ms in delays_ms.items())])
        for number in range(count):
            self.hosts.append(self._host(workspace, number))

    def _network(self, number, link):
        namespace = "rs%dh%d" % (os.getpid() % 100000, number)
        _run("ip", "netns", "add", namespace)
        self._namespaces.append(namespace)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        _run("ip", "link", "set", link, "up")
        inside = ("ip", "-n", namespace)
        _run(*inside, "addr", "add", kNetwork % (number + 1) + "/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _run(*inside, "link", "set", device, "up")
        # The switch hands packets on as they are: they must be whole and have their checksums.
        off = ("tx", "off", "tso", "off", "gso", "off", "gro", "off")
        _run("ip", "netns", "exec", namespace, "ethtool", "-K", "eth0", *off)
        _run("ethtool", "-K", link, *off)

    def _host(self, workspace, number):
        namespace, ahead = self._namespaces[number], str(number * kMonotonicAhead)
        there = workspace.path("host%d.pid" % number)
        script = 'hostname node%d && mount -t tmpfs tmpfs /dev/shm && echo $$ > "$1.part" && mv "$1.part" "$1" && exec sleep infinity' % number
        child = workspace.start("host%d" % number, [
            "nsenter", "--net=/run/netns/" + namespace, "unshare", "--uts", "--mount", "--ipc", "--time", "--monotonic", ahead, "--boottime", ahead,
            "--fork", "--kill-child", "sh", "-c", script, "sh", there])
        wait_until("host %d" % number, lambda: os.path.exists(there), children=[child])
        with open(there) as text:
            return Host(number, namespace, int(text.read()), self.key)

    def _let_go(self):
        """Ends the holders; unshare above each ends with its own, and by no signal before."""
        for host in self.hosts:
            host.let_go()

    def close(self):
        for namespace in self._namespaces:
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
        self._namespaces = []
