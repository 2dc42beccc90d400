#!/usr/bin/python3
"""A live agent with a live job under attack, over its socket file and over tcp with a key: it lives, stays small, goes on answering, and the capture that
runs meanwhile is whole.

    attack.py attack [ROUNDS]       all that attack_client.py knows, so many times
    attack.py names                 captures named `../..`, absolute or by a link: nothing is written outside of the output root
    attack.py other_user            another user at the socket, the segments, the keys, and tcp on loopback
"""
import contextlib
import functools
import os
import re
import shutil
import subprocess
import threading
import time

from fault import check, kAgent, kCommand, kWriter, lanes_by_thread, Node, ranges_by_thread, read, run, skip, Trace, wait_until, written

try:
    import attack_client
except ImportError:
    skip("no zmq for /usr/bin/python3 here (tools/setup --all installs python3-zmq)")
from attack_client import Dealer, raw, zmq
from control_frames import Messages
from harness import free_port

kMostGrowthKib = 20 * 1000 * 1000 // 1024  # at any time, of what was resident before the attacks
kMostWaitS = 5
kIdle = 300
kRecords = 200000
kNobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


class Target:
    """An agent: its process and how it is reached."""

    def __init__(self, agent, path=None, port=None, keys=None):
        self.agent, self.path, self.port, self.keys = agent, path, port, keys
        self.endpoint = "tcp://127.0.0.1:%d" % port if port else "ipc://" + path

    def kib(self, field="VmRSS"):
        with open("/proc/%d/status" % self.agent.pid) as file:
            return int(re.search(field + r":\s+(\d+)", file.read()).group(1))

    def forget_peak(self):
        """From here on VmHWM is what was resident at most."""
        with open("/proc/%d/clear_refs" % self.agent.pid, "w") as file:
            file.write("5")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.agent.pid))

    def answered(self):
        """Requests for its processes, which the poller has none of, that its audit has noted."""
        return self.agent.err().count(" request=ProcessesRequest result=ok")

    def noted_parts(self):
        return self.agent.err().count("a message of more than one part")

    def refused_keys(self):
        return self.agent.err().count("it holds another key")


class Poller(threading.Thread):
    """A client like any other, which asks all the time; how long each answer took."""

    def __init__(self, target):
        super().__init__()
        self.target, self.ends, self.seconds, self.wrong = target, threading.Event(), [], None

    def run(self):
        with Dealer(self.target) as dealer:
            while not self.ends.wait(0.02) and self.wrong is None:
                began = time.monotonic()
                try:
                    dealer.ask(self.target.status, 2 * kMostWaitS)
                except AssertionError as wrong:
                    self.wrong = wrong
                self.seconds.append(time.monotonic() - began)

    def look(self, meanwhile):
        check(self.wrong is None, "%s: %s, who asks beside it is not answered: %s", self.target.endpoint, meanwhile, self.wrong)

    def end(self):
        self.ends.set()
        self.join()
        return sorted(self.seconds)


def make_messages(workspace):
    folder = workspace.path("messages")
    os.makedirs(folder)
    messages = Messages(folder)
    messages.make_once = functools.cache(messages.make)
    return messages


def tcp_agent(workspace):
    """An agent of its own with a key, on loopback."""
    key, port = workspace.path("key"), free_port()
    workspace.ringside("keygen", "-o", key)
    with open(key) as file:
        _, public, secret = (line.strip().encode() for line in file)
    agent = workspace.start("agent-tcp", [kAgent, "--dir", os.path.join(workspace.root, "tcp"), "--job", "job", "--node", "tcp", "--endpoint",
                                          "tcp://127.0.0.1:%d" % port, "--key", key, "--output", workspace.path("output", "tcp"), "--log-level", "debug"])
    wait_until("the tcp agent", lambda: subprocess.run([kCommand, "status", "--hosts", "127.0.0.1:%d" % port], capture_output=True,
                                                       env=dict(os.environ, RINGSIDE_KEY=key)).returncode == 0, children=[agent])
    return Target(agent, port=port, keys=(public, secret, public)), key


def idle(target, _):
    """Sockets that say nothing, more than an agent keeps, while others are answered."""
    connections = []
    for _ in range(kIdle):
        connections.append(raw(target))
    with Dealer(target) as dealer:
        dealer.ask(target.status, kMostWaitS)
    wait_until("idle sockets to be closed", lambda: target.descriptors() < kIdle // 2, children=[target.agent])
    for connection in connections:
        connection.close()


def strangers(target, messages):
    """Without a key, with another one, and with the public half alone."""
    if not target.port:
        return
    other_public, other_secret = zmq.curve_keypair()
    before, refused = target.answered(), target.refused_keys()
    clients = [Dealer(target, keys) for keys in (None, (other_public, other_secret, target.keys[0]), (other_public, other_secret, other_public))]
    for client in clients:
        with contextlib.suppress(zmq.Again):  # its connection has ended already; a send that waits would wait for ever
            client.socket.send(messages.make_once("ProcessesRequest"), zmq.NOBLOCK)
    with Dealer(target) as dealer:
        dealer.ask(target.status, kMostWaitS)
    # Without a key and with one for another agent it does not come as far as the gate: libzmq ends these.
    wait_until("the gate's refusal", lambda: target.refused_keys() > refused, children=[target.agent])
    for number, client in enumerate(clients):
        check(client.lost(), "stranger %d is still connected", number)
        check(not client.socket.poll(300), "a stranger was answered")
        client.__exit__()
    check(target.answered() == before, "a stranger's request was served")


def check_whole(capture, made):
    """@return what it has of the job's ranges, what its lanes say that they lost, and what the job says it has written: the sum"""
    ranges, lanes = ranges_by_thread(capture, "flood"), lanes_by_thread(capture)
    kept, lost, told = 0, 0, 0
    for thread, its in made.items():
        numbers = {one.payload for one in ranges[thread]}
        check(len(numbers) == len(ranges[thread]) and all(0 <= number < its.count for number in numbers), "thread %d: ranges twice, or that nobody made", thread)
        its_lost = sum(lane.lost for lane in lanes[thread])
        check(len(numbers) + its_lost == its.count, "thread %d: written %d, kept %d, lost %d", thread, its.count, len(numbers), its_lost)
        kept, lost, told = kept + len(numbers), lost + its_lost, told + its.count
    check(kept > 0, "the capture has nothing of %d", told)
    return kept, lost, told


def attack(workspace, rounds="1"):
    node = Node(workspace, "node", extra=["--log-level", "debug"])
    go, leave = workspace.path("go"), workspace.path("leave")
    job = workspace.start("job", node.job_command(kWriter, "flood", "1", str(kRecords), "60", go, leave), node.environment())
    wait_until("its segment", node.segments, children=[job])
    trace = Trace(workspace, [node], workspace.path("trace"))
    messages = make_messages(workspace)
    targets = [Target(node.agent, path=node.endpoint[len("ipc://"):]), tcp_agent(workspace)[0]]
    baselines = []
    for target in targets:
        target.status = messages.make_once("StatusRequest")
        with Dealer(target) as dealer:
            dealer.ask(target.status, kMostWaitS)
    with open(go, "w"):
        pass
    for target in targets:
        baselines.append((target.kib(), target.descriptors()))
    pollers = [Poller(target) for target in targets]
    for poller in pollers:
        poller.start()
    most = [(0, "")] * len(targets)
    try:
        for _ in range(int(rounds)):
            for one in (*attack_client.kAttacks, strangers, idle):
                for number, (target, (kib, _)) in enumerate(zip(targets, baselines)):
                    target.forget_peak()
                    one(target, messages)
                    check(target.agent.process.poll() is None, "%s ended its agent: %s", one.__name__, target.agent.tail())
                    pollers[number].look(one.__name__)
                    peak = target.kib("VmHWM")
                    most[number] = max(most[number], (peak, one.__name__))
                    check(peak - kib < kMostGrowthKib, "%s: %s grew from %d KiB to %d", one.__name__, target.endpoint, kib, peak)
                    with Dealer(target) as dealer:
                        dealer.ask(target.status, kMostWaitS)
    finally:
        seconds = [poller.end() for poller in pollers]
    for number, (target, (kib, descriptors)) in enumerate(zip(targets, baselines)):
        wait_until("descriptors as they were", lambda: target.descriptors() <= descriptors, children=[target.agent])
        waits = seconds[number]
        print("%s: resident %d KiB, then %d, %d at most (%s); descriptors %d, then %d; %d answers meanwhile, after %.1f ms (half of them), %.0f ms (99 in 100), "
              "%.0f ms (the last)" % (target.endpoint, kib, target.kib(), *most[number], descriptors, target.descriptors(), len(waits), waits[len(waits) // 2] * 1e3,
                                      waits[len(waits) * 99 // 100] * 1e3, waits[-1] * 1e3), flush=True)
        check(target.kib() - kib < kMostGrowthKib, "%s grew from %d KiB to %d", target.endpoint, kib, target.kib())
        check(waits[-1] < kMostWaitS, "%s: an answer took %.1f s", target.endpoint, waits[-1])
    wait_until("the job's work", lambda: "done" in job.out(), children=[job, node.agent])
    trace.end(expect=None)  # on a busy machine its lanes lose some, and count them
    kept, lost, made = check_whole(read(trace.output), written(job))
    print("the capture that ran meanwhile: written %d = kept %d + lost %d" % (made, kept, lost), flush=True)
    with open(leave, "w"):
        pass
    job.wait()
    node.stop()


def names(workspace):
    node = Node(workspace, "node")
    messages = make_messages(workspace)
    target = Target(node.agent, path=node.endpoint[len("ipc://"):])
    output, victim = workspace.path("output", "node"), workspace.path("victim")
    os.makedirs(output, mode=0o700, exist_ok=True)
    os.makedirs(victim)
    os.symlink(victim, os.path.join(output, "link"))
    os.symlink(os.path.join(victim, "new.rsd"), os.path.join(output, "node.rsd"))
    before = list(os.walk(victim))
    with Dealer(target) as dealer:
        for number, name in enumerate(("../../x", "..", "/etc/x", "a/../../x", "a/b", "link", "link/x", "link/../x", ".", "x\\u0000y", "x\\ny"), 1):
            for kind in ("PrepareRequest", "TraceRequest"):
                known = '"capture_id": %d, ' % (number + 100) if kind == "PrepareRequest" else '"duration_ms": 1, '
                dealer.socket.send(messages.make(kind, number, '{%s "name": "%s"}' % (known, name)))
                answer = b"nothing"
                while not (b"write dump" in answer or b"use letters" in answer):  # progress comes first
                    check(dealer.socket.poll(20000), "%s named %r: at last it answers %s", kind, name, answer)
                    answer = dealer.socket.recv()
    check(list(os.walk(victim)) == before and not os.path.exists("/etc/x"), "something was written outside: %s", list(os.walk(victim)))
    print("10 names and a link refused, for a capture and for a trace", flush=True)
    check(not workspace.json("status", "--hosts", node.endpoint)[0]["capturing"], "it captures")
    node.stop()


def other_user(workspace):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        skip("only root, with setpriv (util-linux), can be two users here")
    node = Node(workspace, "node")
    target = Target(node.agent, path=node.endpoint[len("ipc://"):])
    tcp, key = tcp_agent(workspace)
    target.status = tcp.status = make_messages(workspace).make("StatusRequest")
    go, leave = workspace.path("go"), workspace.path("leave")
    job = workspace.start("job", node.job_command(kWriter, "flood", "1", "10", "60", go, leave), node.environment())
    segment = os.path.join(node.root, "job", wait_until("its segment", node.segments, children=[job])[0])

    def as_nobody(*words):
        return subprocess.run([*kNobody, *words], capture_output=True, text=True, cwd="/", env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})

    def refused(what, words, *said):
        done = as_nobody(*words)
        check(done.returncode != 0 and any(word in done.stderr for word in said), "%s by another user: %d, %s%s", what, done.returncode, done.stdout, done.stderr)
        print("%s: %s" % (what, done.stderr.strip()[-160:]), flush=True)

    os.chmod(workspace.disk, 0o711)
    modes = {"directories of mode 0700": (), "directories that somebody has opened": (workspace.root, node.root, os.path.join(node.root, "job"))}
    for what, opened in modes.items():
        for folder in opened:
            os.chmod(folder, 0o755)
        refused("the socket, " + what, [kCommand, "status", "--hosts", node.endpoint], "ermission denied")
        refused("a segment, " + what, ["head", "-c", "1", segment], "ermission denied")
        refused("the control page, " + what, ["head", "-c", "1", os.path.join(node.root, "job", "control")], "ermission denied")
    # Even where the socket's own mode lets them connect: the agent looks at who it is.
    os.chmod(target.path, 0o666)
    script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); sys.exit('closed' if s.recv(1) == b'' else 0)"
    # It greets first, whoever connects, unless it closes at once.
    check(raw_greets(target), "the agent does not greet its own user")
    refused("a socket that somebody has opened", ["/usr/bin/python3", "-c", script, target.path], "closed", "reset")
    refused("tcp on loopback without a key", [kCommand, "status", "--hosts", "127.0.0.1:%d" % tcp.port], "key")
    refused("tcp on loopback, the agent's key", [kCommand, "status", "--hosts", "127.0.0.1:%d" % tcp.port, "--key", key], "ermission denied", "key")
    own = os.path.join("/dev/shm", "rs-nobody-%d" % os.getpid())
    workspace.on_exit(lambda: shutil.rmtree(own, ignore_errors=True))
    os.makedirs(own)
    os.chown(own, 65534, 65534)
    check(as_nobody(kCommand, "keygen", "-o", own + "/key").returncode == 0, "that user can't make a key")
    refused("tcp on loopback, a key of its own", ["env", "RINGSIDE_KEY=" + own + "/key", kCommand, "status", "--hosts", "127.0.0.1:%d" % tcp.port], "key")
    with Dealer(target) as dealer:
        dealer.ask(target.status, 20)
    with open(go, "w"), open(leave, "w"):
        pass
    job.wait()
    node.stop()


def raw_greets(target):
    with raw(target) as connection:
        connection.settimeout(20)
        return connection.recv(1) == b"\xff"


run({"attack": attack, "names": names, "other_user": other_user})
