#!/usr/bin/python3
"""The bundle on an old host: unpacked in a bullseye, moved, and used there by a user without rights.

    bundle.py CASE      all, or one of them
"""
import os
import re
import shutil
import subprocess

from bullseye import Bullseye
from cases import check, kBuild, kSource, run, wait_until
from harness import kOfTheJobDirectory, kWorkloads

import conditions
from rsd.index import Job

kPlace = "/srv/tools/rs"
kShimThere = kPlace + "/lib/ringside/libringside_inject.so"
kWrapThere = kPlace + "/bin/ringside-wrap"
kOfUs = re.compile(r"LD_PRELOAD|LD_LIBRARY_PATH|RINGSIDE_|CUDA_|NVTX_|INTEL_|PYTHONPATH")
kSteps = 500
kUsersLibraries = "/tmp/libraries of the user"


def unpacked(workspace):
    """A bullseye with the bundle: unpacked in one place, moved to another, its command linked to from PATH."""
    there = Bullseye(workspace)
    tarball = workspace.path("ringside.tar.gz")
    # From a folder of the user's: what is named lies there.
    build = os.path.relpath(kBuild, workspace.path("cwd"))
    made = workspace.run("bundle", [os.path.join(kSource, "tools", "bundle"), "--build", build, "-o", "../ringside.tar.gz"])
    check(made.out().splitlines()[-1] == tarball, "the last line is not the tarball: %s", made.out())
    os.makedirs(there.path("/opt/first"))
    os.makedirs(there.path(os.path.dirname(kPlace)))
    subprocess.run(["tar", "-C", there.path("/opt/first"), "-xzf", tarball], check=True)
    (name,) = os.listdir(there.path("/opt/first"))
    os.rename(there.path("/opt/first/" + name), there.path(kPlace))
    os.symlink(kPlace + "/bin/ringside", there.path("/usr/local/bin/ringside"))
    return there


def judged(there, path):
    """The dump of a path in there, by the reader."""
    job = Job(there.path(path))
    check(not job.problems() and job.counts()["lost"] == 0, "the reader on %s: %s, %s", path, job.problems(), job.counts())
    return job


def counts_of(job):
    found = {}
    for r in job.events[0].ranges:
        check(r.end is not None, "%s has not ended", r.name)
        found[r.name] = found.get(r.name, 0) + 1
    return found


def nothing_left(there):
    check(there.processes() == [], "processes are left: %s", there.processes())
    shared = there.mounted("/dev/shm")
    left = [os.path.join(folder, f) for folder, _, files in os.walk(shared) for f in files if f not in kOfTheJobDirectory]
    check(not left, "left in its shared memory: %s", left)


def glibc(there):
    """The shim needs an old C library, and says which; the rest brings its own."""
    listed = subprocess.run(["objdump", "-T", there.path(kShimThere)], capture_output=True, text=True, check=True).stdout
    versions = sorted({tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", listed)})
    check((2,) < versions[-1] <= (2, 17), "the shim needs GLIBC_%s", versions[-1])
    print("objdump: the shim needs GLIBC_%s at most" % ".".join(map(str, versions[-1])), flush=True)
    host = there.run("ldd", "ldd", "--version").out().splitlines()[0]
    check("2.31" in host, "no bullseye: %s", host)
    check(there.run("version", "ringside", "version").out().startswith("ringside "), "ringside version")
    check(there.run("agent-version", "ringside", "agent", "--version").out().startswith("ringside-agent "), "ringside agent --version")


def run_there(there):
    """`ringside run`: C programs that fork, execute, spawn and have threads, and Python's own API."""
    lives = there.compile_c("lives.c", "/tmp/lives")
    expected = {"fork": {"parent": 40, "child": 20, "grandchild": 20}, "exec": {"before": 20, "between": 20, "after": 20},
                "spawn": {"parent": 100}, "threads": {"thread": 1000, "destructor": 1200}}
    for mode, ranges in expected.items():
        plain = there.run("plain-" + mode, lives, mode, expect=None)
        traced = there.run("run-" + mode, "ringside", "run", "-o", "/tmp/" + mode, "--table", "/tmp/%s.txt" % mode, lives, mode, expect=None)
        same = (plain.process.returncode, plain.out()) == (traced.process.returncode, traced.out())
        check(same, "%s: %s, traced %s", mode, plain.tail(), traced.tail())
        job = judged(there, "/tmp/" + mode)
        # More threads than lanes before a starved agent gives one back: not recorded, and counted.
        found, lost = counts_of(job), sum(sum(end.losses) for end in job.dumps[0].footer.processes)
        check(found.keys() == ranges.keys() and sum(found.values()) + lost == sum(ranges.values()), "%s: %s, lost %d, expected %s", mode, found, lost, ranges)
        with open(there.path("/tmp/%s.txt" % mode)) as table:
            check(next(iter(ranges)) in table.read(), "the table of %s", mode)
        print("%s: %s in %d processes, lost %d" % (mode, found, len(job.dumps[0].processes), lost), flush=True)
    shutil.copy(os.path.join(kWorkloads, "api_calls.py"), there.path("/tmp"))
    there.run("run-python", "ringside", "run", "-o", "/tmp/python", "python3", "/tmp/api_calls.py", "calls")
    found = counts_of(judged(there, "/tmp/python"))
    check(found.get("plain range") == 1 and found.get("pushed") == 1, "Python's ranges: %s", found)


def environment(there):
    """What the command inherits is the user's own environment with the shim in front; of our loader and libraries, nothing."""
    script = "env; echo ==; sh -c env; echo ==; cat /proc/self/maps"
    more = {"LD_LIBRARY_PATH": kUsersLibraries}
    plain = there.run("plain", "sh", "-c", script, **more)
    traced = there.run("traced", "ringside", "run", "-o", "/tmp/out", "sh", "-c", script, **more)
    ours, own = (dict(line.split("=", 1) for line in child.out().split("==\n")[1].splitlines()) for child in (traced, plain))
    changed = {name: value for name, value in ours.items() if own.get(name) != value}
    check(changed.pop("LD_PRELOAD", "") == kShimThere, "LD_PRELOAD is %s", ours.get("LD_PRELOAD"))
    check(ours["LD_LIBRARY_PATH"] == kUsersLibraries and set(own) <= set(ours), "of the user's environment: %s, without us %s", ours, own)
    strange = {name: value for name, value in changed.items() if not kOfUs.match(name) or "libexec" in value or "/lib/x86" in value}
    check(not strange, "in the environment of the command's child: %s", strange)
    mapped = {line.split()[-1] for line in traced.out().split("==\n")[2].splitlines() if kPlace in line}
    check(mapped == {kShimThere}, "of the bundle it maps %s", mapped)
    print("it inherits %s" % " ".join(sorted(changed) + ["LD_PRELOAD"]), flush=True)


def traced_steps(there, name, program, agent=()):
    """`ringside trace` over a program that runs already: of its steps exactly those that it makes in the capture. All paths are the defaults."""
    for script in ("conditions.py", "steps.py"):
        shutil.copy(os.path.join(kWorkloads, script), there.path("/tmp"))
    folder = "/tmp/conditions-" + name
    os.makedirs(there.path(folder))
    os.chmod(there.path(folder), 0o777)
    workspace = there.workspace
    running = workspace.start(name, there.words(*program, "python3", "/tmp/steps.py", folder, str(kSteps)), there.environment())
    children = [running, *agent]
    wait_until("the program", lambda: conditions.holds(there.path(folder), "ready"), children=children)
    trace = workspace.start("trace-" + name, there.words("ringside", "trace", "--duration", "60s", "-o", "/tmp/traced-" + name), there.environment())
    wait_until("the capture", lambda: "capturing" in trace.err(), children=[trace, *children])
    conditions.announce(there.path(folder), "go")
    wait_until("its steps", lambda: conditions.holds(there.path(folder), "stepped"), children=children)
    trace.send(2)
    trace.wait()
    conditions.announce(there.path(folder), "leave")
    running.wait()
    found = counts_of(judged(there, "/tmp/traced-" + name))
    check(found == {"bullseye step": kSteps}, "the program has made %d steps in the capture: %s", kSteps, found)
    print("%s: %s" % (name, found), flush=True)


def trace_there(there):
    """With an agent of the bundle, and the preload by hand."""
    reading, writing = os.pipe()
    agent = there.workspace.start("agent", there.words("ringside", "agent", "--ready-fd", str(writing)), there.environment(), pass_fds=(writing,))
    os.close(writing)
    with os.fdopen(reading) as ready:
        check(ready.readline() == "ready\n", "the agent is not ready:\n%s", agent.tail())
    traced_steps(there, "steps", ["LD_PRELOAD=" + kShimThere], [agent])
    agent.send(15)
    agent.wait()


def wrap_there(there):
    """`ringside-wrap CMD` alone, without a launcher: it brings the agent, and takes it away again; the command is as without it."""
    script = "echo out; echo err >&2; cat /proc/self/maps | grep -o '%s.*' | sort -u; exit 5" % kPlace
    ran = there.run("wrapped", kWrapThere, "sh", "-c", script, expect=5)
    check(ran.out().splitlines() == ["out", kShimThere] and ran.err() == "err\n", "the wrapped command says %s", ran.tail())
    wait_until("the first agent's end", lambda: there.processes() == [])
    traced_steps(there, "wrapped-steps", [kWrapThere])
    wait_until("the agent's end", lambda: there.processes() == [])


kCases = {"glibc": glibc, "run": run_there, "environment": environment, "trace": trace_there, "wrap": wrap_there}


def those(cases):
    """Unpacking takes longer than they do: one bullseye for all."""
    def test(workspace):
        there = unpacked(workspace)
        for case in cases:
            case(there)
            nothing_left(there)
    return test


run({"all": those(kCases.values()), **{name: those([case]) for name, case in kCases.items()}})
