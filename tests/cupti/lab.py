"""What the CUPTI source's cases share: the fakes of one release, the program between them and an agent, and what a dump says of it."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Node, check, kShim, kSource, skip, wait_until

from rsd.index import Job

kReleases = ("11.8", "12.4", "12.9", "13.0", "13.5")
kSonames = {"11": "libcupti.so.11.8", "12": "libcupti.so.12", "13": "libcupti.so.13"}
kCupti = 5
kOff, kFull, kDegraded, kNotInstrumented = 1, 2, 3, 4
kFlags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]
kDropped = 11
# What one pass of these makes; each is a driver's call, and work.
kEverything = ["launch:3", "copy", "peer", "memset", "event", "sync"]


def headers():
    done = subprocess.run([os.path.join(kSource, "tools", "setup_cupti"), "--path"], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() if done.returncode == 0 else skip("no headers of CUPTI here: tools/setup_cupti fetches them (60 MB)")


class Lab:
    """One release: its fakes and the program, in a folder of their own."""

    def __init__(self, workspace, release):
        self.workspace, self.release = workspace, release
        self.newer, self.shares = release in ("12.9", "13.0", "13.5"), release == "13.5"
        self.soname = kSonames[release.split(".")[0]]
        self.libraries = workspace.path("lib")
        self.include = os.path.join(headers(), release, "include")
        os.makedirs(self.libraries)
        here = os.path.join(kSource, "tests", "cupti")
        library = ["-shared", "-fPIC", "-Wl,-z,now"]
        self.compile("cc", *kFlags, *library, "-o", os.path.join(self.libraries, "libcuda.so.1"), "-Wl,-soname,libcuda.so.1",
                     os.path.join(here, "fake_cuda.c"))
        self.compile("cc", *kFlags, *library, "-isystem", self.include, "-o", os.path.join(self.libraries, self.soname), "-Wl,-soname," + self.soname,
                     *[os.path.join(here, "fake_%s.c" % part) for part in ("cupti", "buffers", "calls")])
        self.program = workspace.path("program")
        self.compile("cc", *kFlags, "-I", kSource, "-o", self.program, os.path.join(here, "program.c"))
        self.count = self.logs = 0

    def compile(self, compiler, *arguments):
        done = subprocess.run([compiler, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        check(done.returncode == 0, "%s %s:\n%s", compiler, " ".join(arguments), done.stdout[:3000])

    def libraries_environment(self, fake=""):
        """Of the program: its libraries are found as CUDA's are, by the loader."""
        self.logs += 1
        self.log = self.workspace.path("called-%d" % self.logs)
        return dict(LD_LIBRARY_PATH=self.libraries, FAKE_CUPTI=fake, FAKE_CUPTI_LOG=self.log,
                    FAKE_CUDA_DRIVER={"11": "11080", "12": "12090", "13": "13050"}[self.release.split(".")[0]], CONDITIONS=self.workspace.conditions)

    def environment(self, node, fake="", **more):
        return node.environment(LD_PRELOAD=kShim, **self.libraries_environment(fake), **more)

    def called(self):
        """The entry points of CUPTI that anybody has called."""
        if not os.path.exists(self.log):
            return set()
        with open(self.log) as log:
            return set(log.read().split())

    def program_words(self, words):
        return [self.program, *[w.replace("CUPTI", self.soname) for w in words]]

    def captured(self, *words, fake="", status=0, **more):
        """One run in a capture from its first instruction on. @return Captured"""
        self.count += 1
        name = "run%d" % self.count
        node = Node(self.workspace, name, capture_from_start=True, extra=["--name", "all"])
        child = self.workspace.run(name, self.program_words(words), self.environment(node, fake, **more), expect=status)
        wait_until("its segments to go", lambda: not node.segments())
        node.stop()
        return Captured(Job(self.workspace.path("output", name, "all")), child)


def mapped(child):
    """What of CUDA and of us a process has."""
    with open("/proc/%d/maps" % child.pid) as maps:
        files = {os.path.basename(line.split()[-1]) for line in maps}
    return {file for file in files if re.match(r"libcu|libringside", file)}


def set_traps(lab):
    """A libcupti whose every entry point, of all that the release's headers declare, says its name and aborts. @return the folder that has it"""
    folder = lab.workspace.path("traps")
    if os.path.exists(folder):
        return folder
    os.makedirs(folder)
    names = set()
    for header in sorted(os.listdir(lab.include)):
        if header.startswith("cupti"):
            with open(os.path.join(lab.include, header), errors="replace") as text:
                names.update(re.findall(r"CUPTIAPI\s+(cupti\w+)\s*\(", text.read()))
    check(len(names) > 100 and {"cuptiGetVersion", "cuptiActivityEnable", "cuptiSubscribe"} <= names, "the headers declare %d functions", len(names))
    source, versions = os.path.join(folder, "traps.c"), os.path.join(folder, "versions")
    with open(source, "w") as out:
        out.write("#include <stdio.h>\n#include <stdlib.h>\n")
        out.writelines('void %s(void) { fputs("trap: %s\\n", stderr); abort(); }\n' % (name, name) for name in sorted(names))
    with open(versions, "w") as out:
        out.write("%s { global: cupti*; local: *; };\n" % lab.soname)
    lab.compile("cc", "-shared", "-fPIC", "-Wl,-soname," + lab.soname, "-Wl,--version-script=" + versions, "-o", os.path.join(folder, lab.soname), source)
    return folder


class Captured:
    def __init__(self, job, child=None):
        self.job, self.child, self.events = job, child, job.events[0]
        check(not job.problems(), "the reader: %s", "; ".join(job.problems()))
        check(self.events.unknown == 0, "%d records that the reader does not know", self.events.unknown)
        self.gpu = self.events.gpu
        self.work = self.gpu.work

    def of(self, what):
        return [w for w in self.work if w.what == what]

    def source(self):
        """(level, reason) of CUPTI, in the process that has it."""
        found = [s for p in self.job.dumps[0].processes.values() for s in p.sources if s.id == kCupti and s.level]
        return (found[-1].level, found[-1].reason or "") if found else (0, "")

    def dropped(self):
        return sum(end.losses[kDropped] for end in self.job.dumps[0].footer.processes)

    def range_of(self, work):
        call = self.gpu.call_of(work)
        inner = call and self.gpu.range_of(self.events, call)
        return inner and inner.name
