"""What the hygiene tests share: a program run with and without the shim and compared, one run in a capture and read back, C compiled on the spot.

A file of cases lists them in a dict and ends with `run(kCases)`: the first argument names the one to run.
"""
import collections
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Node, check, kBuild, kCommand, kPython, kShim, kSource, main, skip, wait_until

from rsd.index import Job

kHere = os.path.dirname(os.path.abspath(__file__))
kLives = os.environ.get("RINGSIDE_LIVES", os.path.join(kBuild, "tests", "hygiene", "lives"))
kLosses = ("names full", "stack too deep", "table full", "lane refused", "reentered", "unmatched end", "other target", "by process", "by node", "by cgroup", "by file system", "gpu dropped", "by kernel")
kOutcome = collections.namedtuple("Outcome", "status out err")


def outcome(argv, environment, workspace, stdin="", deadline_s=90):
    done = subprocess.run(argv, env=environment, cwd=workspace.path("cwd"), input=stdin.encode(), capture_output=True, timeout=deadline_s)
    return kOutcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def bare(**more):
    """The environment of a run without us."""
    environment = dict(os.environ, **more)
    environment.pop("LD_PRELOAD", None)
    return environment


def preloaded(workspace, job="alone", preload=kShim, **more):
    root = os.path.join(workspace.root, "alone")
    os.makedirs(root, mode=0o700, exist_ok=True)
    return dict(os.environ, RINGSIDE_DIR=root, RINGSIDE_JOB=job, LD_PRELOAD=preload, **more)


def left_in(workspace, job="alone"):
    folder = os.path.join(workspace.root, "alone", job)
    return sorted(set(os.listdir(folder)) - {"budget", "control", "lock"}) if os.path.isdir(folder) else []


def same(workspace, argv, preload=kShim, beside="", stdin="", **more):
    """Runs it with and without us.
    @param beside  what is preloaded in both
    @return the outcome that both have
    """
    without = outcome(argv, bare(**more, **({"LD_PRELOAD": beside} if beside else {})), workspace, stdin)
    with_us = outcome(argv, preloaded(workspace, preload=preload, **more), workspace, stdin)
    check(with_us == without, "%s: %s, without the shim %s", " ".join(argv), with_us, without)
    return without


class Captured:
    """One run in a capture from its first instruction on, by an agent of its own."""

    def __init__(self, workspace, argv, name="captured", status=0, extra=(), **more):
        node = Node(workspace, name, capture_from_start=True, extra=["--name", "all", *extra])
        self.result = outcome(argv, node.environment(**{"LD_PRELOAD": kShim, **more}), workspace)
        check(status is None or self.result.status == status, "%s: %s", " ".join(argv), self.result)
        wait_until("its segments to go", lambda: not node.segments())
        node.stop()
        self.job = Job(workspace.path("output", name, "all"))
        check(not self.job.problems(), "the reader: %s", "; ".join(self.job.problems()))
        self.processes = self.job.dumps[0].processes
        self.ranges = self.job.events[0].ranges

    def counts(self):
        """How many whole ranges of each name."""
        return collections.Counter(r.name for r in self.ranges if r.end is not None)

    def pids(self, name):
        return {self.processes[r.process].pid for r in self.ranges if r.name == name}

    def lost(self):
        return self.job.counts()["lost"]

    def loss(self, kind):
        """One of a process's own losses, of all processes."""
        return sum(end.losses[kLosses.index(kind)] for end in self.job.dumps[0].footer.processes)


def compile_c(workspace, source, name, *options, compiler="cc"):
    """@return the path of what became of it, or None where the compiler can't"""
    if shutil.which(compiler) is None:
        return None
    out = workspace.path(name)
    done = subprocess.run([compiler, "-O1", "-g", "-I", kSource, "-o", out, source, *options], capture_output=True)
    return out if done.returncode == 0 else None


def written(workspace, name, text):
    path = workspace.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)
    return path


def need(program, package):
    path = shutil.which(program)
    return path if path else skip("no %s here (Debian package %s)" % (program, package))


def run(cases):
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in cases:
        sys.exit("usage: %s CASE, one of: %s" % (os.path.basename(sys.argv[0]), ", ".join(sorted(cases))))
    main(cases[name], "hygiene_" + name)
