"""What every integration test needs: the built programs, a workspace of its own, children that surely end, conditions with deadlines.

Paths come from the environment (meson gives them): RINGSIDE_COMMAND, RINGSIDE_AGENT, RINGSIDE_SHIM, RINGSIDE_SOURCE; each has a default
beneath ../../build, so that a test can be run by hand. A test kills only what it started, by process id.
"""
import contextlib
import json
import os
import signal
import statistics
import socket
import subprocess
import sys
import tempfile
import time

kHere = os.path.dirname(os.path.abspath(__file__))
kSource = os.environ.get("RINGSIDE_SOURCE", os.path.join(kHere, "..", ".."))
kBuild = os.environ.get("RINGSIDE_BUILD", os.path.join(kSource, "build"))
kCommand = os.environ.get("RINGSIDE_COMMAND", os.path.join(kBuild, "tools", "ringside"))
kAgent = os.environ.get("RINGSIDE_AGENT", os.path.join(kBuild, "agent", "ringside-agent"))
kShim = os.environ.get("RINGSIDE_SHIM", os.path.join(kBuild, "inject", "libringside_inject.so"))
kPython = os.environ.get("RINGSIDE_PYTHON_FOR_JOBS", "/usr/bin/python3")
kWorkloads = os.path.join(kSource, "tests", "workloads")
kSkipped = 77
kKeep = os.environ.get("RINGSIDE_KEEP")  # whether what a test made stays, to be looked at

for folder in (kWorkloads, os.path.join(kSource, "tests", "reader"), os.path.join(kSource, "tests", "oracle")):
    sys.path.insert(0, os.path.abspath(folder))

import conditions
import leftovers

# A shell's background job has Ctrl-C ignored, and so would all that it starts: tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

kDeadlineS = 90.0
kAttempts = 6
# A job directory outlives its agent: the next one adopts what is there. `ringside run` removes its own (run_cleanup tests that).
kOfTheJobDirectory = ("budget", "control", "lock")


class Failed(Exception):
    """A check does not hold, or a condition did not come to hold in time."""


class OffInTime(Failed):
    """A duration is off. A busy machine alone can do that, so main() tries again, aloud; kAttempts times off is a failure."""


def check(holds, message, *values, failure=Failed):
    if not holds:
        raise failure(message % values if values else message)


def hand_over_ns(rounds=400):
    """What a question to a process on another core and its answer take, the median: two turns. Virtual machines differ by ten times from an hour to the next."""
    cores, there, back = sorted(os.sched_getaffinity(0)), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {cores[-1]})
        for _ in range(rounds):
            os.write(back[1], os.read(there[0], 1))
        os._exit(0)
    os.sched_setaffinity(0, {cores[0]})
    took = []
    for _ in range(rounds):
        asked = time.perf_counter_ns()
        os.write(there[1], b"x")
        os.read(back[0], 1)
        took.append(time.perf_counter_ns() - asked)
    os.sched_setaffinity(0, cores)
    os.waitpid(child, 0)
    for end in there + back:
        os.close(end)
    return statistics.median(took)


def skip(reason):
    """What the machine lacks is said, never passed over."""
    print("SKIPPED: " + reason, flush=True)
    sys.exit(kSkipped)


def wait_until(what, condition, deadline_s=kDeadlineS, children=()):
    """Returns the condition's value as soon as it is true. A child that has ended with an error ends the wait."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        for child in children:
            if child.process.poll() not in (None, 0):
                raise Failed("%s ended with %d while waiting for %s:\n%s" % (child.name, child.process.returncode, what, child.tail()))
        if time.monotonic() > end:
            raise Failed("wait for %s: not so after %g s" % (what, deadline_s))
        time.sleep(conditions.kPollSeconds)


class Child:
    """A process of ours; its output goes to files in the workspace."""

    def __init__(self, workspace, name, arguments, environment=None, pass_fds=()):
        self.name, self.workspace = name, workspace
        self.out_path, self.err_path = workspace.path("out", name + ".out"), workspace.path("out", name + ".err")
        with open(self.out_path, "w") as out, open(self.err_path, "w") as err:
            self.process = subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=pass_fds,
                                            cwd=workspace.path("cwd"))

    @property
    def pid(self):
        return self.process.pid

    def out(self):
        return _text(self.out_path)

    def err(self):
        return _text(self.err_path)

    def tail(self):
        return (self.out()[-1500:] + self.err()[-3000:]).strip()

    def wait(self, deadline_s=kDeadlineS, expect=0):
        """@return the exit status; `expect` None takes any"""
        try:
            status = self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise Failed("%s still runs after %g s:\n%s" % (self.name, deadline_s, self.tail())) from None
        check(expect is None or status == expect, "%s ended with %s, expected %s:\n%s", self.name, status, expect, self.tail())
        return status

    def send(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def end(self):
        """Whatever state it is in, it is gone afterwards."""
        if self.process.poll() is not None:
            return
        self.send(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self.process.wait()


def _text(path):
    with open(path, errors="replace") as file:
        return file.read()


class Node:
    """One agent with a root, a name and an endpoint of its own."""

    def __init__(self, workspace, name, skew_ns=0, drift_ppb=0, capture_from_start=False, extra=(), host=None, agent=kAgent,
                 shim=kShim):
        """@param host  hosts.Host: a host of its own, reached over tcp; None: this one"""
        self.workspace, self.name, self.host, self.shim = workspace, name, host, shim
        self.prefix = host.prefix if host else []
        self.root = "/dev/shm/ringside" if host else os.path.join(workspace.root, name)
        self.seen_root = host.seen(self.root) if host else self.root
        os.makedirs(self.seen_root, mode=0o700)
        self.job = "job"
        self.endpoint = host.endpoint if host else "ipc://" + os.path.join(workspace.root, name + ".sock")
        reading, writing = os.pipe()
        arguments = self.prefix + [agent, "--dir", self.root, "--job", self.job, "--node", name, "--endpoint", self.endpoint,
                     "--output", workspace.path("output", name), "--ready-fd", str(writing)]
        arguments += ["--skew-offset-ns", str(skew_ns)] if skew_ns else []
        arguments += ["--skew-drift-ppb", str(drift_ppb)] if drift_ppb else []
        arguments += ["--capture-from-start"] if capture_from_start else []
        self.agent = workspace.start("agent-" + name, arguments + list(extra), pass_fds=(writing,))
        os.close(writing)
        with os.fdopen(reading) as ready:
            check(ready.readline() == "ready\n", "agent %s is not ready:\n%s", name, self.agent.tail())

    def environment(self, **more):
        """Of a job's process on this node."""
        return dict(os.environ, RINGSIDE_DIR=self.root, RINGSIDE_JOB=self.job, **(self.host.environment if self.host else {}), **more)

    def job_command(self, *words):
        """A job's process on this node, preloaded; nothing before it is."""
        return [*self.prefix, "env", "LD_PRELOAD=" + self.shim, *words]

    def segments(self):
        """Names of the segments in the job directory."""
        with contextlib.suppress(FileNotFoundError):
            return [f for f in os.listdir(os.path.join(self.seen_root, self.job)) if f.count(".") == 2 and f.replace(".", "").isdigit()]
        return []

    def stop(self):
        self.agent.send(signal.SIGTERM)
        self.agent.wait(20)


class Workspace:
    """Folders of one test: `root` for segments and sockets (shared memory), the rest on disk. Used as a context: on leaving it, all
    children are ended and both are gone; what a test leaves behind fails it."""

    def __init__(self, name):
        self.name = name
        self.root = tempfile.mkdtemp(prefix="rs-%s-" % name[:8], dir="/dev/shm")
        self.disk = tempfile.mkdtemp(prefix="rs-%s-" % name, dir=os.environ.get("TMPDIR", "/tmp"))
        self.survivor = None if kKeep else leftovers.Survivor(self.root, self.disk)
        self.children = []
        self.at_leave = []
        self.at_exit = []
        self.began = time.monotonic()
        self.conditions = self.path("conditions")
        os.makedirs(self.conditions)
        os.makedirs(self.path("cwd"))
        os.makedirs(self.path("out"))
        os.makedirs(self.path("output"))

    def path(self, *parts):
        return os.path.join(self.disk, *parts)

    def on_leave(self, undo):
        """Calls undo() before any child is ended: what needs them to be there."""
        self.at_leave.append(undo)

    def on_exit(self, undo):
        """Calls undo() when all children have ended."""
        self.at_exit.append(undo)

    def start(self, name, arguments, environment=None, pass_fds=()):
        child = Child(self, name, arguments, environment, pass_fds)
        self.children.append(child)
        return child

    def run(self, name, arguments, environment=None, expect=0, deadline_s=kDeadlineS):
        """Starts it and waits for its end."""
        child = self.start(name, arguments, environment)
        child.wait(deadline_s, expect)
        return child

    def ringside(self, *arguments, expect=0, environment=None, name=None):
        """Runs the command to its end."""
        name = name or "ringside-%s-%d" % (arguments[0], len(self.children))
        return self.run(name, [kCommand, *arguments], environment, expect)

    def json(self, *arguments, expect=0):
        return json.loads(self.ringside(*arguments, "--json", expect=expect).out())

    def announce(self, name):
        conditions.announce(self.conditions, name)

    def await_condition(self, name, children=()):
        return wait_until("the job's word %r" % name, lambda: conditions.holds(self.conditions, name), children=children)

    def __enter__(self):
        return self

    def __exit__(self, kind, failure, trace):
        if failure is not None and not isinstance(failure, (SystemExit, OffInTime)):
            self._tell()
        with contextlib.ExitStack() as every:  # one that fails keeps none of the others from being done
            for undo in self.at_exit:
                every.callback(undo)
            every.callback(self._end_children)
            for undo in self.at_leave:
                every.callback(undo)
        left = self.left_behind()
        if self.survivor:
            left += leftovers.clear_away(self.root, self.disk)
            self.survivor.release()
        if failure is None:
            check(not left, "left behind: %s", "; ".join(left))

    def _end_children(self):
        for child in reversed(self.children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGCONT) if child.process.poll() is None else None
            child.end()

    def _tell(self):
        for child in self.children:
            print("--- %s (%s)\n%s" % (child.name, child.process.poll(), child.tail()[-1500:]), file=sys.stderr)

    def left_behind(self):
        """Processes that know our folders, and what lies in the shared-memory root: after a run nothing of ours remains."""
        left = ["process %d: %s" % found for found in leftovers.processes_of(self.root, self.disk).items()]
        for folder, _, files in os.walk(self.root):
            left += [os.path.join(folder, f) for f in files if f not in kOfTheJobDirectory]
        return left


def free_port():
    """A tcp port that is free now, on all the addresses that a job may spell."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


class Workers:
    """Three workers of a job, one process each, worker n on nodes[n]."""

    def __init__(self, workspace, nodes, script, *arguments, addresses=("127.0.0.1",) * 3, environment=None):
        ports = {"MASTER_PORT": str(free_port()), "MASTER_PORT_2": str(free_port())}
        self.workspace = workspace
        self.children = []
        for rank, (node, address) in enumerate(zip(nodes, addresses)):
            own = node.environment(MASTER_ADDR=address, **ports, **(environment or {}))
            given = [a.replace("%RANK%", str(rank)) for a in arguments]
            self.children.append(workspace.start("worker%d" % rank, node.job_command(
                kPython, "-W", "ignore", os.path.join(kWorkloads, script), "--rank", str(rank), "--conditions", workspace.conditions, *given), own))

    def await_ready(self):
        for rank in range(len(self.children)):
            self.workspace.await_condition("ready.%d" % rank, self.children)

    def leave(self):
        self.workspace.announce("leave")
        for child in self.children:
            child.wait()


class Trace:
    """`ringside trace` over all nodes, running until it is told to end (as a user's Ctrl-C does)."""

    def __init__(self, workspace, nodes, output, duration="120s", options=(), command=kCommand):
        self.output = output
        arguments = [*nodes[0].prefix, command, "trace", "--hosts", ",".join(n.endpoint for n in nodes), "--duration", duration, "-o", output, "--json"]
        self.child = workspace.start("trace-%d" % len(workspace.children), arguments + list(options),
                                     dict(os.environ, **(nodes[0].host.environment if nodes[0].host else {})))
        wait_until("the trace to capture", lambda: "capturing" in self.child.err(), children=[self.child])

    def end(self, expect=0):
        """Ends the capture; everything that came before is in it.
        @return the command's JSON
        """
        self.child.send(signal.SIGINT)
        self.child.wait(expect=expect)
        return json.loads(self.child.out())


def _give_up(number, _):
    raise Failed("it was ended by %s" % signal.Signals(number).name)


def main(test, name, limit_s=0):
    """Runs test(workspace) and tells how long it took; exit 1 with the reason where it fails.
    @param limit_s  after which it gives up and cleans up; what meson ends for its timeout has no time for that"""
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, _give_up)
    began = time.monotonic()
    for attempt in range(1, kAttempts + 1):
        try:
            with Workspace(name) as workspace:
                # What is made in a home is the test's own, too; agents that listen for other hosts do so on loopback.
                os.environ.setdefault("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
                os.environ.update(HOME=workspace.path("own-home"), RINGSIDE_ADDRESS="127.0.0.1")
                os.makedirs(os.environ["HOME"], exist_ok=True)
                signal.alarm(limit_s)
                try:
                    test(workspace)
                finally:
                    signal.alarm(0)
            break
        except OffInTime as failure:
            print("%s, attempt %d of %d, off in time: %s" % (name, attempt, kAttempts, failure), flush=True)
            if attempt == kAttempts:
                sys.exit(1)
        except (Failed, conditions.DeadlineMissed) as failure:
            print("FAILED %s after %.1f s: %s" % (name, time.monotonic() - began, failure), flush=True)
            sys.exit(1)
    print("passed %s in %.1f s" % (name, time.monotonic() - began), flush=True)
