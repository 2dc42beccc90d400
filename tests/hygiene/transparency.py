#!/usr/bin/python3
"""Programs that nobody changed run with and without the shim: the same bytes on stdout and stderr, the same exit status, the same files, as many
processes and threads. What was mapped is seen from outside (witness.cpp), at each process's end.

    transparency.py programs | torch | NAME...        NAME: some of the programs alone
"""
import hashlib
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import programs
from harness import Node, check, kBuild, kPython, kShim, main, skip, wait_until

kWitness = os.environ.get("RINGSIDE_WITNESS", os.path.join(kBuild, "tests", "hygiene", "witness"))
kCanNotTrace = 125
# These start workers as their input comes, more or fewer of them, with the shim or without.
kThreadsByLoad = ("xz",)
# The four ways in which a process may meet us.
kModes = ("nobody there", "no helper thread", "an agent", "a capture")
kWithAgent = ("an agent", "a capture")


class Seen:
    """What the witness saw of one process at its end."""

    def __init__(self, line):
        fields = line.rstrip("\n").split("\t")
        self.pid, self.executable = int(fields[0]), fields[1]
        self.shim, self.segment_kib, self.control_kib, self.threads, self.own_threads, self.programs = map(int, fields[2:])


class Run:
    """One run of one program in a folder of its own."""

    def __init__(self, workspace, number, program, environment, job_directory, preload):
        name, argv, stdin = program
        folder, report = workspace.path("runs", "here"), workspace.path("report-%s" % number)
        os.makedirs(folder)
        environment = dict(environment, PYTHONHASHSEED="0", LC_ALL="C.UTF-8", GIT_AUTHOR_DATE="1700000000 +0000", GIT_COMMITTER_DATE="1700000000 +0000")
        environment.pop("LD_PRELOAD", None)
        if preload:
            environment["WITNESS_PRELOAD"] = kShim
        done = subprocess.run([kWitness, report, os.path.realpath(kShim), job_directory] + argv, env=environment, cwd=folder, input=stdin.encode(),
                              capture_output=True, timeout=90)
        self.name, self.status, self.out, self.err, self.files = name, done.returncode, done.stdout, done.stderr, digest(folder)
        if self.status == kCanNotTrace:
            skip("ptrace is not allowed here: %s" % self.err.decode(errors="replace").strip())
        with open(report) as lines:
            self.processes = [Seen(line) for line in lines]
        shutil.rmtree(folder)

    def shape(self):
        """The processes: of which program, how many it ran one after the other, with how many threads, how many of them ours."""
        return sorted((os.path.basename(p.executable), p.programs, p.threads, p.own_threads) for p in self.processes)


def digest(folder):
    content = hashlib.sha256()
    for path, folders, files in os.walk(folder):
        folders.sort()
        if ".git" in folders:
            folders.remove(".git")
        for name in sorted(files):
            with open(os.path.join(path, name), "rb") as file:
                content.update(name.encode() + b"\0" + file.read())
    return content.hexdigest()


def same_processes(bare, run, with_threads, with_helper):
    """As many of each program, with as many threads beside ours; where a framework is, one of ours may have no name yet: the process has ended before it ran."""
    if [shape[:2] for shape in bare] != [shape[:2] for shape in run]:
        return False
    for (name, _, threads, _), (_, _, seen, own) in zip(bare, run):
        if with_threads and name not in kThreadsByLoad and not own <= seen - threads <= own + (1 if with_helper else 0):
            return False
    return True


def same(bare, run, mode, frameworks):
    # In torch 2 a thread that ends at once asks the framework what its structures look like, when a capture first wants to know.
    with_threads = not frameworks or mode != "a capture"
    what = "%s, %s" % (run.name, mode)
    check(run.status == bare.status, "%s: exit status %d, without the shim %d; it wrote %r", what, run.status, bare.status, run.err[-400:])
    check(run.out == bare.out, "%s: stdout %r, without the shim %r", what, run.out[-600:], bare.out[-600:])
    check(run.err == bare.err, "%s: stderr %r, without the shim %r", what, run.err[-600:], bare.err[-600:])
    check(run.files == bare.files, "%s: it left other files than without the shim", what)
    check(same_processes(bare.shape(), run.shape(), with_threads, frameworks), "%s: processes %s, without the shim %s", what, run.shape(), bare.shape())
    check(run.processes and all(p.shim for p in run.processes), "%s: no shim in %s", what, [p.executable for p in run.processes if not p.shim])
    check(not any(p.shim for p in bare.processes), "%s: the shim is in the bare run", run.name)


def nothing_of_ours(run, mode):
    """In processes without a framework: no thread, a segment that is its header page alone or (in forked children) none, and one at all."""
    for p in run.processes:
        what = "%s, %s, process %s" % (run.name, mode, p.executable)
        check(p.own_threads == 0, "%s: a thread of ours", what)
        check(p.segment_kib in (-1, 4), "%s: %d KiB of its segment are in memory", what, p.segment_kib)
        check(p.control_kib in (-1, 0, 4), "%s: %d KiB of control page", what, p.control_kib)
        check(p.segment_kib == 4 or p.programs == 0, "%s: it has run a program and has no segment", what)


def nothing_left(run, mode, job_directory):
    """A process that was killed can't take its segment with it: the next that starts in its job does."""
    if mode in kWithAgent:
        return  # it reaps
    silent = {p.pid for p in run.processes if "killed" in run.name}
    left = [name for name in os.listdir(job_directory) if name.count(".") == 2 and int(name.split(".")[1]) not in silent]
    check(not left, "%s, %s: left behind: %s of %s", run.name, mode, left, [(p.pid, p.executable) for p in run.processes])


def idle_environment(workspace, mode):
    root = os.path.join(workspace.root, "alone")
    os.makedirs(root, mode=0o700, exist_ok=True)
    more = {"RINGSIDE_THREAD": "0"} if mode == "no helper thread" else {}
    return dict(os.environ, RINGSIDE_DIR=root, RINGSIDE_JOB="job", **more), os.path.join(root, "job")


def compare(workspace, mode, chosen, bare, environment, job_directory, frameworks=False):
    for number, program in enumerate(chosen):
        run = Run(workspace, "%s-%d" % (mode.replace(" ", "-"), number), program, environment, job_directory, preload=True)
        same(bare[program[0]], run, mode, frameworks)
        if not frameworks:
            nothing_of_ours(run, mode)
            nothing_left(run, mode, job_directory)


def reaped(workspace, job_directory, environment):
    subprocess.run(["true"], env=dict(environment, LD_PRELOAD=kShim), check=True)
    left = [name for name in os.listdir(job_directory) if name not in ("budget", "control", "lock")]
    check(not left, "after all have ended: %s", left)


def run_all(workspace, chosen, modes, frameworks=False):
    """@param modes  each with the programs that it is tried with"""
    programs.prepare(workspace.path("runs", "prepared"))
    environment, job_directory = idle_environment(workspace, "bare")
    bare = {p[0]: Run(workspace, "bare-%d" % n, p, environment, job_directory, preload=False) for n, p in enumerate(chosen)}
    for mode, some in modes.items():
        if mode in kWithAgent:
            node = Node(workspace, mode.split()[1], capture_from_start=mode == "a capture")
            compare(workspace, mode, some, bare, node.environment(), os.path.join(node.root, node.job), frameworks)
            wait_until("the segments to go", lambda: not node.segments())
            node.stop()
            continue
        environment, job_directory = idle_environment(workspace, mode)
        compare(workspace, mode, some, bare, environment, job_directory, frameworks)
        reaped(workspace, job_directory, environment)
    print("%d programs, %d runs with the shim, each as without it" % (len(chosen), sum(map(len, modes.values()))), flush=True)


def test(workspace):
    if what == ["torch"]:
        chosen = [("torch, " + name, [kPython, "-W", "ignore", "../prepared/torch_%s.py" % name.replace(" ", "_")], "") for name in programs.kTorch]
        return run_all(workspace, chosen, {"a capture": chosen, "nobody there": chosen[:1] + chosen[-1:]}, frameworks=True)
    chosen = [p for p in programs.all_of(kPython) if what == ["programs"] or p[0] in what]
    check(chosen, "no program is called %s", what)
    return run_all(workspace, chosen, {mode: chosen for mode in kModes})


what = sys.argv[1:] or ["programs"]
main(test, "transparency")
