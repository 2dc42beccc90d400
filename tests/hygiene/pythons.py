#!/usr/bin/python3
"""The Python part in each interpreter that is at hand, in virtual environments, and what a second thread means to an interpreter that forks.

    pythons.py CASE
"""
import glob
import os
import subprocess

from cases import Captured, Node, check, compile_c, kPython, outcome, preloaded, run, same, skip, written
from harness import Trace, kWorkloads

from rsd.index import Job

# What an interpreter can tell of itself; parses on 2.7.
kTell = ("import os, sys\nprint(sys.version_info[:2], sys.path, os.environ.get('PYTHONPATH'), sorted(sys.modules), [type(f).__name__ for f in sys.meta_path if "
         "type(f).__name__[0] != '_'], getattr(sys.modules.get('sitecustomize'), '__file__', None))")
kFork = "import os, warnings\nwarnings.simplefilter('always')\n%s\np = os.fork()\nif not p: os._exit(3)\nprint(os.waitpid(p, 0)[1] >> 8)"
kUnshare = "import ctypes\n%s\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.unshare(0x10000000), ctypes.get_errno())"


def pythons():
    """@return {version: path}, Debian's and the version managers', one of each version"""
    found = {}
    roots = [os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "/opt", "/usr/local"]
    paths = [p for root in roots for p in glob.glob(root + "/versions/*/bin/python") + glob.glob(root + "/bin/python[23].*")]
    for path in paths + glob.glob("/usr/bin/python[23].*"):
        told = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        if told.returncode == 0:
            found[told.stdout.strip()] = path
    return found


# PYTHONPATH as shells make it of variables that are not set. An empty entry is the working directory; an empty variable is
# none, but in Python 2.
kHalfSet = ("", ":", "a::b", "a:", ":a")
# A child without the shim: of what its parent hands down nothing is taken back there.
kTellTwice = kTell + ("\nif len(sys.argv) == 1:\n  import subprocess\n  sys.stdout.flush()\n  plain = dict((k, v) for k, v in os.environ.items() if k != 'LD_PRELOAD')\n"
                      "  sys.exit(subprocess.call([sys.executable, __file__, 'child'], env=plain))\n")


def half_set_paths(workspace, version, path):
    """Told by a script that lies elsewhere than in the working directory, and by its child."""
    script = written(workspace, "script/told.py", kTellTwice)
    for value in kHalfSet:
        same(workspace, [path, script], PYTHONPATH=value)
    shadow = written(workspace, "cwd/random.py", "raise SystemExit('the working directory is on the path')\n")
    uses = written(workspace, "script/uses.py", "import random; print(random.__name__)")
    told = same(workspace, [path, uses], PYTHONPATH="")
    check((told.out == "random\n") == (version >= "3"), "%s with an empty PYTHONPATH: %s", path, told)
    os.unlink(shadow)


def every_python(workspace):
    other = os.path.dirname(written(workspace, "beside/module.py", "answer = 42\n"))
    check(pythons(), "no interpreter here: nothing was shown")
    for version, path in sorted(pythons().items()):
        half_set_paths(workspace, version, path)
        same(workspace, [path, "-c", kTell])
        for option in ["-S", "-E"] + (["-I"] if version >= "3" and version != "3.3" else []):
            same(workspace, [path, option, "-c", kTell])
        out = same(workspace, [path, "-c", "import module; print(module.answer)\n" + kTell], PYTHONPATH="%s:/nowhere" % other).out
        check("42" in out, "%s does not find what PYTHONPATH names", path)
        same(workspace, [path, "-c", "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', %r]))" % kTell])
    print("tried on %s" % ", ".join(sorted(pythons())), flush=True)


def virtual_environment(workspace):
    """Its own sitecustomize runs as without us, and one that raises is told as without us."""
    place = workspace.path("venv")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place], check=True)
    python = os.path.join(place, "bin", "python")
    same(workspace, [python, "-c", kTell])
    packages = glob.glob(place + "/lib/python3*/site-packages")[0]
    for text in ("import sys\nsys.customized = 'by the venv'\n", "raise ValueError('no')\n", "import no_such_module\n", "syntax error\n"):
        written(workspace, os.path.join(packages, "sitecustomize.py"), text)
        same(workspace, [python, "-c", "import sys\nprint(getattr(sys, 'customized', None))\n" + kTell])


def framework(workspace):
    """A library by the name that we look for, with nothing in it: the helper thread comes, and nothing else."""
    source = written(workspace, "empty.c", "int nothing;\n")
    return compile_c(workspace, source, "libtorch_cpu.so", "-shared", "-fPIC") or skip("no C compiler here")


def fork_with_a_thread(workspace):
    """From 3.12 on an interpreter warns when it forks with a second thread: never without a framework, nor with RINGSIDE_THREAD=0."""
    new = {v: p for v, p in pythons().items() if v.startswith("3.") and int(v[2:]) >= 12}
    if not new:
        skip("no Python 3.12 or newer here")
    # What was loaded is seen at the look-up after it.
    load = "import ctypes; ctypes.CDLL(%r); ctypes.CDLL(None)" % framework(workspace)
    for version, path in sorted(new.items()):
        same(workspace, [path, "-c", kFork % ""])
        without = same(workspace, [path, "-c", kFork % load], RINGSIDE_THREAD="0")
        helped = outcome([path, "-c", kFork % load], preloaded(workspace), workspace)
        told = helped.err.count("DeprecationWarning")
        check((helped.status, helped.out) == (without.status, without.out) and told == 1, "%s with a framework: %s", version, helped)
        print("%s: warned only where a framework is and the helper thread is allowed" % version, flush=True)


def namespace_with_a_thread(workspace):
    load = "ctypes.CDLL(%r)" % framework(workspace)
    without = same(workspace, ["/usr/bin/python3", "-c", kUnshare % load], RINGSIDE_THREAD="0")
    helped = outcome(["/usr/bin/python3", "-c", kUnshare % load], preloaded(workspace), workspace)
    check(helped.out == "-1 22\n" or helped == without, "with a helper thread: %s, without the shim %s", helped, without)
    print("RINGSIDE_THREAD=0: %s as without the shim; with the helper thread %s" % (without.out.strip(), helped.out.strip()), flush=True)


def need_torch():
    if subprocess.run([kPython, "-c", "import torch"], capture_output=True).returncode != 0:
        skip("%s has no torch" % kPython)


# A capture begins while it waits for "go". Nobody looks at it then but the program's own next look-up, here that of dlopen(); a second capture's is dlsym()'s.
kLate = """
import ctypes, sys
sys.path.insert(0, %r)
import conditions, torch
library = ctypes.CDLL(None)
for number, look in enumerate((lambda: ctypes.CDLL(None), lambda: getattr(library, "getpid"))):
    conditions.announce(sys.argv[1], "ready.%%d" %% number)
    conditions.await_condition(sys.argv[1], "go.%%d" %% number)
    torch.zeros(3)
    look()
    for _ in range(7): torch.ones(3)
    conditions.announce(sys.argv[1], "done.%%d" %% number)
    conditions.await_condition(sys.argv[1], "next.%%d" %% number)
    look()
"""


def late_without_helper_thread(workspace):
    """A capture that begins later starts at the next look-up, and ends as any other."""
    need_torch()
    node = Node(workspace, "node")
    job = workspace.start("job", node.job_command(kPython, "-c", kLate % kWorkloads, workspace.conditions), node.environment(RINGSIDE_THREAD="0"))
    for number in range(2):
        workspace.await_condition("ready.%d" % number, [job])
        trace = Trace(workspace, [node], workspace.path("trace-%d" % number))
        workspace.announce("go.%d" % number)
        workspace.await_condition("done.%d" % number, [job])
        told = trace.end(expect=None)
        names = [r.name for r in Job(trace.output).events[0].ranges]
        check(names.count("aten::ones") == 7 and "aten::zeros" not in names, "capture %d: %s; %s", number, names, told["processes"])
        workspace.announce("next.%d" % number)
    job.wait()
    node.stop()


def no_helper_thread(workspace):
    """A capture that runs at load is attached without it, and no operator is missed."""
    need_torch()
    code = "import torch, os\nfor _ in range(7): torch.ones(3)\nprint(sorted(open('/proc/self/task/%s/comm' % t).read() for t in os.listdir('/proc/self/task')))"
    captured = Captured(workspace, [kPython, "-c", code], RINGSIDE_THREAD="0")
    check(captured.counts()["aten::ones"] == 7, "%s operators", dict(captured.counts()))
    check("ringside" not in captured.result.out, "its threads are %s", captured.result.out)


run({"every_python": every_python, "virtual_environment": virtual_environment, "fork_with_a_thread": fork_with_a_thread,
     "namespace_with_a_thread": namespace_with_a_thread, "no_helper_thread": no_helper_thread,
     "late_without_helper_thread": late_without_helper_thread})
